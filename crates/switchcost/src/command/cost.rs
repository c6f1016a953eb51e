//! `switchcost cost`: what a switch costs with a working set (Li, Ding and Shen 2007).

use std::process::ExitCode;

use anyhow::Result;

use super::{interference, program};
use crate::cli::CostArgs;
use crate::failure::usage;

pub(super) fn run(args: &CostArgs) -> Result<ExitCode> {
    args.output.check()?;
    if args.interference.interference {
        return interference::run(args);
    }
    if args.program.pid.is_some() || !args.program.command.is_empty() {
        return program::run(args);
    }
    Err(usage("cost: one of --interference, --pid PID and -- CMD is wanted"))
}
