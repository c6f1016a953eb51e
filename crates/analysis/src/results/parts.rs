//! The parts of a switch as what is compared: of a run of `explain`.

use std::collections::BTreeMap;

use rundata::experiment::Experiment;
use rundata::run::Run;

use super::runs::measured;
use super::{CaseResults, Labels, Quantity};
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::explain;
use crate::speed::leader_cpus;
use crate::table::{Figures, Table};

/// The label by which parts are told apart.
pub(super) const PART: &str = "part";

/// What the whole is called.
pub(crate) const WHOLE: &str = "whole";
/// What is left of it.
const REST: &str = "not explained";

/// The whole, its parts, the rest, and what would add to it; numbered behind the cases of the plan.
/// Empty of any other run.
pub(super) fn parts(run: &Run, table: &Table) -> Vec<CaseResults> {
    let plan = table.plan;
    let is_it = plan.experiment == Experiment::Explain;
    let Some(found) = is_it.then(|| explain::find(table)).flatten() else { return Vec::new() };
    let (is_whole, first) = (run.unfinished().is_none(), plan.cases.len());
    let clock = explain::explained_ring(plan)
        .and_then(|(_, whole)| table.levels().get(&leader_cpus(whole)))
        .map(|level| AtClock { quantum_ns: level.clock_ns, elasticity: None, known: None });
    let cpus = plan.cpus();
    let case_results = |(at, (title, ns, by_round)): (usize, (&str, Option<Estimate>, Figures))| {
        let labels = [(PART, title.to_string()), ("kind", found.kind.to_string())];
        let figures = measured(Quantity::PartNs, by_round, ns, is_whole, clock);
        let figures: BTreeMap<_, _> = figures.into_iter().collect();
        let named = |(name, value): (&str, String)| (name.to_string(), value);
        CaseResults {
            number: first + at,
            experiment: plan.experiment.name(),
            title: title.to_string(),
            labels: Labels::from(labels.map(named)),
            details: [named(("CPU", rundata::words::list(&cpus)))].into(),
            iterations: Vec::new(),
            figures,
            summary: None,
            failure: None,
        }
    };
    let [of_whole, of_rest] = found.by_round.clone();
    let part = |of: &explain::SwitchPart| (of.part.in_words(), of.ns, of.by_round.clone());
    let whole = [(WHOLE, found.whole_ns, of_whole)].into_iter();
    let all = whole
        .chain(found.parts.iter().map(part))
        .chain([(REST, found.rest_ns, of_rest)])
        .chain(found.added.iter().map(part));
    all.enumerate().map(case_results).collect()
}
