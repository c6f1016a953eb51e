//! By which power a figure goes with a level that is not under control, such as a time with the
//! period of the clock.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::location::{median, quantile};

/// A power: 1 is a figure that goes with the level, 0 one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elasticity {
    /// d ln(figure) / d ln(level).
    pub value: f64,
    /// Its standard error, by the scatter between rounds.
    pub standard_error: f64,
}

/// Levels within this share of each other are taken for one: the middle of their figures counts, so
/// that what was interrupted does not.
const SAME: f64 = 0.002;
/// Levels must be so far apart, from the 5th to the 95th percentile: what a level is known to bends
/// the slope of less.
const LEAST_SPAN: f64 = 0.01;
/// Rounds that it takes to say how far it scatters between them.
const FEWEST_ROUNDS: usize = 5;

/// A figure at a level, both above zero, and how many it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureAtLevel {
    /// The level.
    pub level: f64,
    /// The figure.
    pub figure: f64,
    /// Its weight.
    pub weight: f64,
}

/// The levels of a round that are taken for one, by the numbers of their figures.
pub fn group_by_level(levels: impl IntoIterator<Item = f64>) -> Vec<Vec<usize>> {
    let mut at_level: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (number, level) in levels.into_iter().enumerate() {
        at_level.entry((level.ln() / SAME).round() as i64).or_default().push(number);
    }
    at_level.into_values().collect()
}

/// Whether levels are so far apart that they tell by which power a figure goes with them.
pub fn has_level_span(levels: &[f64]) -> bool {
    let span = || Some(quantile(levels, 0.95)?.ln() - quantile(levels, 0.05)?.ln());
    span().is_some_and(|span| span >= LEAST_SPAN)
}

/// Of figures that come in rounds, each with its level (`(level, figure)`, both above zero):
/// [`fit_elasticity`] the medians that each round has at each level. Absent where the level hardly
/// changed.
pub fn estimate_elasticity(by_round: &BTreeMap<u32, Vec<(f64, f64)>>) -> Option<Elasticity> {
    let levels: Vec<f64> = by_round.values().flatten().map(|(level, _)| *level).collect();
    let rounds = by_round.values().map(|figures| points(figures));
    has_level_span(&levels).then(|| fit_elasticity(&rounds.collect::<Vec<_>>())).flatten()
}

/// Of what rounds have at levels: the weighted least squares of its logarithms. What lies within a
/// round is not independent: the error is that of leaving out each round in turn (the jackknife of
/// clusters, Bell and McCaffrey 2002, Survey Methodology 28), so that one round with a level of its
/// own does not vouch for itself. Absent below five rounds, where two rounds alone have another
/// level, and where something is not above zero.
pub fn fit_elasticity(rounds: &[Vec<FigureAtLevel>]) -> Option<Elasticity> {
    let is_sound = |of: &FigureAtLevel| of.level > 0.0 && of.figure > 0.0;
    if rounds.len() < FEWEST_ROUNDS || !rounds.iter().flatten().all(is_sound) {
        return None;
    }
    let sums: Vec<LogSums> = rounds.iter().map(|round| LogSums::from_round(round)).collect();
    let all = sums.iter().fold(LogSums::default(), |all, round| all.plus(round, 1.0));
    let value = all.slope()?;
    let count = rounds.len() as f64;
    // What is left of the spread of levels without a round must still tell a power.
    let without = sums.iter().map(|round| {
        let rest = all.plus(round, -1.0);
        let tells = rest.variance() >= LEAST_LEFT * all.variance();
        rest.slope().filter(|_| tells)
    });
    let without: Vec<f64> = without.collect::<Option<_>>()?;
    let squares: f64 = without.iter().map(|slope| (slope - value).powi(2)).sum();
    let standard_error = (squares * (count - 1.0) / count).sqrt();
    (value.is_finite() && standard_error.is_finite())
        .then_some(Elasticity { value, standard_error })
}

/// Without any one round at least this share of the variance of levels has to be left: what rests
/// on two rounds is known much worse than these say.
const LEAST_LEFT: f64 = 0.6;

/// Weighted sums of logarithms, all that a slope needs: of 1, x, y, x x and x y.
#[derive(Clone, Copy, Debug, Default)]
struct LogSums([f64; 5]);

impl LogSums {
    fn from_round(round: &[FigureAtLevel]) -> Self {
        let add = |sums: Self, of: &FigureAtLevel| {
            let (x, y) = (of.level.ln() - MIDDLE, of.figure.ln());
            sums.plus(&Self([1.0, x, y, x * x, x * y]), of.weight)
        };
        round.iter().fold(Self::default(), add)
    }

    fn plus(self, other: &Self, times: f64) -> Self {
        Self(std::array::from_fn(|of| self.0[of] + times * other.0[of]))
    }

    /// Of the levels' logarithms.
    fn variance(&self) -> f64 {
        let [weight, x, _, xx, _] = self.0;
        xx / weight - (x / weight).powi(2)
    }

    fn slope(&self) -> Option<f64> {
        let [weight, x, y, _, xy] = self.0;
        let products = xy / weight - x * y / (weight * weight);
        Some(products / self.variance()).filter(|slope| slope.is_finite())
    }
}

/// ln of a level somewhere near those that there are: sums of squares of small numbers keep their
/// digits.
const MIDDLE: f64 = 8.6;

fn points(figures: &[(f64, f64)]) -> Vec<FigureAtLevel> {
    let point = |of: Vec<usize>| {
        let (levels, figures): (Vec<f64>, Vec<f64>) = of.into_iter().map(|at| figures[at]).unzip();
        let weight = figures.len() as f64;
        Some(FigureAtLevel { level: median(&levels)?, figure: median(&figures)?, weight })
    };
    let levels = figures.iter().map(|(level, _)| *level);
    group_by_level(levels).into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::location::student_quantile;

    /// So many rounds of 40 figures, each at the level and with the factor that `at` gives for its
    /// round and place.
    fn rounds(
        count: u32,
        mut at: impl FnMut(u32, u32) -> (f64, f64),
    ) -> BTreeMap<u32, Vec<(f64, f64)>> {
        (0..count).map(|round| (round, (0..40).map(|place| at(round, place)).collect())).collect()
    }

    #[test]
    fn a_power_of_the_level_is_found_as_it_is() {
        for power in [0.0, 0.3, 1.0, -0.5] {
            let figure = |level: f64| (level, 7.0 * level.powf(power));
            let found = estimate_elasticity(&rounds(6, |round, place| {
                figure(if (round + place / 20) % 2 == 0 { 5200.0 } else { 5800.0 })
            }));
            let found = found.unwrap();
            assert!((found.value - power).abs() < 1e-9, "{power}: {found:?}");
            assert!(found.standard_error < 1e-9, "{power}: {found:?}");
        }
    }

    #[test]
    fn what_was_interrupted_changes_nothing() {
        let found = estimate_elasticity(&rounds(8, |round, place| {
            let level = if round % 2 == 0 { 5200.0 } else { 5800.0 };
            // One of five, at one of the levels only.
            let is_interrupted = place % 5 == 0 && round % 2 == 0;
            (level, level * if is_interrupted { 1.8 } else { 1.0 })
        }));
        assert!((found.unwrap().value - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn one_level_and_few_rounds_say_nothing() {
        let of = |count, span: f64| {
            estimate_elasticity(&rounds(count, |round, _| {
                let level = 5200.0 * (1.0 + span * f64::from(round % 2));
                (level, level)
            }))
        };
        assert_eq!((of(8, 0.0), of(8, 0.009), of(4, 0.1)), (None, None, None));
        assert!(of(8, 0.011).is_some() && of(5, 0.1).is_some());
        assert_eq!(estimate_elasticity(&BTreeMap::new()), None);
        // Of levels that are none.
        let zero = estimate_elasticity(&rounds(8, |round, _| (f64::from(round % 2), 1.0)));
        assert_eq!(zero, None);
    }

    /// One or two of the rounds have another level: their error is not told too small, or nothing
    /// is.
    #[test]
    fn few_rounds_at_another_level_know_their_power_badly() {
        let mut rng = ChaCha8Rng::seed_from_u64(2002);
        let mut normal = move || (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        for (count, others, all) in [(10, 1, 0), (20, 2, 0), (20, 3, 400), (20, 10, 400)] {
            let (mut told, mut covered) = (0, 0);
            for _ in 0..400 {
                let mut own = 0.0;
                let rounds = rounds(count, |round, place| {
                    own = if place == 0 { 0.003 * normal() } else { own };
                    let level: f64 = if round < others { 5775.0 } else { 5500.0 };
                    (level, level.powf(0.7) * f64::exp(own))
                });
                let Some(found) = estimate_elasticity(&rounds) else { continue };
                let t = student_quantile(0.95, f64::from(count) - 2.0).unwrap();
                told += 1;
                covered += i32::from((found.value - 0.7).abs() <= t * found.standard_error);
            }
            assert!(
                told == all && 100 * covered >= 86 * told,
                "{others} of {count}: {covered} of {told}"
            );
        }
    }

    /// Rounds scatter by 1 % each, slices by 0.5 %; the clock wanders from round to round.
    #[test]
    fn its_error_is_that_between_rounds() {
        let mut rng = ChaCha8Rng::seed_from_u64(1992);
        let mut normal = move || (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let (launches, mut told) = (400, 0);
        let covered = (0..launches).filter(|_| {
            let (mut clock, mut own) = (0.0, 0.0);
            let figures = rounds(20, |_, place| {
                if place == 0 {
                    clock = 0.7 * clock + 0.03 * normal();
                    own = 0.01 * normal();
                }
                let level: f64 = 5500.0 * f64::exp(clock);
                (level, level.powf(0.6) * f64::exp(own + 0.005 * normal()))
            });
            let Some(found) = estimate_elasticity(&figures) else { return false };
            told += 1;
            let t = student_quantile(0.95, 18.0).unwrap();
            (found.value - 0.6).abs() <= t * found.standard_error
        });
        let percent = 100 * covered.count() / told;
        assert!(told >= launches * 9 / 10, "{told}");
        assert!((90..=97).contains(&percent), "{percent} %");
    }
}
