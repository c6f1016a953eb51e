//! A short call that is known: by how much it is told too long or too short, so may be others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use crate::estimate::Estimate;

/// A call of eight dependent multiplications, which waits for nothing before it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    /// As calls of the command are told.
    pub told_ns: f64,
    /// Each of sixteen in a row, without readings between them: they overlap.
    pub in_a_row_ns: f64,
    /// The same where each waits for the one before: nothing overlaps.
    pub chained_ns: f64,
}

impl Known {
    /// That of several, figure by figure; absent of none.
    pub fn median(all: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
        Some(Self {
            told_ns: of(|of| of.told_ns)?,
            in_a_row_ns: of(|of| of.in_a_row_ns)?,
            chained_ns: of(|of| of.chained_ns)?,
        })
    }

    /// By how much it is told too long, as readings undo its overlap with what is around it.
    pub fn overlap_ns(&self) -> f64 {
        (self.told_ns - self.in_a_row_ns).max(0.0)
    }

    /// By how much it is told too short, as it overlaps with the readings.
    pub fn shortfall_ns(&self) -> f64 {
        (self.chained_ns - self.told_ns).max(0.0)
    }
}

/// A time of which a larger part may be overlap is an upper bound and no more.
const MOST_OVERLAP: f64 = 0.3;

/// Whether more than three tenths of a time may be that by which a known call is told too long or
/// too short.
pub fn is_bound(ns: f64, known: Option<Known>) -> bool {
    ns <= 0.0
        || known.is_none_or(|known| {
            known.overlap_ns() + known.shortfall_ns() > MOST_OVERLAP * (ns + known.shortfall_ns())
        })
}

/// An estimate whose ends lie further out.
pub fn widened(of: Estimate, ends: impl Fn(f64) -> [f64; 2]) -> Estimate {
    let (low, high) = (of.low.map(|low| ends(low)[0]), of.high.map(|high| ends(high)[1]));
    let resolved = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < 0.0);
    Estimate { low, high, resolved, ..of }
}
