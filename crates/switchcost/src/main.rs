//! switchcost: what a context switch costs here, and whether the number can be trusted.
//!
//! The program assembles `model` (arithmetic) and `probe` (kernel). Each experiment is a folder: its `mod` is
//! what may be typed, `plan` the plan from it, `table` and `figures` what is shown. `experiments` is the registry
//! above them: it runs their plans by `execute` and prints, draws and exports what came of them. `cli` is the root
//! of all arguments. Called by the name of one of the papers' programs it acts as that (`classic`).

mod classic;
mod cli;
mod clock;
mod compare;
mod cost;
mod effort;
mod execute;
mod experiments;
mod failure;
mod figures;
mod fleet;
mod history;
mod interference;
mod interrupt;
mod launch;
mod links;
mod live;
mod measure;
mod output;
mod price;
mod profile;
mod progress;
mod report;
mod response;
mod ring;
mod run;
mod runs;
mod schedule;
mod schema;
mod secrets;
mod session;
mod setting;
mod store;
mod terminal;
mod top;
mod trace;
mod trend;
mod values;
mod watch;
mod worker_output;

use std::process::ExitCode;

use anyhow::Context;

fn main() -> ExitCode {
    // Started with SIGCHLD ignored, it could not wait for what it starts. Neither of these can fail.
    let _ = probe::default_child();
    let _ = probe::ignore_file_limit();
    if let Some(code) = ::classic::by_link(std::env::args_os()) {
        return code;
    }
    let launcher = || {
        let served = launcher::serve_if_asked()?;
        Some(served.map(|()| ExitCode::SUCCESS).context("the launcher"))
    };
    let hidden = launch::worker_if_asked().or_else(launcher);
    let done = hidden.unwrap_or_else(|| cli::run(cli::Cli::of_arguments()));
    done.unwrap_or_else(|error| failure::tell(&error))
}
