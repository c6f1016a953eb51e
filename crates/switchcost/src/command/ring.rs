//! `switchcost ring`: Sloan's pipeline, generalised.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::RingArgs;
use crate::{measure, resolve};

pub(super) fn run(args: &RingArgs) -> Result<ExitCode> {
    args.output.check()?;
    let (machine, allowed) = measure::look_around()?;
    let (plan, notices) = resolve::ring::plan(args, &allowed, &machine)?;
    measure::new_run(plan, machine, &allowed, notices, &args.output)
}
