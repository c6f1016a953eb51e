//! The number of kinds, estimated from a sample of single finds in which many kinds are missing.
//!
//! A sample found 20 kinds: 10 of them once, 4 twice, 6 more often. Many kinds found once mean that
//! many were missed; the estimate of these is 10 x 9 / (2 x (4 + 1)) = 9, so 29 kinds in all. With
//! no kind found only once, none is missing.

use crate::distributions::normal_quantile;
use crate::location::Interval;

/// A number of kinds with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Richness {
    /// Kinds that were found.
    pub found: u64,
    /// Estimate of all kinds: at least those that were found. Where kinds are not equally frequent,
    /// a lower bound.
    pub estimate: f64,
    /// Interval of the estimate; its upper end may be far away where hardly any kind was found
    /// twice.
    pub interval: Interval,
}

/// Returns the bias-corrected estimate of Chao (1984), f1 (f1 - 1) / (2 (f2 + 1)) kinds beyond those
/// found, where f1 kinds were found once and f2 twice; its interval for the logarithm of the number
/// of missing kinds (Chao 1987, Biometrics 43, 783-791, equation 7). `counts` are the finds of each
/// kind. Absent where nothing was found, or for a confidence outside 0 to 1.
pub fn estimate_richness(
    counts: impl IntoIterator<Item = u64>,
    confidence: f64,
) -> Option<Richness> {
    let (mut found, mut once, mut twice) = (0_u64, 0_u64, 0_u64);
    for count in counts {
        found += u64::from(count > 0);
        once += u64::from(count == 1);
        twice += u64::from(count == 2);
    }
    if found == 0 {
        return None;
    }
    let [kinds, f1, f2] = [found as f64, once as f64, twice as f64];
    let missing = f1 * (f1 - 1.0) / (2.0 * (f2 + 1.0));
    let estimate = kinds + missing;
    let variance = if twice > 0 {
        let ratio = f1 / f2;
        f2 * (ratio.powi(4) / 4.0 + ratio.powi(3) + ratio * ratio / 2.0)
    } else {
        let all_kinds = estimate.max(1.0);
        missing + f1 * (2.0 * f1 - 1.0).powi(2) / 4.0 - f1.powi(4) / (4.0 * all_kinds)
    };
    let interval = if missing > 0.0 {
        let z = normal_quantile(confidence)?;
        let factor = (z * (variance.max(0.0) / (missing * missing)).ln_1p().sqrt()).exp();
        Interval { low: kinds + missing / factor, high: kinds + missing * factor, confidence }
    } else {
        Interval { low: kinds, high: kinds, confidence }
    };
    Some(Richness { found, estimate, interval })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn kinds_that_were_all_found_twice_are_all_there_are() {
        let all = estimate_richness([2, 2, 3, 0], 0.95).unwrap();
        assert_eq!((all.found, all.estimate), (3, 3.0));
        assert_eq!((all.interval.low, all.interval.high), (3.0, 3.0));
        assert_eq!(estimate_richness([0, 0], 0.95), None);
        assert_eq!(estimate_richness([], 0.95), None);
    }

    /// By hand: 10 kinds once, 4 twice, 6 more often: 20 + 10 * 9 / (2 * 5) = 29. Ratio 2.5:
    /// variance 4 (39.0625 / 4 + 15.625 + 3.125) = 114.0625; factor exp(1.959964 sqrt(ln(1 +
    /// 114.0625 / 81))).
    #[test]
    fn of_a_sample_by_hand() {
        let counts = [1; 10].into_iter().chain([2; 4]).chain([5; 6]);
        let all = estimate_richness(counts, 0.95).unwrap();
        assert_eq!((all.found, all.estimate), (20, 29.0));
        let factor = (1.959_964_f64 * (1.0 + 114.0625_f64 / 81.0).ln().sqrt()).exp();
        assert!((all.interval.low - (20.0 + 9.0 / factor)).abs() < 1e-4, "{all:?}");
        assert!((all.interval.high - (20.0 + 9.0 * factor)).abs() < 1e-4, "{all:?}");
    }

    /// 2,000 seeded samples of kinds that are equally frequent.
    #[test]
    fn the_interval_covers_the_truth() {
        let mut random = ChaCha8Rng::seed_from_u64(1984);
        for (kinds, finds) in [(1024_usize, 700), (1024, 3000), (16_384, 3000)] {
            let mut held = 0;
            for _ in 0..2000 {
                let mut counts = vec![0_u64; kinds];
                for _ in 0..finds {
                    counts[random.random_range(0..kinds)] += 1;
                }
                let interval = estimate_richness(counts, 0.95).unwrap().interval;
                held += u32::from(interval.low <= kinds as f64 && kinds as f64 <= interval.high);
            }
            let share = f64::from(held) / 2000.0;
            assert!((0.93..=0.99).contains(&share), "{kinds} kinds, {finds} finds: {share}");
        }
    }
}
