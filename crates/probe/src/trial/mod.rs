//! The probes that stand beside the ring: something is tried many times in a fresh worker, and the
//! outcome of each time is kept. One file an experiment.

mod gaps;
mod interference;
mod loops;
mod malloc;
mod overhead;
mod primes;
mod sampling;
mod timing;
mod wakeup;

use std::collections::BTreeMap;

use model::case::Policy;
use model::trial::{Case, Gap, Sample, Sliced, Tally, Trial};
use rustix::io::Errno;
use threadclock::ThreadClock;

pub use interference::{check_noise, wire};
pub use loops::{SIGNAL_LOOPS, SYSTEM_CALLS};
pub use overhead::{CALLS, Registered, available};
pub use primes::primes as first_primes;

use crate::counters::steal_ns;
use crate::placement;
use crate::policy;
use crate::sys::{self, monotonic_raw_ns};
use timing::Cut;

/// What a worker is told of a trial: one case, one round.
pub(crate) struct Assignment {
    /// Number of the case in the plan.
    pub(crate) case_number: usize,
    /// What is tried, where and under which policy.
    pub(crate) case: Case,
    /// The round.
    pub(crate) round: u32,
    /// Trials in a sample, of each thing that is compared in it.
    pub(crate) trials: u32,
}

/// Longest time that one worker's trials may take.
const DEADLINE_S: u32 = 600;

/// Why trials gave no sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The kernel does not let the trial run on its CPU.
    #[error("cannot run on CPU {cpu}: {errno} (sched_setaffinity)")]
    Affinity {
        /// The CPU.
        cpu: u32,
        /// Errno of sched_setaffinity(2).
        errno: Errno,
    },
    /// A call that the trial needs failed.
    #[error("{call}: {errno}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Its errno.
        errno: Errno,
    },
    /// The plan names a call that is not in the registry.
    #[error("no call named '{0}' is known (see `switchcost clock overhead --help`)")]
    UnknownCall(String),
    /// The processor has no time-stamp counter for user space.
    #[error(
        "this processor has no time-stamp counter that user space can read: nothing so short can be timed"
    )]
    NoCounter,
    /// Signals were lost.
    #[error("of {sent} signals that were sent {caught} were caught: each should be caught once")]
    NotCaught {
        /// Signals sent.
        sent: u64,
        /// Signals that a handler caught.
        caught: u64,
    },
    /// A process that takes part in the trial ended too early.
    #[error("the {process} exited without output: {why}")]
    Lost {
        /// The process.
        process: &'static str,
        /// What is known of its end.
        why: String,
    },
    /// Anything else, with the value, the limit or errno, and what to do.
    #[error("{0}")]
    Other(String),
}

impl TrialError {
    fn at(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Refused { call, errno }
    }
}

/// What the trials of one worker gave.
#[derive(Default)]
struct Outcome {
    tallies: BTreeMap<String, Tally>,
    sliced: Vec<Sliced>,
    counts: BTreeMap<String, i64>,
    gaps: Vec<Gap>,
    /// Time that was watched, where that is less than the whole.
    elapsed_ns: Option<u64>,
}

impl Outcome {
    fn with(mut self, name: &str, tally: Tally) -> Self {
        self.tallies.insert(name.to_string(), tally);
        self
    }

    /// With what a loop in slices gave: each of `outcomes` under its name.
    fn with_slices(mut self, cut: Cut, outcomes: &[(&str, &[i64])]) -> Self {
        match cut.slices {
            Some(slices) => {
                let laps = usize::try_from(slices.laps).unwrap_or(usize::MAX).max(1);
                let by_slice = |(name, all): &(&str, &[i64])| {
                    let tally = |slice: &[i64]| slice.iter().copied().collect();
                    (name.to_string(), all.chunks(laps).map(tally).collect())
                };
                let tallies = outcomes.iter().map(by_slice).collect();
                self.sliced.push(Sliced { slices, tallies });
                self
            }
            None => outcomes.iter().fold(self, |outcome, (name, all)| {
                outcome.with(name, all.iter().copied().collect())
            }),
        }
    }

    fn count(&mut self, name: &str, more: i64) {
        *self.counts.entry(name.to_string()).or_default() += more;
    }
}

/// Takes the sample of an assignment in the calling process, which is single-threaded and for this alone.
pub(crate) fn run(assignment: &Assignment) -> Result<Sample, TrialError> {
    let Assignment { case, trials, .. } = assignment;
    let trials = *trials;
    sys::default_alarm();
    sys::deadline(DEADLINE_S);
    placement::pin(&[case.cpu]).map_err(|errno| TrialError::Affinity { cpu: case.cpu, errno })?;
    // The policy of a sampling trial is the sleeper's alone, that of an execution the ring's.
    if !matches!(case.trial, Trial::Sampling { .. } | Trial::Execution(_)) {
        take_policy(case.policy)?;
    }
    let steal_before = steal_ns(&[case.cpu]);
    let (start_ns, start_ticks) = (monotonic_raw_ns(), threadclock::time_stamp_ordered());
    let outcome = match &case.trial {
        Trial::Call { call } => overhead::run(call, trials),
        Trial::Primes { primes } => primes::run(*primes, trials, assignment.round),
        Trial::Malloc { bytes, preload } => malloc::run(*bytes, preload.as_deref(), trials),
        Trial::Sampling { phase, duration_ns } => sampling::run(case, *phase, *duration_ns),
        Trial::Execution(execution) => interference::run(assignment, execution),
        Trial::Gaps { duration_ns } => gaps::run(case, *duration_ns),
        Trial::Wakeup(wakeup) => wakeup::run(wakeup, case.policy, assignment.round),
        Trial::Loop { call } => loops::run(call, trials),
        Trial::TwoProcesses => loops::run_two_processes(trials),
    }?;
    let (end_ns, end_ticks) = (monotonic_raw_ns(), threadclock::time_stamp_ordered());
    let stolen = steal_before.zip(steal_ns(&[case.cpu]));
    let elapsed_ns = end_ns.saturating_sub(start_ns);
    Ok(Sample {
        case: assignment.case_number,
        round: assignment.round,
        elapsed_ns: outcome.elapsed_ns.unwrap_or(elapsed_ns),
        // The two belong together: what was watched for less has no ticks.
        elapsed_ticks: end_ticks
            .zip(start_ticks)
            .map(|(end, start)| end.wrapping_sub(start))
            .filter(|_| outcome.elapsed_ns.is_none()),
        tallies: outcome.tallies,
        sliced: outcome.sliced,
        gaps: outcome.gaps,
        counts: outcome.counts,
        steal_ns: stolen.map(|(before, after)| after.saturating_sub(before)),
    })
}

/// How far threadclock may be off before it asks the kernel again. By default it asks every 50 us,
/// which would fall into most trials; here it asks every 10 ms, and time that is stolen from a trial
/// counts as the trial's.
const CLOCK_BOUND_NS: u64 = 10_000_000;

/// The clock of the calling thread, just synchronised.
fn clock() -> ThreadClock {
    let clock = ThreadClock::for_this_thread();
    clock.set_error_bound_ns(CLOCK_BOUND_NS);
    clock.now();
    clock
}

fn take_policy(policy: Policy) -> Result<(), TrialError> {
    policy::take(policy).map_err(|errno| {
        let needs = policy::needs(policy);
        TrialError::Other(format!("cannot run under policy {policy}: {errno}; {needs}"))
    })
}
