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
use crate::setting::Here;
use args::RingArgs;

pub(crate) fn run(args: &RingArgs) -> Result<ExitCode> {
    args.output.check()?;
    let here = Here::detect()?;
    let planned = plan::plan(args, &here)?;
    match args.launches {
        1 => execute::new_run(planned, here, &args.output),
        count => launches::take(count, &planned, &here, &args.output),
    }
}
