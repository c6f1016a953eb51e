//! `switchcost classic`: the papers' own programs by name, Sloan's procedure, the links.

mod arguments;
mod graph;
mod install;
mod sweep;

use std::process::ExitCode;

use ::classic::by_name;
use anyhow::Result;

pub(crate) use arguments::ClassicCommand;
use arguments::{InstallArgs, SweepArgs};

pub(crate) fn run(command: ClassicCommand) -> Result<ExitCode> {
    use ClassicCommand::*;
    let (name, words) = match command {
        Sweep(args) => return sweep::run(&args),
        Install(args) => return install::run(&args),
        Getrusage(args) => return Ok(by_name("getrusage", args.words.words, args.parent)),
        Pipeline(args) => ("pipeline", args),
        Times(args) => ("times", args),
        Simsyscall(args) => ("simsyscall", args),
        Simsig(args) => ("simsig", args),
        Twosig(args) => ("twosig", args),
        TestCycles(args) => ("test_cycles", args),
        Primes(args) => ("primes", args),
        MallocStats(args) => ("malloc_stats", args),
    };
    Ok(by_name(name, words.words, None))
}
