//! The series of commands that was typed: what the launcher runs, and the plan that is printed and
//! stored of it.
//!
//! The launcher gets all words. The plan has only those that may be read: secrets are masked where
//! it is printed, and a stored plan has a hash in place of a command's arguments.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use launcher::{CommandSeries, OutputTarget, StopRule, look_up};

use super::args::{CommandOutput, IgnoredFailures, NO_INPUT, RunArgs};
use super::commands::{
    LineRunner, ParameterValue, SeriesCommand, TypedLine, expand_parameters, no_command,
    split_words,
};
use super::files::check_input_file;
use super::hyperfine::ExportedCommand;
use super::parameters::ParameterList;
use super::plan::{CommandPlan, HookLines, InputKind, OutputKind};
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

/// The option that gives the command that all others are compared with.
const REFERENCE: &str = "--reference";

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
        let parameters = typed_parameters(args)?;
        let mut typed = typed_commands(args)?;
        // Values alone do not tell several typed commands apart.
        let by_values = typed.len() == 1 && !parameters.is_empty() && args.command_name.is_empty();
        let names = &args.command_name;
        let names_are_typed = parameters.is_empty() || (2..=typed.len()).contains(&names.len());
        if names_are_typed {
            name_commands(&mut typed, names)?;
        }
        let mut commands = expand_parameters(typed, &parameters, &texts_with_values(args))?;
        if !names_are_typed {
            name_combinations(&mut commands, names)?;
        }
        if let Some(reference) = reference_command(args)? {
            commands.insert(0, reference);
        }
        for command in &mut commands {
            command.split_line(&runner)?;
        }
        for (flag, count) in [
            ("--prepare", args.prepare.len()),
            ("--conclude", args.conclude.len()),
            ("--output", args.command_output.len()),
        ] {
            check_count(flag, count, commands.len())?;
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
        let outputs = self.output_kinds();
        let (ignore_failure, ignored_codes) = match &args.ignore_failure {
            None => (false, Vec::new()),
            Some(IgnoredFailures::All) => (true, Vec::new()),
            Some(IgnoredFailures::Codes(codes)) => (false, codes.clone()),
        };
        let shows_all =
            !outputs.is_empty() && outputs.iter().all(|kind| *kind == OutputKind::Inherit);
        let mut plan = CommandPlan {
            commands,
            names,
            runs,
            warmup: args.warmup,
            seed: args.seed,
            tree: args.tree,
            confidence: CONFIDENCE,
            show_output: args.show_output || shows_all,
            shell: if args.lines.is_empty() { None } else { self.runner.shell_name() },
            outputs,
            input: None,
            ignore_failure,
            ignored_codes,
            hooks,
        };
        plan.input = self.input_path(&plan).map(|path| {
            if path == Path::new(NO_INPUT) { InputKind::Null } else { InputKind::File }
        });
        plan
    }

    /// Returns the kind of output of each command; empty if none was chosen.
    fn output_kinds(&self) -> Vec<OutputKind> {
        let mut kinds = Vec::new();
        for (_, output) in self.commands.iter().zip(self.args.command_output.iter().cycle()) {
            kinds.push(match output {
                CommandOutput::Null => OutputKind::Null,
                CommandOutput::Pipe => OutputKind::Pipe,
                CommandOutput::Inherit => OutputKind::Inherit,
                CommandOutput::File(_) => OutputKind::File,
            });
        }
        kinds
    }

    /// Returns the input of all runs; `None` for that of this program.
    fn input_path(&self, plan: &CommandPlan) -> Option<&'a Path> {
        match &self.args.input {
            Some(path) => Some(path),
            None if self.keeps_terminal(plan) => None,
            // What the first run had read would be gone for the others.
            None => Some(Path::new(NO_INPUT)),
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
            names.push(if self.by_values && !command.values.is_empty() {
                let mut values = Vec::new();
                for parameter in &command.values {
                    values.push(format!("{}={}", parameter.name, shown_value(parameter)));
                }
                values.join(" ")
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
            conclude: self.args.conclude.iter().map(|line| format_line(line)).collect(),
            cleanup: self.args.cleanup.as_deref().map(format_line),
        }
    }

    /// Returns the series for the launcher: all runs, and the commands that run around them.
    ///
    /// # Errors
    /// Fails if a hook is no command, or if the runs cannot all read the input.
    pub(super) fn launcher_series(&self, plan: &CommandPlan) -> Result<CommandSeries> {
        if let Some(path) = &self.args.input {
            let commands = u32::try_from(plan.commands.len()).unwrap_or(u32::MAX);
            let runs = plan.warmup.saturating_add(plan.runs);
            check_input_file(path, runs.saturating_mul(commands))?;
        }
        let mut hooks = Vec::new();
        let setup = self.number_hooks("--setup", self.args.setup.as_slice(), &mut hooks)?;
        let prepare = self.number_hooks("--prepare", &self.args.prepare, &mut hooks)?;
        let conclude = self.number_hooks("--conclude", &self.args.conclude, &mut hooks)?;
        let cleanup = self.number_hooks("--cleanup", self.args.cleanup.as_slice(), &mut hooks)?;
        let mut files = Vec::new();
        let input = self.input_path(plan).map(|path| number_file(path, &mut files));
        let outputs = self.output_targets(&mut files);
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
            conclude,
            cleanup: each_once(cleanup),
            files,
            input,
            outputs,
            // Command lines are typed as for hyperfine; a command after -- is left as it is.
            is_numbered: !self.args.lines.is_empty(),
            environment: Vec::new(),
        })
    }

    /// Returns where the output of each command goes, and adds their files to `files`; empty if
    /// nothing was chosen.
    fn output_targets(&self, files: &mut Vec<OsString>) -> Vec<OutputTarget> {
        let mut targets = Vec::new();
        for (_, output) in self.commands.iter().zip(self.args.command_output.iter().cycle()) {
            targets.push(match output {
                CommandOutput::Null => OutputTarget::Null,
                CommandOutput::Pipe => OutputTarget::Pipe,
                CommandOutput::Inherit => OutputTarget::Caller,
                CommandOutput::File(path) => OutputTarget::File(number_file(path, files)),
            });
        }
        targets
    }

    /// Returns the names of the commands in hyperfine's formats, and the values of their parameters;
    /// secrets are masked.
    pub(super) fn exported_commands(&self, plan: &CommandPlan) -> Vec<ExportedCommand> {
        if self.args.output.files.anonymous {
            return export_labels(plan);
        }
        let mut exported = Vec::new();
        for (number, command) in self.commands.iter().enumerate() {
            let name = if command.name.is_empty() {
                shell_words::join(plan.commands.get(number).into_iter().flatten())
            } else {
                mask_line(&command.name)
            };
            exported.push(export_command(name, command));
        }
        exported
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
        if !plan.outputs.is_empty() {
            return !plan.show_output;
        }
        !plan.show_output && (!self.keeps_terminal(plan) || self.args.figures_on_stdout().is_some())
    }

    /// Returns whether there is one run in all, of a command behind --, which keeps its terminal. A
    /// command line does not, as in hyperfine.
    fn keeps_terminal(&self, plan: &CommandPlan) -> bool {
        let runs = plan.warmup.saturating_add(plan.runs);
        self.args.lines.is_empty() && plan.commands.len() == 1 && runs == 1
    }

    /// Checks that all commands exist, before any is run; the error was printed. With --setup or
    /// --prepare the commands themselves are not checked, as these may make them; nor are the lines
    /// of a shell where a command that does not exist is no failure.
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
        let is_ignored = match &args.ignore_failure {
            None => false,
            Some(IgnoredFailures::All) => true,
            Some(IgnoredFailures::Codes(codes)) => codes.contains(&NOT_FOUND),
        };
        if args.lines.is_empty() || is_ignored {
            return Ok(());
        }
        let lines = [args.reference.as_slice(), &args.lines, &args.vs].concat();
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
    /// before it, and any program by --setup.
    fn look_up_hooks(&self) -> Result<()> {
        let args = self.args;
        let mut lines = args.setup.clone().into_iter().collect::<Vec<_>>();
        if lines.is_empty() {
            lines = [&args.prepare, &args.conclude, args.cleanup.as_slice()].concat();
        }
        match self.runner.find_unknown_command(&lines) {
            Some(unknown) if !unknown.contains('/') => {
                print_message(&format!(
                    "error: cannot run '{unknown}' of --setup, --prepare, --conclude or --cleanup: command \
                     not found in PATH (-s, -p, -C and -c are options of switchcost run; one command with \
                     its own options stands behind --: switchcost run -- COMMAND ARGUMENT...)"
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

/// Returns a value of a parameter, masked if it is a secret by its name or by itself. A number is
/// none: `tokens` may be a count.
fn shown_value(parameter: &ParameterValue) -> String {
    if parameter.value.parse::<f64>().is_ok() {
        return parameter.value.clone();
    }
    let shown = mask_line(&parameter.to_string());
    // A name may have = in it.
    match shown.get(parameter.name.len() + 1..) {
        Some(value) => value.to_string(),
        None => mask_line(&parameter.value),
    }
}

/// Returns the commands as typed, before values take the places of parameters.
fn typed_commands(args: &RunArgs) -> Result<Vec<SeriesCommand>> {
    match (&args.lines[..], &args.command[..]) {
        ([line, ..], [_, ..]) => Err(usage(format!(
            "'{line}' stands before -- and a command behind it: give command lines alone, \
             or one command behind -- and the others by --vs"
        ))),
        ([], words) => commands_without_shell(words, &args.vs),
        (lines, []) => command_lines(lines, &args.vs),
    }
}

/// Returns the parameters that were typed, with their values.
fn typed_parameters(args: &RunArgs) -> Result<Vec<ParameterList>> {
    if args.parameter_scan.is_empty() {
        return ParameterList::from_lists(&args.parameter);
    }
    let step = args.parameter_step_size.as_deref();
    Ok(vec![ParameterList::from_scan(&args.parameter_scan, step)?])
}

/// Returns the texts beside the commands in which values take the places of parameters.
fn texts_with_values(args: &RunArgs) -> Vec<&str> {
    let hooks = args.setup.iter().chain(&args.prepare).chain(&args.conclude).chain(&args.cleanup);
    hooks.chain(&args.command_name).map(String::as_str).collect()
}

/// Gives the first commands these names.
fn name_commands(commands: &mut [SeriesCommand], names: &[String]) -> Result<()> {
    if let Some(more) = names.get(commands.len()) {
        return Err(usage(format!(
            "--command-name {more}: one more than there are commands (accepted here: {})",
            commands.len()
        )));
    }
    for (command, name) in commands.iter_mut().zip(names) {
        command.name.clone_from(name);
        command.is_line = false;
    }
    Ok(())
}

/// Gives all combinations of commands and values the only name, or each its own.
fn name_combinations(commands: &mut [SeriesCommand], names: &[String]) -> Result<()> {
    check_count("--command-name", names.len(), commands.len())?;
    for (command, name) in commands.iter_mut().zip(names.iter().cycle()) {
        command.name = command.fill_values(name);
        command.is_line = false;
    }
    Ok(())
}

/// Checks that an option is given once at most, or once for each command.
fn check_count(flag: &str, count: usize, commands: usize) -> Result<()> {
    if count > 1 && count != commands {
        return Err(usage(format!(
            "{flag}: given {count} times for {} (accepted: once, or once for each)",
            counted(commands, "command")
        )));
    }
    Ok(())
}

/// Returns the command of --reference.
fn reference_command(args: &RunArgs) -> Result<Option<SeriesCommand>> {
    let Some(text) = &args.reference else { return Ok(None) };
    let mut command = SeriesCommand::default();
    if args.lines.is_empty() {
        command.words = split_words(REFERENCE, text)?;
    } else {
        command = line_command(REFERENCE, text);
    }
    if let Some(name) = &args.reference_name {
        command.name.clone_from(name);
        command.is_line = false;
    }
    Ok(Some(command))
}

/// Returns the number of a file in `files`, to which a new one is added.
fn number_file(path: &Path, files: &mut Vec<OsString>) -> usize {
    match files.iter().position(|file| file == path.as_os_str()) {
        Some(number) => number,
        None => {
            files.push(path.into());
            files.len() - 1
        }
    }
}

/// Returns the commands of a plan by their labels in whole length, without parameters.
pub(super) fn export_labels(plan: &CommandPlan) -> Vec<ExportedCommand> {
    let mut labels: Vec<String> = Vec::new();
    for number in 0..plan.commands.len() {
        labels.push(plan.full_label(number));
    }
    let mut exported = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        let is_shared = labels.iter().filter(|other| *other == label).count() > 1;
        // Nothing but its number tells an anonymous command from the others.
        let name = if is_shared { plan.label(number) } else { label.clone() };
        exported.push(ExportedCommand::from_label(name));
    }
    exported
}

/// Returns the names of a command in hyperfine's formats.
fn export_command(name: String, command: &SeriesCommand) -> ExportedCommand {
    let mut exported = ExportedCommand::from_label(name);
    let mut unused = Vec::new();
    for parameter in &command.values {
        let value = shown_value(parameter);
        if !parameter.is_used {
            unused.push(format!("{} = {value}", parameter.name));
        }
        exported.parameters.insert(parameter.name.clone(), value);
    }
    if !unused.is_empty() {
        exported.table_name += &format!(" ({})", unused.join(", "));
    }
    exported
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

/// Returns the command lines, and those of --vs.
fn command_lines(lines: &[String], vs: &[String]) -> Result<Vec<SeriesCommand>> {
    let mut commands = Vec::new();
    for (flag, lines) in [("COMMAND", lines), ("--vs", vs)] {
        for line in lines {
            if line.is_empty() {
                return Err(no_command(flag));
            }
            commands.push(line_command(flag, line));
        }
    }
    Ok(commands)
}

/// Returns the command of a line, which names it; its words are made later.
fn line_command(flag: &'static str, line: &str) -> SeriesCommand {
    let typed = TypedLine { flag, text: line.to_string() };
    SeriesCommand {
        line: Some(typed),
        name: line.to_string(),
        is_line: true,
        ..SeriesCommand::default()
    }
}

/// Returns the rule by which rounds end; `None` if the number of runs is fixed.
fn stop_rule(args: &RunArgs) -> Result<Option<StopRule>> {
    let (min_runs, max_runs) = (args.min_runs, args.max_runs);
    let budget = args.budget.or(args.min_benchmarking_time);
    let is_open = budget.is_some() || min_runs.is_some() || max_runs.is_some();
    if args.runs.is_some() || !is_open {
        return Ok(None);
    }
    if let (Some(min_runs), Some(max_runs)) = (min_runs, max_runs) {
        if min_runs > max_runs {
            return Err(usage(format!("--min-runs {min_runs}: more than --max-runs {max_runs}")));
        }
    }
    let default = if args.budget.is_some() { 1 } else { DEFAULT_MIN_RUNS };
    let default = default.min(max_runs.unwrap_or(default));
    let time_ns = budget.map_or(DEFAULT_BUDGET_NS, nanoseconds);
    Ok(Some(StopRule { runs: min_runs.unwrap_or(default), time_ns }))
}
