//! `switchcost clock`: the experiments of Hines, Wyatt and Chang (2000).

pub(crate) mod args;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

use crate::execute;
use crate::output::Output;
use crate::setting::Here;
use args::ClockCommand;

pub(crate) fn run(command: &ClockCommand) -> Result<ExitCode> {
    output(command).check()?;
    let here = Here::detect()?;
    let planned = match command {
        ClockCommand::Overhead(args) => plan::overhead(args, &here)?,
        ClockCommand::Primes(args) => (plan::primes(args, &here)?, Vec::new()),
        ClockCommand::Malloc(args) => (plan::malloc(args, &here)?, Vec::new()),
        ClockCommand::Sampling(args) => plan::sampling(args, &here)?,
    };
    execute::new_run(planned, here, output(command))
}

fn output(command: &ClockCommand) -> &Output {
    match command {
        ClockCommand::Overhead(args) => &args.output,
        ClockCommand::Primes(args) => &args.output,
        ClockCommand::Malloc(args) => &args.output,
        ClockCommand::Sampling(args) => &args.output,
    }
}
