//! Location and spread of a list of figures, and intervals that their order alone gives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

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
    /// The middle of `values`; absent for an empty list.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Median => median(values),
            Self::Mean => mean(values),
            Self::Midmean => midmean(values),
        }
    }
}

/// Arithmetic mean; absent for an empty list.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Figures that are cut off at each end of so many for a [`midmean`].
pub(crate) fn midmean_cut(count: usize) -> usize {
    count / 4
}

/// Mean of the middle half (interquartile mean): nearly as indifferent to a few far off as the median,
/// and of normal figures known a fifth better. Absent for an empty list.
pub fn midmean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = midmean_cut(sorted.len());
    mean(&sorted[cut..sorted.len() - cut])
}

/// Median, the mean of the two middle figures for an even count; absent for an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile `p` (0 to 1) by linear interpolation between order statistics: type 7 of Hyndman and
/// Fan (1996), the default of R and NumPy. Absent for an empty list.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted_quantile(&sorted, p)
}

pub(crate) fn sorted_quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (place - below as f64) * (sorted[above] - sorted[below]))
}

/// Spread as the median absolute deviation times 1.4826, which estimates the standard deviation of
/// normal figures and ignores outliers (Rousseeuw and Croux 1993). Absent below two figures: one
/// figure has no spread, not a spread of zero.
pub fn mad_sigma(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(1.4826 * median(&deviations)?)
}

/// Ranks, from 1, of the quantile `p` of `count` values and of both ends of its interval: any
/// distribution has its quantile between them with at least `confidence` (Conover 1999, Practical
/// Nonparametric Statistics, section 3.2; values independent). None where the upper end would lie
/// beyond the greatest value, or the lower below the least: there are too few values.
pub fn quantile_ranks(count: u64, p: f64, confidence: f64) -> Option<[u64; 3]> {
    let below = Binomial::new(p, count).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    let (low, high) = (below.inverse_cdf(tail), below.inverse_cdf(1.0 - tail) + 1);
    let middle = ((p * count as f64).ceil() as u64).max(1);
    (low >= 1 && high <= count && tail > 0.0).then_some([low, middle, high])
}

/// Interval for the median of independent figures from their order alone ([`quantile_ranks`]).
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let [low, _, high] = quantile_ranks(values.len() as u64, 0.5, confidence)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |rank: u64| sorted.get(rank as usize - 1).copied();
    Some(Interval { low: at(low)?, high: at(high)?, confidence })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

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
        // The greatest of n values lies above the quantile p but for p^n: 0.99^368 < 2.5 % < 0.99^367.
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
}
