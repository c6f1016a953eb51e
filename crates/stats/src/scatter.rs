//! How much figures scatter: whether that grew, and how groups of them scatter about each other.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use statrs::function::gamma::digamma;

use crate::location::{SampleSummary, median, normal_quantile};

/// A ratio of two scatters and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Growth")]
pub struct ScatterGrowth {
    /// Scatter after / scatter before.
    pub ratio: f64,
    /// Lower end of the interval for the true ratio.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage.
    pub confidence: f64,
}

impl ScatterGrowth {
    /// How much the standard deviation grew from `before` to `after`: the ratio r with the interval
    /// r / sqrt(F(1 - a/2; n - 1, m - 1)) to r sqrt(F(1 - a/2; m - 1, n - 1)), n figures after and
    /// m before, a = 1 - confidence (the F interval for a ratio of variances, its root taken). With
    /// as many figures before as after the half-widths of the means' intervals have the same ratio.
    /// Absent if a scatter is zero: then nothing is known of it.
    pub fn between(before: &SampleSummary, after: &SampleSummary, confidence: f64) -> Option<Self> {
        let ratio = after.deviation / before.deviation;
        let down = f_quantile(confidence, after.freedom(), before.freedom())?.sqrt();
        let up = f_quantile(confidence, before.freedom(), after.freedom())?.sqrt();
        let sound = ratio.is_finite() && ratio > 0.0;
        sound.then_some(Self { ratio, low: ratio / down, high: ratio * up, confidence })
    }

    /// Whether the interval excludes 1, no change.
    pub fn is_resolved(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// The upper quantile of F that, with its counterpart below, leaves `confidence` between them.
fn f_quantile(confidence: f64, above: f64, below: f64) -> Option<f64> {
    let sound = confidence > 0.0 && confidence < 1.0 && above >= 1.0 && below >= 1.0;
    let distribution = sound.then(|| FisherSnedecor::new(above, below).ok()).flatten()?;
    let quantile = distribution.inverse_cdf(0.5 + confidence / 2.0);
    (quantile.is_finite() && quantile > 0.0).then_some(quantile)
}

/// The growth of several scatters together, on the logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub struct PooledGrowth {
    /// ln of the ratio of scatters, mean over the pairs.
    log: f64,
    /// Variance of that mean.
    variance: f64,
}

impl PooledGrowth {
    /// Mean of the log ratios of scatters of (before, after) pairs. The logarithm of a sample
    /// variance with f degrees of freedom is off by digamma(f/2) - ln(f/2) and varies by
    /// trigamma(f/2) (Bartlett and Kendall 1946), and is close to normal; pairs may scatter
    /// differently, and grow differently. Absent without a pair, or if a scatter is zero.
    pub fn from_pairs(pairs: &[(SampleSummary, SampleSummary)]) -> Option<Self> {
        let count = pairs.len() as f64;
        let spread = |s: &SampleSummary| trigamma(s.freedom() / 2.0) / 4.0;
        let log: f64 =
            pairs.iter().map(|(a, b)| (log_deviation(b) - log_deviation(a)) / count).sum();
        let spreads: f64 = pairs.iter().map(|(before, after)| spread(before) + spread(after)).sum();
        let variance = spreads / (count * count);
        let sound = !pairs.is_empty() && log.is_finite() && variance.is_finite();
        sound.then_some(Self { log, variance })
    }

    /// This growth over another that was measured independently.
    pub fn over(self, other: Self) -> Self {
        Self { log: self.log - other.log, variance: self.variance + other.variance }
    }

    /// The ratio of scatters with its interval. Absent for a confidence outside 0 to 1.
    pub fn growth(self, confidence: f64) -> Option<ScatterGrowth> {
        let half = normal_quantile(confidence)? * self.variance.sqrt();
        let [ratio, low, high] = [0.0, -half, half].map(|off| (self.log + off).exp());
        Some(ScatterGrowth { ratio, low, high, confidence })
    }
}

/// Unbiased estimate of the logarithm of the standard deviation.
fn log_deviation(summary: &SampleSummary) -> f64 {
    let half = summary.freedom() / 2.0;
    summary.deviation.ln() - (digamma(half) - half.ln()) / 2.0
}

/// The derivative of digamma, by recurrence to where its asymptotic series holds (Abramowitz and
/// Stegun 1964, 6.4.6 and 6.4.12). `x` above 0; infinite otherwise.
fn trigamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::INFINITY;
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    sum + 1.0 / x
        + inverse / 2.0
        + inverse / x * (1.0 / 6.0 - inverse * (1.0 / 30.0 - inverse / 42.0))
}

/// Ways to swap that are tried.
const WAYS: usize = 2000;

/// Which ways: the answer must not change from reading to reading.
const SEED: u64 = 2007;

/// How often swapped labels give as much by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Permutation {
    /// Share of the ways that give as much growth or more.
    pub up: f64,
    /// Share of the ways that give as little or less.
    pub down: f64,
}

impl Permutation {
    /// Whether so much growth is more than chance, at the upper end of an interval of this
    /// confidence.
    pub fn grew(&self, confidence: f64) -> bool {
        self.up <= (1.0 - confidence) / 2.0
    }

    /// Whether so little is.
    pub fn shrank(&self, confidence: f64) -> bool {
        self.down <= (1.0 - confidence) / 2.0
    }

    /// Whether a scatter grew, without taking the figures for normal: labels swapped within rounds.
    /// The F interval does take them so (Box 1953, Biometrika 40): with one outlier in twenty it
    /// calls a growth that is none in 20 % of trials a direction.
    ///
    /// Of (before, after) figures by round, a series each: both are set on their median, the
    /// statistic is the sum over the series of ln(mean |after| / mean |before|) (Brown and Forsythe
    /// 1974, J. Am. Stat. Assoc. 69), and in each way of swapping each round of each series changes
    /// its labels or keeps them. Absent without two rounds in each series, or if a scatter is zero.
    pub fn test(series: &[Vec<(f64, f64)>]) -> Option<Self> {
        let distances: Vec<Vec<(f64, f64)>> =
            series.iter().map(|rounds| around(rounds)).collect::<Option<_>>()?;
        let found = statistic(&distances, || false);
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let ways: Vec<f64> = (0..WAYS).map(|_| statistic(&distances, || random.random())).collect();
        let share = |is: &dyn Fn(f64) -> bool| {
            (1 + ways.iter().filter(|by_chance| is(**by_chance)).count()) as f64 / (WAYS + 1) as f64
        };
        // Rounded sums of the same distances are the same.
        let (up, down) = (share(&|way| way >= found - 1e-9), share(&|way| way <= found + 1e-9));
        (!series.is_empty() && found.is_finite()).then_some(Self { up, down })
    }
}

/// Distances from the medians.
fn around(rounds: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let of = |pick: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(pick).collect::<Vec<f64>>());
    let (before, after) = (of(|pair| pair.0)?, of(|pair| pair.1)?);
    let distances = rounds.iter().map(|pair| ((pair.0 - before).abs(), (pair.1 - after).abs()));
    (rounds.len() >= 2).then(|| distances.collect())
}

fn statistic(series: &[Vec<(f64, f64)>], mut swapped: impl FnMut() -> bool) -> f64 {
    let of_one = |rounds: &Vec<(f64, f64)>| {
        let labelled = rounds.iter().map(|&(a, b)| if swapped() { (b, a) } else { (a, b) });
        let (before, after) =
            labelled.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (after / before).ln()
    };
    series.iter().map(of_one).sum()
}

/// Groups from which their scatter is taken from them.
const FEWEST_GROUPS: usize = 5;

/// A figure of one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupEstimate {
    /// The figure.
    pub value: f64,
    /// Its standard error within the group.
    pub standard_error: f64,
}

/// Relative standard deviation between groups, tau (Paule and Mandel 1982, J. Res. NBS 87): the
/// scatter that makes the weighted squares about their mean as large as their number less one. 0
/// where groups scatter less than their own errors say. Absent below five groups, or with a median
/// that is not above zero.
pub fn scatter_between_groups(groups: &[GroupEstimate]) -> Option<f64> {
    let is_sound = |g: &&GroupEstimate| {
        g.value.is_finite() && g.standard_error > 0.0 && g.standard_error.is_finite()
    };
    let sound = || groups.iter().filter(is_sound);
    let middle = median(&sound().map(|g| g.value).collect::<Vec<_>>()).filter(|m| *m > 0.0)?;
    let relative: Vec<(f64, f64)> =
        sound().map(|g| (g.value / middle, (g.standard_error / middle).powi(2))).collect();
    if relative.len() < FEWEST_GROUPS {
        return None;
    }
    let excess = |tau2: f64| {
        let weight = |variance: f64| 1.0 / (variance + tau2);
        let total: f64 = relative.iter().map(|(_, v)| weight(*v)).sum();
        let mean = relative.iter().map(|(x, v)| weight(*v) * x).sum::<f64>() / total;
        let squares: f64 = relative.iter().map(|(x, v)| weight(*v) * (x - mean).powi(2)).sum();
        squares - (relative.len() - 1) as f64
    };
    if excess(0.0) <= 0.0 {
        return Some(0.0);
    }
    // Falling in tau2, and below zero once tau2 is above all squares together.
    let (mut low, mut high) = (0.0, 1.0);
    while excess(high) > 0.0 && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        *if excess(middle) > 0.0 { &mut low } else { &mut high } = middle;
    }
    Some(high.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_f_table() {
        // The same handbook, table 1.3.6.7.3: upper 5 % points of F.
        for (above, below, f) in
            [(5.0, 5.0, 5.050), (1.0, 5.0, 6.608), (10.0, 5.0, 4.735), (5.0, 10.0, 3.326)]
        {
            let ours = f_quantile(0.90, above, below).unwrap();
            assert!((ours - f).abs() < 5.1e-4, "{above}, {below}: {ours} is not {f}");
        }
    }

    #[test]
    fn trigamma_of_the_tables() {
        // Abramowitz and Stegun 1964: pi^2/6 at 1, pi^2/2 at 1/2, pi^2/2 - 40/9 at 5/2.
        let square = std::f64::consts::PI.powi(2);
        for (x, expected) in
            [(1.0, square / 6.0), (0.5, square / 2.0), (2.5, square / 2.0 - 40.0 / 9.0)]
        {
            assert!((trigamma(x) - expected).abs() < 1e-9, "{x}: {}", trigamma(x));
        }
        assert_eq!(trigamma(0.0), f64::INFINITY);
    }

    /// For one pair the exact answer is known: the interval from F (5 and 5 degrees).
    #[test]
    fn one_pair_has_nearly_the_interval_from_f() {
        let of = |deviation: f64| SampleSummary { mean: 1.0, deviation, count: 6 };
        let ours = PooledGrowth::from_pairs(&[(of(1.0), of(3.0))]).unwrap().growth(0.9).unwrap();
        let exact = ScatterGrowth::between(&of(1.0), &of(3.0), 0.9).unwrap();
        assert!((ours.ratio - exact.ratio).abs() < 1e-12);
        assert!((ours.low / exact.low - 1.0).abs() < 0.02, "{ours:?} {exact:?}");
        assert!((ours.high / exact.high - 1.0).abs() < 0.02, "{ours:?} {exact:?}");
    }

    /// One series, three rounds: the medians are 10 and 20, the distances 0, 1, 2 and 0, 10, 20.
    /// Of the 8 ways those that move more than the round of zeros give less growth: 2 of 8 as much.
    #[test]
    fn known_answer_of_all_ways() {
        let times = vec![(10.0, 20.0), (11.0, 30.0), (8.0, 0.0)];
        let found = Permutation::test(&[times]).unwrap();
        assert!((found.up - 0.25).abs() < 0.03, "{found:?}");
        assert!((found.down - 1.0).abs() < 1e-12, "{found:?}");
        assert!(!found.grew(0.9) && !found.shrank(0.9));
    }

    #[test]
    fn nothing_is_told_without_rounds_or_scatter() {
        assert_eq!(Permutation::test(&[]), None);
        assert_eq!(Permutation::test(&[vec![(1.0, 2.0)]]), None);
        assert_eq!(Permutation::test(&[vec![(1.0, 2.0), (1.0, 2.0)]]), None);
        assert_eq!(Permutation::test(&[vec![(1.0, 2.0), (f64::NAN, 2.0), (3.0, 3.0)]]), None);
    }

    /// Paule and Mandel's own way, checked by its definition: the weighted squares are the number
    /// less one.
    #[test]
    fn the_scatter_between_groups() {
        let group = |value: f64| GroupEstimate { value, standard_error: 4.0 };
        let values = [990.0, 1020.0, 1000.0, 985.0, 1012.0, 1003.0];
        let groups: Vec<GroupEstimate> = values.map(group).to_vec();
        let tau = scatter_between_groups(&groups).unwrap();
        // With equal errors tau^2 is the variance of the values less that of the errors.
        let mean: f64 = values.iter().sum::<f64>() / 6.0;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 5.0;
        let middle = 1001.5;
        assert!((tau - (variance - 16.0).sqrt() / middle).abs() < 1e-6, "{tau}");
        let quiet: Vec<GroupEstimate> = [1000.0, 1001.0, 999.0, 1000.5, 999.5].map(group).to_vec();
        assert_eq!(scatter_between_groups(&quiet), Some(0.0));
        assert_eq!(scatter_between_groups(&groups[..4]), None);
        assert_eq!(
            scatter_between_groups(&[GroupEstimate { value: -1.0, standard_error: 1.0 }; 6]),
            None
        );
    }
}
