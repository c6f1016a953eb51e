//! `switchcost run`: what a command used, and which of several is faster.

mod answer;
mod commands;
mod figures;
mod findings;
pub(crate) mod gate;
mod markdown;
mod notices;
mod page;
mod plan;
pub(crate) mod record;
mod results;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use page::page;
pub(crate) use record::Record;
pub(crate) use results::results;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use analysis::comparison::LIMIT;
use analysis::program::{CostProfile, WorkingSet};
use anyhow::Result;
use clap::Args;
use launcher::{CommandRun, CommandSeries, Launcher, RunUsage, StopRule, look_up};
use rundata::reading::Reading;
use stats::{median, median_interval};

use crate::base::failure::{Interrupted, say, usage};
use crate::base::secrets::{self, kept_line, masked};
use crate::base::values::{
    Destination, above_zero, duration, each_once, nanoseconds, seconds_in_words, share, whole,
};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute;
use crate::engine::progress::RunsProgress;
use crate::programs::watch::command::{Over, finish, not_measured, words};
use crate::programs::watch::quick;
use crate::programs::watch::{self, Chosen};
use crate::report::output::csv::{self, known};
use crate::report::output::{
    FileOptions, UnstoredOptions, all_written, check_destination, say_fitted, to_json, write_output,
};
use crate::report::page::ReportOutput;
use crate::report::printout::printout;
use crate::report::terminal::counted;
use commands::{Command, Shell};
use findings::{SOURCES, Summary, Switching};
use gate::{Gate, Gated};
use plan::Plan;

/// Runs of command lines, and of several commands, if nothing is said: enough for an interval.
const RUNS: u32 = 10;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Commands to compare, each a whole command line, run by the shell; ratios are to the first
    ///
    /// Quote a command that has options of its own, or put it after --, where one command with its
    /// arguments runs without a shell. The shell's own half millisecond or so is part of a line's
    /// figures: -N runs without one.
    #[arg(value_name = "COMMAND")]
    lines: Vec<String>,

    /// Runs of each command [default: 10; one command after --: 1]; from 5 on there are intervals
    ///
    /// All runs share this program's standard input: what the first run has read is gone for the
    /// others.
    #[arg(long, short = 'n', visible_short_alias = 'r', value_name = "COUNT", value_parser = above_zero::<u32>, conflicts_with_all = ["budget", "min_runs", "max_runs"])]
    runs: Option<u32>,

    /// Repeat until this much time is spent [default with -m or -M: 3s]
    ///
    /// In a round each command runs once; one begins only if it still fits.
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,

    /// With a budget: at least this many runs of each command [default: 10; with --budget 1]
    #[arg(long, short = 'm', value_name = "COUNT", value_parser = above_zero::<u32>)]
    min_runs: Option<u32>,

    /// With a budget: at most this many runs of each command
    #[arg(long, short = 'M', value_name = "COUNT", value_parser = above_zero::<u32>)]
    max_runs: Option<u32>,

    /// Runs of each command before the measured ones; they are discarded
    #[arg(long, short = 'w', value_name = "COUNT", default_value_t = 0)]
    warmup: u32,

    /// Another command to compare with, as one argument; may be given several times
    ///
    /// All commands run once in every round, each time in a shuffled order. Ratios are taken within
    /// rounds, to the first command. With a command after --, this one is split into words as a
    /// shell does (quotes, backslashes), but no shell runs it. For pipes and variables write "sh -c
    /// '...'".
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    vs: Vec<String>,

    /// What a command is called, in their order; may be given several times
    #[arg(long, value_name = "NAME")]
    command_name: Vec<String>,

    /// Compare the values A, B and C of a parameter: each takes the place of {NAME} in the command
    ///
    /// Ratios are to the first. Several parameters give all their combinations.
    #[arg(long, short = 'L', alias = "parameter-list", num_args = 2, value_names = ["NAME", "A,B,C"], allow_hyphen_values = true)]
    parameter: Vec<String>,

    /// Run once before the first round, not measured
    ///
    /// If it has {NAME} in it, it runs once for each value of that parameter. If it fails, nothing
    /// is run.
    #[arg(long, short = 's', value_name = "COMMAND", help_heading = AROUND)]
    setup: Option<String>,

    /// Run before each run of a command, not measured; given several times, one for each command
    #[arg(long, short = 'p', value_name = "COMMAND", help_heading = AROUND)]
    prepare: Vec<String>,

    /// Run once after the last round, not measured
    ///
    /// It is not run after a signal to stop, or if a setup, a prepare or a command could not be
    /// run.
    #[arg(long, short = 'c', value_name = "COMMAND", help_heading = AROUND)]
    cleanup: Option<String>,

    /// What runs command lines, those of --setup, --prepare and --cleanup too: a shell, or none
    #[arg(long, short = 'S', value_name = "SHELL", default_value = "sh", help_heading = AROUND)]
    shell: String,

    /// The same as --shell none: command lines are split into words, and no shell runs them
    #[arg(short = 'N', conflicts_with = "shell", help_heading = AROUND)]
    no_shell: bool,

    /// Count failed runs as any others, and exit with 0
    #[arg(long, short = 'i')]
    ignore_failure: bool,

    /// Exit with 1 if a command takes longer than the first by more than this share; changes within
    /// it count as none [default for that: 3%]
    ///
    /// The first is the first command line, the command after --, or the one with the first values.
    /// All intervals hold together. The exit codes are those of `compare`: 0 PASS, 1 FAIL, 3
    /// UNDECIDED, and 2 if a run failed.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,

    /// With --fail-above: exit with 0 instead of 3 where nothing was decided
    #[arg(long, requires = "fail_above")]
    allow_undecided: bool,

    /// What --fail-above and --markdown compare
    ///
    /// Counts below about ten switches hardly matter: ten are added to both sides.
    #[arg(long, value_name = "FIGURE,...", value_delimiter = ',', default_value = "real")]
    figures: Vec<Gated>,

    /// Write the comparison as Markdown to a file, or - for standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    markdown: Option<Destination>,

    /// Show what the commands print, in all runs
    ///
    /// Otherwise both outputs of all runs are discarded (/dev/null), so that all are measured
    /// alike. Only one command that runs once is left its terminal, unless figures are written to
    /// standard output (--json -).
    #[arg(long)]
    show_output: bool,

    /// Also count descendants that the command did not wait for
    ///
    /// wait4(2) counts the command and the children that it waited for. --tree adds those that
    /// outlived their parent and ended within a second after the command.
    #[arg(long)]
    tree: bool,

    /// No estimate of what the switches cost, and no measurement for it
    #[arg(long)]
    no_estimate: bool,

    /// The stored run whose costs are used, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN", conflicts_with = "no_estimate")]
    profile: Option<String>,

    /// Seed of the order of commands and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    seed: u64,

    /// One command with its arguments, run without a shell; its exit code is this program's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    report: ReportOutput,

    #[command(flatten)]
    output: UnstoredOptions,
}

const AROUND: &str = "Around the runs";

/// Of hyperfine: the time where a number of runs was bounded, and the fewest runs then.
const BUDGET: Duration = Duration::from_secs(3);
const FEWEST_RUNS: u32 = 10;

/// What a plan does not tell of what is to be run.
struct ToRun {
    commands: Vec<Command>,
    /// They are called by the values by which they differ.
    by_values: bool,
    shell: Shell,
    /// The time for all rounds, and the fewest of them; where none is set all are done.
    enough: Option<StopRule>,
}

/// What commands are called, lines as `line` gives them; none where all are called by their words.
fn names(commands: &[Command], by_values: bool, line: impl Fn(&String) -> String) -> Vec<String> {
    let name = |command: &Command| match (by_values, command.is_line) {
        (true, _) => masked(&command.values).join(" "),
        (false, true) => line(&command.name),
        (false, false) => masked(std::slice::from_ref(&command.name)).concat(),
    };
    let mut names: Vec<String> = commands.iter().map(name).collect();
    if names.iter().all(String::is_empty) {
        names.clear();
    }
    names
}

impl RunArgs {
    /// The commands as typed, before values take the places of parameters.
    fn typed(&self, shell: &Shell) -> Result<Vec<Command>> {
        let vs = self.vs.iter();
        let mut all: Vec<Command> = match (&self.lines[..], &self.command[..]) {
            ([line, ..], [_, ..]) => {
                return Err(usage(format!(
                    "'{line}' stands before -- and a command behind it: give command lines alone, \
                     or one command behind -- and the others by --vs"
                )));
            }
            ([], command) => {
                let first = Command { words: command.to_vec(), ..Command::default() };
                let other = |text: &String| {
                    Ok(Command { words: commands::split("--vs", text)?, ..Command::default() })
                };
                std::iter::once(Ok(first)).chain(vs.map(other)).collect::<Result<_>>()?
            }
            (lines, []) => {
                let lines = lines.iter().map(|line| ("COMMAND", line));
                let of_line = |(flag, line): (&str, &String)| {
                    let words = shell.words(flag, line)?;
                    Ok(Command { words, name: line.clone(), is_line: true, ..Command::default() })
                };
                lines.chain(vs.map(|line| ("--vs", line))).map(of_line).collect::<Result<_>>()?
            }
        };
        if let Some(more) = self.command_name.get(all.len()) {
            return Err(usage(format!(
                "--command-name {more}: one more than there are commands (accepted here: {})",
                all.len()
            )));
        }
        for (command, name) in all.iter_mut().zip(&self.command_name) {
            command.name.clone_from(name);
            command.is_line = false;
        }
        Ok(all)
    }

    /// What is to be run.
    fn plan(&self) -> Result<(Plan, ToRun)> {
        if self.lines.is_empty() && self.command.is_empty() {
            return Err(usage(
                "nothing to run: give command lines, each in quotation marks, or one command behind \
                 -- (switchcost run -- CMD)",
            ));
        }
        let shell = Shell::of(if self.no_shell { "none" } else { &self.shell })?;
        let typed = self.typed(&shell)?;
        // Where several are typed the values alone do not say which it is.
        let by_values =
            typed.len() == 1 && !self.parameter.is_empty() && self.command_name.is_empty();
        let all = commands::expand(typed, &self.parameter)?;
        if self.prepare.len() > 1 && self.prepare.len() != all.len() {
            return Err(usage(format!(
                "--prepare: given {} times for {} (accepted: once, or once for each)",
                self.prepare.len(),
                counted(all.len(), "command")
            )));
        }
        let anonymous = self.output.files.anonymous;
        let line = |line: &String| masked(std::slice::from_ref(line)).concat();
        let names = if anonymous { Vec::new() } else { names(&all, by_values, line) };
        let around = if anonymous { plan::Around::default() } else { self.around(line) };
        let one = if self.lines.is_empty() && all.len() == 1 { 1 } else { RUNS };
        let enough = self.enough()?;
        let without_budget = self.runs.unwrap_or(one);
        let runs = enough.map_or(without_budget, |_| self.max_runs.unwrap_or(u32::MAX));
        let plan = Plan {
            commands: all.iter().map(|of| words(&of.words, anonymous)).collect(),
            names,
            runs,
            warmup: self.warmup,
            seed: self.seed,
            tree: self.tree,
            confidence: CONFIDENCE,
            show_output: self.show_output,
            shell: if self.lines.is_empty() { None } else { shell.name() },
            ignore_failure: self.ignore_failure,
            around,
        };
        Ok((plan, ToRun { commands: all, by_values, shell, enough }))
    }

    /// The command lines around the runs, each as `line` gives it.
    fn around(&self, line: impl Fn(&String) -> String) -> plan::Around {
        plan::Around {
            setup: self.setup.as_ref().map(&line),
            prepare: self.prepare.iter().map(&line).collect(),
            cleanup: self.cleanup.as_ref().map(&line),
        }
    }

    /// The plan as it is stored: of commands their programs and hashes, unless all is to be stored.
    fn stored(&self, shown: &Plan, to_run: &ToRun) -> Plan {
        let FileOptions { anonymous, store_command, .. } = self.output.files;
        if anonymous {
            return shown.clone();
        }
        let line = |line: &String| if store_command { line.clone() } else { kept_line(line) };
        let of = |command: &Command| match &to_run.shell {
            // The program is in the line.
            Shell::Of(shell) if !self.lines.is_empty() => {
                let (shell, words) = command.words.split_at(shell.len());
                let shell = secrets::stored(shell, false, store_command);
                let text = |word: &OsString| word.to_string_lossy().into_owned();
                let flag = words.first().map(text);
                let words = words.iter().skip(1).map(|word| line(&text(word)));
                shell.into_iter().chain(flag).chain(words).collect()
            }
            _ => secrets::stored(&command.words, false, store_command),
        };
        Plan {
            commands: to_run.commands.iter().map(of).collect(),
            names: names(&to_run.commands, to_run.by_values, line),
            around: self.around(line),
            ..shown.clone()
        }
    }

    /// When there are enough rounds, where their number was not said.
    fn enough(&self) -> Result<Option<StopRule>> {
        let (least, most) = (self.min_runs, self.max_runs);
        if self.budget.is_none() && least.is_none() && most.is_none() {
            return Ok(None);
        }
        let fewest = if self.budget.is_some() { 1 } else { FEWEST_RUNS };
        let fewest = fewest.min(most.unwrap_or(fewest));
        if let Some((least, most)) = least.zip(most).filter(|(least, most)| least > most) {
            return Err(usage(format!("--min-runs {least}: more than --max-runs {most}")));
        }
        let time_ns = nanoseconds(self.budget.unwrap_or(BUDGET));
        Ok(Some(StopRule { runs: least.unwrap_or(fewest), time_ns }))
    }

    /// All runs of what is to be run, and what runs around them.
    fn series(&self, plan: &Plan, to_run: &ToRun) -> Result<CommandSeries> {
        let ToRun { commands, shell, enough, .. } = to_run;
        let mut around: Vec<Vec<OsString>> = Vec::new();
        let mut number = |flag: &str, text: &str, command: &Command| {
            let words = shell.words(flag, &command.filled(text))?;
            let known = around.iter().position(|of| *of == words);
            Ok(known.unwrap_or_else(|| {
                around.push(words);
                around.len() - 1
            }))
        };
        let mut each = |flag: &str, texts: &[&String]| {
            let all = commands.iter().zip(texts.iter().cycle());
            all.map(|(command, text)| number(flag, text, command)).collect::<Result<Vec<usize>>>()
        };
        let setup = each_once(each("--setup", &Vec::from_iter(&self.setup))?);
        let prepare = each("--prepare", &Vec::from_iter(&self.prepare))?;
        let cleanup = each_once(each("--cleanup", &Vec::from_iter(&self.cleanup))?);
        let Plan { runs, warmup, seed, tree, .. } = *plan;
        let discard = self.discards_output(plan);
        let commands = commands.iter().map(|command| command.words.clone()).collect();
        let whole = CommandSeries { announce: false, ..CommandSeries::watched(&[]) };
        let order = CommandSeries {
            warmup,
            runs,
            seed,
            stop_rule: *enough,
            setup,
            prepare,
            cleanup,
            ..whole
        };
        Ok(CommandSeries { commands, hooks: around, tree, discard, ..order })
    }

    /// The option whose figures go to standard output, if any does.
    fn figures_on_stdout(&self) -> Option<&'static str> {
        let markdown = (self.markdown == Some(Destination::Stdout)).then_some("--markdown");
        let report = self.report.is_stdout().then_some("--report");
        self.output.files.on_stdout().or(markdown).or(report)
    }

    /// Whether what the commands print goes to /dev/null: in all runs alike, as a terminal or a
    /// pipe takes longer.
    fn discards_output(&self, plan: &Plan) -> bool {
        let is_one = plan.commands.len() == 1 && plan.warmup.saturating_add(plan.runs) == 1;
        !plan.show_output && (!is_one || self.figures_on_stdout().is_some())
    }

    /// Refuses to mix figures with what the commands print.
    fn check_outputs(&self) -> Result<()> {
        self.output.files.check()?;
        self.markdown.iter().try_for_each(|to| check_destination("--markdown", to))?;
        let FileOptions { json, csv, .. } = &self.output.files;
        let others = [("--json", json), ("--csv", csv), ("--markdown", &self.markdown)];
        self.report.check(&others.map(|(flag, to)| (flag, to.as_ref())))?;
        FileOptions::refuse_shown(self.figures_on_stdout(), self.show_output)
    }

    /// Whether all that is to be run is there, before any of it is run; an error was told. What is
    /// run before may be what makes it.
    fn look_up(&self, to_run: &ToRun) -> Result<()> {
        let cannot = |error| not_measured(Some(error), None);
        if let (Shell::Of(shell), false) = (&to_run.shell, self.lines.is_empty()) {
            look_up(std::slice::from_ref(shell)).map_err(cannot)?;
        }
        // An option of a command that was meant to be one, as in `run gzip -c file`. What has a path
        // may be made meanwhile.
        let around =
            Vec::from_iter(self.setup.iter().chain(&self.prepare).chain(&self.cleanup).cloned());
        if let Some(unknown) = to_run.shell.unknown(&around).filter(|word| !word.contains('/')) {
            say(&format!(
                "error: cannot run '{unknown}' of --setup, --prepare or --cleanup: command not found in \
                 PATH (-s, -p and -c are options of switchcost run; one command with its own options \
                 stands behind --: switchcost run -- COMMAND ARGUMENT...)"
            ));
            return Err(Interrupted(NOT_FOUND).into());
        }
        if self.setup.is_some() || !self.prepare.is_empty() {
            return Ok(());
        }
        let commands: Vec<_> = to_run.commands.iter().map(|of| of.words.clone()).collect();
        look_up(&commands).map_err(cannot)?;
        let lines = Vec::from_iter(self.lines.iter().chain(&self.vs).cloned());
        let asked = if self.lines.is_empty() { &[][..] } else { &lines };
        let Some(unknown) = to_run.shell.unknown(asked) else { return Ok(()) };
        let words = shell_words::join(&self.lines);
        let one = match self.lines.len() {
            1 => String::new(),
            _ => format!(
                "; each argument is a command line (one command with its arguments: switchcost run \
                 -- {words})"
            ),
        };
        say(&format!("error: cannot run '{unknown}': command not found in PATH{one}"));
        Err(Interrupted(NOT_FOUND).into())
    }
}

/// Exit code where a command is not there (env(1)).
const NOT_FOUND: u8 = 127;

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.check_outputs()?;
    // What is wrong with it is told before anything is run.
    let named = args.profile.as_deref().map(watch::named).transpose()?;
    let (mut plan, to_run) = args.plan()?;
    let compares = args.fail_above.is_some() || args.markdown.is_some();
    if compares && plan.commands.len() < 2 {
        return Err(usage(
            "--fail-above and --markdown compare commands: give another command line, or --vs, or \
             values by --parameter",
        ));
    }
    args.look_up(&to_run)?;
    let series = args.series(&plan, &to_run)?;
    let started = seconds_in_words(SystemTime::now());
    let mut runs = Vec::new();
    let is_hidden = args.output.files.quiet || !series.discard;
    let mut progress = SoFar::new(&plan, is_hidden);
    let Over { failed, signal, stopped } = finish(Launcher::start(series)?, |run| {
        runs.push(run);
        progress.show(&runs, &plan);
    });
    progress.bar.end();
    if let Some(error) = &failed {
        say(&format!("error: {error}"));
        if runs.is_empty() {
            return Ok(error.exit_code.into());
        }
    } else if runs.is_empty() {
        say("interrupted before the first measured run");
    }
    if let Some(error) = &stopped {
        say(&format!("error: {error}"));
    }
    let all = plan.runs as usize * plan.commands.len();
    if to_run.enough.is_some() {
        // As many as there were time for.
        plan.runs = runs.iter().map(|run: &CommandRun| run.round + 1).max().unwrap_or(0);
    }
    let has_failed = failed.is_some();
    // A signal that found no run any more.
    let is_behind = runs.len() == all && !runs.iter().any(|run| run.interrupted);
    let not_cleaned = signal.filter(|_| is_behind && !has_failed && args.cleanup.is_some());
    if let Some(signal) = not_cleaned {
        say(&format!("error: signal {signal}: --cleanup was not run to its end"));
    }
    let code = match (failed, signal) {
        (Some(error), _) => error.exit_code,
        (None, Some(signal)) if not_cleaned.is_some() => 128 + signal,
        (None, Some(signal)) if runs.len() < all || stopped.is_some() => 128 + signal,
        (None, _) if args.ignore_failure => 0,
        (None, _) => {
            runs.iter().map(|run| run.used.ending.shell_code()).find(|code| *code != 0).unwrap_or(0)
        }
    };
    let figures = each_once(args.figures.clone());
    let limit = args.fail_above.unwrap_or(LIMIT);
    let gate = compares.then(|| Gate::of(&plan, &runs, &figures, limit));
    let code = match (args.fail_above.and(gate.as_ref()), has_failed, signal) {
        // 1 and 3 are the gate's own.
        (Some(_), true, _) => gate::TROUBLE,
        (Some(gate), false, signal) if signal.is_none() || code < 128 => {
            gate.exit_code(args.allow_undecided)
        }
        _ => code,
    };
    let stored = args.stored(&plan, &to_run);
    let asked = args.output.files.json.as_ref().and(args.fail_above);
    let stored_gate = asked.map(|limit| Gate::of(&stored, &runs, &figures, limit));
    let stored = (stored, stored_gate);
    let written =
        write(plan, runs, started, signal.is_some(), args, (gate, named.as_ref()), stored);
    // A script that waits for the figures must learn that they are not there. 1 is a gate's FAIL.
    let unwritten = if args.fail_above.is_some() { gate::TROUBLE } else { 1 };
    Ok(if !written && code == 0 { unwritten } else { code }.into())
}

/// Shows how far the runs are, and the time of the command that ran last, so far.
struct SoFar {
    bar: RunsProgress,
    shown: Instant,
}

/// Time between two drawings of the bar: each takes some CPU time while a command runs.
const REDRAW: Duration = Duration::from_millis(200);

impl SoFar {
    /// Nothing is drawn where the commands may print.
    fn new(plan: &Plan, is_hidden: bool) -> Self {
        // Without end where there is a budget.
        let all = (plan.runs < u32::MAX).then(|| u64::from(plan.runs) * plan.commands.len() as u64);
        Self { bar: RunsProgress::new(all, is_hidden), shown: Instant::now() }
    }

    fn show(&mut self, runs: &[CommandRun], plan: &Plan) {
        let Some(last) = runs.last() else { return };
        if self.bar.is_hidden() || self.shown.elapsed() < REDRAW {
            return;
        }
        self.shown = Instant::now();
        let own = runs.iter().filter(|run| run.command == last.command && !run.interrupted);
        let times: Vec<f64> = own.map(|run| run.used.real_ns as f64).collect();
        let Some(middle) = median(&times) else { return };
        let interval = median_interval(&times, plan.confidence);
        let half = interval.map(|interval| interval.half_width() / middle);
        self.bar.show(runs.len() as u64, middle, half, &plan.label(last.command));
    }
}

/// Writes all that was asked for; what cannot be written is reported, and the rest is written.
/// `stored` are plan and verdict as they are stored. Whether all was written.
fn write(
    plan: Plan,
    runs: Vec<CommandRun>,
    started: String,
    interrupted: bool,
    args: &RunArgs,
    (gate, named): (Option<Gate>, Option<&Chosen>),
    stored: (Plan, Option<Gate>),
) -> bool {
    let FileOptions { json, csv, quiet, .. } = &args.output.files;
    let mut outputs = Vec::new();
    if let Some(to) = csv {
        outputs.push((to, rows(&runs)));
    }
    // Reading the machine and the estimate take time.
    let mut report = Ok(());
    if json.is_some() || args.markdown.is_some() || args.report.report.is_some() || !quiet {
        let machine = match json {
            Some(_) => probe::machine::read_with_accounting(Path::new("/")),
            None => probe::machine::accounting(Path::new("/")),
        };
        let build = execute::build_info();
        let (machine, about) = match args.output.files.anonymous {
            false => (
                machine,
                (
                    started,
                    Some(execute::host()),
                    execute::invocation(args.output.files.store_command),
                    build,
                ),
            ),
            true => {
                let machine = (execute::anonymous(machine.0), machine.1);
                (machine, (started, None, Vec::new(), build))
            }
        };
        let mut record = Record::new(plan, runs, machine, about);
        if !args.no_estimate {
            estimate(&mut record, interrupted, args.output.files.anonymous, named);
        }
        if let (Some(to), Some(gate)) = (&args.markdown, &gate) {
            outputs.push((to, Ok(markdown::markdown(&record, gate).into_bytes())));
        }
        record.gate = args.fail_above.and(gate);
        // What is printed has the words.
        let mut place = String::new();
        if !record.runs.is_empty() {
            let written = args.report.write(|| page(&record));
            report = written.map(|words| place = words);
        }
        if !quiet && !record.runs.is_empty() {
            let output = &args.output;
            let text = printout![table::text(&record, output.verbose), place];
            say_fitted(text, output.tables.layout());
        }
        if let Some(to) = json {
            record.store_as(stored);
            outputs.push((to, to_json(&record)));
        }
    }
    all_written(outputs.into_iter().map(|(to, bytes)| write_output(&bytes?, to)).chain([report]))
}

/// A row for each run.
fn rows(runs: &[CommandRun]) -> Result<Vec<u8>> {
    let row = |run: &CommandRun| {
        let RunUsage { ending, orphans, .. } = &run.used;
        let (command, round) = (run.command.to_string(), run.round.to_string());
        let (exit_code, signal) = (known(ending.code().ok()), known(ending.code().err()));
        let first =
            ["run".to_string(), command, round, run.interrupted.to_string(), exit_code, signal];
        let figures = SOURCES.map(|(.., of)| known(of(&run.used).known()));
        let left_behind = known(orphans.left_behind.known().map(Vec::len));
        [&first[..], &figures, &[orphans.ended.to_string(), left_behind]].concat()
    };
    csv::write(&columns(), runs.iter().map(row))
}

/// The columns of [`rows`].
fn columns() -> Vec<&'static str> {
    let first = ["experiment", "command", "round", "interrupted", "exit_code", "signal"];
    let figures = SOURCES.map(|(name, ..)| name);
    [&first[..], &figures, &["orphans_ended", "left_behind"]].concat()
}

/// Adds what the switches cost, by the profile that was asked for. Where this machine has none a
/// quick one is measured, unless somebody has asked to stop.
fn estimate(record: &mut Record, interrupted: bool, anonymous: bool, named: Option<&Chosen>) {
    let resident =
        record.commands.iter().filter_map(|command| command.median("max_resident_bytes"));
    let set = WorkingSet::within(resident.fold(0.0, f64::max) as u64);
    let mut found = named.map_or_else(|| quick::stored(set), |named| Ok(named.clone()));
    let mut notices = Vec::new();
    if found.is_err() && !interrupted && record.commands.iter().any(Summary::switched) {
        let measured = quick::measure_quickly(anonymous);
        found = quick::stored(set);
        let notice = match (measured, &found) {
            (Ok(()), Ok(_)) => "no stored cost profile could be used, so a quick one was \
                measured; `switchcost cost` makes a better one"
                .to_string(),
            (Ok(()), Err(why)) => format!(
                "the quick measurement cannot be used as a profile: \
                {why}"
            ),
            (Err(error), _) => format!("the quick measurement failed: {error:#}"),
        };
        found = found.map_err(|_| notice.clone());
        notices.push(notice);
    }
    notices.extend(found.iter().flat_map(|chosen| chosen.notices.clone()));
    let profile: Reading<CostProfile> = found.map(|chosen| chosen.profile).into();
    for summary in &mut record.commands {
        summary.switching = Some(Switching::of(summary, profile.clone(), notices.clone()));
    }
}
