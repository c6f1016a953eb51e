//! Runs with chosen costs.

use charts::Figure;
use model::experiment::Experiment;
use model::machine::{Cache, CacheKind};
use model::plan::Plan;
use model::reading::Reading;
use model::record::Record;
use model::ring::{Case, Counters, Kind, Placement, Policy, Sample, Work};
use model::run::Run;

/// A run of another time: header, machine and all that is not replaced.
pub(super) fn fixture() -> Run {
    Run::parse(include_str!("../../../../model/tests/fixtures/run-v1.jsonl")).unwrap()
}

pub(super) fn figures(run: &Run) -> Vec<Figure> {
    crate::figures::of_rings(run, &Record::of(run), 0)
}

pub(super) fn case(members: u32, work: Option<Work>) -> Case {
    Case {
        members,
        kind: Kind::Process,
        link: "pipe".into(),
        work,
        placement: Placement::Same { cpu: 1 },
        policy: Policy::Other,
        priority: None,
        state: None,
    }
}

/// Eight rounds in which a hop alone costs 1000 ns, and a switch what `cost` says, scattered by up to
/// 0.9 %; there is one switch a hop, and all time is CPU time.
pub(super) fn run(experiment: Experiment, cases: Vec<Case>, cost: impl Fn(&Case) -> u64) -> Run {
    let mut run = fixture();
    let cases = cases.into_iter().map(Into::into).collect();
    let plan = Plan { experiment, cases, ..run.header.plan };
    let plan = plan.with_solos();
    let one = |round: u32, index: usize| {
        let case = plan.ring(index).unwrap();
        let alone = case.members == 1;
        let hops = 1000 * u64::from(case.members);
        let scatter = 1000 + [0, 7, 3, 9, 5, 1, 8, 2][(round as usize + index) % 8];
        let above = if alone { 0 } else { cost(case) * scatter / 1000 };
        let elapsed_ns = hops * (1000 + above);
        let switches = if alone { 0 } else { hops };
        Sample {
            case: index,
            round,
            sample: 0,
            laps: 1000,
            hops,
            elapsed_ns,
            counters: Counters { voluntary: switches, cpu_ns: elapsed_ns, ..Counters::default() },
            steal_ns: None,
            setup_ns: 0,
            slices: None,
            triples: None,
            huge_page_bytes: None,
        }
    };
    let rounds = (0..8).flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)));
    run.samples = rounds.map(|(round, case)| one(round, case).into()).collect();
    run.header.plan = plan;
    run.header.machine.cpu.caches = Reading::Known(vec![cache(1, 32), cache(2, 512)]);
    run
}

fn cache(level: u32, kib: u64) -> Cache {
    Cache {
        of_cpu: 1,
        level: Reading::Known(level),
        kind: Reading::Known(CacheKind::Unified),
        size_bytes: Reading::Known(kib * 1024),
        line_bytes: Reading::Known(64),
        ..Cache::default()
    }
}
