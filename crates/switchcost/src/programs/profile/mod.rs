//! `switchcost profile`: the CPU time of each call of a command's allocator, or of functions that
//! are named.

mod findings;
mod launches;
mod memory;
mod page;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use findings::CallProfile;
pub(crate) use page::page;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use launcher::{CommandSeries, Launcher, LauncherError, look_up, order};
use preload::layout;

use crate::base::failure::{print_message, usage};
use crate::base::secrets::stored;
use crate::base::values::{above_zero, seconds_in_words, whole};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute;
use crate::programs::watch::command::{
    SeriesEnd, finish_series, left_behind_notice, report_unmeasured, shown_words,
};
use crate::report::output::{
    FileOptions, UnstoredOptions, all_written, say_fitted, write_json, write_output,
};
use crate::report::page::ReportOutput;
use crate::report::printout::printout;
use launches::{Launch, Plan};
use memory::{Library, Shared};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["malloc", "calls"])))]
pub(crate) struct ProfileArgs {
    /// Time malloc, calloc, realloc, aligned_alloc (memalign, posix_memalign, valloc) and free, by
    /// size
    #[arg(long)]
    malloc: bool,

    /// Time these functions of shared libraries, by their symbols' names (C++: mangled)
    ///
    /// Functions only, not variables. Calls within one library, and of functions that are linked
    /// statically or inlined, are not seen. Up to 16 arguments on the stack are passed on. The time
    /// of a function includes the functions that it calls, and what timing them takes. x86-64 only.
    #[arg(long, value_name = "SYMBOL,...", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    calls: Vec<String>,

    /// Another allocator to compare with the command's own, as LD_PRELOAD takes it:
    /// libjemalloc.so.2; may be given several times
    ///
    /// All run once in every round, each time in a shuffled order; ratios to the command's own
    /// are taken within rounds.
    #[arg(long, value_name = "LIBRARY", requires = "malloc")]
    allocator: Vec<String>,

    /// Runs of the command [default: 1; with --allocator 10]; from 5 on there are intervals
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = above_zero::<u32>)]
    runs: Option<u32>,

    /// Show what the command prints, in all runs
    ///
    /// Otherwise both outputs of all runs are discarded (/dev/null), so that all are alike. Only a
    /// command that runs once is left its terminal, unless figures are written to standard output
    /// (--json -).
    #[arg(long)]
    show_output: bool,

    /// Seed of the order of allocators and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    seed: u64,

    /// The command and its arguments; its exit code is this program's
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    report: ReportOutput,

    #[command(flatten)]
    output: UnstoredOptions,
}

/// Runs with `--allocator` if nothing is said: enough for an interval.
const RUNS_TO_COMPARE: u32 = 10;

/// Functions that return twice, or not to their caller, or that look at who calls them; and those
/// by which a thread is found.
const REFUSED: [&str; 15] = [
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "vfork",
    "getcontext",
    "swapcontext",
    "makecontext",
    "dlsym",
    "dlvsym",
    "dlopen",
    "dlmopen",
    "dladdr",
    "pthread_getspecific",
    "pthread_setspecific",
];

impl ProfileArgs {
    /// Whether what was typed can be done, before anything is run.
    fn check(&self) -> Result<()> {
        let FileOptions { json, csv, .. } = &self.output.files;
        self.output.files.check()?;
        self.report.check(&[("--json", json.as_ref()), ("--csv", csv.as_ref())])?;
        FileOptions::refuse_shown(self.figures_on_stdout(), self.show_output)?;
        if !self.calls.is_empty() && !cfg!(target_arch = "x86_64") {
            return Err(usage("--calls: only on x86-64 (--malloc works here)"));
        }
        let most = layout::MAX_NAMED;
        if self.calls.len() > most {
            return Err(usage(format!("--calls: {} functions; at most {most}", self.calls.len())));
        }
        for (number, name) in self.calls.iter().enumerate() {
            let refuse = |why: String| Err(usage(format!("--calls {name}: {why}")));
            if name.len() > layout::MAX_NAME_BYTES || name.contains('\0') {
                return refuse(format!("a name has at most {} bytes", layout::MAX_NAME_BYTES));
            }
            if REFUSED.contains(&name.as_str()) {
                return refuse("it cannot be called by somebody else".to_string());
            }
            if self.calls[..number].contains(name) {
                return refuse("it is named twice".to_string());
            }
            if layout::ALLOCATOR_SYMBOLS.iter().any(|of| of.to_bytes() == name.as_bytes()) {
                return refuse("--malloc times it, by size".to_string());
            }
        }
        self.allocator.iter().try_for_each(|library| check_library(library))
    }

    /// Returns the option whose figures go to standard output, if any do.
    fn figures_on_stdout(&self) -> Option<&'static str> {
        let report = self.report.is_stdout().then_some("--report");
        self.output.files.on_stdout().or(report)
    }

    /// Whether what the command prints goes to /dev/null: in all runs alike, as a terminal or a
    /// pipe takes longer.
    fn discards_output(&self, plan: &Plan) -> bool {
        let is_one = plan.runs == 1 && plan.allocators.is_empty();
        !self.show_output && (!is_one || self.figures_on_stdout().is_some())
    }

    fn plan(&self) -> Plan {
        let default = if self.allocator.is_empty() { 1 } else { RUNS_TO_COMPARE };
        Plan {
            command: shown_words(&self.command, self.output.files.anonymous),
            malloc: self.malloc,
            calls: self.calls.clone(),
            allocators: self.allocator.clone(),
            runs: self.runs.unwrap_or(default),
            seed: self.seed,
            confidence: CONFIDENCE,
        }
    }
}

/// The dynamic linker passes over what it cannot load with a message: better once here than in
/// every run.
fn check_library(library: &str) -> Result<()> {
    if library.trim().is_empty() || library.contains([':', ' ']) {
        return Err(usage(format!(
            "--allocator '{library}': the name of one library is wanted, without blanks and colons"
        )));
    }
    let tried = Command::new("env").arg("true").env("LD_PRELOAD", library).output();
    let tried = tried.context("cannot try --allocator: env (coreutils)")?;
    let said = String::from_utf8_lossy(&tried.stderr);
    match said.lines().next() {
        None if tried.status.success() => Ok(()),
        word => Err(usage(format!(
            "--allocator {library}: {} (accepted: a path, or a name that the dynamic linker finds)",
            word.unwrap_or("`true` does not start with it")
        ))),
    }
}

pub(crate) fn run(args: &ProfileArgs) -> Result<ExitCode> {
    args.check()?;
    let plan = args.plan();
    look_up(std::slice::from_ref(&args.command))
        .map_err(|error| report_unmeasured(Some(error), None))?;
    let started = seconds_in_words(SystemTime::now());
    let library = Library::new(&plan.calls, plan.malloc)?;
    let (mut launches, mut left) = (Vec::new(), Vec::new());
    let ended = all_rounds(args, &plan, &library, &mut launches, &mut left);
    let words = shell_words::join(shown_words(&args.command, false));
    if let Some(told) = left_behind_notice(&words, left.iter(), None::<&str>) {
        print_message(&format!("note: {told}; the profiler stays in its memory"));
    }
    let of_runs = launches.iter().map(|of| of.exit_code).find(|code| *code != 0);
    let (code, is_counted) = match ended {
        Ok(()) => (of_runs.unwrap_or(0), true),
        Err(End::Uncounted(code)) => (of_runs.unwrap_or(code), false),
        Err(End::Other(code)) => (code, true),
    };
    if launches.is_empty() {
        // A script that waits for the figures must learn that they are not there.
        let FileOptions { json, csv, .. } = &args.output.files;
        let waits = json.is_some() || csv.is_some() || args.report.report.is_some();
        return Ok(if waits && !is_counted && code == 0 { 1 } else { code }.into());
    }
    let machine = probe::machine::read(Path::new("/"));
    let about = match args.output.files.anonymous {
        false => (started, Some(execute::host()), machine),
        true => (started, None, execute::anonymous(machine)),
    };
    let mut profile = CallProfile::of(plan, launches, about, execute::build_info());
    // Its words are masked, and left out with --anonymous.
    let (report, place) = match args.report.write(|| page(&profile)) {
        Ok(place) => (Ok(()), place),
        Err(error) => (Err(error), String::new()),
    };
    if !args.output.files.quiet {
        let output = &args.output;
        let text = printout![table::text(&profile, output.verbose), place];
        say_fitted(text, output.tables.layout());
    }
    let files = &args.output.files;
    profile.plan.command = stored(&args.command, files.anonymous, files.store_command);
    let csv = files.csv.as_ref().map(|to| profile.csv().and_then(|rows| write_output(&rows, to)));
    let json = write_json(&profile, files.json.as_ref());
    let is_whole = all_written([json, csv.unwrap_or(Ok(())), report]);
    // A script that waits for the figures must learn that they are not there.
    let code = if !is_whole && code == 0 { 1 } else { code };
    Ok(code.into())
}

/// Why there are no more runs, as an exit code.
enum End {
    /// What a run counted cannot be read: the code is the command's.
    Uncounted(u8),
    Other(u8),
}

/// Every allocator once a round, each run with shared memory of its own. Where there are no more
/// runs, why is said.
fn all_rounds(
    args: &ProfileArgs,
    plan: &Plan,
    library: &Library,
    launches: &mut Vec<Launch>,
    left: &mut Vec<u32>,
) -> Result<(), End> {
    let told = |error: anyhow::Error| print_message(&format!("error: {error:#}"));
    let of_launcher = |error: LauncherError| {
        print_message(&format!("error: {error}"));
        End::Other(error.exit_code)
    };
    for round in 0..plan.runs {
        for allocator in order(plan.allocators.len() + 1, plan.seed, round) {
            let shared = Shared::new(library).map_err(|error| {
                told(error);
                End::Other(1)
            })?;
            let name = allocator.checked_sub(1).map(|other| plan.allocators[other].as_str());
            let environment = library.environment(&shared, name).into();
            let series = CommandSeries {
                announce: false,
                discard: args.discards_output(plan),
                environment,
                ..CommandSeries::watched(&args.command)
            };
            let launcher = Launcher::start(series).map_err(of_launcher)?;
            let mut ran = None;
            let SeriesEnd { failed, signal, stopped } =
                finish_series(launcher, |run| ran = Some(run));
            let has_run = ran.is_some();
            if let Some(run) = ran {
                left.extend(run.used.orphans.left_behind.known().into_iter().flatten());
                let counts = shared.counts(run.used.real_ns).map_err(|error| {
                    told(error);
                    End::Uncounted(run.used.ending.shell_code())
                })?;
                launches.push(Launch::of((allocator, round), &run.used, counts, plan));
            }
            // What was measured stands, whatever became of the launcher behind it.
            if let Some(error) = failed.filter(|_| !has_run).or(stopped) {
                return Err(of_launcher(error));
            }
            if let Some(signal) = signal {
                return Err(End::Other(128 + signal));
            }
        }
    }
    Ok(())
}
