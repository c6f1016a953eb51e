//! `switchcost history` as typed.

use clap::Args;

use super::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Machine to show with all its figures: its name, or the start of one that no other shares
    pub(crate) machine: Option<String>,

    /// Write as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,
}
