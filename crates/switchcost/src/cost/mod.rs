//! `switchcost cost`: what a switch costs by working set.

pub(crate) mod args;
pub(crate) mod figures;
mod grid;
mod heat;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

use crate::{execute, interference, watch};
use args::CostArgs;

pub(crate) fn run(args: &CostArgs) -> Result<ExitCode> {
    args.output.check()?;
    if args.interference.interference {
        return interference::run(args);
    }
    if args.program.pid.is_some() || !args.program.command.is_empty() {
        return watch::run(args);
    }
    let (machine, allowed) = execute::look_around()?;
    let (plan, notices) = plan::plan(args, &allowed, &machine)?;
    execute::new_run(plan, machine, &allowed, notices, &args.output)
}
