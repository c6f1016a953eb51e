//! Charts of clocks: made records need no samples where only the record is drawn.

use charts::{Figure, Role, Scale};
use model::experiment::Experiment;
use model::plan::{Batching, Plan, Stopping};
use model::run::{Header, Run};
use model::trial::{Case, Repeats, Sample, Trial, overhead, primes};

use crate::figures::tests::*;

fn plan(experiment: Experiment, trials: Vec<Trial>) -> Plan {
    let case = |trial| Case { trial, cpu: 1, policy: model::ring::Policy::Other }.into();
    Plan {
        experiment,
        cases: trials.into_iter().map(case).collect(),
        seed: 1,
        batching: Batching::of_trials(Repeats { trials: 10 }),
        stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: Some(6), confidence: 0.95 },
        reference: Default::default(),
    }
}

/// Six rounds at two ticks a nanosecond; each sample has the tallies that `of` gives its case.
fn drawn(plan: Plan, of: impl Fn(&Trial) -> Vec<(&'static str, Vec<i64>)>) -> Vec<Figure> {
    let rings = fixture();
    let header = Header {
        schema: 1,
        run: "made".into(),
        started: rings.header.started,
        invocation: Vec::new(),
        build: rings.header.build,
        plan,
        machine: rings.header.machine,
        notices: Vec::new(),
        session: None,
        launch: None,
    };
    let mut run = Run::new(header);
    let plan = run.header.plan.clone();
    for round in 0..6 {
        for (number, case) in plan.trials() {
            let tallies = of(&case.trial).into_iter();
            let sample = Sample {
                case: number,
                round,
                elapsed_ns: 1_000_000,
                elapsed_ticks: Some(2_000_000),
                gaps: Vec::new(),
                sliced: Vec::new(),
                tallies: tallies
                    .map(|(name, values)| (name.to_string(), values.into_iter().collect()))
                    .collect(),
                counts: Default::default(),
                steal_ns: None,
            };
            run.samples.push(model::case::Sample::Trial(sample));
        }
    }
    figures(&run)
}

#[test]
fn calls_are_bars_in_nanoseconds_cheapest_first() {
    let call = |call: &str| Trial::Call { call: call.into() };
    let figures =
        drawn(plan(Experiment::ClockOverhead, vec![call("getrusage"), call("rdtsc")]), |trial| {
            let ticks = if *trial == call("rdtsc") { 40 } else { 800 };
            let batch = ticks * i64::from(overhead::BATCH_CALLS);
            vec![
                (overhead::CALL_TICKS, vec![ticks; 4]),
                (overhead::EMPTY_TICKS, vec![0; 4]),
                (overhead::BATCH_TICKS, vec![batch; 4]),
            ]
        });
    let calls = figure(&figures, "clock-calls");
    assert_eq!(calls.x.names, ["rdtsc", "getrusage"]);
    let values: Vec<f64> = calls.series()[0].points.iter().map(|point| point.y).collect();
    assert_eq!((values, calls.y.scale), (vec![20.0, 400.0], Scale::Log));
    assert!(figures.iter().any(|figure| figure.id == "rounds"));
}

#[test]
fn clocks_have_a_line_of_deviations_each() {
    let trials = [1000, 100].map(|primes| Trial::Primes { primes }).to_vec();
    let figures = drawn(plan(Experiment::ClockPrimes, trials), |trial| {
        let Trial::Primes { primes: many } = trial else { panic!("primes") };
        let many = i64::from(*many);
        vec![
            (primes::THREADCLOCK_NS, vec![many * 10 - 1, many * 10 + 1]),
            ("empty_threadclock_ns", vec![1, 1]),
            (primes::GETRUSAGE_NS, vec![many * 10 - 50, many * 10 + 50]),
            ("empty_getrusage_ns", vec![1, 1]),
        ]
    });
    let deviations = figure(&figures, "clock-primes");
    let own = series(deviations, Role::Measured, "threadclock");
    assert_eq!(own.points.iter().map(|point| point.x).collect::<Vec<_>>(), [100.0, 1000.0]);
    // Two values that lie 2 apart: a deviation of the square root of 2.
    assert!(near(own.points[0].y, std::f64::consts::SQRT_2), "{own:?}");
    assert!(near(series(deviations, Role::Measured, "getrusage").points[1].y, 70.71));
    assert!(deviations.in_words.contains("getrusage by 4900 %"), "{}", deviations.in_words);
}
