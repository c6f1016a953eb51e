//! Made-up windows of which every gap is known.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::experiment::Experiment;
use rundata::plan::{Batching, Plan};
use rundata::ring::Policy;
use rundata::trial::{Gap, TrialBatching, TrialCase};

use super::*;

/// Two ticks a nanosecond.
const TICKS_PER_NS: f64 = 2.0;
const WINDOW_NS: f64 = 250e6;
const TICK_PERIOD_NS: f64 = 4e6;

/// What takes the CPU at a period: from when, for how long.
#[derive(Clone, Copy)]
struct Taker {
    class: GapClass,
    period_ns: f64,
    length_ns: f64,
    missing: f64,
}

const TICK: Taker = Taker {
    class: GapClass::Interrupt,
    period_ns: TICK_PERIOD_NS,
    length_ns: 3000.0,
    missing: 0.0,
};
const HOSTILE: Taker =
    Taker { class: GapClass::SwitchedOut, period_ns: 50e6, length_ns: 5e6, missing: 0.0 };
const HOST: Taker =
    Taker { class: GapClass::Uncharged, period_ns: 10e6, length_ns: 40_000.0, missing: 0.0 };

/// The gaps of a window, and interrupts at random moments beside them, so many.
fn gaps(takers: &[Taker], others: usize, random: &mut ChaCha8Rng) -> Vec<(f64, f64, GapClass)> {
    let mut all = Vec::new();
    for taker in takers {
        let mut at = random.random_range(0.0..taker.period_ns);
        while at + taker.length_ns < WINDOW_NS {
            if random.random_range(0.0..1.0) >= taker.missing {
                let late = random.random_range(0.0..0.002) * taker.period_ns;
                let longer = random.random_range(0.9..1.1);
                all.push((at + late, taker.length_ns * longer, taker.class));
            }
            at += taker.period_ns;
        }
    }
    let other = |random: &mut ChaCha8Rng| {
        (random.random_range(0.0..WINDOW_NS), 1500.0, GapClass::Interrupt)
    };
    all.extend((0..others).map(|_| other(random)));
    all.sort_by(|a, b| f64::total_cmp(&a.0, &b.0));
    // What would begin before the one before it has ended does not.
    let mut end = 0.0;
    all.retain(|(at, length, _)| {
        let is_free = *at > end;
        if is_free {
            end = at + length;
        }
        is_free
    });
    all
}

/// As the probe would have seen them.
fn sample(round: u32, gaps: &[(f64, f64, GapClass)]) -> TrialSample {
    let mut end = 0.0;
    let seen = |(at, length, class): &(f64, f64, GapClass)| {
        let ran_ns = at - end + if *class == GapClass::Interrupt { *length } else { 0.0 };
        let begun = end;
        end = at + length;
        Gap {
            at_ticks: (at * TICKS_PER_NS) as u64,
            ticks: (length * TICKS_PER_NS) as u64 + 40,
            switches: u32::from(*class == GapClass::SwitchedOut),
            cpu_ns: ran_ns as u64,
            clocked_ticks: ((end - begun) * TICKS_PER_NS) as u64,
        }
    };
    let window_ticks = (WINDOW_NS * TICKS_PER_NS) as i64;
    let counts = [
        (WINDOW_TICKS, window_ticks),
        (LOOK_TICKS, 0),
        (THRESHOLD_TICKS, 320),
        (LOOP_TICKS, 40),
        (CUT_SHORT, 0),
        (TICK_NS, TICK_PERIOD_NS as i64),
        (ALL_INTERRUPTS, 70),
        ("interrupts_LOC", 63),
    ];
    TrialSample {
        case: 0,
        round,
        elapsed_ns: WINDOW_NS as u64,
        elapsed_ticks: Some(window_ticks as u64),
        tallies: BTreeMap::new(),
        sliced: Vec::new(),
        gaps: gaps.iter().map(seen).collect(),
        counts: counts.map(|(name, count)| (name.to_string(), count)).into_iter().collect(),
        steal_ns: Some(10_000_000),
    }
}

fn samples(takers: &[Taker], others: usize) -> Vec<TrialSample> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    (0..8).map(|round| sample(round, &gaps(takers, others, &mut random))).collect()
}

fn plan() -> Plan {
    let trial = Trial::Gaps { duration_ns: WINDOW_NS as u64 };
    Plan {
        seed: 1,
        batching: Batching::of_trials(TrialBatching { trials: 1 }),
        ..Plan::from_cases(
            Experiment::Response,
            [TrialCase { trial, cpu: 1, policy: Policy::Other }],
        )
    }
}

fn found_in(samples: &[TrialSample]) -> GapFindings {
    find(&Table::from_samples(&plan(), [], samples)).pop().expect("a case of gaps").0
}

fn found(takers: &[Taker], others: usize) -> GapFindings {
    found_in(&samples(takers, others))
}

fn class(found: &GapFindings, class: GapClass) -> &GapClassFindings {
    found.classes.iter().find(|of| of.class == class).expect("every class is listed")
}

fn ticks(found: &GapFindings) -> Vec<&GapComb> {
    found.classes.iter().flat_map(|class| &class.combs).filter(|comb| comb.is_tick).collect()
}

fn near(value: f64, wanted: f64, part: f64) -> bool {
    (value / wanted - 1.0).abs() <= part
}

#[test]
fn the_tick_is_known_by_its_period_through_noise_and_gaps_in_it() {
    for (missing, others) in [(0.0, 0), (0.3, 0), (0.0, 120), (0.2, 80)] {
        let found = found(&[Taker { missing, ..TICK }], others);
        let ticks = ticks(&found);
        assert_eq!(ticks.len(), 1, "{missing} {others}: {found:?}");
        assert!(near(ticks[0].period_ns, TICK_PERIOD_NS, 1e-3), "{:?}", ticks[0]);
        assert!(near(ticks[0].hit, 1.0 - missing, 0.1), "{:?}", ticks[0]);
        // Others that come within its tolerance are few and shorter.
        assert!(near(found.tick_ns.expect("rounds").value, 3000.0, 0.05), "{found:?}");
        assert_eq!(found.interrupts_per_second.as_ref().map(|of| of["LOC"]), Some(252.0));
    }
}

#[test]
fn without_a_tick_none_is_named() {
    let tickless = found(&[], 90);
    assert!(tickless.classes.iter().all(|class| class.combs.is_empty()), "{tickless:?}");
    assert_eq!(tickless.tick_ns, None);
    // A device that interrupts at another period is no tick.
    let device = found(&[Taker { period_ns: 5.2e6, ..TICK }], 30);
    let combs = &class(&device, GapClass::Interrupt).combs;
    assert!(combs.len() == 1 && near(combs[0].period_ns, 5.2e6, 1e-3), "{combs:?}");
    assert!(ticks(&device).is_empty() && device.tick_ns.is_none());
    // A task that takes its turn at each tick is none either.
    let turns = found(&[Taker { class: GapClass::SwitchedOut, ..TICK }], 0);
    assert!(ticks(&turns).is_empty(), "{turns:?}");
}

/// As seen on a virtual machine whose host ticks every millisecond: where the guest's tick comes
/// with one of the host's, both are one comb.
#[test]
fn a_tick_within_a_faster_comb_is_told_as_possible() {
    let host = Taker { period_ns: 1e6, ..TICK };
    let together = found(&[host], 20);
    let [comb] = &class(&together, GapClass::Interrupt).combs[..] else { panic!("{together:?}") };
    assert_eq!((comb.is_tick, comb.tick_may_be_one_of), (false, Some(4)));
    assert!(comb.in_words(GapClass::Interrupt).ends_with("one of 4 may be the timer tick"));
    // No whole number of its gaps goes to a tick.
    let other = found(&[Taker { period_ns: 1.5e6, ..TICK }], 20);
    assert_eq!(class(&other, GapClass::Interrupt).combs[0].tick_may_be_one_of, None);
    // Where the tick was found apart, it is nothing else.
    let apart = found(&[host, TICK], 20);
    let combs = &class(&apart, GapClass::Interrupt).combs;
    assert_eq!(ticks(&apart).len(), 1, "{combs:?}");
    assert!(combs.iter().all(|comb| comb.tick_may_be_one_of.is_none()), "{combs:?}");
}

#[test]
fn a_neighbour_is_told_from_the_tick_and_its_share_is_counted() {
    let found = found(&[TICK, HOSTILE], 20);
    let out = class(&found, GapClass::SwitchedOut);
    let [comb] = &out.combs[..] else { panic!("one comb: {out:?}") };
    assert!(near(comb.period_ns, 50e6, 1e-2) && !comb.is_tick, "{comb:?}");
    assert!(near(comb.length_ns.p50 as f64, 5e6, 0.1), "{comb:?}");
    assert!((7.5..=10.5).contains(&comb.lost_percent), "{comb:?}");
    let mode = out.histogram.0.iter().max_by(|a, b| f64::total_cmp(&a.total_ns, &b.total_ns));
    assert!(mode.is_some_and(|bin| bin.from_ns == 5_000_000 || bin.below_ns == 5_000_000));
    // The tick is still there, though its gaps within the neighbour's turns are not.
    assert_eq!(ticks(&found).len(), 1);
    assert!(ticks(&found)[0].hit > 0.8);
}

#[test]
fn what_is_no_longer_than_a_step_of_the_loop_is_no_gap() {
    let mut watched = sample(0, &[(1e6, 3000.0, GapClass::Interrupt)]);
    let kept = classify(&watched);
    assert_eq!(kept.len(), 1);
    watched.gaps.extend([39, 40].map(|ticks| Gap { ticks, ..watched.gaps[0] }));
    assert_eq!(classify(&watched), kept);
}

#[test]
fn what_is_not_charged_is_neither_an_interrupt_nor_a_task() {
    let found = found(&[TICK, HOST], 0);
    let uncharged = class(&found, GapClass::Uncharged);
    assert!(near(uncharged.combs[0].period_ns, 10e6, 1e-3), "{uncharged:?}");
    assert!(near(uncharged.per_second.unwrap().value, 100.0, 0.05), "{uncharged:?}");
    assert_eq!(class(&found, GapClass::SwitchedOut).length_ns, None);
    assert!(near(found.steal_percent.unwrap(), 4.0, 1e-9));
    // Of one round: the medians of several need not add up.
    let found = found_in(&samples(&[TICK, HOST], 0)[..1]);
    let parts: f64 = found.classes.iter().map(|c| c.lost_percent.unwrap().value).sum();
    assert!(near(parts, found.lost_percent.unwrap().value, 1e-6), "the classes are all there is");
}

#[test]
fn looking_is_not_watched_and_a_loop_without_gaps_lost_nothing() {
    let mut quiet = samples(&[], 0);
    for sample in &mut quiet {
        sample.counts.insert(LOOK_TICKS.into(), (WINDOW_NS * TICKS_PER_NS / 2.0) as i64);
        sample.steal_ns = None;
        sample.counts.retain(|name, _| !name.starts_with(INTERRUPTS));
    }
    let found = found_in(&quiet);
    assert!(near(found.watched_ns, 8.0 * WINDOW_NS / 2.0, 1e-9), "{found:?}");
    assert_eq!(found.lost_percent.unwrap().value.to_bits(), 0, "nothing, not less than nothing");
    assert_eq!((found.steal_percent, &found.interrupts_per_second), (None, &None), "not read");
    assert!((found.loop_ns, found.threshold_ns) == (20.0, 160.0), "{found:?}");
}

#[test]
fn the_tick_of_each_round_has_its_own_length() {
    let plan = plan();
    let mut samples = samples(&[TICK], 0);
    for gap in &mut samples[3].gaps {
        gap.ticks += 2000;
    }
    let (_, by_round) =
        find(&Table::from_samples(&plan, [], &samples)).pop().expect("a case of gaps");
    let by_round: Vec<(u32, f64)> = by_round.figures().collect();
    assert_eq!(by_round.len(), 8);
    assert!(by_round[3].1 - by_round[2].1 > 900.0, "{by_round:?}");
    assert!(find(&Table::from_samples(&plan, [], &[])).is_empty(), "nothing was watched");
}

#[test]
fn gaps_survive_their_file() {
    let of = sample(0, &[(10.0, 2000.0, GapClass::SwitchedOut)]);
    let text = serde_json::to_string(&of).unwrap();
    assert!(text.contains(r#""gaps":[[20,4040,1,10,4020]]"#), "{text}");
    assert_eq!(serde_json::from_str::<TrialSample>(&text).unwrap(), of);
    assert_eq!(of.all_tallies()[GAP_TICKS].max(), Some(4040));
    // Samples of before have none.
    let old = text.replace(r#""gaps":[[20,4040,1,10,4020]],"#, "");
    assert!(serde_json::from_str::<TrialSample>(&old).unwrap().gaps.is_empty());
}

/// Eight windows as watched on the 2-CPU test machine, a guest of Firecracker (gaps of 2 us and
/// more). About a millisecond after many a tick something else comes at the same period.
#[test]
fn the_tick_of_a_real_guest_is_known() {
    let lines = include_str!("measured/firecracker-epyc.jsonl").lines();
    let samples: Vec<TrialSample> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = found_in(&samples);
    let ticks = ticks(&found);
    let [tick, ..] = &ticks[..] else { panic!("no tick: {found:?}") };
    assert!(near(tick.period_ns, TICK_PERIOD_NS, 1e-3) && tick.hit > 0.85, "{tick:?}");
    // As many as the kernel counted, about.
    let counted = found.interrupts_per_second.as_ref().map(|of| of["LOC"]).unwrap();
    let seen = tick.length_ns.count as f64 / (found.watched_ns / 1e9);
    assert!(near(seen, counted, 0.2), "{seen} of {counted} a second");
}
