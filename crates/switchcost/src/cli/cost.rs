//! `switchcost cost` as typed.

use clap::Args;

use super::common::{Effort, Output};
use super::interference::InterferenceArgs;
use super::program::ProgramArgs;

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    #[command(flatten)]
    pub(crate) interference: InterferenceArgs,

    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    #[command(flatten)]
    pub(crate) effort: Effort,

    #[command(flatten)]
    pub(crate) output: Output,
}
