//! Cost by array, a curve for each size of ring, stride and kind of access; and by ring size, where members x
//! array passes a cache, or address spaces run out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::levels::Levels;
use super::{Direct, alike};
use crate::case::{Walk, Work};
use crate::estimate::Estimate;
use crate::pairing::Grouped;
use crate::regions::{self, Axis, Beside, Breaks, Point, Regions, beside};
use crate::summary::CaseSummary;

/// What a switch costs at one array size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostPoint {
    /// Number of the ring.
    pub case: usize,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// c2 in ns; absent where it was not measured or never switched.
    pub total_ns: Option<Estimate>,
    /// c2 - c1 in ns, within rounds; absent as `total_ns`, or without c1.
    pub indirect_ns: Option<Estimate>,
    /// Switches per hop of the ring, as the kernel counted them.
    pub switches_per_hop: Option<Estimate>,
}

/// What is read from a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Of two members that touch every element: the regions of Li, Ding and Shen.
    Regions(Regions),
    /// Of others: the course of the cost only.
    Breaks(Breaks),
}

impl Outcome {
    /// The course of the cost.
    #[must_use]
    pub fn breaks(&self) -> &Breaks {
        match self {
            Self::Regions(regions) => &regions.breaks,
            Self::Breaks(breaks) => breaks,
        }
    }

    /// The regions, where they were asked for.
    #[must_use]
    pub fn regions(&self) -> Option<&Regions> {
        match self {
            Self::Regions(regions) => Some(regions),
            Self::Breaks(_) => None,
        }
    }
}

/// c2 and the indirect cost against the array, for cases that differ in nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Ring size.
    pub members: u32,
    /// How the array is walked; its `bytes` are those of the smallest array.
    pub work: Work,
    /// The points, by array.
    pub points: Vec<CostPoint>,
    /// Where the course of c2 breaks.
    pub outcome: Outcome,
    /// For each break, what of the machine lies there; absent where nothing is known of it.
    pub beside: Vec<Option<Beside>>,
    /// The outcome in a sentence.
    pub in_words: String,
}

impl Curve {
    /// c2 where the combined working sets exceed the cache over c2 where all fit, from least to most; absent unless
    /// both regions were seen.
    #[must_use]
    pub fn second_over_first(&self) -> Option<(f64, f64)> {
        self.outcome.regions()?.second_over_first()
    }
}

pub(super) fn by_array(
    grouped: &Grouped,
    cases: &[CaseSummary],
    direct: &[Direct],
    levels: &Levels,
) -> Vec<Curve> {
    let bytes = |index: usize| cases[index].case.work.map_or(0, |work| work.bytes);
    let key = |of: &CaseSummary| Some((of.case.members, Work { bytes: 0, ..of.case.work? }));
    let curve = |((members, work), mut indices): ((u32, Work), Vec<usize>)| {
        indices.sort_by_key(|index| bytes(*index));
        let direct = direct.iter().find(|direct| direct.members == members);
        let points: Vec<CostPoint> = indices
            .iter()
            .map(|index| CostPoint {
                case: *index,
                array_bytes: bytes(*index),
                total_ns: cases[*index].ns_per_switch_above_solo,
                indirect_ns: direct.and_then(|d| indirect(grouped, *index, d.case)),
                switches_per_hop: cases[*index].switches_per_hop,
            })
            .collect();
        let work = Work { bytes: bytes(indices[0]), ..work };
        read(members, work, points, direct.and_then(|d| d.cost_ns.as_ref()), levels)
    };
    alike(cases, key).into_iter().map(curve).collect()
}

/// c2 - c1 of one ring with work, within rounds.
fn indirect(grouped: &Grouped, total: usize, direct: usize) -> Option<Estimate> {
    // A random stream of its own, apart from those of the summaries.
    grouped.difference(total, direct, (1 << 32) + total as u64)
}

fn read(
    members: u32,
    work: Work,
    points: Vec<CostPoint>,
    direct: Option<&Estimate>,
    levels: &Levels,
) -> Curve {
    let size = |point: &CostPoint| match work.walk {
        Walk::Whole | Walk::Chase => point.array_bytes,
        Walk::Sparse => Work { bytes: point.array_bytes, ..work }.touches(),
    };
    let measured = |point: &CostPoint| Some((size(point), point.total_ns?));
    let found: Vec<Point> = points.iter().filter_map(measured).map(point).collect();
    let direct = direct.map(|direct| regions::Direct {
        cost_ns: direct.value,
        low_ns: direct.low,
        high_ns: direct.high,
    });
    let (outcome, levels, in_words) = match (work.walk, members) {
        (Walk::Whole | Walk::Chase, 2) => {
            let regions = regions::regions(&found, direct);
            let words = regions.in_words();
            (Outcome::Regions(regions), levels.for_arrays(), words)
        }
        (walk, _) => {
            let (axis, levels) = match walk {
                Walk::Whole | Walk::Chase => (Axis::array(), levels.for_arrays()),
                Walk::Sparse => (Axis::pages(), levels.for_pages()),
            };
            let breaks = regions::breaks(axis, &found);
            let words = breaks.in_words();
            (Outcome::Breaks(breaks), levels, words)
        }
    };
    let beside = outcome.breaks().breaks.iter().map(|found| beside(found, &levels)).collect();
    Curve { members, work, points, outcome, beside, in_words }
}

/// A size and its cost as the finder of breaks takes them.
fn point((size, cost): (u64, Estimate)) -> Point {
    Point { size, cost_ns: cost.value, standard_error_ns: cost.standard_error }
}

/// The fewest sizes that are a course and no mere comparison.
const FEWEST: usize = 3;

/// c2 (without work c1) against the size of the ring, for cases that differ in nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MembersCurve {
    /// What each member touches per hop; nothing when absent.
    pub work: Option<Work>,
    /// Numbers of the rings, by size.
    pub cases: Vec<usize>,
    /// The course of the cost.
    pub breaks: Breaks,
    /// For each break, what of the machine lies there; absent where nothing is known of it.
    pub beside: Vec<Option<Beside>>,
    /// The course in a sentence.
    pub in_words: String,
}

pub(super) fn by_members(cases: &[CaseSummary], levels: &Levels) -> Vec<MembersCurve> {
    let curve = |(work, mut indices): (Option<Work>, Vec<usize>)| {
        indices.sort_by_key(|index| cases[*index].case.members);
        let measured = |index: &usize| {
            let of = &cases[*index];
            Some((u64::from(of.case.members), of.ns_per_switch_above_solo?))
        };
        let points: Vec<Point> = indices.iter().filter_map(measured).map(point).collect();
        let breaks = regions::breaks(Axis::members(), &points);
        let levels = levels.for_members(work.map_or(0, |work| work.fetched_bytes()));
        let beside = breaks.breaks.iter().map(|found| beside(found, &levels)).collect();
        MembersCurve { work, cases: indices, in_words: breaks.in_words(), breaks, beside }
    };
    let groups = alike(cases, |of| Some(of.case.work)).into_iter();
    groups.filter(|(_, indices)| indices.len() >= FEWEST).map(curve).collect()
}
