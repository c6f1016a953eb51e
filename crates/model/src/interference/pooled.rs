//! The growth of a setting over all its array sizes.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::digamma;

use super::CONFIDENCE;
use crate::stats::{Growth, Summary};

/// A growth on the logarithmic scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pooled {
    /// ln of the ratio of scatters, mean over the sizes.
    log: f64,
    /// Variance of that mean.
    variance: f64,
}

impl Pooled {
    pub(super) fn growth(self) -> Growth {
        let reach = Normal::standard().inverse_cdf(0.5 + CONFIDENCE / 2.0);
        let half = reach * self.variance.sqrt();
        Growth {
            ratio: self.log.exp(),
            low: (self.log - half).exp(),
            high: (self.log + half).exp(),
            confidence: CONFIDENCE,
        }
    }
}

/// Mean of the log ratios of scatters of (quiet, disturbed) pairs. The logarithm of a sample
/// variance with f degrees of freedom is off by digamma(f/2) - ln(f/2) and varies by trigamma(f/2)
/// (Bartlett and Kendall 1946), and is close to normal; sizes may scatter differently, and grow
/// differently. Absent without a pair, or if a scatter is zero.
pub(super) fn pooled(pairs: &[(Summary, Summary)]) -> Option<Pooled> {
    let count = pairs.len() as f64;
    let (mut log, mut variance) = (0.0, 0.0);
    for (quiet, disturbed) in pairs {
        log += (log_deviation(disturbed) - log_deviation(quiet)) / count;
        let spread = |s: &Summary| trigamma(s.freedom() / 2.0) / 4.0;
        variance += (spread(quiet) + spread(disturbed)) / (count * count);
    }
    let sound = !pairs.is_empty() && log.is_finite() && variance.is_finite();
    sound.then_some(Pooled { log, variance })
}

/// Growth of one setting over that of another, which was measured independently.
pub(super) fn over(one: Pooled, other: Pooled) -> Growth {
    Pooled { log: one.log - other.log, variance: one.variance + other.variance }.growth()
}

/// Unbiased estimate of the logarithm of the standard deviation.
fn log_deviation(summary: &Summary) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

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

    /// For one size the exact answer is known: the interval from F (5 and 5 degrees).
    #[test]
    fn one_size_has_nearly_the_interval_from_f() {
        let of = |deviation: f64| Summary { mean: 1.0, deviation, count: 6 };
        let ours = pooled(&[(of(1.0), of(3.0))]).unwrap().growth();
        let exact = Growth::of(&of(1.0), &of(3.0), CONFIDENCE).unwrap();
        assert!((ours.ratio - exact.ratio).abs() < 1e-12);
        assert!((ours.low / exact.low - 1.0).abs() < 0.02, "{ours:?} {exact:?}");
        assert!((ours.high / exact.high - 1.0).abs() < 0.02, "{ours:?} {exact:?}");
    }
}
