//! Known answers, coverage, and any input.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::experiment::Experiment;
use rundata::plan::{Batching, Plan, Stopping};
use rundata::ring::{AccessKind, Policy, Work};
use rundata::trial::{TrialBatching, TrialCase};
use stats::student_quantile;
use testing::repeats;

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
fn trial(augmented: f64, plain: f64, moved_percent: f64, seed: u64) -> InterferenceVerdict {
    use {Environment::*, ProgramSetting::*};
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
                runs.push(ConditionTimes::from_rounds(
                    setting,
                    environment,
                    size,
                    rounds((0..6).map(time)),
                ));
            }
        }
    }
    judge(&runs)
}

#[test]
fn the_interval_of_the_growth_covers_what_it_says() {
    // Three standard errors of a share of 90 % on either side.
    let (trials, off) = repeats((300, 5.2), (2000, 2.0));
    let (mut settings, mut between) = (0, 0);
    for trial_number in 0..trials {
        let verdict = trial(1.0, 3.0, 0.0, 2007 + trial_number);
        let covers = |g: ScatterGrowth, truth: f64| u64::from(g.low <= truth && truth <= g.high);
        settings += covers(verdict.plain.unwrap(), 3.0);
        between += covers(verdict.plain_over_augmented.unwrap(), 3.0);
    }
    for (what, covered) in [("setting", settings), ("between", between)] {
        let percent = 100.0 * covered as f64 / trials as f64;
        println!("{what}: {percent:.1} %");
        assert!((percent - 90.0).abs() <= off, "{what}: {percent:.1} %");
    }
}

/// Six runs of one setting at three sizes; each figure is a normal one that `shape` may change.
fn of_one_setting(
    seed: u64,
    growth: f64,
    mut shape: impl FnMut(&mut ChaCha8Rng, f64) -> f64,
) -> InterferenceVerdict {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for size in SIZES {
        for (environment, scatter) in [(Environment::Quiet, 1.0), (Environment::Disturbed, growth)]
        {
            let mut time = |_| {
                let figure = normal(&mut random);
                100.0 + scatter * shape(&mut random, figure)
            };
            runs.push(ConditionTimes::from_rounds(
                ProgramSetting::Plain,
                environment,
                size,
                rounds((0..6).map(&mut time)),
            ));
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
    // Three standard errors of a share of 60 % on either side, and two of the others.
    let (trials, off, more) = repeats((200, 10.0, 4.5), (1000, 5.0, 0.0));
    let (mut covered, mut by_interval, mut told, mut found) = (0, 0, 0, 0);
    let directed = |verdict: &InterferenceVerdict| {
        let words = verdict.in_words();
        u64::from(words.contains("its interval grew ") || words.contains("its interval shrank"))
    };
    for seed in 0..trials {
        let none = of_one_setting(seed, 1.0, with_outliers);
        let growth = none.plain.unwrap();
        covered += u64::from(growth.low <= 1.0 && 1.0 <= growth.high);
        by_interval += u64::from(growth.is_resolved());
        told += directed(&none);
        found += directed(&of_one_setting(seed, 3.0, |_, figure| figure));
    }
    let percent = |count: u64| 100.0 * count as f64 / trials as f64;
    println!(
        "covered {:.1} %, interval claims {:.1} %, words claim {:.1} %; of a threefold growth \
         {:.1} % is found",
        percent(covered),
        percent(by_interval),
        percent(told),
        percent(found)
    );
    assert!((percent(covered) - 60.0).abs() <= off, "F takes the times for normal");
    assert!(percent(told) <= 10.0 + more, "{:.1} % of none", percent(told));
    assert!(percent(found) >= 85.0 - more, "{:.1} % of a threefold growth", percent(found));
}

/// Sizes whose rounds have one disturbance in common are not the independent ones that the growth
/// of a setting takes them for: why each array has gaps of its own.
#[test]
fn sizes_with_one_disturbance_in_common_are_covered_less() {
    // Three standard errors of a share of 75 % on either side.
    let (trials, off) = repeats((300, 7.5), (1000, 5.0));
    let mut covered = 0;
    for seed in 0..trials {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let common: Vec<f64> = (0..6).map(|_| 3.0 * normal(&mut random)).collect();
        let mut runs = Vec::new();
        for size in SIZES {
            let quiet = rounds((0..6).map(|_| normal(&mut random)));
            runs.push(ConditionTimes::from_rounds(
                ProgramSetting::Plain,
                Environment::Quiet,
                size,
                quiet,
            ));
            let disturbed = rounds(common.iter().copied());
            runs.push(ConditionTimes::from_rounds(
                ProgramSetting::Plain,
                Environment::Disturbed,
                size,
                disturbed,
            ));
        }
        let growth = judge(&runs).plain.unwrap();
        covered += u64::from(growth.low <= 3.0 && 3.0 <= growth.high);
    }
    let percent = 100.0 * covered as f64 / trials as f64;
    println!("{percent:.1} %");
    assert!((percent - 75.0).abs() <= off, "{percent:.1} %");
}

/// What the paper found in its Tables 1 and 2: alike in quiet, the single processor's much wider
/// under packets.
#[test]
fn the_papers_own_runs_answer_its_question() {
    let figures = crate::published::li2007::LiFigures::published().unwrap();
    let headline = judge(&figures.runs).headline(Noise::Net);
    let (quiet, rest) = headline.split_once("; under packets ").unwrap();
    assert!(quiet.ends_with("no difference resolved (0.774x to 1.98x)"), "{headline}");
    assert!(
        rest.contains("7.3 to 18 % in the plain one, 4.91x (3.07x to 7.86x) as wide. By packets")
    );
}

/// Half the scatter is told as such in both environments, whatever the means are.
#[test]
fn a_narrower_setting_is_told_in_quiet_and_disturbed() {
    let runs = |setting, environment, mean: f64, scatter: f64| {
        let times = [-1.0, -0.6, -0.2, 0.2, 0.6, 1.0].map(|at| mean * (1.0 + scatter * at));
        ConditionTimes::from_rounds(setting, environment, 1024, rounds(times))
    };
    use {Environment::*, ProgramSetting::*};
    let verdict = judge(&[
        runs(Augmented, Quiet, 100.0, 0.001),
        runs(Plain, Quiet, 250.0, 0.020),
        runs(Augmented, Disturbed, 100.0, 0.001),
        runs(Plain, Disturbed, 250.0, 0.030),
    ]);
    let ratio = |of: &IntervalWidths| of.plain_over_augmented.unwrap().ratio;
    let ratios: Vec<f64> = verdict.widths.iter().map(ratio).collect();
    assert!((ratios[0] - 20.0).abs() < 1e-9 && (ratios[1] - 30.0).abs() < 1e-9, "{ratios:?}");
    let headline = verdict.headline(Noise::Cpu);
    assert!(
        headline
            .contains("in quiet 0.12 % wide in the augmented setting and 2.5 % in the plain one")
    );
    assert!(headline.contains("as wide; under "), "{headline}");
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
    // Two groups of six with means 10 and 12, deviations 1 and 2: the difference's standard error
    // is sqrt(1/6 + 4/6) = 0.9129, with (5/6)^2 / ((1/6)^2/5 + (4/6)^2/5) = 7.353 degrees of
    // freedom. t(0.95; 7.353) lies between the table's 1.895 (7) and 1.860 (8).
    let of = |mean: f64, deviation: f64| SampleSummary { mean, deviation, count: 6 };
    let moved = MeanShift::between(&of(10.0, 1.0), &of(12.0, 2.0), CONFIDENCE).unwrap();
    let t = (moved.high - moved.part) * 10.0 / 0.912_870_9;
    assert!((moved.part - 0.2).abs() < 1e-12);
    assert!(1.860 < t && t < 1.895, "{t}");
}

#[test]
fn missing_runs_are_inconclusive() {
    let one = ConditionTimes::from_rounds(
        ProgramSetting::Plain,
        Environment::Quiet,
        1024,
        rounds([3.0, 4.0, 5.0]),
    );
    let verdict = judge(&[one]);
    assert_eq!(verdict.comparisons.len(), 1);
    assert!(verdict.comparisons[0].quiet.is_some() && verdict.comparisons[0].growth.is_none());
    assert_eq!((verdict.plain, verdict.augmented), (None, None));
    assert!(verdict.in_words().contains("plain setting: inconclusive"));
    // No scatter at all is a clock that is too coarse, not an infinite growth.
    let still = |environment| {
        ConditionTimes::from_rounds(ProgramSetting::Plain, environment, 1024, rounds([3.0, 3.0]))
    };
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
        let runs: Vec<ConditionTimes> = runs.iter().map(|(plain, quiet, size, times)| ConditionTimes::from_rounds(
            if *plain { ProgramSetting::Plain } else { ProgramSetting::Augmented },
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

fn plan() -> Plan {
    let case = |setting, environment| TrialCase {
        trial: Trial::Execution(Execution {
            setting,
            environment,
            noise: Noise::Net,
            noise_cpu: 0,
            work: Work::new(1024, 8, AccessKind::Rmw).unwrap(),
            laps: 10,
            seed: 1,
            priority: None,
            wire: PacketWire::Veth,
        }),
        cpu: 1,
        policy: Policy::Other,
    };
    let environments = [Environment::Quiet, Environment::Disturbed];
    let settings = [ProgramSetting::Augmented, ProgramSetting::Plain];
    let cases = settings.iter().flat_map(|setting| environments.map(|e| case(*setting, e)));
    Plan {
        seed: 1,
        batching: Batching::of_trials(TrialBatching { trials: 1 }),
        stopping: Stopping {
            precision: 0.0,
            budget_ns: 1,
            rounds: Some(6),
            confidence: 0.95,
            fixed_budget: false,
        },
        ..Plan::from_cases(Experiment::Interference, cases)
    }
}

fn sample(case: usize, round: u32, time: i64, events: Option<i64>) -> TrialSample {
    TrialSample {
        case,
        round,
        elapsed_ns: time as u64,
        elapsed_ticks: None,
        gaps: Vec::new(),
        sliced: Vec::new(),
        tallies: BTreeMap::from([(EXECUTION_NS.to_string(), [time].into_iter().collect())]),
        counts: events.map(|events| (NOISE_EVENTS.to_string(), events)).into_iter().collect(),
        steal_ns: None,
    }
}

/// Times 1000 -+ d around: six runs whose deviation is d sqrt(6/5).
fn samples(deviations: [i64; 4]) -> Vec<TrialSample> {
    let each = |(case, d): (usize, i64)| {
        let events = (case % 2 == 1).then_some(case as i64 * 10);
        (0..6).map(move |round| {
            let time = if round % 2 == 0 { 1000 - d } else { 1000 + d };
            sample(case, round, time, events)
        })
    };
    deviations.into_iter().enumerate().flat_map(each).collect()
}

#[test]
fn each_condition_has_its_own_runs_and_the_verdict_theirs() {
    let (plan, samples) = (plan(), samples([10, 10, 10, 80]));
    let found = find(&Table::from_samples(&plan, [], &samples));
    assert_eq!(found.runs.len(), 4);
    let growth = |growth: Option<stats::ScatterGrowth>| growth.unwrap().ratio;
    assert!((growth(found.verdict.augmented) - 1.0).abs() < 1e-9);
    assert!((growth(found.verdict.plain) - 8.0).abs() < 1e-9);
    assert!(
        found.in_words.contains("plain setting: its interval grew 8.00x"),
        "{}",
        found.in_words
    );
    // The interval of each growth has the same width on a logarithmic scale.
    let [augmented, plain] = [found.verdict.augmented, found.verdict.plain].map(Option::unwrap);
    assert!((plain.high / plain.ratio - augmented.high).abs() < 1e-9, "{plain:?}");
    // Six times 1000 +- d: half-widths of 2.015 d / sqrt(5), which are 0.90 and 7.21 % of the mean.
    let [quiet, disturbed] = &found.verdict.widths[..] else { panic!("two environments") };
    let wider = disturbed.plain_over_augmented.unwrap();
    assert!((quiet.augmented.0 - 0.0180).abs() < 1e-4 && quiet.augmented == quiet.plain);
    assert!((wider.ratio - 8.0).abs() < 1e-9, "{wider:?}");
    assert_eq!(
        found.verdict.headline(Noise::Net),
        format!(
            "Intervals of execution times (90 %): in quiet 1.8 % wide in the augmented setting \
             and 1.8 % in the plain one, no difference resolved (0.443x to 2.26x); under packets \
             1.8 % wide in the augmented setting and 14 % in the plain one, 8.00x ({low} to \
             {high}) as wide. By packets they grew: not resolved (0.443x to 2.26x) in the \
             augmented setting, 8.00x ({low} to {high}) in the plain one.",
            low = times(plain.low),
            high = times(plain.high)
        )
    );
    // 90 %: t(0.95; 5) = 2.015 of the tables.
    let half = 10.0 * (6.0_f64 / 5.0).sqrt() / 6.0_f64.sqrt();
    let interval = found.verdict.comparisons[0].quiet.unwrap();
    assert!((student_quantile(0.90, 5.0).unwrap() - 2.015).abs() < 1e-3);
    assert!((interval.high - 1000.0 - 2.015 * half).abs() < 0.01, "{interval:?}");
    assert_eq!(
        found.events_per_run,
        BTreeMap::from([("augmented".into(), 10.0), ("plain".into(), 30.0)])
    );
}

#[test]
fn a_condition_that_met_hardly_any_noise_is_named() {
    let plan = plan();
    let with = |events: [i64; 6]| -> Vec<TrialSample> {
        let mut samples = samples([10, 10, 10, 80]);
        // Of the plain setting, disturbed.
        for (sample, events) in samples.iter_mut().filter(|s| s.case == 3).zip(events) {
            sample.counts.insert(NOISE_EVENTS.to_string(), events);
        }
        samples
    };
    let doubts = |events| find(&Table::from_samples(&plan, [], &with(events))).doubts;
    assert_eq!(doubts([1, 0, 1, 1, 1, 1]), Vec::<String>::new());
    let told = doubts([1, 0, 1, 1, 0, 1]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("of: two of 1 KiB, plain, disturbed by net (4); "), "{told:?}");
    assert!(told[0].contains("--budget"), "{told:?}");
}

#[test]
fn real_time_runs_that_meet_the_kernels_limit_are_told() {
    let mut plan = plan();
    let mut samples = samples([10, 10, 10, 10]);
    samples[0].tallies.insert(EXECUTION_NS.into(), [900_000_000].into_iter().collect());
    let doubts = |plan: &Plan| find(&Table::from_samples(plan, [], &samples)).doubts;
    assert_eq!(doubts(&plan), Vec::<String>::new());
    let fifo = TrialCase { policy: Policy::Fifo, ..plan.trial(0).unwrap().clone() };
    plan.cases[0] = fifo.into();
    let told = doubts(&plan);
    assert!(told[0].contains("up to 900 ms") && told[0].contains("--laps"), "{told:?}");
}

#[test]
fn without_runs_nothing_is_told() {
    let plan = plan();
    let found = find(&Table::from_samples(&plan, [], &[]));
    assert!(found.in_words.contains("inconclusive"), "{}", found.in_words);
    let headline = found.verdict.headline(Noise::Timer);
    assert!(headline.contains("not known (too few runs) in the augmented setting"), "{headline}");
    assert!(headline.starts_with("How wide intervals of execution times are in each setting"));
    assert!(found.events_per_run.is_empty());
}

#[test]
fn names_read_back() {
    for noise in Noise::ALL {
        assert_eq!(noise.name().parse(), Ok(*noise));
    }
    assert!("loud".parse::<Noise>().unwrap_err().contains("timer"));
    let Trial::Execution(execution) = plan().trial(3).unwrap().trial.clone() else {
        panic!("an execution")
    };
    assert_eq!(execution.to_string(), "two of 1 KiB, plain, disturbed by net");
}
