//! Known answers of every experiment on made-up samples, and the run file of trials.

use std::collections::BTreeMap;

use super::sampling::count;
use super::*;
use crate::case::Policy;
use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::plan::{Batching, Plan, Stopping};
use crate::run::{Build, Header, Line, Run, SCHEMA};
use crate::trial::{Phase, Repeats, Sample};

pub(crate) fn run(experiment: Experiment, trials: Vec<Trial>, samples: Vec<Sample>) -> Run {
    let case = |trial| Case { trial, cpu: 1, policy: Policy::Other }.into();
    let plan = Plan {
        experiment,
        cases: trials.into_iter().map(case).collect(),
        seed: 1,
        batching: Batching::of_trials(Repeats { trials: 4 }),
        stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: None, confidence: 0.95 },
        reference: Default::default(),
    };
    let mut run = Run::new(Header {
        schema: SCHEMA,
        run: "made-up".to_string(),
        started: String::new(),
        invocation: Vec::new(),
        build: Build {
            version: String::new(),
            commit: None,
            profile: String::new(),
            target: String::new(),
        },
        plan,
        machine: Machine::default(),
        notices: Vec::new(),
        session: None,
        launch: None,
    });
    run.samples = samples.into_iter().map(Into::into).collect();
    run
}

pub(crate) fn sample(
    case: usize,
    round: u32,
    tallies: &[(&str, &[i64])],
    counts: &[(&str, i64)],
) -> Sample {
    let tally =
        |(name, values): &(&str, &[i64])| (name.to_string(), values.iter().copied().collect());
    Sample {
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
    let record = Record::of(&run(Experiment::ClockOverhead, trials, samples.collect()));
    let Findings::Overhead(found) = &record.findings else { panic!("{:?}", record.findings) };
    let [dear, free] = &found.calls[..] else { panic!("two calls") };
    assert!(close(dear.median_ticks.unwrap().value, 100.5), "{dear:?}");
    assert_eq!((dear.net_ticks.p50, dear.net_ticks.max, dear.net_ticks.count), (100, 860, 18));
    assert!(close(dear.back_to_back_ticks.unwrap().value, 25.0));
    let free = free.median_ticks.unwrap();
    assert!(close(free.value, -10.0) && free.resolved, "{free:?}");
    assert_eq!(record.ns_per_tick, Some(0.5));
}

#[test]
fn the_gain_in_precision_is_the_ratio_of_deviations() {
    // Deviations of 1 and 11 around means of 101: 1000 % more. Empty trials take 1 by either way.
    let of = |round: u32, shift: i64| {
        let own = [100, 102];
        let usage = [90 + shift, 112 + shift];
        let coarse = [0, 0];
        let names = [primes::GETRUSAGE_NS, primes::GETRUSAGE_USER_NS, primes::GETRUSAGE_THREAD_NS];
        let empties: Vec<String> =
            names.iter().chain(&[primes::THREADCLOCK_NS]).map(|name| primes::empty(name)).collect();
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
        match Record::of(&run(Experiment::ClockPrimes, trials(), samples)).findings {
            Findings::Primes(found) => found,
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
    let record = Record::of(&run(Experiment::ClockMalloc, trials, samples));
    let Findings::Malloc(found) = &record.findings else { panic!("{:?}", record.findings) };
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
    let told = |name: &str| count("sleeper", name);
    let (precise, ticks) = (told("precise"), told("ticks"));
    let (user, true_user) = (told("user"), told("true_user"));
    let counts =
        [(&*precise, 400_000_000), (&*ticks, 0), (&*user, 300_000_000), (&*true_user, 200_000_000)];
    let samples = (0..5).map(|round| sample(0, round, &[], &counts)).collect();
    let trials = vec![Trial::Sampling { phase: Phase::AcrossTicks, duration_ns: 1_000_000_000 }];
    let record = Record::of(&run(Experiment::ClockSampling, trials, samples));
    let Findings::Sampling(points) = &record.findings else { panic!("{:?}", record.findings) };
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
    let header = Line::Header(Box::new(whole.header.clone()));
    let mut text = header.to_text(experiment).unwrap();
    for sample in &whole.samples {
        let line = Line::Sample(sample.clone()).to_text(experiment).unwrap();
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
    assert_eq!(Record::of(&run).cases[0].rounds, 3);
}

#[test]
fn what_is_disturbed_on_purpose_says_nothing_of_the_machine() {
    use crate::case::{Op, Work};
    use crate::trial::{Environment, Setting};
    use interference::{EXECUTION_NS, Execution, Noise};

    let trial = |environment| {
        Trial::Execution(Execution {
            setting: Setting::Plain,
            environment,
            noise: Noise::Cpu,
            noise_cpu: 1,
            work: Work::new(1024, 8, Op::Rmw).unwrap(),
            laps: 1,
            seed: 1,
            priority: None,
            wire: interference::Wire::Loopback,
        })
    };
    let times = |round: u32| {
        let wobble = i64::from(round % 3);
        [vec![(0, 1000 + wobble)], vec![(1, 1000 + 400 * wobble)]].concat()
    };
    let samples = (0..6).flat_map(|round| {
        times(round).into_iter().map(move |(case, time)| Sample {
            steal_ns: Some(if case == 1 { 7 } else { 0 }),
            ..sample(case, round, &[(EXECUTION_NS, &[time])], &[])
        })
    });
    let trials = vec![trial(Environment::Quiet), trial(Environment::Disturbed)];
    let noise = Record::of(&run(Experiment::Interference, trials, samples.collect())).noise;
    assert_eq!(noise.level, crate::noise::NoiseLevel::Quiet, "{noise:?}");
    assert_eq!(noise.disturbed_share, 0.0);
    assert!(noise.round_spread.is_some_and(|spread| spread < 0.01), "{noise:?}");
}
