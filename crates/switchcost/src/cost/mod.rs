//! `switchcost cost`: what a switch costs by working set.

pub(crate) mod args;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

use crate::setting::Here;
use crate::{execute, interference, watch};
use args::CostArgs;

pub(crate) fn run(args: &CostArgs) -> Result<ExitCode> {
    args.output.check()?;
    if args.interference.interference {
        return interference::run(&args.interference, args.laps, &args.effort, &args.output);
    }
    if args.program.pid.is_some() || !args.program.command.is_empty() {
        return watch::run(&args.program, &args.output);
    }
    let here = Here::detect()?;
    execute::new_run(plan::plan(args, &here)?, here, &args.output)
}
