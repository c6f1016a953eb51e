//! A figure in each round, whichever instrument it is from: what is computed from several is computed
//! within rounds.

use std::collections::BTreeMap;

use crate::estimate::Estimate;
use crate::instrument::Instrument;
use crate::plan::{MINIMUM_ROUNDS, Plan};
use crate::stats::OnePerRound;

/// A figure by round. Rounds that lack it, or in which it is not finite, are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound(BTreeMap<u32, f64>);

impl FromIterator<(u32, f64)> for ByRound {
    fn from_iter<T: IntoIterator<Item = (u32, f64)>>(figures: T) -> Self {
        Self(figures.into_iter().filter(|(_, figure)| figure.is_finite()).collect())
    }
}

impl ByRound {
    /// A figure made of several, for the rounds that have all of them.
    pub fn together<const N: usize>(parts: [&Self; N], of: impl Fn([f64; N]) -> f64) -> Self {
        let Some(first) = parts.first() else { return Self::default() };
        let in_round = |round: &u32| {
            let mut figures = [0.0; N];
            for (figure, part) in figures.iter_mut().zip(parts) {
                *figure = *part.0.get(round)?;
            }
            Some((*round, of(figures)))
        };
        first.0.keys().filter_map(in_round).collect()
    }

    /// The median over rounds with its interval; absent without rounds.
    pub fn estimate<I: Instrument>(&self, plan: &Plan<I>) -> Option<Estimate> {
        let figures = OnePerRound(self.0.values().copied().collect());
        Estimate::over(&figures, MINIMUM_ROUNDS, plan.stopping.confidence, plan.seed)
    }

    /// The figures in the order of rounds.
    pub fn figures(&self) -> impl Iterator<Item = (u32, f64)> {
        self.0.iter().map(|(round, figure)| (*round, *figure))
    }
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
}
