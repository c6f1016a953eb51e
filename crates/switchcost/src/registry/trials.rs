//! Which experiment of trials shows which findings.

use analysis::findings::ExperimentFindings;
use analysis::record::TrialRecord;
use charts::Figure;

use crate::documents;
use crate::experiments::clock::{FIRST, overhead};
use crate::experiments::measures;
use crate::programs::sensitivity;
use crate::report::terminal::{Text, View};
use crate::report::tiles::Tile;

/// Returns what is printed.
pub(super) fn text(record: &TrialRecord, view: View) -> Text {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(found)) => overhead::text(record, found, view),
        Some(ExperimentFindings::Sensitivity(found)) => sensitivity::table::text(record, found),
        Some(findings) => documents::text(record, findings, view),
        None => measures::text(record, view),
    }
}

/// Returns the chart.
pub(super) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    match &record.found.findings {
        Some(ExperimentFindings::Overhead(_)) => overhead::figure(record, index),
        Some(ExperimentFindings::Sensitivity(found)) => sensitivity::figures::figure(found, index),
        Some(findings) => documents::figure(record, findings, index),
        None => measures::figure(record, index),
    }
}

/// Returns the figures that stand for the run.
pub(super) fn tiles(record: &TrialRecord) -> Vec<Tile> {
    match &record.found.findings {
        Some(ExperimentFindings::Sensitivity(found)) => sensitivity::figures::tiles(found),
        _ => measures::tiles(record, &FIRST),
    }
}
