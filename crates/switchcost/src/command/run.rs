//! `switchcost run`: what a command used.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use model::command_use::{Plan, Record, Run, Switching};
use model::program_cost::WorkingSet;
use model::reading::Reading;

use crate::cli::{Destination, RunArgs};
use crate::failure::say;
use crate::launcher::Launcher;
use crate::report::command_use as report;
use crate::resolve;
use crate::watch::surface;
use crate::{build, not_started};

pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.output.check()?;
    let commands = resolve::run::commands(args)?;
    let plan = resolve::run::plan(args, &commands);
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut runner = Runner { launcher: Launcher::start()?, commands, plan, runs: Vec::new() };
    let end = runner.all()?;
    let Runner { launcher, plan, runs, .. } = runner;
    let signal = launcher.signal();
    drop(launcher);
    if let End::Failed(code) = end
        && runs.is_empty()
    {
        return Ok(ExitCode::from(code));
    }
    let code = match (&end, signal) {
        (End::Failed(code), _) => *code,
        (End::BetweenRuns, Some(signal)) => 128 + u8::try_from(signal).unwrap_or(0),
        _ => {
            runs.iter().map(|run| run.used.ending.shell_code()).find(|code| *code != 0).unwrap_or(0)
        }
    };
    let invocation = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let root = Path::new("/");
    let machine = (probe::machine::cpu_accounting(root), probe::machine::read(root));
    let mut record = Record::new(plan, runs, machine, (started, invocation, build::info()));
    if !args.no_estimate {
        estimate(&mut record, signal.is_some());
    }
    let written = write(&record, args);
    if let Err(error) = &written {
        say(&format!("error: {error:#}"));
    }
    // A script that waits for the figures must learn that they are not there.
    let code = if written.is_err() && code == 0 { 1 } else { code };
    Ok(ExitCode::from(code))
}

/// Why there are no more runs.
enum End {
    Done,
    /// Somebody asked to stop while none ran.
    BetweenRuns,
    /// A command could not be started: the exit code that says so.
    Failed(u8),
}

struct Runner {
    launcher: Launcher,
    commands: Vec<Vec<OsString>>,
    plan: Plan,
    runs: Vec<Run>,
}

impl Runner {
    fn all(&mut self) -> Result<End> {
        for round in 0..self.plan.warmup.saturating_add(self.plan.runs) {
            for command in self.plan.order(round) {
                if self.launcher.signal().is_some() {
                    return Ok(End::BetweenRuns);
                }
                let words = &self.commands[command];
                let used = match self.launcher.run(words, self.plan.tree)? {
                    Ok(used) => used,
                    Err(failure) => {
                        let (words, code) = not_started::in_words(words, &failure);
                        say(&format!("error: {words}"));
                        return Ok(End::Failed(code));
                    }
                };
                let interrupted = self.launcher.signal().is_some();
                if let Some(round) = round.checked_sub(self.plan.warmup) {
                    self.runs.push(Run { command, round, interrupted, used });
                }
            }
        }
        Ok(End::Done)
    }
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
                notices.push(
                    "no costs of this machine were stored: a second or two went into a first measurement; `switchcost cost` makes a better one"
                        .to_string(),
                );
            }
            Err(error) => {
                found = Reading::unknown(format!("the quick measurement failed: {error:#}"));
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

fn write(record: &Record, args: &RunArgs) -> Result<()> {
    if !args.output.quiet {
        say(report::text(record).trim_end());
    }
    let json = args.output.json.as_ref().map(|to| (to, report::json(record)));
    let csv = args.output.csv.as_ref().map(|to| (to, report::csv(record)));
    let outputs: Vec<(&Destination, Result<Vec<u8>>)> = json.into_iter().chain(csv).collect();
    for (to, bytes) in outputs {
        crate::report::put(&bytes?, to)?;
    }
    Ok(())
}
