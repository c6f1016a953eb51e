//! The probes that stand beside the ring: something is tried many times in a fresh worker, and the
//! outcome of each time is kept. One file an experiment.

pub mod calls;
mod command;
mod gaps;
mod harness;
mod interference;
mod loops;
mod malloc;
mod primes;
mod sampling;
mod timing;
mod wakeup;

use model::trial::{Case, Sample, Trial};

pub use command::{check_fixed_addresses, check_process, check_timer, most_timer_hz, try_command};
pub use harness::TrialError;
pub use interference::{check_noise, wire};
pub use primes::primes as first_primes;

use crate::counters::steal_ns;
use crate::sys::{self, monotonic_raw_ns};

/// Longest time that one worker's trials may take.
const DEADLINE_S: u32 = 600;

/// Takes the sample of a case in one round in the calling process, which is single-threaded and for
/// this alone: `trials` of each thing that is compared in it.
pub(crate) fn run(
    case_number: usize,
    case: &Case,
    round: u32,
    trials: u32,
) -> Result<Sample, TrialError> {
    sys::default_alarm();
    sys::deadline(DEADLINE_S);
    harness::pin(case.cpu)?;
    // The policy of a sampling trial is the sleeper's alone, that of an execution the ring's, that of
    // a command its neighbour's.
    if !matches!(case.trial, Trial::Sampling { .. } | Trial::Execution(_) | Trial::Command(_)) {
        harness::take_policy(case.policy)?;
    }
    let steal_before = steal_ns(&[case.cpu]);
    let (start_ns, start_ticks) = (monotonic_raw_ns(), threadclock::time_stamp_ordered());
    let outcome = match &case.trial {
        Trial::Call { call } => loops::time_calls(call, trials),
        Trial::Primes { primes } => primes::run(*primes, trials, round),
        Trial::Malloc { bytes, preload } => malloc::run(*bytes, preload.as_deref(), trials),
        Trial::Sampling { phase, duration_ns } => sampling::run(case, *phase, *duration_ns),
        Trial::Execution(execution) => interference::run(case_number, case, round, execution),
        Trial::Gaps { duration_ns } => gaps::run(case, *duration_ns),
        Trial::Wakeup(wakeup) => wakeup::run(wakeup, case.policy, round),
        Trial::Loop { call } => loops::time_loop(call, trials),
        Trial::TwoProcesses => loops::time_two_processes(trials),
        Trial::Command(command) => command::run(case, command, round, trials),
    }?;
    let (end_ns, end_ticks) = (monotonic_raw_ns(), threadclock::time_stamp_ordered());
    let stolen = steal_before.zip(steal_ns(&[case.cpu]));
    Ok(Sample {
        case: case_number,
        round,
        elapsed_ns: outcome.elapsed_ns.unwrap_or(end_ns.saturating_sub(start_ns)),
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
