//! Ratios of figures that were measured in the same rounds.

use std::collections::BTreeMap;

use super::figure::estimate;
use crate::estimate::Estimate;

/// Returns the ratio of the times of two commands over the rounds that both have; resolved where its
/// interval excludes 1.
///
/// It is estimated on the logarithm, so that new / base and base / new give the same answer. Rounds
/// in which one took nothing are left out.
pub fn ratio(
    base: &BTreeMap<u32, u64>,
    new: &BTreeMap<u32, u64>,
    confidence: f64,
    seed: u64,
) -> Option<Estimate> {
    let mut logs = Vec::new();
    for (round, base) in base {
        let new = new.get(round).copied().unwrap_or(0);
        if *base > 0 && new > 0 {
            logs.push((new as f64 / *base as f64).ln());
        }
    }
    estimate(&logs, confidence, seed).map(from_logarithm)
}

/// Returns the ratio whose logarithm was estimated.
pub fn from_logarithm(log: Estimate) -> Estimate {
    let (low, high) = (log.low.map(f64::exp), log.high.map(f64::exp));
    Estimate { value: log.value.exp(), standard_error: None, low, high, ..log }
}
