//! The machine's measured costs by array size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkingSet;
use crate::record::{CaseSummary, Record};
use crate::ring::{Case, Kind, Walk};
use crate::words::bytes;

/// A cost of a switch with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Lower end in ns; signed.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

/// What is missing without any point.
pub(super) const NO_SURFACE: &str = "no stored surface: run `switchcost cost` first";

impl Cost {
    fn is_sound(&self) -> bool {
        self.low_ns.is_finite() && self.high_ns.is_finite() && self.low_ns <= self.high_ns
    }

    fn around(self, other: Cost) -> Cost {
        Cost { low_ns: self.low_ns.min(other.low_ns), high_ns: self.high_ns.max(other.high_ns) }
    }
}

/// What was measured at one array size. Several may have the same size: other strides, other kinds
/// of access.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SurfacePoint {
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// c2 there.
    pub total: Cost,
    /// c1 of the same run, if it was measured.
    pub direct: Option<Cost>,
}

/// The costs that a run of rings has measured: of each ring of two processes with work on one CPU, the
/// total cost, and the direct one where the same ring without work was measured beside it: the interval at full
/// speed, else the middle half of the rounds. Rings without either are left out.
#[must_use]
pub fn points_of(record: &Record) -> Vec<SurfacePoint> {
    let cost = |summary: &CaseSummary| {
        let interval = summary.ns_per_switch_above_solo.as_ref()?.interval();
        // A program's switches are at whatever speed, too: where full speed was not seen, most rounds tell.
        let contended = summary.contended_ns_per_switch_above_solo;
        let quartiles = contended.map(|all| (all.lower_quartile, all.upper_quartile));
        let (low_ns, high_ns) = interval.map(|i| (i.low, i.high)).or(quartiles)?;
        Some(Cost { low_ns, high_ns })
    };
    let of_two = |case: &Case| {
        case.members == 2 && case.kind == Kind::Process && case.placement.is_one_cpu()
    };
    let rings = record.cases.iter().filter(|summary| of_two(&summary.case));
    let point = |summary: &CaseSummary| {
        // One line a page is not a working set that a program walks.
        let array_bytes = summary.case.work.filter(|work| work.walk == Walk::Whole)?.bytes;
        let bare = Case { work: None, ..summary.case.clone() };
        let direct = record.cases.iter().find(|other| other.case == bare).and_then(cost);
        Some(SurfacePoint { array_bytes, total: cost(summary)?, direct })
    };
    rings.filter_map(point).collect()
}

/// The direct cost: everything that any of the points gives for it.
pub(super) fn direct(surface: &[SurfacePoint]) -> Option<Cost> {
    let all = surface.iter().filter_map(|point| point.direct).filter(Cost::is_sound);
    all.reduce(Cost::around)
}

/// Lowest and highest cost that the points around the working set leave open; or which input does
/// not allow it.
pub(super) fn cheapest_and_dearest(
    set: WorkingSet,
    surface: &[SurfacePoint],
) -> Result<Cost, String> {
    let WorkingSet { low_bytes, high_bytes } = set;
    if low_bytes > high_bytes {
        return Err("working set: its lower end is above its upper end".into());
    }
    let mut known: Vec<(u64, Cost)> = surface
        .iter()
        .filter(|point| point.array_bytes > 0 && point.total.is_sound())
        .map(|point| (point.array_bytes, point.total))
        .collect();
    // No work at all is the smallest working set there is.
    known.extend(direct(surface).map(|direct| (0, direct)));
    known.sort_by_key(|(size, _)| *size);
    let sizes = known.iter().map(|(size, _)| *size);
    let below = sizes.clone().filter(|size| *size <= low_bytes).max();
    let above = sizes.clone().filter(|size| *size >= high_bytes).min();
    let (Some(below), Some(above)) = (below, above) else {
        return Err(outside(set, sizes.min().zip(known.last().map(|(size, _)| *size))));
    };
    let around = known.iter().filter(|(size, _)| (below..=above).contains(size));
    let cost = around.map(|(_, cost)| *cost).reduce(Cost::around);
    cost.ok_or_else(|| outside(set, None))
}

fn outside(set: WorkingSet, measured: Option<(u64, u64)>) -> String {
    let Some((smallest, largest)) = measured else {
        return NO_SURFACE.into();
    };
    let range = format!("{} to {}", bytes(smallest), bytes(largest));
    let (low, high) = (set.low_bytes, set.high_bytes);
    let set = match low == high {
        true => bytes(low),
        false => format!("{} to {}", bytes(low), bytes(high)),
    };
    // The typed form has no blank.
    let end = bytes(high.max(largest).checked_next_power_of_two().unwrap_or(u64::MAX));
    let array = format!("1K..{}:x2", end.replace(' ', ""));
    format!(
        "surface: the working set ({set}) lies outside the measured arrays ({range}): measure them with `switchcost cost --array {array}`"
    )
}
