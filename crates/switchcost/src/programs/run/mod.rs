//! `switchcost run`: what commands use, and which of several is fastest.
//!
//! ```text
//! args -> typed (commands, plan) -> launcher -> runs -> findings -> record -> table, page, JSON
//!                                                   |-> gate (--fail-above, --markdown)
//!                                                   \-> hyperfine (--export-json, ...)
//! ```
//!
//! The commands run once in every round, in shuffled order. Their words exist three times: as typed,
//! for the launcher; masked, for the terminal; and hashed, for files. So the plan and the gate, which
//! have words, are made once for printing and once for storing.

mod answer;
mod args;
mod commands;
mod display;
mod figures;
mod files;
mod findings;
mod gate;
mod hyperfine;
mod in_turn;
mod markdown;
mod metrics;
mod notices;
mod output;
mod page;
mod parameters;
mod plan;
mod record;
mod results;
mod table;
#[cfg(test)]
mod tests;
mod typed;

pub(crate) use args::{RunArgs, SessionOptions};
pub(crate) use in_turn::{check_in_turn, run_in_turn};
pub(crate) use metrics::further_gauges;
pub(crate) use page::build_page;
pub(crate) use record::CommandUseRecord;
pub(crate) use results::build_results;

use std::process::ExitCode;
use std::time::SystemTime;

use analysis::comparison::LIMIT;
use anyhow::Result;
use launcher::{CommandRun, Ending, FailedWarmup, Launcher, LauncherError};

use crate::base::failure::print_message;
use crate::base::secrets::masked;
use crate::base::values::{each_once, seconds_in_words};
use crate::programs::watch;
use crate::programs::watch::command::{SeriesEnd, finish_series};
use crate::report::output::all_written;
use display::RunsDisplay;
use gate::CommandGate;
use output::FinishedSeries;
use plan::CommandPlan;
use typed::TypedSeries;

/// Runs and compares the commands that were typed. Errors in the arguments are reported before
/// anything is run.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.check_outputs()?;
    args.choose_colour();
    let profile = args.profile.as_deref().map(watch::find_profile).transpose()?;
    let typed = TypedSeries::from_args(args)?;
    let mut plan = typed.plan();
    args.check_comparison(plan.commands.len())?;
    typed.look_up_commands()?;
    let series = typed.launcher_series(&plan)?;
    args.empty_exports()?;
    let started = seconds_in_words(SystemTime::now());
    let is_hidden = args.hides_progress() || series.shows_output();
    let mut display = RunsDisplay::new(&plan, is_hidden);
    let mut runs = Vec::new();
    let ending = finish_series(Launcher::start(series)?, |run| {
        runs.push(run);
        display.show(&runs, &plan);
    });
    display.end();
    print_problems(&ending, &runs);
    print_failed_warmups(&ending, &plan);
    if let (Some(error), true) = (&ending.failed, runs.is_empty()) {
        all_written([args.judgements.write_unjudged("run", &file_words(&error.to_string()))]);
        return Ok(code_without_runs(args, Some(error)).into());
    }
    let code = exit_code(args, &plan, &runs, &ending);
    if typed.stop_rule.is_some() {
        // The rounds that there was time for.
        plan.runs = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    }
    let stored_plan = typed.stored_plan(&plan);
    let exported = typed.exported_commands(&plan);
    let figures = each_once(args.figures.clone());
    let limit = args.fail_above.unwrap_or(LIMIT);
    let (mut gate, mut stored_gate) = (None, None);
    if args.compares_commands() {
        gate = Some(CommandGate::judge(&plan, &runs, &figures, limit));
    }
    if args.fail_above.is_some() && args.output.files.json.is_some() {
        stored_gate = Some(CommandGate::judge(&stored_plan, &runs, &figures, limit));
    }
    let unjudged = why_unjudged(&plan, code, &ending);
    let code = match &gate {
        Some(gate) if args.fail_above.is_some() => gate_exit_code(args, &plan, gate, code, &ending),
        _ => code,
    };
    let is_interrupted = ending.signal.is_some();
    let finished = FinishedSeries { plan, runs, exported, started, is_interrupted, unjudged, gate };
    let is_written = finished.write(args, profile.as_ref(), stored_plan, stored_gate);
    Ok(code_with_files(args, code, is_written))
}

/// Returns the exit code if no run was done: the launcher's, which could be 1, a gate's FAIL.
fn code_without_runs(args: &RunArgs, failed: Option<&LauncherError>) -> u8 {
    if args.fail_above.is_some() {
        gate::TROUBLE
    } else {
        failed.map_or(1, |error| error.exit_code)
    }
}

/// Returns the exit code, which is not 0 if something could not be written: a script that waits for the
/// figures must learn that they are not there. 1 is a gate's FAIL.
fn code_with_files(args: &RunArgs, code: u8, is_written: bool) -> ExitCode {
    match code {
        0 if is_written => ExitCode::SUCCESS,
        0 if args.fail_above.is_some() => gate::TROUBLE.into(),
        0 => ExitCode::FAILURE,
        code => code.into(),
    }
}

/// Prints why the series ended before all runs were done.
fn print_problems(ending: &SeriesEnd, runs: &[CommandRun]) {
    if let Some(error) = &ending.failed {
        print_message(&format!("error: {error}"));
        if runs.is_empty() {
            return;
        }
    } else if runs.is_empty() {
        print_message("interrupted before the first measured run");
    }
    if let Some(error) = &ending.stopped {
        print_message(&format!("error: {error}"));
    }
}

/// Returns the exit code without a gate: that of the first run that failed, unless the series did
/// not come to its end. Prints an error if a signal has kept --cleanup from its end.
fn exit_code(args: &RunArgs, plan: &CommandPlan, runs: &[CommandRun], ending: &SeriesEnd) -> u8 {
    if let Some(error) = &ending.failed {
        return error.exit_code;
    }
    let are_all_done = runs.len() == plan.runs as usize * plan.commands.len();
    if let Some(signal) = ending.signal {
        let is_any_interrupted = runs.iter().any(|run| run.interrupted);
        let hooks = args.last_hooks();
        if are_all_done && !is_any_interrupted && !hooks.is_empty() {
            print_message(&format!("error: signal {signal}: {hooks} was not run to its end"));
            return 128 + signal;
        }
        if !are_all_done || ending.stopped.is_some() {
            return 128 + signal;
        }
    }
    let mut endings = ending.failed_warmups.iter().map(|warmup| warmup.ending).collect::<Vec<_>>();
    endings.extend(runs.iter().map(|run| run.used.ending));
    let failed = endings.into_iter().find(|ending| plan.is_failure(*ending));
    failed.map_or(0, Ending::shell_code)
}

/// Returns the runs of the warm-up that failed.
fn failed_warmups<'a>(
    plan: &'a CommandPlan,
    ending: &'a SeriesEnd,
) -> impl Iterator<Item = &'a FailedWarmup> {
    ending.failed_warmups.iter().filter(|warmup| plan.is_failure(warmup.ending))
}

/// Prints which runs of the warm-up failed. They count as failed runs, although their figures are
/// discarded.
fn print_failed_warmups(ending: &SeriesEnd, plan: &CommandPlan) {
    for warmup in failed_warmups(plan, ending) {
        print_message(&format!(
            "error: {}warm-up run {} ended with {}: it counts as a failed run (-i ignores failures)",
            plan.prefix(warmup.command),
            warmup.round + 1,
            warmup.ending
        ));
    }
}

/// Returns an error for a file: the lines of commands in it may have secrets.
fn file_words(error: &str) -> String {
    masked(&[error.to_string()]).concat()
}

/// Returns why the exit code of --fail-above is no verdict: the series did not come to its end, or a run
/// of the warm-up failed. `code` is the exit code without the gate.
fn why_unjudged(plan: &CommandPlan, code: u8, ending: &SeriesEnd) -> Option<String> {
    if let Some(error) = &ending.failed {
        return Some(file_words(&error.to_string()));
    }
    if let Some(warmup) = failed_warmups(plan, ending).next() {
        let (prefix, number) = (plan.prefix(warmup.command), warmup.round + 1);
        return Some(format!("{prefix}warm-up run {number} ended with {}", warmup.ending));
    }
    let signal = ending.signal.filter(|_| code >= 128)?;
    Some(format!("ended by signal {signal}"))
}

/// Returns the exit code of --fail-above; a signal that ended the series goes before the verdict.
/// `code` is the exit code without the gate.
fn gate_exit_code(
    args: &RunArgs,
    plan: &CommandPlan,
    gate: &CommandGate,
    code: u8,
    ending: &SeriesEnd,
) -> u8 {
    let has_failed_warmup = failed_warmups(plan, ending).next().is_some();
    if ending.failed.is_some() || has_failed_warmup {
        // The command's own code could be 1 or 3, which are the gate's.
        gate::TROUBLE
    } else if ending.signal.is_some() && code >= 128 {
        code
    } else {
        gate.exit_code(args.allow_undecided)
    }
}
