//! Calls in loops, above the empty loop, and signals between two processes: the memorandum's
//! simsyscall, simsig and twosig (VENIX 1984) as trials.

use super::overhead::{self, BATCH_CALLS};
use super::sample::Sample;

/// Call: the memorandum's system call.
pub const GETUID: &str = "getuid";
/// Call.
pub const GETPPID: &str = "getppid";
/// Call: one byte from /dev/zero.
pub const READ: &str = "read";
/// Call: one byte to /dev/null.
pub const WRITE: &str = "write";
/// Call: clock_gettime without entering the kernel, where the clock source allows.
pub const CLOCK_VDSO: &str = "clock-gettime-vdso";
/// Call: clock_gettime by the kernel.
pub const CLOCK_CALL: &str = "clock-gettime";
/// Call: FUTEX_WAKE with no waiter.
pub const FUTEX_WAKE: &str = "futex-wake";
/// Call: nobody else is there.
pub const SCHED_YIELD: &str = "sched-yield";
/// Call: installing a handler.
pub const SIGACTION: &str = "sigaction";
/// Sequence: kill to oneself, the handler installs itself again (simsig).
pub const SIGNAL_SELF: &str = "signal-self";

/// Tally: ticks of the empty loop of as many turns as a batch has calls, taken in turn with
/// [`overhead::BATCH_TICKS`].
pub const EMPTY_BATCH_TICKS: &str = "empty_batch_ticks";
/// Count: calls (loops) that were made, warm-up included.
pub const CALLS: &str = "calls";
/// Count: signals that handlers have caught. One for each call of [`SIGNAL_SELF`], two for each loop
/// of two processes, else there is no sample.
pub const CAUGHT: &str = "caught";
/// Count: entries into the kernel of [`ENTERED_CALLS`] calls, seen by tracing a child; absent where
/// none can be traced.
pub const KERNEL_ENTRIES: &str = "kernel_entries";
/// Count: calls whose entries were counted.
pub const ENTERED_CALLS: &str = "entered_calls";
/// Count: voluntary and involuntary switches of both processes, from the start of the second to its
/// end.
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

/// For each so many loops of one process there is one of two: the memorandum had 10,000 and 2,000.
pub const TWO_PROCESS_SHARE: u32 = 5;

/// Ticks per turn of the empty loop.
pub(crate) fn empty_ticks(sample: &Sample) -> Option<f64> {
    let empty = sample.tally(EMPTY_BATCH_TICKS)?.quantile(0.5)?;
    Some(empty as f64 / f64::from(BATCH_CALLS))
}

/// Ticks per call above the empty loop: the sample's median batches. Signed.
pub(crate) fn net_ticks(sample: &Sample) -> Option<f64> {
    Some(overhead::in_a_row(sample)? - empty_ticks(sample)?)
}

/// Ticks per loop of two processes: the sample's median batch. Nothing is taken off: beside two
/// signals and two switches a test and a jump do not count.
pub(crate) fn loop_ticks(sample: &Sample) -> Option<f64> {
    overhead::in_a_row(sample)
}
