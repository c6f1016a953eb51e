//! Levels, clean slices and what is learnt, of quanta that are made up.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::plan::Reference;

use crate::estimate::Speed;

mod clocks;
mod pieces;
mod simulation;

use super::level::{KNOWN_RATIOS, SeenRatio, lowest_level};
use super::*;
use crate::table::Table;
use rundata::experiment::Experiment;
use rundata::placement::Placement;
use rundata::plan::Plan;
use rundata::ring::{CoreWait, Counters, QUANTA_AROUND, RingCase, RingSample};

/// Loops of the test machine, in nanoseconds, alone on the core.
const ALONE: (u32, u32) = (5860, 5920);
const K0: f64 = 5920.0 / 5860.0;

/// Cuts a sample into as many slices, of which `is_clean` says whether quanta around them are.
pub(crate) fn cut(
    mut sample: RingSample,
    slices: u64,
    is_clean: impl Fn(u64) -> bool,
) -> RingSample {
    let laps = sample.laps / slices;
    let mut cut = around(slices, laps, is_clean);
    let per_lap = sample.elapsed_ns as f64 / sample.laps as f64;
    for index in 0..slices {
        let own = if index + 1 == slices { sample.laps - laps * index } else { laps };
        cut.elapsed_ns.push((own as f64 * per_lap).round() as u64);
    }
    sample.slices = Some(cut);
    sample
}

/// The quanta around so many slices, whose times are still to be told.
pub(crate) fn around(slices: u64, laps: u64, is_clean: impl Fn(u64) -> bool) -> Slices {
    let mut made = Slices::with_room_for(slices as usize, laps);
    for quantum in 0..slices + QUANTA_AROUND as u64 - 1 {
        let (latency, throughput) = ALONE;
        // A quantum is slow where all slices that it is one of the four of are.
        let mut around = (quantum.saturating_sub(3)..=quantum).filter(|index| *index < slices);
        let shared = around.all(|index| !is_clean(index));
        let times = if shared { 1.4 } else { 1.0 };
        made.push_quantum(u64::from(latency), (f64::from(throughput) * times) as u64);
    }
    made
}

fn case(members: u32) -> RingCase {
    RingCase::of_processes(members, Placement::Same { cpu: 1 })
}

fn sample(round: u32) -> RingSample {
    RingSample {
        case: 0,
        round,
        laps: 5000,
        hops: 10_000,
        elapsed_ns: 10_000_000,
        counters: Counters { voluntary: 10_000, cpu_ns: 10_200_000, ..Counters::default() },
        steal_ns: Some(0),
        ..RingSample::default()
    }
}

fn noisy_quanta(count: usize, shared_share: f64, seed: u64) -> QuantaCounts {
    quanta(noisy_times(count, shared_share, seed).into_iter())
}

fn noisy_times(count: usize, shared_share: f64, seed: u64) -> Vec<(u32, u32)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let one = |_| {
        let shared = rng.random_bool(shared_share);
        let times = if shared { rng.random_range(1.25..1.9) } else { 1.0 };
        let jitter = |rng: &mut ChaCha8Rng| 1.0 + rng.random_range(-0.004..0.004);
        let mut latency = f64::from(ALONE.0) * jitter(&mut rng);
        if rng.random_bool(0.01) {
            // An interrupt within the latency-bound loop: the ratio is then far too small.
            latency *= 3.4;
        }
        let throughput = f64::from(ALONE.1) * times * jitter(&mut rng);
        (latency as u32, throughput as u32)
    };
    (0..count).map(one).collect()
}

fn quanta(all: impl Iterator<Item = (u32, u32)>) -> QuantaCounts {
    let mut quanta = QuantaCounts::default();
    quanta.add(true, all);
    quanta
}

#[test]
fn the_unshared_level_is_found_however_long_the_core_was_shared() {
    for (share, seed) in [(0.0, 1), (0.3, 2), (0.7, 3), (0.9, 4)] {
        let level =
            SpeedLevel::from_quanta(&noisy_quanta(3000, share, seed), &Reference::default())
                .unwrap();
        assert!((level.unshared_ratio / K0 - 1.0).abs() < 0.005, "{share}: {level:?}");
        assert!((level.unshared_share - (1.0 - share)).abs() < 0.03, "{share}: {level:?}");
        assert!(!level.established);
        if share > 0.0 {
            let slowdown = level.shared_slowdown.unwrap();
            assert!((1.4..1.7).contains(&slowdown), "{slowdown}");
        }
    }
}

/// The smallest ratio seen is that of an interruption: 0.30 on the test machine, where 1.06 is the
/// level.
#[test]
fn an_interruption_is_no_level() {
    let times = noisy_times(3000, 0.5, 5);
    let smallest = times.iter().map(|(l, t)| f64::from(*t) / f64::from(*l)).reduce(f64::min);
    let smallest = smallest.unwrap();
    assert!(smallest < 0.4 * K0);
    let level = SpeedLevel::from_quanta(&quanta(times.into_iter()), &Reference::default()).unwrap();
    assert!((level.unshared_ratio / K0 - 1.0).abs() < 0.005);
    let (latency, throughput) = ALONE;
    assert!(level.is_clean(latency, throughput));
    assert!(!level.is_clean(latency * 3, throughput * 3), "another clock");
    assert!(!level.is_clean(latency * 3, throughput), "an interruption");
    assert!(!level.is_clean(latency, throughput * 14 / 10), "a shared core");
}

/// A run that never saw its core unshared must not be called clean by what an earlier one knows.
#[test]
fn what_is_known_stands_against_a_run_that_was_shared_throughout() {
    let quanta: QuantaCounts = noisy_quanta(3000, 1.0, 6);
    let known = Reference { unshared_ratio: Some(K0), established: true, ..Reference::default() };
    let level = SpeedLevel::from_quanta(&quanta, &known).unwrap();
    assert_eq!((level.unshared_ratio, level.established), (K0, true));
    assert!(level.unshared_share < 0.01, "{level:?}");
    // Nobody knew: the best level of the run is taken, and called provisional.
    let alone = SpeedLevel::from_quanta(&quanta, &Reference::default()).unwrap();
    assert!(!alone.established && alone.unshared_ratio > 1.2 * K0, "{alone:?}");
    // What was known was a shared core's: enough quanta say so.
    let wrong =
        Reference { unshared_ratio: Some(1.4 * K0), established: true, ..Reference::default() };
    let better = SpeedLevel::from_quanta(&noisy_quanta(3000, 0.5, 7), &wrong).unwrap();
    assert!((better.unshared_ratio / K0 - 1.0).abs() < 0.005 && !better.established, "{better:?}");
}

#[test]
fn a_clock_that_changes_is_told_and_is_no_sharing() {
    let mut times = noisy_times(2000, 0.0, 8);
    // A quarter of the time at 80 % of the clock: both loops take 1.25 times as long.
    times.iter_mut().take(500).for_each(|q| *q = (q.0 * 5 / 4, q.1 * 5 / 4));
    let level = SpeedLevel::from_quanta(&quanta(times.into_iter()), &Reference::default()).unwrap();
    assert!((level.other_clock_share - 0.25).abs() < 0.03, "{level:?}");
    assert!(level.unshared_share > 0.97, "{level:?}");
    assert!((level.latency_ns / f64::from(ALONE.0) - 1.0).abs() < 0.01);
    let ghz = level.clock_ghz("x86_64-unknown-linux-gnu").unwrap();
    assert!((ghz - 7200.0 * 3.0 / 5860.0).abs() < 0.02, "{ghz}");
    assert_eq!(level.clock_ghz("aarch64-unknown-linux-gnu"), None);
}

/// What waited for an unshared core has seen more of it than there was: it adds to the level, not
/// to the shares.
#[test]
fn the_shares_are_those_of_the_machine_as_it_was_found() {
    let times = noisy_times(2000, 0.7, 11);
    let mut quanta = quanta(times.iter().copied());
    let found = SpeedLevel::from_quanta(&quanta, &Reference::default()).unwrap();
    let waited = noisy_times(2000, 0.0, 12);
    quanta.add(false, waited.iter().copied());
    let level = SpeedLevel::from_quanta(&quanta, &Reference::default()).unwrap();
    assert!((level.unshared_share - 0.3).abs() < 0.03, "{level:?}");
    assert!((level.unshared_share - found.unshared_share).abs() < 0.01, "{level:?} {found:?}");
    let mut few = self::quanta(times.into_iter().take(10));
    few.add(false, waited.into_iter());
    assert!(
        SpeedLevel::from_quanta(&few, &Reference::default()).is_some(),
        "all quanta tell the level"
    );
}

#[test]
fn what_is_known_by_now_replaces_what_was_provisional_or_higher() {
    let of = |ratio: Option<f64>, established| Reference {
        unshared_ratio: ratio,
        established,
        launch_scatter: Some(0.02),
        ..Reference::default()
    };
    let learnt = |mut own: Reference, known: &Reference| {
        own.learn(known);
        assert_eq!(own.launch_scatter, Some(0.02));
        (own.unshared_ratio, own.established)
    };
    let known = &of(Some(1.01), true);
    assert_eq!(learnt(of(None, false), known), (Some(1.01), true));
    assert_eq!(learnt(of(Some(1.4), false), known), (Some(1.01), true));
    assert_eq!(learnt(of(Some(1.4), true), known), (Some(1.01), true));
    // Lower, or as good as the same: what the run went by stands.
    assert_eq!(learnt(of(Some(0.9), true), known), (Some(0.9), true));
    assert_eq!(learnt(of(Some(1.011), true), known), (Some(1.011), true));
    // What is provisional replaces what is so too.
    assert_eq!(learnt(of(Some(1.4), false), &of(Some(1.01), false)), (Some(1.01), false));
    assert_eq!(learnt(of(Some(1.01), false), &of(Some(1.4), false)), (Some(1.01), false));
    assert_eq!(learnt(of(None, false), &of(Some(1.01), false)), (Some(1.01), false));
    assert_eq!(learnt(of(Some(1.4), true), &of(Some(1.01), false)), (Some(1.4), true));
    assert_eq!(learnt(of(None, false), &of(None, false)), (None, false));
}

/// A wait whose last quantum's throughput-bound loop took so many times what it does alone.
fn wait_before(slice: u32, times: f64) -> CoreWait {
    let (latency_ns, throughput) = ALONE;
    let throughput_ns = (f64::from(throughput) * times) as u32;
    CoreWait {
        slice,
        elapsed_ns: 5_000_000,
        cpu_ns: 4_000_000,
        switches: 3,
        latency_ns,
        throughput_ns,
    }
}

/// Six slices; the core is shared until a wait before the third ends.
fn that_waited(times: f64) -> Slices {
    let waits = Some(vec![wait_before(0, 1.4), wait_before(2, times)]);
    let slices = Slices { waits, ..around(6, 100, |slice| slice >= 3) };
    // The quanta behind slice 1 are shared still, those behind slices 2 and 3 are not.
    let shared: Vec<bool> = slices.throughput_ns.iter().map(|ns| *ns > 6000).collect();
    assert_eq!(shared, [true, true, true, false, false, false, false, false, false]);
    Slices { elapsed_ns: vec![1_000_000; 6], ..slices }
}

#[test]
fn what_was_waited_for_warms_up_and_the_next_slice_lies_behind_the_wait() {
    let level =
        SpeedLevel::from_quanta(&noisy_quanta(100, 0.0, 13), &Reference::default()).unwrap();
    let clean = |slices: &Slices| -> Vec<usize> {
        (0..6)
            .filter(|index| level.quantum_of_slice(ClockFilter::TheRuns, slices, *index).is_some())
            .collect()
    };
    assert_eq!(clean(&that_waited(1.0)), [3, 4, 5]);
    // In vain: the time was over.
    assert_eq!(clean(&that_waited(1.4)), [4, 5]);
    // The quantum behind slice 1 lies before the wait: it says nothing of slice 3.
    let shared = |quantum: usize| {
        let mut waited = that_waited(1.0);
        waited.throughput_ns[quantum] = waited.throughput_ns[0];
        waited
    };
    assert_eq!(clean(&shared(3)), [3, 4, 5]);
    assert_eq!(clean(&Slices { waits: None, ..shared(3) }), [4, 5]);
    // The one between slices 2 and 3 lies behind it.
    assert_eq!(clean(&shared(4)), [5]);
    let without = Slices { waits: None, ..that_waited(1.0) };
    assert_eq!(clean(&without), [3, 4, 5]);
    let unshared = Slices { waits: Some(vec![wait_before(2, 1.0)]), ..around(6, 100, |_| true) };
    assert_eq!(clean(&unshared), [0, 1, 3, 4, 5], "what was waited for never counts");
    let waited = that_waited(1.0);
    assert_eq!(waited.reference_ns() - without.reference_ns(), 8_000_000);
    assert_eq!((waited.waited_ns(), without.waited_ns()), (Some(10_000_000), None));
    assert_eq!(waited.quanta().count() - without.quanta().count(), 2);
    assert!(without.are_as_found() && !waited.are_as_found());
    // Nor are the leader's switches in it the ring's.
    let of = |slices| RingSample { slices: Some(slices), ..sample(0) }.switches();
    assert_eq!(of(without) - of(waited), 6);
}

#[test]
fn what_waited_is_no_measure_of_the_machine() {
    let known = Reference { unshared_ratio: Some(K0), established: true, ..Reference::default() };
    let as_found = |round| cut(sample(round), 10, |slice| slice < 2);
    let waited = |round| {
        let mut waited = cut(sample(round), 10, |_| true);
        waited.slices.as_mut().unwrap().waits = Some(Vec::new());
        RingSample { elapsed_ns: 8_000_000, sample: 1, ..waited }
    };
    let samples: Vec<RingSample> =
        (0..10).flat_map(|round| [as_found(round), waited(round)]).collect();
    let all = slices_with(&samples, &known);
    let counts = all[0].clean_counts();
    assert_eq!(
        counts,
        CleanCounts {
            judged: 200,
            clean: 120,
            not_alone: 0,
            as_found: 100,
            clean_as_found: 20,
            other_clock_as_found: 0
        }
    );
    assert_eq!((counts.share(), counts.share_as_found()), (Some(0.6), Some(0.2)));
    assert!(all[0].has_full_speed());
    // A slice that something else had its turn in is left out of both.
    let mut samples = samples;
    samples.iter_mut().for_each(|s| s.slices.as_mut().unwrap().elapsed_ns[0] *= 3);
    let all = slices_with(&samples, &known);
    let counts = all[0].clean_counts();
    assert_eq!((counts.clean, counts.clean_as_found), (100, 10));
}

#[test]
fn no_level_of_too_few_or_of_nothing_that_a_core_could_do() {
    assert_eq!(SpeedLevel::from_quanta(&noisy_quanta(20, 0.0, 9), &Reference::default()), None);
    let nothing = quanta([(0, 0); 100].into_iter());
    assert_eq!(SpeedLevel::from_quanta(&nothing, &Reference::default()), None);
    assert_eq!(lowest_level(&[(0.01, 100)]), None);
    assert_eq!(lowest_level(&[(100.0, 100)]), None);
    assert_eq!(lowest_level(&[(1.0, 100)]), Some(1.0));
}

/// Slice i lies between quanta i, i + 1 and i + 2, i + 3: each of the four counts.
#[test]
fn a_slice_is_clean_only_if_the_two_quanta_on_each_side_are() {
    let level =
        SpeedLevel::from_quanta(&noisy_quanta(2000, 0.3, 10), &Reference::default()).unwrap();
    let whole = cut(sample(0), 10, |_| true).slices.unwrap();
    assert!(
        (0..10).all(|index| level.quantum_of_slice(ClockFilter::TheRuns, &whole, index).is_some())
    );
    for quantum in 0..13 {
        let mut slices = whole.clone();
        slices.throughput_ns[quantum] = ALONE.1 * 14 / 10;
        let clean: Vec<usize> = (0..10)
            .filter(|index| level.quantum_of_slice(ClockFilter::TheRuns, &slices, *index).is_some())
            .collect();
        let expected: Vec<usize> =
            (0..10).filter(|index| !(*index..index + 4).contains(&quantum)).collect();
        assert_eq!(clean, expected, "quantum {quantum}");
    }
}

fn plan_with(reference: &Reference) -> Plan {
    Plan { seed: 1, reference: reference.clone(), ..Plan::from_cases(Experiment::Ring, [case(2)]) }
}

fn slices_with(samples: &[RingSample], reference: &Reference) -> Vec<CaseSlices> {
    let plan = plan_with(reference);
    vec![Table::from_samples(&plan, samples, []).slices(0).unwrap().clone()]
}

fn slices_of(samples: &[RingSample]) -> CaseSlices {
    let mut all = slices_with(samples, &Reference::default());
    all.remove(0)
}

#[test]
fn clean_slices_are_counted_and_disturbed_samples_have_none() {
    let clean = |round| cut(sample(round), 10, |_| true);
    let all: Vec<RingSample> = (0..5).map(clean).collect();
    let found = slices_of(&all);
    assert_eq!((found.clean_counts().clean, found.judged, found.not_judged), (50, 50, 0));
    let plan = plan_with(&Reference::default());
    assert_eq!(Table::from_samples(&plan, &all, []).hop_by_round(0)[&0], 1000.0);
    assert_eq!(found.clean[&0], 10);
    assert_eq!(found.switches[&3], (10_000, 10_000));
    let mut disturbed = all.clone();
    disturbed[0].steal_ns = Some(10_000_000);
    disturbed[1].counters.migrations = Some(1);
    // Something had its turn in one slice.
    disturbed[2].slices.as_mut().unwrap().elapsed_ns[4] *= 4;
    let found = slices_of(&disturbed);
    assert_eq!((found.clean_counts().clean, found.judged), (29, 50));
    assert_eq!(found.clean_counts().share_as_found(), Some(29.0 / 50.0));
}

#[test]
fn samples_without_slices_or_with_long_ones_are_not_judged() {
    let mut all: Vec<RingSample> = (0..5).map(|round| cut(sample(round), 10, |_| true)).collect();
    assert!(slices_of(&all).is_judged());
    all.push(sample(5));
    assert!(!slices_of(&all).is_judged());
    // One of ten is left out.
    all.extend((6..10).map(|round| cut(sample(round), 10, |_| true)));
    assert_eq!((slices_of(&all).is_judged(), slices_of(&all).judged), (true, 90));
    all.push(sample(10));
    assert!(!slices_of(&all).is_judged());
    let long = |round| {
        let sample = RingSample { elapsed_ns: 40_000_000, ..sample(round) };
        cut(sample, 10, |_| true)
    };
    assert_eq!(slices_of(&(0..5).map(long).collect::<Vec<_>>()).judged, 0);
    // Slices that waited for the CPU are not long: one that did not says so.
    let mut waited: Vec<RingSample> = (0..5).map(long).collect();
    waited.iter_mut().for_each(|sample| sample.slices.as_mut().unwrap().elapsed_ns[2] = 1_000_000);
    assert_eq!(slices_of(&waited).judged, 50);
    // A damaged file: a quantum is missing.
    let mut broken = cut(sample(0), 10, |_| true);
    broken.slices.as_mut().unwrap().latency_ns.pop();
    assert_eq!(slices_of(&[broken]).judged, 0);
}

#[test]
fn the_last_slice_has_what_is_left() {
    let slices = cut(RingSample { laps: 1007, ..sample(0) }, 10, |_| true).slices.unwrap();
    assert_eq!((slices.laps, slices.laps_of(0, 1007), slices.laps_of(9, 1007)), (100, 100, 107));
    assert_eq!(slices.laps_of(9, 5), 0, "of a damaged file");
}

#[test]
fn the_quanta_are_not_the_rings_cpu_time() {
    let sample = cut(sample(0), 10, |_| true);
    let reference = sample.slices.as_ref().unwrap().reference_ns();
    assert_eq!(reference, 13 * u64::from(ALONE.0 + ALONE.1));
    assert_eq!(sample.cpu_ns(), 10_200_000 - reference);
    let split = |user, system| {
        let counters = Counters { user_ns: user, system_ns: system, ..sample.counters };
        RingSample { counters, ..sample.clone() }.user_system_ns()
    };
    let left = 2_000_000 - i64::try_from(reference).unwrap();
    assert_eq!(split(Some(2_000_000), Some(8_200_000)), Some((left, 8_200_000)));
    assert_eq!(split(None, None), None);
}

#[test]
fn what_the_table_has_is_established_and_yields_to_lower_levels_only() {
    for (cpu, ratio) in KNOWN_RATIOS {
        let reference = |seen: f64| {
            let mut file = learnt(&[seen; 3]);
            let levels = file.cpus.remove("a CPU").unwrap();
            file.cpus.insert(cpu.to_string(), levels);
            file.reference(cpu)
        };
        assert_eq!(SpeedFile::default().reference(cpu).unshared_ratio, Some(*ratio));
        assert!(SpeedFile::default().reference(cpu).established);
        assert_eq!(reference(1.4 * ratio).unshared_ratio, Some(*ratio));
        assert!(reference(0.9 * ratio).unshared_ratio < Some(*ratio));
    }
}

/// A table that is given takes the place of the program's; what no CPU can have is in none.
#[test]
fn a_table_that_is_given_is_the_only_one() {
    let (own, _) = KNOWN_RATIOS[0];
    let given = |cpu: &str, ratio: f64| SpeedFile {
        table: Some([(cpu.to_string(), ratio)].into()),
        ..learnt(&[1.5; 3])
    };
    let known = |file: &SpeedFile, cpu: &str| {
        let reference = file.reference(cpu);
        (reference.unshared_ratio, reference.established)
    };
    assert_eq!(known(&given("a CPU", 0.9), "a CPU"), (Some(0.9), true));
    assert_eq!(known(&given("a CPU", 2.0), "a CPU"), (Some(1.5), true), "the lower of both");
    assert_eq!(known(&given("a CPU", 0.9), own), (None, false));
    for impossible in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.16, 6.1] {
        assert_eq!(known(&given("another", impossible), "another"), (None, false));
        let seen = vec![SeenRatio { ratio: impossible, launches: 9 }];
        let file = SpeedFile { cpus: [("a CPU".to_string(), seen)].into(), ..SpeedFile::default() };
        assert_eq!(known(&file, "a CPU"), (None, false), "{impossible}");
    }
    let text = serde_json::to_string(&SpeedFile::default()).unwrap();
    assert_eq!(text, r#"{"cpus":{}}"#, "the program writes no table");
    let kept: SpeedFile =
        serde_json::from_str(&serde_json::to_string(&given("a CPU", 0.9)).unwrap()).unwrap();
    assert_eq!(kept, given("a CPU", 0.9), "one that was given stays");
}

#[test]
fn runs_side_by_side_know_the_lowest_level_and_an_established_one_first() {
    let of = |ratio: Option<f64>, established| Reference {
        unshared_ratio: ratio,
        established,
        ..Reference::default()
    };
    let (none, shared, unshared) = (of(None, false), of(Some(1.4), false), of(Some(1.01), false));
    assert_eq!(Reference::join([&none, &shared, &unshared].map(Clone::clone)), unshared);
    assert_eq!(Reference::join([unshared.clone(), of(Some(1.4), true)]), of(Some(1.4), true));
    assert_eq!(Reference::join([none.clone(), none.clone()]), Reference::default());
    let beside =
        |own: &Reference, all: &Reference| own.clone().beside(all).map(|by| by.unshared_ratio);
    assert_eq!(beside(&shared, &unshared), Some(Some(1.01)));
    assert_eq!(beside(&none, &unshared), Some(Some(1.01)), "it found no level itself");
    assert_eq!(beside(&unshared, &unshared), None);
    assert_eq!(beside(&of(Some(1.02), false), &unshared), None, "within 2 %: its own stands");
    assert_eq!(beside(&of(Some(1.02), false), &of(Some(1.01), true)), None);
    assert_eq!(beside(&of(Some(1.4), true), &unshared), None, "nothing provisional replaces it");
    assert_eq!(beside(&none, &none), None);
}

#[test]
fn the_usual_clock_is_the_one_that_most_launches_had() {
    let mut file = learnt(&[1.01]);
    let mut level =
        SpeedLevel::from_quanta(&noisy_quanta(100, 0.0, 13), &Reference::default()).unwrap();
    for (clock_ns, usual_ns) in
        [(6000.0, 6000.0), (6010.0, 6000.0), (5861.0, 6000.0), (5862.0, 5860.0)]
    {
        level.clock_ns = clock_ns;
        assert!(file.learn("a CPU", &level));
        assert_eq!(file.reference("a CPU").clock_ns, Some(usual_ns), "{clock_ns}");
    }
    assert_eq!(file.reference("another").clock_ns, None);
}

fn learnt(ratios: &[f64]) -> SpeedFile {
    let mut file = SpeedFile::default();
    for ratio in ratios {
        let level = SpeedLevel {
            latency_ns: 5860.0,
            clock_ns: 5860.0,
            unshared_ratio: *ratio,
            established: false,
            other_clock_share: 0.0,
            latency_range_ns: None,
            unshared_share: 0.5,
            shared_slowdown: None,
        };
        assert!(file.learn("a CPU", &level));
    }
    file
}

#[test]
fn what_launches_saw_is_established_by_three_and_only_ever_falls() {
    let reference = |ratios: &[f64]| {
        let found = learnt(ratios).reference("a CPU");
        (found.unshared_ratio.map(|ratio| (ratio * 100.0).round() / 100.0), found.established)
    };
    assert_eq!(reference(&[]), (None, false));
    assert_eq!(reference(&[1.4]), (Some(1.4), false));
    assert_eq!(reference(&[1.4, 1.0]), (Some(1.0), false), "the lower of two guesses");
    assert_eq!(reference(&[1.4, 1.4, 1.4]), (Some(1.4), true), "always shared so far");
    assert_eq!(reference(&[1.4, 1.4, 1.4, 1.0, 1.0]), (Some(1.4), true), "not yet three");
    assert_eq!(reference(&[1.4, 1.4, 1.4, 1.0, 1.001, 0.999]), (Some(1.0), true));
    assert_eq!(reference(&[1.0, 1.0, 1.0, 1.4, 1.4, 1.4, 1.4]), (Some(1.0), true), "never rises");
    assert_eq!(learnt(&[1.0]).reference("another"), Reference::default());
    let level = SpeedLevel {
        latency_ns: 1.0,
        clock_ns: 1.0,
        unshared_ratio: 0.9,
        established: false,
        other_clock_share: 0.0,
        latency_range_ns: None,
        unshared_share: 0.01,
        shared_slowdown: None,
    };
    assert!(!SpeedFile::default().learn("a CPU", &level), "too few quanta agree");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_slices_are_judged_without_a_panic(
        laps in any::<u64>(),
        elapsed in prop::collection::vec(any::<u64>(), 0..6),
        latency in prop::collection::vec(any::<u32>(), 0..9),
        throughput in prop::collection::vec(any::<u32>(), 0..9),
        waits in prop::option::of(prop::collection::vec(any::<(u32, u64, u64, u64)>(), 0..4)),
        triples in any::<(u32, u64, u64, Option<u32>)>(),
        solos in prop::collection::vec(any::<u64>(), 0..6),
        ratio in prop_oneof![Just(None), any::<f64>().prop_map(Some)],
    ) {
        let wait = |(slice, elapsed_ns, cpu_ns, switches)| CoreWait {
            slice: slice % 8,
            elapsed_ns,
            cpu_ns,
            switches,
            latency_ns: slice,
            throughput_ns: slice,
        };
        let waits = waits.map(|waits| waits.into_iter().map(wait).collect());
        let (members, ring_laps, solo_laps, as_found) = triples;
        let triple = Triple {
            ring_ns: vec![solo_laps; 2],
            solos_ns: solos,
            latency_ns: latency.clone(),
            throughput_ns: throughput.clone(),
            ..Triple::default()
        };
        let all = vec![triple; 2];
        let triples =
            Some(Triples { members, ring_laps, solo_laps, all, as_found, ..Triples::default() }.into());
        let slices = Slices { laps, elapsed_ns: elapsed, latency_ns: latency, throughput_ns: throughput, waits, ..Slices::default() };
        let samples = vec![RingSample { slices: Some(slices), triples, ..sample(0) }; 40];
        let reference = Reference { unshared_ratio: ratio, established: true, launch_scatter: ratio, ..Reference::default() };
        let all = slices_with(&samples, &reference);
        let plan = plan_with(&reference);
        let table = Table::from_samples(&plan, &samples, []);
        let _ = (all, table.hop(0, 1), table.hop_by_round(0));
        let _ = (samples[0].cpu_ns_per_hop(), samples[0].switches_per_hop());
        let triples = samples[0].triples.as_ref().unwrap();
        let _ = triples.above_solos_as_found_ns();
    }
}

/// Ten rounds of 20 slices at full speed; others had so much of the CPU in those that `others`
/// says.
fn beside_others(
    members: u32,
    share: f64,
    others: impl Fn(usize) -> bool,
) -> (Plan, Vec<RingSample>) {
    let sample = |round| {
        let mut sample = cut(sample(round), 20, |_| true);
        let slices = sample.slices.as_mut().unwrap();
        let used = |(at, ns): (usize, &mut u64)| {
            let cpu_ns = *ns;
            *ns = if others(at) { (*ns as f64 / (1.0 - share)) as u64 } else { *ns };
            cpu_ns
        };
        slices.cpu_ns = slices.elapsed_ns.iter_mut().enumerate().map(used).collect();
        sample.elapsed_ns = slices.elapsed_ns.iter().sum();
        sample
    };
    (plan_of(case(members)), (0..10).map(sample).collect())
}

fn plan_of(case: RingCase) -> Plan {
    Plan { seed: 1, ..Plan::from_cases(Experiment::Ring, [case]) }
}

#[test]
fn a_slice_that_others_ran_in_is_not_clean_however_fast_the_core_was() {
    let counts = |share, others: &dyn Fn(usize) -> bool| {
        let (plan, samples) = beside_others(2, share, others);
        let counts = Table::from_samples(&plan, &samples, []).slices(0).unwrap().clean_counts();
        (counts.judged, counts.clean, counts.not_alone)
    };
    assert_eq!(counts(0.4, &|_| false), (200, 200, 0));
    assert_eq!(counts(0.4, &|at| at < 5), (200, 150, 50));
    // A little more than is allowed, and a little less.
    assert_eq!(counts(0.021, &|at| at < 5), (200, 150, 50));
    assert_eq!(counts(0.019, &|at| at < 5), (200, 200, 0));
}

#[test]
fn what_was_never_alone_has_no_figure_at_full_speed_and_says_why() {
    let hop = |others: &dyn Fn(usize) -> bool| {
        let (plan, samples) = beside_others(2, 0.4, others);
        let table = Table::from_samples(&plan, &samples, []);
        let noise = crate::noise::judge(&table);
        (table.hop(0, 1).unwrap(), noise)
    };
    let (alone, quiet) = hop(&|_| false);
    assert_eq!((alone.speed, quiet.level), (Speed::Full, crate::noise::NoiseLevel::Quiet));
    assert_eq!(quiet.not_alone_share, Some(0.0));
    // The figure is that of the slices between: it holds, and the machine was not quiet.
    let (between, noisy) = hop(&|at| at % 4 == 0);
    assert_eq!(between, alone);
    assert_eq!(noisy.level, crate::noise::NoiseLevel::Noisy);
    assert!(
        noisy.in_words().contains("other tasks shared the CPU in 25 % of the slices"),
        "{noisy:?}"
    );
    // Who was there in most slices was there all the time: the others are no slices of a CPU of
    // one's own.
    let (beside, noisy) = hop(&|at| at % 5 < 3);
    assert_eq!(beside.speed, Speed::CpuTime);
    assert!(beside.quote_cost().is_err() && beside.answer_cost().is_ok(), "{beside:?}");
    assert_eq!(noisy.level, crate::noise::NoiseLevel::Unusable);
    let (never, noisy) = hop(&|_| true);
    assert_eq!(never.speed, Speed::CpuTime);
    assert!(never.quote_cost().is_err() && never.answer_cost().is_ok(), "{never:?}");
    assert_eq!(noisy.level, crate::noise::NoiseLevel::Unusable);
}

#[test]
fn a_ring_that_was_not_asked_slice_by_slice_is_judged_as_a_whole() {
    let clean = |members: u32, elapsed_times: f64| {
        let one = |round| {
            let mut sample = cut(sample(round), 20, |_| true);
            // The quanta are in the members' time, not in that of the slices.
            sample.counters.cpu_ns =
                sample.elapsed_ns + sample.slices.as_ref().unwrap().reference_ns();
            sample.elapsed_ns = (sample.elapsed_ns as f64 * elapsed_times) as u64;
            sample
        };
        let samples: Vec<RingSample> = (0..10).map(one).collect();
        let plan = plan_of(case(members));
        let counts = Table::from_samples(&plan, &samples, []).slices(0).unwrap().clean_counts();
        (counts.clean, counts.not_alone)
    };
    assert_eq!(clean(65, 1.01), (200, 0));
    assert_eq!(clean(65, 1.1), (0, 200));
    // Members of others were asked, or it is a run of before they were.
    assert_eq!(clean(64, 1.1), (200, 0));
}
