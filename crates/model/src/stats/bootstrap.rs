//! Intervals by resampling on two levels: rounds (fresh workers) and samples within a round.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::location::{Center, sorted_quantile};

/// Resamples behind every interval: the quantiles in use are then stable to about a tenth of the
/// interval's half-width.
pub const RESAMPLES: usize = 2000;

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage: 0.95 is 95 %.
    pub confidence: f64,
}

impl Interval {
    /// Whether zero lies inside: the difference is then not resolved.
    pub fn includes_zero(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }

    /// Half of the width, in the unit of the estimate.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Rounds whose figure can be computed, and computed again from resampled samples. A figure made
/// of two cases (a paired difference) resamples both within the same round.
pub trait Rounds {
    /// Number of rounds.
    fn len(&self) -> usize;

    /// Whether there is no round at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The figure of round `round` from all its samples.
    fn figure(&self, round: usize) -> f64;

    /// The figure of round `round` from as many samples drawn from it with replacement.
    fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64;
}

/// One figure a round. A sample of trials holds hundreds of them, whose scatter the scatter between
/// rounds already carries: there is no second level to resample.
pub struct OnePerRound(pub Vec<f64>);

impl Rounds for OnePerRound {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn figure(&self, round: usize) -> f64 {
        self.0[round]
    }
    fn resampled(&self, round: usize, _: &mut dyn Rng) -> f64 {
        self.0[round]
    }
}

/// Interval for the middle of the rounds' figures. Absent below two rounds.
///
/// Rounds are drawn with replacement, then the samples within each drawn round. The figures of
/// rounds are independent and already carry the scatter of their own samples, so a full second
/// draw would count that scatter twice (Davison and Hinkley 1997, section 3.8): the second level
/// is damped by 1/rounds, which keeps its use, smoothing, and lets its excess vanish. The
/// percentiles are widened for few rounds so that a mean's interval has Student's width
/// (Hesterberg 2015, "expanded percentile").
pub fn hierarchical_interval(
    rounds: &dyn Rounds,
    center: Center,
    confidence: f64,
    seed: u64,
) -> Option<Interval> {
    resampled_interval(rounds, center, confidence, seed, RESAMPLES)
}

fn resampled_interval(
    rounds: &dyn Rounds,
    center: Center,
    confidence: f64,
    seed: u64,
    resamples: usize,
) -> Option<Interval> {
    let count = rounds.len();
    let mut middles = resampled_middles(rounds, center, seed, resamples)?;
    middles.sort_by(f64::total_cmp);
    let tail = expanded_tail(count, center, confidence)?;
    let low = sorted_quantile(&middles, tail)?;
    let high = sorted_quantile(&middles, 1.0 - tail)?;
    Some(Interval { low, high, confidence })
}

/// The middles of so many resamples on both levels, in the order in which they were drawn. Absent
/// below two rounds.
pub(crate) fn resampled_middles(
    rounds: &dyn Rounds,
    center: Center,
    seed: u64,
    resamples: usize,
) -> Option<Vec<f64>> {
    let count = rounds.len();
    if count < 2 {
        return None;
    }
    let figures: Vec<f64> = (0..count).map(|round| rounds.figure(round)).collect();
    let damping = 1.0 / count as f64;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = vec![0.0; count];
    let mut middles = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for value in &mut drawn {
            let round = rng.random_range(0..count);
            let again = rounds.resampled(round, &mut rng);
            *value = figures[round] + damping * (again - figures[round]);
        }
        middles.push(center.of(&drawn)?);
    }
    Some(middles)
}

/// The percentile at which a bootstrap of `count` units must be cut so that a mean's interval is
/// as wide as Student's: Phi(-sqrt(n / (n - 1)) * t). The root mends that a resampled mean scatters
/// by the variance with denominator n; a resampled median does not, so it goes without.
fn expanded_tail(count: usize, center: Center, confidence: f64) -> Option<f64> {
    let n = count as f64;
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let t = student.inverse_cdf(1.0 - (1.0 - confidence) / 2.0);
    let deflated = match center {
        Center::Mean | Center::Midmean => (n / (n - 1.0)).sqrt(),
        Center::Median => 1.0,
    };
    Some(Normal::standard().cdf(-deflated * t))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::median;
    use rand::RngExt;

    /// Rounds of plain figures, the round's figure being the median of its samples.
    struct Plain(Vec<Vec<f64>>);

    impl Rounds for Plain {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn figure(&self, round: usize) -> f64 {
            median(&self.0[round]).unwrap()
        }
        fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64 {
            let from = &self.0[round];
            let drawn: Vec<f64> =
                from.iter().map(|_| from[rng.random_range(0..from.len())]).collect();
            median(&drawn).unwrap()
        }
    }

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        let u: f64 = rng.random_range(1e-12..1.0);
        Normal::standard().inverse_cdf(u)
    }

    fn simulated(rng: &mut ChaCha8Rng, rounds: usize, between: f64, within: f64) -> Plain {
        let one_round = |rng: &mut ChaCha8Rng| {
            let level = between * normal(rng);
            (0..3).map(|_| level + within * normal(rng)).collect()
        };
        Plain((0..rounds).map(|_| one_round(rng)).collect())
    }

    fn coverage_percent(center: Center, rounds: usize, between: f64, within: f64) -> f64 {
        const TRIALS: u64 = 2000;
        let covered = (0..TRIALS).filter(|trial| {
            let mut rng = ChaCha8Rng::seed_from_u64(1992 + trial);
            let data = simulated(&mut rng, rounds, between, within);
            let interval = resampled_interval(&data, center, 0.95, *trial, 400).unwrap();
            interval.includes_zero()
        });
        100.0 * covered.count() as f64 / TRIALS as f64
    }

    /// The promise behind every printed interval: nominal 95 % covers 93 to 97 %, whether the
    /// scatter lies between rounds, within them, or in both.
    #[test]
    fn nominal_95_percent_covers_93_to_97() {
        for (center, rounds, between, within) in [
            (Center::Median, 5, 1.0, 0.3),
            (Center::Median, 8, 1.0, 0.3),
            (Center::Median, 12, 1.0, 0.3),
            (Center::Median, 20, 1.0, 1.0),
            (Center::Median, 20, 0.0, 1.0),
            (Center::Mean, 12, 1.0, 0.3),
            (Center::Mean, 12, 1.0, 1.0),
        ] {
            let covered = coverage_percent(center, rounds, between, within);
            println!("{center:?} {rounds} rounds, {between}/{within}: {covered:.1} %");
            assert!(
                (93.0..=97.0).contains(&covered),
                "{center:?}, {rounds} rounds, between {between}, within {within}: {covered:.1} %"
            );
        }
    }

    /// What looking costs: a run that stops at the first look at which its interval is narrow enough
    /// stops a little too readily. The loss is bounded here and told in docs/method.md.
    #[test]
    fn looking_costs_few_points_of_coverage() {
        const TRIALS: u64 = 1000;
        const LOOKS: [usize; 5] = [5, 8, 12, 18, 27];
        for scatter in [0.007, 0.01, 0.02] {
            let covered = (0..TRIALS).filter(|trial| {
                let mut rng = ChaCha8Rng::seed_from_u64(2007 + trial);
                let Plain(rounds) = simulated(&mut rng, 27, scatter, 0.3 * scatter);
                let at = |look: usize| {
                    let seen = Plain(rounds[..look].to_vec());
                    resampled_interval(&seen, Center::Median, 0.95, *trial, 400).unwrap()
                };
                // Figures around zero stand for figures around one: 1 % is 0.01.
                let narrow = LOOKS.into_iter().map(at).find(|i| i.half_width() <= 0.01);
                narrow.unwrap_or_else(|| at(27)).includes_zero()
            });
            let covered = 100.0 * covered.count() as f64 / TRIALS as f64;
            println!("scatter {scatter}: {covered:.1} %");
            assert!((90.0..=98.0).contains(&covered), "scatter {scatter}: {covered:.1} %");
        }
    }

    #[test]
    fn known_answer_of_the_expanded_tail() {
        // t(0.975; 4) = 2.776 (any table of Student's t): Phi(-sqrt(5/4) * 2.776) = 0.000955.
        let tail = expanded_tail(5, Center::Mean, 0.95).unwrap();
        assert!((tail - 0.000955).abs() < 5e-6, "{tail}");
        // With many rounds nothing is left of the correction.
        assert!((expanded_tail(100_000, Center::Median, 0.95).unwrap() - 0.025).abs() < 1e-4);
    }

    #[test]
    fn a_mean_has_students_interval() {
        // Student's own sleep data (1908), drug 2 minus drug 1: mean 1.58, t interval 0.70 to 2.46.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let data = Plain(differences.iter().map(|d| vec![*d]).collect());
        let interval = hierarchical_interval(&data, Center::Mean, 0.95, 1).unwrap();
        // Skewed data: the bootstrap follows the skew, so the ends lie near Student's, not on them.
        assert!((interval.low - 0.70).abs() < 0.25, "{interval:?}");
        assert!((interval.high - 2.46).abs() < 0.35, "{interval:?}");
    }

    #[test]
    fn the_seed_fixes_the_interval_and_one_round_has_none() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let data = simulated(&mut rng, 8, 1.0, 1.0);
        let again = |seed| hierarchical_interval(&data, Center::Median, 0.95, seed);
        assert_eq!(again(3), again(3));
        assert_ne!(again(3), again(4));
        assert_eq!(hierarchical_interval(&Plain(vec![vec![1.0]]), Center::Mean, 0.95, 1), None);
    }
}
