//! Commands about programs of the user.
//!
//! - `run`: the time and the resources that commands use, and which is fastest.
//! - `profile`: the CPU time of each call of a command's allocator or functions.
//! - `sensitivity`: the cost of a preemption for a program.
//! - `watch` (`cost --pid`): the cost of a process's switches.

pub(crate) mod profile;
pub(crate) mod records;
pub(crate) mod run;
pub(crate) mod sensitivity;
pub(crate) mod watch;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;

use profile::ProfileArgs;
use run::RunArgs;

/// Commands that run programs and store no run.
#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    /// Run commands: what they use and their switches cost, which is fastest
    ///
    /// Each COMMAND is a whole command line, run by the shell. After -- comes one command with its
    /// arguments, run without a shell. hyperfine's options and formats work; docs/guide.md lists
    /// what differs.
    ///
    /// Reports real and CPU time, what getrusage(2) counts, run delay, migrations, bytes read and
    /// written, and threads, of the command alone. Standard streams, signals and the terminal are
    /// the command's; the report goes to standard error. The exit code is the command's: 128 + the
    /// signal that ended it, 127 if it was not found, 126 if it could not be run. Nothing is
    /// stored: --json keeps the figures, and `report` draws them.
    #[command(
        after_long_help = "Examples:\n  switchcost run -- make -j4\n  switchcost run 'gzip -1 -c \
             f' 'gzip -c f' 'xz -c f'\n  switchcost run -w 3 -p 'sync' 'grep -r x .' 'rg x'\n  \
             switchcost run -n 20 -- sleep 0.01\n  switchcost run --vs 'gzip -1 -c f' -- gzip -c \
             f\n  switchcost run -n 5 --parameter jobs 1,2,4 -- make -j{jobs}"
    )]
    Run(Box<RunArgs>),
    /// CPU time of each call of a command's allocator or functions
    ///
    /// A library is preloaded into the command and all that it starts (LD_PRELOAD). It times calls
    /// by the CPU time of their thread, without preemptions; what a wall clock would say is shown
    /// next to it. Intervals are over runs. The command has to be linked dynamically. The report
    /// goes to standard error, and the exit code is the command's. Nothing is stored: --json keeps
    /// all, with histograms, for `report` and `compare`.
    #[command(after_long_help = "Examples:\n  switchcost profile --malloc -- python3 -c \
             'list(range(10**6))'\n  switchcost profile --malloc --allocator libjemalloc.so.2 -- \
             sqlite3 db .dump\n  switchcost profile --calls write,fsync -n 10 -- ./server \
             --once")]
    #[command(
        mut_arg("csv", |arg| arg.help("Write one row a run, function and size as CSV to a file, \
             or - for standard output")),
        mut_arg("json", |arg| arg.help("Write all figures as JSON (`switchcost help schema profile`) \
             to a file, or - for standard output"))
    )]
    Profile(Box<ProfileArgs>),
}

impl ProgramCommand {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Run(args) => run::run(args),
            Self::Profile(args) => profile::run(args),
        }
    }
}

/// Serves as the launcher of commands if this process was started as that; `None` if it was not.
pub(crate) fn launcher_if_asked() -> Option<Result<ExitCode>> {
    let served = launcher::serve_if_asked()?;
    Some(served.map(|()| ExitCode::SUCCESS).context("the launcher"))
}
