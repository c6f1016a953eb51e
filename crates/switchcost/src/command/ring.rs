//! `switchcost ring`: Sloan's pipeline, generalised.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;

use model::machine::Machine;
use model::plan::Plan;
use model::run::Launch;

use crate::cli::{Output, RingArgs};
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::{measure, report, resolve};

pub(super) fn run(args: &RingArgs) -> Result<ExitCode> {
    args.output.check()?;
    let (machine, allowed) = measure::look_around()?;
    let (plan, notices) = resolve::ring::plan(args, &allowed, &machine)?;
    match args.launches {
        1 => measure::new_run(plan, machine, &allowed, notices, &args.output),
        count => launches(count, plan, &machine, &allowed, &notices, &args.output),
    }
}

/// The same plan so many times, each with a seed of its own, and what all of them say together.
fn launches(
    count: u32,
    plan: Plan,
    machine: &Machine,
    allowed: &[u32],
    notices: &[String],
    output: &Output,
) -> Result<ExitCode> {
    if output.json.is_some() || output.csv.is_some() || output.plot {
        return Err(usage(
            "--launches: each launch is a run of its own: write it by `runs export` or `runs show` (accepted here: \
             no --json, --csv, --plot)",
        ));
    }
    let interrupt = Interrupt::watch()?;
    let set = measure::run_name(plan.experiment, SystemTime::now());
    let (mut runs, mut whole) = (Vec::new(), true);
    for number in 1..=count {
        let plan = Plan { seed: plan.seed.wrapping_add(u64::from(number) - 1), ..plan.clone() };
        let progress = Progress::new(&plan, output.quiet);
        let launch = Launch { set: set.clone(), number, of: count };
        let taken = measure::take_launch(
            plan,
            machine.clone(),
            allowed,
            notices.to_vec(),
            &interrupt,
            progress,
            Some(launch),
        );
        whole &= taken.is_whole();
        let path = taken.path.clone();
        runs.push((taken.run, path));
        if let Some(code) = interrupt.exit_code() {
            report::launches::write(&runs, output)?;
            return Ok(ExitCode::from(code));
        }
    }
    report::launches::write(&runs, output)?;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
