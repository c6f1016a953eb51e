//! `switchcost run`, from what was typed to a plan.

use std::ffi::OsString;

use anyhow::Result;
use model::command_use::Plan;
use probe::command::Series;

use super::CONFIDENCE;
use crate::cli::{RUNS_TO_COMPARE, RunArgs};
use crate::failure::usage;

/// The commands, in words.
pub(crate) fn commands(args: &RunArgs) -> Result<Vec<Vec<OsString>>> {
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

/// What is to be done with them.
pub(crate) fn plan(args: &RunArgs, commands: &[Vec<OsString>]) -> Plan {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    Plan {
        commands: commands.iter().map(|words| words.iter().map(text).collect()).collect(),
        runs: args.runs.unwrap_or(if commands.len() > 1 { RUNS_TO_COMPARE } else { 1 }),
        warmup: args.warmup,
        seed: args.seed,
        tree: args.tree,
        confidence: CONFIDENCE,
    }
}

/// The same for the launcher.
pub(crate) fn series(plan: &Plan, commands: Vec<Vec<OsString>>) -> Series {
    let Plan { warmup, runs, seed, tree, .. } = *plan;
    Series { commands, warmup, runs, seed, tree, announce: false }
}
