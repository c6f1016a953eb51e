//! Trials in slices: figures are those of the clean ones, by known answers.

use proptest::prelude::*;

use super::tests::{close, run, sample};
use super::*;
use crate::experiment::Experiment;
use crate::looks;
use crate::noise::NoiseLevel;
use crate::run::Run;
use crate::speed;
use crate::speed::{CleanCounts, Slices, Speed, around};
use crate::trial::{Sample, Sliced, loops};
use stats::median;

/// Slices of one loop, three outcomes each; a tally is given by its name and what a slice has of it.
pub(crate) fn sliced(
    slices: u64,
    is_clean: impl Fn(u64) -> bool,
    tallies: &[(&str, &dyn Fn(u64) -> i64)],
) -> Sliced {
    let mut quanta = around(slices, 3, is_clean);
    quanta.elapsed_ns = vec![300_000; slices as usize];
    let of = |(name, of): &(&str, &dyn Fn(u64) -> i64)| {
        let slice = |index| Tally::from_iter([of(index) - 1, of(index), of(index) + 1]);
        (name.to_string(), (0..slices).map(slice).collect())
    };
    Sliced { slices: quanta, tallies: tallies.iter().map(of).collect() }
}

const CALL: &str = "dear";

fn overhead(samples: Vec<Sample>) -> Run {
    run(Experiment::ClockOverhead, vec![Trial::Call { call: CALL.to_string() }], samples)
}

/// Ten slices of single calls and ten of batches. A call takes 25 ticks in a row and 100 alone, on a shared
/// core 35 and 140; rounds differ by a tick.
fn one(round: u32, is_clean: impl Fn(u64) -> bool + Copy) -> Sample {
    let wobble = i64::from(round % 2);
    let at = move |full: i64, shared: i64| {
        move |index| if is_clean(index) { full + wobble } else { shared + wobble }
    };
    let (single, empty, batch) = (at(140, 180), at(40, 40), at(2500, 3500));
    Sample {
        sliced: vec![
            sliced(
                10,
                is_clean,
                &[(overhead::CALL_TICKS, &single), (overhead::EMPTY_TICKS, &empty)],
            ),
            sliced(10, is_clean, &[(overhead::BATCH_TICKS, &batch)]),
        ],
        ..sample(0, round, &[], &[])
    }
}

fn found(run: &Run) -> overhead::CallCost {
    match Record::of(run).findings {
        Findings::Overhead(found) => found.calls.into_iter().next().expect("a call"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_costs_what_it_takes_in_clean_slices() {
    // Four of ten are clean, and those beside them are not.
    let run = overhead((0..10).map(|round| one(round, |index| index < 4)).collect());
    let cost = found(&run);
    let in_a_row = cost.back_to_back_ticks.expect("ten rounds");
    assert_eq!((in_a_row.speed, in_a_row.rounds), (Speed::Full, 10), "{in_a_row:?}");
    assert!(close(in_a_row.value, 25.005), "{in_a_row:?}");
    let alone = cost.median_ticks.expect("ten rounds");
    assert!(alone.speed == Speed::Full && close(alone.value, 100.0), "{alone:?}");
    // Every round says 100: what is left is the term for launches, 1.96 x 1 %.
    assert!((alone.relative_half_width().expect("an interval") - 0.0196).abs() < 1e-4, "{alone:?}");
    // What is told of all values is of all slices.
    assert_eq!((cost.net_ticks.count, cost.net_ticks.p99), (300, 141));
    let record = Record::of(&run);
    assert_eq!(record.cases[0].quantities[overhead::BATCH_TICKS].count, 300);
    assert_eq!((record.noise.level, record.noise.clean_share), (NoiseLevel::Noisy, Some(0.4)));
    assert!(record.noise.in_words().contains("1.40 times as slow"), "{:?}", record.noise);
    assert_eq!(looks::lacking(&run.header.plan, &run.samples), [0_usize; 0]);
    let levels = speed::levels(&run.header.plan, &run.samples);
    assert_eq!(levels.keys().collect::<Vec<_>>(), [&vec![1]]);
}

#[test]
fn with_too_few_clean_slices_a_figure_is_contended_and_has_no_interval() {
    let enough = |rounds: u32, clean: u64| {
        let mut samples: Vec<Sample> =
            (0..rounds).map(|round| one(round, |index| index < clean)).collect();
        // What an unshared core does is known from elsewhere in any case.
        samples.extend((90..92).map(|round| one(round, |_| true)));
        samples.iter_mut().filter(|s| s.round >= 90).for_each(|s| s.steal_ns = Some(1));
        let run = overhead(samples);
        let cost = found(&run).back_to_back_ticks.expect("rounds");
        let lacking = looks::lacking(&run.header.plan, &run.samples);
        assert_eq!(cost.interval().is_some(), cost.speed == Speed::Full, "{cost:?}");
        assert_eq!(lacking.is_empty(), cost.speed == Speed::Full, "{cost:?}");
        (cost.speed, cost)
    };
    assert_eq!(enough(8, 4).0, Speed::Full);
    assert_eq!(enough(7, 9).0, Speed::Contended, "7 rounds");
    assert_eq!(enough(8, 3).0, Speed::Contended, "24 slices");
    let (speed, cost) = enough(10, 0);
    // Ten rounds at 35 and two at 25: all of them, at whatever speed.
    assert_eq!((speed, cost.rounds, cost.resolved), (Speed::Contended, 12, false));
    assert!(close(cost.value, 35.0), "{cost:?}");
}

#[test]
fn what_nobody_looked_at_is_as_it_was() {
    let batches: [(&str, &[i64]); 1] = [(overhead::BATCH_TICKS, &[2500, 2600, 2700])];
    let unsliced = |round| sample(0, round, &batches, &[]);
    let estimate = |samples: Vec<Sample>| {
        headlines_ns(&overhead(samples))[0].estimate(&overhead(Vec::new()).header.plan)
    };
    let as_before = estimate((0..6).map(unsliced).collect()).expect("six rounds");
    assert_eq!((as_before.speed, as_before.rounds), (Speed::NotJudged, 6));
    assert!(close(as_before.value, 13.0) && as_before.interval().is_some(), "{as_before:?}");
    // One round without slices, or with slices too long to be judged: nobody looked at all of it.
    let mut mixed: Vec<Sample> = (0..10).map(|round| one(round, |_| true)).collect();
    assert_eq!(estimate(mixed.clone()).map(|of| of.speed), Some(Speed::Full));
    mixed[3] = unsliced(3);
    assert_eq!(estimate(mixed.clone()).map(|of| of.speed), Some(Speed::NotJudged));
    mixed[3] = one(3, |_| true);
    // One long turn of another task is no long slice.
    mixed[3].sliced[1].slices.elapsed_ns[0] = 90_000_000;
    assert_eq!(estimate(mixed.clone()).map(|of| of.speed), Some(Speed::Full));
    mixed[3].sliced[1].slices.elapsed_ns = vec![3_100_000; 10];
    assert_eq!(estimate(mixed).map(|of| of.speed), Some(Speed::NotJudged));
}

#[test]
fn a_slice_in_which_another_had_its_turn_is_left_out() {
    let mut samples: Vec<Sample> = (0..10).map(|round| one(round, |_| true)).collect();
    for sample in &mut samples {
        let batches = &mut sample.sliced[1];
        batches.slices.elapsed_ns[4] *= 3;
        let slow = batches.tallies.get_mut(overhead::BATCH_TICKS).expect("batches");
        slow[4] = Tally::from_iter([900_000; 3]);
    }
    let plan = overhead(Vec::new()).header.plan;
    let by_case = ByCase::new(&plan, &samples);
    let counts = CleanCounts { judged: 200, clean: 190, as_found: 200, clean_as_found: 190 };
    assert_eq!(by_case.counts(0), counts);
    let largest = |sample: &Sample| Some(sample.tally(overhead::BATCH_TICKS)?.max()? as f64);
    let of_clean = by_case.by_round(0, overhead::BATCH_TICKS, largest);
    assert!(of_clean.figures().all(|(_, most)| most < 2600.0));
    assert!(of_clean.of_all().all(|(_, most)| most == 900_000.0));
}

#[test]
fn the_tallies_of_a_sample_are_those_of_all_its_slices() {
    let whole = one(1, |index| index < 5);
    let all = whole.all_tallies();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["batch_ticks", "call_ticks", "empty_ticks"]);
    assert_eq!(all[overhead::BATCH_TICKS].count(), 30);
    assert_eq!(whole.tally(overhead::CALL_TICKS).map(|of| of.count()), Some(30));
    assert_eq!(whole.tally("else"), None);
    let text = serde_json::to_string(&whole).expect("JSON");
    assert_eq!(serde_json::from_str::<Sample>(&text).expect("a sample"), whole);
}

/// Whatever a damaged file says of slices.
fn any_sliced() -> impl Strategy<Value = Sliced> {
    let times = || prop::collection::vec(any::<u64>(), 0..6);
    let quanta = || prop::collection::vec(prop_oneof![Just(5900_u32), any::<u32>()], 0..9);
    let tally = prop::collection::vec(any::<(i64, u32)>(), 0..3).prop_map(Tally::from);
    let tallies = prop::collection::vec(tally, 0..6);
    let name = prop_oneof![
        Just(overhead::BATCH_TICKS),
        Just(overhead::CALL_TICKS),
        Just(overhead::EMPTY_TICKS),
        Just(loops::EMPTY_BATCH_TICKS)
    ];
    let named = prop::collection::btree_map(name.prop_map(str::to_string), tallies, 0..4);
    (any::<u64>(), times(), quanta(), quanta(), named).prop_map(
        |(laps, elapsed_ns, latency_ns, throughput_ns, tallies)| Sliced {
            slices: Slices { laps, elapsed_ns, latency_ns, throughput_ns, waits: None },
            tallies,
        },
    )
}

proptest! {
    #[test]
    fn any_slices_have_a_record(
        all in prop::collection::vec((0..3_usize, prop::collection::vec(any_sliced(), 0..3)), 0..40),
    ) {
        let of = |(round, (case, sliced)): (usize, &(usize, Vec<Sliced>))| {
            Sample { sliced: sliced.clone(), ..sample(*case, round as u32 / 2, &[], &[]) }
        };
        // Between samples that are sound, so that there is a level and something clean.
        let sound = (0..9).map(|round| one(round, |_| true));
        let samples: Vec<Sample> = sound.chain(all.iter().enumerate().map(of)).collect();
        let call = |name: &str| Trial::Call { call: name.to_string() };
        let mut run = run(Experiment::ClockOverhead, vec![call("a"), call("b")], samples);
        let looped = Trial::Loop { call: "b".to_string() };
        run.header.plan.cases[1] = Case { trial: looped, ..run.header.plan.trial(1).unwrap().clone() }.into();
        let record = Record::of(&run);
        prop_assert!(record.cases.len() == 2);
        let _ = looks::lacking(&run.header.plan, &run.samples);
        let _ = headlines_ns(&run).iter().filter_map(|of| of.estimate(&run.header.plan)).count();
    }

    /// The figure of a round is of its clean slices only, however many there are.
    #[test]
    fn a_rounds_figure_is_of_its_clean_slices(clean in prop::collection::vec(4_u64..10, 8..12)) {
        let samples = (0_u32..).zip(&clean).map(|(round, most)| one(round, |index| index < *most));
        let run = overhead(samples.collect());
        let of = &headlines_ns(&run)[0];
        prop_assert_eq!(of.speed(), Speed::Full);
        let figures: Vec<f64> = of.figures().map(|(_, ns)| ns).collect();
        prop_assert_eq!(figures.len(), clean.len());
        prop_assert!(figures.iter().all(|ns| (12.5..=12.51).contains(ns)), "{:?}", figures);
        prop_assert!(median(&figures).is_some());
    }
}
