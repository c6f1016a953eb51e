//! Pages of what `run`, `profile` and `trend` have found, from the JSON that they wrote.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::failure::usage;
use crate::program::trend;
use crate::programs::{profile, run};
use crate::report::page::FindingsPage;

/// Returns the record's path if a record is what was asked for.
pub(super) fn named(names: &[String]) -> Result<Option<&Path>> {
    let is_record = |name: &&String| Path::new(name).extension().is_some_and(|end| end == "json");
    match (names.iter().find(is_record), names.len()) {
        (None, _) => Ok(None),
        (Some(name), 1) => Ok(Some(Path::new(name))),
        (Some(name), _) => Err(usage(format!(
            "{name}: a record in JSON has a page of its own: name it alone (runs can be drawn \
             together: their names, or files that end in .jsonl)"
        ))),
    }
}

/// Reads a record that was written with --json; returns its page.
pub(super) fn page(path: &Path) -> Result<FindingsPage> {
    let cannot = || format!("cannot read {}", path.display());
    let text = fs::read_to_string(path).with_context(cannot)?;
    let value: Value = serde_json::from_str(&text).with_context(cannot)?;
    // Each of these fields is in no other record.
    if value.get("levels").is_some() {
        return Ok(trend::page(&record(value).with_context(cannot)?));
    }
    if value.get("counted_by").is_some() {
        return Ok(run::page(&record(value).with_context(cannot)?));
    }
    if value.get("added_ns").is_some() {
        return Ok(profile::page(&record(value).with_context(cannot)?));
    }
    Err(usage(format!(
        "{}: no record of run, profile or trend (accepted: what these write with --json; a run \
         file ends in .jsonl)",
        path.display()
    )))
}

fn record<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}
