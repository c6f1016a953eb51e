//! `switchcost cost --pid PID` and `switchcost cost -- CMD`: what switching costs one program.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use probe::command::Series;
use probe::program::Watched;

use crate::cli::{CostArgs, Destination};
use crate::failure::{say, usage};
use crate::launcher::{End, Launcher};
use crate::not_started;
use crate::report::program as report;
use crate::watch::{Ended, Watcher, child};

/// Time between two looks at a command.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

pub(super) fn run(args: &CostArgs) -> Result<ExitCode> {
    if args.output.csv.is_some() {
        return Err(usage("--csv: of a program there are no samples (--json has all figures)"));
    }
    match args.program.pid {
        Some(pid) => watch(pid, args.program.seconds, args),
        None => command(args),
    }
}

fn watch(pid: i32, duration: Duration, args: &CostArgs) -> Result<ExitCode> {
    let cannot = || format!("--pid {pid}");
    let program = Watched::find(Path::new("/"), pid).with_context(cannot)?;
    let mut watcher = Watcher::new(program);
    let end = Instant::now() + duration;
    let mut ended = Ended::No;
    while ended == Ended::No && Instant::now() < end {
        ended = watcher.look().with_context(cannot)?;
        watcher.pause(end);
    }
    if watcher.look_last().is_none() {
        bail!("--pid {pid}: it ended before it could be watched");
    }
    let told = watcher.report();
    if !args.output.quiet {
        let text = report::text(&told);
        match &args.output.json {
            Some(Destination::Stdout) => eprint(&text),
            _ => crate::report::print(text.as_bytes()).context("cannot print the figures")?,
        }
    }
    write_json(&told, args)?;
    Ok(ExitCode::SUCCESS)
}

fn command(args: &CostArgs) -> Result<ExitCode> {
    let words = &args.program.command;
    let commands = vec![words.clone()];
    let series = Series { commands, warmup: 0, runs: 1, seed: 0, tree: false, announce: true };
    let mut launcher = Launcher::start(&series)?;
    let started = Instant::now();
    let pid = match launcher.begun()? {
        Ok(pid) => i32::try_from(pid).map_err(|_| anyhow!("no such process id"))?,
        Err(end) => return without_figures(words, &end),
    };
    // It may have ended already: then only its usage is known.
    let mut watcher = Watched::find(Path::new("/"), pid).ok().map(Watcher::new);
    let used = loop {
        match launcher.ended(BETWEEN_LOOKS)? {
            Some(End::Ended(used)) => break used,
            Some(end) => return without_figures(words, &end),
            None => {
                if let Some(watcher) = &mut watcher {
                    // What cannot be read is said in the figures; the command goes on.
                    let _ = watcher.look();
                }
            }
        }
    };
    let told = child::report(words, pid, started.elapsed(), &used.usage, watcher);
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
