//! Reports of trials by their findings. The findings are an enum (`ExperimentFindings`): each variant
//! has its table and its chart in the folder of its experiment. Without findings, or where this
//! build leaves their experiment out, the declared measures of the trials are shown.

use std::path::Path;

use analysis::findings::ExperimentFindings;
use analysis::record::TrialRecord;
use charts::Figure;
use rundata::run::{Run, RunResult};

use super::first_tile;
#[cfg(feature = "documents")]
use crate::documents;
use crate::experiments::clock::{HEADLINE_CALLS, overhead};
use crate::experiments::measures;
#[cfg(feature = "programs")]
use crate::programs::sensitivity;
use crate::report::printout::Printout;
use crate::report::terminal::{ReportText, View};
use crate::report::tiles::Tile;
#[cfg(feature = "switches")]
use crate::switches::trace::stored;

/// Returns the report for a terminal.
pub(super) fn text(record: &TrialRecord, view: View) -> ReportText {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(findings)) => overhead::text(record, findings, view),
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(findings)) => {
            sensitivity::table::text(record, findings)
        }
        #[cfg(feature = "switches")]
        Some(ExperimentFindings::Trace(findings)) => stored::text(findings),
        #[cfg(feature = "documents")]
        Some(findings) => documents::text(record, findings, view),
        _ => measures::text(record, view),
    }
}

/// Draws the chart; `None` with too few cases.
pub(super) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(_)) => overhead::figure(record, index),
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(findings)) => {
            sensitivity::figures::figure(findings, index)
        }
        #[cfg(feature = "switches")]
        Some(ExperimentFindings::Trace(findings)) => stored::figure(findings, index),
        #[cfg(feature = "documents")]
        Some(findings) => documents::figure(record, findings, index),
        _ => measures::figure(record, index),
    }
}

/// Returns the figures that stand for the run, what matters most first.
pub(super) fn tiles(record: &TrialRecord) -> Vec<Tile> {
    match &record.found.findings {
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(findings)) => sensitivity::figures::tiles(findings),
        #[cfg(feature = "switches")]
        Some(ExperimentFindings::Trace(findings)) => stored::tiles(findings),
        _ => measures::tiles(record, &HEADLINE_CALLS),
    }
}

/// Returns the numbers of the cases that the first line answers with.
pub(super) fn answer_cases(record: &TrialRecord) -> Vec<usize> {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(_)) => overhead::answer_cases(record),
        _ => Vec::new(),
    }
}

/// Returns the result in a few words, for a list of runs: of a trace its switches, else the first
/// tile.
pub(super) fn result(record: &TrialRecord) -> Option<RunResult> {
    match &record.found.findings {
        #[cfg(feature = "switches")]
        Some(ExperimentFindings::Trace(findings)) => Some(stored::result(findings)),
        _ => first_tile(&tiles(record)),
    }
}

/// Returns the report of a trace, to which nothing applies that is said of measurements: no rounds,
/// no speed of a core. `None` for all else.
#[cfg_attr(not(feature = "switches"), allow(unused_variables))]
pub(super) fn own_printout(
    record: &TrialRecord,
    run: &Run,
    path: Option<&Path>,
    view: View,
) -> Option<Printout> {
    match &record.found.findings {
        #[cfg(feature = "switches")]
        Some(ExperimentFindings::Trace(findings)) => {
            Some(stored::printout(run, findings, path, view))
        }
        _ => None,
    }
}
