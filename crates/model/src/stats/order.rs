//! Quantiles of many values, with the interval that their ranks alone give.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::bootstrap::Interval;

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
