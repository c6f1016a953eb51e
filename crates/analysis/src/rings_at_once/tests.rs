use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::placement::Placement;
use rundata::plan::Reference;
use rundata::ring::{Counters, Flight};
use stats::normal_quantile;

use super::*;
use crate::speed::cut;
use crate::summary::summaries;

/// The ratio of the two loops on an unshared core, as [`cut`] makes them.
const UNSHARED_RATIO: f64 = 5920.0 / 5860.0;
/// Rounds of a simulated launch.
const ROUNDS: u32 = 20;
/// Laps of a simulated sample of a ring of two.
const LAPS: u64 = 2500;
/// Time of a hop in the single ring, in nanoseconds.
const HOP_NS: f64 = 2000.0;

/// A solo, the single ring, and so many rings on CPUs of their own, or all on CPU 0.
fn plan(counts: &[u32], on_own_cpus: bool) -> Plan {
    let placement = |ring: u32| Placement::Same { cpu: if on_own_cpus { ring } else { 0 } };
    let mut cases = vec![RingCase::of_processes(1, placement(0))];
    for count in counts {
        let beside = (1..*count).map(placement).collect();
        cases.push(RingCase { beside, ..RingCase::of_processes(2, placement(0)) });
    }
    let reference = Reference {
        unshared_ratio: Some(UNSHARED_RATIO),
        established: true,
        ..Reference::default()
    };
    Plan { seed: 7, reference, ..Plan::from_cases(Experiment::Ring, cases) }
}

/// A sample of one ring with one switch a hop.
fn ring(case: usize, round: u32, hop_ns: f64) -> RingSample {
    let (laps, hops) = (LAPS, 2 * LAPS);
    RingSample {
        case,
        round,
        laps,
        hops,
        elapsed_ns: (hop_ns * hops as f64).round() as u64,
        counters: Counters {
            voluntary: hops,
            migrations: Some(0),
            cpu_ns: (hop_ns * hops as f64).round() as u64,
            ..Counters::default()
        },
        ..RingSample::default()
    }
}

/// Adds up rings as a worker does.
fn together(rings: Vec<RingSample>) -> RingSample {
    let sum = |read: fn(&RingSample) -> u64| rings.iter().map(read).sum::<u64>();
    let counters = Counters {
        voluntary: sum(|ring| ring.counters.voluntary),
        migrations: Some(sum(|ring| ring.counters.migrations.unwrap_or(0))),
        cpu_ns: sum(|ring| ring.counters.cpu_ns),
        ..Counters::default()
    };
    RingSample {
        case: rings[0].case,
        round: rings[0].round,
        laps: sum(|ring| ring.laps),
        hops: sum(|ring| ring.hops),
        elapsed_ns: sum(|ring| ring.elapsed_ns) / rings.len() as u64,
        counters,
        rings,
        ..RingSample::default()
    }
}

/// Normal figures.
struct Noise(ChaCha8Rng);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn normal(&mut self) -> f64 {
        let z = normal_quantile(self.0.random_range(0.0..1.0)).unwrap_or(0.0);
        if self.0.random_bool(0.5) { -z } else { z }
    }

    /// Figures of a launch, each depending on the one before by this correlation.
    fn course(&mut self, correlation: f64) -> Vec<f64> {
        let mut course = vec![self.normal()];
        for _ in 1..ROUNDS {
            let before = course[course.len() - 1];
            let new = (1.0 - correlation * correlation).sqrt() * self.normal();
            course.push(correlation * before + new);
        }
        course
    }
}

/// How times of a simulated launch scatter, as shares.
#[derive(Clone, Copy)]
struct Scatter {
    /// Between launches, of each case by itself.
    launches: f64,
    /// From round to round, of all cases together.
    drift: f64,
    /// From round to round, of each ring by itself.
    rounds: f64,
    /// Correlation of one round with the next.
    correlation: f64,
}

const SCATTER: Scatter = Scatter { launches: 0.01, drift: 0.05, rounds: 0.02, correlation: 0.4 };

/// A launch of the solo, the single ring, and rings that take so many times its hop.
fn launch(slower: &[&[f64]], scatter: Scatter, seed: u64) -> Vec<RingSample> {
    let mut noise = Noise::new(seed);
    let drift = noise.course(scatter.correlation);
    let mut samples = Vec::new();
    for (case, rings) in [&[0.25][..], &[1.0]].iter().chain(slower).enumerate() {
        let level = (scatter.launches * noise.normal()).exp();
        let mut courses = Vec::new();
        for _ in 0..rings.len() {
            courses.push(noise.course(scatter.correlation));
        }
        for round in 0..ROUNDS {
            let at = round as usize;
            let mut of_round = Vec::new();
            for (times, course) in rings.iter().zip(&courses) {
                let changes = scatter.drift * drift[at] + scatter.rounds * course[at];
                of_round.push(ring(case, round, HOP_NS * times * level * changes.exp()));
            }
            samples.push(match of_round.len() {
                1 => of_round.remove(0),
                _ => together(of_round),
            });
        }
    }
    samples
}

/// The summaries of a launch with these numbers of rings.
fn summaries_of(counts: &[u32], samples: &[RingSample]) -> Vec<CaseSummary> {
    let plan = plan(counts, true);
    summaries(&Table::from_samples(&plan, samples, []), &[])
}

fn rings_of(summary: &CaseSummary) -> &SimultaneousRings {
    summary.rings_at_once.as_deref().expect("several rings beside")
}

/// The example of the module.
#[test]
fn rates_are_added_up_and_hops_are_their_mean() {
    let exact = Scatter { launches: 0.0, drift: 0.0, rounds: 0.0, correlation: 0.0 };
    let samples = launch(&[&[1.0, 1.0, 1.25, 2.0]], exact, 1);
    let all = summaries_of(&[1, 4], &samples);
    let (single, four) = (rings_of(&all[1]), rings_of(&all[2]));
    assert!((single.switches_per_second.unwrap().value - 0.5e6).abs() < 1.0);
    assert_eq!((single.efficiency, single.rings, single.each.len()), (None, 1, 0));
    assert!((four.switches_per_second.unwrap().value - 1.65e6).abs() < 1.0);
    assert!((four.efficiency.unwrap().value - 0.825).abs() < 1e-6);
    assert!((four.speedup().unwrap().value - 3.3).abs() < 1e-6);
    assert!((all[2].ns_per_hop.unwrap().value - 8000.0 / 3.3).abs() < 0.1);
    // Above the solo of 500 ns, with a switch a hop.
    let above = all[2].ns_per_switch_above_solo.unwrap().value;
    assert!((above - (8000.0 / 3.3 - 500.0)).abs() < 0.1, "{above}");
    assert_eq!((four.fastest, four.slowest), (Some(1), Some(4)));
    assert_eq!(four.held_back(), [3, 4]);
    assert_eq!(four.migrations, Some(0));
    assert_eq!(four.slowest_ring().unwrap().cpus, [3]);
    assert_eq!(four.slowest_ring().unwrap().switches_per_hop, Some(1.0));
}

#[test]
fn counts_of_a_hostile_file_are_added_up_without_overflow() {
    let exact = Scatter { launches: 0.0, drift: 0.0, rounds: 0.0, correlation: 0.0 };
    let mut samples = launch(&[&[1.0, 1.0]], exact, 1);
    for sample in &mut samples {
        sample.counters.migrations = Some(u64::MAX);
        sample.rings.iter_mut().for_each(|ring| ring.counters.migrations = Some(u64::MAX));
    }
    let all = summaries_of(&[1, 2], &samples);
    assert_eq!(rings_of(&all[1]).migrations, Some(u64::MAX));
    assert_eq!(rings_of(&all[2]).migrations, Some(u64::MAX));
}

#[test]
fn a_plan_without_several_rings_has_none_of_it() {
    let exact = Scatter { launches: 0.0, drift: 0.0, rounds: 0.0, correlation: 0.0 };
    let all = summaries_of(&[1], &launch(&[], exact, 1));
    assert!(all.iter().all(|summary| summary.rings_at_once.is_none()));
    assert!(series(&all).is_empty());
}

#[test]
fn rings_that_do_not_switch_have_no_rate() {
    let exact = Scatter { launches: 0.0, drift: 0.0, rounds: 0.0, correlation: 0.0 };
    let mut samples = launch(&[&[1.0, 1.0]], exact, 1);
    for sample in &mut samples {
        sample.counters.voluntary = 3;
        sample.rings.iter_mut().for_each(|ring| ring.counters.voluntary = 3);
    }
    let all = summaries_of(&[1, 2], &samples);
    let two = rings_of(&all[2]);
    assert_eq!((two.switches_per_second, two.efficiency), (None, None));
    assert!(all[2].does_not_switch && all[2].ns_per_hop.is_some());
    assert_eq!(all[2].ns_per_switch_above_solo, None);
}

/// With several items under way items count, however often the members switch for them.
#[test]
fn the_efficiency_of_rings_in_flight_is_of_items() {
    let exact = Scatter { launches: 0.0, drift: 0.0, rounds: 0.0, correlation: 0.0 };
    let mut plan = plan(&[1, 2], true);
    for case in plan.cases.iter_mut().filter_map(Case::ring_mut).skip(1) {
        case.flight = Some(Flight::Items(16));
    }
    for switches in [LAPS, 3] {
        let mut samples = launch(&[&[1.0, 1.25]], exact, 1);
        for ring in samples.iter_mut().flat_map(|sample| &mut sample.rings) {
            ring.counters.voluntary = switches;
        }
        let all = summaries(&Table::from_samples(&plan, &samples, []), &[]);
        let (single, two) = (rings_of(&all[1]), rings_of(&all[2]));
        assert!((single.hops_per_second.unwrap().value - 0.5e6).abs() < 1.0);
        assert!((two.hops_per_second.unwrap().value - 0.9e6).abs() < 1.0);
        assert!((two.efficiency.unwrap().value - 0.9).abs() < 1e-6, "{:?}", two.efficiency);
        // Of 5,000 hops in each ring.
        let switch_rate = two.switches_per_second.unwrap().value;
        assert!((switch_rate - 0.9e6 * switches as f64 / 5000.0).abs() < 1.0, "{switch_rate}");
    }
}

/// Clean slices of each CPU are judged by the quanta on it.
#[test]
fn full_speed_is_judged_by_cpu() {
    let speed_of = |clean_rings: [bool; 2]| {
        let plan = plan(&[1, 2], true);
        let mut samples = Vec::new();
        for round in 0..ROUNDS {
            let sliced = |case, is_clean| cut(ring(case, round, HOP_NS), 40, |_| is_clean);
            samples.push(sliced(0, true));
            samples.push(sliced(1, true));
            samples.push(together(clean_rings.map(|is_clean| sliced(2, is_clean)).to_vec()));
        }
        let table = Table::from_samples(&plan, &samples, []);
        let all = summaries(&table, &[]);
        let clean: Vec<_> = rings_of(&all[2]).each.iter().map(|ring| ring.clean_share).collect();
        (rings_of(&all[2]).efficiency.unwrap().speed, clean, all[2].clean_share)
    };
    let (speed, clean, of_both) = speed_of([true, true]);
    assert_eq!((speed, of_both), (Speed::Full, Some(1.0)));
    assert_eq!(clean, [Some(1.0), Some(1.0)]);
    let (speed, clean, _) = speed_of([true, false]);
    assert_eq!(speed, Speed::Contended);
    assert!(clean[0] > Some(0.9) && clean[1] < Some(0.1), "{clean:?}");
}

/// Rings on one CPU take turns: slices of their own do not show what a hop takes.
#[test]
fn rings_that_share_a_cpu_have_the_figures_of_whole_samples() {
    let plan = plan(&[1, 2], false);
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        samples.push(cut(ring(0, round, HOP_NS / 4.0), 40, |_| true));
        samples.push(cut(ring(1, round, HOP_NS), 40, |_| true));
        // Most slices of the first are without the other's turns; the second has no slices.
        let mut first = cut(ring(2, round, 2.0 * HOP_NS), 40, |_| true);
        let slices = first.slices.as_mut().unwrap();
        let whole: u64 = slices.elapsed_ns.iter().sum();
        slices.elapsed_ns.fill(whole / 100);
        slices.elapsed_ns[20] = whole - 39 * (whole / 100);
        samples.push(together(vec![first, ring(2, round, 2.0 * HOP_NS)]));
    }
    let table = Table::from_samples(&plan, &samples, []);
    let all = summaries(&table, &[]);
    let two = rings_of(&all[2]);
    // The quanta of the first, 2.5 % of its time, are no part of the other's.
    let efficiency = two.efficiency.unwrap();
    assert!((0.504..0.51).contains(&efficiency.value), "{efficiency:?}");
    assert_eq!(efficiency.speed, Speed::Full);
    assert_eq!(two.held_back(), [0; 0]);
}

/// A slice that began while a ring was still waiting for the others is none of the common time.
#[test]
fn slices_before_all_turn_do_not_count() {
    let mut early = cut(RingSample { start_ns: Some(0), ..ring(2, 0, HOP_NS) }, 10, |_| true);
    let late = cut(RingSample { start_ns: Some(1_500_000), ..ring(2, 0, HOP_NS) }, 10, |_| true);
    early.slices.as_mut().unwrap().elapsed_ns[1] = 77_000_000;
    let case = &plan(&[2], true).cases[1];
    let split = split_sample(case.ring().unwrap(), &together(vec![early, late]), 5);
    let slices: Vec<_> = split.iter().map(|sample| sample.slices.clone().unwrap()).collect();
    // Each slice lasts 1 ms: the first two of the early ring began before 1.5 ms.
    assert_eq!((slices[0].elapsed_ns.len(), slices[1].elapsed_ns.len()), (8, 10));
    assert!(slices.iter().all(Slices::are_whole) && !slices[0].elapsed_ns.contains(&77_000_000));
    assert_eq!((split[0].laps, split[0].hops), (LAPS / 10 * 8, 2 * LAPS));
    assert_eq!((split[0].case, split[1].case), (5, 6));
}

/// Shares of intervals that cover the truth, of launches that drift, scatter from round to round in
/// dependence on each other, and differ from launch to launch.
#[test]
fn intervals_of_the_efficiency_cover_it() {
    let trials: u32 = testing::repeats(100, 2000);
    let rings: &[f64] = &[1.0, 1.25, 1.25, 1.6];
    let truth = rings.iter().map(|times| 1.0 / times).sum::<f64>() / 4.0;
    let independent = Scatter { correlation: 0.0, ..SCATTER };
    for (scatter, seed) in [(SCATTER, 1), (independent, 1 << 32)] {
        let mut covered = 0;
        for trial in 0..trials {
            let samples = launch(&[rings], scatter, seed + u64::from(trial));
            let all = summaries_of(&[1, 4], &samples);
            let efficiency = rings_of(&all[2]).efficiency.unwrap().interval().unwrap();
            covered += u32::from((efficiency.low..=efficiency.high).contains(&truth));
        }
        let share = f64::from(covered) / f64::from(trials);
        assert!((0.93..=0.97).contains(&share), "{share} at {}", scatter.correlation);
    }
}

/// Half of the rings are slowed: they are named, all of them and no others.
#[test]
fn rings_that_are_held_back_are_named() {
    let named = |slower: &[f64], wanted: &[u32]| {
        let mut right = 0;
        for seed in 0..50 {
            let all = summaries_of(&[1, 4], &launch(&[slower], SCATTER, 900 + seed));
            right += u32::from(rings_of(&all[2]).held_back() == wanted);
        }
        right
    };
    assert!(named(&[1.0, 1.0, 1.4, 1.4], &[3, 4]) >= 45);
    assert!(named(&[1.4, 1.0, 1.0, 1.4], &[1, 4]) >= 45);
    assert!(named(&[1.0; 4], &[]) >= 47);
}

/// All rings go through one lock from four on.
#[test]
fn from_how_many_rings_on_all_are_held_back_is_found() {
    let counts = [1, 2, 3, 4, 6, 8];
    let (mut found, mut jumps) = (0, 0);
    for seed in 0..50 {
        let (held, free) = ([2.2; 8], [1.0; 8]);
        let slower = [&free[..2], &free[..3], &held[..4], &held[..6], &held[..8]];
        let all = summaries_of(&counts, &launch(&slower, SCATTER, 300 + seed));
        let all_series = series(&all);
        assert_eq!((all_series.len(), &all_series[0].cases[..]), (1, &[1, 2, 3, 4, 5, 6][..]));
        found += u32::from(all_series[0].held_back_from == Some(4));
        jumps += u32::from(all_series[0].jump.is_some_and(|jump| (jump.from, jump.to) == (3, 4)));
    }
    assert!(found >= 45 && jumps >= 45, "{found} {jumps}");
}

/// Of pairs of launches of the same rings at most 6 % differ, where 5 % do by chance.
#[test]
fn the_same_twice_is_hardly_ever_changed() {
    let (rings, pairs): (&[f64], u64) = (&[1.0, 1.1, 1.3, 1.3], testing::repeats(50, 500));
    let mut changed = 0;
    for seed in 0..pairs {
        let [one, other] = [0, 10_000].map(|offset| {
            let all = summaries_of(&[1, 4], &launch(&[rings], SCATTER, offset + seed));
            let efficiency = rings_of(&all[2]).efficiency.unwrap();
            (efficiency.value, efficiency.interval().unwrap().half_width())
        });
        changed += u64::from((one.0 - other.0).abs() > one.1.hypot(other.1));
    }
    assert!(50 * changed <= 3 * pairs, "{changed} of {pairs}");
}
