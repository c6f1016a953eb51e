//! `sensitivity` as a chart.

use std::collections::BTreeSet;

use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use charts::{Axis, Figure, Role, Scale, Series, Unit};
use rundata::words;

use super::answer;
use crate::report::figures::{cost_points, lines, nanoseconds};
use crate::report::tiles::Tile;

/// What stands for the run: a preemption by each neighbour, the largest first, and what its timer's
/// interrupt costs.
pub(crate) fn tiles(found: &SensitivityFindings) -> Vec<Tile> {
    let by = |of: &SensitivityPoint| {
        let how_long = match of.stays_ns {
            0 => String::new(),
            ns => format!(" for {}", words::time(ns as f64)),
        };
        match of.bytes {
            0 => format!("preempted{how_long}, no memory used"),
            bytes => format!("preempted{how_long}, {} used", words::bytes(bytes)),
        }
    };
    let points = found.points.iter().rev();
    let costs = points.filter_map(|of| Tile::cost(by(of), of.ns_per_preemption));
    costs.chain(Tile::cost("timer's interrupt", found.timer_ns)).collect()
}

/// Cost of a preemption against what the neighbour uses; one that uses nothing stands at a line of
/// cache.
pub(crate) fn figure(found: &SensitivityFindings, index: usize) -> Option<Figure> {
    const LINE_BYTES: u64 = 64;
    let at = |bytes: u64| bytes.max(LINE_BYTES) as f64;
    let stays: BTreeSet<u64> = found.points.iter().map(|of| of.stays_ns).collect();
    let series = stays.into_iter().map(|stays_ns| {
        let name = match stays_ns {
            0 => answer::name(found),
            ns => format!("{}, away for {}", answer::name(found), words::time(ns as f64)),
        };
        let all = found.points.iter().filter(|of| of.stays_ns == stays_ns);
        let all = all.map(|of| (at(of.bytes), of.ns_per_preemption));
        Series::new(name, index, Role::Measured, cost_points(all))
    });
    let x = Axis::new("the neighbour uses", Unit::Bytes, Scale::Log);
    let axes = (x, nanoseconds("cost of a preemption"));
    lines("sensitivity", "What a preemption costs", answer::headline(found).into(), axes, series)
}
