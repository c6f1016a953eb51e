//! The arguments of `switchcost run`.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::gate::GatedFigure;
use crate::base::failure::usage;
use crate::base::values::{Destination, above_zero, duration, share, whole};
use crate::report::output::{FileOptions, UnstoredOptions, check_destination};
use crate::report::page::ReportOutput;

/// Heading in the help of the arguments for commands that run around the measured ones.
const AROUND: &str = "Around the runs";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Commands to compare, each a whole command line, run by the shell; ratios are to the first
    ///
    /// Quote a command that has options of its own, or put it after --, where one command with its
    /// arguments runs without a shell. The shell's own half millisecond or so is part of a line's
    /// figures: -N runs without one.
    #[arg(value_name = "COMMAND")]
    pub(super) lines: Vec<String>,

    /// Runs of each command [default: 10; one command after --: 1]; from 5 on there are intervals
    ///
    /// All runs share this program's standard input: what the first run has read is gone for the
    /// others.
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

    /// Another command to compare with, as one argument; may be given several times
    ///
    /// All commands run once in every round, each time in a shuffled order. Ratios are taken within
    /// rounds, to the first command. With a command after --, this one is split into words as a
    /// shell does (quotes, backslashes), but no shell runs it. For pipes and variables write "sh -c
    /// '...'".
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub(super) vs: Vec<String>,

    /// Name of a command, in their order; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(super) command_name: Vec<String>,

    /// Compare the values A, B and C of a parameter: each takes the place of {NAME} in the command
    ///
    /// Ratios are to the first. Several parameters give all their combinations.
    #[arg(long, short = 'L', alias = "parameter-list", num_args = 2, value_names = ["NAME", "A,B,C"], allow_hyphen_values = true)]
    pub(super) parameter: Vec<String>,

    /// Run once before the first round, not measured
    ///
    /// If it has {NAME} in it, it runs once for each value of that parameter. If it fails, nothing
    /// is run.
    #[arg(long, short = 's', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) setup: Option<String>,

    /// Run before each run of a command, not measured; given several times, one for each command
    #[arg(long, short = 'p', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) prepare: Vec<String>,

    /// Run once after the last round, not measured
    ///
    /// It is not run after a signal to stop, or if a setup, a prepare or a command could not be
    /// run.
    #[arg(long, short = 'c', value_name = "COMMAND", help_heading = AROUND)]
    pub(super) cleanup: Option<String>,

    /// What runs command lines, those of --setup, --prepare and --cleanup too: a shell, or none
    #[arg(long, short = 'S', value_name = "SHELL", default_value = "sh", help_heading = AROUND)]
    pub(super) shell: String,

    /// The same as --shell none: command lines are split into words, and no shell runs them
    #[arg(short = 'N', conflicts_with = "shell", help_heading = AROUND)]
    pub(super) no_shell: bool,

    /// Count failed runs as any others, and exit with 0
    #[arg(long, short = 'i')]
    pub(super) ignore_failure: bool,

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

    /// Write the comparison as Markdown to a file, or - for standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub(super) markdown: Option<Destination>,

    /// Show what the commands print, in all runs
    ///
    /// Otherwise both outputs of all runs are discarded (/dev/null), so that all are measured
    /// alike. Only one command that runs once is left its terminal, unless figures are written to
    /// standard output (--json -).
    #[arg(long)]
    pub(super) show_output: bool,

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
    pub(super) report: ReportOutput,

    #[command(flatten)]
    pub(super) output: UnstoredOptions,
}

/// Options of a session of two states, which stand before `--`.
#[derive(Default)]
pub(crate) struct SessionOptions<'a> {
    pub(crate) fail_above: Option<f64>,
    pub(crate) allow_undecided: bool,
    /// Where the comparison goes in Markdown.
    pub(crate) markdown: Option<Destination>,
    pub(crate) report: Option<&'a Destination>,
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
        if let Some(place) = &self.markdown {
            check_destination("--markdown", place)?;
        }
        let FileOptions { json, csv, .. } = &self.output.files;
        self.report.check(&[
            ("--json", json.as_ref()),
            ("--csv", csv.as_ref()),
            ("--markdown", self.markdown.as_ref()),
        ])?;
        FileOptions::refuse_shown(self.figures_on_stdout(), self.show_output)
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
        } else if self.report.is_stdout() {
            Some("--report")
        } else {
            None
        }
    }
}
