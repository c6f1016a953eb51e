//! `switchcost cost --pid PID` and `switchcost cost -- CMD`: what switching costs one program.
//!
//! A program is watched ([`watcher`]; a [`command`] from its start to its end). What is read of it
//! is its [`observation`]: switches and CPU time by the tracer, wait4(2) or /proc ([`counts`]), and
//! the working set by samples ([`sampled`]) or touched pages. [`findings`] prices them by a stored
//! run of this machine ([`profile_choice`]), or by what was measured on the program itself
//! ([`preemption_cost`]). [`answer`] and [`figure`] put the result in words, [`table`] prints it.

mod answer;
pub(crate) mod command;
mod counts;
mod figure;
pub(crate) mod findings;
mod hand_over;
mod observation;
mod preemption_cost;
mod processes;
mod profile_choice;
pub(crate) mod quick;
mod sampled;
mod stored_runs;
mod table;
#[cfg(test)]
mod tests;
mod watcher;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use analysis::program::ProfilePoint;
use anyhow::{Context, Error, Result, anyhow, bail};
use clap::builder::ArgPredicate;
use clap::{Arg, Args};
use probe::program::{WatchError, WatchedProcess};

use crate::base::failure::{print_message, usage};
use crate::base::values::{Destination, List, NO_EXTENSION_HINT, TimeBudget, UNTIL_END};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::observe::live::account::TraceScope;
use crate::observe::live::session::{self, TracerSession};
use crate::observe::processes::{ProcessName, ProcessSet, process_names};
use crate::report::output::{OutputOptions, print_text, say_text, write_json};
use command::WatchedCommand;
use counts::traced_so_far;
use findings::ProgramCostReport;
use watcher::LOOK_INTERVAL;

pub(crate) use figure::{CostConclusion, CostFigure, OpenEnd, PricedShare};
pub(crate) use hand_over::{HandOverCost, find_hand_over_cost};
pub(crate) use observation::{CountSource, ProgramObservation};
pub(crate) use preemption_cost::PreemptionCost;
pub(crate) use processes::ProgramProcesses;
pub(crate) use profile_choice::{ChosenProfile, find_profile, newest_profile};
pub(crate) use watcher::ProgramWatcher;

/// Arguments of the costs by working set, which a program's cost takes as they were measured.
const MEASUREMENT_ARGUMENTS: &str =
    "array deep stride op tlb huge_pages members kind placement policy laps precision rounds seed";

/// Returns the arguments of the other experiments of `cost` that this build has.
fn conflicting_arguments() -> Vec<&'static str> {
    let mut arguments = Vec::new();
    if cfg!(feature = "documents") {
        arguments.push("interference");
    }
    arguments.extend(MEASUREMENT_ARGUMENTS.split(' '));
    arguments
}

/// Time for which a program is watched.
pub(crate) const DEFAULT_WATCH_TIME: &str = "10s";

/// Gives the argument of a budget the defaults of programs: a running one is watched for ten
/// seconds, a command until it ends.
pub(crate) fn with_watch_defaults(budget: Arg) -> Arg {
    budget
        .default_value_if("pid", ArgPredicate::IsPresent, Some(DEFAULT_WATCH_TIME))
        .default_value_if("cgroup", ArgPredicate::IsPresent, Some(DEFAULT_WATCH_TIME))
        .default_value_if("command", ArgPredicate::IsPresent, Some(UNTIL_END))
}

#[derive(Debug, Args)]
#[command(next_help_heading = "A program's cost")]
pub(crate) struct ProgramArgs {
    /// What switching costs a running program with its children: process ids and names (812,nginx)
    ///
    /// Reads its switches, CPU time and working set, and prices them by this machine's measured
    /// costs. All descendants of these processes are part of the program, also those that start
    /// meanwhile. A name means all processes that `pgrep -x` finds. The working set is that of the
    /// process that uses the most CPU time.
    ///
    /// The working set is estimated from up to 4,000 samples of its memory accesses, each of which
    /// takes up to 15 us (x86-64, with CAP_PERFMON or as root). If these are too few, the pages
    /// that it touches give a wider range. To see them, referenced bits are cleared a few times
    /// (clear_refs of proc(5)). That holds the program's memory map for some microseconds a MiB; it
    /// is not repeated once it took over 10 ms.
    ///
    /// It is watched for --budget [default: 10s].
    ///
    /// Switches are counted by eBPF if that is permitted (CAP_BPF, CAP_PERFMON), which makes each
    /// switch of the machine some 0.2 us slower. Otherwise they are read from /proc.
    #[arg(long, short, value_name = "PID|NAME,...", value_parser = process_names, conflicts_with_all = conflicting_arguments())]
    pub(crate) pid: Option<List<ProcessName>>,

    /// Like --pid, for all processes of a control group: nginx.service
    ///
    /// With all groups below it. Accepted: a unit, or a path below /sys/fs/cgroup.
    #[arg(long, value_name = "UNIT|PATH", conflicts_with = "pid", conflicts_with_all = conflicting_arguments())]
    pub(crate) cgroup: Option<String>,

    /// With --pid and --cgroup: only these processes, without their children
    #[arg(long, hide_short_help = true, conflicts_with = "command")]
    pub(crate) no_children: bool,

    /// The stored run whose costs are used, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN")]
    pub(crate) profile: Option<String>,

    /// The same for a command, from its start to its end, or to that of --budget, when it gets
    /// SIGTERM; the figures go to standard error
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "cgroup"], conflicts_with_all = conflicting_arguments())]
    pub(crate) command: Vec<OsString>,
}

impl ProgramArgs {
    /// Returns whether an argument of a program's cost was typed.
    pub(crate) fn is_asked_for(&self) -> bool {
        let is_named = self.pid.is_some() || self.cgroup.is_some() || self.no_children;
        is_named || self.profile.is_some() || !self.command.is_empty()
    }

    /// Returns the running program that was asked for, if any was.
    fn processes(&self) -> Result<Option<ProcessSet>> {
        ProcessSet::of_options(self.pid.as_ref(), self.cgroup.as_deref(), !self.no_children)
    }

    /// Checks what can be checked before anything is watched.
    fn check(&self, budget: TimeBudget, output: &OutputOptions) -> Result<()> {
        output.refuse_plot("what switching costs a program")?;
        output.files.refuse_print("what switching costs a program", "--json has all")?;
        if output.files.csv.is_some() {
            return Err(usage("--csv: there are no samples of a program (--json has all figures)"));
        }
        if self.command.is_empty() && self.pid.is_none() && self.cgroup.is_none() {
            let flag = if self.no_children { "--no-children" } else { "--profile" };
            return Err(usage(format!("{flag} needs --pid PID, --cgroup UNIT or -- CMD")));
        }
        if budget.extends {
            return Err(usage(format!(
                "--budget: only the budget of a measurement may be extended {NO_EXTENSION_HINT}"
            )));
        }
        Ok(())
    }
}

/// Watches a program, for the time of the budget at most, and prints what switching costs it.
pub(crate) fn run(
    args: &ProgramArgs,
    budget: TimeBudget,
    output: &OutputOptions,
) -> Result<ExitCode> {
    args.check(budget, output)?;
    let named = args.profile.as_deref().map(find_profile).transpose()?;
    if let Some(processes) = args.processes()? {
        return watch_processes(&processes, budget.time, named.as_ref(), output);
    }
    if matches!(output.files.json, Some(Destination::Stdout)) {
        return Err(usage(
            "--json -: standard output is the command's (accepted here: --json FILE)",
        ));
    }
    watch_command(&args.command, budget.time, named.as_ref(), output)
}

/// Watches a running program, and prints the report.
fn watch_processes(
    processes: &ProcessSet,
    duration: Duration,
    named: Option<&ChosenProfile>,
    output: &OutputOptions,
) -> Result<ExitCode> {
    let typed = &processes.typed;
    let interrupt = Interrupt::watch()?;
    let candidates =
        watch_candidates(processes, &interrupt).map_err(|error| unwatchable(typed, error))?;
    let bar = Progress::for_budget(duration, output.files.quiet);
    let points = if bar.is_seen() { points_so_far(named) } else { Vec::new() };
    let mut watcher =
        watch_first(candidates, duration).map_err(|error| unwatchable(typed, error))?;
    let mut session = TracerSession::begin(processes.scope(), None, None);
    if session.as_ref().is_ok_and(|session| !session.has_living_process()) {
        session = Err(anyhow!("the tracer has not seen it run"));
    }
    if session.is_err() {
        watcher.follow(processes);
    }
    let end = Instant::now() + duration;
    loop {
        match watcher.look(|longest| interrupt.wait(longest)) {
            Ok(false) if !is_alive(session.as_ref().ok(), &watcher) => break,
            Ok(_) => {}
            // What was seen before is worth reporting.
            Err(error) if watcher.last_look.is_some() => {
                watcher.notices.push(format!("no longer watched: {error}"));
                break;
            }
            Err(error) => return Err(unwatchable(typed, error)),
        }
        session.iter_mut().for_each(TracerSession::look_if_due);
        let traced = session.as_ref().ok().and_then(traced_so_far);
        let program = traced.unwrap_or_else(|| watcher.so_far());
        bar.tell(watcher.watched(), &answer::so_far_in_words(&program, &points));
        if interrupt.wait_until(end, LOOK_INTERVAL) {
            break;
        }
    }
    bar.end();
    // It may have ended meanwhile.
    let _ = watcher.read_counts();
    session.iter_mut().for_each(TracerSession::look);
    if watcher.last_look.is_none() {
        bail!("{typed}: it ended before it could be watched");
    }
    if let Some(signal) = interrupt.signal() {
        let notice = format!("stopped by signal {signal}, before its time was over");
        watcher.notices.push(notice);
    }
    let program = match &session {
        Ok(session) => ProgramProcesses::from_tracer(processes, session, watcher.pid()),
        Err(_) => watcher.program_processes(processes),
    };
    let traced = session.as_ref().map(ProgramObservation::from_tracer).map_err(Error::to_string);
    let report = watcher.report(traced, &program, named);
    print_report(&report, output)?;
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

fn print_report(report: &ProgramCostReport, output: &OutputOptions) -> Result<()> {
    if !output.files.quiet {
        let text = table::text(report, output.view.verbose);
        match &output.files.json {
            Some(Destination::Stdout) => say_text(text),
            _ => print_text(text).context("cannot print the figures")?,
        }
    }
    write_json(report, output.files.json.as_ref())
}

/// Builds the error of a program that cannot be watched; `typed` are the options that ask for it.
fn unwatchable(typed: &str, error: WatchError) -> Error {
    if error.is_end() {
        usage(format!("{typed}: {error}"))
    } else {
        Error::new(error).context(typed.to_string())
    }
}

/// Returns the processes of a program of which one is to be watched, the busiest first.
fn watch_candidates(processes: &ProcessSet, interrupt: &Interrupt) -> Result<Vec<i32>, WatchError> {
    let first = find_first(&processes.pids)?;
    let busiest = processes.busiest(|moment| _ = interrupt.wait(moment));
    let mut candidates: Vec<i32> = busiest.into_iter().collect();
    candidates.push(first);
    candidates.extend_from_slice(&processes.pids);
    Ok(candidates)
}

/// Finds the first of these processes that still runs.
///
/// # Errors
/// Fails if one cannot be watched, or all have ended.
fn find_first(pids: &[i32]) -> Result<i32, WatchError> {
    let mut first = Err(WatchError::Gone);
    for pid in pids {
        match WatchedProcess::find(Path::new("/"), *pid) {
            Err(error) if error.is_end() && pids.len() > 1 => {}
            Err(error) => return Err(error),
            Ok(found) => first = first.or(Ok(found.pid())),
        }
    }
    first
}

/// Begins to watch the first of these processes that still runs: the busiest of a program may end
/// in the meantime.
///
/// # Errors
/// Fails if one cannot be watched, or all have ended.
fn watch_first(
    pids: impl IntoIterator<Item = i32>,
    duration: Duration,
) -> Result<ProgramWatcher, WatchError> {
    let mut ended = WatchError::Gone;
    for pid in pids {
        match watch_process(pid, duration) {
            Err(error) if error.is_end() => ended = error,
            watcher_or_refusal => return watcher_or_refusal,
        }
    }
    Err(ended)
}

fn watch_process(pid: i32, duration: Duration) -> Result<ProgramWatcher, WatchError> {
    let program = WatchedProcess::find(Path::new("/"), pid)?;
    let mut watcher = ProgramWatcher::new(program, Some(duration));
    watcher.read_counts()?;
    Ok(watcher)
}

/// Returns whether a process of the program lives beside the one whose memory is watched.
fn is_alive(session: Option<&TracerSession>, watcher: &ProgramWatcher) -> bool {
    match session {
        Some(session) => session.has_living_process(),
        None => watcher.has_living_process(),
    }
}

/// Returns the costs for the figures that are shown meanwhile: of the newest profile if none was
/// asked for, as the working set is not known yet.
fn points_so_far(named: Option<&ChosenProfile>) -> Vec<ProfilePoint> {
    if let Some(named) = named {
        return named.profile.points.clone();
    }
    match newest_profile() {
        Ok(newest) => newest.profile.points,
        Err(_) => Vec::new(),
    }
}

/// Runs a command until it ends or its time is over, and prints the report to standard error.
fn watch_command(
    words: &[OsString],
    time: Duration,
    named: Option<&ChosenProfile>,
    output: &OutputOptions,
) -> Result<ExitCode> {
    // No process is in scope until the command has a process id.
    let mut session = TracerSession::begin(TraceScope::Tree(u32::MAX), None, None);
    let anonymous = output.files.anonymous;
    let mut command = WatchedCommand::start(words, time, anonymous, session.as_mut().ok())?;
    // Without a tracer the counts are those of wait4(2) at its end.
    let look_interval = session.is_ok().then_some(session::LOOK);
    while !command.wait(look_interval) {
        session.iter_mut().for_each(TracerSession::look_if_due);
    }
    session.iter_mut().for_each(TracerSession::look);
    let mut ended = command.end()?;
    let traced = session.as_ref().map(ProgramObservation::from_tracer).map_err(Error::to_string);
    let report = ended.report(traced, named);
    if !output.files.quiet {
        say_text(table::text(&report, output.view.verbose));
    }
    // The exit code is the command's.
    if let Err(error) = write_json(&report, output.files.json.as_ref()) {
        print_message(&format!("error: {error:#}"));
    }
    Ok(ended.exit_code())
}
