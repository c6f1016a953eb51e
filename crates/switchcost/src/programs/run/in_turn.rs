//! One command under two states of the machine, in the same rounds: `compare --ab-setting FILE A B --
//! run CMD`.
//!
//! ```text
//! round 0   state B   run the command   state A   run the command
//! round 1   state A   run the command   state B   run the command      shuffled, by the seed
//! ```
//!
//! Each run is a series of its own, between two of which the state changes. What comes of it is
//! reported as two commands, A and B.

use std::mem;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use analysis::comparison::LIMIT;
use anyhow::{Context, Result};
use launcher::{CommandRun, CommandSeries, FailedWarmup, Launcher, order};
use rundata::run::Arm;

use super::args::RunArgs;
use super::display::RunsDisplay;
use super::gate::CommandGate;
use super::output::FinishedSeries;
use super::plan::{CommandPlan, InputKind};
use super::typed::{DEFAULT_RUNS, TypedSeries, export_labels};
use super::{
    code_with_files, code_without_runs, exit_code, file_words, gate_exit_code,
    print_failed_warmups, print_problems, why_unjudged,
};
use crate::base::failure::usage;
use crate::base::values::{each_once, seconds_in_words};
use crate::engine::interrupt::Interrupt;
use crate::engine::machine_state::MachineState;
use crate::engine::state_commands::NO_COMMAND;
use crate::programs::watch;
use crate::programs::watch::command::{SeriesEnd, finish_series};
use crate::report::output::all_written;

/// Runs the command of `args` under both states, prints what it used under each, and compares B with
/// A. Errors in the arguments are reported before anything is run.
pub(crate) fn run_in_turn(
    args: &RunArgs,
    states: &[MachineState; 2],
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    args.choose_colour();
    let profile = args.profile.as_deref().map(watch::find_profile).transpose()?;
    let typed = TypedSeries::from_args(args)?;
    let one = typed.plan();
    let plan = plan_of_both(&one, args, states, |state| state.shown());
    let stored_plan = plan_of_both(&typed.stored_plan(&one), args, states, |state| {
        let files = &args.output.files;
        state.stored(files.anonymous, files.store_command)
    });
    let mut rounds = Rounds {
        series: typed.launcher_series(&plan)?,
        states,
        interrupt,
        runs: Vec::new(),
        ending: SeriesEnd::default(),
    };
    args.empty_exports()?;
    let started = seconds_in_words(SystemTime::now());
    let is_hidden = args.hides_progress() || rounds.series.shows_output();
    let mut display = RunsDisplay::new(&plan, is_hidden);
    let measured = rounds.take(&mut display, &plan);
    display.end();
    let Rounds { runs, ending, .. } = rounds;
    print_failed_warmups(&ending, &plan);
    let failure = measured.as_ref().err().map(|error| format!("{error:#}"));
    if runs.is_empty() {
        let reason = failure.or_else(|| ending.failed.as_ref().map(ToString::to_string));
        let reason =
            reason.unwrap_or_else(|| "interrupted before the first measured run".to_string());
        all_written([args.judgements.write_unjudged("run", &file_words(&reason))]);
        measured?;
        print_problems(&ending, &runs);
        return Ok(code_without_runs(args, ending.failed.as_ref()).into());
    }
    print_problems(&ending, &runs);
    let mut plan = plan;
    if typed.stop_rule.is_some() {
        // The rounds that there was time for.
        plan.runs = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    }
    let stored_plan = CommandPlan { runs: plan.runs, ..stored_plan };
    let figures = each_once(args.figures.clone());
    let limit = args.fail_above.unwrap_or(LIMIT);
    let gate = CommandGate::judge(&plan, &runs, &figures, limit);
    let stored_gate = match (&args.fail_above, &args.output.files.json) {
        (Some(_), Some(_)) => Some(CommandGate::judge(&stored_plan, &runs, &figures, limit)),
        _ => None,
    };
    let mut code = exit_code(args, &plan, &runs, &ending);
    let failure = failure.map(|error| file_words(&error));
    let unjudged = failure.or_else(|| why_unjudged(&plan, code, &ending));
    if args.fail_above.is_some() {
        code = gate_exit_code(args, &plan, &gate, code, &ending);
    }
    let is_interrupted = ending.signal.is_some();
    let exported = export_labels(&plan);
    let gate = Some(gate);
    let finished = FinishedSeries { plan, runs, exported, started, is_interrupted, unjudged, gate };
    let is_written = finished.write(args, profile.as_ref(), stored_plan, stored_gate);
    measured?;
    Ok(code_with_files(args, code, is_written))
}

/// Checks what is typed before a state of the machine is touched.
pub(crate) fn check_in_turn(args: &RunArgs) -> Result<()> {
    args.check_outputs()?;
    let typed = TypedSeries::from_args(args)?;
    let count = typed.plan().commands.len();
    if count != 1 {
        return Err(usage(format!(
            "-- run: {count} commands (accepted: one, which is compared under both states; `run` \
             itself compares several)"
        )));
    }
    typed.look_up_commands()
}

/// Returns the plan of one command under both states, which are called A and B and by `name`.
fn plan_of_both(
    one: &CommandPlan,
    args: &RunArgs,
    states: &[MachineState; 2],
    name: impl Fn(&MachineState) -> String,
) -> CommandPlan {
    let mut names = Vec::new();
    for (arm, state) in [Arm::A, Arm::B].into_iter().zip(states) {
        let name = Some(name(state)).filter(|name| !name.is_empty());
        let name = name.as_deref().unwrap_or(NO_COMMAND);
        names.push(format!("{}: {name}", arm.name()));
    }
    let runs = if args.has_own_runs() { one.runs } else { DEFAULT_RUNS };
    let commands = [&one.commands[..], &one.commands].concat();
    // No run keeps the terminal, as there are several.
    let input = one.input.or(Some(InputKind::Null));
    CommandPlan { commands, names, runs, input, ..one.clone() }
}

/// The rounds of both states.
struct Rounds<'a> {
    /// The command's series.
    series: CommandSeries,
    states: &'a [MachineState; 2],
    interrupt: &'a Interrupt,
    runs: Vec<CommandRun>,
    ending: SeriesEnd,
}

impl Rounds<'_> {
    /// Runs all rounds, as long as nothing fails and no signal asks to stop.
    ///
    /// # Errors
    /// A state cannot be established, or was lost.
    fn take(&mut self, display: &mut RunsDisplay, plan: &CommandPlan) -> Result<()> {
        // What cannot be established is refused before anything is run.
        for state in self.states {
            state.establish()?;
        }
        // Each run is a series, whose only number would be 0.
        let is_numbered = false;
        let (setup, cleanup) = (Vec::new(), Vec::new());
        let bare = CommandSeries { setup, cleanup, is_numbered, ..self.series.clone() };
        let no_runs = CommandSeries { runs: 0, warmup: 0, stop_rule: None, ..bare.clone() };
        let setup = CommandSeries { setup: self.series.setup.clone(), ..no_runs.clone() };
        if !setup.setup.is_empty() && !self.run_series(setup, 0, 0)? {
            return Ok(());
        }
        let begun = Instant::now();
        for round in 0..plan.runs {
            let rule = self.series.stop_rule;
            if rule.is_some_and(|rule| rule.is_reached(round, begun.elapsed())) {
                break;
            }
            for side in order(self.states.len(), self.series.seed, round) {
                self.states[side].establish()?;
                let warmup = if round == 0 { self.series.warmup } else { 0 };
                let one = CommandSeries { runs: 1, warmup, stop_rule: None, ..bare.clone() };
                if !self.run_series(one, side, round)? {
                    return Ok(());
                }
                display.show(&self.runs, plan);
            }
        }
        let cleanup = CommandSeries { cleanup: self.series.cleanup.clone(), ..no_runs };
        if !cleanup.cleanup.is_empty() {
            self.run_series(cleanup, 0, 0)?;
        }
        Ok(())
    }

    /// Runs a series under the state of a side; returns whether the next may follow. What was run
    /// while the state was lost does not count.
    fn run_series(&mut self, series: CommandSeries, side: usize, round: u32) -> Result<bool> {
        if self.interrupt.signal().is_some() {
            self.ending.signal = self.interrupt.exit_code().map(|code| code - 128);
            return Ok(false);
        }
        let is_measured = series.runs > 0;
        let launcher = Launcher::start(series).context("the command")?;
        let mut taken = Vec::new();
        let mut failed_warmups = mem::take(&mut self.ending.failed_warmups);
        self.ending = finish_series(launcher, |run| {
            taken.push(CommandRun { command: side, round, ..run });
        });
        for warmup in &self.ending.failed_warmups {
            failed_warmups.push(FailedWarmup { command: side, ..*warmup });
        }
        self.ending.failed_warmups = failed_warmups;
        if is_measured && self.ending.signal.is_none() {
            self.states[side].check_unchanged()?;
        }
        self.runs.append(&mut taken);
        Ok(self.ending.failed.is_none() && self.ending.signal.is_none())
    }
}
