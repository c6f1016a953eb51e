//! `switchcost clock`, from what was typed to plans.

use std::process::Command;

use anyhow::{Context, Result};
use model::case::{self, Policy};
use model::experiment::Experiment;
use model::plan::{Batching, Plan};
use model::speed::Reference;
use model::trial::{Case, Phase, Repeats, Trial};
use probe::policy;
use probe::trial::{self, CALLS};

use super::args::{MallocArgs, OverheadArgs, PrimesArgs, SamplingArgs};
use crate::effort::Effort;
use crate::execute::Planned;
use crate::failure::usage;
use crate::setting::Here;

fn plan(
    experiment: Experiment,
    trials: Vec<Trial>,
    cpu: u32,
    repeats: u32,
    effort: &Effort,
) -> Plan {
    let case = |trial| Case { trial, cpu, policy: Policy::Other }.into();
    Plan {
        experiment,
        cases: trials.into_iter().map(case).collect(),
        seed: effort.seed,
        batching: Batching::of_trials(Repeats { trials: repeats }),
        stopping: effort.stopping(),
        reference: Reference::default(),
    }
}

/// The plan of `clock overhead`, and a word on each call that this machine does not have.
pub(crate) fn overhead(args: &OverheadArgs, here: &Here) -> Result<Planned> {
    let cpu = here.cpu(args.place.cpu)?;
    let all = trial::available(CALLS).context("cannot look which calls there are")?;
    let mut notices = Vec::new();
    let mut trials = Vec::new();
    for (call, why_not) in &all {
        let is_asked = args.calls.is_empty() || args.calls.iter().any(|name| name == call.name);
        match why_not {
            _ if !is_asked => {}
            None => trials.push(Trial::Call { call: call.name.to_string() }),
            Some(why) => notices.push(format!("{} is not to be had here: {why}", call.name)),
        }
    }
    if trials.is_empty() {
        return Err(usage(format!("--calls: {}", notices.join("; "))));
    }
    Ok((plan(Experiment::ClockOverhead, trials, cpu, args.trials, &args.effort), notices))
}

/// The plan of `clock primes`.
pub(crate) fn primes(args: &PrimesArgs, here: &Here) -> Result<Plan> {
    let cpu = here.cpu(args.place.cpu)?;
    // Beyond it even a few trials would run into the worker's deadline.
    const MOST: u32 = 100_000;
    if let Some(many) = args.primes.0.iter().find(|count| **count > MOST) {
        return Err(usage(format!("--primes {many}: accepted are 1 to {MOST}")));
    }
    let trials = args.primes.0.iter().map(|primes| Trial::Primes { primes: *primes }).collect();
    Ok(plan(Experiment::ClockPrimes, trials, cpu, args.trials, &args.effort))
}

/// The plan of `clock malloc`.
pub(crate) fn malloc(args: &MallocArgs, here: &Here) -> Result<Plan> {
    let cpu = here.cpu(args.place.cpu)?;
    args.preload.iter().try_for_each(|library| check_preload(library))?;
    let largest = args.sizes.0.iter().max().copied().unwrap_or(0);
    // What an allocator adds to a block, and what is noted of it.
    let each = u128::from(largest) + 96;
    here.check_memory(
        &format!("--sizes {largest} with --trials {}", args.trials),
        each * u128::from(args.trials),
        "smaller --sizes or fewer --trials",
    )?;
    let allocators: Vec<Option<String>> =
        std::iter::once(None).chain(args.preload.iter().cloned().map(Some)).collect();
    let trials = allocators.iter().flat_map(|preload| {
        let sizes = args.sizes.0.iter();
        sizes.map(|bytes| Trial::Malloc { bytes: u64::from(*bytes), preload: preload.clone() })
    });
    Ok(plan(Experiment::ClockMalloc, trials.collect(), cpu, args.trials, &args.effort))
}

/// The dynamic linker passes over what it cannot load with a word: better once here than in every
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

/// The plan of `clock sampling`, and a word on what was not granted.
pub(crate) fn sampling(args: &SamplingArgs, here: &Here) -> Result<Planned> {
    let cpu = here.cpu(args.place.cpu)?;
    let duration_ns = u64::try_from(args.duration.as_nanos()).unwrap_or(u64::MAX);
    const LONGEST_NS: u64 = 300_000_000_000;
    if !(100_000_000..=LONGEST_NS).contains(&duration_ns) {
        return Err(usage(format!(
            "--duration {}: accepted are 100ms to 5m",
            humantime::format_duration(args.duration)
        )));
    }
    let phases = [Phase::AcrossTicks, Phase::Anywhere];
    let trials = phases.map(|phase| Trial::Sampling { phase, duration_ns }).to_vec();
    let mut plan = plan(Experiment::ClockSampling, trials, cpu, 1, &args.effort);
    let fifo = policy::check(Policy::Fifo);
    let mut notices = Vec::new();
    let real_time = |case: &mut case::Case| {
        if let case::Case::Trial(case) = case {
            case.policy = Policy::Fifo;
        }
    };
    match fifo {
        Ok(()) => plan.cases.iter_mut().for_each(real_time),
        Err(errno) => notices.push(format!(
            "the sleeper runs under the normal policy, so the burner may delay it into the tick: \
             fifo: {errno}; {}",
            policy::needs(Policy::Fifo)
        )),
    }
    Ok((plan, notices))
}
