//! The chart and the tiles of `sensitivity`.

use std::collections::BTreeSet;

use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use charts::{Axis, Figure, Role, Scale, Series, Unit};
use rundata::words;

use super::answer::{headline, program_name};
use crate::report::figures::{cost_points, lines, nanoseconds};
use crate::report::tiles::Tile;

/// Place on the axis of a neighbour that uses no memory: a cache line.
const MIN_AXIS_BYTES: u64 = 64;

/// Builds a tile for the cost of a preemption by each neighbour, the largest first, and one for the
/// timer's interrupt.
pub(crate) fn tiles(found: &SensitivityFindings) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for point in found.points.iter().rev() {
        tiles.extend(Tile::cost(tile_name(point), point.ns_per_preemption));
    }
    tiles.extend(Tile::cost("timer's interrupt", found.timer_ns));
    tiles
}

fn tile_name(point: &SensitivityPoint) -> String {
    let stay = match point.stays_ns {
        0 => String::new(),
        ns => format!(" for {}", words::time(ns as f64)),
    };
    match point.bytes {
        0 => format!("preempted{stay}, no memory used"),
        bytes => format!("preempted{stay}, {} used", words::bytes(bytes)),
    }
}

/// Draws the cost of a preemption against the memory that the neighbour uses, a line for each time
/// that it stays.
pub(crate) fn figure(found: &SensitivityFindings, index: usize) -> Option<Figure> {
    let mut stays: BTreeSet<u64> = BTreeSet::new();
    for point in &found.points {
        stays.insert(point.stays_ns);
    }
    let series = stays.into_iter().map(|stays_ns| cost_series(found, stays_ns, index));
    let x = Axis::new("the neighbour uses", Unit::Bytes, Scale::Log);
    let axes = (x, nanoseconds("cost of a preemption"));
    lines("sensitivity", "What a preemption costs", headline(found).into(), axes, series)
}

/// Returns the costs of neighbours that stay this long; `index` is the number of the run.
fn cost_series(found: &SensitivityFindings, stays_ns: u64, index: usize) -> Series {
    let mut name = program_name(found);
    if stays_ns > 0 {
        name += &format!(", away for {}", words::time(stays_ns as f64));
    }
    let mut costs = Vec::new();
    for point in &found.points {
        if point.stays_ns == stays_ns {
            let bytes = point.bytes.max(MIN_AXIS_BYTES);
            costs.push((bytes as f64, point.ns_per_preemption));
        }
    }
    Series::new(name, index, Role::Measured, cost_points(costs))
}
