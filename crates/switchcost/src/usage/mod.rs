//! What a command used.

pub(crate) mod profile;
pub(crate) mod run;

use std::ffi::OsString;

use clap::Args;

use crate::present::output::Unstored;

/// The last arguments of both.
#[derive(Debug, Args)]
pub(crate) struct Launched {
    #[command(flatten)]
    output: Unstored,

    /// The command and its arguments; its exit code is this program's
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}
