//! `sensitivity` as a chart.

use charts::{Axis, Figure, Role, Scale, Series, Unit};
use model::findings::sensitivity::Found;
use model::words;

use super::answer;
use crate::present::figures::{lines, nanoseconds, points};
use crate::present::tiles::Tile;

/// What stands for the run: a preemption by each neighbour, the largest first, and what its timer's
/// interrupt costs.
pub(crate) fn tiles(found: &Found) -> Vec<Tile> {
    let by = |bytes: u64| match bytes {
        0 => "preempted, no memory used".to_string(),
        bytes => format!("preempted, {} used", words::bytes(bytes)),
    };
    let points = found.points.iter().rev();
    let costs = points.filter_map(|of| Tile::cost(by(of.bytes), of.ns_per_preemption));
    costs.chain(Tile::cost("timer's interrupt", found.timer_ns)).collect()
}

/// Cost of a preemption against what the neighbour uses; one that uses nothing stands at a line of
/// cache.
pub(crate) fn figure(found: &Found, index: usize) -> Option<Figure> {
    const LINE_BYTES: u64 = 64;
    let at = |bytes: u64| bytes.max(LINE_BYTES) as f64;
    let all = found.points.iter().map(|of| (at(of.bytes), of.ns_per_preemption));
    let series = Series::new(answer::name(found), index, Role::Measured, points(all));
    let x = Axis::new("the neighbour uses", Unit::Bytes, Scale::Log);
    let axes = (x, nanoseconds("cost of a preemption"));
    lines("sensitivity", "What a preemption costs", answer::headline(found), axes, [series])
}
