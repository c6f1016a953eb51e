//! `switchcost trace`: every switch of a command, a process or the machine, added up; here is what may be typed.

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

use crate::failure::{say, usage};
use crate::interrupt::Interrupt;
use crate::live::account::Scope;
use crate::live::rows::{By, Price};
use crate::live::session::{LOOK, Session};
use crate::output::{Output, print_text, put_json, say_text};
use crate::progress::Progress;
use crate::secrets::shown;
use crate::values::Destination;
use crate::watch::findings::{ProgramCost, Range, Report};
use crate::watch::{self, Chosen, Watcher, report_of_command};
use report::{Costs, Target, Timeline, grouped};

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

    /// A row for each thread or for each process [default: process, or thread if there is one process]
    #[arg(long)]
    by: Option<By>,

    /// The stored run whose costs count, instead of the newest run of `cost`
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN")]
    profile: Option<String>,

    #[command(flatten)]
    output: Output,

    /// Trace a command and all that it starts; its exit code is this program's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &TraceArgs) -> Result<ExitCode> {
    let output = &args.output;
    output.check()?;
    output.refuse_plot("a trace")?;
    if output.csv.is_some() || output.name.is_some() {
        return Err(usage("--csv, --name: nothing is stored of a trace (--json has all figures)"));
    }
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
    let mut session = Session::open(scope, None, &instead)?;
    let name = match args.pid {
        Some(pid) => process_name(&session, pid)?,
        None => "machine".to_string(),
    };
    let bar = Progress::whole(args.seconds, output.quiet);
    let mut timeline = Timeline::default();
    let end = Instant::now() + args.seconds;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let until_window = watcher.as_ref().and_then(Watcher::until_window).unwrap_or(LOOK);
        let is_over = interrupt.wait(LOOK.min(left).min(until_window)) || left.is_zero();
        if until_window.is_zero()
            && let Some(of) = &mut watcher
            && of.look(|longest| interrupt.wait(longest)).is_err()
        {
            watcher = None;
        }
        if is_over || session.is_due() {
            look(&mut session, &mut timeline, &bar);
        }
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
            of_report(&watcher.report(named.as_ref()))
        }
        None => direct_only(named.as_ref()),
    };
    let trace = finish(&session, target, costs, args.by, timeline, notices);
    let to_stdout = output.json != Some(Destination::Stdout);
    if !output.quiet {
        let text = table::text(&trace, output.view);
        match to_stdout {
            true => print_text(&text).context("cannot print the figures")?,
            false => say_text(&text),
        }
    }
    put_json(&trace, output.json.as_ref())?;
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

/// A watcher of its memory; none for what has no memory of its own, such as a thread of the kernel.
fn watcher(pid: i32) -> Result<Option<Watcher>> {
    match Watched::find(Path::new("/"), pid) {
        Ok(program) => Ok(Some(Watcher::new(program))),
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

fn look(session: &mut Session, timeline: &mut Timeline, bar: &Progress) {
    session.look();
    let (elapsed, total) = (session.elapsed(), session.account.total());
    let rate = total.switches() as f64 / elapsed.as_secs_f64();
    bar.tell(elapsed, &format!("{} switches a second", grouped(rate)));
    timeline.add(elapsed.as_secs_f64(), total);
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
    let own = session.own(account.switches_of_all());
    let seconds = session.elapsed().as_secs_f64();
    let mut trace = Trace::of(account, (target, seconds), costs, by, own, timeline.points());
    trace.missed_switches = session.missed();
    trace.notices = session.gaps();
    trace.notices.extend(notices);
    trace
}

/// The costs of a program whose memory was watched.
fn of_report(report: &Report) -> Costs {
    let points = report.profile.known().map_or(&[][..], |profile| &profile.points);
    let total = match (&report.cost, report.refill_share.known()) {
        (ProgramCost::Estimated { cost_ns, .. }, Some(_)) => Some(*cost_ns),
        _ => None,
    };
    Costs {
        price: Price { direct: watch::direct_ns(points), total },
        profile: report.profile.clone().map(|profile| profile.run),
        refill_unknown: report.refill_share.why().map(str::to_string),
        command_to_know: report.command_to_know.clone(),
    }
}

/// Where no working set is known.
fn direct_only(named: Option<&Chosen>) -> Costs {
    let chosen = named.cloned().map_or_else(watch::newest, Ok);
    let direct: Option<Range> =
        chosen.as_ref().ok().and_then(|chosen| watch::direct_ns(&chosen.profile.points));
    let command = chosen.is_err().then(|| "switchcost cost".to_string());
    Costs {
        price: Price { direct, total: None },
        profile: Reading::from(chosen.map(|chosen| chosen.profile.run)),
        refill_unknown: Some(
            "the working sets of several programs are not read (--pid does)".to_string(),
        ),
        command_to_know: command,
    }
}

fn command(args: &TraceArgs, named: Option<&Chosen>) -> Result<ExitCode> {
    let (output, words) = (&args.output, &args.command);
    if output.json == Some(Destination::Stdout) {
        return Err(usage(
            "--json -: standard output is the command's (accepted here: --json FILE)",
        ));
    }
    if let Err(error) = launcher::look_up(std::slice::from_ref(words)) {
        say(&format!("error: {error}"));
        return Ok(error.exit_code.into());
    }
    // Until the command has a process id nothing is inside.
    let mut session = Session::open(Scope::Tree(u32::MAX), None, "switchcost cost -- CMD")?;
    let commands = vec![words.clone()];
    let series = Series {
        commands,
        warmup: 0,
        runs: 1,
        seed: 0,
        tree: false,
        announce: true,
        discard: false,
    };
    let mut launcher = Launcher::start(series)?;
    let pid = match launcher.started() {
        Ok(Some(pid)) => pid,
        started => return watch::without_figures(started.err(), launcher.signal()),
    };
    session.account.set_scope(Scope::Tree(pid));
    let program = Watched::find(Path::new("/"), pid.cast_signed()).ok();
    let mut watcher = program.map(Watcher::new);
    let mut timeline = Timeline::default();
    // The terminal is the command's.
    let bar = Progress::whole(Duration::ZERO, true);
    loop {
        let until_window = watcher.as_ref().and_then(Watcher::until_window).unwrap_or(LOOK);
        if launcher.wait_for_answer(Some(until_window.min(LOOK))) {
            break;
        }
        if until_window.is_zero()
            && let Some(of) = &mut watcher
        {
            // What cannot be read is said in the figures.
            let _ = of.look(|longest| launcher.wait_for_answer(Some(longest)));
        }
        if session.is_due() {
            look(&mut session, &mut timeline, &bar);
        }
    }
    look(&mut session, &mut timeline, &bar);
    let used = match launcher.run() {
        Ok(Some(run)) => run.used,
        run => return watch::without_figures(run.err(), launcher.signal()),
    };
    let _ = launcher.run();
    let stopped: Option<LauncherError> = launcher.stopped_alone();
    drop(launcher);
    let text: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = shown(&text, output.anonymous);
    let costs = of_report(&report_of_command(text.clone(), pid, &used, watcher, named));
    let name = text.first().cloned().unwrap_or_default();
    let target = Target { name, pid: Some(pid), command: Some(text) };
    let trace = finish(&session, target, costs, args.by, timeline, Vec::new());
    if !output.quiet {
        say_text(&table::text(&trace, output.view));
    }
    // The exit code is the command's.
    if let Err(error) = put_json(&trace, output.json.as_ref()) {
        say(&format!("error: {error:#}"));
    }
    if let Some(error) = stopped {
        say(&format!("error: {error}"));
        return Ok(error.exit_code.into());
    }
    Ok(used.ending.shell_code().into())
}
