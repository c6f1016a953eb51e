//! A short call of known length: other calls may be measured as much too long or too short as it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use crate::estimate::Estimate;

/// Times of a call of eight dependent multiplications, which waits for nothing before it, in
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    /// Measured like the calls of the command.
    pub told_ns: f64,
    /// Each of sixteen in a row, without readings between them: they overlap.
    pub in_a_row_ns: f64,
    /// Each of sixteen of which each waits for the one before: nothing overlaps.
    pub chained_ns: f64,
}

impl Known {
    /// Returns the median of each time over several calls; absent without any.
    pub fn median(calls: &[Self]) -> Option<Self> {
        let (mut told, mut in_a_row, mut chained) = (Vec::new(), Vec::new(), Vec::new());
        for call in calls {
            told.push(call.told_ns);
            in_a_row.push(call.in_a_row_ns);
            chained.push(call.chained_ns);
        }
        Some(Self {
            told_ns: median(&told)?,
            in_a_row_ns: median(&in_a_row)?,
            chained_ns: median(&chained)?,
        })
    }

    /// Returns the time by which it is measured too long: readings keep it from overlapping with
    /// the code around it.
    pub fn overlap_ns(&self) -> f64 {
        (self.told_ns - self.in_a_row_ns).max(0.0)
    }

    /// Returns the time by which it is measured too short: it overlaps with the readings.
    pub fn shortfall_ns(&self) -> f64 {
        (self.chained_ns - self.told_ns).max(0.0)
    }
}

/// Largest part of a time that may be overlap; of a larger part the time is only an upper bound.
const MAX_OVERLAP: f64 = 0.3;

/// Returns whether a time is only an upper bound: more than three tenths of it may be the error by
/// which a known call is measured too long or too short.
pub fn is_bound(ns: f64, known: Option<Known>) -> bool {
    let Some(known) = known else { return true };
    let error = known.overlap_ns() + known.shortfall_ns();
    ns <= 0.0 || error > MAX_OVERLAP * (ns + known.shortfall_ns())
}

/// Returns an estimate with a wider interval: `ends` returns the lowest and the highest value that
/// one of its ends may be.
pub fn widened(estimate: Estimate, ends: impl Fn(f64) -> [f64; 2]) -> Estimate {
    let low = estimate.low.map(|low| ends(low)[0]);
    let high = estimate.high.map(|high| ends(high)[1]);
    let resolved = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < 0.0);
    Estimate { low, high, resolved, ..estimate }
}
