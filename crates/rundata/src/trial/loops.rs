//! Calls in loops, and signals between two processes.

use super::overhead::{BATCH_CALLS, BATCH_TICKS, call_ticks_in_a_row};
use super::{MeasureUnit, TrialMeasure, TrialSample};

/// Call: the memorandum's system call.
pub const GETUID: &str = "getuid";
/// Call: installing a handler.
pub const SIGACTION: &str = "sigaction";
/// Sequence: kill to oneself, the handler installs itself again (simsig).
pub const SIGNAL_SELF: &str = "signal-self";

/// Tally: ticks of the empty loop of as many turns as a batch has calls, taken in turn with
/// [`BATCH_TICKS`].
pub const EMPTY_BATCH_TICKS: &str = "empty_batch_ticks";
/// Count: calls (loops) that were made, warm-up included.
pub const CALLS: &str = "calls";
/// Count: signals that handlers have caught. One for each call of [`SIGNAL_SELF`], two for each
/// loop of two processes, else there is no sample.
pub const CAUGHT: &str = "caught";
/// Count: entries into the kernel of [`ENTERED_CALLS`] calls, seen by tracing a child; absent
/// where none can be traced.
pub const KERNEL_ENTRIES: &str = "kernel_entries";
/// Count: calls whose entries were counted.
pub const ENTERED_CALLS: &str = "entered_calls";
/// Count: voluntary and involuntary switches of both processes, from the start of the second to
/// its end.
pub const LOOP_SWITCHES: &str = "loop_switches";
/// Count: CPU time of the process during all its loops, precisely.
pub const CPU_NS: &str = "cpu_ns";
/// Count: what the timer ticks sampled of it, whole ticks (CPUCLOCK_PROF).
pub const SAMPLED_NS: &str = "sampled_ns";
/// Count: what of that was in user mode (CPUCLOCK_VIRT).
pub const SAMPLED_USER_NS: &str = "sampled_user_ns";
/// Count: CPU time of the second process, all of it.
pub const CHILD_CPU_NS: &str = "child_cpu_ns";
/// Count: what the timer ticks sampled of it.
pub const CHILD_SAMPLED_NS: &str = "child_sampled_ns";
/// Count: what of that was in user mode.
pub const CHILD_SAMPLED_USER_NS: &str = "child_sampled_user_ns";

/// For each so many loops of one process there is one of two: the memorandum had 10,000 and
/// 2,000.
pub const TWO_PROCESS_SHARE: u32 = 5;

/// Returns the ticks per turn of the empty loop.
pub fn empty_loop_ticks(sample: &TrialSample) -> Option<f64> {
    Some(sample.median(EMPTY_BATCH_TICKS)? / f64::from(BATCH_CALLS))
}

/// Returns the ticks per call above the empty loop, by the sample's median batches. Signed.
pub fn net_call_ticks(sample: &TrialSample) -> Option<f64> {
    Some(call_ticks_in_a_row(sample)? - empty_loop_ticks(sample)?)
}

/// Cost of a call above the empty loop.
pub(super) const MEASURES: [TrialMeasure; 2] = [
    TrialMeasure::new("ns", "ns", BATCH_TICKS, MeasureUnit::Ticks, net_call_ticks),
    TrialMeasure::new(
        "empty_loop_ns",
        "ns of the empty loop",
        BATCH_TICKS,
        MeasureUnit::Ticks,
        empty_loop_ticks,
    ),
];

/// Cost of a loop of two processes.
pub(super) const TWO_PROCESS_MEASURES: [TrialMeasure; 1] = [TrialMeasure::new(
    "loop_ns",
    "ns a loop",
    BATCH_TICKS,
    MeasureUnit::Ticks,
    call_ticks_in_a_row,
)];
