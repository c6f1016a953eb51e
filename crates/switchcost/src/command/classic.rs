//! `switchcost classic`: the papers' own programs by name, Sloan's procedure, the links.

use std::process::ExitCode;

use anyhow::Result;

use crate::classic::{by_name, install, sweep};
use crate::cli::ClassicCommand;

pub(super) fn run(command: ClassicCommand) -> Result<ExitCode> {
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
