//! `switchcost cost --pid PID` and `switchcost cost -- CMD`: what switching costs one program.

mod answer;
mod choice;
pub(crate) mod command;
mod counts;
mod figure;
pub(crate) mod findings;
mod own;
pub(crate) mod quick;
mod reading;
mod sampled;
mod seen;
mod table;
#[cfg(test)]
mod tests;
mod whole;

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
use choice::Accepts;
use command::WatchedCommand;
use reading::LOOK;

pub(crate) use choice::{ChosenProfile, HandOverCost, find_hand_over_cost, find_profile};

use counts::traced_so_far;
pub(crate) use figure::{CostConclusion, CostFigure, OpenEnd, PricedShare};
pub(crate) use own::PreemptionCost;
pub(crate) use reading::ProgramWatcher;
pub(crate) use seen::{CountSource, ProgramObservation};
pub(crate) use whole::ProgramProcesses;

/// What belongs to the costs by working set: a program's cost takes what they have measured.
const NOT_OF_A_PROGRAM: &str =
    "array deep stride op tlb huge_pages members kind placement policy laps precision rounds seed";

/// Returns the arguments of the other experiments of `cost` that this build has.
fn not_of_a_program() -> Vec<&'static str> {
    let mut arguments = Vec::new();
    if cfg!(feature = "documents") {
        arguments.push("interference");
    }
    arguments.extend(NOT_OF_A_PROGRAM.split(' '));
    arguments
}

/// How long a program is watched.
pub(crate) const DEFAULT_WATCH_TIME: &str = "10s";

/// The argument of a budget, which of a program is the time for which it is watched, and of a
/// command has no end unless it is said.
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
    #[arg(long, short, value_name = "PID|NAME,...", value_parser = process_names, conflicts_with_all = not_of_a_program())]
    pub(crate) pid: Option<List<ProcessName>>,

    /// The same for a service, by its control group: nginx.service
    ///
    /// With all groups below it. Accepted: a unit, or a path below /sys/fs/cgroup.
    #[arg(long, value_name = "UNIT|PATH", conflicts_with = "pid", conflicts_with_all = not_of_a_program())]
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
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "cgroup"], conflicts_with_all = not_of_a_program())]
    pub(crate) command: Vec<OsString>,
}

impl ProgramArgs {
    /// Whether anything of a program was typed.
    pub(crate) fn is_asked_for(&self) -> bool {
        let is_named = self.pid.is_some() || self.cgroup.is_some() || self.no_children;
        is_named || self.profile.is_some() || !self.command.is_empty()
    }

    /// The running program that was asked for, if any was.
    fn processes(&self) -> Result<Option<ProcessSet>> {
        ProcessSet::of_options(self.pid.as_ref(), self.cgroup.as_deref(), !self.no_children)
    }
}

/// Watches for the budget at most.
pub(crate) fn run(
    args: &ProgramArgs,
    budget: TimeBudget,
    output: &OutputOptions,
) -> Result<ExitCode> {
    let TimeBudget { time, extends } = budget;
    output.refuse_plot("what switching costs a program")?;
    if output.files.csv.is_some() {
        return Err(usage("--csv: there are no samples of a program (--json has all figures)"));
    }
    if args.command.is_empty() && args.pid.is_none() && args.cgroup.is_none() {
        let flag = if args.no_children { "--no-children" } else { "--profile" };
        return Err(usage(format!(
            "{flag}: of a program's cost (accepted with --pid PID, --cgroup UNIT or -- CMD)"
        )));
    }
    if extends {
        return Err(usage(format!(
            "--budget: only the budget of a measurement may be extended {NO_EXTENSION_HINT}"
        )));
    }
    // What is wrong with it is told before anything is watched.
    let named = args.profile.as_deref().map(choice::find_profile).transpose()?;
    match args.processes()? {
        Some(processes) => watch(&processes, time, named.as_ref(), output),
        None if matches!(output.files.json, Some(Destination::Stdout)) => {
            Err(usage("--json -: standard output is the command's (accepted here: --json FILE)"))
        }
        None => command((&args.command, time), named.as_ref(), output),
    }
}

fn watch(
    processes: &ProcessSet,
    duration: Duration,
    named: Option<&ChosenProfile>,
    output: &OutputOptions,
) -> Result<ExitCode> {
    let typed = &processes.typed;
    let cannot = |error: WatchError| match error.is_end() {
        true => usage(format!("{typed}: {error}")),
        false => Error::new(error).context(typed.clone()),
    };
    let interrupt = Interrupt::watch()?;
    let first = find_first(&processes.pids).map_err(cannot)?;
    let busiest = processes.busiest(|moment| _ = interrupt.wait(moment));
    let candidates = busiest.into_iter().chain([first]).chain(processes.pids.iter().copied());
    let bar = Progress::for_budget(duration, output.files.quiet);
    let points = if bar.is_seen() { points_so_far(named) } else { Vec::new() };
    let mut watcher = watch_first(candidates, duration).map_err(cannot)?;
    let mut session = TracerSession::begin(processes.scope(), None, None);
    if session.as_ref().is_ok_and(|session| !session.account.is_alive()) {
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
            Err(error) => return Err(cannot(error)),
        }
        session.iter_mut().for_each(TracerSession::look_if_due);
        let (watched, program) = watcher.so_far();
        let program = session.as_ref().ok().and_then(traced_so_far).unwrap_or(program);
        bar.tell(watched, &answer::so_far(&program, &points));
        if interrupt.wait_until(end, LOOK) {
            break;
        }
    }
    bar.end();
    // It may have ended meanwhile.
    let _ = watcher.see();
    session.iter_mut().for_each(TracerSession::look);
    if watcher.last_look.is_none() {
        bail!("{typed}: it ended before it could be watched");
    }
    if let Some(signal) = interrupt.signal() {
        let notice = format!("stopped by signal {signal}, before its time was over");
        watcher.notices.push(notice);
    }
    let counts = session.as_ref().map(ProgramObservation::from_tracer).map_err(Error::to_string);
    let whole = match &session {
        Ok(session) => ProgramProcesses::from_tracer(processes, session, watcher.pid()),
        Err(_) => watcher.whole(processes),
    };
    let report = watcher.report(counts, &whole, named);
    if !output.files.quiet {
        let text = table::text(&report, output.view.verbose);
        match &output.files.json {
            Some(Destination::Stdout) => say_text(text),
            _ => print_text(text).context("cannot print the figures")?,
        }
    }
    write_json(&report, output.files.json.as_ref())?;
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

/// Finds the first of these processes that still runs; an error where one cannot be watched, or all
/// have ended.
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
/// in the meantime. An error where one cannot be watched, or all have ended.
fn watch_first(
    pids: impl IntoIterator<Item = i32>,
    duration: Duration,
) -> Result<ProgramWatcher, WatchError> {
    let mut ended = WatchError::Gone;
    for pid in pids {
        let begun = WatchedProcess::find(Path::new("/"), pid).and_then(|program| {
            let mut watcher = ProgramWatcher::new(program, Some(duration));
            watcher.see()?;
            Ok(watcher)
        });
        match begun {
            Err(error) if error.is_end() => ended = error,
            watcher_or_refusal => return watcher_or_refusal,
        }
    }
    Err(ended)
}

/// Whether a process of the program lives beside the one whose memory is watched.
fn is_alive(session: Option<&TracerSession>, watcher: &ProgramWatcher) -> bool {
    session.map_or_else(|| watcher.has_living_companion(), |session| session.account.is_alive())
}

/// Costs for what is shown meanwhile: of the newest profile where none was asked for, as the
/// working set is not known yet.
fn points_so_far(named: Option<&ChosenProfile>) -> Vec<ProfilePoint> {
    let chosen = named.cloned().or_else(|| newest_profile().ok());
    chosen.map_or(Vec::new(), |chosen| chosen.profile.points)
}

/// The newest costs of this machine, for whatever working set; or why there are none.
pub(crate) fn newest_profile() -> Result<ChosenProfile, String> {
    choice::best(None, None, Accepts::Costs, &choice::this_machine())
}

fn command(
    (words, time): (&[OsString], Duration),
    named: Option<&ChosenProfile>,
    output: &OutputOptions,
) -> Result<ExitCode> {
    // Until the command has a process id nothing is inside.
    let mut session = TracerSession::begin(TraceScope::Tree(u32::MAX), None, None);
    let anonymous = output.files.anonymous;
    let mut command = WatchedCommand::start(words, time, anonymous, session.as_mut().ok())?;
    // Without a tracer its counts are the kernel's at its end.
    let look = session.is_ok().then_some(session::LOOK);
    while !command.wait(look) {
        session.iter_mut().for_each(TracerSession::look_if_due);
    }
    session.iter_mut().for_each(TracerSession::look);
    let mut ended = command.end()?;
    let report = ended.report(
        session.as_ref().map(ProgramObservation::from_tracer).map_err(Error::to_string),
        named,
    );
    if !output.files.quiet {
        say_text(table::text(&report, output.view.verbose));
    }
    // The exit code is the command's.
    if let Err(error) = write_json(&report, output.files.json.as_ref()) {
        print_message(&format!("error: {error:#}"));
    }
    Ok(ended.exit_code())
}
