//! Known answers of wake-ups under load on made-up samples, and how often a planted delay is found.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::experiment::Experiment;
use rundata::ring::MemberKind;
use rundata::run::{Run, RunEnd, StopReason};
use testing::repeats;

use super::super::tests::{run, sample};
use super::*;
use crate::comparison::{ChangeAnswer, Comparison, ComparisonTerms, LIMIT, WantedCost};
use crate::results::{Quantity, Results};

fn load(arrivals: ArrivalSchedule, busy_tasks: u32) -> WakeLoad {
    WakeLoad {
        arrivals,
        work: RequestWork::ThinkNs(20_000),
        mechanism: WakeMechanism::Futex,
        workers: 2,
        messengers: 1,
        kind: MemberKind::Thread,
        busy_tasks,
        place: WakerPlace::Near,
        worker_cpus: vec![1],
        messenger_cpus: vec![0],
        duration_ns: 250_000_000,
        seed: 7,
    }
}

fn made(loads: Vec<WakeLoad>, samples: Vec<TrialSample>) -> Run {
    let trials = loads.into_iter().map(|load| Trial::Load(Box::new(load))).collect();
    run(Experiment::Response, trials, samples)
}

fn find_in(run: &Run) -> Vec<LoadFindings> {
    find(&Table::new(&run.header.plan, &run.samples))
}

/// Counts of a sample of one second in which two workers of one CPU did 1,000 requests.
const COUNTS: [(&str, i64); 9] = [
    (SENT, 1000),
    (RECEIVED, 1000),
    (RATE_PER_S, 1000),
    (DEMAND_NS, 20_000),
    (WORKER_CPU_NS, 250_000_000),
    (VOLUNTARY, 900),
    (INVOLUNTARY, 100),
    (LATE_TOTAL_NS, 5_000_000),
    (SCHEDULE_NS, 990_000_000),
];

#[test]
fn quantiles_are_of_all_rounds_and_the_idle_machine_is_the_base() {
    let waits = |factor: i64| -> Vec<i64> { (1..=1000).map(|ns| ns * factor).collect() };
    let mut samples = Vec::new();
    for round in 0..6 {
        for (case, factor) in [(0, 10), (1, 30)] {
            let wakes = waits(factor);
            let tallies = [(WAKE_NS, &wakes[..]), (REQUEST_NS, &wakes[..])];
            samples.push(sample(case, round, &tallies, &COUNTS));
        }
    }
    let idle = load(ArrivalSchedule::Idle, 0);
    let busy = load(ArrivalSchedule::LoadPermille(800), 2);
    let found = find_in(&made(vec![idle, busy], samples));
    let [idle, busy] = &found[..] else { panic!("{found:?}") };
    let p99 = busy.wake.as_ref().and_then(|wake| wake.p99_ns).expect("6,000 wakes");
    // Equal rounds: the interval of independent values, half of which is 1.96 x 7.7 of 6,000 ranks.
    assert_eq!(p99.value_ns, 29_700);
    assert!((29_610..=29_640).contains(&p99.low_ns), "{p99:?}");
    assert!((29_760..=29_790).contains(&p99.high_ns), "{p99:?}");
    let ratio = busy.p99_above_idle.expect("both are known");
    assert!((ratio.value - 3.0).abs() < 1e-9 && ratio.is_resolved(), "{ratio:?}");
    assert!(ratio.low > 2.98 && ratio.high < 3.02, "{ratio:?}");
    assert_eq!(idle.p99_above_idle, None);
    assert_eq!((busy.requests_sent, busy.requests_received), (6000, 6000));
    assert_eq!((busy.worker_percent, busy.mean_late_ns), (Some(25.0), Some(5000.0)));
    assert_eq!((busy.voluntary_per_request, busy.busy_percent), (Some(0.9), None));
    assert!(!busy.is_overloaded);
    assert!(busy.request.p999_ns.is_some());
}

#[test]
fn workers_that_do_not_keep_up_are_told() {
    let mut counts = COUNTS;
    counts[8] = (SCHEDULE_NS, 800_000_000);
    let times = [5_i64; 100];
    let samples: Vec<TrialSample> =
        (0..5).map(|round| sample(0, round, &[(REQUEST_NS, &times)], &counts)).collect();
    let found = find_in(&made(vec![load(ArrivalSchedule::LoadPermille(1200), 0)], samples));
    assert!(found[0].is_overloaded && !found[0].mostly_slept());
    assert_eq!(found[0].done_per_s, Some(800.0));
    // No request found its worker waiting.
    assert_eq!((&found[0].wake, found[0].p99_above_idle), (&None, None));
}

/// Messengers were 5 us late: most of a request of 6 us, not of one of 60 us.
#[test]
fn messengers_that_do_not_keep_up_are_told_from_workers() {
    let mut counts = COUNTS;
    counts[8] = (SCHEDULE_NS, 800_000_000);
    for (request_ns, is_messengers) in [(6_000_i64, true), (60_000, false)] {
        let times = [request_ns; 100];
        let samples: Vec<TrialSample> =
            (0..5).map(|round| sample(0, round, &[(REQUEST_NS, &times)], &counts)).collect();
        let found = find_in(&made(vec![load(ArrivalSchedule::RatePerS(1000), 0)], samples));
        assert_eq!(found[0].is_limited_by_messengers(), is_messengers, "{request_ns}");
    }
}

/// A damaged file may lack anything and have any number.
#[test]
fn nonsense_is_no_reason_to_fail() {
    let huge = [i64::MAX, i64::MIN, 0, -1];
    let counts = COUNTS.map(|(name, _)| (name, i64::MAX));
    let strange = sample(0, 0, &[(WAKE_NS, &huge), (REQUEST_NS, &huge)], &counts);
    let empty = sample(0, 1, &[(WAKE_NS, &[])], &[]);
    let run = made(vec![load(ArrivalSchedule::Idle, 0)], vec![strange, empty]);
    assert_eq!(find_in(&run).len(), 1);
    let _ = Results::from_run(&run);
    assert!(find_in(&made(vec![load(ArrivalSchedule::Idle, 0)], Vec::new())).is_empty());
}

/// The delay that is planted, and its share of the wakes.
const DELAY_NS: f64 = 100_000.0;
const DELAYED: f64 = 0.02;

/// Wakes of a launch: 20 rounds of 1,000 about 12 us, of a launch of its own, some late by chance in
/// bursts; if `is_delayed`, 2 % are 100 us later.
fn launch(random: &mut ChaCha8Rng, is_delayed: bool) -> Results {
    let launch_factor = 1.0 + 0.05 * (random.random::<f64>() - 0.5);
    let mut samples = Vec::new();
    for round in 0..20 {
        let mut wakes = Vec::new();
        let mut is_burst = false;
        for _ in 0..1000 {
            let turns: f64 = random.random();
            is_burst = if is_burst { turns > 0.2 } else { turns < 0.004 };
            let spread: f64 = random.random::<f64>() + random.random::<f64>();
            let mut ns = 12_000.0 * launch_factor * (0.8 + 0.2 * spread);
            if is_burst {
                ns *= 1.5 + random.random::<f64>();
            }
            if is_delayed && random.random::<f64>() < DELAYED {
                ns += DELAY_NS;
            }
            let part = TIME_SCALE.part_index(ns as u64);
            wakes.push(TIME_SCALE.part_middle(part) as i64);
        }
        let tallies = [(WAKE_NS, &wakes[..]), (REQUEST_NS, &wakes[..])];
        samples.push(sample(0, round, &tallies, &COUNTS));
    }
    let mut run = made(vec![load(ArrivalSchedule::LoadPermille(500), 0)], samples);
    let reason = StopReason::RoundsDone;
    run.end = Some(RunEnd { reason, finished: String::new(), spent_ns: 1 });
    Results::from_run(&run)
}

fn compare_tails(base: &Results, new: &Results) -> Comparison {
    let terms =
        ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted: WantedCost::P99, across: None };
    Comparison::from_results(base, new, terms)
}

#[test]
fn a_delay_of_two_percent_of_the_wakes_is_found_at_p99_and_none_where_there_is_none() {
    let pairs = repeats(10, 50);
    let (mut found, mut alarms) = (0, 0);
    for pair in 0..pairs {
        let mut random = ChaCha8Rng::seed_from_u64(pair);
        let [base, same] = [(); 2].map(|()| launch(&mut random, false));
        let delayed = launch(&mut random, true);
        let [change, no_change] = [&delayed, &same].map(|new| {
            let comparison = compare_tails(&base, new);
            assert_eq!(comparison.changes.len(), 1, "{:?}", comparison.unpaired);
            assert_eq!(comparison.changes[0].quantity, Quantity::WakeP99Ns);
            comparison.changes[0].answer
        });
        let worse = ChangeAnswer::Changed { worse: true, beyond_limit: true };
        found += u64::from(change == worse);
        alarms += u64::from(matches!(no_change, ChangeAnswer::Changed { .. }));
    }
    assert!(found * 50 >= pairs * 45, "{found} of {pairs}");
    assert!(alarms * 50 <= pairs * 3, "{alarms} of {pairs}");
}

/// Two rounds of few wakes have a p99 and no interval: the comparison has the case and says why.
#[test]
fn too_few_wakes_are_compared_without_an_answer() {
    let wakes: Vec<i64> = (1..=50).collect();
    let mut samples = Vec::new();
    for round in 0..2 {
        samples.push(sample(0, round, &[(WAKE_NS, &wakes), (REQUEST_NS, &wakes)], &COUNTS));
    }
    let mut run = made(vec![load(ArrivalSchedule::LoadPermille(500), 0)], samples);
    let reason = StopReason::RoundsDone;
    run.end = Some(RunEnd { reason, finished: String::new(), spent_ns: 1 });
    let results = Results::from_run(&run);
    let comparison = compare_tails(&results, &results);
    assert_eq!(comparison.changes.len(), 1, "{:?}", comparison.unpaired);
    let change = &comparison.changes[0];
    assert_eq!((change.base_ns, change.ratio.low), (50.0, None));
    assert!(matches!(change.answer, ChangeAnswer::CannotTell { .. }), "{change:?}");
}

/// By the median the same delay is not seen: it is the tail that has it.
#[test]
fn the_cost_that_is_compared_by_default_is_the_median_of_the_wakes() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (base, delayed) = (launch(&mut random, false), launch(&mut random, true));
    let terms = ComparisonTerms {
        limit: LIMIT,
        confidence: 0.95,
        wanted: WantedCost::Switch,
        across: None,
    };
    let comparison = Comparison::from_results(&base, &delayed, terms);
    let change = &comparison.changes[0];
    assert_eq!(change.quantity, Quantity::WakeP50Ns);
    assert!(!matches!(change.answer, ChangeAnswer::Changed { .. }), "{change:?}");
}

/// A million wakes in 1,000 rounds, over four octaves.
#[test]
fn a_million_wakes_take_less_than_ten_megabytes() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut bytes = 0;
    for round in 0..10 {
        let mut parts = vec![0; TIME_PARTS];
        for _ in 0..1000 {
            let ns = 2000.0 * (4.0 * random.random::<f64>() * std::f64::consts::LN_2).exp();
            parts[TIME_SCALE.part_index(ns as u64)] += 1;
        }
        let mut sample = sample(0, round, &[], &COUNTS);
        for name in [WAKE_NS, REQUEST_NS] {
            sample.tallies.insert(name.to_string(), tally_parts(parts.iter().copied()));
        }
        bytes += serde_json::to_string(&sample).expect("a sample").len();
    }
    assert!(bytes * 100 < 10_000_000, "{bytes} bytes for 10,000 wakes");
}
