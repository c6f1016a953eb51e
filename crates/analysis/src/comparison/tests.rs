//! Comparisons of runs; ratios, intervals and answers of costs that are made up.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rundata::case::{self, Case, Sample};
use rundata::experiment::Experiment;
use rundata::placement::Placement;
use rundata::plan::ASSUMED_LAUNCH_SCATTER;
use rundata::reading::Reading;
use rundata::ring;
use rundata::ring::Policy;
use rundata::run::{Arm, Failure, Run, SessionHalf};
use statrs::distribution::{ContinuousCDF, Normal};
use stats::Elasticity;
use stats::ratio::CostPair::Separate;
use testing::repeats;

use super::answer::answer;
use super::clock::{PairAtOneClock, at_one_clock};
use super::costs::PairCosts;
use super::*;
use crate::at_clock::AtClock;
use crate::estimate::{Estimate, Speed};
use crate::results::{CaseFigure, CaseResults, LaunchFigure, Quantity, published_machines};
use crate::speed::cut;

const V1: &str = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");

fn terms() -> ComparisonTerms {
    ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted: WantedCost::Switch, across: None }
}

fn results(change: impl Fn(&mut Run)) -> Results {
    let mut run = Run::parse(V1).unwrap();
    change(&mut run);
    Results::from_run(&run)
}

/// The same with twice the rounds, in slices that all ran at full speed.
fn full_speed(change: impl Fn(&mut Run)) -> Results {
    results(|run| {
        let rings: Vec<ring::RingSample> = case::rings(&run.samples).cloned().collect();
        let again = |sample: &ring::RingSample| ring::RingSample {
            round: sample.round + 6,
            ..sample.clone()
        };
        let more: Vec<ring::RingSample> = rings.iter().map(again).collect();
        let slices = |sample: ring::RingSample| {
            rundata::case::Sample::from(cut(sample.clone(), sample.laps.min(10), |_| true))
        };
        run.samples = rings.into_iter().chain(more).map(slices).collect();
        change(run);
    })
}

fn set_policy(case: &mut Case, policy: Policy) {
    if let Case::Ring(ring) = case {
        ring.policy = policy;
    }
}

/// Every time of a run times a factor.
fn slower(run: &mut Run, factor: f64) {
    let times = |ns: u64| (ns as f64 * factor) as u64;
    for sample in run.samples.iter_mut().filter_map(Sample::ring_mut) {
        sample.elapsed_ns = times(sample.elapsed_ns);
        let slices = sample.slices.iter_mut().flat_map(|slices| &mut slices.elapsed_ns);
        slices.for_each(|ns| *ns = times(*ns));
    }
}

#[test]
fn a_run_is_not_different_from_itself_and_nothing_is_unfair() {
    let (base, new) = (results(|_| {}), results(|_| {}));
    let found = Comparison::from_results(&base, &new, terms());
    let of: Vec<Quantity> = found.changes.iter().map(|change| change.quantity).collect();
    assert_eq!(
        of,
        [Quantity::NsPerHop, Quantity::NsPerSwitchAboveSolo, Quantity::NsPerSwitchAboveSolo]
    );
    for change in &found.changes {
        assert_eq!(change.ratio.value, Some(1.0));
        assert!(!matches!(change.answer, ChangeAnswer::Changed { .. }), "{change:?}");
    }
    assert!((found.confidence_each - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    assert_eq!((&found.conditions.bearing[..], found.unpaired.len()), (&[][..], 0));
    assert!(!found.is_worse_beyond_limit());
    assert_eq!(
        Comparison::from_results(&base, &new, terms()),
        found,
        "the same runs, the same answer"
    );
}

/// The rings of a run, and the same under SCHED_FIFO, so many times as dear.
fn with_fifo(run: &mut Run, factor: f64) {
    let cases = run.header.plan.cases.len();
    let mut beside = run.header.plan.cases.clone();
    beside.iter_mut().for_each(|case| set_policy(case, Policy::Fifo));
    let mut under_fifo = run.clone();
    slower(&mut under_fifo, factor);
    let samples = under_fifo.samples.into_iter();
    run.samples.extend(samples.map(|sample| {
        let case = sample.case() + cases;
        sample.with_case(case)
    }));
    run.header.plan.cases.extend(beside);
}

/// Of a run that measured both policies each ring is compared with that of the same policy.
#[test]
fn rings_under_fifo_are_compared_with_rings_under_fifo_alone() {
    let normal = full_speed(|_| {});
    let both = full_speed(|run| with_fifo(run, 3.0));
    let found = Comparison::from_results(&both, &full_speed(|run| with_fifo(run, 3.0)), terms());
    assert_eq!((found.changes.len(), found.unpaired.len()), (6, 0));
    assert!(found.changes.iter().all(|change| change.ratio.value == Some(1.0)), "{found:?}");
    let titles: Vec<&str> = both.cases.iter().map(|case| &*case.title).collect();
    assert_eq!(titles[1], "ring of 2");
    assert_eq!(titles[titles.len() / 2 + 1], "ring of 2 under fifo");
    let found = Comparison::from_results(&normal, &both, terms());
    assert_eq!((found.changes.len(), found.unpaired.len()), (3, 3));
    assert!(found.changes.iter().all(|change| change.ratio.value == Some(1.0)), "{found:?}");
    let fifo: Vec<&str> = found.unpaired.iter().map(|of| &*of.labels["policy"]).collect();
    assert_eq!(fifo, ["fifo"; 3]);
}

/// Other tasks ran on the CPU of all cases of a policy.
fn disturb(mut results: Results, policy: &str) -> Results {
    for case in results.cases.iter_mut().filter(|case| case.label("policy") == Some(policy)) {
        for values in case.figures.values_mut() {
            let CaseFigure::Measured(launches) = values else { continue };
            for estimate in launches.iter_mut().filter_map(|launch| launch.estimate.as_mut()) {
                estimate.speed = Speed::NotAlone;
            }
        }
    }
    results
}

/// A machine of 1992, which has no figure under fifo, and one that has both.
#[test]
fn a_published_figure_is_compared_with_the_ring_that_holds() {
    let sun = published_machines().unwrap().into_iter().find(|of| of.name == "sun-4/280").unwrap();
    let (sun, both) = (sun.to_results(), || full_speed(|run| with_fifo(run, 3.0)));
    let seen = |new: Results| {
        let found = Comparison::from_results(&sun, &new, terms());
        let titles: Vec<String> = found.changes.iter().map(|of| of.title.clone()).collect();
        let left = found.unpaired.iter().filter(|left| !left.in_base).map(|left| left.case);
        let left: Vec<usize> = left.collect();
        (titles, left, found)
    };
    let (normal, left, _) = seen(both());
    assert_eq!(normal, ["ring of 2", "ring of 4"]);
    assert_eq!(left, [0, 3, 4, 5]);
    let (fifo, left, found) = seen(disturb(both(), "other"));
    assert_eq!(
        fifo,
        ["ring of 2, here fifo, published normal", "ring of 4, here fifo, published normal"]
    );
    assert_eq!(left, [0, 3, 1, 2], "the normal rings in place of these under fifo");
    assert!(
        found.changes.iter().all(|of| matches!(of.answer, ChangeAnswer::Changed { .. })),
        "{found:?}"
    );
    let back = Comparison::from_results(&disturb(both(), "other"), &sun, terms());
    assert_eq!(back.changes[0].title, "ring of 2, here fifo, published normal");
    assert!(back.in_words.starts_with("sun-4/280 is slower than "), "{}", back.in_words);
    // A run that has rings under fifo only.
    let only = full_speed(|run| {
        run.header.plan.cases.iter_mut().for_each(|case| set_policy(case, Policy::Fifo));
    });
    let (paired, left, _) = seen(only);
    assert_eq!((paired, left), (fifo, vec![0]));
    // Where neither holds, the policy of the publication stays.
    let (neither, ..) = seen(disturb(disturb(both(), "other"), "fifo"));
    assert_eq!(neither, ["ring of 2", "ring of 4"]);
}

#[test]
fn the_answer_is_of_the_policy_that_holds() {
    let both = |factor: f64| full_speed(move |run| with_fifo(run, factor));
    let (base, new) = (both(1.0), both(3.0));
    let all = Comparison::from_results(&base, &new, terms());
    assert!(all.in_words.contains("undecided in 2 (of 5 cases)"), "{}", all.in_words);
    let found = Comparison::from_results(&base, &disturb(new, "other"), terms());
    assert!(
        found
            .in_words
            .starts_with("new is slower than base in all 3 cases; most in ring of 2 under fifo"),
        "{}",
        found.in_words
    );
    assert_eq!(found.gate.verdict, GateVerdict::Fail);
    // Of two runs a policy may be all that differs: they are never paired across it.
    let found =
        Comparison::from_results(&full_speed(|_| {}), &disturb(both(3.0), "other"), terms());
    assert!(found.changes.iter().all(|of| of.labels["policy"] == "other"), "{found:?}");
    assert!(found.in_words.contains("undecided"), "{}", found.in_words);
}

#[test]
fn a_slower_run_is_worse_and_a_faster_one_is_not() {
    let slower = |times: f64| full_speed(move |run| slower(run, times));
    let found = Comparison::from_results(&slower(1.0), &slower(3.0), terms());
    assert!(found.is_worse_beyond_limit());
    assert!(found.changes.iter().all(CaseChange::is_worse_beyond_limit), "{}", found.in_words);
    let said = "new is slower than base in all 3 cases; most in ring of ";
    assert!(found.in_words.starts_with(said), "{}", found.in_words);
    let back = Comparison::from_results(&slower(3.0), &slower(1.0), terms());
    assert!(!back.is_worse_beyond_limit());
    assert!(back.in_words.contains(" is faster than "), "{}", back.in_words);
}

#[test]
fn a_session_stops_by_widths_in_proportion_to_the_ratio() {
    let times = |factor: f64| {
        let slower = full_speed(move |run| slower(run, factor));
        Comparison::from_results(&full_speed(|_| {}), &slower, terms()).worst_precision().unwrap()
    };
    let (same, slower) = (times(1.0), times(20.0));
    assert!((same / slower - 1.0).abs() < 0.2, "{same} {slower}");
}

fn fail(run: &mut Run, case: usize, from_round: u32) {
    run.samples.retain(|sample| sample.case() != case || sample.round() < from_round);
    run.failures.push(Failure { case, round: from_round, message: "out of it".into() });
}

/// Neither does what cannot be measured keep the others going, nor does a gate pass it over.
#[test]
fn what_failed_stops_nobody_and_is_lost_to_the_new_side_only() {
    let whole = || full_speed(|_| {});
    let expected = Comparison::from_results(&whole(), &whole(), terms()).worst_precision();
    for from_round in [0, 3] {
        let failed = || full_speed(|run| fail(run, 2, from_round));
        let found = Comparison::from_results(&whole(), &failed(), terms());
        let [LostCase { title, why }] = found.lost_cases()[..] else {
            panic!("{:?}", found.lost_cases())
        };
        assert_eq!(title, "ring of 4");
        assert!(why.contains("out of it"), "{why}");
        assert!(expected.is_some() && found.worst_precision().is_some(), "{from_round}");
        assert_eq!(Comparison::from_results(&failed(), &whole(), terms()).lost_cases(), []);
        assert_eq!(
            Comparison::from_results(&failed(), &failed(), terms()).lost_cases().len(),
            usize::from(from_round > 0)
        );
    }
    // A failure that left an interval has lost nothing.
    let once = full_speed(|run| fail(run, 2, 11));
    assert_eq!(Comparison::from_results(&whole(), &once, terms()).lost_cases(), []);
    // What was never planned was not lost, but left out by whoever planned it.
    let smaller = full_speed(|run| run.header.plan.cases.truncate(2));
    assert_eq!(Comparison::from_results(&whole(), &smaller, terms()).lost_cases(), []);
}

#[test]
fn cases_that_differ_are_listed_and_a_cpu_of_another_number_is_told() {
    for placement in
        [Placement::Same { cpu: 7 }, Placement::Pinned { cpus: vec![7], relation: None }]
    {
        let other = on_another_cpu(&placement);
        let found = Comparison::from_results(&results(|_| {}), &other, terms());
        let left: Vec<(bool, &str)> =
            found.unpaired.iter().map(|left| (left.in_base, &*left.title)).collect();
        assert_eq!(left, [(false, "ring of 16"), (true, "ring of 4")]);
        assert_eq!(found.changes.len(), 2);
        let warned =
            found.conditions.warnings.iter().any(|w| w.starts_with("measured on different CPU"));
        assert!(warned, "{:?}", found.conditions.warnings);
    }
}

/// A run whose rings are there, with one of 16 in the place of one of 4.
fn on_another_cpu(placement: &Placement) -> Results {
    results(|run| {
        let cases = &mut run.header.plan.cases;
        for (number, case) in cases.iter_mut().enumerate() {
            let Case::Ring(ring) = case else { continue };
            ring.members = if number == 2 { 16 } else { ring.members };
            ring.placement = placement.clone();
        }
    })
}

#[test]
fn what_differs_between_machines_is_named_and_not_fair() {
    let other = results(|run| {
        run.header.machine.kernel.release = Reading::Known("2.4.20".to_string());
        run.header.machine.virtualization.hypervisor_type = Reading::Known("another".to_string());
        run.header.build.profile = "debug".to_string();
    });
    let found = Comparison::from_results(&results(|_| {}), &other, terms()).conditions;
    let fields: Vec<&str> = found.bearing.iter().map(|difference| &*difference.field).collect();
    assert_eq!(fields, ["kernel.release", "virtualization.hypervisor_type"]);
    let has = |word: &str| found.warnings.iter().any(|warning| warning.contains(word));
    assert!(has("kernel, virtualization differ, and the ratio"), "{:?}", found.warnings);
    assert_eq!(found.program[0].field, "build.profile");
}

#[test]
fn a_published_machine_is_compared_by_hops_and_has_no_interval_of_its_own() {
    let all = published_machines().unwrap();
    let sun = all.iter().find(|machine| machine.name == "sun-4/280").unwrap();
    let found = Comparison::from_results(&sun.to_results(), &results(|_| {}), terms());
    let sizes: Vec<&str> = found.changes.iter().map(|change| &*change.title).collect();
    assert_eq!(sizes, ["ring of 2", "ring of 4"]);
    for change in &found.changes {
        assert_eq!(
            (change.quantity, change.base_rounds, change.new_rounds),
            (Quantity::NsPerHop, None, Some(6))
        );
        assert!(change.ratio.value < Some(0.1) && change.ratio.low.is_some(), "{change:?}");
    }
    assert_eq!(found.changes[0].base_ns, 647_000.0);
    assert!(found.conditions.warnings[0].ends_with(&format!("is of {}", found.new.label)));
    let both = Comparison::from_results(&sun.to_results(), &sun.to_results(), terms());
    let none = ChangeAnswer::CannotTell { reason: UndecidedReason::NoInterval, more: None };
    assert!(both.changes.iter().all(|change| change.answer == none));
}

#[test]
fn halves_of_a_session_are_paired_in_spite_of_their_policy() {
    let half = |arm: Arm, policy: Policy| {
        results(move |run| {
            let (id, other) = ("s".to_string(), "other".to_string());
            run.header.session = Some(SessionHalf { id, arm, prefix: Vec::new(), other });
            run.header.plan.cases.iter_mut().for_each(|case| set_policy(case, policy));
        })
    };
    let (a, b) = (half(Arm::A, Policy::Other), half(Arm::B, Policy::Fifo));
    let found = Comparison::from_results(&a, &b, terms());
    assert_eq!((found.paired, found.changes.len(), found.unpaired.len()), (true, 3, 0));
    assert!(!Comparison::from_results(&a, &half(Arm::A, Policy::Other), terms()).paired);
    let apart = Comparison::from_results(
        &a,
        &results(|run| set_policy(&mut run.header.plan.cases[0], Policy::Fifo)),
        terms(),
    );
    assert_eq!((apart.paired, apart.changes.len()), (false, 2));
}

/// A half of a session whose worker was started by `prefix`.
fn half(arm: Arm, prefix: &[&str], policy: Policy) -> Results {
    full_speed(move |run| {
        let prefix = prefix.iter().map(|word| word.to_string()).collect();
        let (id, other) = ("s".to_string(), "other".to_string());
        run.header.session = Some(SessionHalf { id, arm, prefix, other });
        run.header.plan.cases.iter_mut().for_each(|case| set_policy(case, policy));
    })
}

#[test]
fn fifo_is_not_advised_where_a_prefix_sets_a_priority() {
    let advised = |prefix: &[&str], typed: &[&str]| {
        let new = disturb(half(Arm::B, prefix, Policy::Other), "other");
        let found = Comparison::from_results(&half(Arm::A, &[], Policy::Other), &new, terms());
        assert!(found.in_words.contains("no prefix"), "{}", found.in_words);
        found.would_fifo_help(&typed.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    };
    assert!(advised(&["taskset", "-c", "1"], &[]));
    for setter in [&["/usr/bin/nice", "-n", "10"][..], &["env", "A=b", "chrt", "-b", "0"]] {
        assert!(!advised(setter, &[]), "{setter:?}");
        assert!(!advised(&["env", "masked"], setter), "{setter:?}");
    }
}

#[test]
fn nice_under_fifo_is_told_to_have_no_effect() {
    let policy = |prefix: &[&str], policy: Policy| {
        let sides = (half(Arm::A, &[], policy), half(Arm::B, prefix, policy));
        let found = Comparison::from_results(&sides.0, &sides.1, terms());
        found.policy_without_nice(&[]).map(str::to_string)
    };
    let nice = ["nice", "-n", "10"];
    assert_eq!(policy(&nice, Policy::Fifo).as_deref(), Some("fifo"));
    assert_eq!(policy(&nice, Policy::Other), None);
    assert_eq!(policy(&["chrt", "-f", "1"], Policy::Fifo), None);
}

/// The same work in more time because the clock was slower: the comparison says so beside its
/// answer.
#[test]
fn another_clock_is_told() {
    let at = |factor: f64| {
        full_speed(move |run| {
            run.header.build.target = "x86_64-unknown-linux-gnu".to_string();
            for slices in
                run.samples.iter_mut().filter_map(|sample| sample.ring_mut()?.slices.as_mut())
            {
                let quanta = slices.latency_ns.iter_mut().chain(&mut slices.throughput_ns);
                quanta.for_each(|ns| *ns = (f64::from(*ns) * factor) as u32);
            }
        })
    };
    let told = |factor: f64| Comparison::from_results(&at(1.0), &at(factor), terms()).clocks;
    assert_eq!(told(1.005), None);
    let slower = told(1.05).expect("two clocks").in_words;
    assert!(
        slower.starts_with("the core's clock was 4.8 % lower in new (3.51 GHz, 3.69 in base)"),
        "{slower}"
    );
}

/// The cost of one launch at the clock of a quantum of `quantum_ns`.
fn at_clock(value: f64, quantum_ns: f64, power: Option<f64>) -> CaseFigure {
    let elasticity = power.map(|value| Elasticity { value, standard_error: 0.02 });
    let clock = Some(AtClock { quantum_ns, elasticity, known: None });
    CaseFigure::Measured(vec![LaunchFigure { clock, ..launch(value, 1.0) }])
}

fn ratio_at_one_clock(base: &CaseFigure, new: &CaseFigure) -> stats::ratio::CostRatio {
    let PairAtOneClock { base, new, uncertainty } = at_one_clock(base, new);
    let costs = PairCosts::separate(&base, &new, 0.001).unwrap();
    costs.values.widened_by(uncertainty).ratio(0.95)
}

#[test]
fn what_the_clock_did_is_no_change() {
    // The core bounds it: 10 % more time at a period that is longer by a tenth.
    let base = at_clock(1000.0, 5000.0, Some(1.0));
    let ratio = |power, ns: f64| ratio_at_one_clock(&base, &at_clock(ns, 5500.0, power));
    let same = ratio(Some(1.0), 1100.0);
    let (low, high) = same.interval().unwrap();
    assert!((same.value.unwrap() - 1.0).abs() < 1e-9 && low < 1.0 && high > 1.0, "{same:?}");
    // The error of the power is in it: 1.96 x 0.1 x 0.02 / sqrt(2), the pooled one.
    assert!((0.002..0.006).contains(&(high - 1.0)), "{same:?}");
    // One side's power serves both; a change beside that of the clock is found.
    assert!((ratio(None, 1100.0).value.unwrap() - 1.0).abs() < 1e-9);
    let changed = ratio(Some(1.0), 1122.0);
    assert!(
        (changed.value.unwrap() - 1.02).abs() < 1e-9 && changed.low.unwrap() > 1.0,
        "{changed:?}"
    );
}

#[test]
fn where_no_power_is_known_the_ratio_holds_for_any_from_0_to_1() {
    let base = at_clock(1000.0, 5000.0, None);
    for truth in [1000.0, 1100.0] {
        let found = ratio_at_one_clock(&base, &at_clock(truth, 5500.0, None));
        let (low, high) = found.interval().unwrap();
        assert!(low < 1.0 && 1.0 < high && high - low < 0.11, "{truth}: {found:?}");
    }
    let same = ratio_at_one_clock(&base, &at_clock(1000.0, 5000.0, None));
    assert!(same.high.unwrap() < 1.004, "{same:?}");
    // What waits for devices has no clock, and is compared as it is.
    let bare = |ns: f64| CaseFigure::Measured(vec![launch(ns, 1.0)]);
    assert_eq!(ratio_at_one_clock(&bare(1000.0), &bare(1100.0)).value, Some(1.1));
}

const TAU: f64 = ASSUMED_LAUNCH_SCATTER;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    Normal::standard().inverse_cdf(rng.random_range(1e-12..1.0))
}

/// A launch's figure at full speed.
fn launch(value: f64, standard_error: f64) -> LaunchFigure {
    let estimate = Estimate::at_full_speed(value, standard_error, 20, TAU, 0.95);
    LaunchFigure {
        by_round: (0..20).map(|round| (round, value)).collect(),
        estimate,
        is_complete: true,
        clock: None,
    }
}

/// Rounds of a half of a session, all at full speed.
fn rounds(figures: &[f64]) -> LaunchFigure {
    let estimate = Estimate::over(figures, 5, 0.95, 1);
    let estimate = estimate.map(|estimate| Estimate { speed: Speed::Full, ..estimate });
    LaunchFigure {
        by_round: (0..).zip(figures.iter().copied()).collect(),
        estimate,
        is_complete: true,
        clock: None,
    }
}

fn apart_of(base: Vec<LaunchFigure>, new: Vec<LaunchFigure>) -> PairCosts {
    PairCosts::separate(&CaseFigure::Measured(base), &CaseFigure::Measured(new), TAU).unwrap()
}

fn apart(base: (f64, f64), new: (f64, f64)) -> PairCosts {
    apart_of(vec![launch(base.0, base.1)], vec![launch(new.0, new.1)])
}

fn with_more(costs: &PairCosts, more: u32) -> PairCosts {
    PairCosts { values: costs.values.with_more(more), ..*costs }
}

fn launches(costs: &PairCosts) -> (Option<u32>, Option<u32>) {
    let Separate(costs) = costs.values else { panic!("{costs:?}") };
    (costs.base.groups, costs.new.groups)
}

fn answer_of(costs: &PairCosts, limit: f64) -> ChangeAnswer {
    answer(costs, &costs.values.ratio(0.95), limit, 0.95)
}

/// How often, in percent of seeded trials, launches that scatter by tau and by their own errors are
/// called changed where nothing is, and where the new side is 5 % slower; `cases` cases are
/// compared at once.
fn alarms_and_finds(trials: u64, launches: usize, cases: usize) -> (f64, f64) {
    let each = 1.0 - 0.05 / cases as f64;
    let (mut alarms, mut finds) = (0, 0);
    for trial in 0..trials {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 * trial + launches as u64);
        let mut is_changed = |factor: f64| {
            let mut side = |level: f64| {
                let one = |_| {
                    let (between, within) = (TAU * normal(&mut rng), 0.008 * normal(&mut rng));
                    launch(level * (1.0 + between + within), 0.008 * level)
                };
                (0..launches).map(one).collect::<Vec<_>>()
            };
            let costs = apart_of(side(3000.0), side(3000.0 * factor));
            matches!(
                answer(&costs, &costs.values.ratio(each), LIMIT, each),
                ChangeAnswer::Changed { .. }
            )
        };
        alarms += u64::from((0..cases).filter(|_| is_changed(1.0)).count() > 0);
        finds += u64::from(is_changed(1.05));
    }
    let percent = |count: u64| 100.0 * count as f64 / trials as f64;
    (percent(alarms), percent(finds))
}

/// The promise of a gate: of comparisons in which nothing changed at most 5 % call anything
/// changed, however many cases they have; 1 point for 2,000 trials, two standard errors. And it finds what it
/// should.
#[test]
fn few_false_alarms_and_the_power_that_the_method_claims() {
    let (trials, off) = repeats((300, 2.5), (2000, 1.0));
    for (launches, cases, least_found) in [(1, 1, 70.0), (1, 10, 40.0), (3, 1, 99.0), (3, 10, 95.0)]
    {
        let (alarms, found) = alarms_and_finds(trials, launches, cases);
        println!(
            "{launches} launches, {cases} cases: alarms {alarms:.1} %, +5 % found {found:.1} %"
        );
        assert!(alarms <= 5.0 + off, "{launches} launches, {cases} cases: {alarms:.1} %");
        assert!(
            found >= least_found - 2.0 * (off - 1.0),
            "{launches} launches, {cases} cases: {found:.1} %"
        );
    }
}

/// Without its term for launches a comparison of single launches raises many times as many alarms.
#[test]
fn the_term_for_launches_is_needed() {
    let costs = |tau| {
        let (base, new) = (vec![launch(1000.0, 3.0)], vec![launch(1025.0, 3.0)]);
        PairCosts::separate(&CaseFigure::Measured(base), &CaseFigure::Measured(new), tau).unwrap()
    };
    assert!(matches!(answer_of(&costs(0.0), 0.01), ChangeAnswer::Changed { worse: true, .. }));
    assert!(matches!(answer_of(&costs(TAU), 0.01), ChangeAnswer::CannotTell { .. }));
}

#[test]
fn the_variance_is_that_of_the_formula() {
    // Two launches against one: s^2 = (6^2 + 8^2) / 2^2 = 25 of 1000, and 10 of 1100; tau^2 (1/2 +
    // 1).
    let base = vec![launch(990.0, 6.0), launch(1010.0, 8.0)];
    let costs = apart_of(base, vec![launch(1100.0, 10.0)]);
    let variance: f64 = 25.0 / 1e6 + (10.0_f64 / 1100.0).powi(2) + 1e-4 * 1.5;
    let half = 1.959_964 * variance.sqrt();
    let (low, high) = costs.values.ratio(0.95).interval().unwrap();
    assert!((low - 1.1 * (-half).exp()).abs() < 1e-6, "{low}");
    assert!((high - 1.1 * half.exp()).abs() < 1e-6, "{high}");
    assert_eq!((costs.base_rounds, costs.new_rounds), (Some(40), Some(20)));
}

#[test]
fn three_answers() {
    let near = |value: f64| apart((1000.0, 1.0), (value, 1.0));
    let limit = 0.04;
    assert_eq!(answer_of(&near(1000.0), limit), ChangeAnswer::NotChanged);
    let worse = answer_of(&near(1200.0), limit);
    assert_eq!(worse, ChangeAnswer::Changed { worse: true, beyond_limit: true });
    let better = answer_of(&near(800.0), limit);
    assert_eq!(better, ChangeAnswer::Changed { worse: false, beyond_limit: true });
    // Clearly slower, and clearly by less than the limit: what is proven to be small is no change.
    assert_eq!(answer_of(&near(1035.0), 0.08), ChangeAnswer::NotChanged);
    // Clearly slower, and perhaps beyond the limit.
    let within = answer_of(&near(1035.0), limit);
    assert_eq!(within, ChangeAnswer::Changed { worse: true, beyond_limit: false });
    let open = answer_of(&near(1010.0), 0.03);
    let ChangeAnswer::CannotTell {
        reason: UndecidedReason::TooWide,
        more: Some(MoreNeeded::Launches(more)),
    } = open
    else {
        panic!("{open:?}");
    };
    // As many more do tell, one less does not.
    let costs = near(1010.0);
    assert!(!matches!(answer_of(&with_more(&costs, more), 0.03), ChangeAnswer::CannotTell { .. }));
    assert!(matches!(
        answer_of(&with_more(&costs, more - 1), 0.03),
        ChangeAnswer::CannotTell { .. }
    ));
}

/// The gate of a shared machine: what was not seen at full speed is never called changed.
#[test]
fn what_was_not_at_full_speed_is_inconclusive() {
    for speed in [Speed::Contended, Speed::NotJudged] {
        let slow = |value: f64| {
            let full = launch(value, 1.0);
            let estimate = full.estimate.map(|estimate| Estimate { speed, ..estimate });
            LaunchFigure { estimate, ..full }
        };
        for costs in [
            apart_of(vec![launch(1000.0, 1.0)], vec![slow(3000.0)]),
            apart_of(vec![slow(1000.0)], vec![launch(3000.0, 1.0)]),
            PairCosts::paired(&slow(1000.0), &slow(3000.0), 1).unwrap(),
        ] {
            assert_eq!(reason_of(&costs), UndecidedReason::NoFullSpeed, "{costs:?}");
        }
        // A side goes by its launches that saw it.
        let alike = |count| vec![launch(1000.0, 1.0); count];
        let one_slow = apart_of([alike(2), vec![slow(3000.0)]].concat(), alike(2));
        let both = apart_of(alike(2), alike(2));
        assert_eq!(one_slow.values.ratio(0.95), both.values.ratio(0.95), "{speed:?}");
        assert_eq!(launches(&one_slow), (Some(2), Some(2)));
        // Of three more one will be as slow as one of these three was.
        assert_eq!(launches(&with_more(&one_slow, 3)), (Some(4), Some(5)));
    }
}

#[test]
fn the_ratio_beside_figures_that_do_not_hold_is_theirs() {
    let sides = [1.0, 3.0].map(|factor| full_speed(|run| slower(run, factor)));
    let tested = Comparison::from_results(&sides[0], &sides[1], terms()).changes.remove(0);
    assert_eq!(tested.ratio_told(), tested.ratio.value);
    let answer = ChangeAnswer::CannotTell { reason: UndecidedReason::NotAlone, more: None };
    let seen = CaseChange { answer, base_ns: 2.0, new_ns: 5.0, ..tested };
    assert_eq!(seen.ratio_told(), Some(2.5));
    assert_eq!(CaseChange { base_ns: 0.0, ..seen }.ratio_told(), None);
}

#[test]
fn without_an_interval_the_answer_says_why() {
    let why = |costs: &PairCosts| match answer_of(costs, 0.03) {
        ChangeAnswer::CannotTell { reason, more } => (reason, more),
        other => panic!("{other:?}"),
    };
    let few = within_rounds(&TEN[..3], &TEN[..3]);
    assert_eq!(why(&few), (UndecidedReason::FewRounds, Some(MoreNeeded::Rounds(2))));
    assert_eq!(why(&apart((1.0, 10.0), (1000.0, 1.0))).0, UndecidedReason::BaseNotResolved);
    assert_eq!(why(&apart((-5.0, 0.1), (1000.0, 1.0))), (UndecidedReason::BaseNotResolved, None));
    assert_eq!(why(&apart((1000.0, 1.0), (-5.0, 0.1))), (UndecidedReason::NewNotResolved, None));
    let printed =
        PairCosts::separate(&CaseFigure::Published(1.0), &CaseFigure::Published(2.0), TAU).unwrap();
    assert_eq!(why(&printed), (UndecidedReason::NoInterval, None));
}

#[test]
fn a_published_base_leaves_the_interval_to_the_run() {
    let run = CaseFigure::Measured(vec![launch(100.0, 1.0)]);
    let of = |printed: f64| {
        PairCosts::separate(&CaseFigure::Published(printed), &run, TAU).unwrap().values.ratio(0.95)
    };
    let half = 1.959_964 * (2e-4_f64).sqrt();
    assert!((of(200.0).low.unwrap() - 0.5 * (-half).exp()).abs() < 1e-6, "{:?}", of(200.0));
    assert!((2.0 * of(400.0).low.unwrap() - of(200.0).low.unwrap()).abs() < 1e-9);
}

#[test]
fn the_other_way_round_the_ratio_is_the_inverse_and_so_is_its_interval() {
    let (one, other) = ((1000.0, 9.0), (1070.0, 4.0));
    let (one, other) = (apart(one, other).values.ratio(0.95), apart(other, one).values.ratio(0.95));
    assert!((one.value.unwrap() * other.value.unwrap() - 1.0).abs() < 1e-12);
    let (low, high) = one.interval().unwrap();
    let (low_back, high_back) = other.interval().unwrap();
    assert!((low * high_back - 1.0).abs() < 1e-12 && (high * low_back - 1.0).abs() < 1e-12);
}

const TEN: [f64; 10] = [98.0, 99.0, 99.5, 100.0, 100.2, 99.8, 100.5, 101.0, 102.0, 100.0];

#[test]
fn pairing_within_rounds_takes_drift_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    // Each round 40 % slower than the one before; the new one 5 % slower in each.
    let drift: Vec<f64> = (0..12).map(|round| 1000.0 * 1.4_f64.powi(round)).collect();
    let mut side = |factor: f64| {
        let one = |level: &f64| level * factor * (1.0 + 0.001 * normal(&mut rng));
        drift.iter().map(one).collect::<Vec<f64>>()
    };
    let (base, new) = (side(1.0), side(1.05));
    let paired = within_rounds(&base, &new);
    assert!(
        matches!(answer_of(&paired, 0.03), ChangeAnswer::Changed { worse: true, .. }),
        "{paired:?}"
    );
    let apart = apart_of(vec![rounds(&base)], vec![rounds(&new)]);
    assert!(matches!(answer_of(&apart, 0.03), ChangeAnswer::CannotTell { .. }), "{apart:?}");
}

fn within_rounds(base: &[f64], new: &[f64]) -> PairCosts {
    PairCosts::paired(&rounds(base), &rounds(new), 7).unwrap()
}

fn reason_of(costs: &PairCosts) -> UndecidedReason {
    match answer_of(costs, LIMIT) {
        ChangeAnswer::CannotTell { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Tickless clocks and empty calls do come out at zero.
#[test]
fn a_base_of_nothing_has_no_ratio_and_two_of_nothing_do_not_differ() {
    for base in [[0.0; 10], [-1.0; 10]] {
        let costs = within_rounds(&base, &TEN);
        let ratio = costs.values.ratio(0.95);
        assert_eq!((ratio.value, ratio.interval()), (None, None), "{costs:?}");
        assert_eq!(reason_of(&costs), UndecidedReason::BaseNotResolved, "{costs:?}");
    }
    // Now and then nothing on both sides is no difference, not the greatest one; nor may such a
    // cost be quoted.
    let mut mostly = TEN;
    mostly[..4].fill(0.0);
    assert_eq!(reason_of(&within_rounds(&mostly, &mostly)), UndecidedReason::BaseNotResolved);
    assert_eq!(within_rounds(&mostly, &mostly).values.ratio(0.95).value, Some(1.0));
}

#[test]
fn who_is_not_above_zero_is_named() {
    let below = [-50.0; 10];
    assert_eq!(reason_of(&within_rounds(&below, &TEN)), UndecidedReason::BaseNotResolved);
    assert_eq!(reason_of(&within_rounds(&TEN, &below)), UndecidedReason::NewNotResolved);
    let words = |costs: &PairCosts| {
        let ratio = costs.values.ratio(0.95);
        answer(costs, &ratio, LIMIT, 0.95).in_words(&ratio, LIMIT)
    };
    let said = words(&within_rounds(&TEN, &below));
    assert!(said.contains("the cost of new includes zero"), "{said}");
    assert_eq!(
        words(&within_rounds(&TEN[..3], &TEN[..3])),
        "inconclusive: too few rounds for an interval; measure about 2 more rounds"
    );
}

/// One round has no scatter that could be known, and zero is not what it is.
#[test]
fn an_unknown_scatter_is_no_interval() {
    let unknown = |value: f64| {
        let known = launch(value, 1.0);
        let estimate = known.estimate.map(|e| Estimate { standard_error: None, ..e });
        LaunchFigure { estimate, ..known }
    };
    for costs in [
        apart_of(vec![unknown(1.0)], vec![launch(1.0, 0.01)]),
        apart_of(vec![launch(1.0, 0.01)], vec![launch(1.0, 0.01), unknown(1.0)]),
        within_rounds(&[1.0], &[2.0]),
    ] {
        assert_eq!(costs.values.ratio(0.95).interval(), None);
        assert_eq!(with_more(&costs, 100).values.ratio(0.95).interval(), None, "{costs:?}");
    }
    assert!(
        PairCosts::separate(&CaseFigure::Published(f64::NAN), &CaseFigure::Published(1.0), TAU)
            .is_none()
    );
    assert!(
        PairCosts::separate(&CaseFigure::Measured(Vec::new()), &CaseFigure::Published(1.0), TAU)
            .is_none()
    );
}

/// What stands for a round in which a cost came out below zero must not make a ratio.
#[test]
fn too_many_rounds_below_zero_have_no_interval() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut costs = |below: usize| {
        let level = |_| 1000.0 * (1.0 + 0.01 * normal(&mut rng));
        let new: Vec<f64> = (0..100).map(level).collect();
        let mut base = new.clone();
        base[..below].fill(-50.0);
        within_rounds(&base, &new)
    };
    assert!(costs(10).values.ratio(0.95).interval().is_some());
    let many = costs(40);
    assert_eq!(many.values.ratio(0.95).interval(), None, "{many:?}");
    assert_eq!(
        with_more(&many, 100).values.ratio(0.95).interval(),
        None,
        "more of the same tell no more"
    );
    assert!(!matches!(answer_of(&many, 0.03), ChangeAnswer::Changed { .. }));
}

#[test]
fn only_rounds_that_both_have_are_paired() {
    let of = |numbers: &[u32], level: f64| {
        let by_round = numbers.iter().map(|n| (*n, level + f64::from(*n))).collect();
        LaunchFigure { by_round, estimate: None, is_complete: true, clock: None }
    };
    let (base, new) = (of(&[0, 1, 2, 3, 5, 6], 100.0), of(&[1, 2, 3, 4, 5, 6], 110.0));
    let costs = PairCosts::paired(&base, &new, 1).unwrap();
    assert_eq!((costs.base_rounds, costs.new_rounds), (Some(5), Some(5)));
    let (base, new) = costs.values.both();
    assert!((new - base - 10.0).abs() < 1e-9);
    assert!(PairCosts::paired(&of(&[0], 1.0), &of(&[1], 1.0), 1).is_none());
}

#[test]
fn of_several_runs_the_only_one_that_differs_from_all_others_is_the_odd_one() {
    let same = || ("same".to_string(), full_speed(|_| {}));
    let other = || ("other".to_string(), full_speed(|run| slower(run, 3.0)));
    let found = PairwiseComparison::from_results(&[same(), same(), other(), same()], terms());
    assert_eq!(found.odd, [2], "{found:?}");
    assert_eq!(found.runs[2].differs_from, [0, 1, 3]);
    assert_eq!(found.runs[0].differs_from, [2]);
    let far = found.runs[2].farthest.as_ref().unwrap();
    assert!((far.ratio - 3.0).abs() < 0.1 && far.is_odd, "{far:?}");
    let (low, high) = far.interval.unwrap();
    assert!(low < far.ratio && far.ratio < high, "{far:?}");
    assert!(found.in_words.contains("other is the odd one out: 2"), "{}", found.in_words);
    // A third of the others' cost is as odd as three times as much.
    let quick = PairwiseComparison::from_results(&[other(), same(), other()], terms());
    assert_eq!(quick.odd, [1], "{quick:?}");
    assert!(quick.in_words.contains("% faster than the others"), "{}", quick.in_words);
    // Two against two: each differs from half of the others, and none is the odd one.
    let halves = PairwiseComparison::from_results(&[same(), other(), same(), other()], terms());
    assert!(halves.odd.is_empty(), "{halves:?}");
    assert!(halves.in_words.contains("4 of 4 differ"), "{}", halves.in_words);
    assert_eq!(found.pairs, 18, "six pairs of runs, three cases");
    let alike = PairwiseComparison::from_results(&[same(), same(), same()], terms());
    assert!(alike.odd.is_empty() && alike.runs.iter().all(|run| run.differs_from.is_empty()));
    assert!(alike.in_words.starts_with("None of the 3 runs"), "{}", alike.in_words);
}

#[test]
fn of_several_runs_those_without_a_common_case_are_not_compared() {
    let fifo = full_speed(|run| {
        run.header.plan.cases.iter_mut().for_each(|case| set_policy(case, Policy::Fifo));
    });
    let named = |results| (String::new(), results);
    let found = PairwiseComparison::from_results(
        &[full_speed(|_| {}), full_speed(|_| {}), fifo].map(named),
        terms(),
    );
    assert_eq!((found.cases, &found.odd[..]), (0, &[][..]));
    assert!(
        found.in_words.ends_with("runs have no case in common: nothing was compared"),
        "{}",
        found.in_words
    );
}

/// Nothing is built on a run that was interrupted, and of several launches it does not count.
#[test]
fn what_did_not_end_is_inconclusive() {
    let cut = |value: f64| LaunchFigure { is_complete: false, ..launch(value, 1.0) };
    for costs in [
        apart_of(vec![launch(1000.0, 1.0)], vec![cut(3000.0)]),
        apart_of(vec![cut(1000.0)], vec![launch(3000.0, 1.0)]),
        PairCosts::paired(&cut(1000.0), &cut(3000.0), 1).unwrap(),
    ] {
        assert_eq!(reason_of(&costs), UndecidedReason::NotEnded, "{costs:?}");
    }
    let alike = |count| vec![launch(1000.0, 1.0); count];
    let with_cut = apart_of([alike(2), vec![cut(3000.0)]].concat(), alike(2));
    assert_eq!(with_cut.values.ratio(0.95), apart_of(alike(2), alike(2)).values.ratio(0.95));
    let run = full_speed(|run| run.end = None);
    let found = Comparison::from_results(&full_speed(|_| {}), &run, terms());
    assert!(
        found.changes.iter().all(|of| of.reason() == Some(UndecidedReason::NotEnded)),
        "{found:?}"
    );
    assert_eq!(found.gate.verdict, GateVerdict::Undecided);
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

/// Other tasks ran on the CPU of all cases; each costs at most `share` of what was seen.
fn bounded(results: Results, share: f64) -> Results {
    let mut results = disturb(results, "other");
    for case in &mut results.cases {
        for values in case.figures.values_mut() {
            let CaseFigure::Measured(launches) = values else { continue };
            for estimate in launches.iter_mut().filter_map(|launch| launch.estimate.as_mut()) {
                estimate.at_most = Some(share * estimate.value);
            }
        }
    }
    results
}

#[test]
fn a_bound_below_the_other_side_decides_which_is_faster() {
    let sun = published_machines().unwrap().into_iter().find(|of| of.name == "sun-4/280").unwrap();
    let seen = || bounded(full_speed(|_| {}), 0.9);
    let found = Comparison::from_results(&sun.to_results(), &seen(), terms());
    for change in &found.changes {
        let ChangeAnswer::Bounded { worse: false, ratio, at_most_ns } = change.answer else {
            panic!("{change:?}");
        };
        assert!((at_most_ns / (0.9 * change.new_ns) - 1.0).abs() < 1e-9, "{change:?}");
        assert!((ratio * change.base_ns / at_most_ns - 1.0).abs() < 1e-9, "{change:?}");
        assert!(!change.is_tested() && change.has_ratio(), "{change:?}");
    }
    let words = &found.in_words;
    assert!(words.contains(" is faster than sun-4/280 in both cases; most in "), "{words}");
    assert!(words.contains(": at least ") && words.contains("x faster, at most "), "{words}");
    assert_eq!(found.gate.verdict, GateVerdict::Pass);
    // Of one case, and rounded towards no change.
    assert_eq!(super::answer::at_least(1.0 / 337.9), "at least 337x faster");
    assert_eq!(super::answer::at_least(1.0789), "at least 7.8 % slower");
    // The other way round the slower side is the published one: it makes no FAIL.
    let back = Comparison::from_results(&seen(), &sun.to_results(), terms());
    let is_slower =
        |change: &CaseChange| matches!(change.answer, ChangeAnswer::Bounded { worse: true, .. });
    assert!(back.changes.iter().all(is_slower), "{back:?}");
    assert_eq!(back.gate.verdict, GateVerdict::Undecided);
    assert!(back.gate.in_words.contains(" is at least "), "{}", back.gate.in_words);
}

#[test]
fn a_bound_decides_between_runs_beyond_the_interval_only() {
    let base = || full_speed(|_| {});
    let answers = |new: Results| -> Vec<ChangeAnswer> {
        Comparison::from_results(&base(), &new, terms())
            .changes
            .iter()
            .map(|of| of.answer)
            .collect()
    };
    let is_undecided = |answer: &ChangeAnswer| matches!(answer, ChangeAnswer::CannotTell { .. });
    let half = answers(bounded(base(), 0.5));
    assert!(
        half.iter().all(|of| matches!(of, ChangeAnswer::Bounded { worse: false, ratio, .. }
        if (0.5..0.99).contains(ratio))),
        "{half:?}"
    );
    // A bound within the interval of the other, and one of what did not end or has another bound.
    assert!(answers(bounded(base(), 0.99)).iter().all(is_undecided));
    let unended = || bounded(full_speed(|run| run.end = None), 0.5);
    assert!(answers(unended()).iter().all(is_undecided));
    let both = Comparison::from_results(&bounded(base(), 0.9), &bounded(base(), 0.1), terms());
    assert!(both.changes.iter().all(|of| is_undecided(&of.answer)), "{both:?}");
    // It never shows that nothing has changed.
    let wide = ComparisonTerms { limit: 10.0, ..terms() };
    let found = Comparison::from_results(&base(), &bounded(base(), 0.5), wide);
    assert!(found.changes.iter().all(|of| of.answer != ChangeAnswer::NotChanged), "{found:?}");
}

/// A gate tells which of its open cases the answer does not count, and every reason has a verb.
#[test]
fn a_gate_and_the_answer_count_the_same_cases_or_tell_the_difference() {
    let halved = |results: Results| {
        let mut results = disturb(results, "other");
        results.side.label = "new3".to_string();
        results
    };
    let found = Comparison::from_results(&full_speed(|_| {}), &halved(full_speed(|_| {})), terms());
    assert!(found.in_words.contains("undecided in both cases"), "{}", found.in_words);
    let summary = "UNDECIDED: 3 of 3 cases are open (1 ring of one among them)";
    assert_eq!(found.gate.summary, summary);
    let near = Comparison::from_results(
        &full_speed(|_| {}),
        &full_speed(|run| slower(run, 1.02)),
        ComparisonTerms { limit: 1e-4, ..terms() },
    );
    for reason in &near.gate.reasons {
        assert!(reason.contains(" is ") || reason.contains(" may be up to "), "{reason}");
    }
    let slow =
        Comparison::from_results(&full_speed(|_| {}), &full_speed(|run| slower(run, 3.0)), terms());
    assert!(slow.gate.brief.contains(" % slower ("), "{}", slow.gate.brief);
    assert!(slow.gate.reasons.iter().all(|reason| reason.contains(" is ")), "{:?}", slow.gate);
}

#[test]
fn sentences_use_the_labels_of_the_sides() {
    let named = |mut results: Results, label: &str| {
        results.side.label = label.to_string();
        results
    };
    let nothing = full_speed(|run| fail(run, 2, 0));
    let found = Comparison::from_results(
        &named(full_speed(|_| {}), "old"),
        &named(nothing, "new3"),
        terms(),
    );
    let first = &found.gate.reasons[0];
    assert!(first.starts_with("ring of 4 was measured in old only: "), "{first}");
    assert!(first.contains("nothing was measured of it in new3"), "{first}");
    let mut slow = named(full_speed(|_| {}), "new3");
    slow.clock_ghz = Some(2.0);
    let mut fast = named(full_speed(|_| {}), "old");
    fast.clock_ghz = Some(4.0);
    let clocks =
        Comparison::from_results(&fast, &slow, terms()).clocks.expect("two clocks").in_words;
    assert!(clocks.contains("50.0 % lower in new3 (2.00 GHz, 4.00 in old)"), "{clocks}");
}

#[test]
fn the_same_case_of_two_experiments_has_two_titles() {
    let twice = || {
        let (mut results, again) = (full_speed(|_| {}), full_speed(|_| {}));
        let experiment = Experiment::Cost.name();
        results
            .cases
            .extend(again.cases.into_iter().map(|case| CaseResults { experiment, ..case }));
        results
    };
    let titles: Vec<String> = Comparison::from_results(&twice(), &twice(), terms())
        .changes
        .into_iter()
        .map(|of| of.title)
        .collect();
    assert_eq!(titles[1], "ring of 2, in ring");
    assert_eq!(titles[4], "ring of 2, in cost");
}
