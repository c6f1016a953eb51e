//! The cases of a run: its rings, and its trials whose figure is a time.

use std::collections::BTreeMap;

use rundata::case;
use rundata::plan::Plan;
use rundata::ring::RingCase;
use rundata::run::Run;
use rundata::trial;
use rundata::trial::load::{REQUEST_NS, WAKE_NS};
use rundata::trial::wakeup::LATE_NS;
use rundata::words;
use serde_json::Value;

use super::{CaseFigure, CaseResults, Labels, LaunchFigure, Quantity};
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::findings::{clock_of, headline_ns, load, wakeup};
use crate::measures::{ElasticityKind, RING_QUANTITIES, RingQuantity, WakeSource};
use crate::speed::leader_cpus;
use crate::summary::{CaseSummary, failure_of, summaries_at_clocks};
use crate::table::Table;

/// Settings of a trial that are not labels, as they do not change what is tried. The CPUs of
/// wake-ups under load are told by their place.
const NOT_LABELS: &[&str] =
    &["bins_ns", "duration_ns", "laps", "seed", "noise_cpu", "worker_cpus", "messenger_cpus"];

/// Returns the title and the labels of each case of a plan, by its number.
pub fn plan_cases(plan: &Plan) -> Vec<(String, Labels)> {
    let mut cases = Vec::new();
    for (number, case) in plan.cases.iter().enumerate() {
        cases.push(match case {
            case::Case::Ring(case) => (plan.title(number), ring_labels(case)),
            case::Case::Trial(case) => (case.trial.to_string(), trial_labels(case)),
        });
    }
    cases
}

/// Returns the rings of a run with their figures.
pub(super) fn rings(run: &Run, table: &Table) -> Vec<CaseResults> {
    let (plan, is_complete) = (table.plan, run.unfinished().is_none());
    let summaries = summaries_at_clocks(table, &run.failures, &run.header.build.target);
    let mut rings = Vec::new();
    for ((number, case), summary) in plan.rings().zip(summaries) {
        rings.push(CaseResults {
            number,
            experiment: plan.experiment.name(),
            title: plan.title(number),
            labels: ring_labels(case),
            details: ring_details(case),
            figures: ring_figures(table, number, &summary, is_complete),
            failure: summary.failure.clone(),
            iterations: table.hops_by_round(number),
            summary: Some(Box::new(summary)),
        });
    }
    rings
}

/// Returns the trials of a run whose figure is a time. A sleeper's share of the ticks is no cost; a
/// trace has cases of its own.
pub(super) fn trials(run: &Run, table: &Table) -> Vec<CaseResults> {
    let mut trials = Vec::new();
    for (number, case) in table.plan.trials() {
        if case.trial.headline().unit != trial::MeasureUnit::Share {
            trials.push(trial_results(run, table, number, case));
        }
    }
    trials
}

fn trial_results(run: &Run, table: &Table, number: usize, case: &trial::TrialCase) -> CaseResults {
    let plan = table.plan;
    let by_round = headline_ns(table, number);
    let figures = match &case.trial {
        trial::Trial::Load(_) => load_figures(run, table, number),
        trial::Trial::Wakeup(_) => sleeper_figures(run, table, number),
        _ => {
            let estimate = by_round.estimate(plan);
            let clock = clock_of(plan, number, &by_round);
            let is_complete = run.unfinished().is_none();
            let figure = launch_figure(by_round.figures().collect(), estimate, is_complete, clock);
            figure.map(|figure| (Quantity::TrialNs, figure)).into_iter().collect()
        }
    };
    let mut iterations = Vec::new();
    for (round, _) in by_round.of_all() {
        iterations.push((round, 1));
    }
    CaseResults {
        number,
        experiment: plan.experiment.name(),
        title: case.trial.to_string(),
        labels: trial_labels(case),
        details: vec![label("CPU", case.cpu)],
        figures,
        summary: None,
        failure: failure_of(&run.failures, number),
        iterations,
    }
}

/// The quantiles of wake-ups under load that are compared: what they are of, and which.
const LOAD_QUANTILES: [(Quantity, &str, f64); 4] = [
    (Quantity::WakeP50Ns, WAKE_NS, 0.5),
    (Quantity::WakeP99Ns, WAKE_NS, 0.99),
    (Quantity::RequestP50Ns, REQUEST_NS, 0.5),
    (Quantity::RequestP99Ns, REQUEST_NS, 0.99),
];

/// Returns the quantiles of a case of wake-ups under load, each of all rounds together.
fn load_figures(run: &Run, table: &Table, number: usize) -> BTreeMap<Quantity, CaseFigure> {
    let mut estimates = Vec::new();
    for (quantity, name, p) in LOAD_QUANTILES {
        let estimate = load::estimate_quantile(&load::tallies(table, number, name), p);
        estimates.push((quantity, quantile_by_round(table, number, name, p), estimate));
    }
    wake_figures(run, table, number, WakeSource::Messenger, estimates)
}

/// Returns the median and the 99th percentile of a timer's sleeper.
fn sleeper_figures(run: &Run, table: &Table, number: usize) -> BTreeMap<Quantity, CaseFigure> {
    let medians = wakeup::medians(table, number);
    let tails = quantile_by_round(table, number, LATE_NS, 0.99);
    let tail = wakeup::launch_tail(table, number, 0.99);
    let tail = tail.and_then(|tail| tail.estimate(tails.len() as u32));
    let estimates = vec![
        (Quantity::WakeP50Ns, medians.figures().collect(), medians.estimate(table.plan)),
        (Quantity::WakeP99Ns, tails, tail),
    ];
    wake_figures(run, table, number, WakeSource::Timer, estimates)
}

/// Returns the quantile `p` of the values under `name` in each round that has them.
fn quantile_by_round(table: &Table, number: usize, name: &str, p: f64) -> BTreeMap<u32, f64> {
    let mut by_round = BTreeMap::new();
    for sample in table.trial_samples(number) {
        if let Some(ns) = sample.tally(name).and_then(|tally| tally.quantile(p)) {
            by_round.insert(sample.round, ns as f64);
        }
    }
    by_round
}

/// Builds the figures of wake-ups from their rounds and the estimates of this launch alone, each with
/// the scatter between launches; without those that have no estimate.
fn wake_figures(
    run: &Run,
    table: &Table,
    number: usize,
    source: WakeSource,
    estimates: Vec<(Quantity, BTreeMap<u32, f64>, Option<Estimate>)>,
) -> BTreeMap<Quantity, CaseFigure> {
    let is_complete = run.unfinished().is_none();
    let known = table.plan.reference.known_of(number);
    let mut figures = BTreeMap::new();
    for (quantity, by_round, estimate) in estimates {
        if estimate.is_some() {
            let launch_scatter = quantity.wake_scatter(source, &known);
            let launch =
                LaunchFigure { by_round, estimate, is_complete, clock: None, launch_scatter };
            figures.insert(quantity, CaseFigure::Measured(vec![launch]));
        }
    }
    figures
}

/// Builds the figure of one launch, with its clock if it was measured at full speed; absent without
/// an estimate.
pub(super) fn launch_figure(
    by_round: BTreeMap<u32, f64>,
    estimate: Option<Estimate>,
    is_complete: bool,
    clock: Option<AtClock>,
) -> Option<CaseFigure> {
    let is_full = estimate?.speed.is_full();
    let clock = if is_full { clock } else { None };
    Some(CaseFigure::Measured(vec![LaunchFigure {
        by_round,
        estimate,
        is_complete,
        clock,
        launch_scatter: None,
    }]))
}

/// Returns the figures of a ring: of one that switches those of a switch and of a hop, else those
/// of a hop.
fn ring_figures(
    table: &Table,
    number: usize,
    summary: &CaseSummary,
    is_complete: bool,
) -> BTreeMap<Quantity, CaseFigure> {
    let mut figures = BTreeMap::new();
    for RingQuantity { quantity, elasticity, by_round, estimate } in RING_QUANTITIES {
        let estimate = estimate(table, number, summary);
        let clock = ring_clock(table, number, elasticity, summary);
        if let Some(figure) = launch_figure(by_round(table, number), estimate, is_complete, clock) {
            figures.insert(quantity, figure);
        }
    }
    figures
}

/// Returns the clock of a ring's figures with their elasticities: by the ring's own slices, and by
/// earlier launches. Absent for figures that no clock bounds.
fn ring_clock(
    table: &Table,
    number: usize,
    kind: ElasticityKind,
    summary: &CaseSummary,
) -> Option<AtClock> {
    let known = table.plan.reference.known_of(number);
    let (elasticity, known) = match kind {
        ElasticityKind::Unclocked => return None,
        ElasticityKind::Switch => (table.elasticity(number), known.elasticity),
        // A hop stands for this case, so that the plan's first elasticity is the hop's.
        ElasticityKind::Hop if summary.is_told_by_hop() => {
            (table.hop_elasticity(number), known.elasticity)
        }
        ElasticityKind::Hop => (table.hop_elasticity(number), known.hop_elasticity),
    };
    let level = table.levels().get(&leader_cpus(table.plan.ring(number)?))?;
    Some(AtClock { quantum_ns: level.clock_ns, elasticity, known })
}

/// Returns the labels of a ring. The placement of a pair that a sweep chose is the relation of its
/// CPUs, which other CPUs have on another machine.
pub(super) fn ring_labels(case: &RingCase) -> Labels {
    let mut labels =
        vec![label("members", case.members), label("kind", case.kind), label("link", &case.link)];
    if let Some(work) = &case.work {
        labels.extend([
            label("work", work.bytes),
            label("stride", work.stride_bytes),
            label("op", work.op),
            label("walk", work.walk),
            label("huge-pages", work.huge_pages),
        ]);
    }
    let placement = match case.placement.relation() {
        _ if case.has_several_rings() => case.placement_name(),
        Some(relation) => relation.to_string(),
        // One CPU that was asked for by its number is one like any other.
        None if case.placement.is_one_cpu() => "same".to_string(),
        None => case.placement.to_string(),
    };
    labels.extend([label("placement", placement), label("policy", case.policy)]);
    if let Some(state) = case.state {
        labels.push(label("state", state));
    }
    if let Some(burden) = case.burden {
        labels.push(label("burden", burden));
    }
    if let Some(flight) = case.flight {
        labels.push(label("flight", flight));
    }
    if case.has_several_rings() {
        labels.push(label("rings", case.rings()));
    }
    labels
}

fn ring_details(case: &RingCase) -> Labels {
    let cpus = words::list(&case.cpus());
    vec![label("CPU", cpus), label("real-time priority", case.priority())]
}

/// Builds a label from its name and its value.
pub(super) fn label(name: &str, value: impl ToString) -> (String, String) {
    (name.to_string(), value.to_string())
}

fn trial_labels(case: &trial::TrialCase) -> Labels {
    let mut labels = Labels::new();
    // Cannot fail: every key is a string.
    add_settings("", &serde_json::to_value(&case.trial).unwrap_or_default(), &mut labels);
    labels.push(label("policy", case.policy));
    labels
}

/// Adds the settings of a trial as labels, those in objects by the names of their fields.
fn add_settings(name: &str, value: &Value, labels: &mut Labels) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if !NOT_LABELS.contains(&field.as_str()) {
                    add_settings(&field.replace('_', "-"), value, labels);
                }
            }
        }
        Value::Null => {}
        Value::String(text) => labels.push(label(name, text)),
        number => labels.push(label(name, number)),
    }
}
