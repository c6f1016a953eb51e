//! `switchcost classic`: the papers' own programs by name, Sloan's procedure, the links.

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

/// Does what was asked; `experiment` measures where that is an experiment.
pub(crate) fn run(
    command: ClassicCommand,
    experiment: fn(ExperimentCommand) -> Result<ExitCode>,
) -> Result<ExitCode> {
    use ClassicCommand::*;
    let (name, words) = match command {
        Experiment(command) => return experiment(command),
        Sweep(args) => return sweep::run(&args),
        Install(args) => return install(&args),
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
    Pipeline(Words),
    /// Run a program and print its getrusage structure (Sloan 1992)
    ///
    /// The program is named by its path: PATH is not searched. The figures go to standard error.
    /// The exit code is the program's, 127 if a signal ended it or it could not be run.
    Getrusage(TiedWords),
    /// Run a program and print its times in clock ticks and converted (Sloan 1992)
    ///
    /// As getrusage, by times(2).
    Times(Words),
    /// Time a system call: simsyscall [LOOPS] (VENIX 1984)
    Simsyscall(Words),
    /// Time a signal to oneself: simsig [LOOPS] (VENIX 1984)
    Simsig(Words),
    /// Time a signal to and fro between two processes: twosig [LOOPS] (VENIX 1984)
    Twosig(Words),
    /// Time getrusage() and getpinfo() in ticks: test_cycles [TRIALS] (Hines et al. 2000)
    #[command(name = "test_cycles")]
    TestCycles(Words),
    /// Time the first primes by both: primes [PRIMES [TRIALS]] (Hines et al. 2000)
    ///
    /// Without arguments as in the paper: 100 to 5000 primes by 100, 1000 trials of each by either
    /// call. That takes about a minute.
    Primes(Words),
    /// Time malloc by getpinfo(): malloc_stats [BYTES [TRIALS]] (Hines et al. 2000)
    ///
    /// Without arguments as in the paper: 100 to 5000 bytes by 100, 1000 blocks of each.
    #[command(name = "malloc_stats")]
    MallocStats(Words),
    /// Experiments that only the papers ask for: interference, primes, malloc, sampling
    ///
    /// Measured with this program's own means: intervals, stored runs, reports.
    #[command(subcommand)]
    #[command(after_long_help = "Example:\n  switchcost classic experiment sampling")]
    Experiment(ExperimentCommand),
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

    /// Makes the plan, with notes on what is not available here.
    pub(crate) fn plan(&self, here: &LocalHost) -> Result<PlanWithNotices> {
        match self {
            Self::Interference(args) => {
                interference::plan::plan(&args.chosen, args.laps, &args.effort(), here)
            }
            Self::Paper(command) => command.plan(here),
        }
    }
}

/// All that stands behind the program's name.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The program's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    pub(crate) words: Vec<OsString>,
}

/// The same for a program that the sweep starts.
#[derive(Debug, Args)]
pub(crate) struct TiedWords {
    /// Process with which it ends
    #[arg(long, hide = true)]
    pub(crate) parent: Option<i32>,

    #[command(flatten)]
    pub(crate) words: Words,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Numbers of processes: a list (2,4,8), a range (2..64:2) or a geometric one (2..64:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "2,4,8,10,16,20,32,48,64")]
    pub(crate) counts: List<u32>,

    /// How often the character goes round each ring (Sloan: 1000000, which takes from a quarter of
    /// an hour on)
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
    /// Where to: a folder that is there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Replace files and links that lead elsewhere
    #[arg(long)]
    pub(crate) force: bool,
}

/// Makes all links, or none where one would overwrite what is not this program's. They are
/// symbolic: such may cross file systems, and go on working when this program is replaced by a
/// newer one.
fn install(InstallArgs { folder, force }: &InstallArgs) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    if !folder.is_dir() {
        return Err(usage(format!("{}: not a folder (mkdir -p makes one)", folder.display())));
    }
    let (mut links, mut refused) = (Vec::new(), Vec::new());
    let mut next = "choose another folder, or --force replaces them";
    for place in ::classic::names().map(|name| folder.join(name)) {
        let cannot = || format!("cannot look at {}", place.display());
        let found = match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found.with_context(cannot)?.file_type()),
        };
        // A link to another copy of this program is another's: it may be another version.
        let is_ours = || fs::canonicalize(&place).is_ok_and(|file| file == program);
        let state = match found {
            None => Ok("made"),
            Some(kind) if kind.is_symlink() && is_ours() => Ok("is there"),
            Some(kind) if kind.is_dir() => {
                next = "choose another folder";
                Err("a folder".to_string())
            }
            Some(_) if *force => Ok("replaced"),
            Some(kind) if kind.is_symlink() => {
                Err(format!("a link to {}", fs::read_link(&place).with_context(cannot)?.display()))
            }
            Some(_) => Err("a file".to_string()),
        };
        match state {
            Ok(done) => links.push((place, done)),
            Err(what) => refused.push(format!("{} is {what}", place.display())),
        }
    }
    if !refused.is_empty() {
        return Err(usage(format!("{}: nothing was done ({next})", refused.join("; "))));
    }
    let mut list = String::new();
    for (place, done) in links {
        if done != "is there" {
            link(&program, &place)
                .with_context(|| format!("cannot make the link {}", place.display()))?;
        }
        list += &format!("{}: {done} (a link to {})\n", place.display(), program.display());
    }
    // After all of them: a closed standard output must not leave some of them unmade.
    print_text(&list).context("cannot print what was done")?;
    Ok(ExitCode::SUCCESS)
}

/// Made beside its place and moved there, so that nothing is missing or half there in between.
fn link(program: &Path, place: &Path) -> io::Result<()> {
    let beside = file::temporary_path(place)?;
    symlink(program, &beside)?;
    fs::rename(&beside, place).inspect_err(|_| {
        // What cannot be moved must not be left behind.
        let _ = fs::remove_file(&beside);
    })
}
