//! `switchcost run`: what a command used.

mod findings;
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
use clap::Args;
use launcher::{Launcher, Run, Series, Used};
use model::reading::Reading;

use crate::effort::CONFIDENCE;
use crate::execute;
use crate::failure::{say, usage};
use crate::output::csv::{self, known};
use crate::output::{Output, put, to_json};
use crate::values::{above_zero, whole};
use crate::watch::profile::{self, WorkingSet};
use findings::{SOURCES, Summary, Switching};
use record::{Plan, Record};

/// Runs with `--vs` if nothing is said: enough for an interval.
const RUNS_TO_COMPARE: u32 = 10;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Runs of the command [default: 1; with --vs 10]; from 5 on there are intervals
    ///
    /// All runs have this program's standard input: what the first has read, the others will not find.
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = above_zero::<u32>)]
    runs: Option<u32>,

    /// Runs beforehand, of which nothing is kept
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    warmup: u32,

    /// Another command to compare with, in one word: both run once in every round
    ///
    /// It is split into words as a shell does (quotes, backslashes), but no shell runs it: for pipes and
    /// variables write "sh -c '...'". Which goes first is shuffled anew in each round; ratios are taken
    /// within rounds, second command over first.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    vs: Option<String>,

    /// Also count descendants that the command did not wait for
    ///
    /// wait4(2) tells of the command and of the children that it waited for. With --tree those that
    /// outlived their parent are added, where they have ended within a second after the command.
    #[arg(long)]
    tree: bool,

    /// No estimate of what the switches cost, and no measurement for it
    #[arg(long)]
    no_estimate: bool,

    /// Seed of the order of commands and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    seed: u64,

    #[command(flatten)]
    output: Output,

    /// The command and its arguments; its exit code is this program's
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl RunArgs {
    /// The commands, in words.
    fn commands(&self) -> Result<Vec<Vec<OsString>>> {
        let mut all = vec![self.command.clone()];
        if let Some(text) = &self.vs {
            let words = shell_words::split(text).map_err(|error| {
                usage(format!("--vs {text}: {error} (accepted: words as a shell splits them)"))
            })?;
            if words.is_empty() {
                return Err(usage(
                    "--vs: no command (accepted: a command with its arguments, in one word)",
                ));
            }
            all.push(words.into_iter().map(OsString::from).collect());
        }
        Ok(all)
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.output.check()?;
    args.output.refuse_plot("what a command used")?;
    let commands = args.commands()?;
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let plan = Plan {
        commands: commands.iter().map(|words| words.iter().map(text).collect()).collect(),
        runs: args.runs.unwrap_or(if commands.len() > 1 { RUNS_TO_COMPARE } else { 1 }),
        warmup: args.warmup,
        seed: args.seed,
        tree: args.tree,
        confidence: CONFIDENCE,
    };
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let Plan { runs: count, warmup, seed, tree, .. } = plan;
    let series = Series { commands, warmup, runs: count, seed, tree, announce: false };
    let mut launcher = Launcher::start(series)?;
    let mut runs = Vec::new();
    let failed = loop {
        match launcher.run() {
            Ok(Some(run)) => runs.push(run),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let signal = launcher.signal();
    // From here on a signal ends this program again.
    drop(launcher);
    if let Some(error) = &failed {
        say(&format!("error: {error}"));
        if runs.is_empty() {
            return Ok(error.exit_code.into());
        }
    } else if runs.is_empty() {
        say("interrupted before the first measured run");
    }
    let all = plan.runs as usize * plan.commands.len();
    let code = match (failed, signal) {
        (Some(error), _) => error.exit_code,
        (None, Some(signal)) if runs.len() < all => 128 + signal,
        (None, _) => {
            runs.iter().map(|run| run.used.ending.shell_code()).find(|code| *code != 0).unwrap_or(0)
        }
    };
    let written = write(plan, runs, started, signal.is_some(), args);
    // A script that waits for the figures must learn that they are not there.
    Ok(if !written && code == 0 { ExitCode::FAILURE } else { code.into() })
}

/// Writes all that was asked for; what cannot be written is reported, and the rest is written.
/// Whether all was written.
fn write(plan: Plan, runs: Vec<Run>, started: String, interrupted: bool, args: &RunArgs) -> bool {
    let Output { json, csv, quiet, plot: _ } = &args.output;
    let mut outputs = Vec::new();
    if let Some(to) = csv {
        outputs.push((to, rows(&runs)));
    }
    // Reading the machine and the estimate take time.
    if json.is_some() || !quiet {
        let machine = match json {
            Some(_) => probe::machine::read_with_accounting(Path::new("/")),
            None => probe::machine::accounting(Path::new("/")),
        };
        let about = (started, execute::invocation(), execute::build_info());
        let mut record = Record::new(plan, runs, machine, about);
        if !args.no_estimate {
            estimate(&mut record, interrupted);
        }
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

/// A row for each run.
fn rows(runs: &[Run]) -> Result<Vec<u8>> {
    let first = ["experiment", "command", "round", "interrupted", "exit_code", "signal"];
    let figures = SOURCES.map(|(name, ..)| name);
    let row = |run: &Run| {
        let Used { ending, orphans, .. } = &run.used;
        let (command, round) = (run.command.to_string(), run.round.to_string());
        let (exit_code, signal) = (known(ending.code().ok()), known(ending.code().err()));
        let first =
            ["run".to_string(), command, round, run.interrupted.to_string(), exit_code, signal];
        let figures = SOURCES.map(|(.., of)| known(of(&run.used).known()));
        let left_behind = known(orphans.left_behind.known().map(Vec::len));
        [&first[..], &figures, &[orphans.ended.to_string(), left_behind]].concat()
    };
    let names = [&first[..], &figures, &["orphans_ended", "left_behind"]].concat();
    csv::write(&names, runs.iter().map(row))
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
