//! Answers and charts of clocks.

use std::collections::BTreeMap;

use analysis::findings::ExperimentFindings;
use charts::{Figure, Role, Scale};
use rundata::experiment::Experiment;
use rundata::plan::{Batching, Plan, Stopping};
use rundata::ring::Policy;
use rundata::run::{Header, Run};
use rundata::trial;
use rundata::trial::sampling::SleepPhase;
use rundata::trial::{Trial, TrialBatching, TrialCase, TrialSample};

use super::Record;
use crate::report::figures::tests::*;
use crate::report::terminal::View;

fn plan(experiment: Experiment, trials: Vec<Trial>) -> Plan {
    let mut cases = Vec::new();
    for trial in trials {
        cases.push(TrialCase { trial, cpu: 1, policy: Policy::Other }.into());
    }
    Plan {
        experiment,
        cases,
        seed: 1,
        batching: Batching::of_trials(TrialBatching { trials: 10 }),
        stopping: Stopping {
            precision: 0.01,
            budget_ns: 1,
            rounds: Some(6),
            confidence: 0.95,
            fixed_budget: false,
        },
        reference: Default::default(),
        parts: Vec::new(),
    }
}

/// Tallies of a sample: their names and values.
type Tallies = Vec<(&'static str, Vec<i64>)>;

/// Draws a run of six rounds whose samples have the same tallies in each.
fn draw(plan: Plan, tallies: impl Fn(&Trial) -> Tallies) -> Vec<Figure> {
    figures(&run_with(plan, tallies, no_counts))
}

fn no_counts(_: &Trial) -> Vec<(String, i64)> {
    Vec::new()
}

/// Builds a run of six rounds at two ticks a nanosecond, whose samples have these tallies and counts
/// in each round.
fn run_with(
    plan: Plan,
    tallies: impl Fn(&Trial) -> Tallies,
    counts: impl Fn(&Trial) -> Vec<(String, i64)>,
) -> Run {
    let rings = fixture();
    let header = Header {
        schema: 1,
        run: "made".into(),
        started: rings.header.started,
        invocation: Vec::new(),
        name: None,
        host: None,
        build: rings.header.build,
        plan,
        machine: rings.header.machine,
        notices: Vec::new(),
        is_quick: false,
        session: None,
        launch: None,
    };
    let mut run = Run::new(header);
    run.end = rings.end;
    let plan = run.header.plan.clone();
    for round in 0..6 {
        for (number, case) in plan.trials() {
            let mut by_name = BTreeMap::new();
            for (name, values) in tallies(&case.trial) {
                by_name.insert(name.to_string(), values.into_iter().collect());
            }
            let sample = TrialSample {
                case: number,
                round,
                elapsed_ns: 1_000_000,
                elapsed_ticks: Some(2_000_000),
                gaps: Vec::new(),
                sliced: Vec::new(),
                tallies: by_name,
                counts: counts(&case.trial).into_iter().collect(),
                steal_ns: None,
            };
            run.samples.push(rundata::case::Sample::Trial(sample));
        }
    }
    run
}

/// Returns the first line that is printed, its broken lines joined.
fn answer(run: &Run) -> String {
    let text =
        Record::from_run(run).text(run, None, View::default()).to_string().replace("\n  ", " ");
    text.lines().next().unwrap().to_string()
}

/// Builds a run of `clock overhead` by the ticks that each call takes.
fn run_of_calls(calls: &[(&'static str, i64)]) -> Run {
    let trials = calls.iter().map(|(call, _)| call_trial(call)).collect();
    run_with(
        plan(Experiment::ClockOverhead, trials),
        |trial| {
            let call = calls.iter().find(|(call, _)| *trial == call_trial(call));
            call_tallies(call.unwrap().1)
        },
        no_counts,
    )
}

fn call_trial(call: &str) -> Trial {
    Trial::Call { call: call.to_string() }
}

/// Returns the tallies of a call that always takes so many ticks.
fn call_tallies(ticks: i64) -> Tallies {
    let batch = ticks * i64::from(trial::overhead::BATCH_CALLS);
    vec![
        (trial::overhead::CALL_TICKS, vec![ticks; 4]),
        (trial::overhead::EMPTY_TICKS, vec![0; 4]),
        (trial::overhead::BATCH_TICKS, vec![batch; 4]),
    ]
}

/// Two ticks are a nanosecond.
#[test]
fn the_answer_is_what_reading_a_threads_time_costs() {
    let clocks =
        [("getrusage", 1216), ("monotonic", 50), ("threadclock-now", 20), ("thread-cputime", 1022)];
    assert_eq!(
        answer(&run_of_calls(&clocks)),
        "Reading a thread's CPU time takes 10.0 ns by threadclock, 511 ns by \
         clock_gettime(CLOCK_THREAD_CPUTIME_ID), 608 ns by getrusage."
    );
    assert_eq!(
        answer(&run_of_calls(&clocks[1..2])),
        "A call of monotonic takes 25.0 ns (25.0 to 25.0)."
    );
    assert_eq!(
        answer(&run_of_calls(&[("times", 600), ("monotonic", 50)])),
        "The fastest call is monotonic with 25.0 ns (25.0 to 25.0), the slowest times with 300 ns."
    );
}

#[test]
fn calls_that_are_not_resolved_from_each_other_are_not_ranked() {
    assert_eq!(
        answer(&run_of_calls(&[("times", 600), ("monotonic", 600)])),
        "No call is shown to take longer than times, which takes 300 ns (300 to 300)."
    );
    assert_eq!(
        answer(&run_of_calls(&[("times", 600), ("monotonic", 50), ("clock", 50)])),
        "The fastest call is monotonic with 25.0 ns (25.0 to 25.0), not resolved from clock, \
         the slowest times with 300 ns."
    );
}

#[test]
fn what_has_no_finding_of_its_own_is_told_by_its_measures() {
    let mut record = analysis::record::TrialRecord::from_run(&run_of_calls(&[
        ("times", 600),
        ("monotonic", 50),
    ]));
    record.found.findings = None;
    let text = super::trials::text(&record, View::default());
    let said = "The fastest trial is monotonic with 25.0 ns (25.0 to 25.0), the slowest times";
    assert!(text.headline.starts_with(said), "{}", text.headline);
    let columns = "ns in a row interval ns alone".split(' ').collect::<Vec<_>>();
    assert_eq!(cells(&text.table, "trial"), columns);
    assert_eq!(cells(&text.table, "times"), ["300", "300", "to", "300", "300"]);
    let drawn = super::trials::figure(&record, 0).expect("two calls");
    assert!(
        drawn.in_words.contains("From monotonic 25.0 ns to times 300 ns."),
        "{}",
        drawn.in_words
    );
}

/// 304 ns at 2 GHz; a time that may not be quoted has no cycles, and by default none has.
#[test]
fn a_wide_table_has_cycles_of_what_may_be_quoted() {
    let run = run_of_calls(&[("times", 608), ("monotonic", 50)]);
    let mut record = analysis::record::TrialRecord::from_run(&run);
    let Some(ExperimentFindings::Overhead(found)) = record.found.findings.clone() else {
        panic!("calls")
    };
    for (summary, call) in record.cases.iter_mut().zip(&found.calls) {
        let ns = call.back_to_back_ticks.and_then(|ticks| ticks.scaled(0.5));
        let [cycles, open] = in_cycles(ns);
        summary.clock_ghz = Some(2.0);
        summary.cycles = if call.call == "times" { cycles } else { open };
    }
    let table = |view| crate::experiments::clock::overhead::text(&record, &found, view).table;
    let wide = table(View { wide: true, ..View::default() });
    assert_eq!(
        cells(&wide, "call"),
        "ns in a row interval cycles GHz ns alone".split(' ').collect::<Vec<_>>()
    );
    assert_eq!(cells(&wide, "times"), ["304", "304", "to", "304", "608", "2.00", "304"]);
    assert_eq!(cells(&wide, "monotonic")[4..6], ["-", "2.00"]);
    assert!(!table(View::default()).to_string().contains("GHz"));
}

#[test]
fn the_answer_of_primes_is_who_scatters_more() {
    let means = "than threadclock over the same work; their means agree to 0 %.";
    for (spread, answered) in [(15, "50.0 % more"), (5, "50.0 % less")] {
        let plan = plan(Experiment::ClockPrimes, vec![Trial::Primes { primes: 100 }]);
        let run = run_with(plan, |_| prime_tallies(10_000, 10, spread), no_counts);
        assert_eq!(answer(&run), format!("getrusage scatters {answered} {means}"));
    }
}

/// Returns tallies of two values about a mean for each of both clocks, which lie so far from it.
fn prime_tallies(mean: i64, threadclock_spread: i64, getrusage_spread: i64) -> Tallies {
    let [threadclock, getrusage] =
        [threadclock_spread, getrusage_spread].map(|spread| vec![mean - spread, mean + spread]);
    vec![
        (trial::primes::THREADCLOCK_NS, threadclock),
        ("empty_threadclock_ns", vec![1, 1]),
        (trial::primes::GETRUSAGE_NS, getrusage),
        ("empty_getrusage_ns", vec![1, 1]),
    ]
}

/// A count that is not quotable has no cycles.
#[test]
fn a_wide_table_of_primes_has_cycles() {
    let trials = [100, 200].map(|primes| Trial::Primes { primes }).to_vec();
    let tallies = |_: &Trial| {
        vec![(trial::primes::THREADCLOCK_NS, vec![9, 11]), ("empty_threadclock_ns", vec![1, 1])]
    };
    let run = run_with(plan(Experiment::ClockPrimes, trials), tallies, no_counts);
    let mut record = analysis::record::TrialRecord::from_run(&run);
    let Some(ExperimentFindings::Primes(found)) = record.found.findings.clone() else {
        panic!("primes")
    };
    record.cases[0].clock_ghz = Some(2.0);
    record.cases[0].cycles = Some(found.points[0].timed[trial::primes::THREADCLOCK_NS].mean_ns);
    let text = |view| crate::documents::primes::text(&record, &found, view).table;
    let wide = text(View { wide: true, ..View::default() });
    assert_eq!(cells(&wide, "100").split_off(8), ["9.00", "2.00"], "{wide}");
    assert_eq!(cells(&wide, "200").split_off(8), ["-", "-"], "{wide}");
    assert!(!text(View::default()).to_string().contains("GHz"));
}

#[test]
fn the_answer_of_malloc_is_over_all_sizes() {
    let sizes = [100, 200].map(|bytes| Trial::Malloc { bytes, preload: None }).to_vec();
    let tallies = |trial: &Trial| {
        let Trial::Malloc { bytes, .. } = trial else { panic!("malloc") };
        let ticks = *bytes as i64;
        vec![
            (trial::malloc::MALLOC_TICKS, vec![ticks; 3]),
            (trial::malloc::FREE_TICKS, vec![20; 3]),
            (trial::malloc::EMPTY_TICKS, vec![0; 3]),
        ]
    };
    let run = run_with(plan(Experiment::ClockMalloc, sizes), tallies, no_counts);
    assert_eq!(
        answer(&run),
        "malloc takes 75.0 ns (75.0 to 75.0), free 10.0 ns: means over sizes of 100 to 200 bytes."
    );
}

#[test]
fn the_answer_of_sampling_is_what_ticks_miss() {
    let phases = [SleepPhase::AcrossTicks, SleepPhase::Anywhere];
    let trials = phases.map(|phase| Trial::Sampling { phase, duration_ns: 1_000_000 }).to_vec();
    let counts = |_: &Trial| {
        let accounts = [("precise", 500_000), ("ticks", 10_000), ("getrusage", 500_000)];
        accounts.map(|(account, ns)| (trial::sampling::count_name("sleeper", account), ns)).to_vec()
    };
    let run = run_with(plan(Experiment::ClockSampling, trials), |_| Vec::new(), counts);
    assert_eq!(
        answer(&run),
        "Ticks see 2.00 % of the CPU time of a process that sleeps whenever they come (10.0 of \
         500 ms a second); getrusage's user + system is 100 % of it."
    );
}

#[test]
fn calls_are_bars_in_nanoseconds_cheapest_first() {
    let figures = figures(&run_of_calls(&[("getrusage", 800), ("rdtsc", 40)]));
    let calls = figure(&figures, "clock-calls");
    assert_eq!(calls.x.names, ["rdtsc", "getrusage"]);
    let values: Vec<f64> = calls.series()[0].points.iter().map(|point| point.y).collect();
    assert_eq!((values, calls.y.scale), (vec![20.0, 400.0], Scale::Log));
    assert!(figures.iter().any(|figure| figure.id == "rounds"));
}

#[test]
fn clocks_have_a_line_of_deviations_each() {
    let trials = [1000, 100].map(|primes| Trial::Primes { primes }).to_vec();
    let figures = draw(plan(Experiment::ClockPrimes, trials), |trial| {
        let Trial::Primes { primes } = trial else { panic!("primes") };
        prime_tallies(i64::from(*primes) * 10, 1, 50)
    });
    let deviations = figure(&figures, "clock-primes");
    let threadclock = series(deviations, Role::Measured, "threadclock");
    let primes: Vec<f64> = threadclock.points.iter().map(|point| point.x).collect();
    assert_eq!(primes, [100.0, 1000.0]);
    // Two values that lie 2 apart: a deviation of the square root of 2.
    assert!(near(threadclock.points[0].y, std::f64::consts::SQRT_2), "{threadclock:?}");
    assert!(near(series(deviations, Role::Measured, "getrusage").points[1].y, 70.71));
    assert!(deviations.in_words.contains("getrusage by 4900 %"), "{}", deviations.in_words);
}
