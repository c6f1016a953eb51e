//! What its switches cost a command.

use super::figures::Summary;
use super::record::Switching;
use crate::program_cost::{Program, ProgramCost, Range, Surface, WorkingSet, program_cost};
use crate::reading::Reading;
use crate::words::bytes;

impl Switching {
    /// The estimate for the medians of a command's runs. What it touches between two switches is not
    /// watched, as that would disturb it: anything up to its greatest resident memory, but no more than
    /// the largest array that was measured.
    #[must_use]
    pub fn of(summary: &Summary, surface: Reading<Surface>, mut notices: Vec<String>) -> Self {
        let median = |name: &str| summary.median(name);
        let seconds = median("real_ns").map(|ns| ns / 1e9).filter(|seconds| *seconds > 0.0);
        let rate = |name: &str| match (median(name), seconds) {
            (Some(value), Some(seconds)) => Reading::Known(value / seconds),
            _ => Reading::unknown("not counted"),
        };
        let points = surface.known().map_or(&[][..], |surface| &surface.points);
        let largest = points.iter().map(|point| point.array_bytes).max();
        let resident = median("max_resident_bytes").unwrap_or(0.0) as u64;
        let most = largest.map_or(resident, |largest| largest.min(resident));
        if let Some(largest) = largest.filter(|largest| *largest < resident) {
            notices.push(format!(
                "between two switches it is taken to touch at most {}, the largest array measured, of up to {} resident",
                bytes(largest),
                bytes(resident)
            ));
        }
        let program = Program {
            voluntary_per_s: rate("voluntary"),
            involuntary_per_s: rate("involuntary"),
            cpu_share: rate("cpu_ns").map(|ns| ns / 1e9),
            working_set: Reading::Known(WorkingSet::within(most)),
        };
        let cost = program_cost(&program, points);
        let cpu_ns = median("cpu_ns").unwrap_or(0.0);
        let lost = |share: Range| Range { low: share.low * cpu_ns, high: share.high * cpu_ns };
        let (lost_ns, direct_lost_ns) = match &cost {
            ProgramCost::Estimated { share, direct_share, .. } => {
                (Some(lost(*share)), direct_share.map(lost))
            }
            ProgramCost::CannotTell { .. } => (None, None),
        };
        Self { surface, cost, lost_ns, direct_lost_ns, notices }
    }
}
