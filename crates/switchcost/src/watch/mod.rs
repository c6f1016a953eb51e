//! `switchcost cost --pid PID` and `switchcost cost -- CMD`: what switching costs one program.

pub(crate) mod args;
pub(crate) mod findings;
pub(crate) mod profile;
mod reading;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use charts::printable;
use launcher::{Answer, Launcher, Series};
use probe::program::Watched;

use crate::event::Event;
use crate::failure::{say, usage};
use crate::interrupt::Interrupt;
use crate::output::{Output, print, put_json};
use crate::values::Destination;
use args::ProgramArgs;
use reading::{Watcher, report_of_command};

pub(crate) fn run(args: &ProgramArgs, output: &Output) -> Result<ExitCode> {
    output.refuse_plot("what switching costs a program")?;
    if output.csv.is_some() {
        return Err(usage("--csv: there are no samples of a program (--json has all figures)"));
    }
    match args.pid {
        Some(pid) => watch(pid, args.seconds, output),
        None if matches!(output.json, Some(Destination::Stdout)) => {
            Err(usage("--json -: standard output is the command's (accepted here: --json FILE)"))
        }
        None => command(&args.command, output),
    }
}

fn watch(pid: i32, duration: Duration, output: &Output) -> Result<ExitCode> {
    let cannot = || format!("--pid {pid}");
    let interrupt = Interrupt::watch()?;
    let program = Watched::find(Path::new("/"), pid).with_context(cannot)?;
    let mut watcher = Watcher::new(program, interrupt.stop_event().clone());
    let end = Instant::now() + duration;
    loop {
        match watcher.look() {
            Ok(false) => break,
            Ok(true) => {}
            // What was seen before is worth reporting.
            Err(error) if watcher.has_looked() => {
                watcher.note(format!("no longer watched: {error}"));
                break;
            }
            Err(error) => return Err(error).with_context(cannot),
        }
        if watcher.pause(end) || Instant::now() >= end {
            break;
        }
    }
    if watcher.look_last().is_none() {
        bail!("--pid {pid}: it ended before it could be watched");
    }
    let signal = interrupt.signal().and_then(|signal| u8::try_from(signal).ok());
    if let Some(signal) = signal {
        watcher.note(format!("stopped by signal {signal}, before its time was over"));
    }
    let report = watcher.report();
    if !output.quiet {
        let text = table::text(&report);
        match &output.json {
            Some(Destination::Stdout) => say(text.trim_end()),
            _ => print(printable(&text).as_bytes()).context("cannot print the figures")?,
        }
    }
    put_json(&report, output.json.as_ref())?;
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal)))
}

fn command(words: &[OsString], output: &Output) -> Result<ExitCode> {
    let commands = vec![words.to_vec()];
    let series = Series { commands, warmup: 0, runs: 1, seed: 0, tree: false, announce: true };
    let mut launcher = Launcher::start(&series)?;
    let pid = match launcher.answer()? {
        Answer::Started { pid } => pid,
        other => return without_figures(words, &other),
    };
    let ended = Event::default();
    let end = {
        let ended = ended.clone();
        let wait = move || {
            let end = launcher.answer();
            ended.set();
            end
        };
        thread::Builder::new().name("end".into()).spawn(wait).context("cannot start a thread")?
    };
    // It may have ended already: then only its usage is known.
    let program = Watched::find(Path::new("/"), pid.cast_signed()).ok();
    let mut watcher = program.map(|program| Watcher::new(program, ended.clone()));
    // Its counts are the kernel's at its end. It is looked at only when a window is due, as that may
    // take a CPU from it; what cannot be read is said in the figures.
    let mut look = || {
        let watcher = watcher.as_mut()?;
        watcher.look().ok()?;
        watcher.until_window()
    };
    while !ended.wait(look()) {}
    let used = match end.join().map_err(|_| anyhow!("the thread of the launcher panicked"))?? {
        Answer::Ran(run) => run.used,
        other => return without_figures(words, &other),
    };
    let report = report_of_command(words, pid, &used, watcher);
    if !output.quiet {
        say(table::text(&report).trim_end());
    }
    // The command's own end is what counts for whoever called.
    if let Err(error) = put_json(&report, output.json.as_ref()) {
        say(&format!("error: {error:#}"));
    }
    Ok(ExitCode::from(used.ending.shell_code()))
}

fn without_figures(words: &[OsString], end: &Answer) -> Result<ExitCode> {
    match end {
        Answer::NotStarted { failure, .. } => {
            let (line, code) = failure.explain(words);
            say(&format!("error: {line}"));
            Ok(ExitCode::from(code))
        }
        Answer::Done { signal: Some(signal) } => {
            say("interrupted before the command began");
            Ok(ExitCode::from(128 + signal))
        }
        _ => bail!("the launcher reported no end of the command"),
    }
}
