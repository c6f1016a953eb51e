//! Direct, total and indirect cost of a switch by working set (`switchcost cost`; Li, Ding and Shen
//! 2007), the breaks of their curves, and the machine's levels that lie there.
//!
//! c1 = (hop(N) - hop(1)) / switches without work, c2 likewise with work, both with their solo ring;
//! indirect = c2 - c1. Differences are taken within rounds ([`crate::table`]). Example of two members
//! that switch once a hop:
//!
//! ```text
//! array      hop       alone     c2        indirect
//! none        1.50 us   0.30 us  c1 = 1.20 us
//! 64 KiB     10.70 us   9.40 us  1.30 us   0.10 us   both arrays stay in the cache
//! 1 MiB     151.0 us  142.0 us   9.00 us   7.80 us   each switch fetches an array again
//! ```
//!
//! The jump between neighbouring sizes is set beside the caches and TLBs of the machine that the
//! arrays exceed there. Where c1 is not resolved from zero there is no indirect cost: the part would
//! be larger than the whole.

mod levels;
mod sweep;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curve::{CurvePoint, curve_point};
use crate::estimate::{Estimate, Speed};
use crate::jump::{self, CostJump, CostPeak, SizedCost};
use crate::quote::NotQuotable;
use crate::regions::{self, CacheRegions, CostBreaks, NearestLevel, SizeAxis, nearest_level};
use crate::summary::CaseSummary;
use crate::table::Table;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::ring::{Walk, Work};

pub use levels::{JumpCandidate, MachineLevels};
pub use sweep::{CostSweep, SweepPoint};

/// The direct cost c1 of one ring size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Direct")]
pub struct DirectCost {
    /// Ring size.
    pub members: u32,
    /// Number of the ring without work.
    pub case: usize,
    /// c1 in ns; absent where it was not measured or never switched.
    pub cost_ns: Option<Estimate>,
}

/// Findings of `switchcost cost`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub struct CostFindings {
    /// c1, by ring size.
    pub direct: Vec<DirectCost>,
    /// c2 and the indirect cost by array, a curve for each size of ring, stride and kind of access.
    pub curves: Vec<CostCurve>,
    /// c2 by ring size, where several sizes were measured; c1 as well.
    pub by_members: Vec<CostSweep>,
    /// c2 by stride, where several were measured.
    #[serde(default)]
    pub by_stride: Vec<CostSweep>,
}

impl CostFindings {
    /// Reads the summaries of a run's cases.
    pub(crate) fn from_cases(
        plan: &Plan,
        table: &Table,
        cases: &[CaseSummary],
        machine: &Machine,
    ) -> Self {
        let mut direct = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let members = case.case.members;
            if members > 1 && case.case.work.is_none() && is_main_link(cases, case) {
                let cost_ns = case.ns_per_switch_above_solo;
                direct.push(DirectCost { members, case: number, cost_ns });
            }
        }
        direct.sort_by_key(|direct| direct.members);
        let levels = MachineLevels::from_machine(machine, plan);
        let points = cost_points(table, cases, &direct);
        Self {
            curves: curves_by_array(cases, &points, &direct, &levels),
            by_members: sweep::by_members(cases, &points, &levels),
            by_stride: sweep::by_stride(cases, &points, &levels),
            direct,
        }
    }

    /// Returns c1 of a ring of `members`.
    pub fn direct_of(&self, members: u32) -> Option<Estimate> {
        direct_cost(&self.direct, members)?.cost_ns
    }
}

fn direct_cost(costs: &[DirectCost], members: u32) -> Option<&DirectCost> {
    costs.iter().find(|direct| direct.members == members)
}

/// Returns whether a ring has the link of the first one: others are measured for comparison.
fn is_main_link(cases: &[CaseSummary], case: &CaseSummary) -> bool {
    cases.first().is_some_and(|first| first.case.link == case.case.link)
}

/// Groups the numbers of the cases of several members by a key, in the order of the first of each.
pub(crate) fn group_cases<K: PartialEq>(
    cases: &[CaseSummary],
    key: impl Fn(&CaseSummary) -> Option<K>,
) -> Vec<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        if case.case.members <= 1 {
            continue;
        }
        let Some(key) = key(case) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups
}

/// The cost of a switch at one array size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostPoint {
    /// Number of the ring.
    pub case: usize,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// c2 in ns; absent where it was not measured or never switched.
    pub total_ns: Option<Estimate>,
    /// c2 - c1 in ns, with the interval of differences within rounds; absent as `total_ns`, or
    /// without a c1 that is known to be above zero. Without an interval where either has none.
    pub indirect_ns: Option<Estimate>,
    /// Switches per hop of the ring, as the kernel counted them.
    pub switches_per_hop: Option<Estimate>,
}

/// The reading of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
pub enum CurveReading {
    /// The regions of Li, Ding and Shen, for two members that touch every element.
    Regions(CacheRegions),
    /// The course of the cost, for others.
    Breaks(CostBreaks),
}

impl CurveReading {
    /// Returns the course of the cost.
    pub fn breaks(&self) -> &CostBreaks {
        match self {
            Self::Regions(regions) => &regions.breaks,
            Self::Breaks(breaks) => breaks,
        }
    }

    /// Returns the regions, if these were read.
    pub fn regions(&self) -> Option<&CacheRegions> {
        match self {
            Self::Regions(regions) => Some(regions),
            Self::Breaks(_) => None,
        }
    }
}

/// c2 and the indirect cost against the array, for cases that differ in nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Curve")]
pub struct CostCurve {
    /// Ring size.
    pub members: u32,
    /// The walk through the array; its `bytes` are those of the smallest array.
    pub work: Work,
    /// The points, by array.
    pub points: Vec<CostPoint>,
    /// The reading of c2.
    pub outcome: CurveReading,
    /// The machine's level nearest to each break; absent where none is known.
    pub beside: Vec<Option<NearestLevel>>,
    /// The outcome in a sentence.
    pub in_words: String,
    /// The largest jump between neighbours, c1 (at 0) before the smallest array; absent where none
    /// is resolved.
    #[serde(default)]
    pub jump: Option<CostJump>,
    /// The highest peak on the way.
    #[serde(default)]
    pub peak: Option<CostPeak>,
    /// Limits of the machine that lie at the jump.
    #[serde(default)]
    pub candidates: Vec<JumpCandidate>,
}

/// Returns the costs of each case; absent in those of solo rings.
fn cost_points(table: &Table, cases: &[CaseSummary], direct: &[DirectCost]) -> Vec<CostPoint> {
    let mut points = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let mut point = CostPoint {
            case: number,
            array_bytes: 0,
            total_ns: case.ns_per_switch_above_solo,
            indirect_ns: None,
            switches_per_hop: case.switches_per_hop,
        };
        if let Some(work) = case.case.work {
            point.array_bytes = work.bytes;
            point.indirect_ns = indirect_of_case(table, number, case, direct);
        }
        points.push(point);
    }
    points
}

/// Returns c2 - c1 of a ring with work; absent where one of them was not measured.
fn indirect_of_case(
    table: &Table,
    number: usize,
    case: &CaseSummary,
    direct: &[DirectCost],
) -> Option<Estimate> {
    let direct = direct_cost(direct, case.case.members)?;
    // A random stream apart from those of the summaries.
    let stream = (1 << 32) + number as u64;
    let paired = table.difference(number, direct.case, stream)?;
    indirect_cost(case.ns_per_switch_above_solo?, direct.cost_ns?, paired)
}

/// Returns the total less the direct cost, so that direct and indirect cost add up, with the
/// interval of the differences within rounds, widened to that value. Absent without a direct cost
/// that is resolved from zero: the part would be larger than the whole.
fn indirect_cost(total: Estimate, direct: Estimate, paired: Estimate) -> Option<Estimate> {
    let direct_is_known = match direct.answer_cost() {
        Ok(answer) => answer.ends().is_some(),
        Err(NotQuotable::NotResolved { .. }) => return None,
        Err(_) => false,
    };
    let value = total.value - direct.value;
    let mut indirect = Estimate {
        value,
        standard_error: None,
        low: None,
        high: None,
        resolved: false,
        rounds: total.rounds.min(direct.rounds).min(paired.rounds),
        speed: least_certain([total.speed, direct.speed, paired.speed]),
        confidence: paired.confidence,
        at_most: None,
    };
    let has_interval = direct_is_known && total.interval().is_some();
    if let (true, Some(range)) = (has_interval, paired.interval()) {
        let shift = value - paired.value;
        let (low, high) = (range.low + shift.min(0.0), range.high + shift.max(0.0));
        indirect.standard_error = paired.standard_error;
        indirect.low = Some(low);
        indirect.high = Some(high);
        indirect.resolved = low > 0.0 || high < 0.0;
    }
    if direct.value > 0.0 { Some(indirect) } else { None }
}

/// Returns the speed of a sum: the least certain one of its parts.
fn least_certain(speeds: [Speed; 3]) -> Speed {
    let order =
        [Speed::NotAlone, Speed::CpuTime, Speed::Contended, Speed::NotJudged, Speed::FewRounds];
    order.into_iter().find(|speed| speeds.contains(speed)).unwrap_or(Speed::Full)
}

/// Returns a cost as a point of a curve, if it is quotable.
fn quotable_point(size: u64, cost: Option<Estimate>) -> Option<CurvePoint> {
    let cost = cost?;
    cost.quote_cost().ok()?;
    Some(curve_point(size, &cost))
}

/// Returns a cost with its size, if it is quotable.
fn quotable_cost(size: u64, cost: Option<Estimate>) -> Option<SizedCost> {
    Some((size, cost?.quote_cost().ok()?))
}

/// Returns the curves by array, for each size of ring, stride and kind of access.
fn curves_by_array(
    cases: &[CaseSummary],
    points: &[CostPoint],
    direct: &[DirectCost],
    levels: &MachineLevels,
) -> Vec<CostCurve> {
    let groups =
        group_cases(cases, |case| Some((case.case.members, Work { bytes: 0, ..case.case.work? })));
    let mut curves = Vec::new();
    for ((members, work), indices) in groups {
        let mut points: Vec<CostPoint> = indices.into_iter().map(|index| points[index]).collect();
        points.sort_by_key(|point| point.array_bytes);
        let work = Work { bytes: points[0].array_bytes, ..work };
        let direct = direct_cost(direct, members).and_then(|direct| direct.cost_ns);
        curves.push(CostCurve::from_points(members, work, points, direct, levels));
    }
    curves
}

impl CostCurve {
    /// Returns the axis of the arrays: bytes, or pages of a sparse walk.
    pub fn axis(&self) -> SizeAxis {
        if self.work.walk == Walk::Sparse { SizeAxis::PAGES } else { SizeAxis::ARRAY }
    }

    /// Returns the size of an array in the unit of the axis.
    pub fn size(&self, array_bytes: u64) -> u64 {
        size_on_axis(self.work, array_bytes)
    }

    /// Reads the points of a curve, ascending by array; `direct` is c1 of its ring.
    fn from_points(
        members: u32,
        work: Work,
        points: Vec<CostPoint>,
        direct: Option<Estimate>,
        levels: &MachineLevels,
    ) -> Self {
        let is_sparse = work.walk == Walk::Sparse;
        // No working set is the smallest one.
        let mut costs: Vec<SizedCost> = quotable_cost(0, direct).into_iter().collect();
        let mut totals = Vec::new();
        for point in &points {
            let size = size_on_axis(work, point.array_bytes);
            costs.extend(quotable_cost(size, point.total_ns));
            totals.extend(quotable_point(size, point.total_ns));
        }
        let direct = direct.and_then(direct_interval);
        let outcome = match (is_sparse, members) {
            (false, 2) => CurveReading::Regions(regions::regions(&totals, direct)),
            (false, _) => CurveReading::Breaks(regions::breaks(SizeAxis::ARRAY, &totals)),
            (true, _) => CurveReading::Breaks(regions::breaks(SizeAxis::PAGES, &totals)),
        };
        let breaks = outcome.breaks();
        let in_words = match &outcome {
            CurveReading::Regions(regions) => regions.in_words(),
            CurveReading::Breaks(breaks) => breaks.in_words(),
        };
        let sizes = if is_sparse { levels.for_pages() } else { levels.for_arrays() };
        let beside = breaks.breaks.iter().map(|found| nearest_level(found, &sizes)).collect();
        let (jump, peak) = (jump::largest_jump(&costs), jump::highest_peak(&costs));
        let mut candidates = Vec::new();
        if let Some(jump) = &jump {
            candidates = levels.candidates(jump, &breaks.axis, members, Some(work));
        }
        Self { members, work, points, outcome, beside, in_words, jump, peak, candidates }
    }
}

/// Returns c1 with its interval, if it is quotable.
fn direct_interval(direct: Estimate) -> Option<regions::DirectInterval> {
    let quoted = direct.quote_cost().ok()?;
    Some(regions::DirectInterval {
        cost_ns: quoted.value(),
        low_ns: Some(quoted.low()),
        high_ns: Some(quoted.high()),
    })
}

fn size_on_axis(work: Work, array_bytes: u64) -> u64 {
    match work.walk {
        Walk::Whole | Walk::Chase => array_bytes,
        Walk::Sparse => Work { bytes: array_bytes, ..work }.touches(),
    }
}
