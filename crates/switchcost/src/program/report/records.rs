//! What `run`, `profile` and `trend` have found, from the JSON that they wrote.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::failure::usage;
use analysis::trend::Trend;

use crate::program::trend;
use crate::programs::profile::{self, Profile};
use crate::programs::run;
use crate::report::page::FindingsPage;

/// Returns whether a name is that of a record in JSON.
pub(crate) fn is_record(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "json")
}

/// Returns the record's path if a record is what was asked for.
pub(super) fn named(names: &[String]) -> Result<Option<&Path>> {
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
    Trend(Box<Trend>),
    Run(Box<run::Record>),
    Profile(Box<Profile>),
}

/// Reads a record that was written with --json.
pub(crate) fn read(path: &Path) -> Result<CommandRecord> {
    let cannot = || format!("cannot read {}", path.display());
    let text = fs::read_to_string(path).with_context(cannot)?;
    let value: Value = serde_json::from_str(&text).with_context(cannot)?;
    // Each of these fields is in no other record.
    if value.get("levels").is_some() {
        return Ok(CommandRecord::Trend(record(value).with_context(cannot)?));
    }
    if value.get("counted_by").is_some() {
        return Ok(CommandRecord::Run(record(value).with_context(cannot)?));
    }
    if value.get("added_ns").is_some() {
        return Ok(CommandRecord::Profile(record(value).with_context(cannot)?));
    }
    Err(usage(format!(
        "{}: no record of run, profile or trend (accepted: what these write with --json; a run \
         file ends in .jsonl)",
        path.display()
    )))
}

fn record<T: DeserializeOwned>(value: Value) -> Result<Box<T>> {
    Ok(Box::new(serde_json::from_value(value)?))
}

/// Reads a record that was written with --json; returns its page.
pub(super) fn page(path: &Path) -> Result<FindingsPage> {
    Ok(match read(path)? {
        CommandRecord::Trend(record) => trend::page(&record),
        CommandRecord::Run(record) => run::page(&record),
        CommandRecord::Profile(record) => profile::page(&record),
    })
}
