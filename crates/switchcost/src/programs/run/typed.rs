//! The series of commands that was typed: what the launcher runs, and the plan that is printed and
//! stored of it.
//!
//! The launcher gets all words. The plan has only those that may be read: secrets are masked where
//! it is printed, and a stored plan has a hash in place of a command's arguments.

use std::ffi::OsString;

use anyhow::Result;
use launcher::{CommandSeries, StopRule, look_up};

use super::args::RunArgs;
use super::commands::{LineRunner, SeriesCommand, expand_parameters, split_words};
use super::plan::{CommandPlan, HookLines};
use crate::base::failure::{Interrupted, print_message, usage};
use crate::base::secrets::{self, kept_line, masked};
use crate::base::values::{each_once, nanoseconds};
use crate::engine::effort::CONFIDENCE;
use crate::programs::watch::command::{report_unmeasured, shown_words};
use crate::report::terminal::counted;

/// Default runs of several commands and of command lines: enough for an interval.
pub(super) const DEFAULT_RUNS: u32 = 10;

/// Default budget and default minimum of runs if a number of runs is bounded, as in hyperfine.
const DEFAULT_BUDGET_NS: u64 = 3_000_000_000;
const DEFAULT_MIN_RUNS: u32 = 10;

/// Exit code if a command does not exist (env(1)).
const NOT_FOUND: u8 = 127;

/// Commands that were typed, and how they are to be run.
pub(super) struct TypedSeries<'a> {
    args: &'a RunArgs,
    commands: Vec<SeriesCommand>,
    /// True if reports label the commands by the values of their parameters.
    by_values: bool,
    runner: LineRunner,
    /// Rule by which rounds end before all are done; `None` for a fixed number of runs.
    pub(super) stop_rule: Option<StopRule>,
}

impl<'a> TypedSeries<'a> {
    /// Reads the commands from the arguments; nothing is run.
    pub(super) fn from_args(args: &'a RunArgs) -> Result<Self> {
        if args.lines.is_empty() && args.command.is_empty() {
            return Err(usage(
                "nothing to run: give command lines, each in quotation marks, or one command behind \
                 -- (switchcost run -- CMD)",
            ));
        }
        let runner = LineRunner::from_flag(if args.no_shell { "none" } else { &args.shell })?;
        let typed = typed_commands(args, &runner)?;
        // Values alone do not tell several typed commands apart.
        let by_values =
            typed.len() == 1 && !args.parameter.is_empty() && args.command_name.is_empty();
        let commands = expand_parameters(typed, &args.parameter)?;
        if args.prepare.len() > 1 && args.prepare.len() != commands.len() {
            return Err(usage(format!(
                "--prepare: given {} times for {} (accepted: once, or once for each)",
                args.prepare.len(),
                counted(commands.len(), "command")
            )));
        }
        Ok(Self { args, commands, by_values, runner, stop_rule: stop_rule(args)? })
    }

    /// Returns the plan as it is printed: secrets are masked, and with --anonymous there are no
    /// words at all.
    pub(super) fn plan(&self) -> CommandPlan {
        let args = self.args;
        let anonymous = args.output.files.anonymous;
        let mut names = Vec::new();
        let mut hooks = HookLines::default();
        if !anonymous {
            names = self.names(mask_line);
            hooks = self.hook_lines(mask_line);
        }
        let mut commands = Vec::new();
        for command in &self.commands {
            commands.push(shown_words(&command.words, anonymous));
        }
        let is_one_command = args.lines.is_empty() && self.commands.len() == 1;
        let runs = match self.stop_rule {
            Some(_) => args.max_runs.unwrap_or(u32::MAX),
            None => args.runs.unwrap_or(if is_one_command { 1 } else { DEFAULT_RUNS }),
        };
        CommandPlan {
            commands,
            names,
            runs,
            warmup: args.warmup,
            seed: args.seed,
            tree: args.tree,
            confidence: CONFIDENCE,
            show_output: args.show_output,
            shell: if args.lines.is_empty() { None } else { self.runner.shell_name() },
            ignore_failure: args.ignore_failure,
            hooks,
        }
    }

    /// Returns the plan as it is stored: programs, and hashes of their arguments; with
    /// --store-command all words.
    pub(super) fn stored_plan(&self, printed: &CommandPlan) -> CommandPlan {
        let files = &self.args.output.files;
        if files.anonymous {
            return printed.clone();
        }
        let format_line = if files.store_command { str::to_string } else { kept_line };
        let mut commands = Vec::new();
        for command in &self.commands {
            commands.push(self.stored_words(command, format_line));
        }
        CommandPlan {
            commands,
            names: self.names(format_line),
            hooks: self.hook_lines(format_line),
            ..printed.clone()
        }
    }

    fn stored_words(
        &self,
        command: &SeriesCommand,
        format_line: fn(&str) -> String,
    ) -> Vec<String> {
        let store_all = self.args.output.files.store_command;
        let shell_length = match &self.runner {
            LineRunner::Shell(shell) if !self.args.lines.is_empty() => shell.len(),
            _ => return secrets::stored(&command.words, false, store_all),
        };
        // Behind the shell and -c, the program is in the line.
        let (shell, rest) = command.words.split_at(shell_length);
        let mut stored = secrets::stored(shell, false, store_all);
        for (index, word) in rest.iter().enumerate() {
            let text = word.to_string_lossy();
            stored.push(if index == 0 { text.into_owned() } else { format_line(&text) });
        }
        stored
    }

    /// Returns the names of the commands, lines as `format_line` returns them; none if all commands
    /// are labelled by their words.
    fn names(&self, format_line: fn(&str) -> String) -> Vec<String> {
        let mut names = Vec::new();
        for command in &self.commands {
            names.push(if self.by_values {
                masked(&command.values).join(" ")
            } else if command.is_line {
                format_line(&command.name)
            } else {
                mask_line(&command.name)
            });
        }
        if names.iter().all(String::is_empty) {
            names.clear();
        }
        names
    }

    fn hook_lines(&self, format_line: fn(&str) -> String) -> HookLines {
        HookLines {
            setup: self.args.setup.as_deref().map(format_line),
            prepare: self.args.prepare.iter().map(|line| format_line(line)).collect(),
            cleanup: self.args.cleanup.as_deref().map(format_line),
        }
    }

    /// Returns the series for the launcher: all runs, and the commands that run around them.
    pub(super) fn launcher_series(&self, plan: &CommandPlan) -> Result<CommandSeries> {
        let mut hooks = Vec::new();
        let setup = self.number_hooks("--setup", self.args.setup.as_slice(), &mut hooks)?;
        let prepare = self.number_hooks("--prepare", &self.args.prepare, &mut hooks)?;
        let cleanup = self.number_hooks("--cleanup", self.args.cleanup.as_slice(), &mut hooks)?;
        Ok(CommandSeries {
            commands: self.command_words(),
            warmup: plan.warmup,
            runs: plan.runs,
            seed: plan.seed,
            tree: plan.tree,
            announce: false,
            discard: self.discards_output(plan),
            stop_rule: self.stop_rule,
            hooks,
            setup: each_once(setup),
            prepare,
            cleanup: each_once(cleanup),
            environment: Vec::new(),
        })
    }

    /// Returns the number of each command's hook in `hooks`, to which new ones are added. Lines with
    /// equal words after their values are filled in are one hook.
    fn number_hooks(
        &self,
        flag: &str,
        lines: &[String],
        hooks: &mut Vec<Vec<OsString>>,
    ) -> Result<Vec<usize>> {
        let mut numbers = Vec::new();
        for (command, line) in self.commands.iter().zip(lines.iter().cycle()) {
            let words = self.runner.words(flag, &command.fill_values(line))?;
            let number = match hooks.iter().position(|hook| *hook == words) {
                Some(number) => number,
                None => {
                    hooks.push(words);
                    hooks.len() - 1
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn command_words(&self) -> Vec<Vec<OsString>> {
        self.commands.iter().map(|command| command.words.clone()).collect()
    }

    /// Returns whether the output of commands goes to /dev/null. It does so in all runs or in none,
    /// as writing to a terminal or a pipe takes longer.
    fn discards_output(&self, plan: &CommandPlan) -> bool {
        let is_single_run = plan.commands.len() == 1 && plan.warmup.saturating_add(plan.runs) == 1;
        !plan.show_output && (!is_single_run || self.args.figures_on_stdout().is_some())
    }

    /// Checks that all commands exist, before any is run; the error was printed. With --setup or
    /// --prepare the commands themselves are not checked, as these may make them.
    pub(super) fn look_up_commands(&self) -> Result<()> {
        let args = self.args;
        if let (LineRunner::Shell(shell), false) = (&self.runner, args.lines.is_empty()) {
            look_up(std::slice::from_ref(shell))
                .map_err(|error| report_unmeasured(Some(error), None))?;
        }
        self.look_up_hooks()?;
        if args.setup.is_some() || !args.prepare.is_empty() {
            return Ok(());
        }
        look_up(&self.command_words()).map_err(|error| report_unmeasured(Some(error), None))?;
        if args.lines.is_empty() {
            return Ok(());
        }
        let lines = [&args.lines[..], &args.vs[..]].concat();
        let Some(unknown) = self.runner.find_unknown_command(&lines) else { return Ok(()) };
        let mut hint = String::new();
        if args.lines.len() > 1 {
            let words = shell_words::join(&args.lines);
            hint = format!(
                "; each argument is a command line (one command with its arguments: switchcost run \
                 -- {words})"
            );
        }
        print_message(&format!("error: cannot run '{unknown}': command not found in PATH{hint}"));
        Err(Interrupted(NOT_FOUND).into())
    }

    /// Checks that the programs of hooks exist. One that does not may be an option of the measured
    /// command: in `run gzip -c file`, -c is --cleanup. A program with a path may be made by a hook
    /// before it.
    fn look_up_hooks(&self) -> Result<()> {
        let args = self.args;
        let lines = [args.setup.as_slice(), &args.prepare, args.cleanup.as_slice()].concat();
        match self.runner.find_unknown_command(&lines) {
            Some(unknown) if !unknown.contains('/') => {
                print_message(&format!(
                    "error: cannot run '{unknown}' of --setup, --prepare or --cleanup: command not found in \
                     PATH (-s, -p and -c are options of switchcost run; one command with its own options \
                     stands behind --: switchcost run -- COMMAND ARGUMENT...)"
                ));
                Err(Interrupted(NOT_FOUND).into())
            }
            _ => Ok(()),
        }
    }
}

fn mask_line(line: &str) -> String {
    masked(&[line.to_string()]).concat()
}

/// Returns the commands as typed, before values take the places of parameters.
fn typed_commands(args: &RunArgs, runner: &LineRunner) -> Result<Vec<SeriesCommand>> {
    let mut commands = match (&args.lines[..], &args.command[..]) {
        ([line, ..], [_, ..]) => {
            return Err(usage(format!(
                "'{line}' stands before -- and a command behind it: give command lines alone, \
                 or one command behind -- and the others by --vs"
            )));
        }
        ([], words) => commands_without_shell(words, &args.vs)?,
        (lines, []) => command_lines(lines, &args.vs, runner)?,
    };
    if let Some(more) = args.command_name.get(commands.len()) {
        return Err(usage(format!(
            "--command-name {more}: one more than there are commands (accepted here: {})",
            commands.len()
        )));
    }
    for (command, name) in commands.iter_mut().zip(&args.command_name) {
        command.name.clone_from(name);
        command.is_line = false;
    }
    Ok(commands)
}

/// Returns the command behind --, and those of --vs, split into words.
fn commands_without_shell(words: &[OsString], vs: &[String]) -> Result<Vec<SeriesCommand>> {
    let first = SeriesCommand { words: words.to_vec(), ..SeriesCommand::default() };
    let mut commands = vec![first];
    for text in vs {
        let words = split_words("--vs", text)?;
        commands.push(SeriesCommand { words, ..SeriesCommand::default() });
    }
    Ok(commands)
}

/// Returns the command lines, and those of --vs, as they are run.
fn command_lines(
    lines: &[String],
    vs: &[String],
    runner: &LineRunner,
) -> Result<Vec<SeriesCommand>> {
    let mut commands = Vec::new();
    for (flag, lines) in [("COMMAND", lines), ("--vs", vs)] {
        for line in lines {
            commands.push(SeriesCommand {
                words: runner.words(flag, line)?,
                name: line.clone(),
                is_line: true,
                values: Vec::new(),
            });
        }
    }
    Ok(commands)
}

/// Returns the rule by which rounds end; `None` if the number of runs is fixed.
fn stop_rule(args: &RunArgs) -> Result<Option<StopRule>> {
    let (min_runs, max_runs) = (args.min_runs, args.max_runs);
    if args.budget.is_none() && min_runs.is_none() && max_runs.is_none() {
        return Ok(None);
    }
    if let (Some(min_runs), Some(max_runs)) = (min_runs, max_runs) {
        if min_runs > max_runs {
            return Err(usage(format!("--min-runs {min_runs}: more than --max-runs {max_runs}")));
        }
    }
    let default = if args.budget.is_some() { 1 } else { DEFAULT_MIN_RUNS };
    let default = default.min(max_runs.unwrap_or(default));
    let time_ns = args.budget.map_or(DEFAULT_BUDGET_NS, nanoseconds);
    Ok(Some(StopRule { runs: min_runs.unwrap_or(default), time_ns }))
}
