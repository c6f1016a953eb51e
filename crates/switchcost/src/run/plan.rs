//! What `switchcost run` is to do: the commands and their runs.

use std::ffi::OsString;

use anyhow::Result;
use launcher::Series;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::args::{RUNS_TO_COMPARE, RunArgs};
use crate::effort::CONFIDENCE;
use crate::failure::usage;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Plan {
    /// One command, or two that are compared.
    pub(crate) commands: Vec<Vec<String>>,
    /// Runs of each.
    pub(crate) runs: u32,
    /// Runs of each beforehand, of which nothing is kept.
    pub(crate) warmup: u32,
    /// Seed of the order of commands and of every resampling.
    pub(crate) seed: u64,
    /// Whether descendants that outlive their parents are counted too.
    pub(crate) tree: bool,
    /// Confidence of every interval: 0.95 is 95 %.
    pub(crate) confidence: f64,
}

impl Plan {
    pub(super) fn of(args: &RunArgs, commands: &[Vec<OsString>]) -> Self {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        Self {
            commands: commands.iter().map(|words| words.iter().map(text).collect()).collect(),
            runs: args.runs.unwrap_or(if commands.len() > 1 { RUNS_TO_COMPARE } else { 1 }),
            warmup: args.warmup,
            seed: args.seed,
            tree: args.tree,
            confidence: CONFIDENCE,
        }
    }

    /// The same for the launcher.
    pub(super) fn series(&self, commands: Vec<Vec<OsString>>) -> Series {
        let Self { warmup, runs, seed, tree, .. } = *self;
        Series { commands, warmup, runs, seed, tree, announce: false }
    }
}

/// The commands, in words.
pub(super) fn commands(args: &RunArgs) -> Result<Vec<Vec<OsString>>> {
    let mut all = vec![args.command.clone()];
    if let Some(text) = &args.vs {
        let words = shell_words::split(text).map_err(|error| {
            usage(format!("--vs {text}: {error} (accepted: words as a shell splits them)"))
        })?;
        if words.is_empty() {
            return Err(usage(
                "--vs: no command (accepted: a command with its arguments, in one word)",
            ));
        }
        all.push(words.into_iter().map(OsString::from).collect());
    }
    Ok(all)
}
