//! Known costs, and intervals that hold them where the core's speed wanders.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::experiment::Experiment;
use rundata::plan::{Batching, Plan};
use rundata::ring::Policy;
use rundata::trial::{TrialBatching, TrialCase};
use testing::repeats;

use super::*;

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

const CPU_S: f64 = 0.1;
const TIMER_US: f64 = 1.5;

fn command(neighbour: NeighbourKind, rate_hz: u32, bytes: u64) -> CommandTrial {
    CommandTrial {
        subject: CommandSubject::Command(vec!["gzip".to_string()]),
        executable: None,
        cpus: vec![1],
        neighbour,
        rate_hz,
        bytes,
        stays_ns: 0,
        away: Some(0),
        timer: true,
    }
}

/// Alone, elsewhere, and two rates of each size.
fn plan(sizes: &[u64]) -> Plan {
    let mut all = vec![command(NeighbourKind::Nobody, 0, 0)];
    all.push(command(NeighbourKind::Elsewhere, 4000, 0));
    for bytes in sizes {
        all.extend([2000, 4000].map(|hz| command(NeighbourKind::Preempts, hz, *bytes)));
    }
    let case = |of| TrialCase { cpu: 1, policy: Policy::Fifo, trial: Trial::Command(of) };
    Plan {
        seed: 7,
        batching: Batching::of_trials(TrialBatching { trials: 1 }),
        ..Plan::from_cases(Experiment::Sensitivity, all.into_iter().map(case))
    }
}

/// A sample of a program that takes `CPU_S` alone: `scale` is how slow the core is, `us` what
/// a preemption costs beside the timer.
fn sample(
    plan: &Plan,
    case: usize,
    round: u32,
    scale: f64,
    us: impl Fn(&CommandTrial) -> f64,
) -> TrialSample {
    let Trial::Command(of) = &plan.trials().nth(case).expect("a case").1.trial else {
        panic!("another trial")
    };
    let events = (f64::from(of.rate_hz) * CPU_S).round();
    let (own, more_us) = match of.neighbour {
        NeighbourKind::Nobody => (3.0, 0.0),
        NeighbourKind::Elsewhere => (3.0, events * TIMER_US),
        NeighbourKind::Preempts => (3.0 + events, events * (TIMER_US + us(of))),
    };
    let times = of.times();
    let run_ns = scale * (CPU_S * 1e9 + 1e3 * more_us);
    let mut counts =
        BTreeMap::from([(DONE, i64::from(times)), (PREEMPTIONS, own as i64 * i64::from(times))]);
    if of.neighbour == NeighbourKind::Elsewhere {
        counts.insert(TIMER_INTERRUPTS, events as i64);
    }
    if of.neighbour == NeighbourKind::Preempts {
        counts.insert(WAKES, events as i64 * i64::from(times));
    }
    TrialSample {
        case,
        round,
        elapsed_ns: (run_ns * f64::from(times)) as u64,
        elapsed_ticks: None,
        gaps: Vec::new(),
        sliced: Vec::new(),
        tallies: BTreeMap::from([(
            CPU_NS.to_string(),
            vec![run_ns as i64; times as usize].into_iter().collect(),
        )]),
        counts: counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect(),
        steal_ns: None,
    }
}

/// The same on a core that somebody else shares for a part of the time, at a clock of its own,
/// with what was seen of both; where nobody preempts the program, each look does.
fn looked_at(mut of: TrialSample, shared: f64, period: f64) -> TrialSample {
    const LOOKS_OF_RUN: u32 = 50;
    let looks = LOOKS_OF_RUN * of.tallies[CPU_NS].count() as u32;
    let at_shared = (shared * f64::from(looks)).round() as u32;
    let ratios = vec![(1000, looks - at_shared), (2000, at_shared)];
    of.tallies.insert(QUANTUM_RATIO.to_string(), ratios.into());
    let latency = vec![((1e6 * period) as i64, looks)];
    of.tallies.insert(LATENCY_QUANTUM_NS.to_string(), latency.into());
    let width = 1.0 - f64::from(at_shared) / f64::from(looks) / 2.0;
    let more = period.powf(0.7) * width.powf(-1.3);
    let looked = of.count(WAKES).is_none_or(|wakes| wakes < i64::from(looks));
    let looks_us = f64::from(LOOKS_OF_RUN) * (TIMER_US + 2.0);
    let looks_ns = if looked { 1000.0 * looks_us } else { 0.0 };
    let slow = |ns: i64| ((ns as f64 + looks_ns) * more) as i64;
    let runs: Vec<i64> = of.tallies[CPU_NS]
        .values()
        .flat_map(|(ns, times)| vec![slow(ns); times as usize])
        .collect();
    of.tallies.insert(CPU_NS.to_string(), runs.into_iter().collect());
    if looked {
        *of.counts.entry(PREEMPTIONS.to_string()).or_default() += i64::from(looks);
        of.counts.insert(LOOKS.to_string(), looks.into());
    }
    of
}

fn samples_of(samples: Vec<TrialSample>) -> Vec<rundata::case::Sample> {
    samples.into_iter().map(rundata::case::Sample::Trial).collect()
}

fn found(plan: &Plan, samples: &[TrialSample]) -> SensitivityFindings {
    find(&Table::from_samples(plan, [], samples), None).expect("a run alone")
}

#[test]
fn beside_others_on_the_cpu_no_cost_is_quoted() {
    let plan = plan(&[0]);
    let samples: Vec<TrialSample> = (0..6)
        .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
        .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
        .collect();
    let quoted = |others_ns: u64| {
        let cpus = vec![1];
        let competing = CompetingTasks {
            cpus,
            elapsed_ns: 1_000_000_000,
            other_tasks_ns: others_ns,
            ..CompetingTasks::default()
        };
        let found =
            find(&Table::from_samples(&plan, [], &samples), Some(&competing)).expect("a run alone");
        found.points[0].ns_per_preemption.expect("a cost").quote_cost().is_ok()
    };
    assert_eq!([20_000_000, 100_000_000].map(quoted), [true, false]);
}

fn cost(of: &CommandTrial) -> f64 {
    if of.bytes == 0 { 2.0 } else { 14.0 }
}

#[test]
fn what_a_preemption_costs_is_told_without_the_timer() {
    let plan = plan(&[0, 1 << 20]);
    let cases = plan.cases.len();
    let samples: Vec<TrialSample> = (0..6)
        .flat_map(|round| (0..cases).map(move |case| (round, case)))
        .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
        .collect();
    let found = found(&plan, &samples);
    let near = |of: Option<Estimate>, us: f64| {
        let value = of.expect("a cost").value / 1000.0;
        assert!((value - us).abs() < 0.01, "{value} instead of {us}");
    };
    near(found.timer_ns, TIMER_US);
    near(found.alone_cpu_ns, 1e6 * CPU_S);
    for (point, us) in found.points.iter().zip([2.0, 14.0]) {
        near(point.ns_per_preemption, us);
        near(point.highest_above_lowest_ns, 0.0);
        point.rates.iter().for_each(|of| near(of.ns_per_preemption, us));
    }
    let more = found.points[1].rates[1].more_cpu_share.expect("a share").value;
    assert!((more - 4000.0 * 15.5e-6).abs() < 1e-4, "{more}");
}

#[test]
fn who_stays_is_told_apart_from_who_leaves_at_once() {
    let mut plan = plan(&[0]);
    for bytes in [0, 1 << 20] {
        let of = command(NeighbourKind::Preempts, 250, bytes);
        let of = CommandTrial { stays_ns: 4_000_000, ..of };
        let case = TrialCase { cpu: 1, policy: Policy::Fifo, trial: Trial::Command(of) };
        plan.cases.push(rundata::case::Case::Trial(case));
    }
    let by_stay = |of: &CommandTrial| cost(of) + of.stays_ns as f64 / 1e5;
    // On a CPU alone, and on it for half of the time: half of those who wake preempt it.
    for part in [1, 2] {
        let with_looks = |case: usize, mut of: TrialSample| {
            // Those that wake often look themselves.
            if (2..plan.cases.len() - 2).contains(&case) {
                return of;
            }
            const LOOKS_OF_RUN: i64 = 20;
            let more_ns = (1e3 * (TIMER_US + 2.0)) as i64 * LOOKS_OF_RUN;
            let looks = LOOKS_OF_RUN * of.tallies[CPU_NS].count() as i64;
            let each: Vec<i64> = of.tallies[CPU_NS]
                .values()
                .flat_map(|(ns, times)| vec![ns + more_ns; times as usize])
                .collect();
            of.tallies.insert(CPU_NS.to_string(), each.into_iter().collect());
            *of.counts.get_mut(PREEMPTIONS).expect("preemptions") += looks;
            let part = if case < 2 { 1 } else { part };
            of.counts.insert(LOOKS.to_string(), looks * part);
            *of.counts.entry(WAKES.to_string()).or_default() *= part;
            of
        };
        let samples: Vec<TrialSample> = (0..6)
            .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
            .map(|(round, case)| with_looks(case, sample(&plan, case, round, 1.0, by_stay)))
            .collect();
        let us =
            |of: &SensitivityPoint| of.ns_per_preemption.expect("a cost").value.round() / 1000.0;
        let found = found(&plan, &samples);
        let told: Vec<_> = found.points.iter().map(|of| (of.stays_ns, of.bytes, us(of))).collect();
        assert_eq!(told, [(0, 0, 2.0), (4_000_000, 0, 42.0), (4_000_000, 1 << 20, 54.0)]);
    }
}

#[test]
fn a_loss_that_does_not_grow_with_the_count_is_told() {
    let plan = plan(&[1 << 20]);
    let saturates = |of: &CommandTrial| if of.rate_hz > 2000 { 8.0 } else { 14.0 };
    let samples: Vec<TrialSample> = (0..6)
        .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
        .map(|(round, case)| sample(&plan, case, round, 1.0, saturates))
        .collect();
    let apart = found(&plan, &samples).points[0].highest_above_lowest_ns.expect("two rates");
    assert!(apart.quote().is_ok_and(|of| (of.value() + 6000.0).abs() < 10.0), "{apart:?}");
}

/// The CPU time alone may be known to a thousandth, and what a preemption costs not at all.
#[test]
fn a_run_is_as_precise_as_its_costs() {
    let plan = plan(&[0, 1 << 20]);
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let samples = rounds(&plan, 12, &mut random, |random, case, round| {
        sample(&plan, case, round, 1.0 + 0.002 * normal(random), cost)
    });
    let table = Table::from_samples(&plan, [], &samples);
    let found = super::estimate_costs(&table).expect("a run alone");
    let width = |of: &Option<Estimate>| of.and_then(|of| of.relative_half_width());
    let costs: Vec<f64> =
        found.points.iter().filter_map(|of| width(&of.ns_per_preemption)).collect();
    let widest = costs.iter().copied().fold(0.0, f64::max);
    assert!(width(&found.alone_cpu_ns) < Some(0.01) && widest > 0.05, "{found:?}");
    assert_eq!(crate::interim::worst_precision(&plan, &samples_of(samples), &[]), Some(widest));
}

#[test]
fn too_few_preemptions_are_no_cost() {
    let mut plan = plan(&[0]);
    for case in &mut plan.cases {
        let rundata::case::Case::Trial(case) = case else { continue };
        let Trial::Command(of) = &mut case.trial else { continue };
        of.rate_hz = of.rate_hz.min(50);
    }
    let samples: Vec<TrialSample> = (0..6)
        .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
        .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
        .collect();
    let found = found(&plan, &samples);
    assert_eq!((found.points[0].ns_per_preemption, found.timer_ns), (None, None));
}

/// Some cases by chance, in an order of each round.
fn rounds(
    plan: &Plan,
    count: u32,
    random: &mut ChaCha8Rng,
    mut of: impl FnMut(&mut ChaCha8Rng, usize, u32) -> TrialSample,
) -> Vec<TrialSample> {
    let mut samples = Vec::new();
    for round in 0..count {
        for case in plan.order(round) {
            samples.push(of(random, case, round));
        }
    }
    samples.shuffle(random);
    samples.sort_by_key(|of| of.round);
    samples
}

#[test]
fn a_shared_core_and_a_clock_that_moves_are_taken_out_by_what_was_seen_of_them() {
    let plan = plan(&[0, 1 << 20]);
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let samples = rounds(&plan, 12, &mut random, |random, case, round| {
        let (shared, clock) = (random.random::<f64>(), random.random::<f64>());
        let shared = if shared < 0.5 { 0.0 } else { shared };
        looked_at(sample(&plan, case, round, 1.0, cost), shared, 1.0 + 0.1 * clock)
    });
    let found = found(&plan, &samples);
    let speed = found.core_speed.expect("looks");
    let near = |one: f64, other: f64, by: f64| assert!((one - other).abs() < by, "{speed:?}");
    near(speed.power_of_width, 1.3, 0.02);
    near(speed.power_of_period, 0.7, 0.02);
    assert!(speed.scatter[0] > 0.2 && speed.scatter[1] < 0.002, "{speed:?}");
    // All are brought to the middle clock.
    let at = 1.05_f64.powf(0.7);
    for (point, us) in found.points.iter().zip([2.0, 14.0]) {
        let of = point.ns_per_preemption.expect("a cost");
        assert!((of.value / 1000.0 / at - us).abs() < 0.15, "{of:?} instead of {us}");
    }
    let alone_ms = found.alone_cpu_ns.expect("runs").value / 1e6;
    assert!((alone_ms / at - 1000.0 * CPU_S).abs() < 0.3, "{alone_ms}");
}

/// Memory that all guests share is seen by no quantum, and changes slowly.
#[test]
fn what_changes_slowly_is_taken_out_by_the_samples_around() {
    let plan = plan(&[0, 1 << 20]);
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let mut drift = 0.0;
    let samples = rounds(&plan, 30, &mut random, |random, case, round| {
        drift = 0.98 * drift + 0.01 * normal(random);
        let scale = f64::exp(drift + 0.002 * normal(random));
        looked_at(sample(&plan, case, round, scale, cost), 0.0, 1.0)
    });
    let found = found(&plan, &samples);
    let speed = found.core_speed.expect("looks");
    assert!(speed.part_of_time > 0.8, "{speed:?}");
    assert!(speed.scatter[1] < speed.scatter[0] / 2.0, "{speed:?}");
    let interval = |of: &SensitivityPoint| of.ns_per_preemption?.interval();
    let [none, some] = [0, 1].map(|at| interval(&found.points[at]).expect("an interval"));
    assert!(none.half_width() < 2000.0 && some.half_width() < 2000.0, "{none:?} {some:?}");
    assert!((some.low..=some.high).contains(&14_000.0), "{some:?}");
}

/// Neighbours that wake more rarely than somebody looks, and as often.
#[test]
fn looks_are_no_part_of_a_cost_at_any_rate() {
    for [low, high] in [[100, 200], [250, 500], [500, 1000]] {
        let mut plan = plan(&[0, 1 << 20]);
        for case in &mut plan.cases {
            let rundata::case::Case::Trial(case) = case else { continue };
            let Trial::Command(of) = &mut case.trial else { continue };
            of.rate_hz = match of.rate_hz {
                2000 => low,
                4000 if of.neighbour == NeighbourKind::Preempts => high,
                other => other,
            };
        }
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let samples = rounds(&plan, 8, &mut random, |_, case, round| {
            // More runs, so that the rarest preempts often enough.
            let mut of = sample(&plan, case, round, 1.0, cost);
            of.counts.iter_mut().for_each(|(_, count)| *count *= 4);
            let runs = of.tallies[CPU_NS].values().map(|(ns, times)| (ns, 4 * times));
            let runs = runs.collect::<Vec<_>>().into();
            of.tallies.insert(CPU_NS.to_string(), runs);
            looked_at(of, 0.0, 1.0)
        });
        let found = found(&plan, &samples);
        for (point, us) in found.points.iter().zip([2.0, 14.0]) {
            let of = point.ns_per_preemption.expect("a cost");
            assert!((of.value / 1000.0 - us).abs() < 0.01, "{low} {high}: {of:?} not {us}");
        }
    }
}

#[test]
fn without_the_timers_interrupt_a_cost_holds_it() {
    let plan = plan(&[0]);
    let samples: Vec<TrialSample> = (0..6)
        .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
        .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
        .map(|mut of| {
            of.counts.remove(TIMER_INTERRUPTS);
            of
        })
        .collect();
    let found = found(&plan, &samples);
    let value = found.points[0].ns_per_preemption.expect("a cost").value;
    assert!(found.timer_ns.is_none() && (value - 1000.0 * (2.0 + TIMER_US)).abs() < 10.0);
}

/// Of which nobody knows how fast the core was, among others of which that is known.
#[test]
fn a_sample_without_looks_is_passed_over_where_the_others_are_brought() {
    let plan = plan(&[0, 1 << 20]);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut samples = rounds(&plan, 12, &mut random, |random, case, round| {
        looked_at(sample(&plan, case, round, 1.0, cost), random.random(), 1.0)
    });
    let mut lost = 0;
    for of in samples.iter_mut().filter(|of| of.round == 5 && of.case == 2) {
        of.tallies.remove(QUANTUM_RATIO);
        lost += 1;
    }
    let found = found(&plan, &samples);
    let rounds = |at: usize| found.points[at].ns_per_preemption.expect("a cost").rounds;
    assert_eq!((lost, rounds(0), rounds(1)), (1, 11, 11));
}

#[test]
fn too_few_samples_change_nothing() {
    let plan = plan(&[0]);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let samples = rounds(&plan, 5, &mut random, |random, case, round| {
        looked_at(sample(&plan, case, round, 1.0, cost), random.random(), 1.0)
    });
    let speed = found(&plan, &samples).core_speed.expect("looks");
    assert_eq!((speed.power_of_width, speed.power_of_period, speed.part_of_time), (0.0, 0.0, 0.0));
}

/// The core's speed wanders from run to run, each near the one before: which nobody sees, or
/// which is seen in part, as somebody shares the core for some of the time.
fn coverage(is_seen: bool) -> ([f64; 2], f64) {
    let runs: u32 = repeats(120, 600);
    let plan = plan(&[0, 1 << 20]);
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut inside = [0_u32; 2];
    let mut widths = 0.0;
    for _ in 0..runs {
        let (mut drift, mut shared) = (0.0, 0.0);
        let samples = rounds(&plan, 20, &mut random, |random, case, round| {
            drift = 0.9 * drift + 0.004 * normal(random);
            shared = f64::clamp(0.9 * shared + 0.1 * normal(random), 0.0, 1.0);
            let scale = 1.0 + drift + 0.004 * normal(random);
            let of = sample(&plan, case, round, scale, cost);
            if is_seen { looked_at(of, shared, 1.0) } else { of }
        });
        let found = found(&plan, &samples);
        for (inside, (point, us)) in inside.iter_mut().zip(found.points.iter().zip([2.0, 14.0])) {
            let ends = point.ns_per_preemption.and_then(|of| of.interval()).expect("an interval");
            *inside += u32::from((ends.low..=ends.high).contains(&(1000.0 * us)));
            widths += (ends.high - ends.low) / 2.0 / f64::from(runs);
        }
    }
    (inside.map(|inside| f64::from(inside) / f64::from(runs)), widths)
}

#[test]
fn intervals_hold_the_cost_where_the_speed_wanders() {
    let ((unseen, wide), (seen, narrow)) = (coverage(false), coverage(true));
    for shares in [unseen, seen] {
        assert!(shares.iter().all(|share| (0.90..=0.995).contains(share)), "{unseen:?} {seen:?}");
    }
    // On a core that is shared for a tenth of the time as narrow as on one that is not.
    assert!(narrow < 1.2 * wide, "{narrow} {wide}");
}
