//! `switchcost cost`: what a switch costs by working set.

use std::process::ExitCode;

use anyhow::Result;

use super::interference;
use crate::cli::CostArgs;
use crate::{measure, resolve, watch};

pub(super) fn run(args: &CostArgs) -> Result<ExitCode> {
    args.output.check()?;
    if args.interference.interference {
        return interference::run(args);
    }
    if args.program.pid.is_some() || !args.program.command.is_empty() {
        return watch::run(args);
    }
    let (machine, allowed) = measure::look_around()?;
    let (plan, notices) = resolve::cost::plan(args, &allowed, &machine)?;
    measure::new_run(plan, machine, &allowed, notices, &args.output)
}
