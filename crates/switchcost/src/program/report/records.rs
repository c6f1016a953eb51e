//! Records of `run`, `profile` and `trend`, read from the JSON that these wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use analysis::estimate::Estimate;
use analysis::results::Results;
use analysis::trend::CaseTrend;
use anyhow::{Context, Result};
use serde_json::Value;

use crate::base::failure::usage;
use crate::program::trend;
#[cfg(feature = "programs")]
use crate::programs::records::ProgramRecord;
use crate::report::page::FindingsPage;

/// Returns whether a name is that of a record in JSON.
pub(crate) fn is_record(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "json")
}

/// Returns the path of the record that was asked for; `None` where runs were. A record with others
/// is an error.
pub(super) fn only_record(names: &[String]) -> Result<Option<&Path>> {
    match (names.iter().find(|name| is_record(name)), names.len()) {
        (None, _) => Ok(None),
        (Some(name), 1) => Ok(Some(Path::new(name))),
        (Some(name), _) => Err(usage(format!(
            "{name}: a record in JSON has a page of its own: name it alone (runs can be drawn \
             together: their names, or files that end in .jsonl)"
        ))),
    }
}

/// A record that a command wrote with --json.
pub(crate) enum CommandRecord {
    Trend(Box<CaseTrend>),
    #[cfg(feature = "programs")]
    Program(ProgramRecord),
}

impl CommandRecord {
    /// Returns the figures that are compared, under this name: those of `run` and `profile`.
    pub(crate) fn results(&self, name: &str) -> Result<Results> {
        match self {
            Self::Trend(_) => Err(usage(format!(
                "{name}: of records in JSON those of `run` and `profile` are compared"
            ))),
            #[cfg(feature = "programs")]
            Self::Program(record) => Ok(record.results(name)),
        }
    }

    /// Returns gauges beside those of the results, as OpenMetrics.
    #[cfg_attr(not(feature = "programs"), expect(unused_variables, reason = "of no trend"))]
    pub(crate) fn further_gauges(&self, results: &Results) -> String {
        match self {
            Self::Trend(_) => String::new(),
            #[cfg(feature = "programs")]
            Self::Program(record) => record.further_gauges(results),
        }
    }

    /// Returns the medians of what a command used, by column; empty where no commands were run.
    #[cfg_attr(not(feature = "programs"), expect(unused_variables, reason = "of no trend"))]
    pub(crate) fn used(&self, command: usize) -> BTreeMap<String, Estimate> {
        match self {
            Self::Trend(_) => BTreeMap::new(),
            #[cfg(feature = "programs")]
            Self::Program(record) => record.used(command),
        }
    }
}

/// Reads a record that was written with --json.
pub(crate) fn read(path: &Path) -> Result<CommandRecord> {
    let cannot = || format!("cannot read {}", path.display());
    let text = fs::read_to_string(path).with_context(cannot)?;
    let value: Value = serde_json::from_str(&text).with_context(cannot)?;
    // Each of these fields is in one kind of record only: levels in a trend, counted_by in what `run`
    // wrote, added_ns in a profile.
    if value.get("levels").is_some() {
        let trend = serde_json::from_value(value).with_context(cannot)?;
        return Ok(CommandRecord::Trend(Box::new(trend)));
    }
    if value.get("counted_by").is_some() || value.get("added_ns").is_some() {
        return program_record(value).with_context(cannot);
    }
    Err(usage(format!(
        "{}: no record of run, profile or trend (accepted: what these write with --json; a run \
         file ends in .jsonl)",
        path.display()
    )))
}

#[cfg(feature = "programs")]
fn program_record(value: Value) -> Result<CommandRecord> {
    Ok(CommandRecord::Program(ProgramRecord::from_json(value)?))
}

#[cfg(not(feature = "programs"))]
fn program_record(_: Value) -> Result<CommandRecord> {
    Err(crate::base::products::not_built("run and profile", "programs"))
}

/// Reads a record that was written with --json; returns its page.
pub(super) fn page(path: &Path) -> Result<FindingsPage> {
    Ok(match read(path)? {
        CommandRecord::Trend(record) => trend::page(&record),
        #[cfg(feature = "programs")]
        CommandRecord::Program(record) => record.page(),
    })
}
