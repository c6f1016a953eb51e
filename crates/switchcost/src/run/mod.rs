//! `switchcost run`: what a command used.

pub(crate) mod args;
mod csv;
mod findings;
mod plan;
pub(crate) mod record;
mod split;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use launcher::{Answer, Launcher, Run};
use model::reading::Reading;

use crate::execute;
use crate::failure::say;
use crate::output::{Output, put, to_json};
use crate::values::Destination;
use crate::watch::profile::{self, WorkingSet};
use args::RunArgs;
use findings::{Summary, Switching};
use plan::Plan;
use record::Record;

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.output.check()?;
    args.output.refuse_plot("what a command used")?;
    let commands = plan::commands(args)?;
    let plan = Plan::of(args, &commands);
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut launcher = Launcher::start(&plan.series(commands.clone()))?;
    let mut runs = Vec::new();
    let failed = gather(&mut launcher, &commands, &mut runs);
    let signal = launcher.signal();
    // From here on a signal ends this program again.
    drop(launcher);
    if let (Some(code), true) = (failed, runs.is_empty()) {
        return Ok(ExitCode::from(code));
    }
    let all = u64::from(plan.runs) * plan.commands.len() as u64;
    let code = match (failed, signal) {
        (Some(code), _) => code,
        (None, Some(signal)) if (runs.len() as u64) < all => 128 + signal,
        (None, _) => {
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

/// All runs until the series ends. Where a command could not be started, or the launcher failed, it
/// is reported, and the exit code given.
fn gather(launcher: &mut Launcher, commands: &[Vec<OsString>], runs: &mut Vec<Run>) -> Option<u8> {
    loop {
        match launcher.answer() {
            Ok(Answer::Started { .. }) => {}
            Ok(Answer::Ran(run)) => runs.push(*run),
            Ok(Answer::NotStarted { command, failure }) => {
                let words = commands.get(command).map_or(&[][..], Vec::as_slice);
                let (line, code) = failure.explain(words);
                say(&format!("error: {line}"));
                return Some(code);
            }
            Ok(Answer::Done { .. }) => return None,
            Err(error) => {
                say(&format!("error: {error}"));
                return Some(1);
            }
        }
    }
}

/// Writes all that was asked for; what cannot be written is reported, and the rest written all the same.
/// Whether all was written.
fn write(plan: Plan, runs: Vec<Run>, started: String, interrupted: bool, args: &RunArgs) -> bool {
    let Output { json, csv, quiet, plot: _ } = &args.output;
    let mut outputs: Vec<(&Destination, Result<Vec<u8>>)> = Vec::new();
    if let Some(to) = csv {
        outputs.push((to, csv::rows(&runs)));
    }
    // Reading the machine and the estimate take time.
    if json.is_some() || !quiet {
        let record = record(plan, runs, started, interrupted, args);
        if !quiet && !record.runs.is_empty() {
            say(table::text(&record).trim_end());
        }
        if let Some(to) = json {
            outputs.push((to, to_json(&record)));
        }
    }
    let mut all = true;
    for (to, bytes) in outputs {
        if let Err(error) = bytes.and_then(|bytes| put(&bytes, to)) {
            say(&format!("error: {error:#}"));
            all = false;
        }
    }
    all
}

fn record(
    plan: Plan,
    runs: Vec<Run>,
    started: String,
    interrupted: bool,
    args: &RunArgs,
) -> Record {
    let root = Path::new("/");
    let machine = match args.output.json {
        Some(_) => probe::machine::read_with_accounting(root),
        None => probe::machine::accounting(root),
    };
    let invocation = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut record = Record::new(plan, runs, machine, (started, invocation, execute::build_info()));
    if !args.no_estimate {
        estimate(&mut record, interrupted);
    }
    record
}

/// Adds what the switches cost. Where this machine has no cost profile, a quick one is measured, unless
/// somebody has asked to stop.
fn estimate(record: &mut Record, interrupted: bool) {
    let mut notices = Vec::new();
    let resident =
        record.commands.iter().filter_map(|command| command.median("max_resident_bytes"));
    let set = WorkingSet::within(resident.fold(0.0, f64::max) as u64);
    let mut found = profile::stored(Some(set), &mut notices);
    if found.known().is_none() && !interrupted && record.commands.iter().any(Summary::switched) {
        let measured = profile::measure_quickly();
        found = profile::stored(Some(set), &mut notices);
        let notice = match (measured, found.known()) {
            (Ok(()), Some(_)) => "this machine had no cost profile: a quick one was measured in a second or two; `switchcost cost` makes a better one".to_string(),
            (Ok(()), None) => "the quick measurement was interrupted, or not stored".to_string(),
            (Err(error), _) => format!("the quick measurement failed: {error:#}"),
        };
        if found.known().is_none() {
            found = Reading::unknown(notice.clone());
        }
        notices.push(notice);
    }
    for summary in &mut record.commands {
        summary.switching = Some(Switching::of(summary, found.clone(), notices.clone()));
    }
}
