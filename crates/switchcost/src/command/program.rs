//! `switchcost cost --pid PID` and `switchcost cost -- CMD`: what switching costs one program.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use probe::command::NotStarted;
use probe::program::Watched;

use crate::cli::{CostArgs, Destination};
use crate::failure::{say, usage};
use crate::launcher::Launcher;
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
    let mut launcher = Launcher::start()?;
    let started = Instant::now();
    let pid = match launcher.begin(words)? {
        Ok(pid) => i32::try_from(pid).map_err(|_| anyhow!("no such process id"))?,
        Err(failure) => return Ok(cannot_run(words, &failure)),
    };
    // It may have ended already: then only its usage is known.
    let mut watcher = Watched::find(Path::new("/"), pid).ok().map(Watcher::new);
    let used = loop {
        match launcher.ended(BETWEEN_LOOKS)? {
            Some(Ok(used)) => break used,
            Some(Err(failure)) => return Ok(cannot_run(words, &failure)),
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

fn cannot_run(words: &[OsString], failure: &NotStarted) -> ExitCode {
    let (words, code) = not_started::in_words(words, failure);
    say(&format!("error: {words}"));
    ExitCode::from(code)
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
