//! Known laws under seeded noise, and exact sentences.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

mod rises;

/// Sloan's sizes.
const NINE: [u32; 9] = [2, 4, 8, 10, 16, 20, 32, 48, 64];
/// What a run of today measures.
const THIRTEEN: [u32; 13] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// One deviate of the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

#[derive(Clone, Copy, PartialEq)]
enum Errors {
    Given,
    Absent,
}

/// A seeded trial: `truth` at `sizes` with relative noise.
fn trial(
    truth: &dyn Fn(f64) -> f64,
    sizes: &[u32],
    noise: f64,
    errors: Errors,
    seed: u64,
) -> Vec<CurvePoint> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let point = |&members: &u32| {
        let level = truth(f64::from(members));
        let y = level * (1.0 + noise * normal(&mut random));
        CurvePoint {
            x: members.into(),
            y,
            error: (errors == Errors::Given).then_some(noise * level),
        }
    };
    sizes.iter().map(point).collect()
}

/// The part of the trials whose verdict passes.
fn rate(
    truth: &dyn Fn(f64) -> f64,
    sizes: &[u32],
    noise: f64,
    errors: Errors,
    trials: u64,
    pass: &dyn Fn(&ScalingVerdict) -> bool,
) -> f64 {
    let passed =
        (0..trials).filter(|&seed| pass(&law(&trial(truth, sizes, noise, errors, seed)))).count();
    passed as f64 / trials as f64
}

fn step(n: f64, knee: f64) -> f64 {
    if n > knee { 1.0 } else { 0.0 }
}

fn brackets(verdict: &ScalingVerdict, truth: &[f64]) -> bool {
    let inside = |(knee, &at): (&Knee, &f64)| {
        f64::from(knee.low_members) <= at && at <= f64::from(knee.high_members)
    };
    verdict.knees.iter().zip(truth).all(inside)
}

/// Name, shape, cost, positions of the knees.
type Truth = (&'static str, LawShape, fn(f64) -> f64, &'static [f64]);

const TRUTHS: [Truth; 14] = [
    ("constant", LawShape::Constant, |_| 4000.0, &[]),
    ("logarithmic", LawShape::Logarithmic, |n| 3000.0 + 700.0 * n.ln(), &[]),
    ("falling", LawShape::Logarithmic, |n| 6000.0 - 700.0 * n.ln(), &[]),
    ("linear", LawShape::Linear, |n| 3000.0 + 50.0 * n, &[]),
    ("quadratic", LawShape::Quadratic, |n| 3000.0 + 2.0 * n * n, &[]),
    ("step", LawShape::Step, |n| 4000.0 + 4000.0 * step(n, 14.0), &[14.0]),
    ("saturating", LawShape::Saturating, |n| 8000.0 - 6000.0 * (-(n - 1.0) / 8.0).exp(), &[]),
    (
        "flat then log",
        LawShape::FlatLogarithmic,
        |n| 2000.0 + 2000.0 * (n / 14.0).ln().max(0.0),
        &[14.0],
    ),
    (
        "linear hinge",
        LawShape::LinearHinge,
        |n| 2000.0 + 40.0 * n + 400.0 * (n - 40.0).max(0.0),
        &[40.0],
    ),
    (
        "log step",
        LawShape::LogarithmicStep,
        |n| 3000.0 + 700.0 * n.ln() + 5000.0 * step(n, 40.0),
        &[40.0],
    ),
    ("linear step", LawShape::LinearStep, |n| 3000.0 + 50.0 * n + 6000.0 * step(n, 20.0), &[20.0]),
    (
        "log hinge",
        LawShape::LogarithmicHinge,
        |n| 3000.0 + 700.0 * n.ln() + 300.0 * (n - 40.0).max(0.0),
        &[40.0],
    ),
    (
        "two steps",
        LawShape::TwoSteps,
        |n| 2000.0 + 2000.0 * step(n, 5.0) + 4000.0 * step(n, 40.0),
        &[5.0, 40.0],
    ),
    (
        "ramp",
        LawShape::Ramp,
        |n| 2000.0 + 200.0 * ((n - 8.0).max(0.0) - (n - 48.0).max(0.0)),
        &[8.0, 48.0],
    ),
];

#[test]
fn each_law_is_recovered() {
    for errors in [Errors::Given, Errors::Absent] {
        for (name, shape, truth, _) in TRUTHS {
            let right = |verdict: &ScalingVerdict| verdict.shape() == Some(shape);
            let rate = rate(&truth, &THIRTEEN, 0.03, errors, 20, &right);
            assert!(rate >= 0.9, "{name}: {rate}");
        }
    }
}

#[test]
fn a_flat_cost_seldom_gets_a_knee() {
    for noise in [0.01, 0.03, 0.1] {
        for errors in [Errors::Given, Errors::Absent] {
            let kneed = |verdict: &ScalingVerdict| !verdict.knees.is_empty();
            let rate = rate(&|_| 4000.0, &NINE, noise, errors, 100, &kneed);
            assert!(rate <= 0.05, "noise {noise}: {rate}");
        }
    }
}

#[test]
fn the_bracket_covers_the_knee() {
    for errors in [Errors::Given, Errors::Absent] {
        for (name, _, truth, knees) in TRUTHS.into_iter().filter(|truth| !truth.3.is_empty()) {
            let found = |v: &ScalingVerdict| v.knees.len() == knees.len() && brackets(v, knees);
            let rate = rate(&truth, &THIRTEEN, 0.05, errors, 20, &found);
            assert!(rate >= 0.9, "{name}: {rate}");
        }
    }
}

#[test]
fn a_bracket_is_no_wider_than_the_points_make_it() {
    let truth: fn(f64) -> f64 = |n| 4000.0 + 4000.0 * step(n, 14.0);
    let tight = |v: &ScalingVerdict| {
        v.knees.len() == 1 && (v.knees[0].low_members, v.knees[0].high_members) == (12, 16)
    };
    assert!(rate(&truth, &THIRTEEN, 0.03, Errors::Absent, 30, &tight) >= 0.9);
}

#[test]
fn the_factor_of_a_step_is_covered_by_its_interval() {
    let truth: fn(f64) -> f64 = |n| 4000.0 + 3600.0 * step(n, 14.0);
    for errors in [Errors::Given, Errors::Absent] {
        let covered = |v: &ScalingVerdict| {
            let ends = v.knees.first().and_then(|k| k.factor_low.zip(k.factor_high));
            ends.is_some_and(|(low, high)| low <= 1.9 && 1.9 <= high)
        };
        let rate = rate(&truth, &NINE, 0.04, errors, 100, &covered);
        assert!((0.88..=1.0).contains(&rate), "{rate}");
    }
}

/// Points with 95 % intervals of half-width `half`.
fn points(costs: &[(u32, f64)], half: f64) -> Vec<CurvePoint> {
    let error = Some(half / 1.96);
    let point = |&(members, y): &(u32, f64)| CurvePoint { x: members.into(), y, error };
    costs.iter().map(point).collect()
}

#[test]
fn a_small_difference_is_no_law_however_exact() {
    let wiggle = [(2, 1000.0), (4, 1000.0), (8, 1000.0), (16, 1020.0), (32, 1020.0), (64, 1020.0)];
    let verdict = law(&points(&wiggle, 0.1));
    assert_eq!(verdict.shape(), Some(LawShape::Constant), "{verdict:?}");
    let step = wiggle.map(|(n, cost)| (n, if cost > 1000.0 { 1200.0 } else { cost }));
    let verdict = law(&points(&step, 0.1));
    assert_eq!(verdict.shape(), Some(LawShape::Step), "{verdict:?}");
    assert!((verdict.knees[0].factor.unwrap() - 1.2).abs() < 1e-9);
}

#[test]
fn sentences() {
    let flat = points(&[(2, 3950.0), (4, 4050.0), (8, 3980.0), (16, 4020.0), (32, 4000.0)], 50.0);
    assert_eq!(
        law(&flat).in_words(),
        "flat from 2 to 32 members: 4.00 us a switch, any trend below 6 %"
    );
    let knee = points(&[(2, 500.0), (8, 500.0), (32, 500.0), (48, 950.0), (64, 950.0)], 5.0);
    assert_eq!(
        law(&knee).in_words(),
        "flat from 2 to 32 members, then a knee between 32 and 48: 1.90x slower (1.83x to 1.97x)"
    );
    let log = [2, 4, 8, 16, 32].map(|n| (n, 300.0 + 63.0 * f64::from(n).log2()));
    assert_eq!(
        law(&points(&log, 2.0)).in_words(),
        "grows with the logarithm of the ring: +63.0 ns for each doubling \
         (from 363 ns at 2 to 615 ns at 32 members)"
    );
    assert_eq!(law(&flat[..3]).in_words(), "inconclusive: 3 sizes are too few (4 are needed)");
    assert_eq!(law(&[]).in_words(), "inconclusive: 0 sizes are too few (4 are needed)");
    let three_sizes = [flat[0], flat[0], flat[1], flat[2], flat[2]];
    assert_eq!(law(&three_sizes).shape(), None);
}

#[test]
fn wide_intervals_are_not_called_flat() {
    let sizes = [(2, 1000.0), (4, 1100.0), (8, 900.0), (16, 1050.0), (32, 1000.0)];
    let verdict = law(&points(&sizes, 300.0));
    assert!(
        verdict.in_words().starts_with("inconclusive: a flat cost and a trend of up to"),
        "{verdict:?}"
    );
    let around_zero = sizes.map(|(n, cost)| (n, cost - 1000.0));
    let verdict = law(&points(&around_zero, 300.0));
    assert_eq!(verdict.in_words(), "inconclusive: the costs are not resolved from zero");
    assert_eq!(verdict.cost_at(8.0), None);
}

#[test]
fn two_laws_that_fit_alike_are_not_told_apart() {
    let rising = [(2, 1000.0), (4, 1300.0), (8, 1600.0), (16, 2200.0)];
    let words = law(&points(&rising, 250.0)).in_words();
    assert!(words.starts_with("inconclusive: l"), "{words}");
    assert!(words.contains("fit about equally well but differ by"), "{words}");
}

#[test]
fn what_follows_no_law_gets_none() {
    let jagged: Vec<(u32, f64)> = NINE
        .iter()
        .zip([1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0])
        .map(|(&n, thousands)| (n, 1000.0 * thousands))
        .collect();
    let words = law(&points(&jagged, 20.0)).in_words();
    assert!(words.starts_with("inconclusive: no law fits; the best is "), "{words}");
    let wide = law(&points(&jagged, 3000.0));
    assert!(!wide.in_words().contains("no law fits"), "{wide:?}");
    // Scatter that the errors are estimated from cannot be tested with them.
    let bare: Vec<CurvePoint> = jagged
        .iter()
        .map(|&(members, y)| CurvePoint { x: members.into(), y, error: None })
        .collect();
    let verdict = law(&bare);
    assert!(verdict.fit_p.is_none() && !verdict.in_words().contains("no law fits"), "{verdict:?}");
}

#[test]
fn points_that_follow_a_law_seldom_fail_the_test_of_fit() {
    // No more often than it says.
    let truth: fn(f64) -> f64 = |n| 3000.0 + 50.0 * n;
    let silent = |v: &ScalingVerdict| v.in_words().contains("no law fits");
    assert!(rate(&truth, &THIRTEEN, 0.05, Errors::Given, 300, &silent) <= 0.01);
}

/// Criterion less the charge is chi2 over the dispersion, and chi2 the scatter squared times the
/// points.
#[test]
fn all_candidates_are_judged_by_one_dispersion() {
    let truth: fn(f64) -> f64 = |n| 4000.0 + 4000.0 * step(n, 14.0);
    for errors in [Errors::Given, Errors::Absent] {
        let verdict = law(&trial(&truth, &THIRTEEN, 0.05, errors, 3));
        let dispersion = |of: &CandidateLaw| {
            let n = THIRTEEN.len() as f64;
            of.scatter * of.scatter * n / (of.criterion - of.shape.form().charge() * n.ln())
        };
        let all: Vec<f64> = verdict.candidates.iter().map(dispersion).collect();
        assert!(
            all.len() > 10 && all.iter().all(|one| (one / all[0] - 1.0).abs() < 1e-9),
            "{all:?}"
        );
        assert_eq!((all[0] - 1.0).abs() < 1e-9, errors == Errors::Given, "{all:?}");
    }
}

#[test]
fn few_points_without_errors_claim_nothing() {
    let rising = |n: u32| CurvePoint { x: n.into(), y: 100.0 * f64::from(n), error: None };
    let words = law(&[2, 4, 8, 16].map(rising)).in_words();
    assert!(words.starts_with("inconclusive: 4 points without standard errors"), "{words}");
}

#[test]
fn senseless_points_are_left_out() {
    let mut costs = points(&[(2, 500.0), (8, 500.0), (32, 500.0), (48, 500.0)], 5.0);
    let sound = law(&costs);
    for (x, y) in [(0.0, 500.0), (4.0, f64::NAN), (4.0, f64::INFINITY), (64.0, f64::MAX)] {
        costs.push(CurvePoint { x, y, ..costs[0] });
    }
    let verdict = law(&costs);
    assert_eq!(verdict.ignored, 4);
    assert_eq!(verdict.in_words(), sound.in_words());
}

#[test]
fn a_falling_cost_keeps_its_sign() {
    let falls = [2, 4, 8, 16, 32, 64].map(|n| (n, 900.0 - 20.0 * f64::from(n)));
    let verdict = law(&points(&falls, 3.0));
    assert_eq!(verdict.shape(), Some(LawShape::Linear), "{verdict:?}");
    assert!((verdict.cost_at(64.0).unwrap() + 380.0).abs() < 1.0);
    assert!(verdict.in_words().contains("falls linearly with the ring: -20.0 ns"), "{verdict:?}");
}

/// The words of the same machine, run by run: a kind that is not its own is hardly ever named.
#[test]
fn words_of_growth_are_stable_from_run_to_run() {
    let plateau = |n: f64| 1450.0 + 800.0 * (1.0 - (-(n - 1.0) / 9.0).exp());
    let logarithm = |n: f64| 1450.0 + 200.0 * n.ln();
    let line = |n: f64| 1450.0 + 20.0 * n;
    let truths: [(&dyn Fn(f64) -> f64, &str); 3] = [
        (&plateau, "it levels off"),
        (&logarithm, "it grows with the logarithm of their number"),
        (&line, "it grows linearly with their number"),
    ];
    let sizes = [2, 4, 8, 16, 32, 64];
    let smooth = "it grows smoothly with their number";
    for (truth, own) in truths {
        for sizes in [&sizes[..], &THIRTEEN] {
            let wrong = |verdict: &ScalingVerdict| {
                verdict.growth_in_words().is_some_and(|words| words != own && words != smooth)
            };
            let wrong = rate(truth, sizes, 0.03, Errors::Given, 200, &wrong);
            assert!(wrong <= 0.05, "{own}, {} sizes: {wrong}", sizes.len());
        }
    }
    let exact = |truth: &dyn Fn(f64) -> f64| {
        law(&trial(truth, &THIRTEEN, 0.001, Errors::Given, 1)).growth_in_words()
    };
    for (truth, own) in truths {
        assert_eq!(exact(truth).as_deref(), Some(own));
    }
    assert_eq!(
        exact(&|n| 2000.0 - 5.0 * n).as_deref(),
        Some("it falls linearly with their number")
    );
    assert_eq!(exact(&|_| 1450.0).as_deref(), Some("it does not depend on their number"));
}

#[test]
fn projected_is_half_the_ring_times_two_processes() {
    assert!((projected(763.0, 64) - 24416.0).abs() < 1e-9);
}

#[test]
fn a_verdict_survives_json() {
    let verdict = law(&trial(&|n| 4000.0 + 4000.0 * step(n, 14.0), &NINE, 0.03, Errors::Given, 7));
    let text = serde_json::to_string(&verdict).unwrap();
    assert_eq!(
        serde_json::from_str::<ScalingVerdict>(&text).unwrap().in_words(),
        verdict.in_words()
    );
}

// Properties that hold for any input, also for one that nobody should send.

fn any_cost() -> impl Strategy<Value = f64> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
    ];
    prop_oneof![3 => -1e4..1e4, 2 => 900.0..1100.0, 1 => proptest::sample::select(special.to_vec()), 1 => any::<f64>()]
}

fn any_points() -> impl Strategy<Value = Vec<CurvePoint>> {
    let error = proptest::option::of(any_cost());
    let members = prop_oneof![4 => 0_u32..70, 1 => any::<u32>()];
    let point = (members, any_cost(), error).prop_map(|(members, y, error)| CurvePoint {
        x: members.into(),
        y,
        error,
    });
    proptest::collection::vec(point, 0..=30)
}

/// Positive costs of one order of magnitude, with or without errors.
fn sound_points() -> impl Strategy<Value = Vec<CurvePoint>> {
    let point = (1_u32..100, 100.0..1000.0_f64);
    (proptest::collection::vec(point, 0..=14), proptest::option::of(0.25..25.0_f64)).prop_map(
        |(costs, error)| {
            let point = |&(members, y): &(u32, f64)| CurvePoint { x: members.into(), y, error };
            costs.iter().map(point).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(points in any_points()) {
        let verdict = law(&points);
        prop_assert!(!verdict.in_words().is_empty());
        prop_assert!(!verdict.in_words().contains("NaN"), "{:?}", verdict);
        for members in [f64::NAN, -1.0, 0.0, 1.0, 7.5, 1e9] {
            prop_assert!(verdict.cost_at(members).is_none_or(f64::is_finite));
        }
        prop_assert!(serde_json::to_string(&verdict).is_ok());
    }

    #[test]
    fn the_unit_does_not_matter(points in sound_points(), scale in 1e-6..1e6_f64) {
        let scaled: Vec<CurvePoint> = points.iter().map(|point| CurvePoint {
            x: point.x,
            y: point.y * scale,
            error: point.error.map(|error| error * scale),
        }).collect();
        let (a, b) = (law(&points), law(&scaled));
        prop_assert_eq!(&a.law, &b.law);
        let ends = |v: &ScalingVerdict| v.knees.iter().map(|k| (k.low_members, k.high_members)).collect::<Vec<_>>();
        prop_assert_eq!(ends(&a), ends(&b));
    }
}

/// How often each law gets its own name, none, the right number of knees, and the knees bracketed.
#[test]
#[ignore = "prints the table that docs/validation.md sums up; run it with --release"]
fn figures() {
    for errors in [Errors::Given, Errors::Absent] {
        for (sizes, noise) in [(&NINE[..], 0.03), (&THIRTEEN[..], 0.03), (&THIRTEEN[..], 0.05)] {
            let given = if errors == Errors::Given { "with" } else { "without" };
            println!("{} sizes, noise {noise}, {given} errors", sizes.len());
            for (name, shape, truth, knees) in TRUTHS {
                let of = |seed| law(&trial(&truth, sizes, noise, errors, seed));
                let verdicts: Vec<ScalingVerdict> = (0..1000).map(of).collect();
                let part = |pass: &dyn Fn(&ScalingVerdict) -> bool| {
                    verdicts.iter().filter(|verdict| pass(verdict)).count() as f64 / 1000.0
                };
                let right = part(&|v| v.shape() == Some(shape));
                let silent = part(&|v| v.shape().is_none());
                let counted = part(&|v| v.shape().is_some() && v.knees.len() == knees.len());
                let bracketed = part(&|v| v.knees.len() == knees.len() && brackets(v, knees));
                println!(
                    "{name:12} law {right:.3} inconclusive {silent:.3} knees {counted:.3} \
                     bracketed {bracketed:.3}"
                );
            }
        }
    }
}
