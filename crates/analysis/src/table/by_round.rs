//! A figure by round: of all slices, of the clean ones, at one clock.

use std::collections::BTreeMap;

use rundata::plan::{MIN_CLEAN_ROUNDS, MIN_ROUNDS, Plan};
use stats::{
    Center, Elasticity, FewFigures, FigureAtLevel, PriorScatter, bootstrap, median, weighted_median,
};

use super::Figures;
use crate::at_clock::AtClock;
use crate::estimate::{Estimate, Speed};

/// How figures of trials at full speed scatter between rounds where no launches say it, as a share.
/// It is assumed: workers differ more in calls than in hops.
const TRIAL_ROUNDS: f64 = 0.02;
/// Degrees of freedom of that.
const ASSUMED_FREEDOM: f64 = 4.0;

/// A figure by round. Figures that lack it, or in which it is not finite, are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound {
    pub(super) all: Figures,
    /// Whether the CPU's speed was looked at.
    pub(super) judged: bool,
    /// Of clean slices only. None where something that it is made of has too few of them.
    pub(super) clean: Option<Figures>,
    /// Where these were brought to one clock: what they were, were the power of each part greater
    /// by its standard error.
    pub(super) by_error: Option<Figures>,
    /// By which power it goes with the period of the core's clock; absent where the run does not
    /// tell, and of what is made of several.
    pub(super) elasticity: Option<Elasticity>,
    /// Whether the clean rounds are few, however many they are: too small a share of all.
    pub(super) is_scarce: bool,
    /// tau of the case that it is of, of several the largest; absent where no launches say it.
    pub(super) launch_scatter: Option<f64>,
    /// How rounds at full speed scatter, as launches have shown it, of several the largest; absent
    /// where none did.
    pub(super) round_scatter: Option<f64>,
    /// The size of the largest figure that it is made of; absent of one that is made of none.
    pub(super) scale: Option<f64>,
    /// The latency quantum, in nanoseconds, of the clock that the clean figures are at; absent
    /// where nobody looked.
    pub(super) clock_ns: Option<f64>,
}

/// Of whatever speed: nobody looked.
impl FromIterator<(u32, f64)> for ByRound {
    fn from_iter<T: IntoIterator<Item = (u32, f64)>>(figures: T) -> Self {
        Self { all: finite(figures), ..Self::default() }
    }
}

pub(super) fn finite(figures: impl IntoIterator<Item = (u32, f64)>) -> Figures {
    figures.into_iter().filter(|(_, figure)| figure.is_finite()).collect()
}

impl ByRound {
    /// A figure whose slices were judged: of all of them, and of the clean ones where there are
    /// enough.
    pub fn judged(
        all: impl IntoIterator<Item = (u32, f64)>,
        clean: Option<impl IntoIterator<Item = (u32, f64)>>,
    ) -> Self {
        Self { all: finite(all), judged: true, clean: clean.map(finite), ..Self::default() }
    }

    /// A figure made of several, for the rounds that have all of them. Clean where each part is;
    /// where one was not judged, neither is what is made of it.
    pub fn together<const N: usize>(parts: [&Self; N], of: impl Fn([f64; N]) -> f64) -> Self {
        let clean = parts.map(|part| part.clean.as_ref());
        Self {
            all: within_rounds(parts.map(|part| Some(&part.all)), &of).unwrap_or_default(),
            judged: parts.iter().all(|part| part.judged),
            clean: within_rounds(clean, &of),
            by_error: Self::by_error_together(parts, &of),
            elasticity: None,
            // Of one sample's CPU, all have the same.
            clock_ns: parts.first().and_then(|part| part.clock_ns),
            is_scarce: parts.iter().any(|part| part.is_scarce),
            launch_scatter: parts.iter().filter_map(|part| part.launch_scatter).reduce(f64::max),
            round_scatter: parts.iter().filter_map(|part| part.round_scatter).reduce(f64::max),
            scale: parts.iter().filter_map(|part| part.size()).reduce(f64::max),
        }
    }

    /// The middle of these, of the rounds that the figure has.
    fn middle(&self, of: &Figures) -> Option<f64> {
        let clean = self.clean.as_ref()?;
        let same = of.iter().filter(|(round, _)| clean.contains_key(round));
        median(&same.map(|(_, figure)| *figure).collect::<Vec<f64>>())
    }

    /// What is made of several, were the powers of all that were brought greater by their errors.
    fn by_error_together<const N: usize>(
        parts: [&Self; N],
        of: impl Fn([f64; N]) -> f64,
    ) -> Option<Figures> {
        parts.iter().any(|part| part.by_error.is_some()).then_some(())?;
        within_rounds(parts.map(|part| part.by_error.as_ref().or(part.clean.as_ref())), &of)
    }

    /// How far the middle is uncertain as the power is by which its parts were brought to one
    /// clock.
    fn error_of_clock(&self) -> f64 {
        let error = || {
            let clean = self.middle(self.clean.as_ref()?)?;
            Some((self.middle(self.by_error.as_ref()?)? - clean).abs())
        };
        error().unwrap_or(0.0)
    }

    /// At which speed its figures were measured.
    pub fn speed(&self) -> Speed {
        let rounds = self.clean.as_ref().map_or(0, BTreeMap::len);
        match self.judged {
            false => Speed::NotJudged,
            true if rounds >= MIN_CLEAN_ROUNDS as usize && !self.is_scarce => Speed::Full,
            true if rounds > 0 => Speed::FewRounds,
            true => Speed::Contended,
        }
    }

    /// At which clock it is, with the power of earlier launches; none at no full speed.
    pub(crate) fn clock(&self, known: Option<Elasticity>) -> Option<AtClock> {
        let quantum_ns = self.clock_ns.filter(|_| self.speed().is_full())?;
        Some(AtClock { quantum_ns, elasticity: self.elasticity, known })
    }

    /// The median over rounds: at full speed, in many rounds or in few, with the term for launches;
    /// on a shared core; else with the interval of the rounds. Absent without rounds.
    pub fn estimate(&self, plan: &Plan) -> Option<Estimate> {
        let (confidence, seed) = (plan.stopping.confidence, plan.seed);
        let figures: Vec<f64> = self.figures().map(|(_, figure)| figure).collect();
        let launch_scatter = self.launch_scatter.unwrap_or_else(|| plan.reference.scatter());
        let found = match self.speed() {
            Speed::NotJudged => Estimate::over(&figures, MIN_ROUNDS, confidence, seed),
            Speed::Full => Estimate::at_full_speed(
                median(&figures)?,
                bootstrap(&figures, Center::Median, confidence, seed)?
                    .standard_error
                    .hypot(self.error_of_clock()),
                figures.len() as u32,
                launch_scatter,
                confidence,
            ),
            Speed::FewRounds => {
                let few = FewFigures::from_rounds(&figures, self.prior_scatter()?)?;
                let standard_error = few.standard_error.hypot(self.error_of_clock());
                let few = FewFigures { standard_error, ..few };
                Estimate::in_few_rounds(few, launch_scatter, confidence)
            }
            as_it_was => Estimate::as_it_was(&figures, self.scale, confidence, as_it_was),
        };
        found.map(|found| if plan.reference.strict { found.strict() } else { found })
    }

    fn prior_scatter(&self) -> Option<PriorScatter> {
        let deviation = self.round_scatter.unwrap_or(TRIAL_ROUNDS) * self.size()?;
        Some(PriorScatter { deviation, freedom: ASSUMED_FREEDOM })
    }

    /// The size of its figures, or of the largest that they are made of.
    fn size(&self) -> Option<f64> {
        let figures: Vec<f64> = self.figures().map(|(_, figure)| figure).collect();
        let own = median(&figures)?.abs();
        Some(self.scale.map_or(own, |scale| scale.max(own)))
    }

    /// The figures behind the estimate, in the order of rounds.
    pub fn figures(&self) -> impl Iterator<Item = (u32, f64)> {
        let clean = self.clean.as_ref().filter(|_| self.speed().is_full());
        clean.unwrap_or(&self.all).iter().map(|(round, figure)| (*round, *figure))
    }

    /// The figures of all slices, in the order of rounds.
    pub fn of_all(&self) -> impl Iterator<Item = (u32, f64)> {
        self.all.iter().map(|(round, figure)| (*round, *figure))
    }
}

/// Each round's figures at the clock of a quantum of `to_ns`: the middle by their weights.
pub(super) fn brought(
    rounds: &BTreeMap<u32, Vec<FigureAtLevel>>,
    power: f64,
    to_ns: f64,
) -> Figures {
    let figure = |all: &Vec<FigureAtLevel>| {
        let there = |of: &FigureAtLevel| (of.figure * (to_ns / of.level).powf(power), of.weight);
        weighted_median(&all.iter().map(there).collect::<Vec<_>>())
    };
    finite(rounds.iter().filter_map(|(round, all)| Some((*round, figure(all)?))))
}

/// None where a part is not there at all.
fn within_rounds<const N: usize>(
    parts: [Option<&Figures>; N],
    of: impl Fn([f64; N]) -> f64,
) -> Option<Figures> {
    let parts: Vec<&Figures> = parts.into_iter().collect::<Option<_>>()?;
    let in_round = |round: &u32| {
        let figures: Option<Vec<f64>> = parts.iter().map(|part| part.get(round).copied()).collect();
        Some((*round, of(figures?.try_into().ok()?)))
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
        assert_eq!((none.figures().count(), none.clean), (0, None));
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
            // Few rounds in which both are clean.
            (at_speed(10, 10.0, Some(7)), Speed::FewRounds, 7, 20.0),
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
