//! The probes that stand beside the ring: something is tried many times in a fresh worker, and the
//! outcome of each time is kept. One file an experiment.

mod batch;
mod call;
mod companion;
mod execution;
mod gaps;
mod loops;
mod malloc;
mod noise;
mod overhead;
mod primes;
mod sampling;
mod slices;
mod two_processes;
mod usage;
mod wakeup;

use std::collections::BTreeMap;

use model::case::Policy;
use model::trial::{Case, Gap, Sample, Sliced, Tally, Trial};
use rustix::io::Errno;
use threadclock::ThreadClock;

pub use loops::{SIGNAL_LOOPS, SYSTEM_CALLS};
pub use noise::{check_noise, wire};
pub use overhead::{CALLS, Registered, available};
pub use primes::primes as first_primes;

use crate::counters::steal_ns;
use crate::placement;
use crate::policy;
use crate::sys::{self, monotonic_raw_ns};
use slices::Cut;

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
    /// The CPU cannot be had.
    #[error("cannot run on CPU {cpu}: {errno} (sched_setaffinity)")]
    Affinity {
        /// Which.
        cpu: u32,
        /// Why.
        errno: Errno,
    },
    /// The policy cannot be had.
    #[error("cannot run under policy {policy}: {errno}; {needs}")]
    Policy {
        /// Which.
        policy: Policy,
        /// Why.
        errno: Errno,
        /// What it needs.
        needs: String,
    },
    /// No further process.
    #[error("cannot fork: {0}")]
    Fork(Errno),
    /// No such call.
    #[error("no call named '{name}' is known (see `switchcost clock overhead --help`)")]
    UnknownCall {
        /// The name.
        name: String,
    },
    /// A call that this machine does not have.
    #[error("{name} is not to be had here: {why}")]
    Unavailable {
        /// The call.
        name: &'static str,
        /// Why not.
        why: String,
    },
    /// No time stamp.
    #[error(
        "this processor has no time-stamp counter that user space can read: nothing so short can be timed"
    )]
    NoCounter,
    /// The case is of another experiment.
    #[error("the case is not of this experiment")]
    WrongTrial,
    /// malloc failed.
    #[error(
        "malloc gave no {bytes} bytes: {blocks} such blocks do not fit; ask for smaller ones or fewer --trials"
    )]
    NoMemory {
        /// Size of a block.
        bytes: usize,
        /// How many were wanted.
        blocks: u32,
    },
    /// A file of the kernel's that cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// Which.
        path: &'static str,
        /// Why.
        error: String,
    },
    /// The dynamic linker did not take the library.
    #[error(
        "{library} was not loaded: the dynamic linker does not find it (name its path, or install it; LD_DEBUG=libs shows where it looks)"
    )]
    NotPreloaded {
        /// As it was asked for.
        library: String,
    },
    /// The tick cannot be seen.
    #[error(
        "no timer tick was seen on CPU {cpu} within {waited_ms} ms: the kernel does not account by ticks there (nohz_full, or precise accounting), so nothing is sampled that could go wrong"
    )]
    NoTick {
        /// Where.
        cpu: u32,
        /// For how long it was looked for.
        waited_ms: u64,
    },
    /// Signals were lost.
    #[error("of {sent} signals that were sent {caught} were caught: each should be caught once")]
    NotCaught {
        /// Sent.
        sent: u64,
        /// Caught by a handler.
        caught: u64,
    },
    /// The kernel refused something that the trial needs.
    #[error("{call}: {errno}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Why.
        errno: Errno,
    },
    /// No loopback network.
    #[error(
        "no datagram can be sent to this machine itself: {0} (ip link set lo up; or another --noise)"
    )]
    NoLoopback(String),
    /// No pair of virtual devices.
    #[error("cannot make a pair of virtual network devices (veth): {0}")]
    NoWire(Errno),
    /// The ring did not run.
    #[error("{0}")]
    Ring(String),
    /// A process that was watched did not say what it did.
    #[error("the {process} ended without a word: {why}")]
    Lost {
        /// Which.
        process: &'static str,
        /// What is known.
        why: String,
    },
}

impl TrialError {
    fn no_loopback(error: std::io::Error) -> Self {
        Self::NoLoopback(error.to_string())
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
    let outcome = match case.trial {
        Trial::Call { .. } => overhead::run(case, trials),
        Trial::Primes { .. } => primes::run(case, trials, assignment.round),
        Trial::Malloc { .. } => malloc::run(case, trials),
        Trial::Sampling { .. } => sampling::run(case),
        Trial::Execution(_) => execution::run(assignment),
        Trial::Gaps { .. } => gaps::run(case),
        Trial::Wakeup(_) => wakeup::run(assignment),
        Trial::Loop { .. } => loops::run(case, trials),
        Trial::TwoProcesses => two_processes::run(trials),
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
    policy::take(policy).map_err(|errno| TrialError::Policy {
        policy,
        errno,
        needs: policy::needs(policy),
    })
}
