//! Trials: what is measured without a ring. Something is done many times in a fresh worker, and the
//! outcome of each time is kept. Each experiment has a file:
//!
//! - `calls` lists the calls that are timed, `loops` times them;
//! - `wakeup`, `gaps` and `sampling` look at sleeps, interruptions and ticks;
//! - `load` wakes workers on a schedule, beside busy tasks;
//! - `malloc` and `primes` repeat the experiments of Hines et al. (2000), `interference` that of
//!   Li, Ding and Shen (2007);
//! - `command` measures whole programs beside neighbours that preempt them;
//! - `harness` and `timing` are shared by all.

pub mod calls;
mod command;
mod gaps;
mod harness;
mod interference;
mod load;
mod loops;
mod malloc;
mod primes;
mod sampling;
mod timing;
mod wakeup;

use rundata::trial::{Trial, TrialCase, TrialSample};

pub use command::{check_fixed_addresses, check_process, check_timer, most_timer_hz, try_command};
pub use harness::TrialError;
pub use interference::{check_noise, wire};
pub use primes::primes as first_primes;

use crate::counters::steal_ns;
use crate::sys::{self, monotonic_raw_ns};

/// Deadline of one worker's trials, in seconds.
const DEADLINE_S: u32 = 600;

/// Takes the sample of a case in one round: `trials` trials of each thing that the case compares.
/// The calling process must be single-threaded and serve no other purpose.
pub(crate) fn run(
    case_number: usize,
    case: &TrialCase,
    round: u32,
    trials: u32,
) -> Result<TrialSample, TrialError> {
    sys::reset_alarm();
    sys::set_deadline(DEADLINE_S);
    harness::pin(case.cpu)?;
    // In a sampling trial only the sleeper has the policy, in an execution only the ring, in a
    // command only its neighbour.
    if !matches!(case.trial, Trial::Sampling { .. } | Trial::Execution(_) | Trial::Command(_)) {
        harness::take_policy(case.policy)?;
    }
    let cpus = case.cpus();
    let steal_before = steal_ns(&cpus);
    let (start_ns, start_ticks) = (monotonic_raw_ns(), threadclock::time_stamp_ordered());
    let outcome = match &case.trial {
        Trial::Call { call } => loops::time_calls(call, trials),
        Trial::Primes { primes } => primes::run(*primes, trials, round),
        Trial::Malloc { bytes, preload } => malloc::run(*bytes, preload.as_deref(), trials),
        Trial::Sampling { phase, duration_ns } => sampling::run(case, *phase, *duration_ns),
        Trial::Execution(execution) => interference::run(case_number, case, round, execution),
        Trial::Gaps { duration_ns } => gaps::run(case, *duration_ns),
        Trial::Wakeup(wakeup) => wakeup::run(wakeup, case.policy, round),
        Trial::Load(load) => load::run(load, round),
        Trial::Loop { call } => loops::time_loop(call, trials),
        Trial::TwoProcesses => loops::time_two_processes(trials),
        Trial::Command(command) => command::run(case, command, round, trials),
        Trial::Switches(_) => Err(TrialError("a trace is not measured by a worker".to_string())),
    }?;
    let (end_ns, end_ticks) = (monotonic_raw_ns(), threadclock::time_stamp_ordered());
    let stolen = steal_before.zip(steal_ns(&cpus));
    let elapsed_ticks = match (start_ticks, end_ticks) {
        // An outcome that was watched for a part of the time only has no ticks.
        (Some(start), Some(end)) if outcome.elapsed_ns.is_none() => Some(end.wrapping_sub(start)),
        _ => None,
    };
    Ok(TrialSample {
        case: case_number,
        round,
        elapsed_ns: outcome.elapsed_ns.unwrap_or(end_ns.saturating_sub(start_ns)),
        elapsed_ticks,
        tallies: outcome.tallies,
        sliced: outcome.sliced,
        gaps: outcome.gaps,
        counts: outcome.counts,
        steal_ns: stolen.map(|(before, after)| after.saturating_sub(before)),
    })
}
