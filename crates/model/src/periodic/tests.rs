use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const SPAN_NS: f64 = 250e6;

/// Windows of a comb with jitter, of which each tooth is missing with some chance, and of other
/// moments, so many a window, in one list.
struct Made {
    period_ns: f64,
    jitter_ns: f64,
    missing: f64,
    others: usize,
}

impl Made {
    fn windows(&self, many: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut window = || {
            let mut moments = Vec::new();
            let mut moment = random.random_range(0.0..self.period_ns);
            while moment < SPAN_NS {
                if random.random_range(0.0..1.0) >= self.missing {
                    moments.push(moment + random.random_range(0.0..=self.jitter_ns));
                }
                moment += self.period_ns;
            }
            moments.extend((0..self.others).map(|_| random.random_range(0.0..SPAN_NS)));
            moments.sort_by(f64::total_cmp);
            moments
        };
        (0..many).map(|_| window()).collect()
    }
}

fn search(moments: &[Vec<f64>]) -> Option<Period> {
    find(Windows { moments, blind: &[], span_ns: SPAN_NS })
}

fn period_of(made: &Made, many: usize) -> Option<Period> {
    search(&made.windows(many, 7))
}

#[test]
fn a_comb_is_found_by_its_period_and_not_by_its_harmonics() {
    for period_ns in [1e6, 10e6 / 3.0, 4e6, 10e6, 50e6] {
        let made = Made { period_ns, jitter_ns: 20_000.0, missing: 0.0, others: 0 };
        let found = period_of(&made, 5).unwrap_or_else(|| panic!("no period of {period_ns}"));
        assert!((found.period_ns / period_ns - 1.0).abs() < 1e-3, "{period_ns}: {found:?}");
        assert!(found.hit > 0.9, "{period_ns}: {}", found.hit);
    }
}

#[test]
fn missing_teeth_and_other_moments_do_not_hide_it() {
    let made = Made { period_ns: 4e6, jitter_ns: 50_000.0, missing: 0.3, others: 60 };
    let found = period_of(&made, 8).expect("a comb");
    assert!((found.period_ns / 4e6 - 1.0).abs() < 1e-3, "{}", found.period_ns);
    // 70 % of the slots, and a few that others hit by chance.
    assert!((0.65..0.80).contains(&found.hit), "{}", found.hit);
    let members: usize = found.members.iter().map(Vec::len).sum();
    assert!((330..=400).contains(&members), "{members} of 8 windows with 62 slots, 70 % filled");
}

/// As seen on a virtual machine: beside the guest's tick something of the host's, at the same period and
/// about a quarter of it later. Little power is at twice the frequency, and the most at four times.
#[test]
fn two_combs_of_one_period_are_found_one_by_one() {
    let tick = Made { period_ns: 4e6, jitter_ns: 60_000.0, missing: 0.02, others: 20 };
    let with_echo = |mut moments: Vec<f64>| {
        let of_five = |number: usize| number % 5 < 3;
        let later = moments.iter().enumerate().filter(|(number, _)| of_five(*number));
        let later: Vec<f64> = later.map(|(_, m)| m + 1e6).filter(|m| *m < SPAN_NS).collect();
        moments.extend(later);
        moments.sort_by(f64::total_cmp);
        moments
    };
    let windows: Vec<Vec<f64>> = tick.windows(8, 11).into_iter().map(with_echo).collect();
    let found = search(&windows).expect("a comb");
    assert!((found.period_ns / 4e6 - 1.0).abs() < 1e-3, "{}", found.period_ns);
    assert!(found.hit > 0.9, "{}", found.hit);
    let left = |(moments, members): (&Vec<f64>, &Vec<usize>)| {
        let rest = (0..moments.len()).filter(|number| !members.contains(number));
        rest.map(|number| moments[number]).collect::<Vec<f64>>()
    };
    let rest: Vec<Vec<f64>> = windows.iter().zip(&found.members).map(left).collect();
    // 60 % of its slots.
    let second = search(&rest).expect("the other one");
    assert!((second.period_ns / 4e6 - 1.0).abs() < 1e-3, "{}", second.period_ns);
    assert!((0.5..0.75).contains(&second.hit), "{}", second.hit);
}

#[test]
fn moments_without_a_period_have_none() {
    let made = Made { period_ns: 1e12, jitter_ns: 0.0, missing: 1.0, others: 60 };
    let alarms = (0..100).filter(|seed| search(&made.windows(6, *seed)).is_some()).count();
    assert!(alarms <= 4, "{alarms} alarms of 100 where 1 are expected at most");
}

#[test]
fn bursts_are_no_period() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut burst = || {
        let start = random.random_range(0.0..SPAN_NS - 1e6);
        (0..12).map(move |number| start + f64::from(number) * 70_000.0)
    };
    let mut window = || {
        let mut moments: Vec<f64> = (0..4).flat_map(|_| burst()).collect();
        moments.sort_by(f64::total_cmp);
        moments
    };
    let windows: Vec<Vec<f64>> = (0..8).map(|_| window()).collect();
    assert_eq!(search(&windows), None);
}

#[test]
fn what_comes_in_clumps_only_is_no_period() {
    // Dense for a part of each window, at random places: as when the thread runs by turns.
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut window = || {
        let mut moments = Vec::new();
        let mut at: f64 = random.random_range(0.0..30e6);
        while at < SPAN_NS {
            let turn: f64 = random.random_range(2e6..12e6);
            moments.extend((0..60).map(|_| at + random.random_range(0.0..turn)));
            at += turn + random.random_range(5e6..25e6);
        }
        moments.retain(|moment| *moment < SPAN_NS);
        moments.sort_by(f64::total_cmp);
        moments
    };
    let windows: Vec<Vec<f64>> = (0..8).map(|_| window()).collect();
    assert_eq!(search(&windows), None);
}

#[test]
fn slots_that_nobody_could_see_are_not_missed() {
    let made = Made { period_ns: 4e6, jitter_ns: 20_000.0, missing: 0.0, others: 0 };
    let hidden = (60e6, 200e6);
    let mut windows = made.windows(8, 3);
    windows.iter_mut().for_each(|moments| moments.retain(|m| *m < hidden.0 || *m > hidden.1));
    assert_eq!(search(&windows), None, "less than half of its slots");
    let blind = vec![vec![hidden]; 8];
    let found = find(Windows { moments: &windows, blind: &blind, span_ns: SPAN_NS });
    let found = found.expect("all that could be seen");
    assert!(found.hit > 0.95 && (found.period_ns / 4e6 - 1.0).abs() < 1e-3, "{found:?}");
}

#[test]
fn a_slow_period_is_found_from_a_few_moments_a_window() {
    let made = Made { period_ns: 50e6, jitter_ns: 300_000.0, missing: 0.0, others: 1 };
    let found = period_of(&made, 8).expect("a period");
    assert!((found.period_ns / 50e6 - 1.0).abs() < 5e-3, "{}", found.period_ns);
}

#[test]
fn nothing_has_no_period() {
    assert_eq!(search(&[]), None);
    assert_eq!(search(&[vec![], vec![]]), None);
    assert_eq!(search(&[vec![1e6]]), None);
    let moments = [vec![1e6, 5e6, 9e6]];
    assert_eq!(find(Windows { moments: &moments, blind: &[], span_ns: 0.0 }), None);
}

proptest! {
    // Long windows have many frequencies.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_moments_are_borne(
        windows: Vec<Vec<f64>>,
        span_ns in prop::num::f64::ANY.prop_filter("short", |span| span.is_nan() || *span <= 1e9),
    ) {
        if let Some(period) = find(Windows { moments: &windows, blind: &[], span_ns }) {
            prop_assert!(period.period_ns.is_finite());
        }
    }
}
