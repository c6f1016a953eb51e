//! Records that `run` and `profile` wrote with --json, read again for a report or a comparison.

use analysis::results::Results;
use anyhow::Result;
use serde_json::Value;

use super::profile::{self, Profile};
use super::run;
use crate::report::page::FindingsPage;

/// A record of `run` or `profile`.
pub(crate) enum ProgramRecord {
    Run(Box<run::Record>),
    Profile(Box<Profile>),
}

impl ProgramRecord {
    /// Reads a record that is one of the two.
    pub(crate) fn from_json(value: Value) -> Result<Self> {
        if value.get("counted_by").is_some() {
            return Ok(Self::Run(serde_json::from_value(value)?));
        }
        Ok(Self::Profile(serde_json::from_value(value)?))
    }

    /// Returns the page of a report.
    pub(crate) fn page(&self) -> FindingsPage {
        match self {
            Self::Run(record) => run::page(record),
            Self::Profile(record) => profile::page(record),
        }
    }

    /// Returns the figures that are compared, under this name; `None` of `profile`, which has none.
    pub(crate) fn results(&self, name: &str) -> Option<Results> {
        match self {
            Self::Run(record) => Some(run::results(record, name.to_string())),
            Self::Profile(_) => None,
        }
    }
}
