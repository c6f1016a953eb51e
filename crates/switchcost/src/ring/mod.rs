//! `switchcost ring`: Sloan's pipeline, generalised.

pub(crate) mod args;
pub(crate) mod comparison;
pub(crate) mod figures;
mod launches;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

use crate::execute;
use args::RingArgs;

pub(crate) fn run(args: &RingArgs) -> Result<ExitCode> {
    args.output.check()?;
    let (machine, allowed) = execute::look_around()?;
    let (plan, notices) = plan::plan(args, &allowed, &machine)?;
    match args.launches {
        1 => execute::new_run(plan, machine, &allowed, notices, &args.output),
        count => launches::take(count, plan, &machine, &allowed, &notices, &args.output),
    }
}
