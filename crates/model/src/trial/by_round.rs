//! A figure in each round, of all that was measured and of what is clean of it: what is computed from several
//! is computed within rounds.

use std::collections::BTreeMap;

use crate::estimate::Estimate;
use crate::plan::{MINIMUM_ROUNDS, Plan};
use crate::speed::{FEWEST_ROUNDS, LAUNCH_SCATTER, Speed};
use stats::{Center, bootstrap};

type Rounds = BTreeMap<u32, f64>;

/// A figure by round. Rounds that lack it, or in which it is not finite, are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound {
    all: Rounds,
    /// Whether the CPU's speed was looked at.
    judged: bool,
    /// Of clean slices only. None where something that it is made of has too few of them.
    clean: Option<Rounds>,
}

/// Of whatever speed: nobody looked.
impl FromIterator<(u32, f64)> for ByRound {
    fn from_iter<T: IntoIterator<Item = (u32, f64)>>(figures: T) -> Self {
        Self { all: finite(figures), judged: false, clean: None }
    }
}

fn finite(figures: impl IntoIterator<Item = (u32, f64)>) -> Rounds {
    figures.into_iter().filter(|(_, figure)| figure.is_finite()).collect()
}

impl ByRound {
    /// A figure whose slices were judged: of all of them, and of the clean ones where there are enough.
    pub fn judged(
        all: impl IntoIterator<Item = (u32, f64)>,
        clean: Option<impl IntoIterator<Item = (u32, f64)>>,
    ) -> Self {
        Self { all: finite(all), judged: true, clean: clean.map(finite) }
    }

    /// A figure made of several, for the rounds that have all of them. Clean where each part is; where one was
    /// not judged, neither is what is made of it.
    pub fn together<const N: usize>(parts: [&Self; N], of: impl Fn([f64; N]) -> f64) -> Self {
        let clean = parts.map(|part| part.clean.as_ref());
        Self {
            all: within_rounds(parts.map(|part| Some(&part.all)), &of).unwrap_or_default(),
            judged: parts.iter().all(|part| part.judged),
            clean: within_rounds(clean, &of),
        }
    }

    /// At which speed its figures were measured.
    pub fn speed(&self) -> Speed {
        let has_enough =
            self.clean.as_ref().is_some_and(|clean| clean.len() >= FEWEST_ROUNDS as usize);
        match (self.judged, has_enough) {
            (false, _) => Speed::NotJudged,
            (true, true) => Speed::Full,
            (true, false) => Speed::Contended,
        }
    }

    /// The median over rounds: at full speed with the term for launches, contended without an interval, else
    /// with the interval of the rounds. Absent without rounds.
    pub fn estimate(&self, plan: &Plan) -> Option<Estimate> {
        let (confidence, seed) = (plan.stopping.confidence, plan.seed);
        let figures: Vec<f64> = self.figures().map(|(_, figure)| figure).collect();
        match self.speed() {
            Speed::NotJudged => Estimate::over(&figures, MINIMUM_ROUNDS, confidence, seed),
            Speed::Contended => Estimate::contended(&figures, confidence),
            Speed::Full => Estimate::at_full_speed(
                Center::Median.of(&figures)?,
                bootstrap(&figures, Center::Median, confidence, seed)?.standard_error,
                figures.len() as u32,
                plan.reference.launch_scatter.unwrap_or(LAUNCH_SCATTER),
                confidence,
            ),
        }
    }

    /// The figures behind the estimate, in the order of rounds.
    pub fn figures(&self) -> impl Iterator<Item = (u32, f64)> {
        let clean = self.clean.as_ref().filter(|_| self.speed() == Speed::Full);
        clean.unwrap_or(&self.all).iter().map(|(round, figure)| (*round, *figure))
    }

    /// The figures of all slices, in the order of rounds.
    pub fn of_all(&self) -> impl Iterator<Item = (u32, f64)> {
        self.all.iter().map(|(round, figure)| (*round, *figure))
    }
}

/// None where a part is not there at all.
fn within_rounds<const N: usize>(
    parts: [Option<&Rounds>; N],
    of: impl Fn([f64; N]) -> f64,
) -> Option<Rounds> {
    let parts: Vec<&Rounds> = parts.into_iter().collect::<Option<_>>()?;
    let in_round = |round: &u32| {
        let mut figures = [0.0; N];
        for (figure, part) in figures.iter_mut().zip(&parts) {
            *figure = *part.get(round)?;
        }
        Some((*round, of(figures)))
    };
    Some(finite(parts.first()?.keys().filter_map(in_round)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_put_together_within_rounds_only() {
        let loops = ByRound::from_iter([(0, 54.0), (1, 64.0), (2, 74.0), (4, f64::NAN)]);
        let signals = ByRound::from_iter([(0, 12.0), (2, 22.0), (3, 1.0), (4, 1.0)]);
        let switch = ByRound::together([&loops, &signals], |[l, s]| (l - 2.0 * s) / 2.0);
        assert_eq!(switch.figures().collect::<Vec<_>>(), [(0, 15.0), (2, 15.0)]);
        let none = ByRound::together([&loops, &ByRound::default()], |[l, _]| l);
        assert_eq!(none, ByRound::default());
    }

    fn at_speed(rounds: u32, value: f64, clean_rounds: Option<u32>) -> ByRound {
        let clean = clean_rounds.map(|rounds| (0..rounds).map(move |round| (round, value)));
        ByRound::judged((0..rounds).map(|round| (round, 2.0 * value)), clean)
    }

    /// What is made of several is clean only where all are, and then of the clean figures only.
    #[test]
    fn the_worst_part_decides_the_speed() {
        let less = |one: &ByRound, other: &ByRound| ByRound::together([one, other], |[a, b]| a - b);
        let full = at_speed(10, 30.0, Some(9));
        let cases = [
            (at_speed(10, 10.0, Some(10)), Speed::Full, 9, 20.0),
            (at_speed(10, 10.0, None), Speed::Contended, 10, 40.0),
            // Too few rounds in which both are clean.
            (at_speed(10, 10.0, Some(7)), Speed::Contended, 10, 40.0),
            (ByRound::from_iter((0..10).map(|r| (r, 20.0))), Speed::NotJudged, 10, 40.0),
        ];
        for (other, speed, rounds, value) in cases {
            let both = less(&full, &other);
            let figures: Vec<(u32, f64)> = both.figures().collect();
            assert_eq!((both.speed(), figures.len()), (speed, rounds), "{other:?}");
            assert!(figures.iter().all(|(_, figure)| *figure == value), "{figures:?}");
            assert_eq!(both.of_all().count(), 10);
        }
    }
}
