//! The arguments of `switchcost run`.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgAction, Args, ColorChoice, ValueEnum};

use super::commands::DEFAULT_SHELL;
use super::files::check_output_file;
use super::gate::GatedFigure;
use super::hyperfine::{ChosenUnit, HyperfineFormat, SortMethod, TableChoices};
use crate::base::failure::usage;
use crate::base::values::{Destination, above_zero, duration, duration_or_zero, share, whole};
use crate::report::output::judgements::JudgementOptions;
use crate::report::output::{FileOptions, UnstoredOptions, check_destination, set_colour};
use crate::report::page::ReportOutput;

/// Heading in the help of the arguments for commands that run around the measured ones.
const AROUND: &str = "Around the runs";

/// Heading in the help of the arguments for results, as hyperfine has them.
const HYPERFINE: &str = "Results as hyperfine's";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Commands to compare, run by the shell; ratios are to the first
    ///
    /// Quote a command that has options of its own, or put it after --, where one command with its
    /// arguments runs without a shell. The shell's own half millisecond or so is part of a line's
    /// figures: -N runs without one.
    #[arg(value_name = "COMMAND")]
    pub(super) lines: Vec<String>,

    /// Runs of each command [default: 10; one command after --: 1]; from 5 on there are intervals
    #[arg(long, short = 'n', visible_short_alias = 'r', value_name = "COUNT", value_parser = above_zero::<u32>, conflicts_with_all = ["budget", "min_runs", "max_runs"])]
    pub(super) runs: Option<u32>,

    /// Repeat until this much time is spent [default with -m or -M: 3s]
    ///
    /// In a round each command runs once; one begins only if it still fits.
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', value_name = "TIME", value_parser = duration)]
    pub(super) budget: Option<Duration>,

    /// With a budget: at least this many runs of each command [default: 10; with --budget 1]
    #[arg(long, short = 'm', value_name = "COUNT", value_parser = above_zero::<u32>)]
    pub(super) min_runs: Option<u32>,

    /// With a budget: at most this many runs of each command
    #[arg(long, short = 'M', value_name = "COUNT", value_parser = above_zero::<u32>)]
    pub(super) max_runs: Option<u32>,

    /// Runs of each command before the measured ones; they are discarded
    #[arg(long, short = 'w', value_name = "COUNT", default_value_t = 0)]
    pub(super) warmup: u32,

    /// Time for the rounds with at least 10 runs of each command, in hyperfine's words
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, hide = true, conflicts_with = "budget")]
    pub(super) min_benchmarking_time: Option<Duration>,

    /// Another command to compare with, as one argument; may be given several times
    ///
    /// All commands run once in every round, each time in a shuffled order. Ratios are taken within
    /// rounds, to the first command. With a command after --, this one is split into words as a
    /// shell does (quotes, backslashes), but no shell runs it. For pipes and variables write "sh -c
    /// '...'".
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub(super) vs: Vec<String>,

    /// The command that all ratios are to, before the others
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub(super) reference: Option<String>,

    /// Name of the --reference
    #[arg(long, value_name = "NAME", requires = "reference")]
    pub(super) reference_name: Option<String>,

    /// Name of a command, in their order; may be given several times
    ///
    /// {NAME} of a parameter is replaced. With parameters, one name is that of all commands, and
    /// several are those of all combinations.
    #[arg(long, value_name = "NAME")]
    pub(super) command_name: Vec<String>,

    /// Compare the values A, B and C of a parameter: each takes the place of {NAME} in the command
    ///
    /// Ratios are to the first. Several parameters give all their combinations. A comma within a
    /// value has a backslash before it. A parameter that is in a hook, such as --prepare, runs every
    /// command with each value.
    #[arg(long, short = 'L', alias = "parameter-list", num_args = 2, value_names = ["NAME", "A,B,C"], allow_hyphen_values = true)]
    pub(super) parameter: Vec<String>,

    /// Compare all values of a parameter from MIN to MAX
    #[arg(long, short = 'P', num_args = 3, action = ArgAction::Set, value_names = ["NAME", "MIN", "MAX"], allow_hyphen_values = true, conflicts_with = "parameter")]
    pub(super) parameter_scan: Vec<String>,

    /// Step of --parameter-scan [default: 1]
    #[arg(
        long,
        short = 'D',
        value_name = "STEP",
        allow_hyphen_values = true,
        requires = "parameter_scan"
    )]
    pub(super) parameter_step_size: Option<String>,

    /// Run once before the first round
    ///
    /// If it has {NAME} in it, it runs once for each value of that parameter. If it fails, nothing
    /// is run.
    #[arg(long, short = 's', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) setup: Option<String>,

    /// Run before each run of a command; several: one for each command
    #[arg(long, short = 'p', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) prepare: Vec<String>,

    /// Run after each run of a command; several: one for each command
    #[arg(long, short = 'C', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) conclude: Vec<String>,

    /// Run once after the last round
    ///
    /// It is not run after a signal to stop, or if a setup, a prepare or a command could not be
    /// run.
    #[arg(long, short = 'c', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) cleanup: Option<String>,

    /// What runs command lines: a shell, default (sh), or none
    #[arg(long, short = 'S', value_name = "SHELL", default_value = DEFAULT_SHELL, overrides_with = "shell", help_heading = AROUND)]
    pub(super) shell: String,

    /// The same as --shell none: lines are split into words
    #[arg(short = 'N', conflicts_with = "shell", help_heading = AROUND)]
    pub(super) no_shell: bool,

    /// Count failed runs as any others, and exit with 0; =1,2: these codes
    ///
    /// With =1,2 only runs with these exit codes are no failures. A run that a signal ended has the
    /// code 128 + its number.
    #[arg(long, short = 'i', value_name = "CODE,...", num_args = 0..=1, require_equals = true, default_missing_value = ALL_FAILURES)]
    pub(super) ignore_failure: Option<IgnoredFailures>,

    /// Exit with 1 if a command takes longer than the first by more than this share; changes within
    /// it count as none [default for that: 3%]
    ///
    /// The first is the first command line, the command after --, or the one with the first values.
    /// All intervals hold together. The exit codes are those of `compare`: 0 PASS, 1 FAIL, 3
    /// UNDECIDED, and 2 if a run failed.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) fail_above: Option<f64>,

    /// With --fail-above: exit with 0 instead of 3 where nothing was decided
    #[arg(long, requires = "fail_above")]
    pub(super) allow_undecided: bool,

    /// What --fail-above and --markdown compare
    ///
    /// Counts below about ten switches hardly matter: ten are added to both sides.
    #[arg(long, value_name = "FIGURE,...", value_delimiter = ',', default_value = "real")]
    pub(super) figures: Vec<GatedFigure>,

    /// Write the comparison as Markdown
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub(super) markdown: Option<Destination>,

    /// Write medians of what the commands used as OpenMetrics
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub(super) openmetrics: Option<Destination>,

    /// Show what the commands print, in all runs
    ///
    /// Otherwise both outputs of all runs are discarded (/dev/null), so that all are measured
    /// alike. Only one command behind -- that runs once is left its terminal, unless figures are
    /// written to standard output (--json -).
    #[arg(long, conflicts_with = "style")]
    pub(super) show_output: bool,

    /// Where output of commands goes: null, pipe, inherit or a file; one for each command
    ///
    /// A pipe is read and discarded: some programs do less when they write to /dev/null. A file has
    /// a slash in its name (./log), and each run begins it anew. Standard error is discarded, but
    /// for inherit.
    #[arg(
        long = "output",
        id = "command_output",
        value_name = "WHERE",
        conflicts_with = "show_output"
    )]
    pub(super) command_output: Vec<CommandOutput>,

    /// What each run reads: a file, or null for nothing [default: null]
    ///
    /// Only one command behind -- that runs once has this program's standard input by default;
    /// /dev/stdin names it.
    #[arg(long, value_name = "FILE", value_parser = input_file)]
    pub(super) input: Option<PathBuf>,

    /// Unit of times in tables [default: the one that suits the first command]
    #[arg(long, short = 'u', value_name = "UNIT", help_heading = HYPERFINE)]
    pub(super) time_unit: Option<ChosenUnit>,

    /// Order of the commands in tables
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_default_value = true, help_heading = HYPERFINE)]
    pub(super) sort: SortMethod,

    /// Colours and progress [default: both on a terminal]
    #[arg(long, value_name = "TYPE", help_heading = HYPERFINE)]
    pub(super) style: Option<OutputStyle>,

    /// Write results and all times as hyperfine's JSON
    #[arg(long, value_name = "FILE|-", help_heading = HYPERFINE)]
    pub(super) export_json: Option<Destination>,

    /// Write results as hyperfine's CSV
    #[arg(long, value_name = "FILE|-", help_heading = HYPERFINE)]
    pub(super) export_csv: Option<Destination>,

    /// Write hyperfine's table in Markdown
    #[arg(long, value_name = "FILE|-", help_heading = HYPERFINE)]
    pub(super) export_markdown: Option<Destination>,

    /// Write hyperfine's table in AsciiDoc
    #[arg(long, value_name = "FILE|-", help_heading = HYPERFINE)]
    pub(super) export_asciidoc: Option<Destination>,

    /// Write hyperfine's table for Emacs' org-mode
    #[arg(long, value_name = "FILE|-", help_heading = HYPERFINE)]
    pub(super) export_orgmode: Option<Destination>,

    /// Also count descendants that the command did not wait for
    ///
    /// wait4(2) counts the command and the children that it waited for. --tree adds those that
    /// outlived their parent and ended within a second after the command.
    #[arg(long)]
    pub(super) tree: bool,

    /// No estimate of what the switches cost, and no measurement for it
    #[arg(long)]
    pub(super) no_estimate: bool,

    /// The stored run whose costs are used, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN", conflicts_with = "no_estimate")]
    pub(super) profile: Option<String>,

    /// Seed of the order of commands and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(super) seed: u64,

    /// One command with its arguments, run without a shell; its exit code is this program's
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    pub(super) judgements: JudgementOptions,

    #[command(flatten)]
    pub(super) report: ReportOutput,

    #[command(flatten)]
    pub(super) output: UnstoredOptions,
}

/// Value of --ignore-failure for every failure.
const ALL_FAILURES: &str = "all-non-zero";

/// Failures of commands that are no failures of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IgnoredFailures {
    All,
    /// Failures with these exit codes.
    Codes(Vec<u8>),
}

impl FromStr for IgnoredFailures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == ALL_FAILURES {
            return Ok(Self::All);
        }
        let mut codes = Vec::new();
        for code in text.split(',') {
            let code = code.trim().parse();
            codes.push(code.map_err(|_| "accepted: exit codes from 0 to 255, such as 1,2")?);
        }
        Ok(Self::Codes(codes))
    }
}

/// Place that the output of a command goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandOutput {
    Null,
    Pipe,
    Inherit,
    File(PathBuf),
}

impl FromStr for CommandOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "null" => Ok(Self::Null),
            "pipe" => Ok(Self::Pipe),
            "inherit" => Ok(Self::Inherit),
            // A mistyped word makes no file.
            _ if Path::new(text).components().count() < 2 => {
                Err("accepted: null, pipe, inherit, or a file with a slash such as ./log"
                    .to_string())
            }
            path => Ok(Self::File(PathBuf::from(path))),
        }
    }
}

/// Path of the input that `--input null` names.
pub(super) const NO_INPUT: &str = "/dev/null";

/// Parses the value of --input.
fn input_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "null" => Ok(PathBuf::from(NO_INPUT)),
        path if Path::new(path).exists() => Ok(PathBuf::from(path)),
        _ => Err("there is no such file (accepted: a file, or null)".to_string()),
    }
}

/// Style of the report, as hyperfine names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputStyle {
    /// As the terminal allows
    Auto,
    /// No colours, no progress
    Basic,
    /// Colours, progress
    Full,
    /// No colours
    Nocolor,
    /// Colours, no progress
    Color,
    /// No report: errors and files alone
    None,
}

impl OutputStyle {
    /// Returns the choice of colours.
    pub(super) fn colour(self) -> ColorChoice {
        match self {
            Self::Auto | Self::None => ColorChoice::Auto,
            Self::Basic | Self::Nocolor => ColorChoice::Never,
            Self::Full | Self::Color => ColorChoice::Always,
        }
    }

    /// Returns whether progress is shown, on a terminal.
    pub(super) fn has_progress(self) -> bool {
        matches!(self, Self::Auto | Self::Full | Self::Nocolor)
    }
}

/// Options of a session of two states, which stand before `--`.
#[derive(Default)]
pub(crate) struct SessionOptions<'a> {
    pub(crate) fail_above: Option<f64>,
    pub(crate) allow_undecided: bool,
    /// Where the comparison goes in Markdown.
    pub(crate) markdown: Option<Destination>,
    pub(crate) report: Option<&'a Destination>,
    /// Where the judgements of the gate go.
    pub(crate) judgements: Option<&'a JudgementOptions>,
    pub(crate) files: Option<&'a FileOptions>,
    pub(crate) verbose: bool,
    /// Whether CPU time is compared, not real time.
    pub(crate) compares_cpu: bool,
}

impl RunArgs {
    /// Takes the options that were typed before `--`; those behind it go before them.
    pub(crate) fn take_session_options(&mut self, session: SessionOptions<'_>) {
        self.fail_above = self.fail_above.or(session.fail_above);
        self.allow_undecided |= session.allow_undecided;
        if session.compares_cpu && self.figures == [GatedFigure::Real] {
            self.figures = vec![GatedFigure::Cpu];
        }
        self.markdown = self.markdown.take().or(session.markdown);
        self.report.report = self.report.report.take().or(session.report.cloned());
        if let Some(outer) = session.judgements {
            let own = &mut self.judgements;
            own.junit = own.junit.take().or(outer.junit.clone());
            own.ktap = own.ktap.take().or(outer.ktap.clone());
        }
        self.output.verbose |= session.verbose;
        let files = &mut self.output.files;
        if let Some(outer) = session.files {
            files.json = files.json.take().or(outer.json.clone());
            files.quiet |= outer.quiet;
            files.anonymous |= outer.anonymous;
            files.store_command |= outer.store_command;
        }
    }

    /// Returns whether the number of runs or their time was typed.
    pub(super) fn has_own_runs(&self) -> bool {
        self.runs.is_some()
            || self.budget.is_some()
            || self.min_benchmarking_time.is_some()
            || self.min_runs.is_some()
            || self.max_runs.is_some()
    }

    /// Returns whether commands are compared in a gate or a table in Markdown.
    pub(super) fn compares_commands(&self) -> bool {
        self.fail_above.is_some() || self.markdown.is_some()
    }

    /// Checks that all places can be written, and that figures do not mix with the output of
    /// commands.
    pub(super) fn check_outputs(&self) -> Result<()> {
        self.output.files.check()?;
        let mut own = vec![
            ("--markdown", self.markdown.as_ref()),
            ("--openmetrics", self.openmetrics.as_ref()),
        ];
        for (format, place) in self.exports() {
            own.push((format.flag(), Some(place)));
        }
        for (flag, place) in &own {
            if let Some(place) = place {
                check_destination(flag, place)?;
            }
        }
        let mut outputs = self.output.files.places().to_vec();
        outputs.append(&mut own);
        self.report.check(&outputs)?;
        outputs.push(("--report", self.report.report.as_ref()));
        self.judgements.check(&outputs)?;
        self.check_command_outputs()?;
        FileOptions::refuse_shown(self.figures_on_stdout(), self.show_output)
    }

    /// Checks where the commands' output goes, before any of them runs.
    fn check_command_outputs(&self) -> Result<()> {
        for output in &self.command_output {
            match (output, self.figures_on_stdout()) {
                (CommandOutput::File(path), _) => check_output_file(path)?,
                (CommandOutput::Inherit, Some(flag)) => {
                    return Err(usage(format!(
                        "{flag}: with --output inherit standard output is the commands' (accepted \
                         here: --output null, pipe or a file)"
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Empties the files of hyperfine's formats, as hyperfine does before it runs anything. If the
    /// series fails, they do not have the results of an earlier one.
    ///
    /// # Errors
    /// Fails if one cannot be opened for writing.
    pub(super) fn empty_exports(&self) -> Result<()> {
        for (format, place) in self.exports() {
            let Destination::File(path) = place else { continue };
            // The reader of a pipe would take it for the end.
            if !path.is_file() {
                continue;
            }
            let opened = OpenOptions::new().write(true).truncate(true).open(path);
            opened.with_context(|| {
                let flag = format.flag();
                format!("{flag} {}: cannot be emptied (accepted: a file of yours)", path.display())
            })?;
        }
        Ok(())
    }

    /// Returns the formats of hyperfine that were asked for, each with its place.
    pub(super) fn exports(&self) -> Vec<(HyperfineFormat, &Destination)> {
        let places = [
            (HyperfineFormat::Json, &self.export_json),
            (HyperfineFormat::Csv, &self.export_csv),
            (HyperfineFormat::Markdown, &self.export_markdown),
            (HyperfineFormat::Asciidoc, &self.export_asciidoc),
            (HyperfineFormat::Orgmode, &self.export_orgmode),
        ];
        let mut exports = Vec::new();
        for (format, place) in places {
            exports.extend(place.as_ref().map(|place| (format, place)));
        }
        exports
    }

    /// Returns the choices for tables.
    pub(super) fn table_choices(&self) -> TableChoices {
        TableChoices { unit: self.time_unit, sort: self.sort }
    }

    /// Chooses colours as --style says.
    pub(super) fn choose_colour(&self) {
        if let Some(style) = self.style {
            set_colour(style.colour());
        }
    }

    /// Returns the options whose commands run after the last run; empty if there are none.
    pub(super) fn last_hooks(&self) -> String {
        let mut flags = Vec::new();
        if !self.conclude.is_empty() {
            flags.push("--conclude");
        }
        if self.cleanup.is_some() {
            flags.push("--cleanup");
        }
        flags.join(" or ")
    }

    /// Returns whether nothing is printed but errors and what goes to standard output.
    pub(super) fn is_quiet(&self) -> bool {
        self.output.files.quiet || self.style == Some(OutputStyle::None)
    }

    /// Returns whether progress is left out.
    pub(super) fn hides_progress(&self) -> bool {
        self.is_quiet() || self.style.is_some_and(|style| !style.has_progress())
    }

    /// Checks that there is more than one command if commands are to be compared.
    pub(super) fn check_comparison(&self, commands: usize) -> Result<()> {
        if self.compares_commands() && commands < 2 {
            return Err(usage(
                "--fail-above and --markdown compare commands: give another command line, or --vs, or \
                 values by --parameter",
            ));
        }
        Ok(())
    }

    /// Returns the option whose figures go to standard output, if any do.
    pub(super) fn figures_on_stdout(&self) -> Option<&'static str> {
        if let Some(flag) = self.output.files.on_stdout() {
            Some(flag)
        } else if self.markdown == Some(Destination::Stdout) {
            Some("--markdown")
        } else if self.openmetrics == Some(Destination::Stdout) {
            Some("--openmetrics")
        } else if self.report.is_stdout() {
            Some("--report")
        } else {
            let exports = self.exports();
            let export = exports.iter().find(|(_, place)| **place == Destination::Stdout);
            export.map_or_else(|| self.judgements.on_stdout(), |(format, _)| Some(format.flag()))
        }
    }
}
