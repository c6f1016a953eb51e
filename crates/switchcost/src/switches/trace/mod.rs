//! `switchcost trace`: every switch of a command, a process or the machine, added up; here is what
//! may be typed.

mod exports;
mod figures;
mod page;
mod perfetto;
mod pinning;
mod recording;
mod report;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use report::TraceReport;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use analysis::program::{Price, ProgramCost};
use anyhow::{Context, Result};
use clap::builder::ArgPredicate;
use clap::{ArgGroup, Args};
use launcher::look_up;
use probe::program::WatchedProcess;
use rundata::reading::Reading;

use crate::base::failure::usage;
use crate::base::values::{Destination, List, UNTIL_END, bytes, duration};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::observe::live::GroupBy;
use crate::observe::live::account::{SwitchAccount, TraceScope};
use crate::observe::live::labels::ProcessLabels;
use crate::observe::live::session::{LOOK, TracerSession, cpus};
use crate::observe::processes::{ProcessName, ProcessSet, process_names};
use crate::programs::watch::command::{Command, not_measured};
use crate::programs::watch::findings::Report;
use crate::programs::watch::{self, Chosen, WATCHED, Watcher, WholeProgram, traced};
use crate::report::output::{
    Files, Unstored, all_written, check_place, print_fitted, put, put_json, say_fitted,
};
use crate::report::printout::printout;
use recording::PerfettoRecording;
use report::{TraceCosts, TraceTarget, TraceTimeline};
use rundata::words::grouped;

/// Time between two readings of the ring buffer.
const DRAIN: Duration = Duration::from_millis(20);

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
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', value_name = "TIME", default_value = WATCHED, default_value_if("command", ArgPredicate::IsPresent, Some(UNTIL_END)), hide_default_value = true, value_parser = duration)]
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

    /// Trace a command and all that it starts; its exit code is this program's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    output: Unstored,
}

/// Bytes of the ring buffer.
fn buffer(text: &str) -> Result<u32, String> {
    let bytes =
        u32::try_from(bytes(text)?).ok().filter(|bytes| (1 << 16..=1 << 30).contains(bytes));
    let accepted = || "accepted: 64K to 1G; it is rounded up to a power of two".to_string();
    bytes.map(u32::next_power_of_two).ok_or_else(accepted)
}

impl TraceArgs {
    /// All that is to be written.
    fn outputs(&self) -> [(&'static str, Option<&Destination>); 5] {
        let Files { json, csv, .. } = &self.output.files;
        [
            ("--json", json.as_ref()),
            ("--csv", csv.as_ref()),
            ("--folded", self.folded.as_ref()),
            ("--perfetto", self.perfetto.as_ref()),
            ("--report", self.report.as_ref()),
        ]
    }

    /// Whether what was typed can be done, before anything is attached.
    fn check(&self) -> Result<()> {
        let output = &self.output;
        output.files.check()?;
        let mut taken: Vec<&Destination> = Vec::new();
        for (flag, to) in self.outputs() {
            let Some(to) = to else { continue };
            check_place(flag, to)?;
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
        self.report.as_ref().map_or(Ok(()), |to| crate::report::page::check("--report", to))
    }

    fn recorder(&self) -> Option<switchtrace::RecordingOptions> {
        self.perfetto.as_ref()?;
        Some(switchtrace::RecordingOptions { bytes: self.buffer, wakeups: self.wakeups })
    }

    /// Prints the figures and writes what was asked for; all of it, even if a part cannot be
    /// written.
    fn write(
        &self,
        trace: &TraceReport,
        account: &SwitchAccount,
        by: (GroupBy, &ProcessLabels),
        recording: Option<PerfettoRecording>,
    ) -> bool {
        let Unstored { files, verbose, tables } = &self.output;
        let page = || page::page(trace, figures::figures(account, by)).html();
        let report = self.report.as_ref().map(|to| put(page().as_bytes(), to));
        let place = match (&self.report, &report) {
            (Some(Destination::File(path)), Some(Ok(()))) => {
                format!("report: {}\n", path.display())
            }
            _ => String::new(),
        };
        let is_taken = self.outputs().iter().any(|(_, to)| *to == Some(&Destination::Stdout));
        let print = || {
            let layout = tables.layout();
            let text = printout![table::text(trace, *verbose, layout), &place];
            if is_taken || !self.command.is_empty() {
                say_fitted(text, layout);
                return Ok(());
            }
            print_fitted(text, layout).context("cannot print the figures")
        };
        all_written([
            if files.quiet { Ok(()) } else { print() },
            recording.map_or(Ok(()), PerfettoRecording::finish),
            report.unwrap_or(Ok(())),
            put_json(trace, files.json.as_ref()),
            files.csv.as_ref().map_or(Ok(()), |to| put(&exports::pairs_csv(account)?, to)),
            self.folded.as_ref().map_or(Ok(()), |to| put(&exports::folded(account), to)),
        ])
    }
}

pub(crate) fn run(args: &TraceArgs) -> Result<ExitCode> {
    args.check()?;
    let named = args.profile.as_deref().map(watch::named).transpose()?;
    if !args.command.is_empty() {
        return started(args, named.as_ref());
    }
    let processes =
        ProcessSet::of_options(args.pid.as_ref(), args.cgroup.as_deref(), !args.no_children)?;
    attached(args, processes.as_ref(), named.as_ref())
}

/// A program that runs, or the machine.
fn attached(
    args: &TraceArgs,
    processes: Option<&ProcessSet>,
    named: Option<&Chosen>,
) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let typed = processes.map_or("--pid PID", |processes| &processes.typed);
    let instead = format!("switchcost cost {typed}");
    let scope = processes.map_or(TraceScope::All, ProcessSet::scope);
    let mut watcher =
        processes.and_then(|processes| memory_watcher(processes, args.budget, &interrupt));
    let mut tracing = RunningTrace::begin(args, scope, &instead)?;
    processes.map_or(Ok(()), |processes| check_seen(&tracing.session, processes))?;
    let end = Instant::now() + args.budget;
    tracing.follow(TraceEnd::WithAll, |_, longest| {
        let watcher = watcher.as_mut();
        let until_look = watcher.and_then(|of| of.look_if_due(Some(LOOK), |so| interrupt.wait(so)));
        let longest = longest.min(until_look.unwrap_or(longest));
        interrupt.wait_until(end, longest)
    });
    let session = &tracing.session;
    if let Some(signal) = interrupt.signal() {
        tracing.notices.push(format!("stopped by signal {signal}, before its time was over"));
    } else if !session.account.is_alive() {
        let seconds = session.elapsed().as_secs_f64();
        tracing.notices.push(format!("it ended after {seconds:.1} s"));
    }
    let target = processes.map_or_else(TraceTarget::machine, |of| target(of, &tracing.session));
    let watcher = watcher.filter(|watcher| watcher.last_look.is_some());
    let costs = match processes.zip(watcher) {
        Some((processes, mut watcher)) => {
            let _ = watcher.see();
            let whole = WholeProgram::traced(processes, &tracing.session, watcher.pid());
            of_report(&watcher.report(Ok(traced(&tracing.session)), &whole, named))
        }
        None => direct_only(named),
    };
    Ok(match tracing.tell(target, costs) {
        true => interrupt.exit_code().unwrap_or(0).into(),
        false => ExitCode::FAILURE,
    })
}

fn target(processes: &ProcessSet, session: &TracerSession) -> TraceTarget {
    let pids: Vec<u32> = processes.pids.iter().map(|pid| pid.unsigned_abs()).collect();
    let pid = if let [pid] = pids[..] { Some(pid) } else { None };
    let children = session.account.children();
    TraceTarget { name: processes.name.clone(), pid, pids, children, command: None }
}

/// A command.
fn started(args: &TraceArgs, named: Option<&Chosen>) -> Result<ExitCode> {
    let words = &args.command;
    look_up(std::slice::from_ref(words)).map_err(|error| not_measured(Some(error), None))?;
    // Until the command has a process id nothing is inside.
    let mut tracing =
        RunningTrace::begin(args, TraceScope::Tree(u32::MAX), "switchcost cost -- CMD")?;
    let anonymous = args.output.files.anonymous;
    let mut command = Command::start((words, args.budget), anonymous, Some(&mut tracing.session))?;
    tracing.follow(TraceEnd::Told, |_, longest| command.wait(Some(longest)));
    let mut ended = command.end()?;
    tracing.notices.splice(0..0, ended.over_in_words());
    let costs = of_report(&ended.report(Ok(traced(&tracing.session)), named));
    let name = ended.words.first().cloned().unwrap_or_default();
    let target = TraceTarget {
        name,
        pid: Some(ended.pid),
        pids: vec![ended.pid],
        children: tracing.session.account.children(),
        command: Some(ended.words.clone()),
    };
    // The exit code is the command's.
    tracing.tell(target, costs);
    Ok(ended.exit_code())
}

/// A watcher of the memory of the process that uses the most CPU time; none where all have ended,
/// or have no memory of their own, such as a thread of the kernel.
fn memory_watcher(
    processes: &ProcessSet,
    budget: Duration,
    interrupt: &Interrupt,
) -> Option<Watcher> {
    let pid = processes.busiest(|moment| _ = interrupt.wait(moment))?;
    let program = WatchedProcess::find(Path::new("/"), pid).ok()?;
    Some(Watcher::new(program, Some(budget)))
}

/// Refuses threads of other processes, and processes that have all ended before the tracer saw
/// them.
fn check_seen(session: &TracerSession, processes: &ProcessSet) -> Result<()> {
    for pid in &processes.pids {
        let tid = pid.unsigned_abs();
        match session.account.process_of(tid) {
            Some((process, _)) if process != tid => {
                return Err(usage(format!(
                    "--pid {pid}: it is a thread of process {process}: trace that"
                )));
            }
            _ => {}
        }
    }
    match session.account.is_alive() {
        true => Ok(()),
        false => Err(usage(format!("{}: it has ended", processes.typed))),
    }
}

/// When tracing is over, beside its time.
#[derive(PartialEq)]
enum TraceEnd {
    /// When nobody who is traced lives any more.
    WithAll,
    /// When it is said so: a command may not have begun.
    Told,
}

/// What is traced from beginning to end.
struct RunningTrace<'a> {
    args: &'a TraceArgs,
    session: TracerSession,
    recording: Option<PerfettoRecording>,
    timeline: TraceTimeline,
    bar: Progress,
    /// What happened.
    notices: Vec<String>,
}

impl<'a> RunningTrace<'a> {
    fn begin(args: &'a TraceArgs, scope: TraceScope, instead: &str) -> Result<Self> {
        let recording = args.perfetto.as_ref().map(PerfettoRecording::start).transpose()?;
        let session = TracerSession::open(scope, args.recorder(), args.by, instead)?;
        // The terminal is the command's.
        let bar =
            Progress::for_budget(args.budget, args.output.files.quiet || !args.command.is_empty());
        let (timeline, notices) = (TraceTimeline::default(), Vec::new());
        Ok(Self { args, session, recording, timeline, bar, notices })
    }

    /// Looks again and again, until `wait`, which waits so long at most, says that it is over.
    fn follow(&mut self, ends: TraceEnd, mut wait: impl FnMut(&TracerSession, Duration) -> bool) {
        let longest = if self.recording.is_some() { DRAIN } else { LOOK };
        loop {
            let is_over = wait(&self.session, longest);
            self.look(is_over);
            // The look that finds nobody left is the last: waiting longer would be in all rates.
            if is_over || ends == TraceEnd::WithAll && !self.session.account.is_alive() {
                return self.bar.end();
            }
        }
    }

    /// Takes the events that are there, and looks at the counts if it is time to.
    fn look(&mut self, is_over: bool) {
        let Self { session, recording, timeline, bar, .. } = self;
        recording.iter_mut().for_each(|recording| recording.take(session));
        if !is_over && !session.is_due() {
            return;
        }
        session.look();
        recording.iter_mut().for_each(|recording| recording.name(session));
        let (elapsed, total) = (session.elapsed(), session.account.total());
        let rate = total.switches() as f64 / elapsed.as_secs_f64();
        bar.tell(elapsed, &format!("{} switches a second", grouped(rate)));
        timeline.add(elapsed.as_secs_f64(), &total);
    }

    /// Prints the figures and writes what was asked for; whether all could be written.
    fn tell(self, target: TraceTarget, costs: TraceCosts) -> bool {
        let Self { args, session, recording, timeline, mut notices, .. } = self;
        notices.extend(recording.as_ref().and_then(full));
        let account = &session.account;
        let mut inside = account.lives.values().filter(|life| life.inside).map(|life| life.tgid);
        let first = inside.next();
        let is_one = inside.all(|tgid| Some(tgid) == first);
        let by = args.by.unwrap_or(if is_one { GroupBy::Thread } else { GroupBy::Process });
        let (own, seconds) = (session.own(), session.elapsed().as_secs_f64());
        let (by, points) = ((by, &session.labels), timeline.points());
        let mut trace = TraceReport::of(account, (target, seconds), costs, by, own, points);
        trace.missed_switches = session.lost().switches;
        trace.notices = session.gaps();
        trace.notices.extend(notices);
        args.write(&trace, account, by, recording)
    }
}

/// That the recording has ended before the trace.
fn full(recording: &PerfettoRecording) -> Option<String> {
    let seconds = recording.full_s?;
    Some(format!("the recording ends after {seconds:.1} s: it has reached 2 GiB"))
}

/// The costs of a program whose memory was watched.
fn of_report(report: &Report) -> TraceCosts {
    let total = match (&report.cost, report.refill_share.known()) {
        (ProgramCost::Estimated { cost_ns, .. }, Some(_)) => Some(*cost_ns),
        _ => None,
    };
    TraceCosts {
        price: Price { direct: report.direct(), total },
        figure: report.figure,
        apart: watch::apart().map(|apart| (apart, cpus())),
        profile: report.profile.clone(),
        own: report.own.clone(),
        refill_unknown: report.refill_share.why().map(str::to_string),
        command_to_know: report.command_to_know.clone(),
    }
}

/// Where no working set is known.
fn direct_only(named: Option<&Chosen>) -> TraceCosts {
    let chosen = named.cloned().map_or_else(watch::newest, Ok);
    let direct = chosen.as_ref().ok().and_then(|chosen| watch::direct(&chosen.profile.points));
    let command = chosen.is_err().then(|| "switchcost cost".to_string());
    TraceCosts {
        price: Price { direct, total: None },
        figure: None,
        apart: None,
        own: None,
        profile: Reading::from(chosen.map(|chosen| chosen.profile)),
        refill_unknown: Some(
            "the working sets of several programs are not read (--pid does)".to_string(),
        ),
        command_to_know: command,
    }
}
