//! The cases of a run, of rings and of trials.

use std::collections::BTreeMap;

use rundata::case;
use rundata::plan::Plan;
use rundata::ring::RingCase;
use rundata::run::Run;
use rundata::trial;
use rundata::words;
use serde_json::Value;

use super::{CaseFigure, CaseResults, Labels, LaunchFigure, Quantity};
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::findings::{clock_of, headline_ns};
use crate::measures::{ElasticityKind, RING_QUANTITIES, RingQuantity};
use crate::speed::leader_cpus;
use crate::summary::{CaseSummary, failure_of, summaries_at_clocks};
use crate::table::Table;

/// What a trial was given that says nothing of what was tried: how long, how often, with which
/// seed.
const NOT_LABELS: &[&str] = &["duration_ns", "laps", "seed", "noise_cpu"];

/// Titles and labels of a plan's cases, by number: what tells each from the others.
pub fn plan_cases(plan: &Plan) -> Vec<(String, Labels)> {
    let of = |(number, case): (usize, &case::Case)| match case {
        case::Case::Ring(case) => (plan.title(number), labels(case)),
        case::Case::Trial(case) => (case.trial.to_string(), trial_labels(case)),
    };
    plan.cases.iter().enumerate().map(of).collect()
}

/// All rings of a plan with their figures.
pub(super) fn rings(run: &Run, table: &Table) -> Vec<CaseResults> {
    let case_results = |((number, case), summary): ((usize, &RingCase), CaseSummary)| CaseResults {
        number,
        experiment: table.plan.experiment.name(),
        title: table.plan.title(number),
        labels: labels(case),
        details: details(case),
        figures: figures(table, number, &summary, run.unfinished().is_none()),
        failure: summary.failure.clone(),
        iterations: table.hops_by_round(number),
        summary: Some(Box::new(summary)),
    };
    let summaries = summaries_at_clocks(table, &run.failures, &run.header.build.target);
    table.plan.rings().zip(summaries).map(case_results).collect()
}

/// All trials whose figure is a time.
pub(super) fn trials(run: &Run, table: &Table) -> Vec<CaseResults> {
    let (plan, is_whole) = (table.plan, run.unfinished().is_none());
    let case_results = |(number, case): (usize, &trial::TrialCase)| {
        let figures = &headline_ns(table, number);
        CaseResults {
            number,
            experiment: plan.experiment.name(),
            title: case.trial.to_string(),
            labels: trial_labels(case),
            details: named([("CPU", case.cpu.to_string())]),
            figures: measured(
                Quantity::TrialNs,
                figures.figures().collect(),
                figures.estimate(plan),
                is_whole,
                clock_of(plan, number, figures),
            )
            .into_iter()
            .collect(),
            summary: None,
            failure: failure_of(&run.failures, number),
            iterations: figures.of_all().map(|(round, _)| (round, 1)).collect(),
        }
    };
    // What a sleeper's share of the ticks is, is no cost.
    let is_time = |(_, case): &(usize, &trial::TrialCase)| {
        case.trial.headline().unit != trial::MeasureUnit::Share
    };
    plan.trials().filter(is_time).map(case_results).collect()
}

/// A figure of one run; absent where no round has it.
pub(super) fn measured(
    of: Quantity,
    by_round: BTreeMap<u32, f64>,
    estimate: Option<Estimate>,
    is_whole: bool,
    clock: Option<AtClock>,
) -> Option<(Quantity, CaseFigure)> {
    let at_full_speed = estimate.filter(|estimate| estimate.speed.is_full());
    let clock = clock.filter(|_| at_full_speed.is_some());
    estimate.map(|_| {
        (
            of,
            CaseFigure::Measured(vec![LaunchFigure {
                by_round,
                estimate,
                is_complete: is_whole,
                clock,
            }]),
        )
    })
}

/// Returns the clock of a ring's figures, with the power of the clock's period that they go with:
/// the ring's own, and that by earlier launches. Absent of what no clock bounds.
fn clock_of_ring(
    table: &Table,
    number: usize,
    clocked: ElasticityKind,
    summary: &CaseSummary,
) -> Option<AtClock> {
    let known = table.plan.reference.known_of(number);
    let (elasticity, known) = match clocked {
        ElasticityKind::No => return None,
        ElasticityKind::Switch => (table.elasticity(number), known.elasticity),
        // What launches know of the figure that stands for the case is the hop's here.
        ElasticityKind::Hop if summary.is_told_by_hop() => {
            (table.hop_elasticity(number), known.elasticity)
        }
        ElasticityKind::Hop => (table.hop_elasticity(number), known.hop_elasticity),
    };
    let level = table.levels().get(&leader_cpus(table.plan.ring(number)?))?;
    Some(AtClock { quantum_ns: level.clock_ns, elasticity, known })
}

/// Returns the quantities of a ring: of one that switches those of a switch and of a hop, else
/// those of a hop.
fn figures(
    table: &Table,
    number: usize,
    summary: &CaseSummary,
    is_whole: bool,
) -> BTreeMap<Quantity, CaseFigure> {
    let mut figures = BTreeMap::new();
    for RingQuantity { quantity, clocked, by_round, estimate } in RING_QUANTITIES {
        let estimate = estimate(table, number, summary);
        let clock = clock_of_ring(table, number, clocked, summary);
        figures.extend(measured(quantity, by_round(table, number), estimate, is_whole, clock));
    }
    figures
}

/// By these rings are paired. Of a pair that a sweep chose the relation: on another machine other
/// CPUs have it.
pub(super) fn labels(case: &RingCase) -> Labels {
    let mut labels = named([
        ("members", case.members.to_string()),
        ("kind", case.kind.to_string()),
        ("link", case.link.clone()),
    ]);
    labels.extend(case.work.iter().flat_map(|work| {
        named([
            ("work", work.bytes.to_string()),
            ("stride", work.stride_bytes.to_string()),
            ("op", work.op.to_string()),
            ("walk", work.walk.to_string()),
            ("huge-pages", work.huge_pages.to_string()),
        ])
    }));
    let relation = case.placement.relation().map(|relation| relation.to_string());
    let placement = match relation {
        Some(relation) => relation,
        // One CPU that was asked for by its number is one like any other.
        None if case.placement.is_one_cpu() => "same".to_string(),
        None => case.placement.to_string(),
    };
    labels.extend(named([("placement", placement), ("policy", case.policy.to_string())]));
    labels.extend(case.state.map(|state| ("state".to_string(), state.to_string())));
    labels.extend(case.burden.map(|burden| ("burden".to_string(), burden.to_string())));
    labels
}

fn details(case: &RingCase) -> Labels {
    let cpus = words::list(&case.placement.cpus());
    named([("CPU", cpus), ("real-time priority", case.priority().to_string())])
}

fn named<const N: usize>(labels: [(&str, String); N]) -> Labels {
    labels.map(|(name, value)| (name.to_string(), value)).into()
}

fn trial_labels(case: &trial::TrialCase) -> Labels {
    let mut labels = Labels::new();
    // Cannot fail: every key is a string.
    flatten("", &serde_json::to_value(&case.trial).unwrap_or_default(), &mut labels);
    labels.extend(named([("policy", case.policy.to_string())]));
    labels
}

fn flatten(name: &str, value: &Value, labels: &mut Labels) {
    match value {
        Value::Object(fields) => {
            let told = fields.iter().filter(|(name, _)| !NOT_LABELS.contains(&&***name));
            told.for_each(|(field, value)| flatten(&field.replace('_', "-"), value, labels));
        }
        Value::Null => {}
        Value::String(text) => labels.push((name.to_string(), text.clone())),
        other => labels.push((name.to_string(), other.to_string())),
    }
}
