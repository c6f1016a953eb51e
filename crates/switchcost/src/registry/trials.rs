//! Which experiment of trials shows which findings; without such an experiment, in this build or at
//! all, the measures are shown.

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

/// Returns what is printed.
pub(super) fn text(record: &TrialRecord, view: View) -> ReportText {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(found)) => overhead::text(record, found, view),
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(found)) => sensitivity::table::text(record, found),
        #[cfg(feature = "documents")]
        Some(findings) => documents::text(record, findings, view),
        _ => measures::text(record, view),
    }
}

/// Returns the chart.
pub(super) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(_)) => overhead::figure(record, index),
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(found)) => sensitivity::figures::figure(found, index),
        #[cfg(feature = "documents")]
        Some(findings) => documents::figure(record, findings, index),
        _ => measures::figure(record, index),
    }
}

/// Returns the figures that stand for the run.
pub(super) fn tiles(record: &TrialRecord) -> Vec<Tile> {
    match &record.found.findings {
        #[cfg(feature = "programs")]
        Some(ExperimentFindings::Sensitivity(found)) => sensitivity::figures::tiles(found),
        _ => measures::tiles(record, &HEADLINE_CALLS),
    }
}
