//! What `switchcost cost` says: direct, total and indirect cost of a switch by working set (Li, Ding
//! and Shen 2007), where their course breaks, and what of the machine lies there.
//!
//! c1 = (hop(N) - hop(1)) / switches without work, c2 the same with work, both with their solo ring;
//! indirect = c2 - c1. All are taken within rounds ([`crate::pairing`]).

mod curves;
pub mod levels;

#[cfg(test)]
mod tests;

pub use curves::{CostPoint, Curve, MembersCurve, Outcome};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::machine::Machine;
use crate::pairing::Grouped;
use crate::plan::Plan;
use crate::summary::CaseSummary;

/// The direct cost c1 of one ring size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direct {
    /// Ring size.
    pub members: u32,
    /// Number of the ring without work.
    pub case: usize,
    /// c1 in ns; absent where it was not measured or never switched.
    pub cost_ns: Option<Estimate>,
}

/// All that the samples say of the cost of switches by working set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// c1, by ring size.
    pub direct: Vec<Direct>,
    /// c2 and the indirect cost by array, a curve for each size of ring, stride and kind of access.
    pub curves: Vec<Curve>,
    /// c2 by ring size, where several sizes were measured.
    pub by_members: Vec<MembersCurve>,
}

impl Cost {
    /// Reads the summaries of a run's cases.
    pub(crate) fn of(
        plan: &Plan,
        grouped: &Grouped,
        cases: &[CaseSummary],
        machine: &Machine,
    ) -> Self {
        let bare = cases.iter().enumerate().filter(|(_, of)| is_pair(of) && of.case.work.is_none());
        let mut direct: Vec<Direct> = bare
            .map(|(case, of)| Direct {
                members: of.case.members,
                case,
                cost_ns: of.ns_per_switch_above_solo,
            })
            .collect();
        direct.sort_by_key(|of| of.members);
        let levels = levels::of(machine, plan);
        Self {
            curves: curves::by_array(grouped, cases, &direct, &levels),
            by_members: curves::by_members(cases, &levels),
            direct,
        }
    }
}

/// Numbers of the cases of several members that have the same key, in the order of the first of each.
fn alike<K: PartialEq>(
    cases: &[CaseSummary],
    key: impl Fn(&CaseSummary) -> Option<K>,
) -> Vec<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (index, of) in cases.iter().enumerate().filter(|(_, of)| is_pair(of)) {
        let Some(key) = key(of) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups
}

/// A ring of several, of which a solo ring is taken.
fn is_pair(summary: &CaseSummary) -> bool {
    summary.case.members > 1
}
