//! Which experiment of trials shows which findings.

use analysis::findings::Findings;
use analysis::record::TrialRecord;
use charts::Figure;

use crate::documents::{interference, malloc, primes, sampling};
use crate::experiments::clock::{FIRST, overhead};
use crate::experiments::measures;
use crate::programs::sensitivity;
use crate::report::terminal::{Text, View};
use crate::report::tiles::Tile;

/// Returns what is printed.
pub(crate) fn text(record: &TrialRecord, view: View) -> Text {
    match &record.found.findings {
        Some(Findings::Overhead(found)) => overhead::text(record, found, view),
        Some(Findings::Primes(found)) => primes::text(record, found, view),
        Some(Findings::Malloc(found)) => malloc::text(record, found, view),
        Some(Findings::Sampling(points)) => sampling::text(record, points),
        Some(Findings::Interference(found)) => interference::table::text(record, found, view),
        Some(Findings::Sensitivity(found)) => sensitivity::table::text(record, found),
        None => measures::text(record, view),
    }
}

/// Returns the chart.
pub(crate) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    match &record.found.findings {
        Some(Findings::Overhead(_)) => overhead::figure(record, index),
        Some(Findings::Primes(found)) => primes::figure(found, index),
        Some(Findings::Malloc(found)) => malloc::figure(record, found, index),
        Some(Findings::Sampling(points)) => sampling::figure(points, index),
        Some(Findings::Interference(found)) => interference::table::figure(record, found, index),
        Some(Findings::Sensitivity(found)) => sensitivity::figures::figure(found, index),
        None => measures::figure(record, index),
    }
}

/// Returns the figures that stand for the run.
pub(crate) fn tiles(record: &TrialRecord) -> Vec<Tile> {
    match &record.found.findings {
        Some(Findings::Sensitivity(found)) => sensitivity::figures::tiles(found),
        _ => measures::tiles(record, &FIRST),
    }
}
