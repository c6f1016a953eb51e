//! Known answers of wake-ups under load on made-up samples, and how often a planted delay is found.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::experiment::Experiment;
use rundata::plan::{CaseHistory, QuantileScatter};
use rundata::ring::MemberKind;
use rundata::run::{Run, RunEnd, StopReason};
use testing::repeats;

use super::super::tests::{run, sample};
use super::*;
use crate::comparison::{
    ChangeAnswer, Comparison, ComparisonTerms, LIMIT, UndecidedReason, WantedCost,
};
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
    // Launches scatter by 12 %: exp(1.96 x 0.12) = 1.265. Equal rounds have the interval of independent
    // values besides, half of which is 1.96 x 7.7 of 6,000 ranks or 0.3 %.
    assert_eq!(p99.value_ns, 29_700);
    assert!((23_460..=23_480).contains(&p99.low_ns), "{p99:?}");
    assert!((37_570..=37_590).contains(&p99.high_ns), "{p99:?}");
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

/// A value of mean 0 and standard deviation 1: twelve uniform ones less 6.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let mut sum = 0.0;
    for _ in 0..12 {
        sum += random.random::<f64>();
    }
    sum - 6.0
}

/// The interval of a launch holds what launches scatter about, 1 ms, by their known scatter of 30 %; of
/// each launch itself the tail is known to 10 %. Without the scatter 30 % of them would hold it.
#[test]
fn intervals_hold_for_fresh_launches() {
    let mut random = ChaCha8Rng::seed_from_u64(1992);
    let mut held = 0;
    for _ in 0..400 {
        let launch_ns = 1e6 * (0.3 * normal(&mut random)).exp();
        let mut samples = Vec::new();
        for round in 0..8 {
            let mut wakes = Vec::new();
            for _ in 0..125 {
                // The 99th percentile is at ln(100).
                let share = -f64::ln(1.0 - random.random::<f64>()) / f64::ln(100.0);
                wakes.push((launch_ns * share) as i64);
            }
            samples.push(sample(0, round, &[(WAKE_NS, &wakes), (REQUEST_NS, &wakes)], &COUNTS));
        }
        let mut run = made(vec![load(ArrivalSchedule::RatePerS(1000), 0)], samples);
        let known = QuantileScatter { wake_p99: Some(0.3), ..QuantileScatter::default() };
        let known = CaseHistory { quantile_scatter: Some(known), ..CaseHistory::default() };
        run.header.plan.reference.cases = vec![known];
        let wake = find_in(&run)[0].wake.clone().unwrap();
        let p99 = wake.p99_ns.unwrap();
        held += u32::from((p99.low_ns..=p99.high_ns).contains(&1_000_000));
    }
    assert!((372..=392).contains(&held), "{held} of 400");
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
    let delayed = if is_delayed { DELAYED } else { 0.0 };
    launch_of_rounds(random, vec![delayed; 20])
}

/// Like [`launch`], with the share of delayed wakes of each round.
fn launch_of_rounds(random: &mut ChaCha8Rng, delayed: Vec<f64>) -> Results {
    let launch_factor = 1.0 + 0.05 * (random.random::<f64>() - 0.5);
    let mut samples = Vec::new();
    for (round, delayed) in (0..).zip(delayed) {
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
            if delayed > 0.0 && random.random::<f64>() < delayed {
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

/// Late wakes come in half of the rounds: with some 1 % of all, p99 is as often 25 us as 115.
fn launch_at_the_edge(random: &mut ChaCha8Rng, rounds: u32) -> Results {
    let mut delayed = Vec::new();
    for _ in 0..rounds {
        delayed.push(if random.random::<f64>() < 0.5 { DELAYED } else { 0.0 });
    }
    launch_of_rounds(random, delayed)
}

/// The interval of such a p99 spans a factor of four. That is no change, and not zero.
#[test]
fn a_tail_that_is_known_to_a_factor_has_a_ratio_and_no_false_alarms() {
    let pairs = repeats(10, 50);
    for rounds in [8, 20] {
        let (mut alarms, mut wide) = (0, 0);
        for pair in 0..pairs {
            let mut random = ChaCha8Rng::seed_from_u64(1000 * u64::from(rounds) + pair);
            let [base, new] = [(); 2].map(|()| launch_at_the_edge(&mut random, rounds));
            let change = &compare_tails(&base, &new).changes[0];
            let (low, high) = change.ratio.interval().expect("a ratio");
            wide += u64::from(high / low > 3.0);
            alarms += u64::from(matches!(change.answer, ChangeAnswer::Changed { .. }));
            if let ChangeAnswer::CannotTell { reason, .. } = change.answer {
                assert_eq!(reason, UndecidedReason::TooWide, "{change:?}");
            }
        }
        assert!(wide * 2 > pairs, "{wide} of {pairs} at {rounds} rounds");
        assert!(alarms * 50 <= pairs * 3, "{alarms} of {pairs} at {rounds} rounds");
    }
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

/// Workers, CPUs and times of a round that is made up.
#[derive(Clone, Copy)]
struct MadeLoad {
    load_permille: u32,
    think_ns: f64,
    workers: usize,
    cpus: usize,
    /// Longest time from a wake to the worker's start; shorter ones are as likely.
    max_wake_ns: f64,
    /// Time that a messenger takes to send a request.
    send_ns: f64,
}

impl MadeLoad {
    const PLAIN: Self = Self {
        load_permille: 800,
        think_ns: 200_000.0,
        workers: 1,
        cpus: 1,
        max_wake_ns: 50_000.0,
        send_ns: 2000.0,
    };

    fn wake_load(&self) -> WakeLoad {
        WakeLoad {
            workers: self.workers as u32,
            worker_cpus: (1..=self.cpus as u32).collect(),
            ..load(ArrivalSchedule::LoadPermille(self.load_permille), 0)
        }
    }

    /// Makes the sample of a round: exponential gaps, one messenger, and CPUs that serve requests in
    /// the order in which they come.
    fn sample(&self, random: &mut ChaCha8Rng, round: u32) -> TrialSample {
        let full_rate = self.cpus.min(self.workers) as f64 / self.think_ns;
        let per_ns = full_rate * f64::from(self.load_permille) / 1000.0;
        let counted = (per_ns * 250e6 / self.workers as f64).ceil().max(4.0) as usize;
        let mut served = vec![Vec::new(); self.workers];
        let (mut free_ns, mut messenger_free_ns) = (vec![0.0; self.cpus], 0.0_f64);
        let (mut intended_ns, mut slept_ns, mut late_ns) = (0.0, 0.0, 0.0);
        for number in 0..(counted + 4) * self.workers {
            intended_ns -= (1.0 - random.random::<f64>()).ln() / per_ns;
            let mut sent_ns = messenger_free_ns;
            if messenger_free_ns < intended_ns {
                sent_ns = intended_ns + 20_000.0 * random.random::<f64>();
                slept_ns += sent_ns - messenger_free_ns;
            }
            late_ns += sent_ns - intended_ns;
            messenger_free_ns = sent_ns + self.send_ns;
            let worker = number % self.workers;
            let cpu_free_ns = &mut free_ns[worker % self.cpus];
            let mut begin_ns = *cpu_free_ns;
            if *cpu_free_ns < sent_ns {
                begin_ns = sent_ns + self.max_wake_ns * random.random::<f64>();
            }
            *cpu_free_ns =
                begin_ns + 1000.0 + self.think_ns * (1.0 + 0.05 * random.random::<f64>());
            let (begin_ns, done_ns) = (begin_ns as u64, *cpu_free_ns as u64);
            served[worker].push(ServedRequest { begin_ns, done_ns });
        }
        let all_requests = (counted + 4) * self.workers;
        let elapsed_ns = free_ns.iter().fold(0.0_f64, |last, ns| last.max(*ns));
        let counts = [
            (SENT, (counted * self.workers) as f64),
            (RECEIVED, (counted * self.workers) as f64),
            (ALL_REQUESTS, all_requests as f64),
            (RATE_PER_S, (per_ns * 1e9).round()),
            (DEMAND_NS, self.think_ns),
            (SCHEDULE_NS, intended_ns),
            (OCCUPIED_NS, occupied_ns(&served, self.wake_load().loaded_cpus()) as f64),
            (MESSENGER_BUSY_NS, messenger_free_ns - slept_ns),
            (LATE_TOTAL_NS, late_ns),
        ]
        .map(|(name, count)| (name, count as i64));
        let times = [self.think_ns as i64; 8];
        let made = sample(0, round, &[(REQUEST_NS, &times)], &counts);
        TrialSample { elapsed_ns: elapsed_ns as u64, ..made }
    }

    /// Counts the overloads that are found in so many rounds, each by itself.
    fn overloads(self, rounds: u32) -> u32 {
        let mut overloads = 0;
        for round in 0..rounds {
            let mut random = ChaCha8Rng::seed_from_u64(round.into());
            let sample = self.sample(&mut random, 0);
            let found = find_in(&made(vec![self.wake_load()], vec![sample]));
            assert!(!found[0].is_limited_by_messengers(), "{:?}", found[0]);
            overloads += u32::from(found[0].is_overloaded);
        }
        overloads
    }
}

/// Of 100 ms each a round has eight requests. What is to do at its end says nothing then.
#[test]
fn an_overload_is_told_from_a_long_queue() {
    for think_ns in [200_000.0, 20e6, 100e6] {
        for (workers, cpus) in [(1, 1), (4, 1), (4, 4)] {
            let made = MadeLoad { think_ns, workers, cpus, ..MadeLoad::PLAIN };
            let false_alarms = made.overloads(100);
            let found = MadeLoad { load_permille: 1200, ..made }.overloads(100);
            let words = format!("{think_ns} ns, {workers} workers, {cpus} CPUs");
            assert!(false_alarms <= 5, "{words}: {false_alarms} of 100 at 80 %");
            assert!(found >= 95, "{words}: {found} of 100 at 120 %");
        }
    }
}

/// Each wake waits for busy tasks, up to 40 ms; the worker then does what has come meanwhile.
#[test]
fn waits_for_busy_tasks_are_no_overload() {
    let busy = MadeLoad { load_permille: 300, max_wake_ns: 40e6, ..MadeLoad::PLAIN };
    let false_alarms = busy.overloads(100);
    assert!(false_alarms <= 5, "{false_alarms} of 100");
}

/// A request is planned every 250 us, and takes a messenger 312.5 us.
#[test]
fn messengers_that_cannot_send_as_much_are_found_by_their_time() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let slow = MadeLoad { send_ns: 312_500.0, ..MadeLoad::PLAIN };
    let found = find_in(&made(vec![slow.wake_load()], vec![slow.sample(&mut random, 0)]));
    assert!(found[0].is_overloaded && found[0].is_limited_by_messengers(), "{:?}", found[0]);
    let need = found[0].messengers_need.expect("a count");
    assert!((1.2..1.3).contains(&need), "{need}");
    let [done, planned] = [found[0].done_per_s, found[0].planned_per_s].map(Option::unwrap);
    assert!((done * need / planned - 1.0).abs() < 1e-9, "{done} of {planned}");
}
