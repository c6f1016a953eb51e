//! Costs along what is not the size of an array: members of the ring, the stride.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CostPoint, JumpCandidate, MachineLevels, group_cases, is_main, place, point};
use crate::curve::CurvePoint;
use crate::estimate::Estimate;
use crate::jump::{self, CostJump, CostPeak, SizedCost};
use crate::regions::{self, CostBreaks, NearestLevel, SizeAxis, nearest_level};
use crate::summary::CaseSummary;
use rundata::ring::{Walk, Work};

/// The fewest sizes that are a course and no mere comparison.
const FEWEST: usize = 3;

/// What a switch costs at one size of what was swept.
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
    /// What each member touches per hop, of the first point; nothing when absent.
    pub work: Option<Work>,
    /// The points, by size.
    pub points: Vec<SweepPoint>,
    /// The course of the cost.
    pub breaks: CostBreaks,
    /// For each break, what of the machine lies there; absent where nothing is known of it.
    pub beside: Vec<Option<NearestLevel>>,
    /// The course in a sentence.
    pub in_words: String,
    /// The course of the indirect cost; absent without work.
    pub indirect_breaks: Option<CostBreaks>,
    /// The largest jump of the cost between neighbours; absent where none is resolved.
    pub jump: Option<CostJump>,
    /// The indirect cost from one end of that jump to the other, where it is known at both.
    pub indirect_jump: Option<CostJump>,
    /// The highest peak of the cost.
    pub peak: Option<CostPeak>,
    /// What of the machine ends where the jump is.
    pub candidates: Vec<JumpCandidate>,
}

impl CostSweep {
    fn of(
        axis: SizeAxis,
        cases: &[CaseSummary],
        points: Vec<SweepPoint>,
        levels: &MachineLevels,
    ) -> Self {
        let first = &cases[points[0].cost.case].case;
        let (members, work) = (first.members, first.work);
        let course = |of: fn(&SweepPoint) -> Option<Estimate>| {
            let found: Vec<CurvePoint> =
                points.iter().filter_map(|p| point(p.size, of(p))).collect();
            regions::breaks(axis.clone(), &found)
        };
        let places = |of: fn(&SweepPoint) -> Option<Estimate>| {
            points.iter().filter_map(|p| place(p.size, of(p))).collect::<Vec<SizedCost>>()
        };
        let total = |of: &SweepPoint| of.cost.total_ns;
        let indirect = |of: &SweepPoint| of.cost.indirect_ns;
        let breaks = course(total);
        let sizes = match axis == SizeAxis::MEMBERS {
            true => levels.for_members(work.map_or(0, |work| work.fetched_bytes())),
            false => Vec::new(),
        };
        let beside = breaks.breaks.iter().map(|found| nearest_level(found, &sizes)).collect();
        let jump = jump::largest_jump(&places(total));
        let added = places(indirect);
        let at = |size: u64| added.iter().find(|(of, _)| *of == size);
        let indirect_jump =
            jump.and_then(|jump| Some(CostJump::between(at(jump.from)?, at(jump.to)?)));
        let candidates = jump.map(|jump| levels.candidates(&jump, &axis, members, work));
        Self {
            members,
            work,
            beside,
            in_words: breaks.in_words(),
            indirect_breaks: work.map(|_| course(indirect)),
            jump,
            indirect_jump,
            peak: jump::highest_peak(&places(total)),
            candidates: candidates.unwrap_or_default(),
            breaks,
            points,
        }
    }
}

/// By the size of the ring, for each kind of work and without.
pub(super) fn by_members(
    cases: &[CaseSummary],
    points: &[CostPoint],
    levels: &MachineLevels,
) -> Vec<CostSweep> {
    let key = |of: &CaseSummary| is_main(cases, of).then_some(of.case.work);
    let size = |of: &CaseSummary| u64::from(of.case.members);
    along(SizeAxis::MEMBERS, cases, points, levels, (key, size))
}

/// By the stride, for each size of ring, array and kind of access.
pub(super) fn by_stride(
    cases: &[CaseSummary],
    points: &[CostPoint],
    levels: &MachineLevels,
) -> Vec<CostSweep> {
    let key = |of: &CaseSummary| {
        let work = of.case.work.filter(|work| work.walk == Walk::Whole)?;
        Some((of.case.members, Work { stride_bytes: 0, ..work }))
    };
    let size = |of: &CaseSummary| of.case.work.map_or(0, |work| work.stride_bytes);
    along(SizeAxis::STRIDE, cases, points, levels, (key, size))
}

/// Along `axis`, cases that have the same key.
fn along<K: PartialEq>(
    axis: SizeAxis,
    cases: &[CaseSummary],
    points: &[CostPoint],
    levels: &MachineLevels,
    (key, size): (impl Fn(&CaseSummary) -> Option<K>, impl Fn(&CaseSummary) -> u64),
) -> Vec<CostSweep> {
    let groups = group_cases(cases, key).into_iter().map(|(_, indices)| {
        let point = |index: usize| SweepPoint { size: size(&cases[index]), cost: points[index] };
        let mut points: Vec<SweepPoint> = indices.into_iter().map(point).collect();
        points.sort_by_key(|point| point.size);
        points
    });
    let enough = groups.filter(|points| points.len() >= FEWEST);
    enough.map(|points| CostSweep::of(axis.clone(), cases, points, levels)).collect()
}
