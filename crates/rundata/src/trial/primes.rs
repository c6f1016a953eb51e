//! `classic experiment primes`.

use super::{Measure, TrialSample, Unit};

/// Tally: CPU time of a trial by threadclock, in nanoseconds.
pub const THREADCLOCK_NS: &str = "threadclock_ns";
/// Tally: CPU time of a trial by `getrusage(RUSAGE_SELF)`, user and system together.
pub const GETRUSAGE_NS: &str = "getrusage_ns";
/// Tally: the user time of the same trials.
pub const GETRUSAGE_USER_NS: &str = "getrusage_user_ns";
/// Tally: CPU time of a trial by `getrusage(RUSAGE_THREAD)`, user and system together.
pub const GETRUSAGE_THREAD_NS: &str = "getrusage_thread_ns";

/// The ways of timing that are set against threadclock.
pub const OTHERS: [&str; 3] = [GETRUSAGE_NS, GETRUSAGE_USER_NS, GETRUSAGE_THREAD_NS];

/// The tally of trials of nothing at all by the same way of timing.
pub fn empty(name: &str) -> String {
    format!("empty_{name}")
}

/// Mean of the trials less that of the empty ones, in nanoseconds.
pub fn mean(sample: &TrialSample, name: &str) -> Option<f64> {
    let empty = sample.tally(&empty(name))?.mean()?;
    Some(sample.tally(name)?.mean()? - empty)
}

/// How long they take, by threadclock.
pub(super) const MEASURES: [Measure; 1] =
    [Measure::new("primes_ns", "ns by threadclock", THREADCLOCK_NS, Unit::Ns, |sample| {
        mean(sample, THREADCLOCK_NS)
    })];
