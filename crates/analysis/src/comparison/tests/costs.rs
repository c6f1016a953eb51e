//! Ratios, intervals and answers of costs that are made up.

use cdflib::{ContinuousCdf, Normal};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::plan::ASSUMED_LAUNCH_SCATTER;
use stats::Elasticity;
use stats::ratio::{CostPair, CostRatio};
use testing::repeats;

use super::*;
use crate::at_clock::AtClock;
use crate::comparison::answer::answer;
use crate::comparison::clock::{PairAtOneClock, at_one_clock};
use crate::comparison::costs::PairCosts;
use crate::results::LaunchFigure;

const TAU: f64 = ASSUMED_LAUNCH_SCATTER;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0)).unwrap()
}

/// Builds the figure of a launch at full speed.
fn launch(value: f64, standard_error: f64) -> LaunchFigure {
    LaunchFigure {
        by_round: (0..20).map(|round| (round, value)).collect(),
        estimate: Estimate::at_full_speed(value, standard_error, 20, TAU, 0.95),
        is_complete: true,
        clock: None,
        launch_scatter: None,
    }
}

/// Builds the figure of a half of a session with these rounds, all at full speed.
fn rounds(figures: &[f64]) -> LaunchFigure {
    let estimate = Estimate::over(figures, 5, 0.95, 1);
    LaunchFigure {
        by_round: (0..).zip(figures.iter().copied()).collect(),
        estimate: estimate.map(|estimate| Estimate { speed: Speed::Full, ..estimate }),
        is_complete: true,
        clock: None,
        launch_scatter: None,
    }
}

fn with_speed(launch: LaunchFigure, speed: Speed) -> LaunchFigure {
    let estimate = launch.estimate.map(|estimate| Estimate { speed, ..estimate });
    LaunchFigure { estimate, ..launch }
}

fn incomplete(value: f64) -> LaunchFigure {
    LaunchFigure { is_complete: false, ..launch(value, 1.0) }
}

fn separate(base: Vec<LaunchFigure>, new: Vec<LaunchFigure>) -> PairCosts {
    PairCosts::separate(&CaseFigure::Measured(base), &CaseFigure::Measured(new), TAU).unwrap()
}

fn separate_launches(base: LaunchFigure, new: LaunchFigure) -> PairCosts {
    separate(vec![base], vec![new])
}

fn paired_rounds(base: &[f64], new: &[f64]) -> PairCosts {
    PairCosts::paired(&rounds(base), &rounds(new), 7).unwrap()
}

fn ratio(costs: &PairCosts) -> CostRatio {
    costs.values.ratio(0.95)
}

fn with_more(costs: &PairCosts, more: u32) -> PairCosts {
    PairCosts { values: costs.values.with_more(more), ..*costs }
}

/// Returns the launches behind base and new.
fn launch_counts(costs: &PairCosts) -> [Option<u32>; 2] {
    let CostPair::Separate(costs) = costs.values else { panic!("{costs:?}") };
    [costs.base.groups, costs.new.groups]
}

fn answer_at(costs: &PairCosts, limit: f64) -> ChangeAnswer {
    answer(costs, &ratio(costs), limit, 0.95)
}

/// Returns why the costs are undecided, and what would decide them.
fn undecided(costs: &PairCosts) -> (UndecidedReason, Option<MoreNeeded>) {
    match answer_at(costs, LIMIT) {
        ChangeAnswer::CannotTell { reason, more } => (reason, more),
        answer => panic!("{answer:?}"),
    }
}

fn undecided_reason(costs: &PairCosts) -> UndecidedReason {
    let (reason, _) = undecided(costs);
    reason
}

fn is_undecided(costs: &PairCosts, limit: f64) -> bool {
    matches!(answer_at(costs, limit), ChangeAnswer::CannotTell { .. })
}

fn is_changed(costs: &PairCosts, limit: f64) -> bool {
    matches!(answer_at(costs, limit), ChangeAnswer::Changed { .. })
}

/// Builds the figure of one launch at the clock of a quantum of `quantum_ns`.
fn at_clock(value: f64, quantum_ns: f64, elasticity: Option<f64>) -> CaseFigure {
    let elasticity = elasticity.map(|value| Elasticity { value, standard_error: 0.02 });
    let clock = Some(AtClock { quantum_ns, elasticity, known: None });
    CaseFigure::Measured(vec![LaunchFigure { clock, ..launch(value, 1.0) }])
}

fn ratio_at_one_clock(base: &CaseFigure, new: &CaseFigure) -> CostRatio {
    let PairAtOneClock { base, new, uncertainty } = at_one_clock(base, new);
    let costs = PairCosts::separate(&base, &new, 0.001).unwrap();
    costs.values.widened_by(uncertainty).ratio(0.95)
}

#[test]
fn what_the_clock_did_is_no_change() {
    // The core bounds it: 10 % more time at a period that is longer by a tenth.
    let base = at_clock(1000.0, 5000.0, Some(1.0));
    let same = ratio_at_one_clock(&base, &at_clock(1100.0, 5500.0, Some(1.0)));
    let (low, high) = same.interval().unwrap();
    assert!((same.value.unwrap() - 1.0).abs() < 1e-9 && low < 1.0 && high > 1.0, "{same:?}");
    // The error of the elasticity is in it: 1.96 x 0.1 x 0.02 / sqrt(2), the pooled one.
    assert!((0.002..0.006).contains(&(high - 1.0)), "{same:?}");
    // One side's elasticity serves both; a change beside that of the clock is found.
    let one_sided = ratio_at_one_clock(&base, &at_clock(1100.0, 5500.0, None));
    assert!((one_sided.value.unwrap() - 1.0).abs() < 1e-9);
    let changed = ratio_at_one_clock(&base, &at_clock(1122.0, 5500.0, Some(1.0)));
    let value = changed.value.unwrap();
    assert!((value - 1.02).abs() < 1e-9 && changed.low.unwrap() > 1.0, "{changed:?}");
}

#[test]
fn where_no_elasticity_is_known_the_ratio_holds_for_any_from_0_to_1() {
    let base = at_clock(1000.0, 5000.0, None);
    for truth in [1000.0, 1100.0] {
        let ratio = ratio_at_one_clock(&base, &at_clock(truth, 5500.0, None));
        let (low, high) = ratio.interval().unwrap();
        assert!(low < 1.0 && 1.0 < high && high - low < 0.11, "{truth}: {ratio:?}");
    }
    let same = ratio_at_one_clock(&base, &at_clock(1000.0, 5000.0, None));
    assert!(same.high.unwrap() < 1.004, "{same:?}");
    // A cost that waits for devices has no clock, and is compared as it is.
    let without_clock = |ns: f64| CaseFigure::Measured(vec![launch(ns, 1.0)]);
    let ratio = ratio_at_one_clock(&without_clock(1000.0), &without_clock(1100.0));
    assert_eq!(ratio.value, Some(1.1));
}

/// Draws launches that scatter by tau and by their own errors of 0.8 %.
fn draw_launches(rng: &mut ChaCha8Rng, launches: usize, level: f64) -> Vec<LaunchFigure> {
    let mut drawn = Vec::new();
    for _ in 0..launches {
        let (between, within) = (TAU * normal(rng), 0.008 * normal(rng));
        drawn.push(launch(level * (1.0 + between + within), 0.008 * level));
    }
    drawn
}

/// Percent of seeded trials with a changed case where nothing changed, and with a found change where
/// the new side is 5 % slower.
struct ErrorRates {
    alarms: f64,
    found: f64,
}

fn error_rates(trials: u64, launches: usize, cases: usize) -> ErrorRates {
    let confidence = 1.0 - 0.05 / cases as f64;
    let (mut alarms, mut found) = (0, 0);
    for trial in 0..trials {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 * trial + launches as u64);
        let mut is_changed = |factor: f64| {
            let base = draw_launches(&mut rng, launches, 3000.0);
            let new = draw_launches(&mut rng, launches, 3000.0 * factor);
            let costs = separate(base, new);
            let answer = answer(&costs, &costs.values.ratio(confidence), LIMIT, confidence);
            matches!(answer, ChangeAnswer::Changed { .. })
        };
        let changed = (0..cases).filter(|_| is_changed(1.0)).count();
        alarms += u64::from(changed > 0);
        found += u64::from(is_changed(1.05));
    }
    let [alarms, found] = [alarms, found].map(|count| 100.0 * count as f64 / trials as f64);
    ErrorRates { alarms, found }
}

/// The promise of a gate: of comparisons in which nothing changed at most 5 % call anything changed,
/// however many cases they have; 1 point for 2,000 trials, two standard errors. And it finds what it
/// should.
#[test]
fn few_false_alarms_and_the_power_that_the_method_claims() {
    let (trials, off) = repeats((300, 2.5), (2000, 1.0));
    for (launches, cases, least_found) in [(1, 1, 70.0), (1, 10, 40.0), (3, 1, 99.0), (3, 10, 95.0)]
    {
        let ErrorRates { alarms, found } = error_rates(trials, launches, cases);
        let name = format!("{launches} launches, {cases} cases");
        println!("{name}: alarms {alarms:.1} %, +5 % found {found:.1} %");
        assert!(alarms <= 5.0 + off, "{name}: {alarms:.1} %");
        assert!(found >= least_found - 2.0 * (off - 1.0), "{name}: {found:.1} %");
    }
}

/// Without its term for launches a comparison of single launches raises many times as many alarms.
#[test]
fn the_term_for_launches_is_needed() {
    let base = CaseFigure::Measured(vec![launch(1000.0, 3.0)]);
    let new = CaseFigure::Measured(vec![launch(1025.0, 3.0)]);
    let without = PairCosts::separate(&base, &new, 0.0).unwrap();
    assert!(matches!(answer_at(&without, 0.01), ChangeAnswer::Changed { worse: true, .. }));
    let with = PairCosts::separate(&base, &new, TAU).unwrap();
    assert!(is_undecided(&with, 0.01));
}

#[test]
fn the_variance_is_that_of_the_formula() {
    // Two launches against one: s^2 = (6^2 + 8^2) / 2^2 = 25 of 1000, and 10 of 1100; tau^2 (1/2 +
    // 1).
    let base = vec![launch(990.0, 6.0), launch(1010.0, 8.0)];
    let costs = separate(base, vec![launch(1100.0, 10.0)]);
    let variance: f64 = 25.0 / 1e6 + (10.0_f64 / 1100.0).powi(2) + 1e-4 * 1.5;
    let half = 1.959_964 * variance.sqrt();
    let (low, high) = ratio(&costs).interval().unwrap();
    assert!((low - 1.1 * (-half).exp()).abs() < 1e-6, "{low}");
    assert!((high - 1.1 * half.exp()).abs() < 1e-6, "{high}");
    assert_eq!((costs.base_rounds, costs.new_rounds), (Some(40), Some(20)));
}

#[test]
fn three_answers() {
    let against_1000 = |new: f64| separate_launches(launch(1000.0, 1.0), launch(new, 1.0));
    let changed = |worse, beyond_limit| ChangeAnswer::Changed { worse, beyond_limit };
    let limit = 0.04;
    assert_eq!(answer_at(&against_1000(1000.0), limit), ChangeAnswer::NotChanged);
    assert_eq!(answer_at(&against_1000(1200.0), limit), changed(true, true));
    assert_eq!(answer_at(&against_1000(800.0), limit), changed(false, true));
    // Clearly slower, and clearly by less than the limit: what is proven to be small is no change.
    assert_eq!(answer_at(&against_1000(1035.0), 0.08), ChangeAnswer::NotChanged);
    // Clearly slower, and perhaps beyond the limit.
    assert_eq!(answer_at(&against_1000(1035.0), limit), changed(true, false));
    let costs = against_1000(1010.0);
    let (UndecidedReason::TooWide, Some(MoreNeeded::Launches(more))) = undecided(&costs) else {
        panic!("{:?}", undecided(&costs));
    };
    // As many more do tell, one less does not.
    assert!(!is_undecided(&with_more(&costs, more), LIMIT));
    assert!(is_undecided(&with_more(&costs, more - 1), LIMIT));
}

/// The gate of a shared machine: what was not seen at full speed is never called changed.
#[test]
fn what_was_not_at_full_speed_is_inconclusive() {
    for speed in [Speed::Contended, Speed::NotJudged] {
        let contended = |value: f64| with_speed(launch(value, 1.0), speed);
        for costs in [
            separate_launches(launch(1000.0, 1.0), contended(3000.0)),
            separate_launches(contended(1000.0), launch(3000.0, 1.0)),
            PairCosts::paired(&contended(1000.0), &contended(3000.0), 1).unwrap(),
        ] {
            assert_eq!(undecided_reason(&costs), UndecidedReason::NoFullSpeed, "{costs:?}");
        }
        // A side goes by its launches that saw it.
        let two = vec![launch(1000.0, 1.0); 2];
        let mut three = two.clone();
        three.push(contended(3000.0));
        let costs = separate(three, two.clone());
        assert_eq!(ratio(&costs), ratio(&separate(two.clone(), two)), "{speed:?}");
        assert_eq!(launch_counts(&costs), [Some(2), Some(2)]);
        // Of three more one will be as slow as one of these three was.
        assert_eq!(launch_counts(&with_more(&costs, 3)), [Some(4), Some(5)]);
    }
}

#[test]
fn without_an_interval_the_answer_says_why() {
    let few = paired_rounds(&TEN[..3], &TEN[..3]);
    assert_eq!(undecided(&few), (UndecidedReason::FewRounds, Some(MoreNeeded::Rounds(2))));
    let thousand = || launch(1000.0, 1.0);
    let unresolved = separate_launches(launch(1.0, 10.0), thousand());
    assert_eq!(undecided_reason(&unresolved), UndecidedReason::BaseNotResolved);
    let base_below = separate_launches(launch(-5.0, 0.1), thousand());
    assert_eq!(undecided(&base_below), (UndecidedReason::BaseNotResolved, None));
    let new_below = separate_launches(thousand(), launch(-5.0, 0.1));
    assert_eq!(undecided(&new_below), (UndecidedReason::NewNotResolved, None));
    let (base, new) = (CaseFigure::Published(1.0), CaseFigure::Published(2.0));
    let printed = PairCosts::separate(&base, &new, TAU).unwrap();
    assert_eq!(undecided(&printed), (UndecidedReason::NoInterval, None));
}

#[test]
fn a_published_base_leaves_the_interval_to_the_run() {
    let run = CaseFigure::Measured(vec![launch(100.0, 1.0)]);
    let lowest = |printed: f64| {
        let costs = PairCosts::separate(&CaseFigure::Published(printed), &run, TAU).unwrap();
        ratio(&costs).low.unwrap()
    };
    let half = 1.959_964 * (2e-4_f64).sqrt();
    assert!((lowest(200.0) - 0.5 * (-half).exp()).abs() < 1e-6, "{}", lowest(200.0));
    assert!((2.0 * lowest(400.0) - lowest(200.0)).abs() < 1e-9);
}

#[test]
fn the_other_way_round_the_ratio_is_the_inverse_and_so_is_its_interval() {
    let (one, other) = (launch(1000.0, 9.0), launch(1070.0, 4.0));
    let forth = ratio(&separate_launches(one.clone(), other.clone()));
    let back = ratio(&separate_launches(other, one));
    assert!((forth.value.unwrap() * back.value.unwrap() - 1.0).abs() < 1e-12);
    let (low, high) = forth.interval().unwrap();
    let (low_back, high_back) = back.interval().unwrap();
    assert!((low * high_back - 1.0).abs() < 1e-12 && (high * low_back - 1.0).abs() < 1e-12);
}

const TEN: [f64; 10] = [98.0, 99.0, 99.5, 100.0, 100.2, 99.8, 100.5, 101.0, 102.0, 100.0];

#[test]
fn pairing_within_rounds_takes_drift_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    // Each round 40 % slower than the one before; the new one 5 % slower in each.
    let mut drifting = |factor: f64| {
        let mut figures = Vec::new();
        for round in 0..12 {
            let level = 1000.0 * 1.4_f64.powi(round);
            figures.push(level * factor * (1.0 + 0.001 * normal(&mut rng)));
        }
        figures
    };
    let (base, new) = (drifting(1.0), drifting(1.05));
    let paired = paired_rounds(&base, &new);
    let answer = answer_at(&paired, LIMIT);
    assert!(matches!(answer, ChangeAnswer::Changed { worse: true, .. }), "{paired:?}");
    let separate = separate_launches(rounds(&base), rounds(&new));
    assert!(is_undecided(&separate, LIMIT), "{separate:?}");
}

/// Tickless clocks and empty calls do come out at zero.
#[test]
fn a_base_of_nothing_has_no_ratio_and_two_of_nothing_do_not_differ() {
    for base in [[0.0; 10], [-1.0; 10]] {
        let costs = paired_rounds(&base, &TEN);
        assert_eq!((ratio(&costs).value, ratio(&costs).interval()), (None, None), "{costs:?}");
        assert_eq!(undecided_reason(&costs), UndecidedReason::BaseNotResolved, "{costs:?}");
    }
    // Now and then nothing on both sides is no difference, not the greatest one; nor may such a
    // cost be quoted.
    let mut mostly = TEN;
    mostly[..4].fill(0.0);
    let costs = paired_rounds(&mostly, &mostly);
    assert_eq!(undecided_reason(&costs), UndecidedReason::BaseNotResolved);
    assert_eq!(ratio(&costs).value, Some(1.0));
}

#[test]
fn the_side_that_is_not_above_zero_is_named() {
    let below = [-50.0; 10];
    let costs = paired_rounds(&below, &TEN);
    assert_eq!(undecided_reason(&costs), UndecidedReason::BaseNotResolved);
    let costs = paired_rounds(&TEN, &below);
    assert_eq!(undecided_reason(&costs), UndecidedReason::NewNotResolved);
    let words = |costs: &PairCosts| {
        answer_at(costs, LIMIT).in_words(Quantity::NsPerHop, [1.0, 1.0], &ratio(costs), LIMIT)
    };
    assert!(words(&costs).contains("the cost of new includes zero"), "{}", words(&costs));
    assert_eq!(
        words(&paired_rounds(&TEN[..3], &TEN[..3])),
        "inconclusive: too few rounds for an interval; measure about 2 more rounds"
    );
}

/// One round has no scatter that could be known, and zero is not what it is.
#[test]
fn an_unknown_scatter_is_no_interval() {
    let unknown = |value: f64| {
        let mut launch = launch(value, 1.0);
        launch.estimate.as_mut().unwrap().standard_error = None;
        launch
    };
    for costs in [
        separate_launches(unknown(1.0), launch(1.0, 0.01)),
        separate(vec![launch(1.0, 0.01)], vec![launch(1.0, 0.01), unknown(1.0)]),
        paired_rounds(&[1.0], &[2.0]),
    ] {
        assert_eq!(ratio(&costs).interval(), None);
        assert_eq!(ratio(&with_more(&costs, 100)).interval(), None, "{costs:?}");
    }
    let printed = CaseFigure::Published(1.0);
    for nothing in [CaseFigure::Published(f64::NAN), CaseFigure::Measured(Vec::new())] {
        assert!(PairCosts::separate(&nothing, &printed, TAU).is_none());
    }
}

/// The value that stands for a round in which a cost came out below zero must not make a ratio.
#[test]
fn too_many_rounds_below_zero_have_no_interval() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut with_rounds_below = |below: usize| {
        let mut new = Vec::new();
        for _ in 0..100 {
            new.push(1000.0 * (1.0 + 0.01 * normal(&mut rng)));
        }
        let mut base = new.clone();
        base[..below].fill(-50.0);
        paired_rounds(&base, &new)
    };
    assert!(ratio(&with_rounds_below(10)).interval().is_some());
    let many = with_rounds_below(40);
    assert_eq!(ratio(&many).interval(), None, "{many:?}");
    let more = ratio(&with_more(&many, 100));
    assert_eq!(more.interval(), None, "more of the same tell no more");
    assert!(!is_changed(&many, LIMIT));
}

#[test]
fn only_rounds_that_both_have_are_paired() {
    let with_rounds = |numbers: &[u32], level: f64| {
        let by_round = numbers.iter().map(|round| (*round, level + f64::from(*round))).collect();
        LaunchFigure {
            by_round,
            estimate: None,
            is_complete: true,
            clock: None,
            launch_scatter: None,
        }
    };
    let base = with_rounds(&[0, 1, 2, 3, 5, 6], 100.0);
    let new = with_rounds(&[1, 2, 3, 4, 5, 6], 110.0);
    let costs = PairCosts::paired(&base, &new, 1).unwrap();
    assert_eq!((costs.base_rounds, costs.new_rounds), (Some(5), Some(5)));
    let (base, new) = costs.values.both();
    assert!((new - base - 10.0).abs() < 1e-9);
    let (base, new) = (with_rounds(&[0], 1.0), with_rounds(&[1], 1.0));
    assert!(PairCosts::paired(&base, &new, 1).is_none());
}

/// Nothing is concluded from a run that was interrupted, and of several launches it does not count.
#[test]
fn what_did_not_end_is_inconclusive() {
    for costs in [
        separate_launches(launch(1000.0, 1.0), incomplete(3000.0)),
        separate_launches(incomplete(1000.0), launch(3000.0, 1.0)),
        PairCosts::paired(&incomplete(1000.0), &incomplete(3000.0), 1).unwrap(),
    ] {
        assert_eq!(undecided_reason(&costs), UndecidedReason::NotEnded, "{costs:?}");
    }
    let two = vec![launch(1000.0, 1.0); 2];
    let mut three = two.clone();
    three.push(incomplete(3000.0));
    let costs = separate(three, two.clone());
    assert_eq!(ratio(&costs), ratio(&separate(two.clone(), two)));
    let comparison = compare(&full_speed(|_| {}), &full_speed(|run| run.end = None));
    for change in &comparison.changes {
        assert_eq!(change.reason(), Some(UndecidedReason::NotEnded), "{change:?}");
    }
    assert_eq!(comparison.gate.verdict, GateVerdict::Undecided);
}

/// A gate does not fail for a change of which only the middle of the interval is beyond its limit.
#[test]
fn a_change_is_beyond_the_limit_with_its_whole_interval() {
    let changed = |worse, beyond_limit| Some(ChangeAnswer::Changed { worse, beyond_limit });
    for (interval, expected) in [
        ([1.021, 1.182], changed(true, false)),
        ([1.051, 1.182], changed(true, true)),
        ([0.85, 0.97], changed(false, false)),
        ([0.85, 0.94], changed(false, true)),
        ([0.97, 1.04], Some(ChangeAnswer::NotChanged)),
        ([0.97, 1.06], None),
    ] {
        assert_eq!(ChangeAnswer::from_interval(interval, 0.05), expected, "{interval:?}");
    }
}
