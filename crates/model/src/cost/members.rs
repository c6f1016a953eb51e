//! Cost by ring size: where members x array passes a cache, or address spaces run out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curves::point;
use super::is_pair;
use super::levels::Levels;
use crate::case::Work;
use crate::regions::{self, Axis, Beside, Breaks, Point, beside};
use crate::summary::CaseSummary;

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

pub(super) fn of(cases: &[CaseSummary], levels: &Levels) -> Vec<MembersCurve> {
    let mut groups: Vec<(Option<Work>, Vec<usize>)> = Vec::new();
    for (index, summary) in cases.iter().enumerate().filter(|(_, of)| is_pair(of)) {
        match groups.iter_mut().find(|(work, _)| *work == summary.case.work) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((summary.case.work, vec![index])),
        }
    }
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
    groups.into_iter().filter(|(_, indices)| indices.len() >= FEWEST).map(curve).collect()
}
