//! Rings and trials in one run: each is judged as in a run of its own, by the CPU's speed as both
//! saw it.

use std::collections::BTreeMap;

use rundata::case::{Case, Sample};
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::placement::Placement;
use rundata::plan::{Batching, Plan};
use rundata::ring::{self, Counters, Policy};
use rundata::run::{
    Failure, Header, ProgramBuild, RUN_SCHEMA, Run, RunEnd, RunFileLine, StopReason,
};
use rundata::trial::overhead::BATCH_TICKS;
use rundata::trial::{self, Trial, TrialBatching, loops};

use super::*;
use crate::estimate::{Estimate, Speed};
use crate::interim;
use crate::record::ResponseRecord as Record;
use crate::speed;

fn ring(members: u32, link: &str) -> Case {
    Case::Ring(ring::RingCase {
        link: link.into(),
        ..ring::RingCase::of_processes(members, Placement::Same { cpu: 1 })
    })
}

fn trial(trial: Trial) -> Case {
    Case::Trial(trial::TrialCase { trial, cpu: 1, policy: Policy::Other })
}

fn calls_of(name: &str) -> Case {
    trial(Trial::Loop { call: name.into() })
}

/// Rings and trials mixed.
fn plan() -> Plan {
    Plan {
        seed: 3,
        batching: Batching {
            ring: ring::RingBatching::default(),
            trial: TrialBatching { trials: 100 },
        },
        ..Plan::from_cases(
            Experiment::Response,
            [
                calls_of(loops::GETUID),
                ring(1, "pipe"),
                ring(2, "pipe"),
                calls_of(loops::SIGNAL_SELF),
                ring(1, "handler-signal"),
                ring(2, "handler-signal"),
                trial(Trial::TwoProcesses),
            ],
        )
    }
}

pub(super) fn run() -> Run {
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
        plan: plan(),
        machine: Machine::default(),
        notices: Vec::new(),
        is_quick: false,
        session: None,
        launch: None,
    });
    run.samples = samples();
    run.end = Some(RunEnd { reason: StopReason::RoundsDone, finished: nothing(), spent_ns: 1 });
    run
}

/// A hop of so many nanoseconds, a switch in each hop of a ring of two.
fn hops(case: usize, round: u32, ns: u64) -> Sample {
    let switches = if [2, 5].contains(&case) { 1000 } else { 0 };
    Sample::from(ring::RingSample {
        case,
        round,
        laps: 1000,
        hops: 1000,
        elapsed_ns: 1000 * ns,
        counters: Counters { voluntary: switches, cpu_ns: 1000 * ns, ..Counters::default() },
        steal_ns: Some(0),
        ..ring::RingSample::default()
    })
}

/// A hundred calls of so many nanoseconds each, two ticks to one; `empty` turns of the empty loop.
fn calls(case: usize, round: u32, ns: i64, empty: Option<i64>, counts: &[(&str, i64)]) -> Sample {
    let batch = |ns: i64| [200 * ns].into_iter().collect();
    let full = ns + empty.unwrap_or(0);
    let mut tallies = BTreeMap::from([(trial::overhead::BATCH_TICKS.to_string(), batch(full))]);
    tallies.extend(empty.map(|ns| (loops::EMPTY_BATCH_TICKS.to_string(), batch(ns))));
    Sample::Trial(trial::TrialSample {
        case,
        round,
        elapsed_ns: 10_000,
        elapsed_ticks: Some(20_000),
        gaps: Vec::new(),
        sliced: Vec::new(),
        tallies,
        counts: counts.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
        steal_ns: Some(0),
    })
}

/// Six rounds that drift by 100 ns each. A switch by pipe is 2000 ns, one by handler-signal 2500.
/// The loops are the 80186's, nanoseconds for its microseconds, and drift so that only within a
/// round what its formulas make of them stays the same.
fn samples() -> Vec<Sample> {
    let round = |round: u32| {
        let (drift, signed) = (100 * u64::from(round), 100 * i64::from(round));
        // The ticks of a round are all of one kind; over rounds a half, a third are user.
        let user = |per_round: i64, of: i64| if signed % (100 * of) < 100 { per_round } else { 0 };
        let own = [
            (loops::CPU_NS, 400),
            (loops::SAMPLED_NS, 1000),
            (loops::SAMPLED_USER_NS, user(1000, 2)),
        ];
        let both = [
            (loops::CPU_NS, 400),
            (loops::SAMPLED_NS, 1000),
            (loops::SAMPLED_USER_NS, user(1000, 2)),
            (loops::CHILD_CPU_NS, 600),
            (loops::CHILD_SAMPLED_NS, 1000),
            (loops::CHILD_SAMPLED_USER_NS, user(1000, 3)),
            (loops::CALLS, 2000),
            (loops::LOOP_SWITCHES, 4002),
        ];
        let entries = [(loops::KERNEL_ENTRIES, 300), (loops::ENTERED_CALLS, 100)];
        [
            calls(0, round, 360 + signed, Some(10), &own),
            hops(1, round, 1000 + drift),
            hops(2, round, 3000 + drift),
            calls(3, round, 1200 + 3 * signed, Some(10), &entries),
            hops(4, round, 1500 + drift),
            hops(5, round, 4000 + drift),
            calls(6, round, 5400 + 6 * signed, None, &both),
        ]
    };
    (0..6).flat_map(round).collect()
}

fn failure(case: usize) -> Failure {
    Failure { case, round: 0, message: "no".into() }
}

/// A sample under the number of a case of the other kind is nobody's.
#[test]
fn foreign_samples_are_passed_over() {
    let mut text = String::new();
    let whole = run();
    let lines = [
        RunFileLine::Header(Box::new(whole.header.clone())),
        RunFileLine::Sample(hops(0, 0, 1)),
        RunFileLine::Sample(calls(1, 0, 1, None, &[])),
        RunFileLine::Sample(calls(9, 0, 1, None, &[])),
        RunFileLine::Sample(hops(1, 0, 1)),
    ];
    for line in lines {
        text += &line.to_text(Experiment::Response).unwrap();
        text.push('\n');
    }
    let read = Run::parse(&text).unwrap();
    assert_eq!((read.header, read.samples), (whole.header, vec![hops(1, 0, 1)]));
    assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
}

/// The streams of a ring's resampling are those of its place among the rings of its plan.
#[test]
fn a_rings_figures_are_those_of_a_run_of_rings_alone() {
    let mixed = Record::from_run(&run());
    let mut alone = run();
    let rings = [1, 2, 4, 5];
    alone.header.plan.experiment = Experiment::Ring;
    alone.header.plan.cases = rings.map(|case| plan().cases[case].clone()).to_vec();
    alone.samples = samples()
        .into_iter()
        .filter_map(|sample| {
            let place = rings.iter().position(|case| *case == sample.case())?;
            Some(sample.with_case(place))
        })
        .collect();
    let alone = crate::record::RingRecord::from_run(&alone);
    let of_mixed: Vec<_> = mixed.cases.iter().filter_map(ResponseSummary::ring).cloned().collect();
    assert_eq!(of_mixed, alone.cases);
}

#[test]
fn a_signals_switch_is_set_beside_the_pipes_of_its_round() {
    let record = Record::from_run(&run());
    assert_eq!(record.cases.len(), 7);
    let cost = |case: usize| record.ring(case).and_then(|ring| ring.ns_per_switch_above_solo);
    assert!((cost(2).unwrap().value - 2000.0).abs() < 1e-6);
    assert_eq!(record.found.links.iter().map(|link| link.case).collect::<Vec<_>>(), [2, 5]);
    assert_eq!(record.found.links[0].above_pipe_ns, None);
    let above = record.found.links[1].above_pipe_ns.unwrap();
    assert!((above.value - 500.0).abs() < 1e-6 && above.resolved, "{above:?}");
    assert_eq!(record.found.ns_per_tick, Some(0.5));
    assert_eq!(record.cases[3].trial().map(|trial| trial.rounds), Some(6));
}

fn exactly(estimate: Option<Estimate>, value: f64) -> bool {
    let estimate = estimate.expect("an estimate");
    let ends = [Some(estimate.value), estimate.low, estimate.high];
    ends.into_iter().all(|end| end.is_some_and(|end| (end - value).abs() < 1e-6))
}

#[test]
fn calls_cost_what_they_take_above_the_empty_loop() {
    let record = Record::from_run(&run());
    assert_eq!(record.found.loops.iter().map(|cost| cost.case).collect::<Vec<_>>(), [0, 3]);
    let [getuid, signal] = &record.found.loops[..] else { panic!("two loops") };
    // The middle of 360 to 860 and twice that in ticks.
    assert!((getuid.ns.unwrap().value - 610.0).abs() < 1e-6, "{getuid:?}");
    assert!((getuid.ticks.unwrap().value - 1220.0).abs() < 1e-6);
    assert!(exactly(getuid.empty_loop_ns, 10.0));
    assert_eq!((getuid.kernel_entries, signal.kernel_entries), (None, Some(3.0)));
    // An empty loop that took longer than the calls leaves less than nothing.
    let mut run = run();
    run.samples = (0..6).map(|round| calls(0, round, -3, Some(10), &[])).collect();
    assert!(exactly(Record::from_run(&run).found.loops[0].ns, -3.0));
}

#[test]
fn the_80186_has_its_printed_figures_whatever_drifts() {
    let signals = Record::from_run(&run()).found.signals.expect("signals");
    assert!(exactly(signals.kernel_processing_ns, 120.0));
    assert!(exactly(signals.context_switch_ns, 1500.0));
    assert!((signals.interrupt_latency_ns.unwrap().value - 152.5).abs() < 1e-6);
    assert_eq!(signals.switches_per_loop, Some(2.001));
    // 1500 by the formula, 2000 and 2500 by the rings.
    assert!(exactly(signals.above_pipe_ns, -500.0));
    assert!(exactly(signals.above_handler_signal_ns, -1000.0));
    let says = |words: &str| signals.in_words.iter().any(|line| line.contains(words));
    assert!(says("by pipe disagree: -500 ns"), "{:?}", signals.in_words);
    assert!(
        says("subtracts too much") && !says("the pause that each signal ends"),
        "{:?}",
        signals.in_words
    );
    let [getuid, two] = &signals.accounts[..] else { panic!("{:?}", signals.accounts) };
    assert_eq!((getuid.case, two.case, two.total_ns), (0, 6, 6000));
    assert_eq!((getuid.system_percent, getuid.child_user_percent), (50.0, 0.0));
    assert_eq!((getuid.sampled_ns, two.sampled_ns), (6000, 12_000));
    assert_eq!((two.system_percent, two.user_percent), (20.0, 20.0));
    assert!((two.child_system_percent - 40.0).abs() < 1e-9, "{two:?}");
    assert!((two.child_user_percent - 20.0).abs() < 1e-9, "{two:?}");
}

/// The same run in slices, of which those up to `clean` are clean and the others 1.4 times as dear;
/// ten rounds of it.
fn in_slices(rings_clean: u64, trials_clean: u64) -> Run {
    let mut run = run();
    let rounds = (0..10).flat_map(|round| {
        let of_round = run.samples.iter().filter(move |sample| sample.round() == round % 6);
        of_round.cloned().map(move |mut sample| {
            match &mut sample {
                Sample::Ring(sample) => sample.round = round,
                Sample::Trial(sample) => sample.round = round,
            }
            sample
        })
    });
    run.samples = rounds
        .map(|sample| match sample {
            Sample::Ring(mut sample) => {
                let is_pair = [2, 5].contains(&sample.case);
                sample.laps = sample.hops / if is_pair { 2 } else { 1 };
                let mut cut = speed::cut(*sample, 10, |index| index < rings_clean);
                let times = &mut cut.slices.as_mut().unwrap().elapsed_ns;
                times.iter_mut().skip(rings_clean as usize).for_each(|ns| *ns = *ns * 14 / 10);
                cut.elapsed_ns = times.iter().sum();
                Sample::from(cut)
            }
            Sample::Trial(mut sample) => {
                let mut slices = speed::around(10, 1, |index| index < trials_clean);
                slices.elapsed_ns = vec![1_000_000; 10];
                let of = |(name, tally): (String, trial::Tally)| {
                    let batch = tally.min().unwrap();
                    let slice = |index: u64| match index < trials_clean {
                        true => [batch].into_iter().collect(),
                        false => [batch * 14 / 10].into_iter().collect(),
                    };
                    (name, (0..10).map(slice).collect())
                };
                let tallies = std::mem::take(&mut sample.tallies).into_iter().map(of).collect();
                sample.sliced = vec![trial::SlicedTallies { slices, tallies }];
                Sample::Trial(sample)
            }
        })
        .collect();
    run
}

#[test]
fn the_formulas_are_of_clean_slices_where_all_their_parts_are() {
    let record = Record::from_run(&in_slices(4, 5));
    let signals = record.found.signals.expect("signals");
    let full = |estimate: Option<Estimate>, value: f64| {
        let estimate = estimate.expect("an estimate");
        assert!((estimate.value - value).abs() < 1e-6, "{estimate:?}");
        assert_eq!((estimate.speed, estimate.rounds), (Speed::Full, 10));
        assert!(estimate.interval().is_some(), "{estimate:?}");
    };
    full(signals.kernel_processing_ns, 120.0);
    full(signals.context_switch_ns, 1500.0);
    full(signals.above_pipe_ns, -500.0);
    full(record.found.loops[0].empty_loop_ns, 10.0);
    let lacking = |run: &Run| interim::cases_without_full_speed(&run.header.plan, &run.samples);
    assert!(lacking(&in_slices(4, 5)).is_empty());
    // 20 clean slices of each trial: what rests on trials is as the core was, what on rings alone is not.
    let few = in_slices(5, 2);
    assert_eq!(lacking(&few), [0, 3, 6]);
    let record = Record::from_run(&few);
    let signals = record.found.signals.as_ref().expect("signals");
    let of_trials = [signals.system_call_ns, signals.context_switch_ns, signals.above_pipe_ns];
    for estimate in of_trials.map(|of| of.expect("an estimate")) {
        assert_eq!(estimate.speed, Speed::Contended);
        assert!(estimate.interval().is_some() && estimate.quote().is_err(), "{estimate:?}");
    }
    let switch = record.ring(2).and_then(|ring| ring.ns_per_switch_above_solo);
    assert_eq!(switch.map(|of| of.speed), Some(Speed::Full));
    assert_eq!(record.worst_precision, None);
}

/// Rings and trials of one run have the cycles of one clock: 21,600 a quantum of 5,860 ns.
#[test]
fn both_halves_have_cycles_where_they_were_at_full_speed() {
    let record_of = |rings_clean: u64, trials_clean: u64| {
        let mut run = in_slices(rings_clean, trials_clean);
        run.header.build.target = "x86_64-unknown-linux-gnu".to_string();
        Record::from_run(&run)
    };
    let record = record_of(4, 5);
    let ring = record.ring(2).expect("a ring of two");
    let clock_ghz = ring.clock_ghz.expect("a clock");
    assert!((clock_ghz - 21_600.0 / 5860.0).abs() < 1e-9, "{clock_ghz} GHz");
    let same = |cycles: Option<Estimate>, ns: Option<Estimate>| {
        let (cycles, ns) = (cycles.expect("cycles").value, ns.expect("a time").value);
        assert!((cycles / (ns * clock_ghz) - 1.0).abs() < 1e-9, "{cycles} cycles of {ns} ns");
    };
    same(ring.cycles_per_switch, ring.ns_per_switch_above_solo);
    same(ring.cycles_per_hop(), ring.ns_per_hop);
    let call = record.trial(0).expect("a call");
    assert_eq!(call.clock_ghz, Some(clock_ghz));
    same(call.cycles, record.found.loops[0].ns);
    // 20 clean slices of each trial are too few.
    let few = record_of(5, 2);
    assert!(few.ring(2).is_some_and(|ring| ring.cycles_per_switch.is_some()));
    let call = few.trial(0).expect("a call");
    assert_eq!((call.clock_ghz, call.cycles), (None, None));
}

/// Trials that never had the core to themselves must not be called clean: the rings know better.
#[test]
fn both_halves_are_judged_by_the_level_that_their_quanta_share() {
    let run = in_slices(10, 0);
    assert_eq!(interim::cases_without_full_speed(&run.header.plan, &run.samples), [0, 3, 6]);
    let levels = speed::levels(&run.header.plan, &run.samples);
    let [level] = levels.values().collect::<Vec<_>>()[..] else { panic!("{levels:?}") };
    assert!((0.3..0.7).contains(&level.unshared_share), "{level:?}");
    let system_call =
        Record::from_run(&run).found.signals.and_then(|signals| signals.system_call_ns);
    assert_eq!(system_call.map(|of| of.speed), Some(Speed::Contended));
}

#[test]
fn a_more_expensive_switch_by_signals_has_its_reason_and_time_without_ticks_no_split() {
    let mut run = run();
    for sample in &mut run.samples {
        if let Sample::Trial(sample) = sample {
            // A loop of two that takes 4 us longer: 3500 by the formula.
            if sample.case == 6 {
                let longer = sample.tallies[BATCH_TICKS].shifted(4000 * 2 * 100);
                sample.tallies.insert(BATCH_TICKS.into(), longer);
            }
            sample.counts.remove(loops::SAMPLED_NS);
        }
    }
    let signals = Record::from_run(&run).found.signals.expect("signals");
    assert!(exactly(signals.above_pipe_ns, 1500.0), "{:?}", signals.above_pipe_ns);
    let says = |words: &str| signals.in_words.iter().any(|line| line.contains(words));
    assert!(
        says("the pause that each signal ends") && !says("subtracts too much"),
        "{:?}",
        signals.in_words
    );
    assert!(signals.accounts.is_empty(), "{:?}", signals.accounts);
}

#[test]
fn a_formula_without_its_parts_has_no_answer() {
    let mut run = run();
    // Getuid is lacking in every round, two processes ran in others than the signal.
    run.samples.retain(|sample| sample.case() != 0);
    run.samples.retain(|sample| (sample.case() == 6) == (sample.round() > 2));
    let signals = Record::from_run(&run).found.signals.expect("signals");
    assert!(signals.signal_ns.is_some() && signals.two_process_loop_ns.is_some());
    assert_eq!((signals.kernel_processing_ns, signals.context_switch_ns), (None, None));
    assert_eq!((signals.system_call_ns, signals.above_pipe_ns), (None, None));
    run.samples.retain(|sample| [1, 2].contains(&sample.case()));
    let signals = Record::from_run(&run).found.signals.expect("it was planned");
    assert!(signals.accounts.is_empty() && signals.switches_per_loop.is_none());
}

#[test]
fn a_run_is_as_precise_as_its_worse_half() {
    let (plan, all) = (plan(), samples());
    let trials_failed = [0, 3, 6].map(failure);
    let rings_failed = [1, 2, 4, 5].map(failure);
    let of_rings = interim::worst_precision(&plan, &all, &trials_failed).unwrap();
    let of_trials = interim::worst_precision(&plan, &all, &rings_failed).unwrap();
    assert!(of_trials > of_rings && of_rings > 0.0, "{of_trials} {of_rings}");
    assert_eq!(interim::worst_precision(&plan, &all, &[]), Some(of_trials));
    // Without a trial's samples, or a ring's, nothing is known of the whole.
    for case in [0, 2] {
        let lacking: Vec<_> = all.iter().filter(|s| s.case() != case).cloned().collect();
        assert_eq!(interim::worst_precision(&plan, &lacking, &[]), None);
        // One that failed is not waited for.
        assert!(interim::worst_precision(&plan, &lacking, &[failure(case)]).is_some());
    }
    assert_eq!(
        interim::worst_precision(&plan, &all, &[&trials_failed[..], &rings_failed].concat()),
        None
    );
}

#[test]
fn a_ring_stays_with_its_solo_in_every_order() {
    let plan = plan();
    for round in 0..20 {
        let order = plan.order(round);
        let place = |case: usize| order.iter().position(|other| *other == case).unwrap();
        for (ring, solo) in [(1, 2), (4, 5)] {
            assert_eq!(place(ring).abs_diff(place(solo)), 1, "{order:?}");
        }
        // What the formulas need, too.
        let trials = [0, 3, 6].map(place);
        let (first, last) = (trials.iter().min().unwrap(), trials.iter().max().unwrap());
        assert_eq!(last - first, 2, "{order:?}");
    }
}

#[test]
fn lines_read_back() {
    for line in samples().into_iter().map(RunFileLine::Sample) {
        let text = line.to_text(Experiment::Response).unwrap();
        assert!(
            text.starts_with(r#"{"sample":{"ring":"#) || text.starts_with(r#"{"sample":{"trial":"#)
        );
        assert_eq!(RunFileLine::from_text(&text, Experiment::Response).unwrap(), line);
    }
    let text = serde_json::to_string(&plan()).unwrap();
    assert!(text.contains(r#"{"ring":{"members":1"#), "{text}");
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan());
}
