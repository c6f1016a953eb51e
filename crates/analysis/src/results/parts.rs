//! The parts of a switch as cases, of a run of `explain`.

use std::collections::BTreeMap;

use rundata::experiment::Experiment;
use rundata::run::Run;

use super::runs::{label, launch_figure};
use super::{CaseResults, Quantity};
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::explain;
use crate::speed::leader_cpus;
use crate::table::{Figures, Table};

/// Name of the label that tells parts apart.
const PART: &str = "part";

/// Title of the hop as a whole.
pub(crate) const WHOLE: &str = "whole";
/// Title of the hop less its parts.
const REST: &str = "not explained";

/// Returns whether a case is a part of a switch.
pub(super) fn is_part(case: &CaseResults) -> bool {
    case.label(PART).is_some()
}

/// A part with its cost.
struct PartCost<'a> {
    title: &'a str,
    estimate: Option<Estimate>,
    by_round: Figures,
}

impl<'a> PartCost<'a> {
    fn from_part(part: &'a explain::SwitchPart) -> Self {
        Self { title: part.part.in_words(), estimate: part.ns, by_round: part.by_round.clone() }
    }
}

/// Returns the hop, its parts, the rest, and what would add to a switch, numbered behind the cases
/// of the plan. Empty for a run of another experiment.
pub(super) fn parts(run: &Run, table: &Table) -> Vec<CaseResults> {
    let plan = table.plan;
    if plan.experiment != Experiment::Explain {
        return Vec::new();
    }
    let Some(explained) = explain::find(table) else { return Vec::new() };
    let [whole_by_round, rest_by_round] = explained.by_round.clone();
    let mut costs =
        vec![PartCost { title: WHOLE, estimate: explained.whole_ns, by_round: whole_by_round }];
    for part in &explained.parts {
        costs.push(PartCost::from_part(part));
    }
    costs.push(PartCost { title: REST, estimate: explained.rest_ns, by_round: rest_by_round });
    for part in &explained.added {
        costs.push(PartCost::from_part(part));
    }
    let (is_complete, clock) = (run.unfinished().is_none(), whole_clock(table));
    let mut cases = Vec::new();
    for (index, cost) in costs.into_iter().enumerate() {
        let PartCost { title, estimate, by_round } = cost;
        let mut figures = BTreeMap::new();
        if let Some(figure) = launch_figure(by_round, estimate, is_complete, clock) {
            figures.insert(Quantity::PartNs, figure);
        }
        cases.push(CaseResults {
            number: plan.cases.len() + index,
            experiment: plan.experiment.name(),
            title: title.to_string(),
            labels: vec![label(PART, title), label("kind", explained.kind)],
            details: vec![label("CPU", rundata::words::list(&plan.cpus()))],
            figures,
            summary: None,
            failure: None,
            iterations: Vec::new(),
        });
    }
    cases
}

/// Returns the clock of the ring that is explained. Parts have no elasticity of their own.
fn whole_clock(table: &Table) -> Option<AtClock> {
    let (_, ring) = explain::explained_ring(table.plan)?;
    let level = table.levels().get(&leader_cpus(ring))?;
    Some(AtClock { quantum_ns: level.clock_ns, elasticity: None, known: None })
}
