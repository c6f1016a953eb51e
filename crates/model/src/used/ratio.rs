//! Ratios of figures that were measured in the same rounds.

use crate::estimate::Estimate;

/// The ratio whose logarithm was estimated: new / base and base / new say the same. It is resolved
/// where its interval excludes 1.
pub fn of_logarithm(log: Estimate) -> Estimate {
    let (low, high) = (log.low.map(f64::exp), log.high.map(f64::exp));
    Estimate { value: log.value.exp(), standard_error: None, low, high, ..log }
}
