//! `switchcost measure` as typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{Destination, duration, seed};

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Stop when this much time is spent; of each experiment the first round is always finished
    #[arg(long, default_value = "90s", value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) budget: Duration,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,

    /// Where the report goes, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short, value_name = "FILE|-", default_value_t = Destination::File(PathBuf::from("report.html")))]
    pub(crate) output: Destination,

    /// No progress and no summary: only errors and the files
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
