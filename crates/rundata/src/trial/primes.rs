//! `classic experiment primes`.

use super::{MeasureUnit, TrialMeasure, TrialSample};

/// Tally: CPU time of a trial by threadclock, in nanoseconds.
pub const THREADCLOCK_NS: &str = "threadclock_ns";
/// Tally: CPU time of a trial by `getrusage(RUSAGE_SELF)`, user and system together.
pub const GETRUSAGE_NS: &str = "getrusage_ns";
/// Tally: user time of the same trials.
pub const GETRUSAGE_USER_NS: &str = "getrusage_user_ns";
/// Tally: CPU time of a trial by `getrusage(RUSAGE_THREAD)`, user and system together.
pub const GETRUSAGE_THREAD_NS: &str = "getrusage_thread_ns";

/// Tallies of the clocks that are compared with threadclock.
pub const COMPARED_CLOCKS: [&str; 3] = [GETRUSAGE_NS, GETRUSAGE_USER_NS, GETRUSAGE_THREAD_NS];

/// Returns the name of the tally of empty trials by the same clock.
pub fn empty_tally_name(name: &str) -> String {
    format!("empty_{name}")
}

/// Returns the mean of the trials less that of the empty ones, in nanoseconds.
pub fn net_mean_ns(sample: &TrialSample, name: &str) -> Option<f64> {
    let empty = sample.tally(&empty_tally_name(name))?.mean()?;
    Some(sample.tally(name)?.mean()? - empty)
}

/// Time of the primes by threadclock.
pub(super) const MEASURES: [TrialMeasure; 1] = [TrialMeasure::new(
    "primes_ns",
    "ns by threadclock",
    THREADCLOCK_NS,
    MeasureUnit::Ns,
    |sample| net_mean_ns(sample, THREADCLOCK_NS),
)];
