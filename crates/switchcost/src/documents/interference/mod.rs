//! `switchcost classic experiment interference`: does a disturbance reach the measurement? Here is
//! what may be typed.

pub(crate) mod plan;
pub(crate) mod table;

use clap::{Arg, Args, Command};
use rundata::trial::interference::Noise;

use crate::base::values::{List, TimeBudget, above_zero, budget, byte_sizes, whole};
use crate::experiments::cost::CostEffort;
use crate::report::output::OutputOptions;

/// Student's interval needs two runs; nobody waits for a million.
fn runs(text: &str) -> Result<u32, String> {
    whole(2..=1000)(text).map_err(|error| format!("{error}, as one run has no scatter"))
}

/// What is chosen of the experiment.
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

/// `classic experiment interference`.
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
    /// Returns the effort: the number of runs ends it, and no precision.
    pub(crate) fn effort(&self) -> CostEffort {
        CostEffort { precision: 0.0, budget: self.budget, rounds: None, seed: self.seed }
    }
}

/// What belongs to the costs by working set: here conditions are fixed, or have flags of their own.
const NOT_OF_INTERFERENCE: &str =
    "array deep stride op tlb huge_pages members kind placement policy precision rounds";

/// `cost --interference`, the old name of `classic experiment interference`.
#[derive(Debug, Args)]
pub(crate) struct OldInterferenceArgs {
    /// `classic experiment interference`
    #[arg(long, hide = true, conflicts_with_all = NOT_OF_INTERFERENCE.split(' '))]
    pub(crate) interference: bool,

    #[command(flatten)]
    pub(crate) chosen: InterferenceArgs,
}

/// `cost` with the options of `--interference` out of its help, and accepted with it alone.
pub(crate) fn hide_old(command: Command) -> Command {
    let hide = |arg: Arg| arg.hide(true).requires("interference");
    command.mut_arg("sizes", hide).mut_arg("runs", hide).mut_arg("noise", hide)
}
