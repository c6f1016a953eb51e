//! A figure by round: of all slices, of the clean ones, at one clock.

use std::collections::BTreeMap;

use rundata::plan::{MIN_CLEAN_ROUNDS, MIN_ROUNDS, Plan};
use stats::{
    Center, Elasticity, FewFigures, FigureAtLevel, PriorScatter, bootstrap, median, weighted_median,
};

use super::Figures;
use crate::at_clock::AtClock;
use crate::estimate::{Estimate, Speed};

/// Assumed scatter of trials at full speed between rounds, as a share, where no launches show it:
/// workers differ more in calls than in hops.
const TRIAL_ROUND_SCATTER: f64 = 0.02;
/// Degrees of freedom of that scatter.
const ASSUMED_FREEDOM: f64 = 4.0;

/// A figure by round. Rounds without the figure, or in which it is not finite, are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound {
    pub(super) all: Figures,
    /// True if the CPU's speed was judged.
    pub(super) judged: bool,
    /// Figures of clean slices; absent where something that the figure is made of has too few of
    /// them.
    pub(super) clean: Option<Figures>,
    /// The clean figures with the elasticity of each part greater by its standard error; absent
    /// where nothing was converted to another clock.
    pub(super) by_error: Option<Figures>,
    /// Elasticity of the figure; absent where the run does not show it, and for a figure that is
    /// made of several.
    pub(super) elasticity: Option<Elasticity>,
    /// True if the clean rounds are too small a share of all, however many they are.
    pub(super) is_scarce: bool,
    /// tau of the case, or the largest of several; absent where no launches show it.
    pub(super) launch_scatter: Option<f64>,
    /// Scatter of rounds at full speed as launches have shown it, or the largest of several; absent
    /// where none did.
    pub(super) round_scatter: Option<f64>,
    /// Size of the largest figure that this one is made of; absent for one that is made of none.
    pub(super) scale: Option<f64>,
    /// The latency quantum, in nanoseconds, of the clock that the clean figures are at; absent where
    /// the speed was not judged.
    pub(super) clock_ns: Option<f64>,
}

/// Builds a figure whose speed was not judged.
impl FromIterator<(u32, f64)> for ByRound {
    fn from_iter<T: IntoIterator<Item = (u32, f64)>>(figures: T) -> Self {
        Self { all: finite(figures), ..Self::default() }
    }
}

pub(super) fn finite(figures: impl IntoIterator<Item = (u32, f64)>) -> Figures {
    figures.into_iter().filter(|(_, figure)| figure.is_finite()).collect()
}

impl ByRound {
    /// Builds a figure whose slices were judged: of all of them, and of the clean ones where there
    /// are enough.
    pub fn judged(
        all: impl IntoIterator<Item = (u32, f64)>,
        clean: Option<impl IntoIterator<Item = (u32, f64)>>,
    ) -> Self {
        Self { all: finite(all), judged: true, clean: clean.map(finite), ..Self::default() }
    }

    /// Returns a figure that `combine` makes of several, for the rounds that have all of them. It is
    /// clean where each part is, and not judged where one part was not.
    pub fn together<const N: usize>(parts: [&Self; N], combine: impl Fn([f64; N]) -> f64) -> Self {
        let mut together = Self {
            all: within_rounds(parts.map(|part| Some(&part.all)), &combine).unwrap_or_default(),
            judged: true,
            clean: within_rounds(parts.map(|part| part.clean.as_ref()), &combine),
            by_error: Self::by_error_together(parts, &combine),
            // The parts of one sample's CPU have one clock.
            clock_ns: None,
            ..Self::default()
        };
        if let Some(first) = parts.first() {
            together.clock_ns = first.clock_ns;
        }
        for part in parts {
            together.judged &= part.judged;
            together.is_scarce |= part.is_scarce;
            together.launch_scatter = larger(together.launch_scatter, part.launch_scatter);
            together.round_scatter = larger(together.round_scatter, part.round_scatter);
            together.scale = larger(together.scale, part.size());
        }
        together
    }

    /// Returns the median of `figures` over the rounds with clean slices.
    fn clean_middle(&self, figures: &Figures) -> Option<f64> {
        let clean = self.clean.as_ref()?;
        let mut values = Vec::new();
        for (round, figure) in figures {
            if clean.contains_key(round) {
                values.push(*figure);
            }
        }
        median(&values)
    }

    /// Returns the combined figures with all elasticities greater by their errors.
    fn by_error_together<const N: usize>(
        parts: [&Self; N],
        combine: impl Fn([f64; N]) -> f64,
    ) -> Option<Figures> {
        if parts.iter().all(|part| part.by_error.is_none()) {
            return None;
        }
        within_rounds(parts.map(|part| part.by_error.as_ref().or(part.clean.as_ref())), &combine)
    }

    /// Returns the error of the median by the errors of the elasticities with which its parts were
    /// converted to one clock; 0 where nothing was converted.
    fn clock_error(&self) -> f64 {
        let (Some(clean), Some(by_error)) = (&self.clean, &self.by_error) else { return 0.0 };
        match (self.clean_middle(clean), self.clean_middle(by_error)) {
            (Some(middle), Some(moved)) => (moved - middle).abs(),
            _ => 0.0,
        }
    }

    /// Returns the speed at which its figures were measured.
    pub fn speed(&self) -> Speed {
        let rounds = match &self.clean {
            Some(clean) => clean.len(),
            None => 0,
        };
        if !self.judged {
            Speed::NotJudged
        } else if rounds >= MIN_CLEAN_ROUNDS as usize && !self.is_scarce {
            Speed::Full
        } else if rounds > 0 {
            Speed::FewRounds
        } else {
            Speed::Contended
        }
    }

    /// Returns its clock with the elasticity of earlier launches; absent if it is not at full speed.
    pub(crate) fn clock(&self, known: Option<Elasticity>) -> Option<AtClock> {
        if !self.speed().is_full() {
            return None;
        }
        Some(AtClock { quantum_ns: self.clock_ns?, elasticity: self.elasticity, known })
    }

    /// Returns the median over rounds: at full speed, in many rounds or in few, with the term for
    /// launches; on a shared core; else with the interval of the rounds. Absent without rounds.
    pub fn estimate(&self, plan: &Plan) -> Option<Estimate> {
        let (confidence, seed) = (plan.stopping.confidence, plan.seed);
        let figures = self.values();
        let launch_scatter = self.launch_scatter.unwrap_or_else(|| plan.reference.scatter());
        let estimate = match self.speed() {
            Speed::NotJudged => Estimate::over(&figures, MIN_ROUNDS, confidence, seed),
            Speed::Full => {
                let middle = median(&figures)?;
                let by_chance = bootstrap(&figures, Center::Median, confidence, seed)?;
                let standard_error = by_chance.standard_error.hypot(self.clock_error());
                let rounds = figures.len() as u32;
                Estimate::at_full_speed(middle, standard_error, rounds, launch_scatter, confidence)
            }
            Speed::FewRounds => {
                let few = FewFigures::from_rounds(&figures, self.prior_scatter()?)?;
                let standard_error = few.standard_error.hypot(self.clock_error());
                let few = FewFigures { standard_error, ..few };
                Estimate::in_few_rounds(few, launch_scatter, confidence)
            }
            shared => Estimate::as_it_was(&figures, self.scale, confidence, shared),
        }?;
        Some(if plan.reference.strict { estimate.strict() } else { estimate })
    }

    fn prior_scatter(&self) -> Option<PriorScatter> {
        let deviation = self.round_scatter.unwrap_or(TRIAL_ROUND_SCATTER) * self.size()?;
        Some(PriorScatter { deviation, freedom: ASSUMED_FREEDOM })
    }

    /// Returns the size of its figures, or that of the largest figure that they are made of.
    fn size(&self) -> Option<f64> {
        let size = median(&self.values())?.abs();
        larger(self.scale, Some(size))
    }

    /// Returns the figures behind the estimate, in the order of rounds.
    pub fn figures(&self) -> impl Iterator<Item = (u32, f64)> {
        let used = match &self.clean {
            Some(clean) if self.speed().is_full() => clean,
            _ => &self.all,
        };
        used.iter().map(|(round, figure)| (*round, *figure))
    }

    /// Like [`Self::figures`], without the rounds.
    pub(super) fn values(&self) -> Vec<f64> {
        self.figures().map(|(_, figure)| figure).collect()
    }

    /// Returns the figures of all slices, in the order of rounds.
    pub fn of_all(&self) -> impl Iterator<Item = (u32, f64)> {
        self.all.iter().map(|(round, figure)| (*round, *figure))
    }
}

/// Returns the larger of two numbers, or the one that is there.
fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, other) => one.or(other),
    }
}

/// Converts each round's figures to the clock of a quantum of `to_ns` by an elasticity of `power`,
/// and returns their medians by weight.
pub(super) fn at_quantum(
    rounds: &BTreeMap<u32, Vec<FigureAtLevel>>,
    power: f64,
    to_ns: f64,
) -> Figures {
    let mut middles = Vec::new();
    for (round, figures) in rounds {
        let mut weighted = Vec::new();
        for FigureAtLevel { level, figure, weight } in figures {
            weighted.push((figure * (to_ns / level).powf(power), *weight));
        }
        if let Some(middle) = weighted_median(&weighted) {
            middles.push((*round, middle));
        }
    }
    finite(middles)
}

/// Returns the combined figures of the rounds that have all parts; absent where a part has no
/// figures at all.
fn within_rounds<const N: usize>(
    parts: [Option<&Figures>; N],
    combine: impl Fn([f64; N]) -> f64,
) -> Option<Figures> {
    let parts: Vec<&Figures> = parts.into_iter().collect::<Option<_>>()?;
    let mut combined = Vec::new();
    for round in parts.first()?.keys() {
        let mut figures = [0.0; N];
        let mut is_complete = true;
        for (figure, part) in figures.iter_mut().zip(&parts) {
            match part.get(round) {
                Some(value) => *figure = *value,
                None => is_complete = false,
            }
        }
        if is_complete {
            combined.push((*round, combine(figures)));
        }
    }
    Some(finite(combined))
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
