//! `switchcost trace`: every switch of a command, a process or the machine, added up; the
//! arguments, and tracing from beginning to end.

mod exports;
mod figures;
mod page;
mod perfetto;
mod pinning;
mod recording;
mod report;
pub(crate) mod stored;
mod storing;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use report::TraceReport;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use analysis::program::{Price, ProgramCost, direct_of};
use anyhow::{Context, Result};
use clap::builder::ArgPredicate;
use clap::{ArgGroup, Args};
use launcher::look_up;
use probe::program::WatchedProcess;
use rundata::reading::Reading;
use rundata::run::StopReason;
use rundata::trial::switches::TracedTasks;

use crate::base::failure::usage;
use crate::base::values::{Destination, List, UNTIL_END, bytes, duration, run_name};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::observe::live::GroupBy;
use crate::observe::live::account::{SwitchAccount, TraceScope};
use crate::observe::live::rows::RowGrouping;
use crate::observe::live::session::{LOOK, TracerSession, cpus};
use crate::observe::processes::{ProcessName, ProcessSet, process_names};
use crate::programs::watch::command::{WatchedCommand, report_unmeasured};
use crate::programs::watch::findings::ProgramCostReport;
use crate::programs::watch::{
    self, ChosenProfile, DEFAULT_WATCH_TIME, ProgramObservation, ProgramProcesses, ProgramWatcher,
};
use crate::report::output::{
    FileOptions, UnstoredOptions, all_written, check_destination, print_fitted, say_fitted,
    write_json, write_output,
};
use crate::report::printout::printout;
use crate::report::terminal::run_file_line;
use recording::PerfettoRecording;
use report::{TraceCosts, TraceFacts, TraceTarget, TraceTimeline};
use rundata::words::grouped;
use storing::StoredTrace;

/// Time between two readings of the ring buffer.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "cgroup", "all", "command"])))]
pub(crate) struct TraceArgs {
    /// Trace a running program with its children: process ids and names (812,nginx)
    ///
    /// All their descendants belong to it, also those to come. A name takes all that `pgrep -x`
    /// finds. The working set is read as by `cost --pid`.
    #[arg(long, short, value_name = "PID|NAME,...", value_parser = process_names)]
    pid: Option<List<ProcessName>>,

    /// Trace a service, by its control group: nginx.service
    ///
    /// With all groups below it. Accepted: a unit, or a path below /sys/fs/cgroup.
    #[arg(long, value_name = "UNIT|PATH")]
    cgroup: Option<String>,

    /// With --pid and --cgroup: only these processes, without their children
    #[arg(long, hide_short_help = true, conflicts_with_all = ["all", "command"])]
    no_children: bool,

    /// Trace the whole machine
    #[arg(long, short)]
    all: bool,

    /// How long; a command that runs on gets SIGTERM then [default: 10s; of a command: to its end]
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', value_name = "TIME", default_value = DEFAULT_WATCH_TIME, default_value_if("command", ArgPredicate::IsPresent, Some(UNTIL_END)), hide_default_value = true, value_parser = duration)]
    budget: Duration,

    /// A row for each thread, process, control group or user [default: process, or thread if there
    /// is one process]
    #[arg(long)]
    by: Option<GroupBy>,

    /// The stored run whose costs are used, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN")]
    profile: Option<String>,

    /// Record every switch of the machine, for Perfetto's viewer (ui.perfetto.dev) and
    /// trace_processor
    ///
    /// A switch takes some 30 bytes; at 2 GiB the recording ends. Events that are lost are counted
    /// and reported.
    #[arg(long, value_name = "FILE|-")]
    perfetto: Option<Destination>,

    /// Record wake-ups, too: who woke whom, which costs a second probe for each switch
    #[arg(long, requires = "perfetto")]
    wakeups: bool,

    /// Memory that holds events until they are written; a larger one loses fewer
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = buffer, requires = "perfetto")]
    buffer: u32,

    /// Write folded stacks of the switches (process, thread, kind, who got the CPU), for flame
    /// graphs
    #[arg(long, value_name = "FILE|-")]
    folded: Option<Destination>,

    /// Write a report with charts in HTML to a file, or - for standard output: who preempts whom,
    /// how long each waits
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short = 'o', alias = "output", value_name = "FILE|-")]
    report: Option<Destination>,

    /// Name of the stored trace, for `compare`, `report` and `runs`
    ///
    /// Letters, digits, dot, dash, underscore and plus. A name stands for all traces stored under
    /// it: their histograms and counts add up.
    #[arg(long, value_name = "NAME", value_parser = run_name, help_heading = "Output")]
    name: Option<String>,

    /// Store the names of tasks that preempted, too
    ///
    /// Without it the stored trace has figures alone: no name of another program is in it.
    #[arg(long, conflicts_with = "anonymous", help_heading = "Output")]
    store_names: bool,

    /// Trace a command and all that it starts; its exit code is this program's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    output: UnstoredOptions,
}

/// Parses the bytes of the ring buffer.
fn buffer(text: &str) -> Result<u32, String> {
    match u32::try_from(bytes(text)?) {
        Ok(bytes) if (1 << 16..=1 << 30).contains(&bytes) => Ok(bytes.next_power_of_two()),
        _ => Err("accepted: 64K to 1G; it is rounded up to a power of two".to_string()),
    }
}

impl TraceArgs {
    /// Returns all outputs by the flags that ask for them.
    fn outputs(&self) -> [(&'static str, Option<&Destination>); 5] {
        let FileOptions { json, csv, .. } = &self.output.files;
        [
            ("--json", json.as_ref()),
            ("--csv", csv.as_ref()),
            ("--folded", self.folded.as_ref()),
            ("--perfetto", self.perfetto.as_ref()),
            ("--report", self.report.as_ref()),
        ]
    }

    /// Checks that what was typed can be done, before anything is attached.
    fn check(&self) -> Result<()> {
        let output = &self.output;
        output.files.check()?;
        output.files.refuse_print("a trace", "runs show last --print, as it is stored")?;
        let mut taken: Vec<&Destination> = Vec::new();
        for (flag, to) in self.outputs() {
            let Some(to) = to else { continue };
            check_destination(flag, to)?;
            if taken.contains(&to) {
                return Err(usage(format!("{flag} {to}: another output is written there")));
            }
            if *to == Destination::Stdout && !self.command.is_empty() {
                return Err(usage(format!(
                    "{flag} -: standard output is the command's (accepted here: {flag} FILE)"
                )));
            }
            taken.push(to);
        }
        match &self.report {
            Some(to) => crate::report::page::check("--report", to),
            None => Ok(()),
        }
    }

    fn traced_tasks(&self) -> TracedTasks {
        if !self.command.is_empty() {
            TracedTasks::Command
        } else if self.all {
            TracedTasks::Machine
        } else {
            TracedTasks::Processes
        }
    }

    fn recording_options(&self) -> Option<switchtrace::RecordingOptions> {
        self.perfetto.as_ref()?;
        Some(switchtrace::RecordingOptions { bytes: self.buffer, wakeups: self.wakeups })
    }

    /// Prints the figures and writes what was asked for; all of it, even if a part cannot be
    /// written. Returns whether all could be written.
    fn write(
        &self,
        trace: &TraceReport,
        account: &SwitchAccount,
        grouping: RowGrouping<'_>,
        recording: Option<PerfettoRecording>,
        path: Option<&Path>,
    ) -> bool {
        let files = &self.output.files;
        let report = match &self.report {
            Some(to) => {
                let page = page::page(trace, figures::figures(account, grouping));
                write_output(page.html().as_bytes(), to)
            }
            None => Ok(()),
        };
        let printed =
            if files.quiet { Ok(()) } else { self.print(trace, self.report_line(&report), path) };
        all_written([
            printed,
            recording.map_or(Ok(()), PerfettoRecording::finish),
            report,
            write_json(trace, files.json.as_ref()),
            files.csv.as_ref().map_or(Ok(()), |to| write_output(&exports::pairs_csv(account)?, to)),
            self.folded.as_ref().map_or(Ok(()), |to| write_output(&exports::folded(account), to)),
        ])
    }

    /// Returns the line that says where the report is; empty where it is in no file.
    fn report_line(&self, written: &Result<()>) -> String {
        match (&self.report, written) {
            (Some(Destination::File(path)), Ok(())) => format!("report: {}\n", path.display()),
            _ => String::new(),
        }
    }

    /// Prints the figures: to standard error where standard output is the command's, or another
    /// output goes there.
    fn print(&self, trace: &TraceReport, report_line: String, path: Option<&Path>) -> Result<()> {
        let UnstoredOptions { verbose, tables, .. } = &self.output;
        let layout = tables.layout();
        let stored_line = verbose.then(|| run_file_line(path) + "\n");
        let text = printout![table::text(trace, *verbose, layout), stored_line, &report_line];
        let is_taken = self.outputs().iter().any(|(_, to)| *to == Some(&Destination::Stdout));
        if is_taken || !self.command.is_empty() {
            say_fitted(text, layout);
            return Ok(());
        }
        print_fitted(text, layout).context("cannot print the figures")
    }
}

pub(crate) fn run(args: &TraceArgs) -> Result<ExitCode> {
    args.check()?;
    let named = args.profile.as_deref().map(watch::find_profile).transpose()?;
    if !args.command.is_empty() {
        return trace_command(args, named.as_ref());
    }
    let processes =
        ProcessSet::of_options(args.pid.as_ref(), args.cgroup.as_deref(), !args.no_children)?;
    trace_running(args, processes.as_ref(), named.as_ref())
}

/// Traces a program that runs, or the machine.
fn trace_running(
    args: &TraceArgs,
    processes: Option<&ProcessSet>,
    named: Option<&ChosenProfile>,
) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let typed = processes.map_or("--pid PID", |processes| &processes.typed);
    let instead = format!("switchcost cost {typed}");
    let scope = processes.map_or(TraceScope::All, ProcessSet::scope);
    let mut watcher =
        processes.and_then(|processes| memory_watcher(processes, args.budget, &interrupt));
    let mut tracing = RunningTrace::begin(args, scope, &instead)?;
    if let Some(processes) = processes {
        if let Err(error) = check_seen(&tracing.session, processes) {
            return Err(tracing.give_up(error));
        }
    }
    let end = Instant::now() + args.budget;
    tracing.follow(TraceEnd::WithAll, |longest| {
        let mut longest = longest;
        if let Some(watcher) = &mut watcher {
            let until_look = watcher.look_if_due(Some(LOOK), |time| interrupt.wait(time));
            longest = longest.min(until_look.unwrap_or(longest));
        }
        interrupt.wait_until(end, longest)
    });
    let session = &tracing.session;
    if let Some(signal) = interrupt.signal() {
        tracing.notices.push(format!("stopped by signal {signal}, before its time was over"));
    } else if !session.has_living_process() {
        let seconds = session.elapsed().as_secs_f64();
        tracing.notices.push(format!("it ended after {seconds:.1} s"));
    }
    let watcher = watcher.filter(|watcher| watcher.last_look.is_some());
    let costs = match (processes, watcher) {
        (Some(processes), Some(mut watcher)) => {
            let _ = watcher.read_counts();
            let program = ProgramProcesses::from_tracer(processes, &tracing.session, watcher.pid());
            let report = watcher.report(
                Ok(ProgramObservation::from_tracer(&tracing.session)),
                &program,
                named,
            );
            costs_of_report(&report)
        }
        _ => costs_without_memory(named),
    };
    let target = match processes {
        Some(processes) => target(processes, &tracing.session),
        None => TraceTarget::machine(),
    };
    let reason = match interrupt.signal() {
        Some(_) => StopReason::Interrupted,
        None => StopReason::BudgetSpent,
    };
    if !tracing.tell(target, costs, reason) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

fn target(processes: &ProcessSet, session: &TracerSession) -> TraceTarget {
    let pids: Vec<u32> = processes.pids.iter().map(|pid| pid.unsigned_abs()).collect();
    let pid = if let [pid] = pids[..] { Some(pid) } else { None };
    let children = session.account.children();
    TraceTarget { name: processes.name.clone(), pid, pids, children, command: None }
}

/// Traces a command. The exit code is the command's.
fn trace_command(args: &TraceArgs, named: Option<&ChosenProfile>) -> Result<ExitCode> {
    let words = &args.command;
    look_up(std::slice::from_ref(words)).map_err(|error| report_unmeasured(Some(error), None))?;
    // Until the command has a process id nothing is in scope.
    let scope = TraceScope::Tree(u32::MAX);
    let mut tracing = RunningTrace::begin(args, scope, "switchcost cost -- CMD")?;
    let anonymous = args.output.files.anonymous;
    let command = WatchedCommand::start(words, args.budget, anonymous, Some(&mut tracing.session));
    let mut command = match command {
        Ok(command) => command,
        Err(error) => return Err(tracing.give_up(error)),
    };
    tracing.follow(TraceEnd::Told, |longest| command.wait(Some(longest)));
    let mut ended = command.end()?;
    tracing.notices.splice(0..0, ended.end_notices());
    let costs = costs_of_report(
        &ended.report(Ok(ProgramObservation::from_tracer(&tracing.session)), named),
    );
    let target = TraceTarget {
        name: ended.words.first().cloned().unwrap_or_default(),
        pid: Some(ended.pid),
        pids: vec![ended.pid],
        children: tracing.session.account.children(),
        command: Some(ended.words.clone()),
    };
    tracing.tell(target, costs, StopReason::BudgetSpent);
    Ok(ended.exit_code())
}

/// Returns a watcher of the memory of the process that uses the most CPU time; none where all have
/// ended, or have no memory of their own, such as a thread of the kernel.
fn memory_watcher(
    processes: &ProcessSet,
    budget: Duration,
    interrupt: &Interrupt,
) -> Option<ProgramWatcher> {
    let pid = processes.busiest(|moment| _ = interrupt.wait(moment))?;
    let program = WatchedProcess::find(Path::new("/"), pid).ok()?;
    Some(ProgramWatcher::new(program, Some(budget)))
}

/// Refuses threads of other processes, and processes that have all ended before the tracer saw
/// them.
fn check_seen(session: &TracerSession, processes: &ProcessSet) -> Result<()> {
    for pid in &processes.pids {
        let tid = pid.unsigned_abs();
        let Some(thread) = session.account.living_thread(tid) else { continue };
        if thread.tgid != tid {
            return Err(usage(format!(
                "--pid {pid}: it is a thread of process {}: trace that",
                thread.tgid
            )));
        }
    }
    if !session.has_living_process() {
        return Err(usage(format!("{}: it has ended", processes.typed)));
    }
    Ok(())
}

/// When tracing is over, beside its time.
#[derive(PartialEq)]
enum TraceEnd {
    /// When no thread in scope lives any more.
    WithAll,
    /// When it is said so: a command may not have begun.
    Told,
}

/// A trace from beginning to end.
struct RunningTrace<'a> {
    args: &'a TraceArgs,
    session: TracerSession,
    recording: Option<PerfettoRecording>,
    timeline: TraceTimeline,
    stored: StoredTrace,
    bar: Progress,
    /// Notes on what happened meanwhile.
    notices: Vec<String>,
}

/// Time after which a process that is gone, and that the tracer still counts as living, has ended
/// without being seen: the counts are read each second.
const MISSED_END: Duration = Duration::from_secs(3);

impl<'a> RunningTrace<'a> {
    fn begin(args: &'a TraceArgs, scope: TraceScope, instead: &str) -> Result<Self> {
        let recording = args.perfetto.as_ref().map(PerfettoRecording::start).transpose()?;
        // Before anything is counted, as it takes a while.
        let machine = probe::machine::read(Path::new("/"));
        let session = TracerSession::open(scope, args.recording_options(), args.by, instead)?;
        let stored = StoredTrace::begin(args, &machine, &session);
        // The terminal is the command's.
        let is_hidden = args.output.files.quiet || !args.command.is_empty();
        let bar = Progress::for_budget(args.budget, is_hidden);
        let (timeline, notices) = (TraceTimeline::default(), Vec::new());
        Ok(Self { args, session, recording, timeline, stored, bar, notices })
    }

    /// Removes what was stored of a trace that could not begin; returns the reason.
    fn give_up(self, error: anyhow::Error) -> anyhow::Error {
        self.stored.remove();
        error
    }

    /// Looks again and again, until `wait`, which waits so long at most, says that it is over.
    fn follow(&mut self, end: TraceEnd, mut wait: impl FnMut(Duration) -> bool) {
        let mut gone_since = None;
        let longest = if self.recording.is_some() { DRAIN_INTERVAL } else { LOOK };
        loop {
            let is_over = wait(longest);
            self.look(is_over);
            // The look that finds nobody left is the last: waiting longer would be in all rates.
            let is_seen_to_end = self.session.account.living_processes().next().is_none();
            // One that has ended is seen to end by the next count; if not, the tracer missed it.
            gone_since = if self.session.has_living_process() {
                None
            } else {
                gone_since.or(Some(Instant::now()))
            };
            let is_missed = gone_since.is_some_and(|since| since.elapsed() > MISSED_END);
            if is_over || end == TraceEnd::WithAll && (is_seen_to_end || is_missed) {
                return self.bar.end();
            }
        }
    }

    /// Takes the events that are there, and looks at the counts if it is time to.
    fn look(&mut self, is_over: bool) {
        if let Some(recording) = &mut self.recording {
            recording.take(&mut self.session);
        }
        if !is_over && !self.session.is_due() {
            return;
        }
        self.session.look();
        self.stored.look(&self.session);
        if let Some(recording) = &mut self.recording {
            recording.name(&self.session);
        }
        let (elapsed, total) = (self.session.elapsed(), self.session.account.total());
        let rate = total.switches() as f64 / elapsed.as_secs_f64();
        self.bar.tell(elapsed, &format!("{} switches a second", grouped(rate)));
        self.timeline.add(elapsed.as_secs_f64(), &total);
    }

    /// Prints the figures and writes what was asked for; returns whether all could be written.
    fn tell(self, target: TraceTarget, costs: TraceCosts, reason: StopReason) -> bool {
        let Self { args, session, recording, timeline, mut stored, notices, .. } = self;
        stored.end(reason);
        let account = &session.account;
        let default = if has_one_process(account) { GroupBy::Thread } else { GroupBy::Process };
        let grouping = session.grouping(args.by.unwrap_or(default));
        let facts = TraceFacts {
            target,
            seconds: session.elapsed().as_secs_f64(),
            costs,
            overhead: session.overhead(),
            timeline: timeline.points(),
        };
        let mut trace = TraceReport::from_account(account, grouping, facts);
        trace.missed_switches = session.lost().switches;
        trace.notices = session.gaps();
        trace.notices.extend(notices);
        trace.notices.extend(recording.as_ref().and_then(early_end_in_words));
        args.write(&trace, account, grouping, recording, stored.path().as_deref())
    }
}

/// Returns whether all tasks in scope are of one process.
fn has_one_process(account: &SwitchAccount) -> bool {
    let mut first = None;
    for task in account.tasks.values() {
        if task.in_scope && *first.get_or_insert(task.tgid) != task.tgid {
            return false;
        }
    }
    true
}

/// Says that the recording has ended before the trace.
fn early_end_in_words(recording: &PerfettoRecording) -> Option<String> {
    let seconds = recording.full_s?;
    Some(format!("the recording ends after {seconds:.1} s: it has reached 2 GiB"))
}

/// Returns the costs of a program whose memory was watched.
fn costs_of_report(report: &ProgramCostReport) -> TraceCosts {
    let total = match (&report.cost, report.refill_share.known()) {
        (ProgramCost::Estimated { cost_ns, .. }, Some(_)) => Some(*cost_ns),
        _ => None,
    };
    TraceCosts {
        price: Price { direct: report.direct(), total },
        figure: report.figure,
        apart: watch::find_hand_over_cost().map(|apart| (apart, cpus())),
        profile: report.profile.clone(),
        own: report.preemption_cost.clone(),
        refill_unknown: report.refill_share.why().map(str::to_string),
        command_to_know: report.command_to_know.clone(),
    }
}

/// Returns the costs of the switches themselves, where no working set is known.
fn costs_without_memory(named: Option<&ChosenProfile>) -> TraceCosts {
    let chosen = named.cloned().map_or_else(watch::newest_profile, Ok);
    let (direct, command_to_know) = match &chosen {
        Ok(chosen) => (direct_of(&chosen.profile.points, None), None),
        Err(_) => (None, Some("switchcost cost".to_string())),
    };
    let refill_unknown = "the working sets of several programs are not read (--pid does)";
    TraceCosts {
        price: Price { direct, total: None },
        figure: None,
        apart: None,
        own: None,
        profile: Reading::from(chosen.map(|chosen| chosen.profile)),
        refill_unknown: Some(refill_unknown.to_string()),
        command_to_know,
    }
}
