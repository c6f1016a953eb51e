//! The instrument as a whole: both halves keep their cases, and what is said of them is their own
//! instrument's.

use std::collections::BTreeMap;

use super::*;
use crate::case::{Kind, Placement, Policy};
use crate::machine::Machine;
use crate::plan::Stopping;
use crate::run::{Build, Header, SCHEMA};
use crate::sample::Counters;
use crate::trial::Trial;

fn ring(members: u32, link: &str) -> Case {
    Case::Ring(case::Case {
        members,
        kind: Kind::Process,
        link: link.into(),
        work: None,
        placement: Placement::Same { cpu: 1 },
        policy: Policy::Other,
        priority: None,
    })
}

fn call(name: &str) -> Case {
    let trial = Trial::Call { call: name.into() };
    Case::Trial(trial::Case { trial, cpu: 1, policy: Policy::Other })
}

/// Rings and trials mixed.
fn plan() -> Plan<Response> {
    Plan {
        experiment: NAME.into(),
        cases: vec![
            call("times"),
            ring(1, "pipe"),
            ring(2, "pipe"),
            call("monotonic"),
            ring(1, "signal"),
            ring(2, "signal"),
        ],
        seed: 3,
        batching: Batching { ring: plan::Batching::default(), trial: Repeats { trials: 100 } },
        stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: None, confidence: 0.95 },
    }
}

fn run() -> Run<Response> {
    let nothing = String::new;
    let build = Build { version: nothing(), commit: None, profile: nothing(), target: nothing() };
    let mut run = Run::new(Header {
        schema: SCHEMA,
        run: "made-up".to_string(),
        started: nothing(),
        invocation: Vec::new(),
        build,
        plan: plan(),
        machine: Machine::default(),
        notices: Vec::new(),
    });
    run.samples = samples();
    run
}

/// A hop of so many nanoseconds, a switch in each hop of a ring of two.
fn hops(case: usize, round: u32, ns: u64) -> Sample {
    let switches = if [2, 5].contains(&case) { 1000 } else { 0 };
    Sample::Ring(sample::Sample {
        case,
        round,
        sample: 0,
        laps: 1000,
        hops: 1000,
        elapsed_ns: 1000 * ns,
        counters: Counters { voluntary: switches, cpu_ns: 1000 * ns, ..Counters::default() },
        steal_ns: Some(0),
        setup_ns: 0,
    })
}

fn calls(case: usize, round: u32) -> Sample {
    let batch = [(trial::overhead::BATCH_TICKS.to_string(), [20_000].into_iter().collect())];
    Sample::Trial(trial::Sample {
        case,
        round,
        elapsed_ns: 10_000,
        elapsed_ticks: Some(20_000),
        gaps: Vec::new(),
        tallies: BTreeMap::from(batch),
        counts: BTreeMap::new(),
        steal_ns: Some(0),
    })
}

/// Six rounds that drift by 100 ns each; a switch by pipe is 2000 ns, one by signal 2500.
fn samples() -> Vec<Sample> {
    let round = |round: u32| {
        let drift = 100 * u64::from(round);
        [
            calls(0, round),
            hops(1, round, 1000 + drift),
            hops(2, round, 3000 + drift),
            calls(3, round),
            hops(4, round, 1500 + drift),
            hops(5, round, 4000 + drift),
        ]
    };
    (0..6).flat_map(round).collect()
}

fn failure(case: usize) -> Failure {
    Failure { case, round: 0, message: "no".into() }
}

#[test]
fn each_half_has_its_own_cases_under_their_own_numbers() {
    let split = Split::of(&plan(), &samples(), &[failure(3), failure(5)]);
    assert_eq!((&*split.rings.numbers, &*split.trials.numbers), (&[1, 2, 4, 5][..], &[0, 3][..]));
    assert_eq!((split.rings.samples.len(), split.trials.samples.len()), (24, 12));
    assert!(split.rings.samples.iter().all(|s| s.case < 4));
    assert_eq!(split.rings.plan.cases[3].link, "signal");
    assert_eq!(split.rings.failures, [failure(3)]);
    assert_eq!(split.trials.failures, [failure(1)]);
    // A sample under the number of a case of the other kind is nobody's.
    let foreign = Split::of(&plan(), &[hops(0, 0, 1), calls(1, 0), calls(9, 0)], &[]);
    assert!(foreign.rings.samples.is_empty() && foreign.trials.samples.is_empty());
}

#[test]
fn a_signals_switch_is_set_beside_the_pipes_of_its_round() {
    let record = Record::of(&run());
    assert_eq!(record.cases.len(), 6);
    let cost = |case: usize| record.ring(case).and_then(|ring| ring.ns_per_switch_above_solo);
    assert!((cost(2).unwrap().value - 2000.0).abs() < 1e-6);
    assert_eq!(record.links.iter().map(|link| link.case).collect::<Vec<_>>(), [2, 5]);
    assert_eq!(record.links[0].above_pipe_ns, None);
    let above = record.links[1].above_pipe_ns.unwrap();
    assert!((above.value - 500.0).abs() < 1e-6 && above.resolved, "{above:?}");
    assert_eq!(record.ns_per_tick, Some(0.5));
    assert_eq!(record.cases[3].trial().map(|trial| trial.rounds), Some(6));
}

#[test]
fn a_run_is_as_precise_as_its_worse_half() {
    let (plan, all) = (plan(), samples());
    // The trials are all alike, the rings are not.
    let rings = Split::of(&plan, &all, &[]).rings;
    let of_rings = Ring::worst_precision(&rings.plan, &rings.samples, &[]);
    assert!(of_rings.is_some_and(|width| width > 0.0));
    assert_eq!(Response::worst_precision(&plan, &all, &[]), of_rings);
    // Without a trial's samples, or a ring's, nothing is known of the whole.
    for case in [0, 2] {
        let lacking: Vec<_> = all.iter().filter(|s| s.case() != case).cloned().collect();
        assert_eq!(Response::worst_precision(&plan, &lacking, &[]), None);
        // One that failed is not waited for.
        assert!(Response::worst_precision(&plan, &lacking, &[failure(case)]).is_some());
    }
    let trials_failed = [failure(0), failure(3)];
    assert!(Response::worst_precision(&plan, &all, &trials_failed).is_some());
}

#[test]
fn a_ring_stays_with_its_solo_in_every_order() {
    let plan = plan();
    for round in 0..20 {
        let order = plan.order(round);
        for (one, other) in [(1, 2), (4, 5), (0, 3)] {
            let place = |case: usize| order.iter().position(|other| *other == case).unwrap();
            assert_eq!(place(one).abs_diff(place(other)), 1, "{order:?}");
        }
    }
}

#[test]
fn lines_read_back() {
    for line in samples().into_iter().map(crate::run::Line::<Response>::Sample) {
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<crate::run::Line<Response>>(&text).unwrap(), line);
    }
    let text = serde_json::to_string(&plan()).unwrap();
    assert!(text.contains(r#"{"ring":{"members":1"#), "{text}");
    assert_eq!(serde_json::from_str::<Plan<Response>>(&text).unwrap(), plan());
}
