//! Costs of a switch by members of the ring and by stride.

use rundata::ring::{Walk, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CostPoint, JumpCandidate, MachineLevels, group_cases, is_main_link, quotable_cost,
    quotable_point,
};
use crate::curve::CurvePoint;
use crate::estimate::Estimate;
use crate::jump::{self, CostJump, CostPeak, SizedCost};
use crate::regions::{self, CostBreaks, NearestLevel, SizeAxis, nearest_level};
use crate::summary::CaseSummary;

/// Fewest sizes of a sweep: fewer are a mere comparison.
const FEWEST_SIZES: usize = 3;

/// The cost of a switch at one size of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The size, in the unit of the axis.
    pub size: u64,
    /// The costs there.
    #[serde(flatten)]
    pub cost: CostPoint,
}

/// c2 (without work c1) and the indirect cost along one axis, for cases that differ in nothing
/// else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Sweep")]
pub struct CostSweep {
    /// The smallest ring.
    pub members: u32,
    /// The memory that each member touches per hop, at the first point; absent without work.
    pub work: Option<Work>,
    /// The points, by size.
    pub points: Vec<SweepPoint>,
    /// The course of the cost.
    pub breaks: CostBreaks,
    /// The machine's level nearest to each break; absent where none is known.
    pub beside: Vec<Option<NearestLevel>>,
    /// The course in a sentence.
    pub in_words: String,
    /// The course of the indirect cost; absent without work.
    pub indirect_breaks: Option<CostBreaks>,
    /// The largest jump of the cost between neighbours; absent where none is resolved.
    pub jump: Option<CostJump>,
    /// The change of the indirect cost across that jump; absent where it is not known at both ends.
    pub indirect_jump: Option<CostJump>,
    /// The highest peak of the cost.
    pub peak: Option<CostPeak>,
    /// Limits of the machine that lie at the jump.
    pub candidates: Vec<JumpCandidate>,
}

impl CostSweep {
    /// Reads the points of one sweep, ascending by size.
    fn from_points(
        axis: &SizeAxis,
        cases: &[CaseSummary],
        points: Vec<SweepPoint>,
        levels: &MachineLevels,
    ) -> Self {
        let first = &cases[points[0].cost.case].case;
        let (members, work) = (first.members, first.work);
        let totals = measured_points(&points, |cost| cost.total_ns);
        let breaks = regions::breaks(axis.clone(), &totals);
        let indirect = measured_points(&points, |cost| cost.indirect_ns);
        let (mut indirect_breaks, mut fetched_bytes) = (None, 0);
        if let Some(work) = &work {
            indirect_breaks = Some(regions::breaks(axis.clone(), &indirect));
            fetched_bytes = work.fetched_bytes();
        }
        let mut sizes = Vec::new();
        if *axis == SizeAxis::MEMBERS {
            sizes = levels.for_members(fetched_bytes);
        }
        let beside = breaks.breaks.iter().map(|found| nearest_level(found, &sizes)).collect();
        let total_costs = quotable_costs(&points, |cost| cost.total_ns);
        let indirect_costs = quotable_costs(&points, |cost| cost.indirect_ns);
        let jump = jump::largest_jump(&total_costs);
        let mut candidates = Vec::new();
        if let Some(jump) = &jump {
            candidates = levels.candidates(jump, axis, members, work);
        }
        Self {
            members,
            work,
            beside,
            in_words: breaks.in_words(),
            indirect_breaks,
            jump,
            indirect_jump: jump.and_then(|jump| jump_across(&indirect_costs, &jump)),
            peak: jump::highest_peak(&total_costs),
            candidates,
            breaks,
            points,
        }
    }
}

/// Returns the quotable costs as points of a curve.
fn measured_points(
    points: &[SweepPoint],
    cost: fn(&CostPoint) -> Option<Estimate>,
) -> Vec<CurvePoint> {
    let mut measured = Vec::new();
    for point in points {
        measured.extend(quotable_point(point.size, cost(&point.cost)));
    }
    measured
}

fn quotable_costs(
    points: &[SweepPoint],
    cost: fn(&CostPoint) -> Option<Estimate>,
) -> Vec<SizedCost> {
    let mut quotable = Vec::new();
    for point in points {
        quotable.extend(quotable_cost(point.size, cost(&point.cost)));
    }
    quotable
}

/// Returns the change of these costs between the two sizes of a jump.
fn jump_across(costs: &[SizedCost], jump: &CostJump) -> Option<CostJump> {
    let from = costs.iter().find(|(size, _)| *size == jump.from)?;
    let to = costs.iter().find(|(size, _)| *size == jump.to)?;
    Some(CostJump::between(from, to))
}

/// Returns the sweeps by the size of the ring, for each kind of work and without work.
pub(super) fn by_members(
    cases: &[CaseSummary],
    points: &[CostPoint],
    levels: &MachineLevels,
) -> Vec<CostSweep> {
    let groups =
        group_cases(
            cases,
            |case| {
                if is_main_link(cases, case) { Some(case.case.work) } else { None }
            },
        );
    let mut sweeps = Vec::new();
    for (_, indices) in groups {
        let mut sizes = Vec::new();
        for index in indices {
            sizes.push(SweepPoint { size: cases[index].case.members.into(), cost: points[index] });
        }
        sweeps.extend(sweep(&SizeAxis::MEMBERS, cases, levels, sizes));
    }
    sweeps
}

/// Returns the sweeps by stride, for each size of ring, array and kind of access.
pub(super) fn by_stride(
    cases: &[CaseSummary],
    points: &[CostPoint],
    levels: &MachineLevels,
) -> Vec<CostSweep> {
    let groups = group_cases(cases, |case| {
        let work = case.case.work.filter(|work| work.walk == Walk::Whole)?;
        Some((case.case.members, Work { stride_bytes: 0, ..work }))
    });
    let mut sweeps = Vec::new();
    for (_, indices) in groups {
        let mut sizes = Vec::new();
        for index in indices {
            if let Some(work) = cases[index].case.work {
                sizes.push(SweepPoint { size: work.stride_bytes, cost: points[index] });
            }
        }
        sweeps.extend(sweep(&SizeAxis::STRIDE, cases, levels, sizes));
    }
    sweeps
}

/// Returns the sweep of these points; absent with too few.
fn sweep(
    axis: &SizeAxis,
    cases: &[CaseSummary],
    levels: &MachineLevels,
    mut points: Vec<SweepPoint>,
) -> Option<CostSweep> {
    if points.len() < FEWEST_SIZES {
        return None;
    }
    points.sort_by_key(|point| point.size);
    Some(CostSweep::from_points(axis, cases, points, levels))
}
