//! By which power a figure goes with a level that is not under control, such as a time with the period of the clock.

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

/// Levels within this share of each other are taken for one: the middle of their figures counts, so that what was
/// interrupted does not.
const SAME: f64 = 0.002;
/// Levels must be so far apart, from the 5th to the 95th percentile: what a level is known to bends the slope of less.
const LEAST_SPAN: f64 = 0.01;
/// Rounds that it takes to say how far it scatters between them.
const FEWEST_ROUNDS: usize = 5;

/// A figure at a level, both above zero, and how many it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtLevel {
    /// The level.
    pub level: f64,
    /// The figure.
    pub figure: f64,
    /// Its weight.
    pub weight: f64,
}

/// The levels of a round that are taken for one, by the numbers of their figures.
pub fn same_level(levels: impl IntoIterator<Item = f64>) -> Vec<Vec<usize>> {
    let mut at_level: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (number, level) in levels.into_iter().enumerate() {
        at_level.entry((level.ln() / SAME).round() as i64).or_default().push(number);
    }
    at_level.into_values().collect()
}

/// Whether levels are so far apart that they tell by which power a figure goes with them.
pub fn tells_power(levels: &[f64]) -> bool {
    let span = || Some(quantile(levels, 0.95)?.ln() - quantile(levels, 0.05)?.ln());
    span().is_some_and(|span| span >= LEAST_SPAN)
}

/// Of figures that come in rounds, each with its level (`(level, figure)`, both above zero): [`elasticity_of`] the medians that
/// each round has at each level. Absent where the level hardly changed.
pub fn elasticity(by_round: &BTreeMap<u32, Vec<(f64, f64)>>) -> Option<Elasticity> {
    let levels: Vec<f64> = by_round.values().flatten().map(|(level, _)| *level).collect();
    let rounds = by_round.values().map(|figures| points(figures));
    tells_power(&levels).then(|| elasticity_of(&rounds.collect::<Vec<_>>())).flatten()
}

/// Of what rounds have at levels: the weighted least squares of its logarithms. What lies within a round is not independent: the
/// error is that between rounds (Liang and Zeger 1986, Biometrika 73). Absent below five rounds, and where something is not
/// above zero.
pub fn elasticity_of(rounds: &[Vec<AtLevel>]) -> Option<Elasticity> {
    let is_sound = |of: &AtLevel| of.level > 0.0 && of.figure > 0.0;
    if rounds.len() < FEWEST_ROUNDS || !rounds.iter().flatten().all(is_sound) {
        return None;
    }
    let logarithm =
        |of: &AtLevel| Point { level: of.level.ln(), figure: of.figure.ln(), weight: of.weight };
    let rounds: Vec<Vec<Point>> =
        rounds.iter().map(|all| all.iter().map(logarithm).collect()).collect();
    let all = || rounds.iter().flatten();
    let weight: f64 = all().map(|of| of.weight).sum();
    let mean =
        |value: fn(&Point) -> f64| all().map(|of| of.weight * value(of)).sum::<f64>() / weight;
    let (x, y) = (mean(|of| of.level), mean(|of| of.figure));
    let squares: f64 = all().map(|of| of.weight * (of.level - x).powi(2)).sum();
    let products: f64 = all().map(|of| of.weight * (of.level - x) * (of.figure - y)).sum();
    let value = products / squares;
    let of_round = |points: &Vec<Point>| {
        let left = |of: &Point| of.figure - y - value * (of.level - x);
        points.iter().map(|of| of.weight * (of.level - x) * left(of)).sum::<f64>()
    };
    let count = rounds.len() as f64;
    let between: f64 = rounds.iter().map(|points| of_round(points).powi(2)).sum();
    let standard_error = (count / (count - 1.0) * between).sqrt() / squares;
    (value.is_finite() && standard_error.is_finite())
        .then_some(Elasticity { value, standard_error })
}

/// The middle of the figures at one level of a round, in logarithms.
struct Point {
    level: f64,
    figure: f64,
    weight: f64,
}

fn points(figures: &[(f64, f64)]) -> Vec<AtLevel> {
    let point = |of: Vec<usize>| {
        let (levels, figures): (Vec<f64>, Vec<f64>) = of.into_iter().map(|at| figures[at]).unzip();
        let weight = figures.len() as f64;
        Some(AtLevel { level: median(&levels)?, figure: median(&figures)?, weight })
    };
    let levels = figures.iter().map(|(level, _)| *level);
    same_level(levels).into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::location::student_quantile;

    /// So many rounds of 40 figures, each at the level and with the factor that `at` gives for its round and place.
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
            let found = elasticity(&rounds(6, |round, place| {
                figure(if (round + place / 20) % 2 == 0 { 5200.0 } else { 5800.0 })
            }));
            let found = found.unwrap();
            assert!((found.value - power).abs() < 1e-9, "{power}: {found:?}");
            assert!(found.standard_error < 1e-9, "{power}: {found:?}");
        }
    }

    #[test]
    fn what_was_interrupted_changes_nothing() {
        let found = elasticity(&rounds(8, |round, place| {
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
            elasticity(&rounds(count, |round, _| {
                let level = 5200.0 * (1.0 + span * f64::from(round % 2));
                (level, level)
            }))
        };
        assert_eq!((of(8, 0.0), of(8, 0.009), of(4, 0.1)), (None, None, None));
        assert!(of(8, 0.011).is_some() && of(5, 0.1).is_some());
        assert_eq!(elasticity(&BTreeMap::new()), None);
        // Of levels that are none.
        let zero = elasticity(&rounds(8, |round, _| (f64::from(round % 2), 1.0)));
        assert_eq!(zero, None);
    }

    /// Rounds scatter by 1 % each, slices by 0.5 %; the clock wanders from round to round.
    #[test]
    fn its_error_is_that_between_rounds() {
        let mut rng = ChaCha8Rng::seed_from_u64(1992);
        let mut normal = move || (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let launches = 400;
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
            let found = elasticity(&figures).unwrap();
            let t = student_quantile(0.95, 18.0).unwrap();
            (found.value - 0.6).abs() <= t * found.standard_error
        });
        let percent = 100 * covered.count() / launches;
        assert!((90..=97).contains(&percent), "{percent} %");
    }
}
