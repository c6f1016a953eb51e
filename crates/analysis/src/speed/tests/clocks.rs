//! Figures of runs whose clock moved.

use testing::repeats;

use super::*;
use crate::estimate::Speed;

/// Ten rounds of 20 slices of a hop of 1,000 ns: the core's period is so many times its usual one
/// in a slice, and the hop takes that to the power of `power`.
fn run(rounds: u32, power: f64, period: impl Fn(u32, usize) -> f64) -> (Plan, Vec<RingSample>) {
    let one = |round| {
        let mut sample = cut(sample(round), 20, |_| true);
        let slices = sample.slices.as_mut().unwrap();
        for (at, ns) in slices.elapsed_ns.iter_mut().enumerate() {
            *ns = (*ns as f64 * period(round, at).powf(power)).round() as u64;
        }
        // Slice i lies between quanta i, i + 1 and i + 2, i + 3.
        let quanta = slices.latency_ns.iter_mut().zip(&mut slices.throughput_ns).enumerate();
        for (at, (latency, throughput)) in quanta {
            let times = period(round, at.saturating_sub(1).min(19));
            *latency = (f64::from(*latency) * times).round() as u32;
            *throughput = (f64::from(*throughput) * times).round() as u32;
        }
        sample.elapsed_ns = slices.elapsed_ns.iter().sum();
        sample.counters.cpu_ns = sample.elapsed_ns;
        sample
    };
    (plan_of(case(2)), (0..rounds).map(one).collect())
}

#[test]
fn times_at_other_clocks_are_brought_to_the_runs_by_their_own_power() {
    for power in [0.0, 0.4, 1.0] {
        // Six rounds at the usual clock, four at one that is 10 % slower.
        let (plan, samples) = run(10, power, |round, _| if round % 5 < 3 { 1.0 } else { 1.1 });
        let table = Table::from_samples(&plan, &samples, []);
        let hop = table.hop(0, 1).unwrap();
        assert!((hop.value - 1000.0).abs() < 1.0 && hop.speed == Speed::Full, "{power}: {hop:?}");
        assert_eq!(table.slices(0).unwrap().clean_counts().clean, 200);
        let found = table.hop_elasticity(0).unwrap();
        assert!((found.value - power).abs() < 0.01, "{power}: {found:?}");
        assert!(found.standard_error < 0.01, "{power}: {found:?}");
        // All clocks count: nothing is left out, and nothing is another's.
        assert!(hop.relative_half_width().unwrap() < 0.0205, "{hop:?}");
    }
}

#[test]
fn where_all_tell_how_they_go_with_it_times_are_at_the_clock_of_earlier_launches() {
    let usual = |power, ns, still| {
        let period = |round: u32, _| if round % 5 < 3 || still { 1.0 } else { 1.1 };
        let (mut plan, samples) = run(10, power, period);
        plan.reference.clock_ns = Some(ns);
        let table = Table::from_samples(&plan, &samples, []);
        let level = *table.levels().values().next().unwrap();
        (table.hop(0, 1).unwrap().value, level.clock_ns)
    };
    let slower = 1.05 * f64::from(ALONE.0);
    assert!((usual(1.0, slower, false).0 - 1050.0).abs() < 1.0);
    assert!((usual(0.0, slower, false).0 - 1000.0).abs() < 1.0);
    assert_eq!(usual(1.0, slower, false).1, slower);
    // A clock that it did not see, and a run that saw one clock: it stays at its own.
    let far = 1.5 * f64::from(ALONE.0);
    assert_eq!(usual(1.0, far, false).1, f64::from(ALONE.0));
    assert_eq!(usual(1.0, slower, true), (1000.0, f64::from(ALONE.0)));
}

#[test]
fn at_one_clock_nothing_is_brought_anywhere() {
    let (plan, samples) = run(10, 1.0, |_, _| 1.0);
    let table = Table::from_samples(&plan, &samples, []);
    assert_eq!((table.hop_elasticity(0), table.hop(0, 1).unwrap().value), (None, 1000.0));
    // A single round at another one does not say how a hop goes with it: its slices are left out.
    let (plan, samples) = run(10, 1.0, |round, _| if round == 9 { 1.1 } else { 1.0 });
    let table = Table::from_samples(&plan, &samples, []);
    let clean = table.slices(0).unwrap().clean_counts().clean;
    assert_eq!((clean, table.hop_elasticity(0)), (180, None));
    assert!((table.hop(0, 1).unwrap().value - 1000.0).abs() < 1.0);
}

#[test]
fn a_slice_in_which_the_clock_changed_is_not_clean() {
    // Within each batch: the two slices before the step and the one behind it have quanta of both
    // clocks.
    let (plan, samples) = run(10, 1.0, |_, at| if at < 12 { 1.0 } else { 1.1 });
    let table = Table::from_samples(&plan, &samples, []);
    let clean = table.slices(0).unwrap().clean_counts().clean;
    assert_eq!(clean, 170, "three of 20 in each round");
    let hop = table.hop(0, 1).unwrap();
    assert!((hop.value - 1000.0).abs() < 1.0, "{hop:?} {:?}", table.levels());
    assert!((table.hop_elasticity(0).unwrap().value - 1.0).abs() < 0.01);
}

#[test]
fn another_clock_is_no_disturbance() {
    // Too few rounds to say how a hop goes with the clock.
    let (plan, samples) = run(4, 1.0, |round, _| if round == 0 { 1.0 } else { 1.1 });
    let table = Table::from_samples(&plan, &samples, []);
    assert_eq!(table.hop_elasticity(0), None);
    let counts = table.slices(0).unwrap().clean_counts();
    assert_eq!((counts.clean, counts.other_clock_as_found, counts.judged), (60, 20, 80));
    assert_eq!(counts.undisturbed_share(), Some(1.0));
    let (plan, samples) = run(10, 1.0, |round, _| if round % 5 < 3 { 1.0 } else { 1.1 });
    let verdict = crate::noise::judge(&Table::from_samples(&plan, &samples, []));
    let (slowest, fastest) = verdict.clock_range.unwrap();
    assert!((slowest + 0.0909).abs() < 1e-3 && fastest.abs() < 1e-3, "{verdict:?}");
    assert!(
        verdict.level == crate::noise::NoiseLevel::Quiet && verdict.reasons.is_empty(),
        "{verdict:?}"
    );
}

/// How the clock of a simulated launch goes.
#[derive(Clone, Copy, Debug)]
enum Moves {
    /// It stays what it is.
    Never,
    /// In steps of 2 % about a level that drifts from round to round.
    Drifts,
    /// 8 % slower while others work, who then share the core in half of the slices, too.
    WithTheLoad,
}

/// Periods of a launch's rounds, and which of them have others at work. What was is much of what
/// is.
fn periods(moves: Moves, rounds: usize, rng: &mut ChaCha8Rng) -> Vec<(f64, bool)> {
    let mut state = 0.0;
    let mut next = || {
        state = 0.8 * state + simulation::normal(rng);
        match moves {
            Moves::Never => (1.0, false),
            Moves::Drifts => (1.0 + 0.02 * f64::round(state).abs(), false),
            Moves::WithTheLoad => (if state > 0.5 { 1.08 } else { 1.0 }, state > 0.5),
        }
    };
    (0..rounds).map(|_| next()).collect()
}

/// Slices that others share take 1.4 times as long, and so do the throughput-bound loops around
/// them.
fn share_half(slices: &mut Slices) {
    for at in (0..slices.elapsed_ns.len()).filter(|at| at % 8 < 4) {
        slices.elapsed_ns[at] = slices.elapsed_ns[at] * 7 / 5;
        slices.throughput_ns[at + 1] = slices.throughput_ns[at + 1] * 7 / 5;
    }
}

/// Hops scatter by 1 % between rounds, which depend on each other; their power is 0.7.
#[test]
fn intervals_hold_however_the_clock_moves() {
    // Two and a half standard errors of a share of 95 % below it, of either number; above it only
    // all of them together can be too many.
    let (launches, least) = repeats((50, 87), (200, 90));
    let mut all = 0;
    for moves in [Moves::Never, Moves::Drifts, Moves::WithTheLoad] {
        let mut rng = ChaCha8Rng::seed_from_u64(1992);
        let mut widths = Vec::new();
        let covered = (0..launches).filter(|_| {
            let of_rounds = periods(moves, 20, &mut rng);
            let own: Vec<f64> = (0..20).map(|_| 0.01 * simulation::normal(&mut rng)).collect();
            let (mut plan, mut samples) = run(20, 0.7, |round, _| of_rounds[round as usize].0);
            for ((sample, own), (_, shared)) in samples.iter_mut().zip(&own).zip(&of_rounds) {
                let slices = sample.slices.as_mut().unwrap();
                slices.elapsed_ns.iter_mut().for_each(|ns| *ns = (*ns as f64 * own.exp()) as u64);
                if *shared {
                    share_half(slices);
                }
            }
            plan.reference.launch_scatter = Some(0.0);
            let table = Table::from_samples(&plan, &samples, []);
            let level = table.levels().values().next().unwrap();
            let truth = 1000.0 * (level.clock_ns / f64::from(ALONE.0)).powf(0.7);
            let hop = table.hop(0, 1).unwrap();
            widths.extend(hop.relative_half_width());
            hop.interval().is_some_and(|of| of.low <= truth && truth <= of.high)
        });
        let covered = covered.count();
        all += covered;
        let percent = 100 * covered / launches;
        let width = stats::median(&widths).unwrap();
        println!("{moves:?}: {percent} %, +-{:.2} %", 100.0 * width);
        assert!(percent >= least, "{moves:?}: {percent} %");
        assert!(width < 0.01, "{moves:?}: {width}");
    }
    assert!(100 * all / (3 * launches) <= 99, "{all} of {}", 3 * launches);
}

/// Workers of triples: members' solos of 400 ns a hop, of which the core bounds so much, and a ring
/// of 1,000 ns, all of it bound by the core.
fn run_of_triples(
    rounds: u32,
    solo_power: f64,
    period: impl Fn(u32) -> f64,
) -> (Plan, Vec<RingSample>) {
    let mut plan = plan_of(case(2));
    plan.batching.ring.triples = Some(10);
    let worker = |round| {
        let times = period(round);
        let own = 1.0 + 0.001 * f64::from(round % 7);
        let part = |ns: f64, power: f64| (ns * own * times.powf(power)).round() as u64;
        let quantum = |ns: u32| (f64::from(ns) * times).round() as u32;
        let triple = Triple {
            ring_ns: vec![part(200_000.0, 1.0); 3],
            solos_ns: vec![part(80_000.0, solo_power); 4],
            latency_ns: vec![quantum(ALONE.0); 12],
            throughput_ns: vec![quantum(ALONE.1); 12],
            ..Triple::default()
        };
        let triples = Triples {
            members: 2,
            ring_laps: 100,
            solo_laps: 200,
            all: vec![triple; 10],
            ..Triples::default()
        };
        RingSample { triples: Some(triples.into()), ..cut(sample(round), 20, |_| true) }
    };
    (plan, (0..rounds).map(worker).collect())
}

/// (1000 - 400) x 1.003 in the middle of the workers. Of the difference the power is (1000 - 400 x
/// 0.5) / 600.
#[test]
fn rings_and_solos_of_triples_are_brought_each_by_its_own_power() {
    let (plan, samples) = run_of_triples(21, 0.5, |round| if round % 3 == 0 { 1.1 } else { 1.0 });
    let table = Table::from_samples(&plan, &samples, []);
    let cost = table.above_solo(0, 1).unwrap();
    assert!((cost.value - 601.8).abs() < 1.0 && cost.speed == Speed::Full, "{cost:?}");
    let power = table.elasticity(0).unwrap();
    assert!((power.value - 800.0 / 600.0).abs() < 0.02, "{power:?}");
    assert!((0.001..0.1).contains(&power.standard_error), "{power:?}");
    // All are clean, at whatever clock.
    assert_eq!(table.slices(0).unwrap().clean_above.len(), 21);
    // At one clock there is nothing to bring, and nothing is known of it.
    let (plan, samples) = run_of_triples(21, 0.5, |_| 1.0);
    let table = Table::from_samples(&plan, &samples, []);
    assert_eq!(table.elasticity(0), None);
    assert!((table.above_solo(0, 1).unwrap().value - 601.8).abs() < 1.0);
}
