//! Known answers, coverage, and any input.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const SIZES: [u64; 3] = [256 << 10, 384 << 10, 512 << 10];

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

fn rounds(times: impl IntoIterator<Item = f64>) -> BTreeMap<u32, f64> {
    (0..).zip(times).collect()
}

/// Six runs in each condition; the disturbance multiplies the scatter and moves the mean by as many
/// per cent.
fn trial(augmented: f64, plain: f64, moved_percent: f64, seed: u64) -> Verdict {
    use {Environment::*, Setting::*};
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for (which, size) in SIZES.into_iter().enumerate() {
        for (setting, factor) in [(Augmented, augmented), (Plain, plain)] {
            for (environment, factor, moved) in
                [(Quiet, 1.0, 0.0), (Disturbed, factor, moved_percent / 100.0)]
            {
                let level = 240.0 * (which + 1) as f64;
                let scatter = (1.0 + which as f64) * factor;
                let time = |_| level * (1.0 + moved) + scatter * normal(&mut random);
                runs.push(Runs::of(setting, environment, size, rounds((0..6).map(time))));
            }
        }
    }
    judge(&runs)
}

#[test]
fn the_interval_of_the_growth_covers_what_it_says() {
    const TRIALS: u64 = 2000;
    let (mut settings, mut between) = (0, 0);
    for trial_number in 0..TRIALS {
        let verdict = trial(1.0, 3.0, 0.0, 2007 + trial_number);
        let covers = |g: Growth, truth: f64| u64::from(g.low <= truth && truth <= g.high);
        settings += covers(verdict.plain.unwrap(), 3.0);
        between += covers(verdict.plain_over_augmented.unwrap(), 3.0);
    }
    for (what, covered) in [("setting", settings), ("between", between)] {
        let percent = 100.0 * covered as f64 / TRIALS as f64;
        println!("{what}: {percent:.1} %");
        assert!((88.0..=92.0).contains(&percent), "{what}: {percent:.1} %");
    }
}

/// Six runs of one setting at three sizes; each figure is a normal one that `shape` may change.
fn of_one_setting(
    seed: u64,
    growth: f64,
    mut shape: impl FnMut(&mut ChaCha8Rng, f64) -> f64,
) -> Verdict {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for size in SIZES {
        for (environment, scatter) in [(Environment::Quiet, 1.0), (Environment::Disturbed, growth)]
        {
            let mut time = |_| {
                let figure = normal(&mut random);
                100.0 + scatter * shape(&mut random, figure)
            };
            runs.push(Runs::of(Setting::Plain, environment, size, rounds((0..6).map(&mut time))));
        }
    }
    judge(&runs)
}

/// One figure in twenty lies ten times as far out.
fn with_outliers(random: &mut ChaCha8Rng, figure: f64) -> f64 {
    figure * if random.random::<f64>() < 0.05 { 10.0 } else { 1.0 }
}

/// What the intervals do where times are not normal, and what the words still say.
#[test]
fn outliers_do_not_make_a_growth() {
    const TRIALS: u64 = 1000;
    let (mut covered, mut by_interval, mut told, mut found) = (0, 0, 0, 0);
    let directed = |verdict: &Verdict| {
        let words = verdict.in_words();
        u64::from(words.contains("its interval grew ") || words.contains("its interval shrank"))
    };
    for seed in 0..TRIALS {
        let none = of_one_setting(seed, 1.0, with_outliers);
        let growth = none.plain.unwrap();
        covered += u64::from(growth.low <= 1.0 && 1.0 <= growth.high);
        by_interval += u64::from(growth.is_resolved());
        told += directed(&none);
        found += directed(&of_one_setting(seed, 3.0, |_, figure| figure));
    }
    let percent = |count: u64| 100.0 * count as f64 / TRIALS as f64;
    println!(
        "covered {:.1} %, interval claims {:.1} %, words claim {:.1} %; of a threefold growth {:.1} % is found",
        percent(covered),
        percent(by_interval),
        percent(told),
        percent(found)
    );
    assert!((55.0..=65.0).contains(&percent(covered)), "F takes the times for normal");
    assert!(percent(told) <= 10.0, "{:.1} % of none", percent(told));
    assert!(percent(found) >= 85.0, "{:.1} % of a threefold growth", percent(found));
}

/// Sizes whose rounds have one disturbance in common are not the independent ones that the growth of a
/// setting takes them for: why each array has gaps of its own.
#[test]
fn sizes_with_one_disturbance_in_common_are_covered_less() {
    const TRIALS: u64 = 1000;
    let mut covered = 0;
    for seed in 0..TRIALS {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let common: Vec<f64> = (0..6).map(|_| 3.0 * normal(&mut random)).collect();
        let mut runs = Vec::new();
        for size in SIZES {
            let quiet = rounds((0..6).map(|_| normal(&mut random)));
            runs.push(Runs::of(Setting::Plain, Environment::Quiet, size, quiet));
            let disturbed = rounds(common.iter().copied());
            runs.push(Runs::of(Setting::Plain, Environment::Disturbed, size, disturbed));
        }
        let growth = judge(&runs).plain.unwrap();
        covered += u64::from(growth.low <= 3.0 && 3.0 <= growth.high);
    }
    let percent = 100.0 * covered as f64 / TRIALS as f64;
    println!("{percent:.1} %");
    assert!((70.0..=80.0).contains(&percent), "{percent:.1} %");
}

#[test]
fn a_setting_that_grew_is_named() {
    let verdict = trial(1.0, 8.0, 3.0, 5);
    assert!(verdict.plain.unwrap().is_resolved());
    let words = verdict.in_words();
    assert!(
        words.starts_with("augmented setting: growth of its interval not resolved, "),
        "{words}"
    );
    assert!(words.contains("plain setting: its interval grew "), "{words}");
    assert!(words.contains("% (3 of 3 resolved). "), "{words}");
    let other_way = trial(8.0, 1.0, 0.0, 6).in_words();
    assert!(other_way.contains("augmented setting: its interval grew "), "{other_way}");
    assert!(other_way.contains("the plain setting's grew only 0."), "{other_way}");
}

#[test]
fn a_calmer_second_half_is_not_called_growth() {
    let verdict = trial(0.1, 0.1, 0.0, 7);
    assert!(
        verdict.in_words().contains("plain setting: its interval shrank"),
        "{}",
        verdict.in_words()
    );
}

#[test]
fn known_answer_of_welch() {
    // Two groups of six with means 10 and 12, deviations 1 and 2: the difference's standard error is
    // sqrt(1/6 + 4/6) = 0.9129, with (5/6)^2 / ((1/6)^2/5 + (4/6)^2/5) = 7.353 degrees of freedom.
    // t(0.95; 7.353) lies between the table's 1.895 (7) and 1.860 (8).
    let of = |mean: f64, deviation: f64| Summary { mean, deviation, count: 6 };
    let moved = Moved::of(&of(10.0, 1.0), &of(12.0, 2.0), CONFIDENCE).unwrap();
    let t = (moved.high - moved.part) * 10.0 / 0.912_870_9;
    assert!((moved.part - 0.2).abs() < 1e-12);
    assert!(1.860 < t && t < 1.895, "{t}");
}

#[test]
fn missing_runs_are_inconclusive() {
    let one = Runs::of(Setting::Plain, Environment::Quiet, 1024, rounds([3.0, 4.0, 5.0]));
    let verdict = judge(&[one]);
    assert_eq!(verdict.comparisons.len(), 1);
    assert!(verdict.comparisons[0].quiet.is_some() && verdict.comparisons[0].growth.is_none());
    assert_eq!((verdict.plain, verdict.augmented), (None, None));
    assert!(verdict.in_words().contains("plain setting: inconclusive"));
    // No scatter at all is a clock that is too coarse, not an infinite growth.
    let still = |environment| Runs::of(Setting::Plain, environment, 1024, rounds([3.0, 3.0]));
    assert_eq!(judge(&[still(Environment::Quiet), still(Environment::Disturbed)]).plain, None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(
        runs in proptest::collection::vec(
            (any::<bool>(), any::<bool>(), 0_u64..4, proptest::collection::vec(any::<f64>(), 0..4)),
            0..16,
        )
    ) {
        let runs: Vec<Runs> = runs.iter().map(|(plain, quiet, size, times)| Runs::of(
            if *plain { Setting::Plain } else { Setting::Augmented },
            if *quiet { Environment::Quiet } else { Environment::Disturbed },
            *size,
            rounds(times.iter().copied()),
        )).collect();
        let verdict = judge(&runs);
        prop_assert!(!verdict.in_words().contains("NaN"), "{}", verdict.in_words());
        for growth in [verdict.plain, verdict.augmented].into_iter().flatten() {
            prop_assert!(growth.low <= growth.ratio && growth.ratio <= growth.high);
        }
    }
}
