//! `switchcost clock`, from what was typed to plans.

use std::process::Command;

use anyhow::{Context, Result};
use model::case::Policy;
use model::experiment::Experiment;
use model::plan::Batching;
use model::trial::{Case, Phase, Repeats, Trial};
use probe::policy;
use probe::trial::{self, CALLS, Registered};

use super::{ClockCommand, Common, MallocArgs, OverheadArgs, PrimesArgs, SamplingArgs};
use crate::base::failure::usage;
use crate::base::values::nanoseconds;
use crate::engine::setting::{self, Here, Planned};

/// The plan of a command, and a note on what is not available here.
pub(crate) fn plan(command: &ClockCommand, here: &Here) -> Result<Planned> {
    match command {
        ClockCommand::Overhead(args) => overhead(args, here),
        ClockCommand::Primes(args) => primes(args, here),
        ClockCommand::Malloc(args) => malloc(args, here),
        ClockCommand::Sampling(args) => sampling(args, here),
    }
}

fn planned(
    experiment: Experiment,
    trials: Vec<Trial>,
    (policy, repeats): (Policy, u32),
    notices: Vec<String>,
    (common, here): (&Common, &Here),
) -> Result<Planned> {
    let cpu = here.cpu(common.cpu)?;
    let cases = trials.into_iter().map(|trial| Case { trial, cpu, policy });
    let batching = Batching::of_trials(Repeats { trials: repeats });
    Ok((common.effort.plan(experiment, cases, batching), notices))
}

/// The names of those of these calls that are asked for and available here, and a note on each
/// other one that is asked for.
pub(crate) fn available(
    calls: &'static [Registered],
    is_asked: impl Fn(&str) -> bool,
) -> Result<(Vec<String>, Vec<String>)> {
    let all = trial::available(calls).context("cannot look which calls there are")?;
    let (mut names, mut notices) = (Vec::new(), Vec::new());
    for (call, why_not) in all.into_iter().filter(|(call, _)| is_asked(call.name)) {
        match why_not {
            None => names.push(call.name.to_string()),
            Some(why) => notices.push(format!("{} is not available here: {why}", call.name)),
        }
    }
    Ok((names, notices))
}

/// A note on each call that this machine does not have is with the plan.
pub(crate) fn overhead(args: &OverheadArgs, here: &Here) -> Result<Planned> {
    let is_asked = |name: &str| args.calls.is_empty() || args.calls.iter().any(|one| one == name);
    let (calls, notices) = available(CALLS, is_asked)?;
    if calls.is_empty() {
        return Err(usage(format!("--calls: {}", notices.join("; "))));
    }
    let trials = calls.into_iter().map(|call| Trial::Call { call }).collect();
    let (how, at) = ((Policy::Other, args.trials), (&args.common, here));
    planned(Experiment::ClockOverhead, trials, how, notices, at)
}

fn primes(args: &PrimesArgs, here: &Here) -> Result<Planned> {
    // Beyond it even a few trials would run into the worker's deadline.
    const MOST: u32 = 100_000;
    if let Some(many) = args.primes.iter().find(|count| **count > MOST) {
        return Err(usage(format!("--primes {many}: accepted are 1 to {MOST}")));
    }
    let trials = args.primes.iter().map(|primes| Trial::Primes { primes: *primes }).collect();
    let (how, at) = ((Policy::Other, args.trials), (&args.common, here));
    planned(Experiment::ClockPrimes, trials, how, Vec::new(), at)
}

fn malloc(args: &MallocArgs, here: &Here) -> Result<Planned> {
    args.preload.iter().try_for_each(|library| check_preload(library))?;
    let largest = args.sizes.iter().max().copied().unwrap_or(0);
    // What an allocator adds to a block, and what is noted of it.
    let each = u128::from(largest) + 96;
    here.check_memory(
        &format!("--sizes {largest} with --trials {}", args.trials),
        each * u128::from(args.trials),
        "smaller --sizes or fewer --trials",
    )?;
    let allocators = std::iter::once(None).chain(args.preload.iter().cloned().map(Some));
    let trials = allocators.flat_map(|preload| {
        let malloc =
            move |bytes: &u32| Trial::Malloc { bytes: u64::from(*bytes), preload: preload.clone() };
        args.sizes.iter().map(malloc)
    });
    let (how, at) = ((Policy::Other, args.trials), (&args.common, here));
    planned(Experiment::ClockMalloc, trials.collect(), how, Vec::new(), at)
}

/// The dynamic linker passes over what it cannot load with a message: better once here than in
/// every worker.
fn check_preload(library: &str) -> Result<()> {
    if library.trim().is_empty() {
        return Err(usage(format!("--preload '{library}': the name of a library is wanted")));
    }
    let tried = Command::new("/proc/self/exe")
        .arg("--version")
        .env("LD_PRELOAD", library)
        .output()
        .context("cannot try --preload: /proc/self/exe (is /proc mounted?)")?;
    let said = String::from_utf8_lossy(&tried.stderr);
    match said.lines().next() {
        None if tried.status.success() => Ok(()),
        word => Err(usage(format!(
            "--preload {library}: {} (accepted: a path, or a name that the dynamic linker finds)",
            word.unwrap_or("this program does not start with it")
        ))),
    }
}

fn sampling(args: &SamplingArgs, here: &Here) -> Result<Planned> {
    let duration_ns = nanoseconds(args.duration);
    if !(100_000_000..=300_000_000_000).contains(&duration_ns) {
        return Err(usage(format!(
            "--duration {}: accepted are 100ms to 5m",
            humantime::format_duration(args.duration)
        )));
    }
    let why = policy::check(Policy::Fifo).err().map(setting::no_fifo);
    let policy = if why.is_some() { Policy::Other } else { Policy::Fifo };
    let notice = why.map(|why| {
        format!(
            "the sleeper runs under SCHED_OTHER, so the burner may delay it into the tick: {why}"
        )
    });
    let phases = [Phase::AcrossTicks, Phase::Anywhere];
    let trials = phases.map(|phase| Trial::Sampling { phase, duration_ns }).to_vec();
    let (notices, at) = (notice.into_iter().collect(), (&args.common, here));
    planned(Experiment::ClockSampling, trials, (policy, 1), notices, at)
}
