//! `switchcost cost --interference`: does a disturbance reach the measurement? Here is what may be
//! typed.

pub(crate) mod plan;
pub(crate) mod table;

use clap::Args;
use model::trial::interference::Noise;

use crate::base::values::{List, byte_sizes, whole};
use crate::engine::effort::Effort;

/// How long to measure: a grid takes longer than a ring.
pub(crate) type CostEffort = Effort<55>;

/// Student's interval needs two runs; nobody waits for a million.
fn runs(text: &str) -> Result<u32, String> {
    whole(2..=1000)(text).map_err(|error| format!("{error}, as one run has no scatter"))
}

/// What belongs to the costs by working set: here conditions are fixed, or have flags of their own.
const NOT_OF_INTERFERENCE: &str =
    "array deep stride op tlb huge_pages members kind placement policy precision rounds";

#[derive(Debug, Args)]
#[command(next_help_heading = "Interference")]
pub(crate) struct InterferenceArgs {
    /// Does a disturbance reach the measurement? Compares execution times, quiet and disturbed, in
    /// two settings
    ///
    /// A ring of two runs in the augmented setting (alone on its CPU, real-time policy) and in the
    /// plain one (everything on one CPU, SCHED_OTHER), with and without a disturbance, as in
    /// Tables 1 and 2 of Li, Ding and Shen (2007).
    #[arg(long, conflicts_with_all = NOT_OF_INTERFERENCE.split(' '))]
    pub(crate) interference: bool,

    /// Array of each member, instead of 1/2, 3/4 and 1 times the last private cache (the paper:
    /// 256K,384K,512K)
    #[arg(long, value_name = "BYTES,...", value_parser = byte_sizes, requires = "interference")]
    pub(crate) sizes: Option<List<u64>>,

    /// Runs in each condition
    #[arg(long, value_name = "COUNT", default_value = "6", value_parser = runs, requires = "interference")]
    pub(crate) runs: u32,

    /// The disturbance: net (datagrams at gaps of 0 to 200 ms), cpu (bursts of work) or timer
    #[arg(long, value_name = "cpu|timer|net", default_value_t = Noise::Net, requires = "interference")]
    pub(crate) noise: Noise,
}
