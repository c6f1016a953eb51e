//! `switchcost classic experiment interference`: does a disturbance reach the measurement? (Li, Ding
//! and Shen 2007)
//!
//! A ring of two is timed in four conditions, for each array size (the times are an example):
//!
//! | setting | members | noise | quiet | disturbed |
//! |---|---|---|---|---|
//! | augmented | alone on their CPU, real-time policy | on another CPU | 10.1 ms | 10.1 ms |
//! | plain | on one CPU with all else, SCHED_OTHER | on the same CPU | 10.3 ms | 12.9 ms |
//!
//! The paper's question is whether the times scatter and grow under the noise in the plain setting
//! only. `plan` makes the conditions, `table` compares their times; the options are here.

pub(crate) mod plan;
pub(crate) mod table;

use clap::{Arg, Args, Command};
use rundata::trial::interference::Noise;

use crate::base::values::{List, TimeBudget, above_zero, budget, byte_sizes, whole};
use crate::experiments::cost::CostEffort;
use crate::report::output::OutputOptions;

/// Parses the number of runs, 2 to 1000: Student's interval needs two.
fn runs(text: &str) -> Result<u32, String> {
    whole(2..=1000)(text).map_err(|error| format!("{error}, as one run has no scatter"))
}

/// Options of the experiment, under its new name and under its old one.
#[derive(Debug, Args)]
pub(crate) struct InterferenceArgs {
    /// Array of each member, instead of 1/2, 3/4 and 1 times the last private cache (the paper:
    /// 256K,384K,512K)
    #[arg(long, value_name = "BYTES,...", value_parser = byte_sizes)]
    pub(crate) sizes: Option<List<u64>>,

    /// Runs in each condition
    #[arg(long, value_name = "COUNT", default_value = "6", value_parser = runs)]
    pub(crate) runs: u32,

    /// The disturbance: net (datagrams at gaps of 0 to 200 ms), cpu (bursts of work) or timer
    #[arg(long, value_name = "cpu|timer|net", default_value_t = Noise::Net)]
    pub(crate) noise: Noise,
}

/// Options of `classic experiment interference`.
#[derive(Debug, Args)]
pub(crate) struct InterferenceCommand {
    #[command(flatten)]
    pub(crate) chosen: InterferenceArgs,

    /// Laps of every run (each takes the token once round the ring), instead of as many as last its
    /// share of the budget
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u64>, help_heading = "Effort")]
    pub(crate) laps: Option<u64>,

    /// Spend about this much time; a number is seconds
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', default_value = "55s", value_name = "TIME", value_parser = budget, help_heading = "Effort")]
    pub(crate) budget: TimeBudget,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX), help_heading = "Effort")]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

impl InterferenceCommand {
    /// Returns the effort. The number of runs ends the experiment, not a precision.
    pub(crate) fn effort(&self) -> CostEffort {
        CostEffort { precision: 0.0, budget: self.budget, rounds: None, seed: self.seed }
    }
}

/// Options of `cost` that have no meaning with `--interference`, whose conditions are fixed or have
/// options of their own.
const OPTIONS_OF_COST_ONLY: &str =
    "array deep stride op tlb huge_pages members kind placement policy precision rounds";

/// Options of `cost --interference`, the old name of `classic experiment interference`.
#[derive(Debug, Args)]
pub(crate) struct OldInterferenceArgs {
    /// `classic experiment interference`
    #[arg(long, hide = true, conflicts_with_all = OPTIONS_OF_COST_ONLY.split(' '))]
    pub(crate) interference: bool,

    #[command(flatten)]
    pub(crate) chosen: InterferenceArgs,
}

/// Hides the options of `--interference` in the help of `cost`, and accepts them only with it.
pub(crate) fn hide_old(command: Command) -> Command {
    command.mut_arg("sizes", hide_option).mut_arg("runs", hide_option).mut_arg("noise", hide_option)
}

fn hide_option(option: Arg) -> Arg {
    option.hide(true).requires("interference")
}
