//! What all experiments have in common as typed: how long to measure, and where results go.

use std::time::Duration;

use clap::Args;

use super::values::{Destination, above_zero, duration, seed, share};
use crate::failure::usage;

/// How long to measure; `BUDGET` is the seconds that an experiment takes if nothing is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "Effort")]
pub(crate) struct Effort<const BUDGET: u64 = 20> {
    /// Stop when every interval's half-width is below this share of its figure
    #[arg(long, default_value = "1%", value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub(crate) precision: f64,

    /// Stop when this much time is spent; the first round is always finished
    #[arg(long, default_value = format!("{BUDGET}s"), value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) budget: Duration,

    /// Stop after this many rounds in any case
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>, allow_hyphen_values = true)]
    pub(crate) rounds: Option<u32>,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Write the record as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,

    /// Write one row a sample as CSV to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<Destination>,

    /// No progress and no table: only errors, and what --json and --csv ask for
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Output {
    /// Two formats in one place would be neither.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match (&self.json, &self.csv) {
            (Some(json), Some(csv)) if json == csv => {
                let place = match json {
                    Destination::Stdout => "standard output",
                    Destination::File(_) => "that file",
                };
                let both = format!("--json {json} and --csv {csv}");
                Err(usage(format!("{both}: only one of them can have {place}")))
            }
            _ => Ok(()),
        }
    }
}
