//! `switchcost profile`: the CPU time of each call of a command's allocator, or of functions that
//! are named.
//!
//! The command is started with a preloaded library that times the calls ([`memory`]); [`launches`]
//! has what was counted in each launch, and [`findings`] the costs over all of them. [`table`] and
//! [`page`](mod@page) print them.

mod findings;
mod launches;
mod memory;
mod page;
mod results;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use findings::CallProfile;
pub(crate) use page::page;
pub(crate) use results::build_results;

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
use crate::base::values::{Destination, above_zero, seconds_in_words, whole};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute;
use crate::programs::watch::command::{
    SeriesEnd, finish_series, left_behind_notice, report_unmeasured, shown_words,
};
use crate::report::output::printed::PrintableRun;
use crate::report::output::{
    FileOptions, UnstoredOptions, all_written, say_fitted, write_json, write_output,
};
use crate::report::page::ReportOutput;
use crate::report::printout::printout;
use findings::ProfileOrigin;
use launches::{ProfilePlan, ProfiledLaunch};
use memory::{PreloadLibrary, SharedCounts};

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

/// Launches with `--allocator` by default: enough for an interval.
const DEFAULT_COMPARED_RUNS: u32 = 10;

/// Functions that cannot be called through another one: they return twice, or not to their caller,
/// or look at who calls them, or find the thread.
const UNTIMEABLE_FUNCTIONS: [&str; 15] = [
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
    /// Checks what can be checked before anything is run.
    fn check(&self) -> Result<()> {
        self.output.files.check()?;
        self.report.check(&self.output.files.places())?;
        FileOptions::refuse_shown(self.figures_on_stdout(), self.show_output)?;
        if !self.calls.is_empty() && !cfg!(target_arch = "x86_64") {
            return Err(usage("--calls: only on x86-64 (--malloc works here)"));
        }
        let max = layout::MAX_NAMED;
        if self.calls.len() > max {
            return Err(usage(format!("--calls: {} functions; at most {max}", self.calls.len())));
        }
        for (number, name) in self.calls.iter().enumerate() {
            if let Some(why) = untimeable_reason(name, &self.calls[..number]) {
                return Err(usage(format!("--calls {name}: {why}")));
            }
        }
        for library in &self.allocator {
            check_library(library)?;
        }
        Ok(())
    }

    /// Returns the option whose figures go to standard output, if any do.
    fn figures_on_stdout(&self) -> Option<&'static str> {
        let report = self.report.is_stdout().then_some("--report");
        self.output.files.on_stdout().or(report)
    }

    /// Returns whether what the command prints goes to /dev/null: in all launches alike, as a
    /// terminal or a pipe takes longer.
    fn discards_output(&self, plan: &ProfilePlan) -> bool {
        let is_single = plan.runs == 1 && plan.allocators.is_empty();
        !self.show_output && (!is_single || self.figures_on_stdout().is_some())
    }

    fn plan(&self) -> ProfilePlan {
        let default = if self.allocator.is_empty() { 1 } else { DEFAULT_COMPARED_RUNS };
        ProfilePlan {
            command: shown_words(&self.command, self.output.files.anonymous),
            malloc: self.malloc,
            calls: self.calls.clone(),
            allocators: self.allocator.clone(),
            runs: self.runs.unwrap_or(default),
            seed: self.seed,
            confidence: CONFIDENCE,
        }
    }

    /// Returns whether somebody waits for a file of figures.
    fn wants_files(&self) -> bool {
        let FileOptions { json, csv, .. } = &self.output.files;
        let is_asked = json.is_some() || csv.is_some() || self.report.report.is_some();
        is_asked || self.output.files.print.is_some()
    }

    fn origin(&self, started: String) -> ProfileOrigin {
        let machine = probe::machine::read(Path::new("/"));
        let build = execute::build_info();
        if self.output.files.anonymous {
            ProfileOrigin { started, host: None, machine: execute::anonymous(machine), build }
        } else {
            ProfileOrigin { started, host: Some(execute::host()), machine, build }
        }
    }
}

/// Returns why a function cannot be timed; `before` are the functions named before it.
fn untimeable_reason(name: &str, before: &[String]) -> Option<String> {
    if name.len() > layout::MAX_NAME_BYTES || name.contains('\0') {
        return Some(format!("a name has at most {} bytes", layout::MAX_NAME_BYTES));
    }
    if UNTIMEABLE_FUNCTIONS.contains(&name) {
        return Some(
            "it returns twice or depends on its caller, so it cannot be wrapped".to_string(),
        );
    }
    if before.iter().any(|named| named == name) {
        return Some("it is named twice".to_string());
    }
    if layout::ALLOCATOR_SYMBOLS.iter().any(|symbol| symbol.to_bytes() == name.as_bytes()) {
        return Some("--malloc times it, by size".to_string());
    }
    None
}

/// Checks that an allocator can be preloaded. The dynamic linker passes over what it cannot load
/// with a message: better once here than in every launch.
fn check_library(library: &str) -> Result<()> {
    if library.trim().is_empty() || library.contains([':', ' ']) {
        return Err(usage(format!(
            "--allocator '{library}': the name of one library is wanted, without blanks and colons"
        )));
    }
    let tried = Command::new("env").arg("true").env("LD_PRELOAD", library).output();
    let tried = tried.context("cannot try --allocator: env (coreutils)")?;
    let message = String::from_utf8_lossy(&tried.stderr);
    match message.lines().next() {
        None if tried.status.success() => Ok(()),
        line => Err(usage(format!(
            "--allocator {library}: {} (accepted: a path, or a name that the dynamic linker finds)",
            line.unwrap_or("`true` does not start with it")
        ))),
    }
}

/// Profiles a command, and prints what its calls cost. The exit code is the command's.
pub(crate) fn run(args: &ProfileArgs) -> Result<ExitCode> {
    args.check()?;
    let plan = args.plan();
    look_up(std::slice::from_ref(&args.command))
        .map_err(|error| report_unmeasured(Some(error), None))?;
    let started = seconds_in_words(SystemTime::now());
    let library = PreloadLibrary::new(&plan.calls, plan.malloc)?;
    let mut series = ProfileSeries::new(args, &plan, &library);
    let ended = series.run_all_rounds();
    let ProfileSeries { launches, left_behind, .. } = series;
    let name = shell_words::join(shown_words(&args.command, false));
    if let Some(notice) = left_behind_notice(&name, left_behind.iter(), None::<&str>) {
        print_message(&format!("note: {notice}; the profiler stays in its memory"));
    }
    let failed_code = launches.iter().map(|launch| launch.exit_code).find(|code| *code != 0);
    let code = match ended {
        Ok(()) => failed_code.unwrap_or(0),
        Err(EarlyEnd::Uncounted(code)) => failed_code.unwrap_or(code),
        Err(EarlyEnd::Other(code)) => code,
    };
    if launches.is_empty() {
        let is_uncounted = matches!(ended, Err(EarlyEnd::Uncounted(_)));
        let is_missing = is_uncounted && args.wants_files();
        return Ok(code_with_files(code, !is_missing).into());
    }
    let mut profile = CallProfile::from_launches(plan, launches, args.origin(started));
    // The words of the command are masked on the page, and left out with --anonymous.
    let (report, report_line) = match args.report.write(|| page(&profile)) {
        Ok(line) => (Ok(()), line),
        Err(error) => (Err(error), String::new()),
    };
    if !args.output.files.quiet {
        let text = printout![table::text(&profile, args.output.verbose), report_line];
        say_fitted(text, args.output.tables.layout());
    }
    let files = &args.output.files;
    profile.plan.command = stored(&args.command, files.anonymous, files.store_command);
    let csv = match &files.csv {
        Some(to) => profile.csv().and_then(|rows| write_output(&rows, to)),
        None => Ok(()),
    };
    let json = write_json(&profile, files.json.as_ref());
    let number = match files.number() {
        Some(asked) => {
            let results = build_results(&profile, "profile".to_string());
            PrintableRun::from_results(&results).write(asked, &Destination::Stdout)
        }
        None => Ok(()),
    };
    Ok(code_with_files(code, all_written([json, csv, report, number])).into())
}

/// Returns an exit code that is not 0 if files of figures are missing: a script that waits for them
/// must learn that.
fn code_with_files(code: u8, has_files: bool) -> u8 {
    if code == 0 && !has_files { 1 } else { code }
}

/// Reason why there are no more launches, as an exit code.
enum EarlyEnd {
    /// The counts of a launch cannot be read: the code is the command's.
    Uncounted(u8),
    Other(u8),
}

/// Launches of the command: every allocator once a round, each with shared memory of its own.
struct ProfileSeries<'a> {
    args: &'a ProfileArgs,
    plan: &'a ProfilePlan,
    library: &'a PreloadLibrary,
    launches: Vec<ProfiledLaunch>,
    /// Processes that still ran after the end of the command.
    left_behind: Vec<u32>,
}

impl<'a> ProfileSeries<'a> {
    fn new(args: &'a ProfileArgs, plan: &'a ProfilePlan, library: &'a PreloadLibrary) -> Self {
        Self { args, plan, library, launches: Vec::new(), left_behind: Vec::new() }
    }

    /// Runs all rounds.
    ///
    /// # Errors
    /// Fails if there are no more launches, once the reason is printed.
    fn run_all_rounds(&mut self) -> Result<(), EarlyEnd> {
        for round in 0..self.plan.runs {
            for allocator in order(self.plan.allocators.len() + 1, self.plan.seed, round) {
                self.launch(allocator, round)?;
            }
        }
        Ok(())
    }

    fn launch(&mut self, allocator: usize, round: u32) -> Result<(), EarlyEnd> {
        let shared = SharedCounts::new(self.library).map_err(|error| {
            print_message(&format!("error: {error:#}"));
            EarlyEnd::Other(1)
        })?;
        let library_name = match allocator.checked_sub(1) {
            Some(index) => Some(self.plan.allocators[index].as_str()),
            None => None,
        };
        let series = CommandSeries {
            announce: false,
            discard: self.args.discards_output(self.plan),
            environment: self.library.environment(&shared, library_name),
            ..CommandSeries::watched(&self.args.command)
        };
        let launcher = Launcher::start(series).map_err(print_launcher_error)?;
        let mut finished = None;
        let SeriesEnd { failed, signal, stopped, .. } =
            finish_series(launcher, |run| finished = Some(run));
        let has_run = finished.is_some();
        if let Some(run) = finished {
            if let Some(pids) = run.used.orphans.left_behind.known() {
                self.left_behind.extend(pids);
            }
            let counts = shared.counts(run.used.real_ns).map_err(|error| {
                print_message(&format!("error: {error:#}"));
                EarlyEnd::Uncounted(run.used.ending.shell_code())
            })?;
            let launch =
                ProfiledLaunch::from_counts(allocator, round, &run.used, &counts, self.plan);
            self.launches.push(launch);
        }
        // What was measured stands, whatever became of the launcher behind it.
        if let Some(error) = failed.filter(|_| !has_run).or(stopped) {
            return Err(print_launcher_error(error));
        }
        match signal {
            Some(signal) => Err(EarlyEnd::Other(128 + signal)),
            None => Ok(()),
        }
    }
}

fn print_launcher_error(error: LauncherError) -> EarlyEnd {
    print_message(&format!("error: {error}"));
    EarlyEnd::Other(error.exit_code)
}
