//! Runs of rings.

use super::{Figure, Labels, Quantity, Subcase, failure_of};
use crate::pairing::{Figures, Grouped};
use crate::plan::Plan;
use crate::ring::{Case, Placement, Sample};
use crate::run::Failure;
use crate::summary::HARDLY_SWITCHES_PER_HOP;
use stats::median;

/// All rings of a plan with their figures.
pub(super) fn cases(plan: &Plan, grouped: &Grouped, failures: &[Failure]) -> Vec<Subcase> {
    let subcase = |(number, case): (usize, &Case)| Subcase {
        number,
        title: case.title(),
        labels: labels(case),
        details: details(case),
        figures: figures(plan, grouped, number, case),
        failure: failure_of(failures, number),
        iterations: grouped.hops_by_round(number),
    };
    plan.rings().map(subcase).collect()
}

/// What stands for the case first: of a ring that switches the cost of a switch, else that of a hop.
fn figures(plan: &Plan, grouped: &Grouped, number: usize, case: &Case) -> Vec<Figure> {
    // Streams of their own, apart from those of the record.
    let stream = |figure: u64| (7 << 32) + 4 * grouped.rank(number) + figure;
    let counted = grouped.by_round(number, Sample::switches_per_hop).into_values();
    let switches_per_hop = median(&counted.collect::<Vec<f64>>()).unwrap_or(0.0);
    let does_switch = case.members > 1 && switches_per_hop >= HARDLY_SWITCHES_PER_HOP;
    let over_rounds = |figures: &Figures, figure| grouped.over_rounds(figures, stream(figure));
    let switch = does_switch.then(|| {
        let by_round = grouped.above_solo_by_round(number);
        let estimate = grouped.above_solo(number, stream(0));
        Figure::measured(Quantity::NsPerSwitchAboveSolo, by_round, estimate)
    });
    let hop = Figure::measured(
        Quantity::NsPerHop,
        grouped.hop_by_round(number),
        grouped.hop(number, stream(1)),
    );
    let by_cpu = does_switch && case.placement.is_one_cpu() && plan.batching.ring.triples.is_none();
    let switch_by_cpu = by_cpu.then(|| {
        let by_round = grouped.above_solo_of_all(number, Sample::cpu_ns_per_hop);
        let estimate = over_rounds(&by_round, 2);
        Figure::measured(Quantity::CpuNsPerSwitchAboveSolo, by_round, estimate)
    });
    let by_cpu = grouped.as_found_by_round(number, Sample::cpu_ns_per_hop);
    let estimate = over_rounds(&by_cpu, 3);
    let hop_by_cpu = Figure::measured(Quantity::CpuNsPerHop, by_cpu, estimate);
    let all = [switch, Some(hop), switch_by_cpu, Some(hop_by_cpu)];
    all.into_iter().flatten().flatten().collect()
}

/// By these rings are paired.
pub(super) fn labels(case: &Case) -> Labels {
    let mut labels = vec![
        ("members", case.members.to_string()),
        ("kind", case.kind.name().to_string()),
        ("link", case.link.clone()),
    ];
    if let Some(work) = &case.work {
        labels.push(("work", work.bytes.to_string()));
        labels.push(("stride", work.stride_bytes.to_string()));
        labels.push(("op", work.op.name().to_string()));
        labels.push(("walk", work.walk.name().to_string()));
        labels.push(("huge-pages", work.huge_pages.to_string()));
    }
    labels.push(("placement", placement(&case.placement)));
    labels.push(("policy", case.policy.name().to_string()));
    labels.extend(case.state.map(|state| ("state", state.name().to_string())));
    labels.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Of a pair that a sweep chose the relation: on another machine other CPUs have it.
fn placement(placement: &Placement) -> String {
    match placement.relation() {
        Some(relation) => relation.to_string(),
        None => placement.to_string(),
    }
}

fn details(case: &Case) -> Labels {
    let cpus: Vec<String> = case.placement.cpus().iter().map(u32::to_string).collect();
    vec![
        ("CPU".to_string(), cpus.join(",")),
        ("real-time priority".to_string(), case.priority().to_string()),
    ]
}
