//! `switchcost run` as typed.

use std::ffi::OsString;

use clap::Args;

use crate::output::Output;
use crate::values::{above_zero, seed};

/// Runs with `--vs` if nothing is said: enough for an interval.
pub(super) const RUNS_TO_COMPARE: u32 = 10;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Runs of the command [default: 1; with --vs 10]; from 5 on there are intervals
    ///
    /// All runs have this program's standard input: what the first has read, the others will not find.
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = above_zero::<u32>, allow_hyphen_values = true)]
    pub(crate) runs: Option<u32>,

    /// Runs beforehand, of which nothing is kept
    #[arg(long, value_name = "COUNT", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) warmup: u32,

    /// Another command to compare with, in one word: both run once in every round
    ///
    /// It is split into words as a shell does (quotes, backslashes), but no shell runs it: for pipes and
    /// variables write "sh -c '...'". Which goes first is shuffled anew in each round; ratios are taken
    /// within rounds, second command over first.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub(crate) vs: Option<String>,

    /// Also count descendants that the command did not wait for
    ///
    /// wait4(2) tells of the command and of the children that it waited for. With --tree those that
    /// outlived their parent are added, where they have ended within a second after the command.
    #[arg(long)]
    pub(crate) tree: bool,

    /// No estimate of what the switches cost, and no measurement for it
    #[arg(long)]
    pub(crate) no_estimate: bool,

    /// Seed of the order of commands and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) output: Output,

    /// The command and its arguments; its exit code is this program's
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
