//! `switchcost cost --pid PID` and `switchcost cost -- CMD`: what switching costs one program.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use probe::command::Series;
use probe::program::Watched;

use crate::bell::Bell;
use crate::cli::{CostArgs, Destination};
use crate::failure::{say, usage};
use crate::interrupt::Interrupt;
use crate::launcher::{End, Launcher};
use crate::not_started;
use crate::report::{print, printable, program as report};
use crate::watch::{Ended, Watcher, child};

pub(super) fn run(args: &CostArgs) -> Result<ExitCode> {
    args.output.refuse_plot("what switching costs a program")?;
    if args.output.csv.is_some() {
        return Err(usage("--csv: of a program there are no samples (--json has all figures)"));
    }
    match args.program.pid {
        Some(pid) => watch(pid, args.program.seconds, args),
        None if matches!(args.output.json, Some(Destination::Stdout)) => {
            Err(usage("--json -: standard output is the command's (accepted here: --json FILE)"))
        }
        None => command(args),
    }
}

fn watch(pid: i32, duration: Duration, args: &CostArgs) -> Result<ExitCode> {
    let cannot = || format!("--pid {pid}");
    let interrupt = Interrupt::watch()?;
    let program = Watched::find(Path::new("/"), pid).with_context(cannot)?;
    let mut watcher = Watcher::new(program, interrupt.bell().clone());
    let end = Instant::now() + duration;
    loop {
        match watcher.look() {
            Ok(Ended::Yes) => break,
            Ok(Ended::No) => {}
            // What was seen before is worth telling.
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
    let told = watcher.report();
    if !args.output.quiet {
        let text = report::text(&told);
        match &args.output.json {
            Some(Destination::Stdout) => eprint(&text),
            _ => print(printable(&text).as_bytes()).context("cannot print the figures")?,
        }
    }
    write_json(&told, args)?;
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal)))
}

fn command(args: &CostArgs) -> Result<ExitCode> {
    let words = &args.program.command;
    let commands = vec![words.clone()];
    let series = Series { commands, warmup: 0, runs: 1, seed: 0, tree: false, announce: true };
    let mut launcher = Launcher::start(&series)?;
    let pid = match launcher.begun()? {
        Ok(pid) => pid,
        Err(end) => return without_figures(words, &end),
    };
    let bell = Bell::default();
    let ending = launcher.ring_at_end(bell.clone())?;
    // It may have ended already: then only its usage is known.
    let program = Watched::find(Path::new("/"), pid.cast_signed()).ok();
    let mut watcher = program.map(|program| Watcher::new(program, bell.clone()));
    // Its counts are the kernel's at its end. It is looked at only when a window is due, as that may
    // take a CPU from it; what cannot be read is said in the figures.
    let mut look = || {
        let watcher = watcher.as_mut()?;
        watcher.look().ok()?;
        watcher.until_window()
    };
    while !bell.wait(look()) {}
    let ended = ending.join().map_err(|_| anyhow!("whoever waits for the launcher has ended"))?;
    let used = match ended? {
        End::Ended(used) => used,
        end => return without_figures(words, &end),
    };
    let told = child::report(words, pid, &used, watcher);
    if !args.output.quiet {
        eprint(&report::text(&told));
    }
    // The command's own end is what counts for whoever called.
    if let Err(error) = write_json(&told, args) {
        say(&format!("error: {error:#}"));
    }
    Ok(ExitCode::from(used.ending.shell_code()))
}

fn without_figures(words: &[OsString], end: &End) -> Result<ExitCode> {
    match end {
        End::NotStarted(failure) => {
            let (words, code) = not_started::in_words(words, failure);
            say(&format!("error: {words}"));
            Ok(ExitCode::from(code))
        }
        End::Held(signal) => {
            say("interrupted before the command began");
            Ok(ExitCode::from(128 + signal))
        }
        End::Ended(_) => bail!("the launcher tells of an end without a start"),
    }
}

fn write_json(told: &model::program_cost::Report, args: &CostArgs) -> Result<()> {
    let Some(to) = &args.output.json else { return Ok(()) };
    let mut bytes = serde_json::to_vec_pretty(told).context("cannot write JSON")?;
    bytes.push(b'\n');
    crate::report::put(&bytes, to)
}

fn eprint(text: &str) {
    say(text.trim_end());
}
