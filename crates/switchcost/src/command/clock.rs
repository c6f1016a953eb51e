//! `switchcost clock`: the experiments of Hines, Wyatt and Chang (2000).

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{ClockCommand, Output};
use crate::measure;
use crate::resolve::clock::{self, Here};

pub(super) fn run(command: &ClockCommand) -> Result<ExitCode> {
    output(command).check()?;
    let (machine, allowed) = measure::look_around()?;
    let here = Here { allowed: &allowed, machine: &machine };
    let (plan, notices) = match command {
        ClockCommand::Overhead(args) => clock::overhead(args, &here)?,
        ClockCommand::Primes(args) => (clock::primes(args, &here)?, Vec::new()),
        ClockCommand::Malloc(args) => (clock::malloc(args, &here)?, Vec::new()),
        ClockCommand::Sampling(args) => clock::sampling(args, &here)?,
    };
    measure::new_run(plan, machine, &allowed, notices, output(command))
}

fn output(command: &ClockCommand) -> &Output {
    match command {
        ClockCommand::Overhead(args) => &args.output,
        ClockCommand::Primes(args) => &args.output,
        ClockCommand::Malloc(args) => &args.output,
        ClockCommand::Sampling(args) => &args.output,
    }
}
