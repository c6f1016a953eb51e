//! Known answers: hops that are chosen, and the parts that they must become.

use std::collections::BTreeMap;

use cdflib::{ContinuousCdf, Normal};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::case::{Case as AnyCase, Sample};
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::placement::Placement;
use rundata::ring::{self, Burden, Counters, Policy};
use rundata::run::{Header, ProgramBuild, RUN_SCHEMA, Run, RunEnd, StopReason};
use rundata::trial::loops::EMPTY_BATCH_TICKS;
use rundata::trial::overhead::BATCH_TICKS;
use rundata::trial::wakeup::LATE_NS;
use rundata::trial::{self, Trial};
use stats::student_quantile;

use super::*;
use crate::comparison::{
    ChangeAnswer, ComparedSetting, Comparison, ComparisonTerms, LIMIT, WantedCost,
};
use crate::estimate::Speed;
use crate::record::ExplainRecord;
use crate::results::Results;
use crate::speed::cut;

const ROUNDS: u32 = 25;
const SLICES: u64 = 20;
/// A call that does nothing, in nanoseconds.
const CALL_NS: i64 = 100;

fn ring(members: u32, link: &str, kind: MemberKind) -> RingCase {
    let link = link.to_string();
    RingCase { link, kind, ..RingCase::of_processes(members, Placement::Same { cpu: 1 }) }
}

/// The chain of two processes, each ring with what a hop of it takes in nanoseconds.
fn chain() -> Vec<(RingCase, f64)> {
    use MemberKind::{Process, Thread};
    vec![
        (ring(2, PIPE, Process), 1470.0),
        (ring(1, PIPE, Process), 600.0),
        (ring(1, YIELD, Thread), 50.0),
        (ring(2, YIELD, Thread), 350.0),
        (ring(1, EVENTFD, Thread), 500.0),
        (ring(2, EVENTFD, Thread), 1100.0),
        (ring(2, YIELD, Process), 450.0),
    ]
}

/// What they are: two calls of 100, a pipe of 600 less these, a switch of 300 less its call, 100
/// more between processes, 600 less the switch.
const PARTS: [(PartName, f64); 5] = [
    (PartName::SystemCalls, 200.0),
    (PartName::Link, 400.0),
    (PartName::Scheduler, 200.0),
    (PartName::AddressSpace, 100.0),
    (PartName::Waking, 400.0),
];
const REST: f64 = 170.0;

/// A worker's sample, in slices on an unshared core.
fn sample(
    (case, round): (usize, u32),
    of: &RingCase,
    hop_ns: f64,
    switches_per_hop: u64,
) -> Sample {
    let laps = 100 * SLICES;
    let hops = laps * u64::from(of.members);
    let switches = if of.members > 1 { hops * switches_per_hop } else { 0 };
    let elapsed_ns = (hop_ns * hops as f64) as u64;
    let plain = ring::RingSample {
        case,
        round,
        laps,
        hops,
        elapsed_ns,
        counters: Counters { voluntary: switches, cpu_ns: elapsed_ns, ..Counters::default() },
        steal_ns: Some(0),
        ..ring::RingSample::default()
    };
    Sample::from(cut(plain, SLICES, |_| true))
}

/// A hundred calls, two ticks to a nanosecond.
fn calls(case: usize, round: u32) -> Sample {
    let batch = |ns: i64| [200 * ns].into_iter().collect();
    Sample::Trial(trial::TrialSample {
        case,
        round,
        elapsed_ns: 10_000,
        elapsed_ticks: Some(20_000),
        gaps: Vec::new(),
        sliced: Vec::new(),
        tallies: BTreeMap::from([
            (BATCH_TICKS.to_string(), batch(CALL_NS + 10)),
            (EMPTY_BATCH_TICKS.to_string(), batch(10)),
        ]),
        counts: BTreeMap::new(),
        steal_ns: Some(0),
    })
}

/// A run of these rings and of calls. `hop_ns` is asked for each hop of each round.
fn run_of(rings: &[(RingCase, f64)], mut hop_ns: impl FnMut(usize, f64) -> f64) -> Run {
    let call = Trial::Loop { call: GETUID.to_string() };
    let call = trial::TrialCase { trial: call, cpu: 1, policy: Policy::Other };
    let cases = rings.iter().map(|(of, _)| AnyCase::Ring(of.clone()));
    let plan = Plan::from_cases(Experiment::Explain, cases.chain([AnyCase::Trial(call)]));
    let nothing = String::new;
    let build =
        ProgramBuild { version: nothing(), commit: None, profile: nothing(), target: nothing() };
    let mut run = Run::new(Header {
        schema: RUN_SCHEMA,
        run: "made-up".to_string(),
        started: nothing(),
        invocation: Vec::new(),
        name: None,
        host: None,
        build,
        plan,
        machine: Machine::default(),
        notices: Vec::new(),
        is_quick: false,
        session: None,
        launch: None,
    });
    for round in 0..ROUNDS {
        for (number, (of, ns)) in rings.iter().enumerate() {
            run.samples.push(sample((number, round), of, hop_ns(number, *ns), 1));
        }
        run.samples.push(calls(rings.len(), round));
    }
    run.end = Some(RunEnd { reason: StopReason::RoundsDone, finished: nothing(), spent_ns: 1 });
    run
}

fn found(run: &Run) -> ExplainedSwitch {
    ExplainRecord::from_run(run).found.explained.expect("a ring of two by pipe")
}

fn exact() -> Run {
    run_of(&chain(), |_, ns| ns)
}

fn part(of: &ExplainedSwitch, name: PartName) -> Estimate {
    let part = of.parts.iter().chain(&of.added).find(|of| of.part == name);
    part.unwrap_or_else(|| panic!("no {name}")).ns.unwrap_or_else(|| panic!("no figure of {name}"))
}

fn near(of: Option<Estimate>, wanted: f64) -> bool {
    of.is_some_and(|of| (of.value - wanted).abs() < 0.01)
}

#[test]
fn the_parts_are_the_differences_and_add_up_with_the_rest_to_the_whole() {
    let found = found(&exact());
    assert_eq!(found.parts.len(), PARTS.len());
    for (of, (name, ns)) in found.parts.iter().zip(PARTS) {
        assert_eq!(of.part, name);
        assert!(near(of.ns, ns), "{of:?}");
    }
    assert!(near(found.whole_ns, 1470.0) && near(found.above_solo_ns, 870.0));
    assert!(near(found.sum_ns, 1300.0) && near(found.rest_ns, REST), "{found:?}");
    // The whole and the rest are of clean slices alone; no call is left in the rest.
    assert_eq!(found.rest_ns.map(|of| of.speed), Some(Speed::Full));
    assert!(found.added.is_empty());
}

/// Rounds that do not scatter: what is left is 1 % of each hop between launches. Of the rest these
/// are the hops of all rings but those by which the scheduler's switch cancels out.
#[test]
fn the_interval_has_the_scatter_of_each_hop() {
    let found = found(&exact());
    let t = student_quantile(0.95, f64::from(ROUNDS) - 1.0).unwrap();
    let half = |of: Option<Estimate>| of.unwrap().interval().unwrap().half_width();
    let wanted = |hops: &[f64]| t * 0.01 * hops.iter().map(|ns| ns * ns).sum::<f64>().sqrt();
    let is = |one: f64, other: f64| (one / other - 1.0).abs() < 0.01;
    assert!(is(half(found.whole_ns), wanted(&[1470.0])), "{found:?}");
    let space = Some(part(&found, PartName::AddressSpace));
    assert!(is(half(space), wanted(&[450.0, 350.0])), "{space:?}");
    let rest = wanted(&[1470.0, 600.0, 450.0, 1100.0, 500.0, 350.0]);
    assert!(is(half(found.rest_ns), rest), "{:?} is not {rest}", found.rest_ns);
}

#[test]
fn a_switch_is_a_counted_one() {
    let mut run = exact();
    for one in &mut run.samples {
        let Sample::Ring(of) = one else { continue };
        // Two switches a hop of the ring by yield of two threads.
        of.counters.voluntary *= if of.case == 3 { 2 } else { 1 };
    }
    // (350 - 50) / 2 less the call.
    assert!(near(Some(part(&found(&run), PartName::Scheduler)), 50.0));
}

#[test]
fn threads_do_not_change_the_address_space() {
    let mut rings = chain();
    rings.truncate(6);
    rings[0].0.kind = MemberKind::Thread;
    rings[1].0.kind = MemberKind::Thread;
    let found = found(&run_of(&rings, |_, ns| ns));
    assert!(found.parts.iter().all(|of| of.part != PartName::AddressSpace));
    assert!(near(found.sum_ns, 1200.0) && near(found.rest_ns, REST + 100.0));
}

#[test]
fn a_part_that_was_not_measured_leaves_sum_and_rest_open() {
    let mut run = exact();
    run.samples.retain(|of| of.case() != 6);
    let found = found(&run);
    let space = found.parts.iter().find(|of| of.part == PartName::AddressSpace).unwrap();
    assert_eq!((space.ns, found.sum_ns, found.rest_ns), (None, None, None));
    assert!(near(found.whole_ns, 1470.0) && near(Some(part(&found, PartName::Waking)), 400.0));
}

/// Where a hop was watched and had no clean slices, nothing that it is in may be quoted.
#[test]
fn what_is_not_at_full_speed_is_not_quoted() {
    let mut run = exact();
    for one in &mut run.samples {
        let Sample::Ring(of) = one else { continue };
        if let Some(slices) = of.slices.as_mut().filter(|_| of.case == 6) {
            slices.throughput_ns.iter_mut().for_each(|ns| *ns = *ns * 14 / 10);
        }
    }
    let found = found(&run);
    assert!(part(&found, PartName::AddressSpace).quote().is_err(), "{found:?}");
    assert!(found.rest_ns.unwrap().quote().is_err() && found.sum_ns.unwrap().quote().is_err());
    assert!(found.whole_ns.unwrap().quote().is_ok());
}

#[test]
fn what_would_add_to_it_is_the_ring_with_one_thing_more() {
    let mut rings = chain();
    let whole = rings[0].0.clone();
    let with = |burden| RingCase { burden: Some(burden), ..whole.clone() };
    let placement = Placement::Pinned { cpus: vec![1, 0], relation: None };
    let elsewhere = RingCase { placement, ..whole.clone() };
    let busy = RingCase { burden: Some(Burden::Busy), ..elsewhere.clone() };
    let state = |members, state| RingCase { members, state: Some(state), ..whole.clone() };
    rings.extend([
        (with(Burden::Seccomp), 1500.0),
        (with(Burden::Cgroup4), 1590.0),
        (elsewhere, 9470.0),
        (busy, 5470.0),
        (state(1, RegisterState::None), 600.0),
        (state(2, RegisterState::None), 1470.0),
        (state(1, RegisterState::Avx512), 610.0),
        (state(2, RegisterState::Avx512), 1530.0),
        (ring(MANY, YIELD, MemberKind::Thread), 410.0),
    ]);
    let found = found(&run_of(&rings, |_, ns| ns));
    let wanted = [
        (PartName::Runnable, 60.0),
        (PartName::Avx512, 50.0),
        (PartName::Seccomp, 30.0),
        (PartName::Cgroup4, 120.0),
        (PartName::OtherCpu, 8000.0),
        (PartName::OtherCpuBusy, 4000.0),
    ];
    let names: Vec<PartName> = found.added.iter().map(|of| of.part).collect();
    assert_eq!(names, wanted.map(|(name, _)| name));
    for (of, (name, ns)) in found.added.iter().zip(wanted) {
        assert!((of.ns.unwrap().value / ns - 1.0).abs() < 0.01, "{name}: {of:?}");
    }
    // They share the scatter of their ring, so that a small one is seen.
    assert!(part(&found, PartName::Seccomp).quote_cost().is_ok());
    assert!(near(found.rest_ns, REST), "none of it is in the chain");
}

/// Medians of 60 us with the least slack, 110 with that of applications, 45 without idle states.
#[test]
fn sleepers_tell_what_slack_and_idle_states_add() {
    let mut run = exact();
    let plain = Wakeup::plain(3, 500_000, 1);
    let by_default = Wakeup { timer_slack_ns: DEFAULT_SLACK_NS, ..plain };
    let awake = Wakeup { cpu_latency_us: Some(0), ..plain };
    for (of, late_ns) in [(plain, 60_000), (by_default, 110_000), (awake, 45_000)] {
        let case = run.header.plan.cases.len();
        let of = trial::TrialCase { trial: Trial::Wakeup(of), cpu: 1, policy: Policy::Other };
        run.header.plan.cases.push(AnyCase::Trial(of));
        for round in 0..ROUNDS {
            let late = [late_ns - 10, late_ns, late_ns + 10_000].into_iter().collect();
            let Sample::Trial(call) = calls(case, round) else { panic!("a trial") };
            let tallies = BTreeMap::from([(LATE_NS.to_string(), late)]);
            run.samples.push(Sample::Trial(trial::TrialSample { tallies, ..call }));
        }
    }
    let found = found(&run);
    assert!(near(Some(part(&found, PartName::LeavingIdle)), 15_000.0), "{:?}", found.added);
    assert!(near(Some(part(&found, PartName::TimerSlack)), 50_000.0), "{:?}", found.added);
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0)).unwrap()
}

/// A launch: each ring is off by 1 % for all of it, and rounds scatter by 0.6 % and drift, each as
/// the one before (a correlation of one half).
fn launch(seed: u64) -> Run {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rings = chain();
    let levels: Vec<f64> = rings.iter().map(|_| (0.01 * normal(&mut rng)).exp()).collect();
    let mut drifts = vec![0.0; rings.len()];
    run_of(&rings, |number, ns| {
        let drift = &mut drifts[number];
        *drift = 0.5 * *drift + 0.75_f64.sqrt() * normal(&mut rng);
        ns * levels[number] * (0.006 * *drift).exp()
    })
}

#[test]
fn twice_a_hop_has_twice_its_error() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let run = run_of(&chain(), |_, ns| ns * (0.1 * normal(&mut rng)).exp());
    let table = Table::new(&run.header.plan, &run.samples);
    let times = |factor: f64| {
        let sum = HopSum::hop(0).times(factor);
        table.sum_of_hops(&sum, LaunchScatter::Independent, None, 1).unwrap()
    };
    let (once, twice) = (times(1.0), times(2.0));
    assert_eq!(once.speed, Speed::Full);
    assert!((twice.value / once.value - 2.0).abs() < 1e-9, "{once:?} {twice:?}");
    let errors = [once, twice].map(|estimate| estimate.standard_error.unwrap());
    assert!((errors[1] / errors[0] - 2.0).abs() < 1e-9, "{once:?} {twice:?}");
}

/// What is promised of each interval: it holds the truth in 95 of 100 launches.
#[test]
fn intervals_of_whole_parts_and_rest_hold_where_noise_is_dependent() {
    let (launches, off) = testing::repeats((80, 6.0), (1000, 2.0));
    let truths = [1470.0, 100.0, REST, 870.0];
    let mut held = [0; 4];
    for seed in 0..launches {
        let found = found(&launch(1000 + seed));
        let space = part(&found, PartName::AddressSpace);
        let all = [found.whole_ns, Some(space), found.rest_ns, found.above_solo_ns];
        for ((of, truth), held) in all.into_iter().zip(truths).zip(&mut held) {
            let ends = of.and_then(|of| of.interval()).expect("an interval");
            *held += u64::from(ends.low <= truth && truth <= ends.high);
        }
        let sum = found.sum_ns.unwrap().value + found.rest_ns.unwrap().value;
        assert!((sum - found.whole_ns.unwrap().value).abs() < 1e-6);
    }
    let share = |held: u64| 100.0 * held as f64 / launches as f64;
    println!("held: {:?} %", held.map(share));
    // The cost above solo, of one ring, is taken to scatter as a whole.
    for held in &held[..3] {
        assert!((share(*held) - 95.0).abs() <= off, "{:.1} %", share(*held));
    }
}

/// Of two kernels of which one takes longer to change the address space.
#[test]
fn a_comparison_names_the_part_that_changed() {
    let mut dearer = chain();
    dearer[0].1 += 100.0;
    dearer[6].1 += 100.0;
    let runs = [exact(), run_of(&dearer, |_, ns| ns)];
    let [base, new] = runs.each_ref().map(Results::from_run);
    let across: Option<ComparedSetting> = None;
    let terms =
        ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted: WantedCost::Switch, across };
    let found = Comparison::from_results(&base, &new, terms);
    let changed =
        |answer: &ChangeAnswer| matches!(answer, ChangeAnswer::Changed { worse: true, .. });
    let titles: Vec<&str> =
        found.changes.iter().filter(|of| changed(&of.answer)).map(|of| of.title.as_str()).collect();
    assert_eq!(titles, ["whole", "address space"], "{:?}", found.in_words);
    // Only parts are compared, the whole and the rest among them.
    assert_eq!(found.changes.len(), PARTS.len() + 2);
    assert!(
        found.in_words.starts_with("Address space: 100 ns to 200 ns, changed: "),
        "{}",
        found.in_words
    );
}
