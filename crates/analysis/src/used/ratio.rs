//! Ratios of figures that were measured in the same rounds.

use std::collections::BTreeMap;

use super::figure::estimate;
use crate::estimate::Estimate;

/// The ratio of what two commands take, by round, over the rounds that both have. It is estimated
/// on the logarithm, so that new / base and base / new say the same; resolved where its interval
/// excludes 1. Rounds in which one took nothing are left out.
pub fn ratio(
    base: &BTreeMap<u32, u64>,
    new: &BTreeMap<u32, u64>,
    confidence: f64,
    seed: u64,
) -> Option<Estimate> {
    let log = |(round, base): (&u32, &u64)| {
        let new = new.get(round)?;
        (*base > 0 && *new > 0).then(|| (*new as f64 / *base as f64).ln())
    };
    let logs: Vec<f64> = base.iter().filter_map(log).collect();
    estimate(&logs, confidence, seed).map(of_logarithm)
}

/// The ratio whose logarithm was estimated.
pub fn of_logarithm(log: Estimate) -> Estimate {
    let (low, high) = (log.low.map(f64::exp), log.high.map(f64::exp));
    Estimate { value: log.value.exp(), standard_error: None, low, high, ..log }
}
