//! switchcost: what a context switch costs here, and whether the number can be trusted.
//!
//! The program assembles `model` (arithmetic) and `probe` (kernel): `cli` is what may be typed,
//! `command` has one file a subcommand, `measure` runs a plan from its first case to its report. Called
//! by the name of one of the papers' programs it acts as that (`classic`).

mod bell;
mod build;
mod classic;
mod cli;
mod command;
mod deadline;
mod failure;
mod figures;
mod hearing;
mod instruments;
mod interrupt;
mod known;
mod launch;
mod launcher;
mod measure;
mod not_started;
mod progress;
mod report;
mod resolve;
mod schedule;
mod session;
mod store;
mod subjects;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Started with SIGCHLD ignored, it could not wait for what it starts. This cannot fail.
    let _ = probe::default_child();
    if let Some(code) = classic::by_link(std::env::args_os()) {
        return code;
    }
    match command::launcher::called().unwrap_or_else(|| command::run(cli::Cli::of_arguments())) {
        Ok(code) => code,
        Err(error) => failure::tell(&error),
    }
}
