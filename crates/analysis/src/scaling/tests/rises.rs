//! Smooth rises to a plateau get no knee, and what has a knee keeps it: draws of many curves.

use std::ops::Range;

use testing::repeats;

use super::*;

const DOUBLINGS: [u32; 6] = [2, 4, 8, 16, 32, 64];
const TO_64: [u32; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const TO_1024: [u32; 10] = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Relative noise of the costs, and what the points say of it.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    noise: f64,
    /// Correlation of neighbouring sizes.
    rho: f64,
    known: Known,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Known {
    Rightly,
    /// Each error is off by a factor of its own, of 20 % (standard deviation).
    Roughly,
    /// Each error is a fifth too small.
    TooSmall,
    Not,
}

impl Scatter {
    /// Independent from size to size.
    fn of(noise: f64, known: Known) -> Self {
        Self { noise, rho: 0.0, known }
    }

    fn points(self, truth: &LawCurve, sizes: &[u32], random: &mut ChaCha8Rng) -> Vec<CurvePoint> {
        let mut deviate = normal(random);
        let point = |&members: &u32| {
            let level = truth(f64::from(members));
            let y = level * (1.0 + self.noise * deviate);
            deviate = self.rho * deviate + (1.0 - self.rho.powi(2)).sqrt() * normal(random);
            let of_error = match self.known {
                Known::Rightly => Some(1.0),
                Known::Roughly => Some((0.2 * normal(random)).exp()),
                Known::TooSmall => Some(0.8),
                Known::Not => None,
            };
            CurvePoint {
                x: members.into(),
                y,
                error: of_error.map(|part| part * self.noise * level),
            }
        };
        sizes.iter().map(point).collect()
    }
}

/// Cost by members.
type LawCurve = Box<dyn Fn(f64) -> f64>;
/// A curve, and the places of its knees.
type Draw = fn(&mut ChaCha8Rng) -> (LawCurve, Vec<f64>);

/// Uniform in the logarithm.
fn between(random: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.random::<f64>())
}

/// A rise (or fall, as often) by a tenth to five times, with a scale of 2 to 200 members. Of an
/// exponential and of a hyperbola another origin than 1 is another scale or another amplitude.
fn rise(
    random: &mut ChaCha8Rng,
    part: fn(f64, f64, f64) -> f64,
    exponents: (f64, f64),
) -> LawCurve {
    let up = between(random, 0.1, 4.0);
    let change = if random.random::<bool>() { up } else { -up / (1.0 + up) };
    let scale = between(random, 2.0, 200.0);
    let exponent = between(random, exponents.0, exponents.1);
    Box::new(move |n| 1000.0 * (1.0 + change * part(n, scale, exponent)))
}

const RISES: [(&str, Draw); 6] = [
    ("exponential", |r| (rise(r, |n, t, _| 1.0 - (-(n - 1.0) / t).exp(), (1.0, 1.0)), vec![])),
    ("exponential from 2", |r| {
        (rise(r, |n, t, _| 1.0 - (-(n - 2.0) / t).exp(), (1.0, 1.0)), vec![])
    }),
    ("Michaelis-Menten", |r| (rise(r, |n, t, _| (n - 1.0) / (n - 1.0 + t), (1.0, 1.0)), vec![])),
    ("Hill, k 1 to 2", |r| {
        (rise(r, |n, t, k| 1.0 / (1.0 + (t / (n - 1.0)).powf(k)), (1.0, 2.0)), vec![])
    }),
    ("logistic in ln N", |r| {
        (rise(r, |n, t, k| 1.0 / (1.0 + (t / n).powf(k)), (1.0, 2.0)), vec![])
    }),
    ("power", |r| (rise(r, |n, t, k| 1.0 - (1.0 + (n - 1.0) / t).powf(-k), (0.5, 2.0)), vec![])),
];

/// How sharp a rise may be before it is a knee.
const STEEP: [(&str, Draw); 2] = [
    ("Hill, k 3", |r| {
        (rise(r, |n, t, _| 1.0 / (1.0 + (t / (n - 1.0)).powi(3)), (1.0, 1.0)), vec![])
    }),
    ("Hill, k 4", |r| {
        (rise(r, |n, t, _| 1.0 / (1.0 + (t / (n - 1.0)).powi(4)), (1.0, 1.0)), vec![])
    }),
];

const PLAIN: [(&str, Draw); 4] = [
    ("flat", |_| (Box::new(|_| 1000.0), vec![])),
    ("logarithmic", |r| {
        let slope = between(r, 0.03, 1.0);
        (Box::new(move |n| 1000.0 * (1.0 + slope * n.ln())), vec![])
    }),
    ("linear", |r| {
        let slope = between(r, 0.002, 0.1);
        (Box::new(move |n| 1000.0 * (1.0 + slope * n)), vec![])
    }),
    ("quadratic", |r| {
        let square = between(r, 0.0002, 0.01);
        (Box::new(move |n| 1000.0 * (1.0 + square * n * n)), vec![])
    }),
];

/// A curve with one knee between 5 and 30 members.
fn kneed(random: &mut ChaCha8Rng, cost: fn(f64, f64) -> f64) -> (LawCurve, Vec<f64>) {
    let knee = between(random, 5.0, 30.0);
    (Box::new(move |n| cost(n, knee)), vec![knee])
}

const KNEED: [(&str, Draw); 9] = [
    ("step 1.2x", |r| kneed(r, |n, t| 1000.0 * (1.0 + 0.2 * step(n, t)))),
    ("step 1.5x", |r| kneed(r, |n, t| 1000.0 * (1.0 + 0.5 * step(n, t)))),
    ("log + step 1.5x", |r| kneed(r, |n, t| (1000.0 + 100.0 * n.ln()) * (1.0 + 0.5 * step(n, t)))),
    ("linear + step 1.5x", |r| kneed(r, |n, t| (1000.0 + 10.0 * n) * (1.0 + 0.5 * step(n, t)))),
    ("flat, then log", |r| kneed(r, |n, t| 1000.0 + 500.0 * (n / t).ln().max(0.0))),
    ("linear + hinge", |r| kneed(r, |n, t| 1000.0 + 10.0 * n + 60.0 * (n - t).max(0.0))),
    ("log + hinge", |r| kneed(r, |n, t| 1000.0 + 150.0 * n.ln() + 60.0 * (n - t).max(0.0))),
    ("two steps", |r| {
        let first = between(r, 4.0, 8.0);
        let second = 4.0 * first;
        let cost = move |n| 1000.0 + 500.0 * step(n, first) + 1000.0 * step(n, second);
        (Box::new(cost), vec![first, second])
    }),
    ("ramp", |r| {
        let start = between(r, 4.0, 8.0);
        let end = 6.0 * start;
        let cost = move |n: f64| 1000.0 + 1000.0 * (n.clamp(start, end) - start) / (end - start);
        (Box::new(cost), vec![start, end])
    }),
];

/// Verdicts on a draw for each seed, and whether each has the knees of its truth.
fn verdicts(
    draw: Draw,
    sizes: &[u32],
    scatter: Scatter,
    seeds: Range<u64>,
) -> Vec<(ScalingVerdict, bool)> {
    let one = |seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (truth, knees) = draw(&mut random);
        let verdict = law(&scatter.points(&truth, sizes, &mut random));
        let is_right = verdict.knees.len() == knees.len() && brackets(&verdict, &knees);
        (verdict, is_right)
    };
    seeds.map(one).collect()
}

/// The part of the verdicts that name a knee.
fn with_knee(verdicts: &[(ScalingVerdict, bool)]) -> f64 {
    let count = verdicts.iter().filter(|(verdict, _)| !verdict.knees.is_empty()).count();
    count as f64 / verdicts.len() as f64
}

#[test]
fn a_smooth_rise_seldom_gets_a_knee() {
    for sizes in [&DOUBLINGS[..], &NINE, &TO_64, &TO_1024] {
        for known in [Known::Rightly, Known::Not] {
            let of = |noise: f64| {
                let of = move |(&(_, draw), first): (&(_, Draw), u64)| {
                    verdicts(draw, sizes, Scatter::of(noise, known), first..first + repeats(8, 25))
                };
                RISES.iter().zip((0..).step_by(25)).flat_map(of)
            };
            let rate = with_knee(&[0.01, 0.02, 0.03].into_iter().flat_map(of).collect::<Vec<_>>());
            // Of 144 draws 5 % and 1.6 standard errors.
            assert!(rate <= repeats(0.08, 0.05), "{} sizes, {known:?}: {rate}", sizes.len());
        }
    }
}

#[test]
fn plain_growth_gets_no_knee() {
    for (name, draw) in PLAIN {
        // On six sizes a quadratic gets one in 1 % of trials at 3 % noise.
        for (sizes, noises) in [
            (&DOUBLINGS[..], &[0.01, 0.02][..]),
            (&TO_64, &[0.01, 0.02, 0.03]),
            (&TO_1024, &[0.01, 0.02, 0.03]),
        ] {
            for &noise in noises {
                let rate =
                    with_knee(&verdicts(draw, sizes, Scatter::of(noise, Known::Rightly), 0..40));
                assert!(rate == 0.0, "{name}, {} sizes, noise {noise}: {rate}", sizes.len());
            }
        }
    }
}

#[test]
fn a_knee_is_found_beside_smooth_laws() {
    for (name, draw) in KNEED.into_iter().filter(|(name, _)| !matches!(*name, "step 1.2x" | "ramp"))
    {
        let all = verdicts(draw, &TO_64, Scatter::of(0.01, Known::Rightly), 0..40);
        let rate = all.iter().filter(|(_, is_right)| *is_right).count() as f64 / 40.0;
        assert!(rate >= 0.85, "{name}: {rate}");
    }
}

/// The costs of a curve, with errors of 1 %.
fn exact(cost: fn(f64) -> f64) -> ScalingVerdict {
    let costs = TO_64.map(|n| (n, cost(f64::from(n))));
    let points: Vec<CurvePoint> =
        costs.map(|(n, y)| CurvePoint { x: n.into(), y, error: Some(0.01 * y) }).into();
    law(&points)
}

#[test]
fn sentences_of_gradual_laws() {
    let hyperbola = exact(|n| 100.0 + 9900.0 * n / (n + 8.0));
    assert_eq!(hyperbola.shape(), Some(LawShape::Sigmoid));
    let turns = &hyperbola.curve.as_ref().unwrap().turns;
    assert!((turns[0] - 8.0).abs() < 1e-9 && turns[1] == 1.0, "{turns:?}");
    assert_eq!(
        hyperbola.in_words(),
        "grows and levels off (half of the change by 8 members) \
         (from 2.08 us at 2 to 8.90 us at 64 members)"
    );
    let slowing = exact(|n| 1000.0 + 300.0 * n.ln() + 20.0 * n);
    assert_eq!(slowing.in_words(), "grows smoothly (from 1.25 us at 2 to 3.53 us at 64 members)");
    let unfinished = exact(|n| 1000.0 + 9000.0 / (1.0 + (64.0 / n).powi(2)));
    assert_eq!(
        unfinished.in_words(),
        "grows (from 1.01 us at 2 to 5.50 us at 64 members); several laws fit about as well"
    );
}

#[test]
fn a_gradual_rise_that_fits_as_well_leaves_a_knee_inconclusive() {
    let costs = [(2, 1000.0), (4, 1000.0), (8, 1000.0), (16, 1140.0), (32, 1280.0), (64, 1420.0)];
    assert_eq!(
        law(&points(&costs, 60.0)).in_words(),
        "inconclusive: a flat cost, then logarithmic growth and slowing growth fit about equally \
         well"
    );
    assert_eq!(law(&points(&costs, 10.0)).shape(), Some(LawShape::FlatLogarithmic));
}

/// Per cent of trials, over four sets of sizes, with a knee / inconclusive / with the true knees
/// bracketed.
#[test]
#[ignore = "prints a table that docs/validation.md sums up; run it with --release"]
fn rises() {
    let trials = std::env::var("TRIALS").map_or(250, |given| given.parse().unwrap());
    let scatters =
        [(Known::Rightly, 0.0), (Known::Roughly, 0.0), (Known::TooSmall, 0.5), (Known::Not, 0.0)];
    for (name, draw) in RISES.into_iter().chain(STEEP).chain(PLAIN).chain(KNEED) {
        for noise in [0.01, 0.02, 0.03] {
            let mut line = format!("{name:18} {noise}");
            for (known, rho) in scatters {
                let scatter = Scatter { noise, rho, known };
                // Six sizes without errors never get a law.
                let sizes = [&DOUBLINGS[..], &NINE, &TO_64, &TO_1024].into_iter();
                let sizes = sizes.skip(usize::from(known == Known::Not));
                let all: Vec<_> =
                    sizes.flat_map(|of| verdicts(draw, of, scatter, 0..trials)).collect();
                let part = |count: usize| 100.0 * count as f64 / all.len() as f64;
                let silent =
                    part(all.iter().filter(|(verdict, _)| verdict.shape().is_none()).count());
                let right = part(all.iter().filter(|(_, is_right)| *is_right).count());
                line += &format!(" | {:.1} / {silent:.1} / {right:.1}", 100.0 * with_knee(&all));
            }
            println!("{line}");
        }
    }
}
