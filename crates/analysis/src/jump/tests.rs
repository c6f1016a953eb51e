//! Known answers, and how often noise is called a jump.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use testing::repeats;

use super::*;
use crate::estimate::Estimate;

const KIB: u64 = 1024;

fn cost(ns: f64, error_ns: f64) -> QuotedFigure {
    Estimate::at_full_speed(ns, error_ns, 20, 0.0, 0.95).unwrap().quote_cost().unwrap()
}

/// With errors of 1 %.
fn places(of: &[(u64, f64)]) -> Vec<SizedCost> {
    of.iter().map(|(size, ns)| (*size, cost(*ns, 0.01 * ns))).collect()
}

/// What one line in each of 256 pages adds to a switch of so many processes, on a machine whose
/// kernel keeps six address spaces.
const ADDED: [(u64, f64); 9] = [
    (2, 19.0),
    (3, 70.0),
    (4, 98.0),
    (5, 1110.0),
    (6, 1115.0),
    (7, 1108.0),
    (8, 1121.0),
    (9, 1118.0),
    (10, 1125.0),
];

#[test]
fn the_jump_at_five_members_is_told_with_its_place_and_its_factor() {
    let jump = largest_jump(&places(&ADDED)).unwrap();
    assert_eq!((jump.from, jump.to), (4, 5));
    assert_eq!(
        jump.in_words(&SizeAxis::MEMBERS),
        "jumps from 98.0 ns to 1.11 us at 5 members, 11.3x (11.0x to 11.7x)"
    );
    assert_eq!(highest_peak(&places(&ADDED)), None);
}

#[test]
fn the_factor_has_the_interval_of_both_costs() {
    // Halves of 2.093 x 10 of 100 and 2.093 x 20 of 400: t(0.975; 19) = 2.093 of any table.
    // Logarithms of 0.79, 1.21, 0.895 and 1.105, crosswise under one root.
    let found = CostRatio::between(&cost(100.0, 10.0), &cost(400.0, 20.0));
    let low = (4.0_f64.ln() - (0.8954_f64.ln().abs()).hypot(1.2093_f64.ln())).exp();
    let high = (4.0_f64.ln() + (1.1046_f64.ln()).hypot(0.7907_f64.ln().abs())).exp();
    assert!((found.value - 4.0).abs() < 1e-12, "{found:?}");
    assert!((found.low - low).abs() < 0.002 && (found.high - high).abs() < 0.002, "{found:?}");
}

#[test]
fn a_peak_before_a_larger_jump_is_named_too() {
    let arrays = [(0, 940.0), (32, 2430.0), (256, 1050.0), (1024, 181_000.0)];
    let found = places(&arrays.map(|(kib, ns)| (kib * KIB, ns)));
    assert_eq!(
        largest_jump(&found).unwrap().in_words(&SizeAxis::ARRAY),
        "jumps from 1.05 us to 181 us between 256 KiB and 1 MiB, 172x (167x to 178x)"
    );
    assert_eq!(
        highest_peak(&found).unwrap().in_words(&SizeAxis::ARRAY),
        "peaks at 2.43 us with 32 KiB and falls to 1.05 us with 256 KiB"
    );
    let first = largest_jump(&found[..3]).unwrap();
    assert_eq!(
        first.in_words(&SizeAxis::ARRAY),
        "jumps from 940 ns to 2.43 us between no working set and 32 KiB, 2.59x (2.51x to 2.66x)"
    );
}

#[test]
fn a_fall_is_one_too() {
    let found = largest_jump(&places(&[(2, 4000.0), (4, 4050.0), (8, 1000.0)])).unwrap();
    assert!(found.falls());
    let words = found.in_words(&SizeAxis::MEMBERS);
    assert!(
        words.starts_with("falls from 4.05 us to 1.00 us between 4 and 8 members, "),
        "{words}"
    );
}

#[test]
fn what_is_not_resolved_or_too_small_or_of_two_sizes_only_is_none() {
    assert_eq!(largest_jump(&places(&ADDED[2..4])), None, "two sizes say it themselves");
    let wide: Vec<SizedCost> = [(1, 100.0, 10.0), (2, 130.0, 30.0), (3, 128.0, 30.0)]
        .map(|(x, y, e)| (x, cost(y, e)))
        .into();
    assert_eq!(largest_jump(&wide), None);
    // 4 % is never more than the same.
    let small: Vec<SizedCost> =
        [(1, 1000.0), (2, 1000.0), (3, 1040.0), (4, 1040.0)].map(|(x, y)| (x, cost(y, 0.1))).into();
    assert_eq!(largest_jump(&small), None);
}

/// A course by its name: the cost at a size.
type Course = (&'static str, fn(f64) -> f64);

/// Courses without a jump, over doublings: c x + d, the logarithm, a rise to a plateau, the square.
const SMOOTH: [Course; 5] = [
    ("flat", |_| 1000.0),
    ("linear", |x| 1000.0 + 40.0 * x),
    ("logarithmic", |x| 1000.0 + 300.0 * x.ln()),
    ("saturating", |x| 1000.0 + 1000.0 * (1.0 - (-x / 16.0).exp())),
    ("quadratic", |x| 1000.0 + 4.0 * x * x),
];

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Ten sizes, each cost off by so much of itself, which is what its error says, too.
fn noisy(
    course: fn(f64) -> f64,
    noise: f64,
    sizes: &[u64],
    random: &mut ChaCha8Rng,
) -> Vec<SizedCost> {
    let place = |size: &u64| {
        let ns = course(*size as f64);
        (*size, cost(ns * (1.0 + noise * normal(random)), noise * ns))
    };
    sizes.iter().map(place).collect()
}

#[test]
fn noise_and_smooth_courses_are_seldom_called_a_jump() {
    // Of 200, two in a hundred and two standard errors.
    let (trials, most) = repeats((200, 8), (1000, 20));
    let doublings: Vec<u64> = (1..=10).map(|power| 1 << power).collect();
    let one_by_one: Vec<u64> = (2..=16).collect();
    for (name, course) in SMOOTH {
        for noise in [0.005, 0.02, 0.05] {
            for sizes in [&doublings, &one_by_one] {
                let mut random = ChaCha8Rng::seed_from_u64(2007);
                let told = (0..trials)
                    .filter(|_| largest_jump(&noisy(course, noise, sizes, &mut random)).is_some())
                    .count();
                println!("{name}, noise {noise}, {} sizes: {told} of {trials}", sizes.len());
                assert!(told <= most, "{name}: {told} at a noise of {noise}");
            }
        }
    }
}

#[test]
fn a_jump_of_half_as_much_again_is_found_in_noise_of_two_per_cent() {
    let sizes: Vec<u64> = (2..=10).collect();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let course = |x: f64| if x < 5.0 { 1000.0 } else { 1500.0 };
    let at_five = |_: &u32| {
        let found = largest_jump(&noisy(course, 0.02, &sizes, &mut random));
        found.is_some_and(|jump| (jump.from, jump.to) == (4, 5))
    };
    assert!((0..500).filter(at_five).count() >= 490);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_jump_lies_between_neighbours_and_its_interval_around_it(
        all in proptest::collection::vec((1_u64..1000, 1.0..1e9_f64, 0.001..0.4_f64), 0..16)
    ) {
        let mut all: Vec<SizedCost> =
            all.into_iter().map(|(size, ns, part)| (size, cost(ns, part * ns))).collect();
        all.sort_by_key(|(size, _)| *size);
        all.dedup_by_key(|(size, _)| *size);
        if let Some(CostJump { from, to, factor, .. }) = largest_jump(&all) {
            prop_assert!(all.windows(2).any(|pair| (pair[0].0, pair[1].0) == (from, to)));
            prop_assert!(0.0 < factor.low && factor.low <= factor.value && factor.value <= factor.high);
        }
        if let Some(peak) = highest_peak(&all) {
            prop_assert!(peak.at < peak.down_at && peak.down_ns < peak.ns);
        }
    }
}
