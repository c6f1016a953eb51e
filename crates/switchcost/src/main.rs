//! switchcost: what a context switch costs here, and whether the number can be trusted.
//!
//! The program assembles `model` (arithmetic) and `probe` (kernel): `cli` is what may be typed,
//! `command` has one file a subcommand, `measure` runs a plan from its first case to its report.

mod bell;
mod build;
mod cli;
mod command;
mod failure;
mod instruments;
mod interrupt;
mod launch;
mod measure;
mod progress;
mod report;
mod resolve;
mod schedule;
mod store;
mod watch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match command::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => failure::tell(&error),
    }
}
