//! One row a run.

use anyhow::{Context, Result};
use launcher::{Ending, Run};

use super::findings::SOURCES;
use crate::output::csv::finished;

/// Columns before the figures, which have their own names.
const FIRST: [&str; 6] = ["experiment", "command", "round", "interrupted", "exit_code", "signal"];
/// Columns behind them.
const LAST: [&str; 2] = ["orphans_ended", "left_behind"];

/// All runs, with a header line. What was not read is empty, never zero.
pub(super) fn rows(runs: &[Run]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = FIRST.into_iter().chain(SOURCES.map(|(name, _)| name)).chain(LAST);
    writer.write_record(header).context("cannot write CSV")?;
    for run in runs {
        let (code, signal) = match run.used.ending {
            Ending::Exited { code } => (code.to_string(), String::new()),
            Ending::Killed { signal, .. } => (String::new(), signal.to_string()),
        };
        let left = run.used.orphans.left_behind.known();
        let first = [
            "run".to_string(),
            run.command.to_string(),
            run.round.to_string(),
            run.interrupted.to_string(),
            code,
            signal,
        ];
        let figures = SOURCES.map(|(_, of)| of(run).known().map_or(String::new(), u64::to_string));
        let last = [
            run.used.orphans.ended.to_string(),
            left.map_or(String::new(), |pids| pids.len().to_string()),
        ];
        let row = first.into_iter().chain(figures).chain(last);
        writer.write_record(row).context("cannot write a run as CSV")?;
    }
    finished(writer)
}
