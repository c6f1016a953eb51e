//! Quantiles of many values, with the interval that their ranks alone give.

use statrs::distribution::{Binomial, DiscreteCDF};

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

#[cfg(test)]
mod tests {
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
}
