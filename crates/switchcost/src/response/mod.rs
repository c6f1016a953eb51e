//! `switchcost response`: what a kernel's response time is made of.

pub(crate) mod args;
pub(crate) mod delays;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

use crate::execute;
use crate::setting::Here;
use args::ResponseArgs;

pub(crate) fn run(args: &ResponseArgs) -> Result<ExitCode> {
    args.output.check()?;
    let here = Here::detect()?;
    execute::new_run(plan::plan(args, &here)?, here, &args.output)
}
