//! The cases of a run, of rings and of trials.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Labels, Measured, Quantity, Subcase, Values};
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::findings::{clock_of, headline_ns};
use crate::speed::leader_cpus;
use crate::summary::{CaseSummary, failure_of, summaries};
use crate::table::Table;
use rundata::case;
use rundata::plan::Plan;
use rundata::ring::{Case, Sample};
use rundata::run::Run;
use rundata::trial;
use rundata::words;
use stats::Elasticity;

/// What a trial was given that says nothing of what was tried: how long, how often, with which
/// seed.
const NOT_LABELS: &[&str] = &["duration_ns", "laps", "seed", "noise_cpu"];

/// Titles and labels of a plan's cases, by number: what tells each from the others.
pub fn cases_of(plan: &Plan) -> Vec<(String, Labels)> {
    let of = |(number, case): (usize, &case::Case)| match case {
        case::Case::Ring(case) => (plan.title(number), labels(case)),
        case::Case::Trial(case) => (case.trial.to_string(), trial_labels(case)),
    };
    plan.cases.iter().enumerate().map(of).collect()
}

/// All rings of a plan with their figures.
pub(super) fn rings(run: &Run, table: &Table) -> Vec<Subcase> {
    let subcase = |((number, case), summary): ((usize, &Case), CaseSummary)| Subcase {
        number,
        experiment: table.plan.experiment,
        title: table.plan.title(number),
        labels: labels(case),
        details: details(case),
        figures: figures(table, number, &summary, run.unfinished().is_none()),
        failure: summary.failure,
        iterations: table.hops_by_round(number),
    };
    table.plan.rings().zip(summaries(table, &run.failures)).map(subcase).collect()
}

/// All trials whose figure is a time.
pub(super) fn trials(run: &Run, table: &Table) -> Vec<Subcase> {
    let (plan, is_whole) = (table.plan, run.unfinished().is_none());
    let subcase = |(number, case): (usize, &trial::Case)| {
        let figures = &headline_ns(table, number);
        Subcase {
            number,
            experiment: plan.experiment,
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
            failure: failure_of(&run.failures, number),
            iterations: figures.of_all().map(|(round, _)| (round, 1)).collect(),
        }
    };
    // What a sleeper's share of the ticks is, is no cost.
    let is_time =
        |(_, case): &(usize, &trial::Case)| case.trial.headline().unit != trial::Unit::Share;
    plan.trials().filter(is_time).map(subcase).collect()
}

/// A figure of one run; absent where no round has it.
pub(super) fn measured(
    of: Quantity,
    by_round: BTreeMap<u32, f64>,
    estimate: Option<Estimate>,
    is_whole: bool,
    clock: Option<AtClock>,
) -> Option<(Quantity, Values)> {
    let at_full_speed = estimate.filter(|estimate| estimate.speed.is_full());
    let clock = clock.filter(|_| at_full_speed.is_some());
    estimate.map(|_| (of, Values::Measured(vec![Measured { by_round, estimate, is_whole, clock }])))
}

/// The clock of a ring's figures, with the power of one: its own, and that by earlier launches.
fn clock_of_ring(
    table: &Table,
    number: usize,
    [elasticity, known]: [Option<Elasticity>; 2],
) -> Option<AtClock> {
    let level = table.levels().get(&leader_cpus(table.plan.ring(number)?))?;
    Some(AtClock { quantum_ns: level.clock_ns, elasticity, known })
}

/// Of a ring that switches the cost of a switch and of a hop, else of a hop: what its record says.
fn figures(
    table: &Table,
    number: usize,
    of: &CaseSummary,
    is_whole: bool,
) -> BTreeMap<Quantity, Values> {
    let switch_by_cpu = table.above_solo_of_all(number, Sample::cpu_ns_per_hop);
    let hop_by_cpu = table.as_found_by_round(number, Sample::cpu_ns_per_hop);
    // A stream of its own, apart from those of the record.
    let stream = (7 << 32) + 4 * table.rank(number) + 3;
    let cpu_ns_per_hop = table.over_rounds(&hop_by_cpu, stream);
    let switch = table.above_solo_by_round(number);
    let hop = table.hop_by_round(number);
    let known = table.plan.reference.known_of(number);
    let hop_known = if of.is_told_by_hop() { known.elasticity } else { known.hop_elasticity };
    let of_switch = [table.elasticity(number), known.elasticity];
    let of_hop = [table.hop_elasticity(number), hop_known];
    let clock = |of| clock_of_ring(table, number, of);
    let all = [
        (Quantity::NsPerSwitchAboveSolo, switch, of.ns_per_switch_above_solo, clock(of_switch)),
        (Quantity::NsPerHop, hop, of.ns_per_hop, clock(of_hop)),
        (Quantity::CpuNsPerSwitchAboveSolo, switch_by_cpu, of.cpu_ns_per_switch_above_solo, None),
        (Quantity::CpuNsPerHop, hop_by_cpu, cpu_ns_per_hop, None),
    ];
    let known = |(of, by_round, estimate, clock)| measured(of, by_round, estimate, is_whole, clock);
    all.into_iter().filter_map(known).collect()
}

/// By these rings are paired. Of a pair that a sweep chose the relation: on another machine other
/// CPUs have it.
pub(super) fn labels(case: &Case) -> Labels {
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

fn details(case: &Case) -> Labels {
    let cpus = words::list(&case.placement.cpus());
    named([("CPU", cpus), ("real-time priority", case.priority().to_string())])
}

fn named<const N: usize>(labels: [(&str, String); N]) -> Labels {
    labels.map(|(name, value)| (name.to_string(), value)).into()
}

fn trial_labels(case: &trial::Case) -> Labels {
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
