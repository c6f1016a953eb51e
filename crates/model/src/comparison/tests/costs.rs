//! Ratios, intervals and answers of costs that are made up.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::terms;
use crate::comparison::answer::answer;
use crate::comparison::ratio::Costs;
use crate::comparison::{Answer, LIMIT, Reason, words};
use crate::stats::{Rounds, median};
use crate::subject::{ByRound, Values};

/// Rounds of plain samples, the figure being their median.
struct Plain(Vec<Vec<f64>>);

impl Rounds for Plain {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn figure(&self, round: usize) -> f64 {
        median(&self.0[round]).unwrap()
    }
    fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64 {
        let from = &self.0[round];
        let drawn: Vec<f64> = from.iter().map(|_| from[rng.random_range(0..from.len())]).collect();
        median(&drawn).unwrap()
    }
}

fn by_round(rounds: Vec<Vec<f64>>) -> ByRound {
    let numbers = (0..rounds.len() as u32).collect();
    ByRound { numbers, rounds: Box::new(Plain(rounds)) }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0))
}

/// Figures around `level`, with relative scatter between rounds and within them.
fn simulated(
    rng: &mut ChaCha8Rng,
    level: f64,
    rounds: usize,
    between: f64,
    within: f64,
) -> ByRound {
    let one = |rng: &mut ChaCha8Rng| {
        let middle = 1.0 + between * normal(rng);
        (0..3).map(|_| level * (middle + within * normal(rng))).collect()
    };
    by_round((0..rounds).map(|_| one(rng)).collect())
}

fn values(rounds: ByRound) -> Values {
    Values::Measured(rounds)
}

/// Fewer resamples than the program draws: enough for a variance.
const RESAMPLES: usize = 200;
const TRIALS: u64 = 300;

/// How often, in percent of seeded trials, a comparison of `cases` cases called any of them changed of
/// which none was; and how often a single case of it that had become 5 % dearer was called changed.
fn alarms_and_finds(rounds: usize, cases: usize, scatter: f64, paired: bool) -> (f64, f64) {
    let each = 1.0 - 0.05 / cases as f64;
    let (mut alarms, mut finds) = (0, 0);
    for trial in 0..TRIALS {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 * trial + rounds as u64);
        let mut is_changed = |factor: f64| {
            let base = simulated(&mut rng, 3000.0, rounds, scatter, 0.3 * scatter);
            let new = simulated(&mut rng, 3000.0 * factor, rounds, scatter, 0.3 * scatter);
            let costs = match paired {
                true => Costs::paired_by(&base, &new, trial, RESAMPLES),
                false => Costs::apart_by(&values(base), &values(new), trial, RESAMPLES),
            };
            let costs = costs.unwrap();
            let answer = answer(&costs, &costs.ratio(each), LIMIT, each);
            matches!(answer, Answer::Changed { .. })
        };
        alarms += u64::from((0..cases).filter(|_| is_changed(1.0)).count() > 0);
        finds += u64::from(is_changed(1.05));
    }
    let percent = |count: u64| 100.0 * count as f64 / TRIALS as f64;
    (percent(alarms), percent(finds))
}

/// The promise of a gate: of comparisons in which nothing changed at most 5 % call anything changed,
/// however many cases they have; 2 points for the 300 trials. And it finds what it should.
#[test]
fn few_false_alarms_and_the_power_that_the_method_claims() {
    for (rounds, cases, scatter, paired, least_found) in [
        (5, 1, 0.03, false, 15.0),
        (8, 10, 0.03, false, 0.0),
        (20, 1, 0.03, false, 97.0),
        (20, 10, 0.03, false, 80.0),
        (30, 10, 0.03, false, 95.0),
        (8, 10, 0.03, true, 0.0),
        (20, 10, 0.03, true, 75.0),
        (30, 1, 0.03, true, 97.0),
    ] {
        let (alarms, found) = alarms_and_finds(rounds, cases, scatter, paired);
        println!(
            "{rounds} rounds, {cases} cases, paired {paired}: alarms {alarms:.1} %, +5 % found {found:.1} %"
        );
        assert!(alarms <= 7.0, "{rounds} rounds, {cases} cases, paired {paired}: {alarms:.1} %");
        assert!(
            found >= least_found,
            "{rounds} rounds, {cases} cases, paired {paired}: {found:.1} %"
        );
    }
}

fn apart(base: &[f64], new: &[f64]) -> Costs {
    let each = |all: &[f64]| values(by_round(all.iter().map(|value| vec![*value]).collect()));
    Costs::apart(&each(base), &each(new), 7).unwrap()
}

const TEN: [f64; 10] = [98.0, 99.0, 99.5, 100.0, 100.2, 99.8, 100.5, 101.0, 102.0, 100.0];

fn times(factor: f64) -> Vec<f64> {
    TEN.iter().map(|value| value * factor).collect()
}

fn answer_of(costs: &Costs, limit: f64) -> Answer {
    answer(costs, &costs.ratio(0.95), limit, 0.95)
}

#[test]
fn three_answers() {
    assert_eq!(answer_of(&apart(&TEN, &TEN), 0.03), Answer::NotChanged);
    let worse = answer_of(&apart(&TEN, &times(1.2)), 0.03);
    assert_eq!(worse, Answer::Changed { worse: true, beyond_limit: true });
    let better = answer_of(&apart(&TEN, &times(0.8)), 0.03);
    assert_eq!(better, Answer::Changed { worse: false, beyond_limit: true });
    // Clearly dearer, and clearly by less than the limit: what is proven to be small is no change.
    assert_eq!(answer_of(&apart(&TEN, &times(1.02)), 0.05), Answer::NotChanged);
    // Clearly dearer, and perhaps beyond the limit.
    let near = answer_of(&apart(&TEN, &times(1.02)), 0.021);
    assert_eq!(near, Answer::Changed { worse: true, beyond_limit: false });
    let open = answer_of(&apart(&TEN, &times(1.003)), 0.005);
    let Answer::CannotTell { reason: Reason::TooWide, more_rounds: Some(more) } = open else {
        panic!("{open:?}");
    };
    // As many more do tell, one less does not.
    let costs = apart(&TEN, &times(1.003));
    assert!(!matches!(answer_of(&costs.with_more(more), 0.005), Answer::CannotTell { .. }));
    assert!(matches!(answer_of(&costs.with_more(more - 1), 0.005), Answer::CannotTell { .. }));
}

#[test]
fn without_an_interval_the_answer_says_why() {
    let why = |base: &[f64], new: &[f64]| match answer_of(&apart(base, new), 0.03) {
        Answer::CannotTell { reason, more_rounds } => (reason, more_rounds),
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&TEN[..3], &TEN), (Reason::FewRounds, Some(2)));
    let around_zero = [-5.0, 7.0, -3.0, 4.0, -1.0, 2.0, 0.5];
    assert_eq!(why(&around_zero, &TEN).0, Reason::BaseNotResolved);
    assert_eq!(why(&[-5.0, -5.1, -5.2, -4.9, -5.0], &TEN), (Reason::BaseNotResolved, None));
    let printed = Costs::apart(&Values::Published(1.0), &Values::Published(2.0), 1).unwrap();
    let none = Answer::CannotTell { reason: Reason::NoInterval, more_rounds: None };
    assert_eq!(answer_of(&printed, 0.03), none);
}

#[test]
fn a_published_base_leaves_the_interval_to_the_run() {
    let run = values(by_round(TEN.iter().map(|value| vec![*value]).collect()));
    let costs = Costs::apart(&Values::Published(200.0), &run, 7).unwrap();
    let (low, high) = costs.ratio(0.95).interval().unwrap();
    // Student's interval of the run's middle, divided by the figure as printed: symmetric about it.
    assert!((costs.ratio(0.95).value.unwrap() - 0.5).abs() < 0.001, "{costs:?}");
    assert!((low + high - 2.0 * costs.ratio(0.95).value.unwrap()).abs() < 1e-9, "{low} {high}");
    let twice = Costs::apart(&Values::Published(400.0), &run, 7).unwrap().ratio(0.95);
    assert!((2.0 * twice.low.unwrap() - low).abs() < 1e-9);
}

#[test]
fn the_other_way_round_the_ratio_is_the_inverse_and_so_is_its_interval() {
    let (one, other) = (apart(&TEN, &times(1.07)), apart(&times(1.07), &TEN));
    let (one, other) = (one.ratio(0.95), other.ratio(0.95));
    assert!((one.value.unwrap() * other.value.unwrap() - 1.0).abs() < 1e-12);
    let (low, high) = one.interval().unwrap();
    let (low_back, high_back) = other.interval().unwrap();
    // The two sides are resampled by other seeds, so that the ends agree to a share of the width.
    let near = |a: f64, b: f64| (a - b).abs() < 0.1 * (high - low);
    assert!(near(1.0 / low_back, high) && near(1.0 / high_back, low), "{one:?} {other:?}");
}

#[test]
fn pairing_within_rounds_takes_drift_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    // Each round 40 % slower than the one before; the new one 5 % dearer in each.
    let drift: Vec<f64> = (0..12).map(|round| 1000.0 * 1.4_f64.powi(round)).collect();
    let mut rounds = |factor: f64| {
        let one = |level: &f64| vec![level * factor * (1.0 + 0.001 * normal(&mut rng))];
        by_round(drift.iter().map(one).collect())
    };
    let (base, new) = (rounds(1.0), rounds(1.05));
    let paired = Costs::paired(&base, &new, 1).unwrap();
    assert!(matches!(answer_of(&paired, 0.03), Answer::Changed { worse: true, .. }), "{paired:?}");
    let apart = Costs::apart(&values(base), &values(new), 1).unwrap();
    assert!(matches!(answer_of(&apart, 0.03), Answer::CannotTell { .. }), "{apart:?}");
}

fn within_rounds(base: &[f64], new: &[f64]) -> Costs {
    let rounds = |all: &[f64]| by_round(all.iter().map(|value| vec![*value]).collect());
    Costs::paired(&rounds(base), &rounds(new), 7).unwrap()
}

fn reason_of(costs: &Costs) -> Reason {
    match answer_of(costs, LIMIT) {
        Answer::CannotTell { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Tickless clocks and empty calls do come out at zero.
#[test]
fn a_base_of_nothing_has_no_ratio_and_two_of_nothing_do_not_differ() {
    let (nothing, below) = ([0.0; 10], [-1.0; 10]);
    for base in [nothing, below] {
        for costs in [apart(&base, &TEN), within_rounds(&base, &TEN), apart(&base, &base)] {
            let ratio = costs.ratio(0.95);
            assert_eq!((ratio.value, ratio.interval()), (None, None), "{costs:?}");
            assert_eq!(reason_of(&costs), Reason::BaseNotResolved, "{costs:?}");
        }
    }
    // Now and then nothing on both sides is no difference, not the greatest one.
    let mut mostly = TEN;
    mostly[..4].fill(0.0);
    assert_eq!(answer_of(&within_rounds(&mostly, &mostly), LIMIT), Answer::NotChanged);
    assert_eq!(within_rounds(&mostly, &mostly).ratio(0.95).value, Some(1.0));
}

#[test]
fn who_is_not_above_zero_is_named() {
    let below = [-50.0; 10];
    assert_eq!(reason_of(&within_rounds(&below, &TEN)), Reason::BaseNotResolved);
    assert_eq!(reason_of(&within_rounds(&TEN, &below)), Reason::NewNotResolved);
    let words = |costs: &Costs| {
        let ratio = costs.ratio(0.95);
        words::answer(&answer(costs, &ratio, LIMIT, 0.95), &ratio, &terms())
    };
    let said = words(&within_rounds(&TEN, &below));
    assert!(said.contains("the new cost is not resolved from zero"), "{said}");
    // Apart, it is resolved: below the base, whatever it is.
    assert_eq!(words(&apart(&TEN, &below)), "changed: cheaper");
    assert_eq!(
        words(&apart(&TEN[..3], &TEN)),
        "cannot tell: too few rounds for an interval, which takes 2 more"
    );
}

/// One round has no scatter that could be known, and zero is not what it is.
#[test]
fn an_unknown_scatter_is_no_interval() {
    for costs in [apart(&TEN[..1], &TEN), apart(&TEN, &TEN[..1]), within_rounds(&[1.0], &[2.0])] {
        assert_eq!(costs.ratio(0.95).interval(), None);
        assert_eq!(costs.with_more(100).ratio(0.95).interval(), None, "{costs:?}");
    }
    assert!(Costs::apart(&Values::Published(f64::NAN), &Values::Published(1.0), 1).is_none());
}

/// What stands for a round in which a cost came out below zero must not make a ratio.
#[test]
fn too_many_rounds_below_zero_have_no_interval() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut costs = |below: usize| {
        let level = |_| 1000.0 * (1.0 + 0.01 * normal(&mut rng));
        let levels: Vec<f64> = (0..100).map(level).collect();
        let base = |(round, level): (usize, &f64)| vec![if round < below { -50.0 } else { *level }];
        let base = by_round(levels.iter().enumerate().map(base).collect());
        let new = by_round(levels.iter().map(|level| vec![*level]).collect());
        Costs::paired(&base, &new, 1).unwrap()
    };
    assert!(costs(10).ratio(0.95).interval().is_some());
    let many = costs(40);
    assert_eq!(many.ratio(0.95).interval(), None, "{many:?}");
    assert_eq!(many.with_more(100).ratio(0.95).interval(), None, "more of the same tell no more");
    assert!(!matches!(answer_of(&many, 0.03), Answer::Changed { .. }));
}

#[test]
fn only_rounds_that_both_have_are_paired() {
    let of = |numbers: &[u32], level: f64| ByRound {
        numbers: numbers.to_vec(),
        rounds: Box::new(Plain(numbers.iter().map(|n| vec![level + f64::from(*n)]).collect())),
    };
    let (base, new) = (of(&[0, 1, 2, 3, 5, 6], 100.0), of(&[1, 2, 3, 4, 5, 6], 110.0));
    let costs = Costs::paired(&base, &new, 1).unwrap();
    assert_eq!((costs.base_rounds, costs.new_rounds), (Some(5), Some(5)));
    assert!((costs.new - costs.base - 10.0).abs() < 1e-9);
    assert!(Costs::paired(&of(&[0], 1.0), &of(&[1], 1.0), 1).is_none());
}
