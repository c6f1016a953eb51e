//! Cost of one call: `clock overhead`, and calls in loops.

use super::{MeasureUnit, Tally, TrialMeasure, TrialSample};

/// Tally: ticks between two ordered time stamps with one call between them.
pub const CALL_TICKS: &str = "call_ticks";
/// Tally: ticks between two ordered time stamps with nothing between them, taken in turn with
/// [`CALL_TICKS`].
pub const EMPTY_TICKS: &str = "empty_ticks";
/// Tally: ticks of [`BATCH_CALLS`] calls one after the other.
pub const BATCH_TICKS: &str = "batch_ticks";
/// Calls of a batch.
pub const BATCH_CALLS: u32 = 100;

/// Returns the single calls of a sample less the cost of the two stamps.
pub fn net_tally(sample: &TrialSample) -> Option<Tally> {
    sample.tally(CALL_TICKS)?.less(&*sample.tally(EMPTY_TICKS)?)
}

/// Returns the ticks per call of calls made one after the other, by the sample's median batch. For
/// two processes it is per loop: nothing is taken off, as beside two signals and two switches a
/// test and a jump do not count.
pub fn call_ticks_in_a_row(sample: &TrialSample) -> Option<f64> {
    Some(sample.median(BATCH_TICKS)? / f64::from(BATCH_CALLS))
}

/// Cost of a call. The single call does not come first: less the empty interval, a short one is
/// nothing, give or take a step of the counter, and no number of rounds narrows that to a share of
/// itself.
pub(super) const MEASURES: [TrialMeasure; 2] = [
    TrialMeasure::new(
        "in_a_row_ns",
        "ns in a row",
        BATCH_TICKS,
        MeasureUnit::Ticks,
        call_ticks_in_a_row,
    ),
    TrialMeasure::new("alone_ns", "ns alone", CALL_TICKS, MeasureUnit::Ticks, |sample| {
        net_tally(sample)?.median()
    }),
];
