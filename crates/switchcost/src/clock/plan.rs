//! `switchcost clock`, from what was typed to plans.

use std::process::Command;

use anyhow::{Context, Result};
use model::case::Policy;
use model::experiment::Experiment;
use model::plan::{Batching, Plan};
use model::trial::{Case, Phase, Repeats, Trial};
use probe::policy;
use probe::trial::{self, CALLS};

use super::{ClockCommand, Common, MallocArgs, OverheadArgs, PrimesArgs, SamplingArgs};
use crate::failure::usage;
use crate::setting::{Here, Planned};
use crate::values::nanoseconds;

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
    policy: Policy,
    repeats: u32,
    (common, here): (&Common, &Here),
) -> Result<Plan> {
    let cpu = here.cpu(common.place.cpu)?;
    let cases = trials.into_iter().map(|trial| Case { trial, cpu, policy });
    let batching = Batching::of_trials(Repeats { trials: repeats });
    Ok(common.effort.plan(experiment, cases, batching))
}

/// A note on each call that this machine does not have is with the plan.
pub(crate) fn overhead(args: &OverheadArgs, here: &Here) -> Result<Planned> {
    let all = trial::available(CALLS).context("cannot look which calls there are")?;
    let mut notices = Vec::new();
    let mut trials = Vec::new();
    for (call, why_not) in &all {
        let is_asked = args.calls.is_empty() || args.calls.iter().any(|name| name == call.name);
        match why_not {
            _ if !is_asked => {}
            None => trials.push(Trial::Call { call: call.name.to_string() }),
            Some(why) => notices.push(format!("{} is not available here: {why}", call.name)),
        }
    }
    if trials.is_empty() {
        return Err(usage(format!("--calls: {}", notices.join("; "))));
    }
    let at = (&args.common, here);
    let plan = planned(Experiment::ClockOverhead, trials, Policy::Other, args.trials, at)?;
    Ok((plan, notices))
}

fn primes(args: &PrimesArgs, here: &Here) -> Result<Planned> {
    // Beyond it even a few trials would run into the worker's deadline.
    const MOST: u32 = 100_000;
    if let Some(many) = args.primes.0.iter().find(|count| **count > MOST) {
        return Err(usage(format!("--primes {many}: accepted are 1 to {MOST}")));
    }
    let trials = args.primes.0.iter().map(|primes| Trial::Primes { primes: *primes }).collect();
    let at = (&args.common, here);
    let plan = planned(Experiment::ClockPrimes, trials, Policy::Other, args.trials, at)?;
    Ok((plan, Vec::new()))
}

fn malloc(args: &MallocArgs, here: &Here) -> Result<Planned> {
    args.preload.iter().try_for_each(|library| check_preload(library))?;
    let largest = args.sizes.0.iter().max().copied().unwrap_or(0);
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
        args.sizes.0.iter().map(malloc)
    });
    let (trials, repeats, at) = (trials.collect(), args.trials, (&args.common, here));
    Ok((planned(Experiment::ClockMalloc, trials, Policy::Other, repeats, at)?, Vec::new()))
}

/// The dynamic linker passes over what it cannot load with a message: better once here than in every
/// worker.
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
    let (policy, notice) = match policy::check(Policy::Fifo) {
        Ok(()) => (Policy::Fifo, None),
        Err(errno) => {
            let notice = format!(
                "the sleeper runs under the normal policy, so the burner may delay it into the tick: \
                 fifo: {errno}; {}",
                policy::needs(Policy::Fifo)
            );
            (Policy::Other, Some(notice))
        }
    };
    let phases = [Phase::AcrossTicks, Phase::Anywhere];
    let trials = phases.map(|phase| Trial::Sampling { phase, duration_ns }).to_vec();
    let at = (&args.common, here);
    let plan = planned(Experiment::ClockSampling, trials, policy, 1, at)?;
    Ok((plan, notice.into_iter().collect()))
}
