//! Scatter of figures: whether it grew, and how far groups of figures scatter about each other.
//!
//! *Between launches.* Each launch of a program lays out its memory anew, so that launches differ by
//! more than their own errors say. Six launches of 1000 ns or so, each known to 4 ns, have a
//! standard deviation of 13 ns: sqrt(13^2 - 4^2) = 12 ns of it, 1.2 %, are tau, the scatter between
//! launches ([`scatter_between_groups`]). An interval that is to hold for the next launch contains
//! tau; the error of one launch alone, 4 ns, does not.
//!
//! *Growth.* Six figures with a deviation of 1 ns before a change and six with 3 ns after grew by 3,
//! but deviations of six figures scatter themselves: the 90 % interval is 1.3 to 6.7 where figures
//! are normal ([`ScatterGrowth`]). Where they are not, labels before and after are swapped at random
//! and the growth by chance is counted ([`Permutation`]).

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distributions::{digamma, f_quantile, normal_quantile};
use crate::location::{SampleSummary, median};

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
    /// Returns the growth of the standard deviation from `before` to `after`: the ratio r with the
    /// interval r / sqrt(F(1 - a/2; n - 1, m - 1)) to r sqrt(F(1 - a/2; m - 1, n - 1)), n figures
    /// after and m before, a = 1 - confidence (the F interval for a ratio of variances, its root
    /// taken). With as many figures before as after the half-widths of the means' intervals have the
    /// same ratio. Absent if a scatter is zero.
    pub fn between(before: &SampleSummary, after: &SampleSummary, confidence: f64) -> Option<Self> {
        let ratio = after.deviation / before.deviation;
        let down = f_quantile(confidence, after.freedom(), before.freedom())?.sqrt();
        let up = f_quantile(confidence, before.freedom(), after.freedom())?.sqrt();
        if ratio.is_finite() && ratio > 0.0 {
            Some(Self { ratio, low: ratio / down, high: ratio * up, confidence })
        } else {
            None
        }
    }

    /// Returns whether the interval excludes 1, no change.
    pub fn is_resolved(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
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
    /// Returns the mean of the log ratios of scatters of (before, after) pairs. The logarithm of a
    /// sample variance with f degrees of freedom is off by digamma(f/2) - ln(f/2) and varies by
    /// trigamma(f/2) (Bartlett and Kendall 1946), and is close to normal; pairs may scatter
    /// differently, and grow differently. Absent without a pair, or if a scatter is zero.
    pub fn from_pairs(pairs: &[(SampleSummary, SampleSummary)]) -> Option<Self> {
        let count = pairs.len() as f64;
        let (mut log, mut variances) = (0.0, 0.0);
        for (before, after) in pairs {
            log += (log_deviation(after) - log_deviation(before)) / count;
            variances += log_variance(before) + log_variance(after);
        }
        let variance = variances / (count * count);
        if !pairs.is_empty() && log.is_finite() && variance.is_finite() {
            Some(Self { log, variance })
        } else {
            None
        }
    }

    /// Divides this growth by another that was measured independently.
    pub fn over(self, other: Self) -> Self {
        Self { log: self.log - other.log, variance: self.variance + other.variance }
    }

    /// Returns the ratio of scatters with its interval. Absent for a confidence outside 0 to 1.
    pub fn growth(self, confidence: f64) -> Option<ScatterGrowth> {
        let half = normal_quantile(confidence)? * self.variance.sqrt();
        let (low, high) = ((self.log - half).exp(), (self.log + half).exp());
        Some(ScatterGrowth { ratio: self.log.exp(), low, high, confidence })
    }
}

/// Returns the unbiased estimate of the logarithm of the standard deviation.
fn log_deviation(summary: &SampleSummary) -> f64 {
    let half = summary.freedom() / 2.0;
    summary.deviation.ln() - (digamma(half) - half.ln()) / 2.0
}

/// Returns the variance of the logarithm of the standard deviation.
fn log_variance(summary: &SampleSummary) -> f64 {
    trigamma(summary.freedom() / 2.0) / 4.0
}

/// Returns the derivative of digamma, by recurrence to where its asymptotic series holds (Abramowitz
/// and Stegun 1964, 6.4.6 and 6.4.12). `x` above 0; infinite otherwise.
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

/// Number of random ways to swap labels that are tried.
const SWAPS: usize = 2000;

/// Seed of the swaps: the answer must not change from reading to reading.
const SEED: u64 = 2007;

/// Distance within which two sums of the same distances are equal to rounding.
const ROUNDING: f64 = 1e-9;

/// How often swapped labels give as much by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Permutation {
    /// Share of the ways that give as much growth or more.
    pub up: f64,
    /// Share of the ways that give as little or less.
    pub down: f64,
}

impl Permutation {
    /// Returns whether the scatter grew by more than chance would do, at the upper end of an
    /// interval of this confidence.
    pub fn grew(&self, confidence: f64) -> bool {
        self.up <= (1.0 - confidence) / 2.0
    }

    /// Returns whether the scatter shrank by more than chance would do, at the lower end of an
    /// interval of this confidence.
    pub fn shrank(&self, confidence: f64) -> bool {
        self.down <= (1.0 - confidence) / 2.0
    }

    /// Tests whether a scatter grew, without taking the figures for normal: labels are swapped
    /// within rounds. The F interval does take them so (Box 1953, Biometrika 40): with one outlier
    /// in twenty it calls a growth that is none in 20 % of trials a direction.
    ///
    /// `series` has (before, after) figures by round. Both sides of each series are set on their
    /// median; the statistic is the sum over the series of ln(mean |after| / mean |before|) (Brown
    /// and Forsythe 1974, J. Am. Stat. Assoc. 69); in each way of swapping each round of each series
    /// changes its labels or keeps them. Absent without two rounds in each series, or if a scatter
    /// is zero.
    pub fn test(series: &[Vec<(f64, f64)>]) -> Option<Self> {
        let mut distances = Vec::new();
        for rounds in series {
            distances.push(distances_from_medians(rounds)?);
        }
        let found = log_growth(&distances, || false);
        if series.is_empty() || !found.is_finite() {
            return None;
        }
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        // The labels as they are count as one of the ways.
        let (mut up, mut down) = (1, 1);
        for _ in 0..SWAPS {
            let by_chance = log_growth(&distances, || random.random());
            up += u32::from(by_chance >= found - ROUNDING);
            down += u32::from(by_chance <= found + ROUNDING);
        }
        let ways = (SWAPS + 1) as f64;
        Some(Self { up: f64::from(up) / ways, down: f64::from(down) / ways })
    }
}

/// Returns the absolute distances of both sides from their medians, by round. Absent below two
/// rounds.
fn distances_from_medians(rounds: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let (before, after): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
    let (before, after) = (median(&before)?, median(&after)?);
    if rounds.len() < 2 {
        return None;
    }
    let mut distances = Vec::new();
    for pair in rounds {
        distances.push(((pair.0 - before).abs(), (pair.1 - after).abs()));
    }
    Some(distances)
}

/// Returns the sum of ln(mean after / mean before) over the series; `is_swapped` is asked for each
/// round.
fn log_growth(series: &[Vec<(f64, f64)>], mut is_swapped: impl FnMut() -> bool) -> f64 {
    let mut growth = 0.0;
    for rounds in series {
        let (mut before, mut after) = (0.0, 0.0);
        for pair in rounds {
            let (first, second) = if is_swapped() { (pair.1, pair.0) } else { *pair };
            before += first;
            after += second;
        }
        growth += (after / before).ln();
    }
    growth
}

/// Fewest groups that show the scatter between groups.
const MIN_GROUPS: usize = 5;

/// A figure of one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupEstimate {
    /// The figure.
    pub value: f64,
    /// Standard error of the figure within the group.
    pub standard_error: f64,
}

/// Returns the relative standard deviation between groups, tau (Paule and Mandel 1982, J. Res. NBS
/// 87): the scatter that makes the weighted squares about their mean as large as their number less
/// one. 0 where groups scatter less than their own errors say. Absent below five groups, or with a
/// median that is not above zero.
pub fn scatter_between_groups(groups: &[GroupEstimate]) -> Option<f64> {
    let mut sound = groups.to_vec();
    sound.retain(|group| {
        let error = group.standard_error;
        group.value.is_finite() && error > 0.0 && error.is_finite()
    });
    let values: Vec<f64> = sound.iter().map(|group| group.value).collect();
    let middle = median(&values)?;
    if sound.len() < MIN_GROUPS || middle <= 0.0 {
        return None;
    }
    for group in &mut sound {
        group.value /= middle;
        group.standard_error /= middle;
    }
    if excess_squares(&sound, 0.0) <= 0.0 {
        return Some(0.0);
    }
    // The excess falls in tau^2, and is below zero once tau^2 is above all squares together.
    let (mut low, mut high) = (0.0, 1.0);
    while excess_squares(&sound, high) > 0.0 && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        *if excess_squares(&sound, middle) > 0.0 { &mut low } else { &mut high } = middle;
    }
    Some(high.sqrt())
}

/// Returns by how much the weighted squares about the weighted mean exceed the number of groups less
/// one, where tau^2 is added to the variance of each group.
fn excess_squares(groups: &[GroupEstimate], tau2: f64) -> f64 {
    let (mut total, mut weighted) = (0.0, 0.0);
    for group in groups {
        let weight = 1.0 / (group.standard_error.powi(2) + tau2);
        total += weight;
        weighted += weight * group.value;
    }
    let mean = weighted / total;
    let mut squares = 0.0;
    for group in groups {
        let weight = 1.0 / (group.standard_error.powi(2) + tau2);
        squares += weight * (group.value - mean).powi(2);
    }
    squares - (groups.len() - 1) as f64
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
