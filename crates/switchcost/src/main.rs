//! switchcost: what a context switch costs here, and whether the number can be trusted.
//!
//! The program assembles `model` (arithmetic) and `probe` (kernel): `cli` is what may be typed,
//! `command` has one file a subcommand, `measure` runs a plan from its first case to its report. Called
//! by the name of one of the papers' programs it acts as that (`classic`).

mod build;
mod classic;
mod cli;
mod command;
mod deadline;
mod event;
mod experiments;
mod failure;
mod figures;
mod hearing;
mod interrupt;
mod known;
mod launch;
mod measure;
mod progress;
mod report;
mod resolve;
mod run;
mod schedule;
mod session;
mod store;
mod subjects;
mod watch;

use std::process::ExitCode;

use anyhow::Context;

fn main() -> ExitCode {
    // Started with SIGCHLD ignored, it could not wait for what it starts. This cannot fail.
    let _ = probe::default_child();
    if let Some(code) = ::classic::by_link(std::env::args_os()) {
        return code;
    }
    let done = match launcher::serve_if_asked() {
        Some(served) => served.map(|()| ExitCode::SUCCESS).context("the launcher"),
        None => command::run(cli::Cli::of_arguments()),
    };
    done.unwrap_or_else(|error| failure::tell(&error))
}
