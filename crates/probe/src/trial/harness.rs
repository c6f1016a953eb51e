//! Types and preparations that all trials share.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hint::black_box;

use rundata::ring::Policy;
use rundata::trial::{Gap, SlicedTallies, Tally};
use rustix::io::Errno;
use threadclock::ThreadClock;

use crate::sys::ChildProcess;
use crate::{placement, policy};

/// Reason why trials gave no sample: the value, the limit or errno, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrialError(pub(super) String);

impl TrialError {
    /// Builds the error that user space has no time-stamp counter.
    pub(super) fn no_counter() -> Self {
        let lack = "this processor has no time-stamp counter that user space can read";
        Self(format!("{lack}: nothing so short can be timed"))
    }

    /// Builds the error that a call failed which the trial needs.
    pub(super) fn at(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self(format!("{call}: {errno}"))
    }

    /// Builds the error that a process of the trial ended too early.
    pub(super) fn lost(process: &str, why: impl Display) -> Self {
        Self(format!("the {process} exited without output: {why}"))
    }
}

/// Outcome of the trials of one worker.
#[derive(Default)]
pub(super) struct TrialOutcome {
    pub(super) tallies: BTreeMap<String, Tally>,
    pub(super) sliced: Vec<SlicedTallies>,
    pub(super) counts: BTreeMap<String, i64>,
    pub(super) gaps: Vec<Gap>,
    /// Time that was watched, if it is less than the whole, in nanoseconds.
    pub(super) elapsed_ns: Option<u64>,
}

impl TrialOutcome {
    /// Adds the outcome of each of many trials.
    pub(super) fn tally(&mut self, name: &str, values: impl IntoIterator<Item = i64>) {
        self.tallies.insert(name.to_string(), values.into_iter().collect());
    }

    /// Adds to a count.
    pub(super) fn count(&mut self, name: &str, more: i64) {
        *self.counts.entry(name.to_string()).or_default() += more;
    }
}

/// Error of threadclock after which it asks the kernel again. By default it asks every 50 us, which
/// would fall into most trials. With this bound it asks every 10 ms, and time that is stolen from a
/// trial counts as the trial's.
const CLOCK_BOUND_NS: u64 = 10_000_000;

/// Returns the clock of the calling thread, just synchronised.
pub(super) fn synchronised_clock() -> ThreadClock {
    let clock = ThreadClock::for_this_thread();
    clock.set_error_bound_ns(CLOCK_BOUND_NS);
    clock.now();
    clock
}

/// Allocates room for `values` values, in memory that has been written to: filling it faults no
/// page.
pub(super) fn touched_room<T: Clone>(values: u32, any: T) -> Vec<T> {
    let mut room = Vec::with_capacity(values as usize);
    touch(&mut room, any);
    room
}

/// Writes to all of a vector's room, so that pages which a fork has shared fault now.
pub(super) fn touch<T: Clone>(room: &mut Vec<T>, any: T) {
    room.resize(room.capacity(), any);
    black_box(&mut *room).clear();
}

/// Moves the calling process to a CPU.
pub(super) fn pin(cpu: u32) -> Result<(), TrialError> {
    placement::pin(&[cpu]).map_err(|errno| {
        TrialError(format!("cannot run on CPU {cpu}: {errno} (sched_setaffinity)"))
    })
}

/// Takes a policy for the calling process.
pub(super) fn take_policy(policy: Policy) -> Result<(), TrialError> {
    policy::take(policy).map_err(|errno| TrialError(policy::describe_refusal(policy, errno)))
}

/// Starts a process under SCHED_OTHER that runs `act` beside the trial, on the caller's CPUs.
pub(super) fn start_beside(act: impl FnOnce()) -> Result<ChildProcess, TrialError> {
    let child = ChildProcess::start(|| {
        // Under another policy it would be another load. If it cannot change, it ends, which is
        // noticed.
        if policy::take(Policy::Other).is_ok() {
            act();
        }
    });
    child.map_err(TrialError::at("fork"))
}

/// Checks that all these processes still run: one that has ended was no load.
pub(super) fn check_alive(name: &str, children: &mut [ChildProcess]) -> Result<(), TrialError> {
    for child in children {
        if !child.is_alive() {
            return Err(TrialError::lost(name, "it has ended"));
        }
    }
    Ok(())
}
