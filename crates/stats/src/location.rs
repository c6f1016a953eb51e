//! Location and spread of a list of figures; intervals that their order alone gives, and for means
//! of a handful that are taken to be normal (Student 1908).
//!
//! Five figures, 12.1, 12.2, 12.3, 12.4 and 19.8 us, the last one interrupted:
//!
//! - mean 13.8, standard deviation 3.4: the one far off decides both;
//! - median 12.3, midmean 12.3 (the mean of 12.2 to 12.4): it hardly counts;
//! - robust deviation 0.15: the median of the distances from 12.3, which are 0.2, 0.1, 0, 0.1 and
//!   7.5, is 0.1; times 1.4826 it is the standard deviation that normal figures with such distances
//!   have;
//! - quantile 0.9: at rank 0.9 x 4 = 3.6 from the least, so 12.4 + 0.6 x (19.8 - 12.4) = 16.8.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distributions::{binomial_quantile, student_quantile};

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
    /// Returns whether zero lies inside: the difference is then not resolved.
    pub fn includes_zero(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }

    /// Returns half of the width, in the unit of the estimate.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Which middle is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Center {
    /// Half of the figures lie on each side.
    Median,
    /// The arithmetic mean.
    Mean,
    /// The mean of the middle half: of what is left when a quarter is cut off at each end.
    Midmean,
}

impl Center {
    /// Returns the middle of `values`; absent for an empty list.
    pub fn compute(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Median => median(values),
            Self::Mean => mean(values),
            Self::Midmean => midmean(values),
        }
    }
}

/// Returns the arithmetic mean; absent for an empty list.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the value if it is finite.
pub(crate) fn finite(value: f64) -> Option<f64> {
    if value.is_finite() { Some(value) } else { None }
}

/// Returns the sum of the squared distances from `middle`.
pub(crate) fn squares_about(values: &[f64], middle: f64) -> f64 {
    values.iter().map(|value| (value - middle) * (value - middle)).sum()
}

/// Returns how many of `count` figures are cut off at each end for a [`midmean`].
pub(crate) fn midmean_cut(count: usize) -> usize {
    count / 4
}

/// Returns the mean of the middle half (interquartile mean): nearly as indifferent to a few far off
/// as the median, and for normal figures known a fifth better. Absent for an empty list.
pub fn midmean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = midmean_cut(sorted.len());
    mean(&sorted[cut..sorted.len() - cut])
}

/// Returns the median of `(value, weight)`: half of the weight lies on each side. Absent without
/// weight.
pub fn weighted_median(values: &[(f64, f64)]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = sorted.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for (index, (value, weight)) in sorted.iter().enumerate() {
        below += weight;
        if below > half {
            return Some(*value);
        }
        if below == half && half > 0.0 {
            let (next, _) = sorted.get(index + 1).unwrap_or(&sorted[index]);
            return Some(value + (next - value) / 2.0);
        }
    }
    None
}

/// Returns the median, the mean of the two middle figures for an even count; absent for an empty
/// list.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the quantile `p` (0 to 1) by linear interpolation between order statistics: type 7 of Hyndman and
/// Fan (1996), the default of R and NumPy. Absent for an empty list.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let place = p.clamp(0.0, 1.0) * values.len().checked_sub(1)? as f64;
    let below = place.floor() as usize;
    // In linear time: resampling asks thousands of times.
    let mut values = values.to_vec();
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*low);
    Some(*low + (place - place.floor()) * (high - *low))
}

/// Standard deviation of normal figures over their median absolute deviation.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Returns the spread as the median absolute deviation times 1.4826, which estimates the standard
/// deviation of normal figures and ignores outliers (Rousseeuw and Croux 1993). Absent below two
/// figures: one figure has no spread, not a spread of zero.
pub fn mad_sigma(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(MAD_TO_SIGMA * median(&deviations)?)
}

/// Returns the ranks, from 1, of the lower end of the interval of the quantile `p` of `count`
/// values, of the quantile itself, and of the upper end: any distribution has its quantile between
/// both ends with at least `confidence` (Conover 1999, Practical Nonparametric Statistics, section
/// 3.2; values independent). None where the upper end would lie beyond the greatest value, or the
/// lower below the least: there are too few values.
///
/// The median of 10 values lies between the 2nd and the 9th with 97.9 %: each value lies below the
/// median with even odds, so the number below it is at most 1, or at least 9, as rarely as coins.
pub fn quantile_ranks(count: u64, p: f64, confidence: f64) -> Option<[u64; 3]> {
    let tail = (1.0 - confidence) / 2.0;
    let low = binomial_quantile(tail, count, p)?;
    let high = binomial_quantile(1.0 - tail, count, p)? + 1;
    let middle = ((p * count as f64).ceil() as u64).max(1);
    if low >= 1 && high <= count && tail > 0.0 { Some([low, middle, high]) } else { None }
}

/// Returns the interval for the median of independent figures from their order alone
/// ([`quantile_ranks`]).
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let [low, _, high] = quantile_ranks(values.len() as u64, 0.5, confidence)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[low as usize - 1], sorted[high as usize - 1]);
    Some(Interval { low, high, confidence })
}

/// Mean and scatter of at least two figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Summary")]
pub struct SampleSummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation, with n - 1 below the squares.
    pub deviation: f64,
    /// Number of figures.
    pub count: u32,
}

impl SampleSummary {
    /// Summarises `values`. Absent below two figures, as one has no scatter, and if a figure is not
    /// finite or the squares overflow.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let squares = squares_about(values, mean);
        // One figure gives 0 / 0, which is not finite.
        let deviation = (squares / (values.len() - 1) as f64).sqrt();
        let count = u32::try_from(values.len()).ok()?;
        if deviation.is_finite() { Some(Self { mean, deviation, count }) } else { None }
    }

    /// Returns the degrees of freedom of the scatter.
    pub fn freedom(&self) -> f64 {
        f64::from(self.count.saturating_sub(1))
    }

    /// Returns the squared standard error of the mean.
    fn squared_error(&self) -> f64 {
        self.deviation * self.deviation / f64::from(self.count)
    }

    /// Returns Student's interval for the mean, with the half-width t(1 - (1 - confidence) / 2; n -
    /// 1) s / sqrt(n). Absent for a confidence outside 0 to 1 and below two figures.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let t = student_quantile(confidence, self.freedom())?;
        let half = t * self.deviation / f64::from(self.count).sqrt();
        Some(Interval { low: self.mean - half, high: self.mean + half, confidence })
    }

    /// Recovers mean and scatter of `count` figures from a published interval for their mean; the
    /// inverse of [`Self::interval`]. Absent where there is none.
    pub fn from_interval(interval: Interval, count: u32) -> Option<Self> {
        let (half, n) = (interval.half_width(), f64::from(count));
        let deviation = half * n.sqrt() / student_quantile(interval.confidence, n - 1.0)?;
        let mean = interval.low + half;
        if deviation.is_finite() && deviation >= 0.0 && mean.is_finite() {
            Some(Self { mean, deviation, count })
        } else {
            None
        }
    }
}

/// A move of a mean as a part of it: 0.01 is 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Moved")]
pub struct MeanShift {
    /// The move; signed.
    pub part: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl MeanShift {
    /// Returns Welch's interval (1947) for a difference of means with scatters of their own, the
    /// degrees of freedom by Satterthwaite (1946), over the mean before.
    pub fn between(before: &SampleSummary, after: &SampleSummary, confidence: f64) -> Option<Self> {
        let (a, b) = (before.squared_error(), after.squared_error());
        let freedom = (a + b) * (a + b) / (a * a / before.freedom() + b * b / after.freedom());
        let level = before.mean.abs();
        let part = (after.mean - before.mean) / level;
        let half = student_quantile(confidence, freedom)? * (a + b).sqrt() / level;
        if part.is_finite() && half.is_finite() {
            Some(Self { part, low: part - half, high: part + half })
        } else {
            None
        }
    }

    /// Returns whether the interval excludes 0, no move.
    pub fn is_resolved(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::scatter::ScatterGrowth;

    proptest! {
        /// A weight is as often as a value comes.
        #[test]
        fn a_weighted_median_is_that_of_values_that_come_so_often(
            all in prop::collection::vec((-50_i32..50, 1_usize..5), 1..20),
        ) {
            let weighted: Vec<(f64, f64)> =
                all.iter().map(|(value, times)| (f64::from(*value), *times as f64)).collect();
            let each = all.iter().flat_map(|(value, times)| vec![f64::from(*value); *times]);
            prop_assert_eq!(weighted_median(&weighted), median(&each.collect::<Vec<f64>>()));
            prop_assert_eq!(weighted_median(&[]), None);
            prop_assert_eq!(weighted_median(&[(1.0, 0.0)]), None);
        }
    }

    #[test]
    fn known_answers() {
        // Hyndman and Fan's type 7 on 1..=10, as R's quantile() prints it.
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(quantile(&ten, 0.25), Some(3.25));
        assert_eq!(quantile(&ten, 0.5), Some(5.5));
        assert_eq!(quantile(&ten, 0.9), Some(9.1));
        assert_eq!(quantile(&ten, 1.0), Some(10.0));
        assert_eq!(mean(&ten), Some(5.5));
        // Two of ten are cut off at each end: 3 to 8.
        assert_eq!(midmean(&[9.0, 1.0, 3.0, 5.0, 6.0, 7.0, 8.0, 4.0, 2.0, 1e9]), Some(5.5));
        assert_eq!(midmean(&[]), None);
        // The textbook example of the MAD: 1, 1, 2, 2, 4, 6, 9 has median 2 and MAD 1.
        let example = [1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0];
        assert_eq!(mad_sigma(&example), Some(1.4826));
    }

    proptest! {
        #[test]
        fn a_quantile_is_that_of_the_sorted_list(
            values in prop::collection::vec(-9_i32..9, 1..40),
            p in 0.0..=1.0,
        ) {
            let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let found = quantile(&values, p);
            values.sort_by(f64::total_cmp);
            let (last, place) = (values.len() - 1, p * (values.len() - 1) as f64);
            let below = place.floor() as usize;
            let step = values[last.min(below + 1)] - values[below];
            prop_assert_eq!(found, Some(values[below] + (place - place.floor()) * step));
        }
    }

    #[test]
    fn too_few_figures_have_no_answer() {
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(mad_sigma(&[3.0]), None);
    }

    #[test]
    fn known_ranks() {
        // The median of 10: ranks 2 and 9 cover 97.9 % (tables of the sign test).
        assert_eq!(quantile_ranks(10, 0.5, 0.95), Some([2, 5, 9]));
        // The greatest of n values lies above the quantile p but for p^n: 0.99^368 < 2.5 % <
        // 0.99^367.
        assert_eq!(quantile_ranks(367, 0.99, 0.95), None);
        assert_eq!(quantile_ranks(368, 0.99, 0.95).map(|ranks| ranks[2]), Some(368));
        assert_eq!(quantile_ranks(3687, 0.999, 0.95), None);
        assert!(quantile_ranks(3688, 0.999, 0.95).is_some());
        assert_eq!(quantile_ranks(0, 0.5, 0.95), None);
    }

    #[test]
    fn the_order_alone_gives_the_medians_interval() {
        // n = 100, 95 %: the 40th and the 61st (Campbell and Gardner 1988, BMJ 296).
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        let interval = median_interval(&hundred, 0.95).unwrap();
        assert_eq!((interval.low, interval.high), (40.0, 61.0));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0], 0.95), None);
        // 2,000 seeded lists of 151 skewed figures whose median is 1: it is covered as promised.
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let covered = (0..2000).filter(|_| {
            let figures: Vec<f64> =
                (0..151).map(|_| -rng.random_range(1e-12..1.0_f64).log2()).collect();
            let interval = median_interval(&figures, 0.95).unwrap();
            (interval.low..=interval.high).contains(&1.0)
        });
        let percent = 100.0 * covered.count() as f64 / 2000.0;
        assert!((93.0..=97.0).contains(&percent), "{percent} %");
    }

    #[test]
    fn published_t_table() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2 (t).
        for (confidence, freedom, t) in [
            (0.90, 1.0, 6.314),
            (0.90, 5.0, 2.015),
            (0.90, 10.0, 1.812),
            (0.90, 30.0, 1.697),
            (0.95, 1.0, 12.706),
            (0.95, 2.0, 4.303),
            (0.95, 5.0, 2.571),
            (0.95, 10.0, 2.228),
            (0.95, 100.0, 1.984),
            (0.99, 5.0, 4.032),
            (0.99, 10.0, 3.169),
        ] {
            let ours = student_quantile(confidence, freedom).unwrap();
            assert!((ours - t).abs() < 5.1e-4, "{confidence}, {freedom}: {ours} is not {t}");
        }
    }

    #[test]
    fn students_own_data() {
        // Student (1908), the additional sleep of ten patients, drug 2 minus drug 1: mean 1.58, s
        // 1.23 (n - 1), 95 % interval 0.70 to 2.46 as R's t.test prints it.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let summary = SampleSummary::from_values(&differences).unwrap();
        let interval = summary.interval(0.95).unwrap();
        assert!((summary.mean - 1.58).abs() < 1e-12);
        assert!((summary.deviation - 1.229995).abs() < 1e-6, "{summary:?}");
        assert!((interval.low - 0.7001142).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - 2.4598858).abs() < 1e-6, "{interval:?}");
        let back = SampleSummary::from_interval(interval, 10).unwrap();
        assert!((back.deviation - summary.deviation).abs() < 1e-9, "{back:?}");
    }

    #[test]
    fn too_few_or_senseless_figures_have_no_interval() {
        assert_eq!(SampleSummary::from_values(&[]), None);
        assert_eq!(SampleSummary::from_values(&[3.0]), None);
        assert_eq!(SampleSummary::from_values(&[3.0, f64::NAN]), None);
        assert_eq!(SampleSummary::from_values(&[f64::MAX, -f64::MAX]), None);
        let two = SampleSummary::from_values(&[1.0, 3.0]).unwrap();
        assert_eq!((two.interval(1.0), two.interval(0.0)), (None, None));
        let still = SampleSummary::from_values(&[2.0, 2.0]).unwrap();
        assert_eq!(still.interval(0.9).map(|i| i.half_width()), Some(0.0));
        assert_eq!(ScatterGrowth::between(&still, &two, 0.9), None);
        assert_eq!(ScatterGrowth::between(&two, &still, 0.9), None);
    }

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
    }

    fn six(random: &mut ChaCha8Rng, deviation: f64) -> SampleSummary {
        let values: Vec<f64> = (0..6).map(|_| 100.0 + deviation * normal(random)).collect();
        SampleSummary::from_values(&values).unwrap()
    }

    /// Six runs, as the paper has them: a nominal 90 % covers 88 to 92 %.
    #[test]
    fn both_intervals_cover_what_they_say() {
        const TRIALS: u64 = 2000;
        let (mut means, mut growths) = (0, 0);
        for trial in 0..TRIALS {
            let mut random = ChaCha8Rng::seed_from_u64(1908 + trial);
            let (before, after) = (six(&mut random, 1.0), six(&mut random, 3.0));
            let mean = before.interval(0.9).unwrap();
            means += u64::from(mean.low <= 100.0 && 100.0 <= mean.high);
            let growth = ScatterGrowth::between(&before, &after, 0.9).unwrap();
            growths += u64::from(growth.low <= 3.0 && 3.0 <= growth.high);
        }
        for (what, covered) in [("mean", means), ("growth", growths)] {
            let percent = 100.0 * covered as f64 / TRIALS as f64;
            println!("{what}: {percent:.1} %");
            assert!((88.0..=92.0).contains(&percent), "{what}: {percent:.1} %");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_figures_have_an_ordered_interval_or_none(
            before in proptest::collection::vec(any::<f64>(), 0..5),
            after in proptest::collection::vec(-1e6..1e6_f64, 0..5),
            confidence in prop_oneof![0.8..0.999_f64, Just(0.0), Just(1.0), Just(f64::NAN)],
        ) {
            for values in [&before, &after] {
                let interval = SampleSummary::from_values(values).and_then(|s| s.interval(confidence));
                prop_assert!(interval.is_none_or(|i| i.low <= i.high), "{:?}", interval);
            }
            if let (Some(before), Some(after)) = (SampleSummary::from_values(&before), SampleSummary::from_values(&after)) {
                let growth = ScatterGrowth::between(&before, &after, confidence);
                prop_assert!(growth.is_none_or(|g| g.low <= g.ratio && g.ratio <= g.high), "{:?}", growth);
            }
        }
    }
}
