//! `switchcost classic`: the programs of the papers by their names, and Sloan's procedure.
//!
//! ```text
//! classic pipeline 1000 4        a program of a paper, with its own arguments and exit codes
//! classic sweep                  Sloan's procedure: pipelines of several sizes, a table, a graph
//! classic experiment primes      an experiment of a paper with this program's own means
//! classic install DIR            links: `pipeline 1000 4` is then a command of its own
//! ```

mod sweep;

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use ::classic::by_name;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::base::failure::usage;
use crate::base::values::{Destination, List, above_zero, counts};
use crate::documents::interference::{self, InterferenceCommand};
use crate::documents::paper::PaperCommand;
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::report::output::{OutputOptions, file, print_text};

/// Runs a command of `classic`; an experiment is measured by `measure`.
pub(crate) fn run(
    command: ClassicCommand,
    measure: fn(ExperimentCommand) -> Result<ExitCode>,
) -> Result<ExitCode> {
    use ClassicCommand::*;
    let (name, arguments) = match command {
        Experiment(command) => return measure(*command),
        Sweep(args) => return sweep::run(&args),
        Install(args) => return install(&args),
        Getrusage(args) => {
            return Ok(by_name("getrusage", args.arguments.arguments, args.parent));
        }
        Pipeline(args) => ("pipeline", args),
        Times(args) => ("times", args),
        Simsyscall(args) => ("simsyscall", args),
        Simsig(args) => ("simsig", args),
        Twosig(args) => ("twosig", args),
        TestCycles(args) => ("test_cycles", args),
        Primes(args) => ("primes", args),
        MallocStats(args) => ("malloc_stats", args),
    };
    Ok(by_name(name, arguments.arguments, None))
}

#[expect(
    rustdoc::broken_intra_doc_links,
    reason = "the brackets are of optional arguments, in the help"
)]
#[derive(Debug, Subcommand)]
pub(crate) enum ClassicCommand {
    /// Pass a character round a ring of processes: pipeline CHARS COUNT (Sloan 1992)
    ///
    /// COUNT processes, two or more, pass a character round through pipes, CHARS times. It prints
    /// nothing. Exit codes: 1 two arguments are needed; 2 CHARS is below 1; 3 COUNT is below 2; 4,
    /// 5 no pipe; 6 no fork or no first write; 12, 13, 14 the ring broke.
    Pipeline(ProgramArguments),
    /// Run a program and print its getrusage structure (Sloan 1992)
    ///
    /// The program is named by its path: PATH is not searched. The figures go to standard error.
    /// The exit code is the program's, 127 if a signal ended it or it could not be run.
    Getrusage(WatchedArguments),
    /// Run a program and print its times in clock ticks and converted (Sloan 1992)
    ///
    /// It is getrusage's counterpart by times(2).
    Times(ProgramArguments),
    /// Time a system call: simsyscall [LOOPS] (VENIX 1984)
    Simsyscall(ProgramArguments),
    /// Time a signal to oneself: simsig [LOOPS] (VENIX 1984)
    Simsig(ProgramArguments),
    /// Time a signal to and fro between two processes: twosig [LOOPS] (VENIX 1984)
    Twosig(ProgramArguments),
    /// Time getrusage() and getpinfo() in ticks: test_cycles [TRIALS] (Hines et al. 2000)
    #[command(name = "test_cycles")]
    TestCycles(ProgramArguments),
    /// Time the first primes by both: primes [PRIMES [TRIALS]] (Hines et al. 2000)
    ///
    /// Without arguments as in the paper: 100 to 5000 primes by 100, 1000 trials of each by either
    /// call. That takes about a minute.
    Primes(ProgramArguments),
    /// Time malloc by getpinfo(): malloc_stats [BYTES [TRIALS]] (Hines et al. 2000)
    ///
    /// Without arguments as in the paper: 100 to 5000 bytes by 100, 1000 blocks of each.
    #[command(name = "malloc_stats")]
    MallocStats(ProgramArguments),
    /// Experiments that only the papers ask for: interference, primes, malloc, sampling
    ///
    /// Measured with this program's own means: intervals, stored runs, reports.
    #[command(subcommand)]
    #[command(after_long_help = "Example:\n  switchcost classic experiment sampling")]
    Experiment(Box<ExperimentCommand>),
    /// Sloan's whole procedure: `getrusage pipeline` for each number of processes, table and graph
    Sweep(SweepArgs),
    /// Make links by which this program is called by the originals' names
    ///
    /// Called through a link named pipeline, getrusage, times, ... it acts as that program. The
    /// links are symbolic.
    Install(InstallArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Does a disturbance reach the measurement? (Li, Ding and Shen 2007, tables 1 and 2)
    ///
    /// Compares execution times of a ring of two, quiet and disturbed. In the augmented setting it
    /// is alone on its CPU with a real-time policy; in the plain one all share one CPU under
    /// SCHED_OTHER.
    #[command(after_long_help = "Example:\n  switchcost classic experiment interference --noise \
             cpu --runs 4")]
    Interference(InterferenceCommand),
    #[command(flatten)]
    Paper(PaperCommand),
}

impl ExperimentCommand {
    /// Returns where the results go.
    pub(crate) fn output(&self) -> &OutputOptions {
        match self {
            Self::Interference(args) => &args.output,
            Self::Paper(command) => &command.common().output,
        }
    }

    /// Makes the plan for this host, with notices on what is not available.
    pub(crate) fn plan(&self, here: &LocalHost) -> Result<PlanWithNotices> {
        match self {
            Self::Interference(args) => {
                interference::plan::plan(&args.chosen, args.laps, &args.effort(), here)
            }
            Self::Paper(command) => command.plan(here),
        }
    }
}

/// Arguments of a program of a paper.
#[derive(Debug, Args)]
pub(crate) struct ProgramArguments {
    /// The program's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    pub(crate) arguments: Vec<OsString>,
}

/// Arguments of a program that the sweep starts, and that ends when the sweep ends.
#[derive(Debug, Args)]
pub(crate) struct WatchedArguments {
    /// Process with which it ends
    #[arg(long, hide = true)]
    pub(crate) parent: Option<i32>,

    #[command(flatten)]
    pub(crate) arguments: ProgramArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Numbers of processes: a list (2,4,8), a range (2..64:2) or a geometric one (2..64:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "2,4,8,10,16,20,32,48,64")]
    pub(crate) counts: List<u32>,

    /// Laps of the character round each ring (Sloan: 1000000, which takes from a quarter of an hour
    /// on)
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = above_zero::<u32>)]
    pub(crate) laps: u32,

    /// Keep all processes on this CPU, as on Sloan's machines, which had one
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<u32>,

    /// Write one row a number of processes as CSV to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Folder to install to, which must be there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Replace files and links that lead elsewhere
    #[arg(long)]
    pub(crate) force: bool,
}

/// A path of `install`, and what to do with it.
struct LinkPlan {
    path: PathBuf,
    action: LinkAction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkAction {
    Make,
    Replace,
    Keep,
}

impl LinkAction {
    fn in_words(self) -> &'static str {
        match self {
            Self::Make => "made",
            Self::Replace => "replaced",
            Self::Keep => "is there",
        }
    }
}

/// A path of `install` that must not be replaced.
struct RefusedPath {
    /// Says what is there: `a file`.
    found: String,
    /// `--force` does not replace folders.
    is_folder: bool,
}

/// Makes a link for each program, or no link at all if one would replace what is not this program's.
///
/// The links are symbolic: they may cross file systems, and go on working when this program is
/// replaced by a newer one.
fn install(InstallArgs { folder, force }: &InstallArgs) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    if !folder.is_dir() {
        return Err(usage(format!("{}: not a folder (mkdir -p makes one)", folder.display())));
    }
    let (mut links, mut refusals) = (Vec::new(), Vec::new());
    let mut advice = "choose another folder, or --force replaces them";
    for name in ::classic::names() {
        let path = folder.join(name);
        match link_action(&path, &program, *force)? {
            Ok(action) => links.push(LinkPlan { path, action }),
            Err(refused) => {
                if refused.is_folder {
                    advice = "choose another folder";
                }
                refusals.push(format!("{} is {}", path.display(), refused.found));
            }
        }
    }
    if !refusals.is_empty() {
        return Err(usage(format!("{}: nothing was done ({advice})", refusals.join("; "))));
    }
    let mut list = String::new();
    for LinkPlan { path, action } in links {
        if action != LinkAction::Keep {
            make_link(&program, &path)
                .with_context(|| format!("cannot make the link {}", path.display()))?;
        }
        let (done, program) = (action.in_words(), program.display());
        list += &format!("{}: {done} (a link to {program})\n", path.display());
    }
    // After all links are made: a closed standard output must not leave some of them unmade.
    print_text(&list).context("cannot print what was done")?;
    Ok(ExitCode::SUCCESS)
}

/// Decides what to do with the path of a link; an outer error if the path cannot be read.
fn link_action(
    path: &Path,
    program: &Path,
    force: bool,
) -> Result<Result<LinkAction, RefusedPath>> {
    let cannot_read = || format!("cannot look at {}", path.display());
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(LinkAction::Make)),
        Err(error) => return Err(error).with_context(cannot_read),
    };
    // A link to another copy of this program is not kept: the copy may be of another version.
    if kind.is_symlink() && fs::canonicalize(path).is_ok_and(|file| file == program) {
        return Ok(Ok(LinkAction::Keep));
    }
    if kind.is_dir() {
        return Ok(Err(RefusedPath { found: "a folder".to_string(), is_folder: true }));
    }
    if force {
        return Ok(Ok(LinkAction::Replace));
    }
    let found = if kind.is_symlink() {
        format!("a link to {}", fs::read_link(path).with_context(cannot_read)?.display())
    } else {
        "a file".to_string()
    };
    Ok(Err(RefusedPath { found, is_folder: false }))
}

/// Makes a link under a temporary name and moves it to its path, where there is an old file or the
/// whole link at every time.
fn make_link(program: &Path, path: &Path) -> io::Result<()> {
    let temporary = file::temporary_path(path)?;
    symlink(program, &temporary)?;
    fs::rename(&temporary, path).inspect_err(|_| {
        // A link that cannot be moved must not be left behind.
        let _ = fs::remove_file(&temporary);
    })
}
