//! What registers in use add to a switch, and which rings share a solo ring, on known figures.
// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

use analysis::summary::{CaseSummary, summaries};
use analysis::table::Table;
use rundata::experiment::Experiment;
use rundata::machine::CpuRelation;
use rundata::placement::Placement;
use rundata::plan::Plan;
use rundata::ring::{Counters, MemberKind, Policy, RegisterState, RingCase, RingSample};

fn case(placement: Placement, state: Option<RegisterState>) -> RingCase {
    RingCase {
        members: 2,
        kind: MemberKind::Process,
        link: "pipe".into(),
        work: None,
        placement,
        policy: Policy::Other,
        priority: None,
        burden: None,
        flight: None,
        beside: Vec::new(),
        state,
    }
}

fn plan(cases: Vec<RingCase>) -> Plan {
    Plan { seed: 7, ..Plan::from_cases(Experiment::Ring, cases) }.with_solos()
}

/// Six rounds, each a microsecond a hop slower than the one before: two switches a hop cost what
/// `switch_ns` says, the hop of a solo ring what `solo_ns` says.
fn found(
    plan: &Plan,
    solo_ns: impl Fn(&RingCase) -> u64,
    switch_ns: impl Fn(&RingCase) -> u64,
) -> Vec<CaseSummary> {
    let one = |round: u32, index: usize| {
        let case = plan.ring(index).unwrap();
        let switches = if case.members == 1 { 0 } else { 2 };
        let hop_ns = solo_ns(case) + 1000 * u64::from(round) + switches * switch_ns(case);
        RingSample {
            case: index,
            round,
            laps: 50,
            hops: 100,
            elapsed_ns: 100 * hop_ns,
            counters: Counters { voluntary: 100 * switches, ..Counters::default() },
            ..RingSample::default()
        }
    };
    let rounds = (0..6).flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)));
    let samples: Vec<RingSample> = rounds.map(|(round, case)| one(round, case)).collect();
    summaries(&Table::from_samples(plan, &samples, []), &[])
}

#[test]
fn a_state_costs_the_double_difference_to_none_with_its_sign() {
    let same = || Placement::Same { cpu: 1 };
    let states = [RegisterState::None, RegisterState::Sse, RegisterState::Avx];
    let plan = plan(states.map(|state| case(same(), Some(state))).to_vec());
    assert_eq!(plan.cases.len(), 6, "a solo ring for each state");
    // The instructions' own time, 30 ns, is in both rings and drops out.
    let solo_ns = |case: &RingCase| 800 + 30 * u64::from(case.state != Some(RegisterState::None));
    let switch_ns = |case: &RingCase| match case.state {
        Some(RegisterState::Sse) => 2040,
        Some(RegisterState::Avx) => 1985,
        _ => 2000,
    };
    let summaries = found(&plan, solo_ns, switch_ns);
    let above = |state: RegisterState, members: u32| {
        let is = |s: &&CaseSummary| s.case.state == Some(state) && s.case.members == members;
        summaries.iter().find(is).unwrap().ns_per_switch_above_none
    };
    let sse = above(RegisterState::Sse, 2).unwrap();
    assert_eq!((sse.value, sse.low, sse.high), (40.0, Some(40.0), Some(40.0)));
    assert!(sse.resolved);
    assert_eq!(above(RegisterState::Avx, 2).unwrap().value, -15.0);
    assert_eq!(above(RegisterState::None, 2), None);
    assert_eq!(above(RegisterState::Sse, 1), None);
}

#[test]
fn rings_without_states_have_nothing_to_be_above() {
    let plan = plan(vec![case(Placement::Same { cpu: 1 }, None)]);
    let summaries = found(&plan, |_| 800, |_| 2000);
    assert!(summaries.iter().all(|summary| summary.ns_per_switch_above_none.is_none()));
}

#[test]
fn pairs_of_a_sweep_with_the_same_first_cpu_have_one_solo_ring_and_one_block() {
    let pair = |cpus: [u32; 2], relation| Placement::Pinned {
        cpus: cpus.to_vec(),
        relation: Some(relation),
    };
    let placements = [
        Placement::Same { cpu: 3 },
        pair([3, 2], CpuRelation::Smt),
        pair([3, 1], CpuRelation::OtherCache),
        pair([5, 4], CpuRelation::SharedCache),
    ];
    let plan = plan(placements.map(|placement| case(placement, None)).to_vec());
    let solos: Vec<Vec<u32>> =
        plan.rings().filter(|(_, c)| c.members == 1).map(|(_, c)| c.placement.cpus()).collect();
    assert_eq!(solos, [[3], [5]]);
    let of: Vec<Option<usize>> = (2..6).map(|case| plan.solo_of(case)).collect();
    assert_eq!(of, [Some(0), Some(0), Some(0), Some(1)]);
    for round in 0..20 {
        let order = plan.order(round);
        let place = |case: usize| order.iter().position(|known| *known == case).unwrap();
        assert_eq!(place(1).abs_diff(place(5)), 1, "{order:?}");
    }
    let summaries = found(&plan, |_| 800, |case| 1000 * u64::from(case.placement.cpus()[0]));
    let costs: Vec<f64> =
        summaries[2..].iter().map(|s| s.ns_per_switch_above_solo.unwrap().value).collect();
    assert_eq!(costs, [3000.0, 2000.0, 1000.0, 4000.0]);
}
