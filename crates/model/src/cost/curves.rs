//! Cost by array: one curve for each size of ring, stride and kind of access.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::levels::Levels;
use super::{Direct, is_pair};
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
    /// c2 where two do not fit together over c2 where all fits, from least to most; absent unless
    /// both regions were seen.
    #[must_use]
    pub fn second_over_first(&self) -> Option<(f64, f64)> {
        self.outcome.regions()?.second_over_first()
    }
}

pub(super) fn of(
    grouped: &Grouped,
    cases: &[CaseSummary],
    direct: &[Direct],
    levels: &Levels,
) -> Vec<Curve> {
    let mut groups: Vec<(u32, Work, Vec<usize>)> = Vec::new();
    for (index, summary) in cases.iter().enumerate().filter(|(_, of)| is_pair(of)) {
        let Some(work) = summary.case.work else { continue };
        let is_same = |(members, of, _): &&mut (u32, Work, Vec<usize>)| {
            *members == summary.case.members && Work { bytes: of.bytes, ..work } == *of
        };
        match groups.iter_mut().find(is_same) {
            Some((_, _, indices)) => indices.push(index),
            None => groups.push((summary.case.members, work, vec![index])),
        }
    }
    let curve = |(members, work, mut indices): (u32, Work, Vec<usize>)| {
        let bytes = |index: usize| cases[index].case.work.map_or(0, |work| work.bytes);
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
        let work = Work { bytes: points.first().map_or(work.bytes, |p| p.array_bytes), ..work };
        read(members, work, points, direct.and_then(|d| d.cost_ns.as_ref()), levels)
    };
    groups.into_iter().map(curve).collect()
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
pub(super) fn point((size, cost): (u64, Estimate)) -> Point {
    Point { size, cost_ns: cost.value, standard_error_ns: cost.standard_error }
}
