//! Known courses under seeded noise, and exact sentences.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use testing::repeats;

use super::*;
use crate::curve::CurvePoint;

const KIB: u64 = 1024;
/// Half-width of a 95 % interval in standard errors.
const Z: f64 = 1.959_963_985;

/// 1 KiB to 8 MiB in doublings, the default grid.
fn doublings() -> Vec<u64> {
    (0..14).map(|i| KIB << i).collect()
}

/// The same with a size between any two.
fn finer() -> Vec<u64> {
    doublings().into_iter().flat_map(|size| [size, size + size / 2]).collect()
}

/// One deviate of the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// How much a cost scatters at a size. Differences of long hops scatter with the hops, as seen on a
/// machine: about 200 ns without work, and `per_kib` ns more for each KiB.
#[derive(Clone, Copy)]
struct Scatter {
    per_kib: f64,
    /// Rounds that the error is computed from; the true one if absent. With t(0.975; 5) = 2.571: an
    /// error of few rounds is passed as large as its 95 % interval is wide.
    rounds: Option<u32>,
}

const QUIET: Scatter = Scatter { per_kib: 1.0, rounds: None };
const NOISY: Scatter = Scatter { per_kib: 20.0, rounds: None };
const SIX_ROUNDS: Scatter = Scatter { per_kib: 5.0, rounds: Some(6) };

type Curve = fn(f64) -> f64;

fn trial(truth: Curve, sizes: &[u64], scatter: Scatter, seed: u64) -> Vec<CurvePoint> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let point = |&size: &u64| {
        let kib = size as f64 / KIB as f64;
        let error = 200.0_f64.hypot(scatter.per_kib * kib).hypot(0.03 * truth(kib));
        let (cost_ns, error) = match scatter.rounds {
            None => (truth(kib) + error * normal(&mut random), error),
            Some(rounds) => {
                let n = f64::from(rounds);
                let figure = |_| truth(kib) + n.sqrt() * error * normal(&mut random);
                let figures: Vec<f64> = (0..rounds).map(figure).collect();
                let mean = figures.iter().sum::<f64>() / n;
                let squares = figures.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>();
                (mean, 2.571 / Z * (squares / (n - 1.0) / n).sqrt())
            }
        };
        CurvePoint { x: size as f64, y: cost_ns, error: Some(error) }
    };
    sizes.iter().map(point).collect()
}

fn flat(_: f64) -> f64 {
    3000.0
}

/// The shape of the paper's figure 1: a cache of 512 KiB.
fn paper(kib: f64) -> f64 {
    4000.0 + 600.0 * ((kib - 220.0).max(0.0) - (kib - 512.0).max(0.0))
}

/// The same, falling back where the solo ring misses as well.
fn falls_back(kib: f64) -> f64 {
    if kib > 600.0 { 20_000.0 } else { paper(kib) }
}

/// A jump where the arrays no longer fit together, growing on with their size.
fn jump(kib: f64) -> f64 {
    if kib > 200.0 { 20_000.0 + 100.0 * (kib - 200.0) } else { 4000.0 }
}

/// One break only: the second is beyond the grid.
fn one_rise(kib: f64) -> f64 {
    3000.0 + 40.0 * (kib - 300.0).max(0.0)
}

fn two_steps(kib: f64) -> f64 {
    if kib > 700.0 {
        60_000.0
    } else if kib > 180.0 {
        15_000.0
    } else {
        3000.0
    }
}

/// Name, cost in ns by KiB, breaks in KiB.
const TRUTHS: [(&str, Curve, &[f64]); 5] = [
    ("paper", paper, &[220.0, 512.0]),
    ("falls back", falls_back, &[220.0, 600.0]),
    ("jump", jump, &[200.0]),
    ("one rise", one_rise, &[300.0]),
    ("two steps", two_steps, &[180.0, 700.0]),
];

fn rate(
    truth: Curve,
    sizes: &[u64],
    scatter: Scatter,
    trials: u64,
    pass: &dyn Fn(&CostBreaks) -> bool,
) -> f64 {
    let passes = |&seed: &u64| pass(&breaks(SizeAxis::ARRAY, &trial(truth, sizes, scatter, seed)));
    (0..trials).filter(passes).count() as f64 / trials as f64
}

/// Every true break in a bracket of its own, and no other.
fn brackets(found: &CostBreaks, truth: &[f64]) -> bool {
    let inside = |(a_break, kib): (&CostBreak, &f64)| {
        let bytes = kib * KIB as f64;
        a_break.low as f64 <= bytes && bytes <= a_break.high as f64
    };
    found.breaks.len() == truth.len() && found.breaks.iter().zip(truth).all(inside)
}

/// No scatter, and 95 % intervals of half-width `half_ns`.
fn exact(sizes: &[u64], truth: Curve, half_ns: f64) -> Vec<CurvePoint> {
    let point = |&size: &u64| {
        let y = truth(size as f64 / KIB as f64);
        CurvePoint { x: size as f64, y, error: Some(half_ns / Z) }
    };
    sizes.iter().map(point).collect()
}

#[test]
fn a_flat_cost_seldom_gets_a_break() {
    // Of 40 draws two are 5 %, and one more is less than a standard error.
    let (trials, most) = repeats((40, 0.075), (100, 0.05));
    for scatter in [QUIET, NOISY, SIX_ROUNDS] {
        let broken = |found: &CostBreaks| !found.breaks.is_empty();
        let rate = rate(flat, &doublings(), scatter, trials, &broken);
        assert!(rate <= most, "{} ns per KiB: {rate}", scatter.per_kib);
    }
}

#[test]
fn known_breaks_are_bracketed() {
    for (sizes, trials) in [(doublings(), 20), (finer(), 5)] {
        for (name, truth, at) in TRUTHS {
            let found = |found: &CostBreaks| brackets(found, at);
            let rate = rate(truth, &sizes, QUIET, trials, &found);
            assert!(rate >= 0.9, "{name}, {} sizes: {rate}", sizes.len());
        }
    }
}

#[test]
fn a_bracket_is_no_wider_than_the_points_make_it() {
    let found = breaks(SizeAxis::ARRAY, &exact(&finer(), two_steps, 50.0));
    let places: Vec<_> = found.breaks.iter().map(|b| (b.low / KIB, b.high / KIB)).collect();
    assert_eq!(places, [(128, 192), (512, 768)]);
    assert!(found.support.unwrap() > 10.0, "{found:?}");
    // Where the scatter hides the sizes next to the break, the bracket says so.
    let rise = |half| breaks(SizeAxis::ARRAY, &exact(&finer(), one_rise, half)).breaks[0];
    let width = |half| rise(half).high as f64 / rise(half).low as f64;
    assert!(width(4000.0) > width(50.0), "{:?} {:?}", rise(4000.0), rise(50.0));
}

#[test]
fn the_paper_in_words() {
    let direct = DirectInterval { cost_ns: 3800.0, low_ns: None, high_ns: None };
    let read = regions(&exact(&finer(), paper, 100.0), Some(direct));
    let regions: Vec<CacheRegion> = read.extents.iter().map(|extent| extent.region).collect();
    assert_eq!(
        regions,
        [CacheRegion::AllFit, CacheRegion::TogetherTooLarge, CacheRegion::AloneTooLarge]
    );
    assert_eq!(
        read.in_words(),
        "all working sets fit: flat at 4.00 us, 1.1 times the cost without a working set (the direct cost); combined working sets exceed the \
         cache from 222 KiB (192 to 256 KiB): rises from 25.6 us to 179 us, 6.7 to 47 times the direct cost; one \
         working set exceeds the cache from 512 KiB (384 to 768 KiB): flat at 179 us, 47 times the direct cost"
    );
    let (low, high) = read.second_over_first().unwrap();
    assert!(low > 4.0 && high > 30.0 && high < 50.0, "{low} to {high}");
}

#[test]
fn one_course_has_no_break() {
    let flat = breaks(SizeAxis::ARRAY, &exact(&doublings(), flat, 100.0));
    assert_eq!(flat.in_words(), "flat at 3.00 us, any jump below 8 % (1 KiB to 8 MiB)");
    assert!(flat.breaks.is_empty() && flat.pieces.len() == 1);
    let line = exact(&doublings(), |kib| 3000.0 + 200.0 * kib, 100.0);
    assert_eq!(
        breaks(SizeAxis::ARRAY, &line).in_words(),
        "rises from 3.20 us to 1.64 ms (1 KiB to 8 MiB)"
    );
    assert_eq!(regions(&line, None).in_words(), "rises by 200 ns a KiB, no threshold up to 8 MiB");
    assert_eq!(
        regions(&exact(&doublings(), |_| 3000.0, 100.0), None).in_words(),
        "no threshold up to 8 MiB: flat at 3.00 us, any jump below 8 %"
    );
    let falls = exact(&doublings(), |kib| 50_000.0 - 5.0 * kib, 100.0);
    assert_eq!(breaks(SizeAxis::ARRAY, &falls).pieces[0].course, CostTrend::Falls);
}

#[test]
fn a_flat_cost_under_growing_scatter_is_flat_only_as_far_as_it_was_seen() {
    let scattered = |size: u64| {
        let half = 100.0 + 10.0 * (size / KIB) as f64;
        CurvePoint { x: size as f64, y: 3000.0, error: Some(half / Z) }
    };
    let points: Vec<CurvePoint> = doublings().into_iter().map(scattered).collect();
    assert_eq!(
        regions(&points, None).in_words(),
        "no threshold up to 128 KiB: flat at 3.00 us, any jump below 41 %; inconclusive \
         beyond 128 KiB"
    );
    let wide = |point: &CurvePoint| CurvePoint { error: Some(1e5 / Z), ..*point };
    let points: Vec<CurvePoint> = points.iter().map(wide).collect();
    assert_eq!(
        regions(&points, None).in_words(),
        "inconclusive: the costs are not resolved from zero"
    );
}

#[test]
fn too_few_sizes_or_none_with_an_error_cannot_tell() {
    let points = exact(&doublings(), paper, 100.0);
    assert_eq!(
        breaks(SizeAxis::ARRAY, &points[..4]).in_words(),
        "inconclusive: 4 sizes with a standard error are too few (5 are needed)"
    );
    let bare: Vec<CurvePoint> = points.iter().map(|p| CurvePoint { error: None, ..*p }).collect();
    let found = breaks(SizeAxis::ARRAY, &bare);
    assert_eq!(found.ignored, points.len());
    assert!(found.finding != CurveAnswer::Found && found.breaks.is_empty());
}

#[test]
fn missing_and_senseless_points_are_left_out() {
    let mut points = exact(&finer(), paper, 100.0);
    let sound = breaks(SizeAxis::ARRAY, &points);
    let sample = points[0];
    points.extend([
        CurvePoint { x: 0.0, ..sample },
        CurvePoint { y: f64::NAN, ..sample },
        CurvePoint { y: f64::INFINITY, ..sample },
        CurvePoint { error: None, y: 1e9, ..sample },
    ]);
    points.reverse();
    let found = breaks(SizeAxis::ARRAY, &points);
    assert_eq!(found.ignored, 4);
    assert_eq!(found.in_words(), sound.in_words());
    // With the size next to the break missing, the bracket reaches to the next one.
    points.retain(|point| point.x != (256 * KIB) as f64);
    let found = breaks(SizeAxis::ARRAY, &points);
    assert_eq!(found.breaks[0].high / KIB, 384);
}

#[test]
fn what_the_paper_does_not_explain_is_not_called_a_region() {
    let direct = DirectInterval { cost_ns: 1000.0, low_ns: Some(900.0), high_ns: Some(1100.0) };
    let words = regions(&exact(&doublings(), paper, 100.0), Some(direct)).in_words();
    assert!(words.starts_with("inconclusive: the smallest array already costs 3.6x"), "{words}");
    let falls = exact(&doublings(), |kib| if kib > 100.0 { 1000.0 } else { 4000.0 }, 50.0);
    let words = regions(&falls, None).in_words();
    assert!(words.contains("falls at the first break"), "{words}");
    let jagged = |kib: f64| if (kib.log2() as u32) % 2 == 0 { 1000.0 } else { 9000.0 };
    let words = regions(&exact(&doublings(), jagged, 20.0), None).in_words();
    assert!(words.contains("even the best fit misses the points by"), "{words}");
}

#[test]
fn no_course_falls_below_zero_or_leaves_the_points() {
    let below = exact(&doublings(), |kib| if kib > 200.0 { -20_000.0 } else { -4000.0 }, 100.0);
    let found = breaks(SizeAxis::ARRAY, &below);
    let why = "inconclusive: even the best fit falls to zero";
    assert_eq!((found.in_words().as_str(), found.pieces.len()), (why, 0));
    assert_eq!(regions(&below, None).second_over_first(), None);
    // Few sizes that are known, after which one hardly is: a straight line through the first runs
    // below zero.
    let falls = |kib: f64| (4000.0 - 300.0 * kib).max(1.0);
    let mut points = exact(&[1, 2, 4, 8, 12].map(|kib| kib * KIB), falls, 20.0);
    points.push(CurvePoint { x: (64 * KIB) as f64, y: 300.0, error: Some(20_000.0) });
    let found = breaks(SizeAxis::ARRAY, &points);
    assert!(found.pieces.iter().all(|piece| piece.lowest_ns() > 0.0), "{}", found.in_words());
}

/// Knees in a ring of more members with work: members x array passes a cache.
#[test]
fn rings_with_work_have_their_knee_in_members() {
    let cost = |members: u64| if members * 64 > 512 { 9000.0 } else { 3000.0 };
    let point =
        |members: u64| CurvePoint { x: members as f64, y: cost(members), error: Some(200.0 / Z) };
    let points: Vec<CurvePoint> = [2, 3, 4, 6, 8, 10, 12, 16].map(point).to_vec();
    let found = breaks(SizeAxis::MEMBERS, &points);
    assert_eq!(
        found.in_words(),
        "flat at 3.00 us; \
         from 9 members (8 to 10 members) on flat at 9.00 us (2 to 16 members)"
    );
}

/// One line touched in each page: past the reach of the TLB every touch costs a walk.
#[test]
fn a_tlb_has_its_knee_in_pages() {
    let points = exact(&(0..13).map(|i| 1 << i).collect::<Vec<u64>>(), |_| 0.0, 60.0);
    let walk =
        |point: &CurvePoint| CurvePoint { y: 2500.0 + 8.0 * (point.x - 64.0).max(0.0), ..*point };
    let points: Vec<CurvePoint> = points.iter().map(walk).collect();
    let found = breaks(SizeAxis::PAGES, &points);
    let knee = found.breaks[0];
    assert!(knee.low <= 64 && 64 <= knee.high && knee.high <= 128, "{}", found.in_words());
    let tlb = MachineLevel { name: "first-level TLB".into(), size: 64 };
    let beside = nearest_level(&found.breaks[0], &[tlb]).unwrap();
    assert_eq!(beside.in_words(&found.axis), "1 of first-level TLB = 64 pages (0.25 to 2)");
}

#[test]
fn a_break_is_set_beside_the_level_that_it_may_belong_to() {
    let found = CostBreak {
        kind: TurnKind::Step,
        at: 192 * KIB,
        low: 128 * KIB,
        high: 256 * KIB,
        sizes_after: 3,
    };
    let level = |name: &str, kib: u64| MachineLevel { name: name.into(), size: kib * KIB };
    let levels = [level("L3", 32 << 10), level("L1d", 32), level("L2", 512), level("none", 0)];
    let l2 = nearest_level(&found, &levels).unwrap();
    assert_eq!(l2.in_words(&SizeAxis::ARRAY), "0.38 of L2 = 512 KiB (0.25 to 0.5)");
    let beyond = CostBreak { at: 96 << 20, low: 64 << 20, high: 128 << 20, ..found };
    assert_eq!(nearest_level(&beyond, &levels).unwrap().part, 3.0);
    assert_eq!(nearest_level(&found, &[level("none", 0)]), None);
}

#[test]
fn an_answer_survives_json() {
    let read = regions(&exact(&finer(), paper, 100.0), None);
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<CacheRegions>(&text).unwrap().in_words(), read.in_words());
}

/// Points of a run on the test machine (2-CPU AMD EPYC guest, 512 KiB of private L2, shared and
/// noisy).
fn measured(csv: &str) -> Vec<CurvePoint> {
    let row = |line: &str| {
        let field: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let &[x, y, low, high] = &field[..] else { panic!("four columns: {line}") };
        CurvePoint { x, y, error: Some((high - low) / 2.0 / Z) }
    };
    csv.lines().skip(1).map(row).collect()
}

#[test]
fn the_cache_of_the_test_machine_is_found_by_a_chase() {
    let read = regions(&measured(include_str!("tests/measured/chase.csv")), None);
    assert_eq!(read.extents.len(), 3, "{}", read.in_words());
    let refill = read.refill.unwrap();
    let range = refill.holds_bytes_low..=refill.holds_bytes_high;
    assert!(range.contains(&(512 * KIB)), "{}", read.in_words());
    assert!(refill.ns_per_kib_low > 0.0, "{}", read.in_words());
}

/// An hour in which the shared cache had little to give: from 861 KiB on costs rise to 2.2 ms.
#[test]
fn the_cache_is_found_below_a_level_whose_costs_would_hide_it() {
    let points = measured(include_str!("tests/measured/chase-beyond.csv"));
    let read = regions(&points, None);
    // One fits, two do not: from somewhere below half of the L2 of 512 KiB on, above the L1 of 32.
    let [first, second] = &read.breaks.breaks[..] else { panic!("{}", read.in_words()) };
    assert!(read.extent(CacheRegion::TogetherTooLarge).is_some(), "{}", read.in_words());
    assert!(first.low >= 32 * KIB && first.high <= 256 * KIB, "{}", read.in_words());
    assert!(second.low <= 512 * KIB && 256 * KIB <= second.high, "{}", read.in_words());
    let from = read.further_level_from.unwrap();
    assert!(from >= 600 * KIB, "{}", read.in_words());
    assert!(read.in_words().contains("another level overflows"), "{}", read.in_words());
}

/// 16 KiB to 64 MiB in 27 equal ratios.
fn chase_of_27() -> Vec<u64> {
    let size = |i: u32| 16.0 * KIB as f64 * (12.0 * f64::from(i) / 26.0).exp2();
    (0..27).map(|i| size(i).round() as u64).collect()
}

/// What a cache of 512 KiB does, with 60 ns for each KiB fetched again, below a shared one of 16
/// MiB.
fn two_levels(kib: f64) -> f64 {
    let filled = |part: f64| ((part / 0.7).ln() / (1.1_f64 / 0.7).ln()).clamp(0.0, 1.0);
    let (two, one) = (filled(2.0 * kib / 512.0), filled(kib / 512.0));
    let private = 60.0 * kib * two * (1.0 - one) + 30.0 * 512.0 * one;
    4000.0 + private + 20.0 * (kib - 8192.0).max(0.0)
}

/// All sizes together spend their two breaks on the level beyond.
#[test]
fn three_regions_are_found_below_a_further_level_though_the_whole_shows_two() {
    let points = exact(&chase_of_27(), two_levels, 300.0);
    let whole = breaks(SizeAxis::ARRAY, &points);
    // Flat, a step, and the rise beyond: as regions only the first two, and a further break.
    assert!(whole.breaks.len() == 2 && whole.breaks[1].low > 4096 * KIB, "{}", whole.in_words());
    let below: Vec<CurvePoint> =
        points.iter().copied().filter(|point| point.x <= (2048 * KIB) as f64).collect();
    let (read, below) = (regions(&points, None), regions(&below, None));
    assert_eq!(below.extents.len(), 3, "{}", below.in_words());
    assert_eq!(read.extents.len(), 3, "{}", read.in_words());
    let refill = read.refill.unwrap();
    let range = refill.holds_bytes_low..=refill.holds_bytes_high;
    assert!(range.contains(&(512 * KIB)), "{}", read.in_words());
    let from = read.further_level_from.unwrap();
    assert!((1024 * KIB..=16384 * KIB).contains(&from), "{}", read.in_words());
}

/// By the paper's walk that machine fetches ahead: what is left of the refill is lost in the
/// scatter, and nothing may be read into it.
#[test]
fn no_region_is_read_into_a_walk_that_hides_them() {
    for csv in [
        include_str!("tests/measured/whole-8-quiet.csv"),
        include_str!("tests/measured/whole-128-quiet.csv"),
        include_str!("tests/measured/whole-8-noisy.csv"),
        include_str!("tests/measured/whole-128-noisy.csv"),
    ] {
        let read = regions(&measured(csv), None);
        assert!(read.extents.is_empty() && read.answer != CurveAnswer::Seen, "{}", read.in_words());
    }
}

/// A rise from the start, and a step.
#[test]
fn a_rise_from_the_smallest_array_on_is_no_region_without_a_cache() {
    let saw = |kib: f64| 1000.0 + 40.0 * kib + if kib > 90.0 { 30_000.0 } else { 0.0 };
    let sizes: Vec<u64> = (1..=24).map(|i| 8 * i * KIB).collect();
    let read = regions(&exact(&sizes, saw, 50.0), None);
    assert!(read.refill.is_none() && read.extents.is_empty(), "{}", read.in_words());
    assert!(read.in_words().contains("rises from the smallest array on"), "{}", read.in_words());
}

/// What a cache of 512 KiB does by the formula, with 15 ns for each KiB fetched again.
fn cache(kib: f64) -> f64 {
    let filled = |part: f64| ((part / 0.6).ln() / (1.2_f64 / 0.6).ln()).clamp(0.0, 1.0);
    let (two, one) = (filled(2.0 * kib / 512.0), filled(kib / 512.0));
    3000.0 + 15.0 * kib * two * (1.0 - one) + 4.0 * 512.0 * one
}

/// The default grid of a chase on a private cache of 512 KiB.
fn dense() -> Vec<u64> {
    let near = (0..25).map(|i| (32.0 * (f64::from(i) / 4.0).exp2()).round() as u64 * KIB);
    [KIB, 4 * KIB].into_iter().chain(near).collect()
}

#[test]
fn a_cache_is_bracketed_under_noise_and_none_is_seen_where_there_is_none() {
    let scatter = Scatter { per_kib: 1.0, rounds: Some(20) };
    let find = |truth: Curve, seed: u64| regions(&trial(truth, &dense(), scatter, seed), None);
    // Of so few one may be off where one in ten or in thirty is.
    let (trials, least, most) = repeats((4, 3, 1), (100, 90, 3));
    let holds = |read: &CacheRegions| {
        read.refill
            .is_some_and(|r| r.holds_bytes_low <= 512 * KIB && 512 * KIB <= r.holds_bytes_high)
    };
    let found: Vec<CacheRegions> = (0..trials).map(|seed| find(cache, seed)).collect();
    let right = found.iter().filter(|read| holds(read)).count();
    let told = found.iter().filter(|read| read.refill.is_some()).count();
    println!("{right} of {trials}, told {told}");
    assert!(right >= least, "{right} of {trials}, told {told}");
    let line: Curve = |kib| 3000.0 + 10.0 * kib;
    for (name, truth) in [("flat", flat as Curve), ("line", line)] {
        let false_ones = (0..trials).filter(|seed| !find(truth, *seed).extents.is_empty()).count();
        println!("{name}: {false_ones} of {trials}");
        assert!(false_ones <= most, "{name}: {false_ones} of {trials}");
    }
}

/// How often the right number of breaks, more of them, and the right places are found.
#[test]
#[ignore = "prints the table that docs/validation.md sums up; run it with --release"]
fn figures() {
    for (sizes, scatter, trials) in [
        (doublings(), QUIET, 1000),
        (doublings(), SIX_ROUNDS, 1000),
        (doublings(), NOISY, 1000),
        (finer(), SIX_ROUNDS, 200),
        (finer(), NOISY, 200),
    ] {
        println!("{} sizes, {} ns per KiB", sizes.len(), scatter.per_kib);
        for (name, truth, at) in [("flat", flat as Curve, &[][..])].into_iter().chain(TRUTHS) {
            let verdict = |seed| breaks(SizeAxis::ARRAY, &trial(truth, &sizes, scatter, seed));
            let verdicts: Vec<CostBreaks> = (0..trials).map(verdict).collect();
            let part = |pass: &dyn Fn(&CostBreaks) -> bool| {
                100.0 * verdicts.iter().filter(|v| pass(v)).count() as f64 / trials as f64
            };
            let told = part(&|found| found.finding == CurveAnswer::Found);
            let more = part(&|found| found.breaks.len() > at.len());
            let fewer = part(&|found| found.breaks.len() < at.len());
            let bracketed = part(&|found| brackets(found, at));
            println!(
                "{name:10} told {told:.1} fewer {fewer:.1} more {more:.1} bracketed {bracketed:.1}"
            );
        }
    }
}

// Properties that hold for any input, also for one that nobody should send.

fn any_cost() -> impl Strategy<Value = f64> {
    let special = [
        0.0,
        -0.0,
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
    let error = proptest::option::weighted(0.9, any_cost());
    let size = prop_oneof![4 => 0_u64..70, 1 => any::<u64>()];
    let point = (size, any_cost(), error).prop_map(|(size, y, error)| CurvePoint {
        x: size as f64,
        y,
        error,
    });
    proptest::collection::vec(point, 0..=20)
}

/// Costs of one order of magnitude with errors.
fn sound_points() -> impl Strategy<Value = Vec<CurvePoint>> {
    let point = (1_u64..1000, 100.0..1000.0_f64, 0.25..25.0_f64);
    let sound =
        |(size, y, error): (u64, f64, f64)| CurvePoint { x: size as f64, y, error: Some(error) };
    proptest::collection::vec(point.prop_map(sound), 0..=12)
}

fn places(found: &CostBreaks) -> Vec<(u64, u64)> {
    found.breaks.iter().map(|a_break| (a_break.low, a_break.high)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(points in any_points(), direct in proptest::option::of(any_cost())) {
        let direct = direct.map(|cost_ns| DirectInterval { cost_ns, low_ns: None, high_ns: Some(cost_ns) });
        let read = regions(&points, direct);
        for words in [read.in_words(), read.breaks.in_words()] {
            prop_assert!(!words.is_empty() && !words.contains("NaN"), "{words}");
        }
        let found = &read.breaks;
        prop_assert!(found.pieces.iter().all(|piece| piece.lowest_ns() > 0.0), "{:?}", found.pieces);
        prop_assert!(found.finding != CurveAnswer::Found || found.pieces.len() == found.breaks.len() + 1);
        for a_break in &found.breaks {
            prop_assert!(a_break.low <= a_break.at && a_break.at <= a_break.high, "{:?}", a_break);
            prop_assert!(found.smallest <= a_break.low && a_break.high <= found.largest);
        }
        let text = serde_json::to_string(&read).unwrap();
        prop_assert!(serde_json::from_str::<CacheRegions>(&text).is_ok(), "{text}");
    }

    #[test]
    fn the_units_do_not_matter(points in sound_points(), power in -20_i32..20, times in 1_u64..1000) {
        let cost = 2.0_f64.powi(power);
        let scaled: Vec<CurvePoint> = points.iter().map(|point| CurvePoint {
            x: point.x * times as f64,
            y: point.y * cost,
            error: point.error.map(|error| error * cost),
        }).collect();
        let (a, b) = (breaks(SizeAxis::PAGES, &points), breaks(SizeAxis::PAGES, &scaled));
        let expected: Vec<_> = places(&a).iter().map(|(low, high)| (low * times, high * times)).collect();
        prop_assert_eq!(expected, places(&b));
    }
}
