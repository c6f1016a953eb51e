//! Records that `run` and `profile` wrote with --json, for a report or a comparison.

use analysis::results::Results;
use anyhow::Result;
use serde_json::Value;

use super::profile::{self, CallProfile};
use super::run;
use crate::report::page::FindingsPage;

/// A record of `run` or `profile`.
pub(crate) enum ProgramRecord {
    Run(Box<run::CommandUseRecord>),
    Profile(Box<CallProfile>),
}

impl ProgramRecord {
    /// Reads the record of `run` or `profile` in `value`; an error if it is neither.
    pub(crate) fn from_json(value: Value) -> Result<Self> {
        // Only a record of `run` has this field.
        if value.get("counted_by").is_some() {
            return Ok(Self::Run(serde_json::from_value(value)?));
        }
        Ok(Self::Profile(serde_json::from_value(value)?))
    }

    /// Builds the page of the record.
    pub(crate) fn page(&self) -> FindingsPage {
        match self {
            Self::Run(record) => run::build_page(record),
            Self::Profile(record) => profile::page(record),
        }
    }

    /// Returns the figures that comparisons take, as results called `name`; `None` for a record of
    /// `profile`, which has no such figures.
    pub(crate) fn results(&self, name: &str) -> Option<Results> {
        match self {
            Self::Run(record) => Some(run::build_results(record, name.to_string())),
            Self::Profile(_) => None,
        }
    }
}
