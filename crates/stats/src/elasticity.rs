//! The power by which a figure follows a level that is not under control, such as a time the period
//! of the clock.
//!
//! A switch takes 2,000 ns at a period of 0.50 ns and 2,140 ns at 0.55 ns, a clock that is 10 %
//! slower: ln(2140 / 2000) / ln(0.55 / 0.50) = 0.71. A figure of instructions alone would have 1,
//! one of memory alone 0.
//!
//! In a run the level wanders. Within each round, figures at nearly one level are replaced by their
//! median, so that interrupted ones do not count; one line goes through the logarithms of these
//! medians of all rounds. Its error is found by leaving out each round in turn: if the slope is 0.71
//! with all rounds, and between 0.69 and 0.73 without any one, no single round decides it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::location::{finite, median, quantile, squares_about};

/// A power: 1 is a figure that goes with the level, 0 one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elasticity {
    /// d ln(figure) / d ln(level).
    pub value: f64,
    /// Its standard error, by the scatter between rounds.
    pub standard_error: f64,
}

/// Levels within this share of each other are taken for one: the middle of their figures counts, so
/// that interrupted ones do not.
const MAX_LEVEL_DISTANCE: f64 = 0.002;

/// Least distance of the levels from the 5th to the 95th percentile: the error of a level bends the
/// slope of closer ones.
const MIN_LEVEL_SPAN: f64 = 0.01;

/// Fewest rounds that show the scatter between rounds.
const MIN_ROUNDS: usize = 5;

/// A figure at a level, both above zero, and the number of figures behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureAtLevel {
    /// The level.
    pub level: f64,
    /// The figure.
    pub figure: f64,
    /// Number of figures that it is the median of.
    pub weight: f64,
}

/// Groups the figures of a round whose levels are taken for one; returns the indices of each group,
/// by level.
pub fn group_by_level(levels: impl IntoIterator<Item = f64>) -> Vec<Vec<usize>> {
    let mut at_level: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (index, level) in levels.into_iter().enumerate() {
        at_level.entry((level.ln() / MAX_LEVEL_DISTANCE).round() as i64).or_default().push(index);
    }
    at_level.into_values().collect()
}

/// Returns whether levels are far enough apart to tell the power by which a figure follows them.
pub fn has_level_span(levels: &[f64]) -> bool {
    match (quantile(levels, 0.05), quantile(levels, 0.95)) {
        (Some(low), Some(high)) => high.ln() - low.ln() >= MIN_LEVEL_SPAN,
        _ => false,
    }
}

/// Fits the elasticity of figures that come in rounds, each with its level (`(level, figure)`, both
/// above zero), to the medians that each round has at each level. Absent where the level hardly
/// changed.
pub fn estimate_elasticity(by_round: &BTreeMap<u32, Vec<(f64, f64)>>) -> Option<Elasticity> {
    let (mut levels, mut rounds) = (Vec::new(), Vec::new());
    for figures in by_round.values() {
        levels.extend(figures.iter().map(|(level, _)| *level));
        rounds.push(medians_by_level(figures));
    }
    if has_level_span(&levels) { fit_elasticity(&rounds) } else { None }
}

/// Returns the median of the figures at each level of a round.
fn medians_by_level(figures: &[(f64, f64)]) -> Vec<FigureAtLevel> {
    let mut medians = Vec::new();
    for group in group_by_level(figures.iter().map(|(level, _)| *level)) {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        for index in group {
            let (level, value) = figures[index];
            levels.push(level);
            values.push(value);
        }
        if let (Some(level), Some(figure)) = (median(&levels), median(&values)) {
            medians.push(FigureAtLevel { level, figure, weight: values.len() as f64 });
        }
    }
    medians
}

/// Share of the variance of levels that must be left without any one round: an elasticity that rests
/// on two rounds is known much worse than its error would say.
const MIN_VARIANCE_LEFT: f64 = 0.6;

/// Fits the elasticity by weighted least squares of the logarithms. Figures of one round are not
/// independent: the error is that of leaving out each round in turn (the jackknife of clusters, Bell
/// and McCaffrey 2002, Survey Methodology 28), so that one round with a level of its own does not
/// vouch for itself. Absent below five rounds, where only two rounds have another level, and where a
/// figure or level is not above zero.
pub fn fit_elasticity(rounds: &[Vec<FigureAtLevel>]) -> Option<Elasticity> {
    let mut figures = rounds.iter().flatten();
    let are_sound = figures.all(|point| point.level > 0.0 && point.figure > 0.0);
    if rounds.len() < MIN_ROUNDS || !are_sound {
        return None;
    }
    let mut by_round = Vec::new();
    let mut total = LogSums::default();
    for round in rounds {
        let sums = LogSums::from_round(round);
        total = total.plus(&sums, 1.0);
        by_round.push(sums);
    }
    let value = total.slope()?;
    let mut slopes = Vec::new();
    for sums in &by_round {
        let rest = total.plus(sums, -1.0);
        let is_spread = rest.variance() >= MIN_VARIANCE_LEFT * total.variance();
        slopes.push(rest.slope().filter(|_| is_spread)?);
    }
    let count = rounds.len() as f64;
    let squares = squares_about(&slopes, value);
    let standard_error = (squares * (count - 1.0) / count).sqrt();
    if value.is_finite() && standard_error.is_finite() {
        Some(Elasticity { value, standard_error })
    } else {
        None
    }
}

/// Weighted sums of logarithms, all that a slope needs: of 1, x, y, x x and x y.
#[derive(Clone, Copy, Debug, Default)]
struct LogSums([f64; 5]);

/// Subtracted from the logarithm of each level: sums of squares of small numbers keep their digits.
const USUAL_LOG_LEVEL: f64 = 8.6;

impl LogSums {
    fn from_round(round: &[FigureAtLevel]) -> Self {
        let mut sums = Self::default();
        for point in round {
            let (x, y) = (point.level.ln() - USUAL_LOG_LEVEL, point.figure.ln());
            sums = sums.plus(&Self([1.0, x, y, x * x, x * y]), point.weight);
        }
        sums
    }

    fn plus(self, other: &Self, times: f64) -> Self {
        Self(std::array::from_fn(|index| self.0[index] + times * other.0[index]))
    }

    /// Returns the variance of the levels' logarithms.
    fn variance(&self) -> f64 {
        let [weight, x, _, xx, _] = self.0;
        xx / weight - (x / weight).powi(2)
    }

    fn slope(&self) -> Option<f64> {
        let [weight, x, y, _, xy] = self.0;
        let products = xy / weight - x * y / (weight * weight);
        finite(products / self.variance())
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::student_quantile;

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
