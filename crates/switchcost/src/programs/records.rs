//! Records that `run` and `profile` wrote with --json, for a report or a comparison.

use std::collections::BTreeMap;

use analysis::estimate::{Estimate, SHARED_LAUNCH_SCATTER};
use analysis::results::{CaseResults, ComparisonSide, Origin, Results};
use anyhow::Result;
use rundata::machine::Machine;
use rundata::run::ProgramBuild;
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

    /// Returns the figures that comparisons take, as results called `name`.
    pub(crate) fn results(&self, name: &str) -> Results {
        match self {
            Self::Run(record) => run::build_results(record, name.to_string()),
            Self::Profile(profile) => profile::build_results(profile, name.to_string()),
        }
    }

    /// Returns gauges beside those of the results, as OpenMetrics; empty for a profile.
    pub(crate) fn further_gauges(&self, results: &Results) -> String {
        match self {
            Self::Run(record) => run::further_gauges(record, results),
            Self::Profile(_) => String::new(),
        }
    }

    /// Returns the medians of what a command used, by column; empty for a profile.
    pub(crate) fn used(&self, command: usize) -> BTreeMap<String, Estimate> {
        match self {
            Self::Run(record) => record.used(command),
            Self::Profile(_) => BTreeMap::new(),
        }
    }
}

/// When, where and by which build the figures of a record were measured.
pub(super) struct ResultsSource<'a> {
    /// Name of the command in place of the experiment of a stored run.
    pub(super) experiment: &'static str,
    pub(super) started: &'a str,
    pub(super) build: &'a ProgramBuild,
    pub(super) machine: &'a Machine,
    pub(super) seed: u64,
}

/// Builds the results of a record; `name` is the file that it was read from.
///
/// The scatter of a command's times between two sessions is unknown. It is assumed to be that of
/// costs on a shared core.
pub(super) fn results_of_record(
    name: String,
    origin: ResultsSource<'_>,
    cases: Vec<CaseResults>,
) -> Results {
    let ResultsSource { experiment, started, build, machine, seed } = origin;
    let cpu = machine.cpu_name().map_or("unknown CPU", String::as_str);
    let kernel = machine.kernel.release.known().map_or("unknown system", String::as_str);
    Results {
        side: ComparisonSide {
            label: name.clone(),
            name,
            experiment: experiment.to_string(),
            origin: Origin::Run {
                started: started.to_string(),
                build: build.clone(),
                session: None,
            },
            machine: format!("{cpu}, {kernel}"),
            launches: 1,
        },
        machine: machine.clone(),
        noise: None,
        clock_ghz: None,
        seed,
        launch_scatter: SHARED_LAUNCH_SCATTER,
        case_scatters: Vec::new(),
        warnings: Vec::new(),
        trace: None,
        cases,
    }
}
