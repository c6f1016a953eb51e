//! Reports of trials by their findings. The findings are an enum (`ExperimentFindings`): each variant
//! has its table and its chart in the folder of its experiment. Without findings, or where this
//! build leaves their experiment out, the declared measures of the trials are shown.

use analysis::findings::ExperimentFindings;
use analysis::record::TrialRecord;
use charts::Figure;

#[cfg(feature = "documents")]
use crate::documents;
use crate::experiments::clock::{HEADLINE_CALLS, overhead};
use crate::experiments::measures;
#[cfg(feature = "programs")]
use crate::programs::sensitivity;
use crate::report::terminal::{ReportText, View};
use crate::report::tiles::Tile;

/// Returns the report for a terminal.
pub(super) fn text(record: &TrialRecord, view: View) -> ReportText {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(findings)) => overhead::text(record, findings, view),
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(findings)) => {
            sensitivity::table::text(record, findings)
        }
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
        _ => measures::tiles(record, &HEADLINE_CALLS),
    }
}
