//! `switchcost run`: what a command used.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use model::command_use::{Plan, Record, Run, Switching};
use model::program_cost::WorkingSet;
use model::reading::Reading;
use probe::command::Answer;

use crate::cli::{Destination, Output, RunArgs};
use crate::failure::say;
use crate::launcher::Launcher;
use crate::report::command_use as report;
use crate::resolve;
use crate::watch::surface;
use crate::{build, not_started};

pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.output.check()?;
    args.output.refuse_plot("what a command used")?;
    let commands = resolve::run::commands(args)?;
    let plan = resolve::run::plan(args, &commands);
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut launcher = Launcher::start(&resolve::run::series(&plan, commands.clone()))?;
    let mut runs = Vec::new();
    let end = hear_all(&mut launcher, &commands, &mut runs);
    let signal = launcher.signal();
    // From here on a signal ends this program again.
    drop(launcher);
    if let End::Failed(code) = end
        && runs.is_empty()
    {
        return Ok(ExitCode::from(code));
    }
    let all = u64::from(plan.runs) * plan.commands.len() as u64;
    let code = match (end, signal) {
        (End::Failed(code), _) => code,
        (End::Done, Some(signal)) if (runs.len() as u64) < all => 128 + signal,
        (End::Done, _) => {
            runs.iter().map(|run| run.used.ending.shell_code()).find(|code| *code != 0).unwrap_or(0)
        }
    };
    if runs.is_empty() {
        say("interrupted before the first measured run");
    }
    let written = write(plan, runs, started, signal.is_some(), args);
    // A script that waits for the figures must learn that they are not there.
    let code = if !written && code == 0 { 1 } else { code };
    Ok(ExitCode::from(code))
}

/// Why there are no more runs.
enum End {
    /// All are done, or somebody asked to stop.
    Done,
    /// A command could not be started, or the launcher is gone: the exit code that says so.
    Failed(u8),
}

fn hear_all(launcher: &mut Launcher, commands: &[Vec<OsString>], runs: &mut Vec<Run>) -> End {
    loop {
        match launcher.hear() {
            Ok(Answer::Started { .. }) => {}
            Ok(Answer::Ran { command, round, signal, used }) => {
                let interrupted = signal.is_some();
                runs.push(Run { command, round, interrupted, signal, used: *used });
            }
            Ok(Answer::NotStarted { command, failure }) => {
                let words = commands.get(command).map_or(&[][..], Vec::as_slice);
                let (words, code) = not_started::in_words(words, &failure);
                say(&format!("error: {words}"));
                return End::Failed(code);
            }
            Ok(Answer::Done { .. }) => return End::Done,
            Err(error) => {
                say(&format!("error: {error:#}"));
                return End::Failed(1);
            }
        }
    }
}

/// Writes all that was asked for; what cannot be written is told, and does not keep the rest from being
/// written. Whether all was.
fn write(plan: Plan, runs: Vec<Run>, started: String, in_a_hurry: bool, args: &RunArgs) -> bool {
    let Output { json, csv, quiet, plot: _ } = &args.output;
    let mut outputs: Vec<(&Destination, Result<Vec<u8>>)> = Vec::new();
    if let Some(to) = csv {
        outputs.push((to, report::csv(&runs)));
    }
    // What is read and reckoned for nobody takes its time too.
    if json.is_some() || !quiet {
        let record = record(plan, runs, started, in_a_hurry, args);
        if !quiet && !record.runs.is_empty() {
            say(report::text(&record).trim_end());
        }
        if let Some(to) = json {
            outputs.push((to, report::json(&record)));
        }
    }
    let mut all = true;
    for (to, bytes) in outputs {
        if let Err(error) = bytes.and_then(|bytes| crate::report::put(&bytes, to)) {
            say(&format!("error: {error:#}"));
            all = false;
        }
    }
    all
}

fn record(plan: Plan, runs: Vec<Run>, started: String, in_a_hurry: bool, args: &RunArgs) -> Record {
    let root = Path::new("/");
    let machine = match args.output.json {
        Some(_) => probe::machine::read_with_accounting(root),
        None => probe::machine::accounting(root),
    };
    let invocation = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut record = Record::new(plan, runs, machine, (started, invocation, build::info()));
    if !args.no_estimate {
        estimate(&mut record, in_a_hurry);
    }
    record
}

/// Adds what the switches cost. Where this machine's costs are not stored, they are measured quickly,
/// unless somebody wants to be gone.
fn estimate(record: &mut Record, in_a_hurry: bool) {
    let mut notices = Vec::new();
    let resident =
        record.commands.iter().filter_map(|command| command.median("max_resident_bytes"));
    let set = WorkingSet::within(resident.fold(0.0, f64::max) as u64);
    let mut found = surface::stored(Some(set), &mut notices);
    if found.known().is_none() && !in_a_hurry && record.commands.iter().any(switched) {
        match surface::measure_quickly() {
            Ok(()) => {
                found = surface::stored(Some(set), &mut notices);
                let done = "no costs of this machine were stored: a second or two went into a first measurement; `switchcost cost` makes a better one";
                let why = "the quick measurement was interrupted, or not stored";
                notices.push(if found.known().is_some() { done } else { why }.to_string());
                if found.known().is_none() {
                    found = Reading::unknown(why);
                }
            }
            Err(error) => {
                let why = format!("the quick measurement failed: {error:#}");
                notices.push(why.clone());
                found = Reading::unknown(why);
            }
        }
    }
    for summary in &mut record.commands {
        summary.switching = Some(Switching::of(summary, found.clone(), notices.clone()));
    }
}

fn switched(summary: &model::command_use::Summary) -> bool {
    ["voluntary", "involuntary"].iter().any(|name| summary.median(name).is_some_and(|n| n > 0.0))
}
