//! What `switchcost cost` says: direct, total and indirect cost of a switch by working set (Li,
//! Ding and Shen 2007), where their course breaks, and what of the machine lies there.
//!
//! c1 = (hop(N) - hop(1)) / switches without work, c2 the same with work, both with their solo
//! ring; indirect = c2 - c1. All are taken within rounds ([`crate::table`]).

mod levels;
mod sweep;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curve::CurvePoint;
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

/// All that the samples say of the cost of switches by working set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub struct CostFindings {
    /// c1, by ring size.
    pub direct: Vec<DirectCost>,
    /// c2 and the indirect cost by array, a curve for each size of ring, stride and kind of access.
    pub curves: Vec<CostCurve>,
    /// c2 by ring size, where several sizes were measured; c1, too.
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
        let bare = |(case, of): (usize, &CaseSummary)| {
            let (members, cost_ns) = (of.case.members, of.ns_per_switch_above_solo);
            let is_bare = members > 1 && of.case.work.is_none() && is_main(cases, of);
            is_bare.then_some(DirectCost { members, case, cost_ns })
        };
        let mut direct: Vec<DirectCost> = cases.iter().enumerate().filter_map(bare).collect();
        direct.sort_by_key(|of| of.members);
        let levels = MachineLevels::from_machine(machine, plan);
        let points = points(table, cases, &direct);
        Self {
            curves: by_array(cases, &points, &direct, &levels),
            by_members: sweep::by_members(cases, &points, &levels),
            by_stride: sweep::by_stride(cases, &points, &levels),
            direct,
        }
    }

    /// c1 of a ring of so many members.
    pub fn direct_of(&self, members: u32) -> Option<Estimate> {
        direct_of(&self.direct, members)?.cost_ns
    }
}

fn direct_of(all: &[DirectCost], members: u32) -> Option<&DirectCost> {
    all.iter().find(|direct| direct.members == members)
}

/// Whether a ring passes its token as the first does: others are measured beside for what they
/// switch by.
fn is_main(cases: &[CaseSummary], of: &CaseSummary) -> bool {
    cases.first().is_some_and(|first| first.case.link == of.case.link)
}

/// Numbers of the cases of several members that have the same key, in the order of the first of
/// each.
pub(crate) fn group_cases<K: PartialEq>(
    cases: &[CaseSummary],
    key: impl Fn(&CaseSummary) -> Option<K>,
) -> Vec<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (index, of) in cases.iter().enumerate().filter(|(_, of)| of.case.members > 1) {
        let Some(key) = key(of) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups
}

/// What a switch costs at one array size.
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

/// What is read from a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
pub enum CurveReading {
    /// Of two members that touch every element: the regions of Li, Ding and Shen.
    Regions(CacheRegions),
    /// Of others: the course of the cost only.
    Breaks(CostBreaks),
}

impl CurveReading {
    /// The course of the cost.
    pub fn breaks(&self) -> &CostBreaks {
        match self {
            Self::Regions(regions) => &regions.breaks,
            Self::Breaks(breaks) => breaks,
        }
    }

    /// The regions, where they were asked for.
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
    /// How the array is walked; its `bytes` are those of the smallest array.
    pub work: Work,
    /// The points, by array.
    pub points: Vec<CostPoint>,
    /// Where the course of c2 breaks.
    pub outcome: CurveReading,
    /// For each break, what of the machine lies there; absent where nothing is known of it.
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
    /// What of the machine ends where the jump is.
    #[serde(default)]
    pub candidates: Vec<JumpCandidate>,
}

/// What each case costs, as far as it is one of a ring of several.
fn points(table: &Table, cases: &[CaseSummary], direct: &[DirectCost]) -> Vec<CostPoint> {
    let point = |(case, of): (usize, &CaseSummary)| {
        let direct = direct_of(direct, of.case.members).filter(|_| of.case.work.is_some());
        // A random stream of its own, apart from those of the summaries.
        let paired = |d: &DirectCost| table.difference(case, d.case, (1 << 32) + case as u64);
        CostPoint {
            case,
            array_bytes: of.case.work.map_or(0, |work| work.bytes),
            total_ns: of.ns_per_switch_above_solo,
            indirect_ns: direct
                .and_then(|d| indirect(of.ns_per_switch_above_solo?, d.cost_ns?, paired(d)?)),
            switches_per_hop: of.switches_per_hop,
        }
    };
    cases.iter().enumerate().map(point).collect()
}

/// What is left of a cost without the direct one, so that the two are the whole; with the interval
/// of the differences within rounds, which is widened to where that middle lies. None without a
/// direct cost that is known to be above zero: a part would be larger than the whole.
fn indirect(total: Estimate, direct: Estimate, paired: Estimate) -> Option<Estimate> {
    let direct_is_known = match direct.answer_cost() {
        Ok(answer) => answer.ends().is_some(),
        Err(NotQuotable::NotResolved { .. }) => return None,
        Err(_) => false,
    };
    let value = total.value - direct.value;
    let range = paired.interval().filter(|_| direct_is_known && total.interval().is_some());
    let shift = value - paired.value;
    let ends = range.map(|range| (range.low + shift.min(0.0), range.high + shift.max(0.0)));
    let speed = least_known([total, direct, paired].map(|of| of.speed));
    let indirect = Estimate {
        value,
        standard_error: paired.standard_error.filter(|_| ends.is_some()),
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        resolved: ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0),
        rounds: total.rounds.min(direct.rounds).min(paired.rounds),
        speed,
        confidence: paired.confidence,
        at_most: None,
    };
    (direct.value > 0.0).then_some(indirect)
}

/// A sum is known no better than the least known of what it is made of.
fn least_known(all: [Speed; 3]) -> Speed {
    let order =
        [Speed::NotAlone, Speed::CpuTime, Speed::Contended, Speed::NotJudged, Speed::FewRounds];
    order.into_iter().find(|speed| all.contains(speed)).unwrap_or(Speed::Full)
}

/// A cost that may be quoted, as a point of a curve.
fn point(size: u64, cost: Option<Estimate>) -> Option<CurvePoint> {
    let cost = cost.filter(|cost| cost.quote_cost().is_ok())?;
    Some(CurvePoint { x: size as f64, y: cost.value, error: cost.standard_error })
}

/// The same as a place of a jump.
fn place(size: u64, cost: Option<Estimate>) -> Option<SizedCost> {
    Some((size, cost?.quote_cost().ok()?))
}

fn by_array(
    cases: &[CaseSummary],
    points: &[CostPoint],
    direct: &[DirectCost],
    levels: &MachineLevels,
) -> Vec<CostCurve> {
    let bytes = |index: usize| cases[index].case.work.map_or(0, |work| work.bytes);
    let key = |of: &CaseSummary| Some((of.case.members, Work { bytes: 0, ..of.case.work? }));
    let curve = |((members, work), mut indices): ((u32, Work), Vec<usize>)| {
        indices.sort_by_key(|index| bytes(*index));
        let points = indices.iter().map(|index| points[*index]).collect();
        let work = Work { bytes: bytes(indices[0]), ..work };
        read(members, work, points, direct_of(direct, members).and_then(|d| d.cost_ns), levels)
    };
    group_cases(cases, key).into_iter().map(curve).collect()
}

impl CostCurve {
    /// Bytes of an array, or pages.
    pub fn axis(&self) -> SizeAxis {
        if self.work.walk == Walk::Sparse { SizeAxis::PAGES } else { SizeAxis::ARRAY }
    }

    /// An array in the unit of the axis.
    pub fn size(&self, array_bytes: u64) -> u64 {
        size(self.work, array_bytes)
    }
}

fn size(work: Work, array_bytes: u64) -> u64 {
    match work.walk {
        Walk::Whole | Walk::Chase => array_bytes,
        Walk::Sparse => Work { bytes: array_bytes, ..work }.touches(),
    }
}

fn read(
    members: u32,
    work: Work,
    points: Vec<CostPoint>,
    direct: Option<Estimate>,
    levels: &MachineLevels,
) -> CostCurve {
    let sparse = work.walk == Walk::Sparse;
    let measured = |of: &CostPoint| point(size(work, of.array_bytes), of.total_ns);
    let found: Vec<CurvePoint> = points.iter().filter_map(measured).collect();
    let known = direct.and_then(|direct| direct.quote_cost().ok());
    let known = known.map(|direct| regions::DirectInterval {
        cost_ns: direct.value(),
        low_ns: Some(direct.low()),
        high_ns: Some(direct.high()),
    });
    let outcome = match (sparse, members) {
        (false, 2) => CurveReading::Regions(regions::regions(&found, known)),
        (false, _) => CurveReading::Breaks(regions::breaks(SizeAxis::ARRAY, &found)),
        (true, _) => CurveReading::Breaks(regions::breaks(SizeAxis::PAGES, &found)),
    };
    let regions = outcome.regions().map(CacheRegions::in_words);
    let in_words = regions.unwrap_or_else(|| outcome.breaks().in_words());
    let sizes = if sparse { levels.for_pages() } else { levels.for_arrays() };
    let beside = outcome.breaks().breaks.iter().map(|found| nearest_level(found, &sizes)).collect();
    // No working set is the smallest one.
    let arrays = points.iter().filter_map(|of| place(size(work, of.array_bytes), of.total_ns));
    let places: Vec<SizedCost> = place(0, direct).into_iter().chain(arrays).collect();
    let (jump, peak) = (jump::largest_jump(&places), jump::highest_peak(&places));
    let axis = &outcome.breaks().axis;
    let candidates = jump.map(|jump| levels.candidates(&jump, axis, members, Some(work)));
    let candidates = candidates.unwrap_or_default();
    CostCurve { members, work, points, outcome, beside, in_words, jump, peak, candidates }
}
