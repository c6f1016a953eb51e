//! `switchcost trace`: every switch of a command, a process or the machine, added up; here is what
//! may be typed.

mod exports;
mod perfetto;
mod pinning;
mod recording;
mod report;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use report::Trace;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use launcher::{Launcher, LauncherError, Series};
use model::reading::Reading;
use probe::program::{WatchError, Watched};

use crate::base::failure::{say, usage};
use crate::base::secrets::shown;
use crate::base::values::{Destination, bytes};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::observe::live::By;
use crate::observe::live::account::Scope;
use crate::observe::live::session::{LOOK, Session, cpus};
use crate::observe::price::Price;
use crate::observe::watch::findings::Report;
use crate::observe::watch::program::ProgramCost;
use crate::observe::watch::{self, Chosen, Counts, Watcher, report_of_command};
use crate::present::output::{Files, Unstored, check_place, print_text, put, put_json, say_text};
use model::words::grouped;
use recording::Recording;
use report::{Costs, Target, Timeline};

/// Time between two readings of the ring buffer.
const DRAIN: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "all", "command"])))]
pub(crate) struct TraceArgs {
    /// Trace this running process, all its threads
    ///
    /// Its working set is read as `cost --pid` does.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Trace the whole machine
    #[arg(long)]
    all: bool,

    /// How long, with --pid and --all
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = watch::seconds, conflicts_with = "command")]
    seconds: Duration,

    /// A row for each thread, process, control group or user [default: process, or thread if there
    /// is one process]
    #[arg(long)]
    by: Option<By>,

    /// The stored run whose costs count, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN")]
    profile: Option<String>,

    /// Record every switch of the machine, for Perfetto's viewer (ui.perfetto.dev) and
    /// trace_processor
    ///
    /// A switch takes some 30 bytes; at 2 GiB the recording ends. Events that are lost are counted
    /// and told.
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
    fn outputs(&self) -> [(&'static str, Option<&Destination>); 4] {
        let Files { json, csv, .. } = &self.output.files;
        [
            ("--json", json.as_ref()),
            ("--csv", csv.as_ref()),
            ("--folded", self.folded.as_ref()),
            ("--perfetto", self.perfetto.as_ref()),
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
                return Err(usage(format!("{flag} {to}: another output goes there")));
            }
            if *to == Destination::Stdout && !self.command.is_empty() {
                return Err(usage(format!(
                    "{flag} -: standard output is the command's (accepted here: {flag} FILE)"
                )));
            }
            taken.push(to);
        }
        Ok(())
    }

    fn recorder(&self) -> Option<switchtrace::Recording> {
        self.perfetto.as_ref()?;
        Some(switchtrace::Recording { bytes: self.buffer, wakeups: self.wakeups })
    }

    /// Prints the figures and writes what was asked for; all of it, even if a part cannot be
    /// written.
    fn write(&self, trace: &Trace, session: &Session, recording: Option<Recording>) -> Result<()> {
        let output = &self.output;
        let is_taken = self.outputs().iter().any(|(_, to)| *to == Some(&Destination::Stdout));
        let mut errors = Vec::new();
        if !output.files.quiet {
            let text = table::text(trace, output.verbose);
            match is_taken || !self.command.is_empty() {
                true => say_text(&text),
                false => errors.extend(print_text(&text).context("cannot print the figures").err()),
            }
        }
        errors.extend(recording.and_then(|recording| recording.finish().err()));
        errors.extend(put_json(trace, output.files.json.as_ref()).err());
        let csv =
            output.files.csv.as_ref().map(|to| put(&exports::pairs_csv(&session.account)?, to));
        errors.extend(csv.and_then(Result::err));
        let folded = self.folded.as_ref().map(|to| put(&exports::folded(&session.account), to));
        errors.extend(folded.and_then(Result::err));
        let last = errors.pop();
        errors.iter().for_each(|error| say(&format!("error: {error:#}")));
        last.map_or(Ok(()), Err)
    }
}

pub(crate) fn run(args: &TraceArgs) -> Result<ExitCode> {
    args.check()?;
    let output = &args.output;
    let named = args.profile.as_deref().map(watch::named).transpose()?;
    if !args.command.is_empty() {
        return command(args, named.as_ref());
    }
    let interrupt = Interrupt::watch()?;
    let instead = match args.pid {
        Some(pid) => format!("switchcost cost --pid {pid}"),
        None => "switchcost cost --pid PID".to_string(),
    };
    let scope = args.pid.map_or(Scope::All, |pid| Scope::Process(pid.unsigned_abs()));
    let mut watcher = args.pid.map(watcher).transpose()?.flatten();
    let mut recording = args.perfetto.as_ref().map(Recording::start).transpose()?;
    let mut session = Session::open(scope, args.recorder(), args.by, &instead)?;
    let name = match args.pid {
        Some(pid) => process_name(&session, pid)?,
        None => "machine".to_string(),
    };
    let bar = Progress::whole(args.seconds, output.files.quiet);
    let mut timeline = Timeline::default();
    let end = Instant::now() + args.seconds;
    let step = if recording.is_some() { DRAIN } else { LOOK };
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let until_look = watcher.as_ref().and_then(Watcher::until_look).unwrap_or(LOOK);
        let is_over = interrupt.wait(step.min(left).min(until_look)) || left.is_zero();
        if let Some(of) = watcher.as_mut().filter(|_| until_look <= LOOK) {
            if of.look(|longest| interrupt.wait(longest)).is_err() {
                watcher = None;
            }
        }
        look(&mut session, is_over, &mut timeline, recording.as_mut(), &bar);
        if is_over || !session.account.is_alive() {
            break;
        }
    }
    bar.end();
    let mut notices = Vec::new();
    if let Some(signal) = interrupt.signal() {
        notices.push(format!("stopped by signal {signal}, before its time was over"));
    } else if !session.account.is_alive() {
        notices.push(format!("it ended after {:.1} s", session.elapsed().as_secs_f64()));
    }
    let target = Target { name, pid: args.pid.map(i32::unsigned_abs), command: None };
    let costs = match watcher {
        Some(mut watcher) => {
            let _ = watcher.see();
            of_report(&watcher.report(Ok(Counts::traced(&session)), named.as_ref()))
        }
        None => direct_only(named.as_ref()),
    };
    notices.extend(recording.as_ref().and_then(full));
    let trace = finish(&session, target, costs, args.by, timeline, notices);
    args.write(&trace, &session, recording)?;
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

/// A watcher of its memory; none for what has no memory of its own, such as a thread of the kernel.
fn watcher(pid: i32) -> Result<Option<Watcher>> {
    match Watched::find(Path::new("/"), pid) {
        Ok(program) => Ok(Some(Watcher::new(program, None))),
        Err(error @ (WatchError::Gone | WatchError::Ended(_))) => {
            Err(usage(format!("--pid {pid}: {error}")))
        }
        Err(_) => Ok(None),
    }
}

fn process_name(session: &Session, pid: i32) -> Result<String> {
    let tid = pid.unsigned_abs();
    match session.account.process_of(tid) {
        Some((process, name)) if process == tid => Ok(name),
        Some((process, _)) => {
            Err(usage(format!("--pid {pid}: it is a thread of process {process}: trace that")))
        }
        None => Err(usage(format!("--pid {pid}: it has ended"))),
    }
}

/// Takes the events that are there, and looks at the counts if it is time to.
fn look(
    session: &mut Session,
    is_over: bool,
    timeline: &mut Timeline,
    mut recording: Option<&mut Recording>,
    bar: &Progress,
) {
    if let Some(recording) = &mut recording {
        recording.take(session);
    }
    if !is_over && !session.is_due() {
        return;
    }
    session.look();
    if let Some(recording) = recording {
        recording.name(session);
    }
    let (elapsed, total) = (session.elapsed(), session.account.total());
    let rate = total.switches() as f64 / elapsed.as_secs_f64();
    bar.tell(elapsed, &format!("{} switches a second", grouped(rate)));
    timeline.add(elapsed.as_secs_f64(), total);
}

/// That the recording has ended before the trace.
fn full(recording: &Recording) -> Option<String> {
    let seconds = recording.full_s?;
    Some(format!("the recording ends after {seconds:.1} s: it has reached 2 GiB"))
}

fn finish(
    session: &Session,
    target: Target,
    costs: Costs,
    by: Option<By>,
    timeline: Timeline,
    notices: Vec<String>,
) -> Trace {
    let account = &session.account;
    let mut inside = account.lives.values().filter(|life| life.inside).map(|life| life.tgid);
    let first = inside.next();
    let is_one = inside.all(|tgid| Some(tgid) == first);
    let by = by.unwrap_or(if is_one { By::Thread } else { By::Process });
    let own = session.own();
    let seconds = session.elapsed().as_secs_f64();
    let mut trace =
        Trace::of(account, (target, seconds), costs, (by, &session.labels), own, timeline.points());
    trace.missed_switches = session.missed();
    trace.notices = session.gaps();
    trace.notices.extend(notices);
    trace
}

/// The costs of a program whose memory was watched.
fn of_report(report: &Report) -> Costs {
    let total = match (&report.cost, report.refill_share.known()) {
        (ProgramCost::Estimated { cost_ns, .. }, Some(_)) => Some(*cost_ns),
        _ => None,
    };
    Costs {
        price: Price { direct: report.direct(), total },
        apart: watch::apart().map(|apart| (apart, cpus())),
        profile: report.profile.clone(),
        refill_unknown: report.refill_share.why().map(str::to_string),
        command_to_know: report.command_to_know.clone(),
    }
}

/// Where no working set is known.
fn direct_only(named: Option<&Chosen>) -> Costs {
    let chosen = named.cloned().map_or_else(watch::newest, Ok);
    let direct = chosen.as_ref().ok().and_then(|chosen| watch::direct(&chosen.profile.points));
    let command = chosen.is_err().then(|| "switchcost cost".to_string());
    Costs {
        price: Price { direct, total: None },
        apart: None,
        profile: Reading::from(chosen.map(|chosen| chosen.profile)),
        refill_unknown: Some(
            "the working sets of several programs are not read (--pid does)".to_string(),
        ),
        command_to_know: command,
    }
}

fn command(args: &TraceArgs, named: Option<&Chosen>) -> Result<ExitCode> {
    let words = &args.command;
    if let Err(error) = launcher::look_up(std::slice::from_ref(words)) {
        say(&format!("error: {error}"));
        return Ok(error.exit_code.into());
    }
    let mut recording = args.perfetto.as_ref().map(Recording::start).transpose()?;
    // Until the command has a process id nothing is inside.
    let mut session =
        Session::open(Scope::Tree(u32::MAX), args.recorder(), args.by, "switchcost cost -- CMD")?;
    let mut launcher = Launcher::start(Series::watched(words))?;
    let pid = match launcher.started() {
        Ok(Some(pid)) => pid,
        started => return watch::without_figures(started.err(), launcher.signal()),
    };
    session.account.set_scope(Scope::Tree(pid));
    let program = Watched::find(Path::new("/"), pid as i32).ok();
    let mut watcher = program.map(|program| Watcher::new(program, None));
    let mut timeline = Timeline::default();
    // The terminal is the command's.
    let bar = Progress::whole(Duration::ZERO, true);
    let step = if recording.is_some() { DRAIN } else { LOOK };
    loop {
        let until_look = watcher.as_ref().and_then(Watcher::until_look).unwrap_or(LOOK);
        if launcher.wait_for_answer(Some(until_look.min(step))) {
            break;
        }
        if let Some(of) = watcher.as_mut().filter(|_| until_look <= LOOK) {
            // What cannot be read is said in the figures.
            let _ = of.look(|longest| launcher.wait_for_answer(Some(longest)));
        }
        look(&mut session, false, &mut timeline, recording.as_mut(), &bar);
    }
    look(&mut session, true, &mut timeline, recording.as_mut(), &bar);
    let used = match launcher.run() {
        Ok(Some(run)) => run.used,
        run => return watch::without_figures(run.err(), launcher.signal()),
    };
    let _ = launcher.run();
    let stopped: Option<LauncherError> = launcher.stopped_alone();
    drop(launcher);
    let text: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = shown(&text, args.output.files.anonymous);
    let counts = Ok(Counts::traced(&session));
    let costs = of_report(&report_of_command((text.clone(), pid), &used, counts, watcher, named));
    let name = text.first().cloned().unwrap_or_default();
    let target = Target { name, pid: Some(pid), command: Some(text) };
    let notices = recording.as_ref().and_then(full).into_iter().collect();
    let trace = finish(&session, target, costs, args.by, timeline, notices);
    // The exit code is the command's.
    if let Err(error) = args.write(&trace, &session, recording) {
        say(&format!("error: {error:#}"));
    }
    if let Some(error) = stopped {
        say(&format!("error: {error}"));
        return Ok(error.exit_code.into());
    }
    Ok(used.ending.shell_code().into())
}
