//! Known answers of every experiment on made-up samples, whole and in slices, and the run file of
//! trials.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::{Batching, Plan};
use rundata::ring::{Policy, Slices};
use rundata::run::{Header, ProgramBuild, RUN_SCHEMA, Run, RunFileLine};
use rundata::trial::sampling::{SleepPhase, count_name};
use rundata::trial::{
    SlicedTallies, Trial, TrialBatching, TrialSample, loops, malloc, overhead, primes,
};
use stats::median;
use testing::repeats;

use super::*;
use crate::estimate::Speed;
use crate::interim;
use crate::noise::NoiseLevel;
use crate::quote::NotQuotable;
use crate::record::TrialRecord as Record;
use crate::speed::{self, CleanCounts, around};
use crate::table::{ByRound, Table};

pub(crate) fn run(experiment: Experiment, trials: Vec<Trial>, samples: Vec<TrialSample>) -> Run {
    let case = |trial| TrialCase { trial, cpu: 1, policy: Policy::Other };
    let plan = Plan {
        seed: 1,
        batching: Batching::of_trials(TrialBatching { trials: 4 }),
        ..Plan::from_cases(experiment, trials.into_iter().map(case))
    };
    let mut run = Run::new(Header {
        schema: RUN_SCHEMA,
        run: "made-up".to_string(),
        started: String::new(),
        invocation: Vec::new(),
        name: None,
        host: None,
        build: ProgramBuild {
            version: String::new(),
            commit: None,
            profile: String::new(),
            target: String::new(),
        },
        plan,
        machine: Machine::default(),
        notices: Vec::new(),
        is_quick: false,
        session: None,
        launch: None,
    });
    run.samples = samples.into_iter().map(rundata::case::Sample::Trial).collect();
    run
}

pub(crate) fn sample(
    case: usize,
    round: u32,
    tallies: &[(&str, &[i64])],
    counts: &[(&str, i64)],
) -> TrialSample {
    let tally =
        |(name, values): &(&str, &[i64])| (name.to_string(), values.iter().copied().collect());
    TrialSample {
        case,
        round,
        elapsed_ns: 1_000_000_000,
        elapsed_ticks: Some(2_000_000_000),
        gaps: Vec::new(),
        sliced: Vec::new(),
        tallies: tallies.iter().map(tally).collect(),
        counts: counts.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
        steal_ns: Some(0),
    }
}

fn headlines_ns(run: &Run) -> Vec<ByRound> {
    let table = Table::new(&run.header.plan, &run.samples);
    (0..table.plan.cases.len()).map(|case| headline_ns(&table, case)).collect()
}

pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

#[test]
fn a_call_costs_what_it_takes_above_nothing_and_less_than_nothing_stays_so() {
    let trials = ["dear", "free"].map(|call| Trial::Call { call: call.to_string() }).to_vec();
    let of = |case: usize, round: u32, calls: &[i64]| {
        let tallies: [(&str, &[i64]); 3] = [
            (overhead::CALL_TICKS, calls),
            (overhead::EMPTY_TICKS, &[40, 40, 41]),
            (overhead::BATCH_TICKS, &[2500]),
        ];
        sample(case, round, &tallies, &[])
    };
    let samples = (0..6).flat_map(|round| {
        let wobble = i64::from(round) % 2;
        [of(0, round, &[140 + wobble, 140, 900]), of(1, round, &[30, 31, 30])]
    });
    let record = Record::from_run(&run(Experiment::ClockOverhead, trials, samples.collect()));
    let Some(ExperimentFindings::Overhead(found)) = &record.found.findings else {
        panic!("{:?}", record.found.findings)
    };
    let [dear, free] = &found.calls[..] else { panic!("two calls") };
    assert!(close(dear.median_ticks.unwrap().value, 100.5), "{dear:?}");
    assert_eq!((dear.net_ticks.p50, dear.net_ticks.max, dear.net_ticks.count), (100, 860, 18));
    assert!(close(dear.back_to_back_ticks.unwrap().value, 25.0));
    let free = free.median_ticks.unwrap();
    assert!(close(free.value, -10.0) && free.resolved, "{free:?}");
    assert_eq!(record.found.ns_per_tick, Some(0.5));
}

#[test]
fn the_gain_in_precision_is_the_ratio_of_deviations() {
    // Deviations of 1 and 11 around means of 101: 1000 % more. Empty trials take 1 by either way.
    let of = |round: u32, shift: i64| {
        let own = [100, 102];
        let usage = [90 + shift, 112 + shift];
        let coarse = [0, 0];
        let names = [primes::GETRUSAGE_NS, primes::GETRUSAGE_USER_NS, primes::GETRUSAGE_THREAD_NS];
        let empties: Vec<String> = names
            .iter()
            .chain(&[primes::THREADCLOCK_NS])
            .map(|name| primes::empty_tally_name(name))
            .collect();
        let mut tallies: Vec<(&str, &[i64])> = vec![
            (primes::THREADCLOCK_NS, &own),
            (primes::GETRUSAGE_NS, &usage),
            (primes::GETRUSAGE_USER_NS, &usage),
            (primes::GETRUSAGE_THREAD_NS, &coarse),
        ];
        tallies.extend(empties.iter().map(|name| (name.as_str(), &[1_i64, 1][..])));
        sample(0, round, &tallies, &[])
    };
    let trials = || vec![Trial::Primes { primes: 100 }];
    let found = |shift: fn(u32) -> i64| {
        let samples = (0..6).map(|round| of(round, shift(round))).collect();
        match Record::from_run(&run(Experiment::ClockPrimes, trials(), samples)).found.findings {
            Some(ExperimentFindings::Primes(found)) => found,
            other => panic!("{other:?}"),
        }
    };
    let wobbling = found(|round| if round % 2 == 0 { 1 } else { -1 });
    let against = wobbling.overall[primes::GETRUSAGE_NS];
    assert!(close(against.gain_percent.unwrap().value, 1000.0), "{against:?}");
    let difference = against.mean_difference_percent.unwrap();
    assert!(!difference.resolved && close(difference.value, 0.0), "{difference:?}");
    // A mean of 111 against 101, each less 1: 10 %, and clearly so.
    let off = found(|_| 10).points[0].against[primes::GETRUSAGE_NS];
    let difference = off.mean_difference_percent.unwrap();
    assert!(difference.resolved && close(difference.value, 10.0), "{difference:?}");
    // What never left zero was blind, not precise.
    let blind = wobbling.overall[primes::GETRUSAGE_THREAD_NS];
    assert_eq!(blind.gain_percent, None);
    assert!(close(blind.mean_difference_percent.unwrap().value, -101.0));
}

#[test]
fn slow_allocations_are_set_apart_and_explained() {
    // Per round: three calls of 60 and one of 1000, each with 20 for the clock.
    let counts = [
        ("slow_malloc", 1),
        ("slow_malloc_ticks", 1000),
        ("slow_malloc_fault", 1),
        ("slow_malloc_brk", 1),
        (malloc::BRK_CALLS, 2),
    ];
    let of = |case: usize, round: u32| {
        let tallies: [(&str, &[i64]); 3] = [
            (malloc::MALLOC_TICKS, &[60, 60, 60, 1000]),
            (malloc::FREE_TICKS, &[25, 25, 25, 25]),
            (malloc::EMPTY_TICKS, &[20, 20, 20]),
        ];
        sample(case, round, &tallies, &counts)
    };
    let of_library =
        |preload: Option<&str>| Trial::Malloc { bytes: 100, preload: preload.map(str::to_string) };
    let trials = vec![of_library(None), of_library(Some("libother.so"))];
    let samples = (0..5).flat_map(|round| [of(0, round), of(1, round)]).collect();
    let record = Record::from_run(&run(Experiment::ClockMalloc, trials, samples));
    let Some(ExperimentFindings::Malloc(found)) = &record.found.findings else {
        panic!("{:?}", record.found.findings)
    };
    let cost = found.points[0].malloc.as_ref().unwrap();
    assert_eq!((cost.net_ticks.p50, cost.net_ticks.max), (40, 980));
    assert!(close(cost.fast_ticks.unwrap().value, 40.0), "{cost:?}");
    assert!(close(cost.slow.share.unwrap(), 1000.0 / 1180.0));
    let causes = BTreeMap::from([("brk".to_string(), 5), ("fault".to_string(), 5)]);
    assert_eq!((cost.slow.calls, &cost.slow.causes), (5, &causes));
    let free = found.points[0].free.as_ref().unwrap();
    assert_eq!((free.net_ticks.p50, free.slow.calls), (5, 0));
    assert_eq!(found.points[0].per_sample[malloc::BRK_CALLS], 2.0);
    assert_eq!(found.points[0].per_sample.get(malloc::MMAP_CALLS), None, "not read is not zero");
    assert_eq!(found.overall.len(), 2);
    assert!(close(found.overall[1].malloc_mean_ticks.unwrap().value, (3.0 * 40.0 + 980.0) / 4.0));
}

#[test]
fn an_account_is_judged_by_the_truth_of_its_part() {
    let told = |name: &str| count_name("sleeper", name);
    let (precise, ticks) = (told("precise"), told("ticks"));
    let (user, true_user) = (told("user"), told("true_user"));
    let counts =
        [(&*precise, 400_000_000), (&*ticks, 0), (&*user, 300_000_000), (&*true_user, 200_000_000)];
    let samples = (0..5).map(|round| sample(0, round, &[], &counts)).collect();
    let trials =
        vec![Trial::Sampling { phase: SleepPhase::AcrossTicks, duration_ns: 1_000_000_000 }];
    let record = Record::from_run(&run(Experiment::ClockSampling, trials, samples));
    let Some(ExperimentFindings::Sampling(points)) = &record.found.findings else {
        panic!("{:?}", record.found.findings)
    };
    let accounts = &points[0].processes[0].accounts;
    assert!(close(accounts["precise"].ms_per_s.value, 400.0));
    assert_eq!(accounts["precise"].error_percent, None);
    assert!(close(accounts["ticks"].error_percent.unwrap().value, -100.0));
    assert!(close(accounts["user"].error_percent.unwrap().value, 50.0));
    assert!(!accounts.contains_key("threadclock"), "not told is not zero");
    assert!(points[0].processes[1].accounts.is_empty());
    assert_eq!(record.worst_precision, Some(0.0), "five rounds alike");
}

#[test]
fn a_run_of_trials_survives_its_file() {
    let trials = vec![Trial::Call { call: "time-stamp".to_string() }];
    let tallies: [(&str, &[i64]); 1] = [(overhead::CALL_TICKS, &[-3, 5, 5, i64::MAX])];
    let samples = vec![sample(0, 0, &tallies, &[("x", -1)])];
    let whole = run(Experiment::ClockOverhead, trials, samples);
    let experiment = Experiment::ClockOverhead;
    let header = RunFileLine::Header(Box::new(whole.header.clone()));
    let mut text = header.to_text(experiment).unwrap();
    for sample in &whole.samples {
        let line = RunFileLine::Sample(sample.clone()).to_text(experiment).unwrap();
        assert!(line.starts_with(r#"{"sample":{"case":0,"#), "bare: {line}");
        text += "\n";
        text += &line;
    }
    assert_eq!(Run::parse(&text), Ok(whole));
}

#[test]
fn a_file_with_absurd_rounds_is_read_at_once() {
    let trials = vec![Trial::Primes { primes: 100 }];
    let tallies: [(&str, &[i64]); 1] = [(primes::THREADCLOCK_NS, &[5, 7])];
    let samples = [0, 7, u32::MAX].map(|round| sample(0, round, &tallies, &[])).to_vec();
    let run = run(Experiment::ClockPrimes, trials, samples);
    assert_eq!(run.rounds(), u32::MAX);
    assert_eq!(Record::from_run(&run).cases[0].rounds, 3);
}

#[test]
fn what_is_disturbed_on_purpose_says_nothing_of_the_machine() {
    use rundata::ring::{AccessKind, Work};
    use rundata::trial::interference::{
        EXECUTION_NS, Environment, Execution, Noise, ProgramSetting,
    };

    let trial = |environment| {
        Trial::Execution(Execution {
            setting: ProgramSetting::Plain,
            environment,
            noise: Noise::Cpu,
            noise_cpu: 1,
            work: Work::new(1024, 8, AccessKind::Rmw).unwrap(),
            laps: 1,
            seed: 1,
            priority: None,
            wire: rundata::trial::interference::PacketWire::Loopback,
        })
    };
    let times = |round: u32| {
        let wobble = i64::from(round % 3);
        [vec![(0, 1000 + wobble)], vec![(1, 1000 + 400 * wobble)]].concat()
    };
    let samples = (0..6).flat_map(|round| {
        times(round).into_iter().map(move |(case, time)| TrialSample {
            steal_ns: Some(if case == 1 { 7 } else { 0 }),
            ..sample(case, round, &[(EXECUTION_NS, &[time])], &[])
        })
    });
    let trials = vec![trial(Environment::Quiet), trial(Environment::Disturbed)];
    let noise = Record::from_run(&run(Experiment::Interference, trials, samples.collect())).noise;
    assert_eq!(noise.level, crate::noise::NoiseLevel::Quiet, "{noise:?}");
    assert_eq!(noise.disturbed_share, 0.0);
    assert!(noise.round_spread.is_some_and(|spread| spread < 0.01), "{noise:?}");
}

/// Slices of one loop, three outcomes each; a tally is given by its name and what a slice has of
/// it.
pub(crate) fn sliced(
    slices: u64,
    is_clean: impl Fn(u64) -> bool,
    tallies: &[(&str, &dyn Fn(u64) -> i64)],
) -> SlicedTallies {
    let mut quanta = around(slices, 3, is_clean);
    quanta.elapsed_ns = vec![300_000; slices as usize];
    let of = |(name, of): &(&str, &dyn Fn(u64) -> i64)| {
        let slice = |index| Tally::from_iter([of(index) - 1, of(index), of(index) + 1]);
        (name.to_string(), (0..slices).map(slice).collect())
    };
    SlicedTallies { slices: quanta, tallies: tallies.iter().map(of).collect() }
}

const CALL: &str = "dear";

fn overhead(samples: Vec<TrialSample>) -> Run {
    run(Experiment::ClockOverhead, vec![Trial::Call { call: CALL.to_string() }], samples)
}

/// Ten slices of single calls and ten of batches. A call takes 25 ticks in a row and 100 alone, on
/// a shared core 35 and 140; rounds differ by a tick.
fn one(round: u32, is_clean: impl Fn(u64) -> bool + Copy) -> TrialSample {
    let wobble = i64::from(round % 2);
    let at = move |full: i64, shared: i64| {
        move |index| if is_clean(index) { full + wobble } else { shared + wobble }
    };
    let (single, empty, batch) = (at(140, 180), at(40, 40), at(2500, 3500));
    TrialSample {
        sliced: vec![
            sliced(
                10,
                is_clean,
                &[(overhead::CALL_TICKS, &single), (overhead::EMPTY_TICKS, &empty)],
            ),
            sliced(10, is_clean, &[(overhead::BATCH_TICKS, &batch)]),
        ],
        ..sample(0, round, &[], &[])
    }
}

fn found(run: &Run) -> super::overhead::CallCost {
    match Record::from_run(run).found.findings {
        Some(ExperimentFindings::Overhead(found)) => {
            found.calls.into_iter().next().expect("a call")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_costs_what_it_takes_in_clean_slices() {
    // Four of ten are clean, and those beside them are not.
    let run = overhead((0..10).map(|round| one(round, |index| index < 4)).collect());
    let cost = found(&run);
    let in_a_row = cost.back_to_back_ticks.expect("ten rounds");
    assert_eq!((in_a_row.speed, in_a_row.rounds), (Speed::Full, 10), "{in_a_row:?}");
    assert!(close(in_a_row.value, 25.005), "{in_a_row:?}");
    let alone = cost.median_ticks.expect("ten rounds");
    assert!(alone.speed == Speed::Full && close(alone.value, 100.0), "{alone:?}");
    // Every round says 100: what is left is the term for launches, 1.96 x 1 %.
    assert!((alone.relative_half_width().expect("an interval") - 0.0196).abs() < 1e-4, "{alone:?}");
    // What is told of all values is of all slices.
    assert_eq!((cost.net_ticks.count, cost.net_ticks.p99), (300, 141));
    let record = Record::from_run(&run);
    assert_eq!(record.cases[0].quantities[overhead::BATCH_TICKS].count, 300);
    assert_eq!((record.noise.level, record.noise.clean_share), (NoiseLevel::Noisy, Some(0.4)));
    assert!(record.noise.in_words().contains("1.40 times as slow"), "{:?}", record.noise);
    assert_eq!(interim::cases_without_full_speed(&run.header.plan, &run.samples), [0_usize; 0]);
    let levels = speed::levels(&run.header.plan, &run.samples);
    assert_eq!(levels.keys().collect::<Vec<_>>(), [&vec![1]]);
}

#[test]
fn with_few_clean_slices_a_figure_is_of_few_rounds_or_as_the_core_was() {
    let enough = |rounds: u32, clean: u64| {
        let mut samples: Vec<TrialSample> =
            (0..rounds).map(|round| one(round, |index| index < clean)).collect();
        // What an unshared core does is known from elsewhere in any case.
        samples.extend((90..92).map(|round| one(round, |_| true)));
        samples.iter_mut().filter(|s| s.round >= 90).for_each(|s| s.steal_ns = Some(1));
        let run = overhead(samples);
        let cost = found(&run).back_to_back_ticks.expect("rounds");
        let lacking = interim::cases_without_full_speed(&run.header.plan, &run.samples);
        assert!(cost.interval().is_some(), "{cost:?}");
        assert_eq!(lacking.is_empty(), cost.speed.is_full(), "{cost:?}");
        (cost.speed, cost)
    };
    assert_eq!(enough(8, 4).0, Speed::Full);
    assert_eq!(enough(7, 9).0, Speed::FewRounds, "7 rounds");
    assert_eq!(enough(7, 7).0, Speed::Contended, "no row of eight");
    assert_eq!(enough(8, 3).0, Speed::Contended, "24 slices");
    let (speed, cost) = enough(10, 0);
    // Ten rounds at 35 and two at 25: all of them, at whatever speed.
    assert_eq!((speed, cost.rounds), (Speed::Contended, 12));
    assert_eq!(cost.quote_cost(), Err(NotQuotable::NotAtFullSpeed));
    assert!(close(cost.value, 35.0), "{cost:?}");
}

#[test]
fn what_nobody_looked_at_is_as_it_was() {
    let batches: [(&str, &[i64]); 1] = [(overhead::BATCH_TICKS, &[2500, 2600, 2700])];
    let unsliced = |round| sample(0, round, &batches, &[]);
    let estimate = |samples: Vec<TrialSample>| {
        headlines_ns(&overhead(samples))[0].estimate(&overhead(Vec::new()).header.plan)
    };
    let as_before = estimate((0..6).map(unsliced).collect()).expect("six rounds");
    assert_eq!((as_before.speed, as_before.rounds), (Speed::NotJudged, 6));
    assert!(close(as_before.value, 13.0) && as_before.interval().is_some(), "{as_before:?}");
    // One round without slices, or with slices too long to be judged: nobody looked at all of it.
    let mut mixed: Vec<TrialSample> = (0..10).map(|round| one(round, |_| true)).collect();
    assert_eq!(estimate(mixed.clone()).map(|of| of.speed), Some(Speed::Full));
    mixed[3] = unsliced(3);
    assert_eq!(estimate(mixed.clone()).map(|of| of.speed), Some(Speed::NotJudged));
    mixed[3] = one(3, |_| true);
    // One long turn of another task is no long slice.
    mixed[3].sliced[1].slices.elapsed_ns[0] = 90_000_000;
    assert_eq!(estimate(mixed.clone()).map(|of| of.speed), Some(Speed::Full));
    mixed[3].sliced[1].slices.elapsed_ns = vec![3_100_000; 10];
    assert_eq!(estimate(mixed).map(|of| of.speed), Some(Speed::NotJudged));
}

#[test]
fn a_slice_in_which_another_had_its_turn_is_left_out() {
    let mut samples: Vec<TrialSample> = (0..10).map(|round| one(round, |_| true)).collect();
    for sample in &mut samples {
        let batches = &mut sample.sliced[1];
        batches.slices.elapsed_ns[4] *= 3;
        let slow = batches.tallies.get_mut(overhead::BATCH_TICKS).expect("batches");
        slow[4] = Tally::from_iter([900_000; 3]);
    }
    let plan = overhead(Vec::new()).header.plan;
    let table = Table::from_samples(&plan, [], &samples);
    let counts = CleanCounts {
        judged: 200,
        clean: 190,
        not_alone: 0,
        as_found: 200,
        clean_as_found: 190,
        other_clock_as_found: 0,
    };
    assert_eq!(table.counts(0), counts);
    let largest = |sample: &TrialSample| Some(sample.tally(overhead::BATCH_TICKS)?.max()? as f64);
    let of_clean = table.by_round(0, overhead::BATCH_TICKS, largest);
    assert!(of_clean.figures().all(|(_, most)| most < 2600.0));
    assert!(of_clean.of_all().all(|(_, most)| most == 900_000.0));
}

/// Every third round at a clock with a period longer by a tenth, which takes the calls to the power
/// of `power`.
fn at_two_clocks(power: f64) -> Run {
    let one_at = |round: u32| {
        let mut sample = one(round, |_| true);
        let period: f64 = if round % 3 == 0 { 1.1 } else { 1.0 };
        let times = |ns: f64, power: f64| (ns * period.powf(power)).round();
        for sliced in &mut sample.sliced {
            let Slices { elapsed_ns, latency_ns, throughput_ns, .. } = &mut sliced.slices;
            elapsed_ns.iter_mut().for_each(|ns| *ns = times(*ns as f64, power) as u64);
            let quanta = latency_ns.iter_mut().chain(throughput_ns);
            quanta.for_each(|ns| *ns = times(f64::from(*ns), 1.0) as u32);
            for tally in sliced.tallies.values_mut().flatten() {
                let values = tally.values().flat_map(|(value, count)| {
                    (0..count).map(move |_| times(value as f64, power) as i64)
                });
                *tally = Tally::from_iter(values.collect::<Vec<i64>>());
            }
        }
        sample
    };
    overhead((0..12).map(one_at).collect())
}

fn own_power(run: &Run) -> Option<Elasticity> {
    clock_of(&run.header.plan, 0, &headlines_ns(run)[0])?.elasticity
}

#[test]
fn calls_at_other_clocks_are_brought_to_the_runs_by_their_own_power() {
    for power in [0.0, 0.5, 1.0] {
        let run = at_two_clocks(power);
        let found = &headlines_ns(&run)[0];
        let cost = found.estimate(&run.header.plan).expect("rounds");
        assert!((cost.value / 12.5 - 1.0).abs() < 2e-3, "{power}: {cost:?}");
        assert_eq!((cost.speed, cost.rounds), (Speed::Full, 12));
        let own = own_power(&run).expect("two clocks");
        assert!((own.value - power).abs() < 0.02 && own.standard_error < 0.02, "{power}: {own:?}");
    }
    let still = overhead((0..12).map(|round| one(round, |_| true)).collect());
    assert_eq!(own_power(&still), None);
    // A counter whose steps are larger than what the clock does: the same figure at both, which
    // says nothing.
    let mut stepped = at_two_clocks(0.0);
    for sample in trials_mut(&mut stepped.samples) {
        for sliced in &mut sample.sliced {
            sliced.tallies.values_mut().flatten().for_each(|of| *of = Tally::from_iter([2500; 3]));
        }
    }
    assert_eq!(own_power(&stepped), None);
}

fn trials_mut(samples: &mut [case::Sample]) -> impl Iterator<Item = &mut TrialSample> {
    samples.iter_mut().filter_map(|sample| match sample {
        case::Sample::Trial(sample) => Some(sample),
        case::Sample::Ring(_) => None,
    })
}

/// What the first case is in cycles, and at which clock, of a program for x86-64: 21,600 cycles a
/// quantum.
fn in_cycles(mut run: Run) -> (Option<f64>, Option<Estimate>) {
    run.header.build.target = "x86_64-unknown-linux-gnu".to_string();
    let summary = &Record::from_run(&run).cases[0];
    assert_eq!(summary.elasticity, own_power(&run));
    (summary.clock_ghz, summary.cycles)
}

#[test]
fn a_call_has_the_cycles_of_the_clock_that_it_is_at() {
    let (clock_ghz, cycles) = in_cycles(at_two_clocks(1.0));
    let (clock_ghz, cycles) = (clock_ghz.expect("a clock"), cycles.expect("cycles"));
    assert!(close(clock_ghz, 21_600.0 / 5860.0), "{clock_ghz} GHz");
    assert!((cycles.value / (12.5 * clock_ghz) - 1.0).abs() < 2e-3, "{cycles:?}");
    assert!(cycles.quote_cost().is_ok(), "{cycles:?}");
    // Of a core that was shared throughout there is no figure at that clock; of others than x86-64
    // the cycles are not known.
    let few = (0..7).map(|round| one(round, |_| true)).collect();
    assert!(in_cycles(overhead(few)).1.is_some());
    let shared = (0..7).map(|round| one(round, |index| index < 3)).collect();
    assert_eq!(in_cycles(overhead(shared)), (None, None));
    assert_eq!(Record::from_run(&at_two_clocks(1.0)).cases[0].cycles, None);
}

/// What waits for a timer is no count of the core's cycles, however clean its slices are.
#[test]
fn what_waits_has_no_clock() {
    let run = at_two_clocks(1.0);
    let (figures, mut plan) = (headlines_ns(&run), run.header.plan);
    assert!(clock_of(&plan, 0, &figures[0]).is_some());
    let waits = TrialCase { trial: Trial::Gaps { duration_ns: 1 }, cpu: 1, policy: Policy::Other };
    plan.cases = vec![waits.into()];
    assert_eq!(clock_of(&plan, 0, &figures[0]), None);
}

#[test]
fn the_tallies_of_a_sample_are_those_of_all_its_slices() {
    let whole = one(1, |index| index < 5);
    let all = whole.all_tallies();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["batch_ticks", "call_ticks", "empty_ticks"]);
    assert_eq!(all[overhead::BATCH_TICKS].count(), 30);
    assert_eq!(whole.tally(overhead::CALL_TICKS).map(|of| of.count()), Some(30));
    assert_eq!(whole.tally("else"), None);
    let text = serde_json::to_string(&whole).expect("JSON");
    assert_eq!(serde_json::from_str::<TrialSample>(&text).expect("a sample"), whole);
}

/// Whatever a damaged file says of slices.
fn any_sliced() -> impl Strategy<Value = SlicedTallies> {
    let times = || prop::collection::vec(any::<u64>(), 0..6);
    let quanta = || prop::collection::vec(prop_oneof![Just(5900_u32), any::<u32>()], 0..9);
    let tally = prop::collection::vec(any::<(i64, u32)>(), 0..3).prop_map(Tally::from);
    let tallies = prop::collection::vec(tally, 0..6);
    let name = prop_oneof![
        Just(overhead::BATCH_TICKS),
        Just(overhead::CALL_TICKS),
        Just(overhead::EMPTY_TICKS),
        Just(loops::EMPTY_BATCH_TICKS)
    ];
    let named = prop::collection::btree_map(name.prop_map(str::to_string), tallies, 0..4);
    (any::<u64>(), times(), quanta(), quanta(), named).prop_map(
        |(laps, elapsed_ns, latency_ns, throughput_ns, tallies)| SlicedTallies {
            slices: Slices { laps, elapsed_ns, latency_ns, throughput_ns, ..Slices::default() },
            tallies,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(repeats(40, 256)))]

    #[test]
    fn any_slices_have_a_record(
        all in prop::collection::vec((0..3_usize, prop::collection::vec(any_sliced(), 0..3)), 0..40),
    ) {
        let of = |(round, (case, sliced)): (usize, &(usize, Vec<SlicedTallies>))| {
            TrialSample { sliced: sliced.clone(), ..sample(*case, round as u32 / 2, &[], &[]) }
        };
        // Between samples that are sound, so that there is a level and something clean.
        let sound = (0..9).map(|round| one(round, |_| true));
        let samples: Vec<TrialSample> = sound.chain(all.iter().enumerate().map(of)).collect();
        let call = |name: &str| Trial::Call { call: name.to_string() };
        let mut run = run(Experiment::ClockOverhead, vec![call("a"), call("b")], samples);
        let looped = Trial::Loop { call: "b".to_string() };
        run.header.plan.cases[1] = TrialCase { trial: looped, ..run.header.plan.trial(1).unwrap().clone() }.into();
        let record = Record::from_run(&run);
        prop_assert!(record.cases.len() == 2);
        let _ = interim::cases_without_full_speed(&run.header.plan, &run.samples);
        let _ = headlines_ns(&run).iter().filter_map(|of| of.estimate(&run.header.plan)).count();
    }

    /// The figure of a round is of its clean slices only, however many there are.
    #[test]
    fn a_rounds_figure_is_of_its_clean_slices(clean in prop::collection::vec(4_u64..10, 8..12)) {
        let samples = (0_u32..).zip(&clean).map(|(round, most)| one(round, |index| index < *most));
        let run = overhead(samples.collect());
        let of = &headlines_ns(&run)[0];
        prop_assert_eq!(of.speed(), Speed::Full);
        let figures: Vec<f64> = of.figures().map(|(_, ns)| ns).collect();
        prop_assert_eq!(figures.len(), clean.len());
        prop_assert!(figures.iter().all(|ns| (12.5..=12.51).contains(ns)), "{:?}", figures);
        prop_assert!(median(&figures).is_some());
    }
}
