//! Records that are made up: how often a change is found, and none where there is none; what is
//! said of it.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::machine::SchedExt;
use rundata::reading::Reading;
use rundata::run::{Arm, Run, SessionHalf};
use stats::Elasticity;

use super::steps::LevelSteps;
use super::*;
use crate::at_clock::AtClock;
use crate::estimate::{Estimate, Speed};
use crate::results::{CaseFigure, LaunchFigure, Origin};

const V1: &str = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (one, other): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (TAU * other).cos()
}

/// Costs that scatter by 0.3 % between runs, each depending on the one before by `r`.
fn record(rng: &mut ChaCha8Rng, runs: usize, r: f64, step: Option<(usize, f64)>) -> Vec<f64> {
    let mut off = normal(rng);
    let run = |run| {
        off = r * off + (1.0 - r * r).sqrt() * normal(rng);
        let level = step.filter(|(at, _)| run >= *at).map_or(1.0, |(_, by)| 1.0 + by);
        1500.0 * level * (1.0 + 0.003 * off)
    };
    (0..runs).map(run).collect()
}

fn steps(costs: &[f64]) -> LevelSteps {
    let mut figures = Vec::new();
    for (place, value) in costs.iter().copied().enumerate() {
        figures.push(PlacedFigure { place, value, error: 1.5 });
    }
    LevelSteps::from_figures(&figures)
}

/// Records of each kind.
fn records() -> usize {
    testing::repeats(30, 400)
}

/// The share of records in which a step of this size is found within one run of its place, and no
/// other.
fn found(runs: usize, r: f64, by: f64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let is_found = |number: &usize| {
        let at = 3 + number % (runs - 5);
        let levels = steps(&record(&mut rng, runs, r, Some((at, by)))).levels;
        levels.len() == 2 && levels[1].first.abs_diff(at) <= 1
    };
    (0..records()).filter(is_found).count() as f64 / records() as f64
}

/// The share of records without a step in which none is found.
fn none_found(runs: usize, r: f64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let none = |_: &usize| steps(&record(&mut rng, runs, r, None)).levels.len() == 1;
    (0..records()).filter(none).count() as f64 / records() as f64
}

#[test]
fn a_change_is_found_at_its_place_and_none_where_there_is_none() {
    for runs in [20, 60] {
        for r in [0.0, 0.34] {
            let (up, down, none) =
                (found(runs, r, 0.02), found(runs, r, -0.02), none_found(runs, r));

            println!("{runs} runs, r {r}: found {up} and {down}, none {none}");
            assert!(up >= 0.9 && down >= 0.9, "{runs} runs, r {r}: found {up} and {down}");
            // Of thirty records one and a half are 5 %, and one more is less than a standard error.
            assert!(none >= testing::repeats(0.91, 0.95), "{runs} runs, r {r}: none found {none}");
        }
    }
}

#[test]
fn a_level_needs_three_runs_and_one_far_run_is_none() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut costs = record(&mut rng, 30, 0.0, None);
    costs[12] *= 1.3;
    let seen = steps(&costs);
    let alone = seen.alone.iter().filter(|alone| **alone).count();
    assert_eq!((seen.levels.len(), alone), (1, 1), "{costs:?} {seen:?}");
    // Two at the end may be the beginning of a change: nobody knows yet.
    costs[28] *= 1.05;
    costs[29] *= 1.05;
    assert_eq!(steps(&costs).levels.len(), 1);
    costs[27] *= 1.05;
    assert_eq!(steps(&costs).levels[1].first, 27);
}

#[test]
fn several_changes_are_found_in_a_long_record() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut costs = record(&mut rng, 120, 0.0, None);
    costs[30..60].iter_mut().for_each(|ns| *ns *= 1.03);
    costs[90..].iter_mut().for_each(|ns| *ns *= 0.97);
    let firsts: Vec<usize> = steps(&costs).levels.iter().map(|level| level.first).collect();
    assert_eq!(firsts, [0, 30, 60, 90]);
}

/// A run of a ring of two at full speed, of day `day`.
fn results(day: usize, ns: f64, clock: Option<AtClock>) -> Results {
    // Read once, and without its samples: the figures are others.
    static BARE: LazyLock<Run> = LazyLock::new(|| {
        let run = Run::parse(V1).unwrap();
        Run { samples: Vec::new(), ..run }
    });
    let mut results = Results::from_run(&BARE);
    results.side.name = format!("run-{day:03}");
    if let Origin::Run { started, build, .. } = &mut results.side.origin {
        *started = format!("2026-{:02}-{:02}T12:00:00Z", 1 + day / 28, 1 + day % 28);
        build.target = "x86_64-unknown-linux-gnu".to_string();
    }
    results.machine.kernel.release = Reading::Known("6.12.3".to_string());
    let estimate = Estimate::at_full_speed(ns, 0.001 * ns, 20, 0.003, 0.95);
    let measured = LaunchFigure {
        by_round: [(0, ns)].into(),
        estimate,
        is_complete: true,
        clock,
        launch_scatter: None,
    };
    for case in &mut results.cases {
        case.figures =
            [(Quantity::NsPerSwitchAboveSolo, CaseFigure::Measured(vec![measured.clone()]))].into();
    }
    results
}

fn core(quantum_ns: f64) -> Option<AtClock> {
    let elasticity = Some(Elasticity { value: 1.0, standard_error: 0.02 });
    Some(AtClock { quantum_ns, elasticity, known: None })
}

fn ring_of_two() -> FollowedCase {
    choose(&[PlannedCases::from_plan(&Run::parse(V1).unwrap().header.plan)], &[]).unwrap()
}

fn trend(sides: &[Results]) -> CaseTrend {
    CaseTrend::from_runs(&ring_of_two(), sides, TrendSettings::default())
}

fn gated(sides: &[Results], limit: f64) -> TrendGate {
    let terms = TrendSettings { limit: Some(limit), ..TrendSettings::default() };
    CaseTrend::from_runs(&ring_of_two(), sides, terms).gate.unwrap()
}

/// Twenty runs, from the eleventh on of `by` times the cost.
fn twenty(by: f64) -> Vec<Results> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let costs = record(&mut rng, 20, 0.0, Some((10, by - 1.0)));
    costs.iter().enumerate().map(|(day, ns)| results(day, *ns, core(5000.0))).collect()
}

fn with_kernel(mut sides: Vec<Results>) -> Vec<Results> {
    for results in &mut sides[10..] {
        results.machine.kernel.release = Reading::Known("6.12.9".to_string());
        results.machine.kernel.version = Reading::Known("#2 SMP".to_string());
    }
    sides
}

#[test]
fn the_kernel_that_came_with_a_change_is_named() {
    let found = trend(&with_kernel(twenty(1.04)));
    let [change] = &found.changes[..] else { panic!("{found:?}") };
    assert_eq!((change.at, &*change.run, &*change.after_run), (10, "run-010", "run-009"));
    let ratio = change.ratio;
    assert!((ratio.value.unwrap() - 1.04).abs() < 0.005, "{ratio:?}");
    assert!(ratio.low.unwrap() < 1.04 && 1.04 < ratio.high.unwrap(), "{ratio:?}");
    assert!(found.in_words.starts_with("A switch is "), "{}", found.in_words);
    assert!(found.in_words.contains(" slower since 2026-01-11 ("), "{}", found.in_words);
    assert!(found.in_words.ends_with(": kernel 6.12.3 -> 6.12.9"), "{}", found.in_words);
    let fields: Vec<&str> = change.machine.iter().map(|of| &*of.field).collect();
    assert_eq!(fields, ["kernel.release", "kernel.version"]);
    assert_eq!(found.points.iter().map(|point| point.level).sum::<usize>(), 10);
    let level = &found.levels[1];
    assert_eq!((level.first, level.last, level.runs), (10, 19, 10));
    // 512 x 64 multiplications of three cycles, whatever their number: cycles are ns x GHz.
    assert!((level.cycles.unwrap() / level.ns - found.clock_ghz.unwrap()).abs() < 1e-9);
}

#[test]
fn a_change_that_was_undone_is_told_with_what_it_costs_now() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let costs = record(&mut rng, 30, 0.0, None);
    let level = |day: usize| [1.0, 1.3, 1.06][day / 10];
    let all = costs.iter().enumerate();
    let all: Vec<Results> =
        all.map(|(day, ns)| results(day, ns * level(day), core(5000.0))).collect();
    let found = trend(&all);
    assert_eq!(found.changes.len(), 2, "{found:?}");
    let largest = found.largest_change().expect("a change");
    assert!((largest.ratio.value.unwrap() - 1.3).abs() < 0.02 && largest.at == 10, "{largest:?}");
    let level = found.levels.last().expect("a level");
    let words = &found.in_words;
    assert!(words.starts_with(&format!("A switch became {}", largest.in_words)), "{words}");
    assert!(
        words.contains(&format!("; now it costs {} (", rundata::words::time(level.ns))),
        "{words}"
    );
}

#[test]
fn where_nothing_recorded_changed_it_says_so() {
    let found = trend(&twenty(0.96));
    assert!(found.in_words.contains(" faster since 2026-01-11 ("), "{}", found.in_words);
    let end = ": nothing that is recorded changed";
    assert!(found.in_words.ends_with(end), "{}", found.in_words);
    let same = trend(&with_kernel(twenty(1.0)));
    let end = ": no change in 20 runs from 2026-01-01 to 2026-01-20";
    assert!(same.changes.is_empty() && same.in_words.ends_with(end), "{}", same.in_words);
}

#[test]
fn command_line_microcode_and_build_are_named() {
    let mut all = twenty(1.05);
    for (day, results) in all.iter_mut().enumerate() {
        let text = if day < 10 { "quiet ro" } else { "quiet ro mitigations=off" };
        results.machine.kernel.command_line = Reading::Known(text.to_string());
        if let Origin::Run { build, .. } = &mut results.side.origin {
            build.version = if day < 10 { "0.1.0" } else { "0.2.0" }.to_string();
        }
    }
    let said = trend(&all).in_words;
    let end = ": kernel command line +mitigations=off, switchcost 0.1.0 -> 0.2.0";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn another_clock_is_no_change_of_cost_but_one_of_its_own() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let costs = record(&mut rng, 30, 0.0, None);
    let at = |power: f64, elasticity: bool| -> Vec<Results> {
        let run = |(day, ns): (usize, &f64)| {
            let quantum = if day < 15 { 5000.0 } else { 5350.0 };
            let of = core(quantum)
                .map(|of| AtClock { elasticity: of.elasticity.filter(|_| elasticity), ..of });
            results(day, ns * (quantum / 5000.0).powf(power), of)
        };
        costs.iter().enumerate().map(run).collect()
    };
    let found = trend(&at(1.0, true));
    assert!(found.changes.is_empty(), "{:?}", found.changes);
    let [change] = &found.clock_changes[..] else { panic!("{:?}", found.clock_changes) };
    assert!((change.after_ghz / change.before_ghz * 1.07 - 1.0).abs() < 1e-6 && change.at == 15);
    assert!(change.in_words.contains("lower since 2026-01-16"), "{}", change.in_words);
    // Where nobody knows the power, either end of what it may be is no change; a larger one is.
    assert!(trend(&at(0.0, false)).changes.is_empty() && trend(&at(1.0, false)).changes.is_empty());
    assert_eq!(trend(&at(4.0, false)).changes.len(), 1);
    let open = trend(&at(1.0, false)).points[0].clone();
    assert!(open.low < 0.985 * open.ns && open.high > 1.015 * open.ns, "{open:?}");
    // A level at two clocks: what that leaves open is in the change behind it, too.
    let mut mixed = at(1.0, false);
    for (day, one) in mixed.iter_mut().enumerate() {
        let quantum = if day < 8 { 5000.0 } else { 5350.0 };
        let level = if day < 15 { 1.0 } else { 0.98 };
        let clock = core(quantum).map(|of| AtClock { elasticity: None, ..of });
        *one = results(day, costs[day] * level * quantum / 5000.0, clock);
    }
    for change in trend(&mixed).changes {
        let (low, high) = change.ratio.interval().unwrap();
        assert!(low < 0.98 && 0.98 < high, "{change:?}");
    }
    // A cost that rises by what the clock does not explain.
    assert_eq!(trend(&at(2.0, true)).changes.len(), 1);
}

#[test]
fn runs_of_a_kernel_are_one_point() {
    let mut all = with_kernel(twenty(1.04));
    all.reverse();
    let terms = TrendSettings { by: PointGrouping::Kernel, ..TrendSettings::default() };
    let found = CaseTrend::from_runs(&ring_of_two(), &all, terms);
    assert_eq!(found.until.as_deref(), Some("2026-01-20T12:00:00Z"));
    let names: Vec<&str> = found.points.iter().map(|point| &*point.name).collect();
    assert_eq!(names, ["6.12.3", "6.12.9"]);
    assert!(found.points.iter().all(|point| point.runs.len() == 10));
    let [change] = &found.changes[..] else { panic!("{found:?}") };
    assert_eq!((change.at, &*change.run), (1, "run-010"));
    // Going back and forth between two is a record of two.
    let mut turns = twenty(1.0);
    for (day, one) in turns.iter_mut().enumerate().filter(|(day, _)| day % 2 == 1) {
        *one = results(day, 1545.0, core(5000.0));
        one.machine.kernel.release = Reading::Known("6.13.0".to_string());
    }
    let found = CaseTrend::from_runs(&ring_of_two(), &turns, terms);
    assert_eq!((found.points.len(), found.changes.len()), (2, 1), "{found:?}");
}

#[test]
fn a_scheduler_that_came_with_a_change_is_named_and_its_runs_are_one_point() {
    let mut all = twenty(1.04);
    for (day, results) in all.iter_mut().enumerate() {
        let scheduler = &mut results.machine.scheduler;
        let (name, state) = if day < 10 { ("kernel", "disabled") } else { ("lavd", "enabled") };
        scheduler.name = Reading::Known(name.to_string());
        let state = Reading::Known(state.to_string());
        scheduler.sched_ext = Reading::Known(SchedExt { state, ..SchedExt::default() });
    }
    let found = trend(&all);
    assert!(found.in_words.ends_with(": scheduler kernel -> lavd"), "{}", found.in_words);

    let terms = TrendSettings { by: PointGrouping::Scheduler, ..TrendSettings::default() };
    let found = CaseTrend::from_runs(&ring_of_two(), &all, terms);
    let names: Vec<&str> = found.points.iter().map(|point| &*point.name).collect();
    assert_eq!((names, found.changes.len()), (vec!["kernel", "lavd"], 1));
}

#[test]
fn what_does_not_hold_is_left_out_with_the_reason() {
    let mut all = twenty(1.0);
    let figure = |results: &mut Results, change: fn(&mut LaunchFigure)| {
        for values in results.cases.iter_mut().flat_map(|case| case.figures.values_mut()) {
            if let CaseFigure::Measured(launches) = values {
                launches.iter_mut().for_each(change);
            }
        }
    };
    figure(&mut all[0], |of| of.is_complete = false);
    figure(&mut all[1], |of| of.estimate.iter_mut().for_each(|of| of.speed = Speed::NotAlone));
    figure(&mut all[2], |of| of.clock = None);
    figure(&mut all[3], |of| of.estimate.iter_mut().for_each(|of| of.low = Some(-1.0)));
    figure(&mut all[4], |of| of.estimate = None);
    figure(&mut all[5], |of| of.estimate.iter_mut().for_each(|of| of.speed = Speed::NotJudged));
    if let Origin::Run { session, .. } = &mut all[6].side.origin {
        let prefix = vec!["nice".to_string()];
        *session = Some(SessionHalf {
            id: "s".into(),
            arm: Arm::B,
            prefix,
            other: "o".into(),
            setting: None,
            command: None,
        });
    }
    let found = trend(&all);
    assert_eq!(found.runs, 13);
    let mut why: Vec<&str> = found.left_out.iter().map(|of| &*of.why).collect();
    why.sort_unstable();
    let expected = [
        "interrupted or not finished",
        "measured behind a prefix (compare --ab)",
        "nothing was measured of the case",
        "other tasks ran on its CPU",
        "the core's clock is not known",
        "the core's speed was not measured",
        "the cost is not resolved from zero",
    ];
    assert_eq!(why, expected);
    let twice: Vec<Results> = twenty(1.0).into_iter().chain(twenty(1.0)).collect();
    let found = trend(&twice);
    assert_eq!((found.runs, &*found.left_out[0].why), (20, "the same run once more"));
    // Where no run has a clock, nanoseconds stand alone.
    all.iter_mut().for_each(|results| figure(results, |of| of.clock = None));
    let bare = trend(&all);
    assert_eq!((bare.runs, bare.clock_ghz, bare.points[0].cycles), (14, None, None));
}

#[test]
fn the_gate_fails_passes_or_cannot_tell() {
    assert_eq!(gated(&twenty(1.05), 0.03).verdict, GateVerdict::Fail);
    assert_eq!(gated(&twenty(1.05), 0.10).verdict, GateVerdict::Pass);
    // The limit lies within the interval of the change.
    let straddling = gated(&twenty(1.05), 0.05);
    assert_eq!(straddling.verdict, GateVerdict::Undecided);
    assert!(straddling.in_words.contains("it may be slower by more than 5 %"), "{straddling:?}");
    assert_eq!(gated(&twenty(0.95), 0.03).verdict, GateVerdict::Pass);
    assert_eq!(gated(&twenty(1.0), 0.03).verdict, GateVerdict::Pass);
    // So small a change three runs would not show.
    let open = gated(&twenty(1.0), 0.0001);
    assert_eq!(open.verdict, GateVerdict::Undecided);
    assert!(open.in_words.starts_with("UNDECIDED: three runs would only show"), "{open:?}");
    let few = gated(&twenty(1.0)[..5], 0.03);
    assert_eq!(few.in_words, "UNDECIDED: 5 usable runs so far; a change shows from 6 on");
}

#[test]
fn none_and_one_run_say_so() {
    let none = trend(&[]);
    assert_eq!(none.in_words, "No stored run has a reliable figure of a switch");
    assert!(none.points.is_empty() && none.levels.is_empty());
    let one = trend(&twenty(1.0)[..1]);
    let end = ": 1 usable run so far; a change shows from 6 on";
    assert!(one.in_words.ends_with(end), "{}", one.in_words);
    assert_eq!((one.points.len(), one.levels.len(), one.detectable), (1, 1, None));
}

#[test]
fn a_case_is_meant_by_title_or_label() {
    let plan = Run::parse(V1).unwrap().header.plan;
    let runs = [PlannedCases::from_plan(&plan)];
    let chosen = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        choose(&runs, &words).map(|case| case.title)
    };
    assert_eq!(chosen(&[]).as_deref(), Ok("ring of 2"));
    assert_eq!(chosen(&["Ring of 4"]).as_deref(), Ok("ring of 4"));
    assert_eq!(chosen(&["members 4", "link=pipe"]).as_deref(), Ok("ring of 4"));
    let error = chosen(&["ring of 5"]).unwrap_err();
    assert!(error.contains("did you mean 'ring of ") && error.contains("ring of 4"), "{error}");
    assert!(chosen(&["members=2", "members=4"]).unwrap_err().starts_with("no case"));
    assert_eq!(choose(&[], &[]).unwrap_err(), "no stored run has a case");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::repeats(32, 256)))]

    #[test]
    fn nothing_panics_and_what_is_told_is_finite(
        odd in prop::collection::vec((
            prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(-1.0), Just(1e300), Just(1e-300), 1.0..1e4],
            prop_oneof![Just(f64::NAN), Just(0.0), Just(-1.0), Just(1e300), 1e3..1e4],
            prop_oneof![Just(f64::NAN), Just(f64::INFINITY), -1.0..2.0],
            any::<String>(),
        ), 0..14)
    ) {
        let run = |(day, (ns, quantum_ns, power, text)): (usize, &(f64, f64, f64, String))| {
            let elasticity = Some(Elasticity { value: *power, standard_error: power.abs() / 10.0 });
            let mut one = results(day, *ns, Some(AtClock { quantum_ns: *quantum_ns, elasticity, known: None }));
            one.machine.kernel.release = Reading::Known(text.clone());
            if let Origin::Run { started, build, .. } = &mut one.side.origin {
                started.clone_from(text);
                build.commit = Some(text.clone());
            }
            for values in one.cases.iter_mut().flat_map(|case| case.figures.values_mut()) {
                let CaseFigure::Measured(launches) = values else { continue };
                for launch in launches.iter_mut().filter(|launch| launch.estimate.is_none()) {
                    let bare = Estimate::over(&[1.0, 2.0, 3.0, 4.0, 5.0], 5, 0.95, 1).unwrap();
                    let odd = Estimate { value: *ns, standard_error: Some(*ns), low: Some(1.0), speed: Speed::Full, ..bare };
                    launch.estimate = Some(odd);
                }
            }
            one
        };
        let all: Vec<Results> = odd.iter().enumerate().map(run).collect();
        for by in PointGrouping::ALL {
            let terms = TrendSettings { by: *by, limit: Some(0.03), ..TrendSettings::default() };
            let found = CaseTrend::from_runs(&ring_of_two(), &all, terms);
            let is_sound = |of: &TrendPoint| [of.ns, of.low, of.high].iter().all(|ns| ns.is_finite());
            prop_assert!(found.points.iter().all(is_sound), "{:?}", found.points);
            prop_assert!(!found.in_words.is_empty());
        }
    }
}
