//! One file a subcommand.

mod clock;
mod compare;
mod cost;
mod history;
mod interference;
mod links;
mod measure;
mod report;
mod response;
mod ring;
mod runs;
mod schema;
mod shell;
mod worker;

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Cli, Command};

/// Does what was asked.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Measure(args) => measure::run(&args),
        Command::Ring(args) => ring::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::Clock(command) => clock::run(&command),
        Command::Classic(command) => crate::classic::run(command),
        Command::Response(args) => response::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::History(args) => history::run(&args),
        Command::Links(args) => links::run(&args),
        Command::Run(args) => crate::run::run(&args),
        Command::Runs(command) => runs::run(command),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man => shell::manual(),
        Command::Schema { name } => schema::run(name.as_deref()),
        Command::Worker { look: true, .. } => worker::look(),
        Command::Worker { parent, .. } => worker::run(parent),
    }
}
