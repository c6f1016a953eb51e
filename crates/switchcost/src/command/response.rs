//! `switchcost response`: what a kernel's response time is made of.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::ResponseArgs;
use crate::resolve::clock::Here;
use crate::{measure, resolve};

pub(super) fn run(args: &ResponseArgs) -> Result<ExitCode> {
    args.output.check()?;
    let (machine, allowed) = measure::look_around()?;
    let here = Here { allowed: &allowed, machine: &machine };
    let (plan, notices) = resolve::response::plan(args, &here)?;
    measure::new_run(plan, machine, &allowed, notices, &args.output)
}
