//! Comparisons of results: which cases are paired, under which conditions, and what is said of them.

mod bounds;
mod costs;
mod several;
mod traces;

use rundata::case::{self, Case, Sample};
use rundata::experiment::Experiment;
use rundata::machine::{PreemptionModel, SchedExt, SchedulerSettings};
use rundata::placement::Placement;
use rundata::reading::Reading;
use rundata::ring;
use rundata::ring::Policy;
use rundata::run::{Arm, Failure, Run, SessionHalf};

use super::*;
use crate::estimate::{Estimate, Speed};
use crate::results::{CaseFigure, CaseResults, Quantity, published_machines};
use crate::speed::cut;

const V1: &str = include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl");

fn terms() -> ComparisonTerms {
    ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted: WantedCost::Switch, across: None }
}

/// Returns the results of the fixture after a change of its run.
fn results(change: impl Fn(&mut Run)) -> Results {
    let mut run = Run::parse(V1).unwrap();
    change(&mut run);
    Results::from_run(&run)
}

/// Returns the results of the fixture with twice the rounds, in slices that all ran at full speed.
fn full_speed(change: impl Fn(&mut Run)) -> Results {
    results(|run| {
        let mut samples = Vec::new();
        for first_round in [0, 6] {
            for ring in case::rings(&run.samples) {
                let sample = ring::RingSample { round: ring.round + first_round, ..ring.clone() };
                let slices = sample.laps.min(10);
                samples.push(Sample::from(cut(sample, slices, |_| true)));
            }
        }
        run.samples = samples;
        change(run);
    })
}

fn compare(base: &Results, new: &Results) -> Comparison {
    Comparison::from_results(base, new, terms())
}

fn titles(comparison: &Comparison) -> Vec<&str> {
    comparison.changes.iter().map(|change| &*change.title).collect()
}

/// Returns the numbers of the new side's cases that have no partner.
fn unpaired_new_cases(comparison: &Comparison) -> Vec<usize> {
    let new = comparison.unpaired.iter().filter(|unpaired| !unpaired.in_base);
    new.map(|unpaired| unpaired.case).collect()
}

fn set_policy(case: &mut Case, policy: Policy) {
    if let Case::Ring(ring) = case {
        ring.policy = policy;
    }
}

fn set_all_policies(run: &mut Run, policy: Policy) {
    for case in &mut run.header.plan.cases {
        set_policy(case, policy);
    }
}

/// Multiplies every time of a run.
fn slow_down(run: &mut Run, factor: f64) {
    for sample in run.samples.iter_mut().filter_map(Sample::ring_mut) {
        sample.elapsed_ns = (sample.elapsed_ns as f64 * factor) as u64;
        let Some(slices) = &mut sample.slices else { continue };
        for ns in &mut slices.elapsed_ns {
            *ns = (*ns as f64 * factor) as u64;
        }
    }
}

/// Adds the rings of a run under SCHED_FIFO, `factor` times as slow.
fn add_fifo_rings(run: &mut Run, factor: f64) {
    let mut fifo = run.clone();
    set_all_policies(&mut fifo, Policy::Fifo);
    slow_down(&mut fifo, factor);
    let first = run.header.plan.cases.len();
    for sample in fifo.samples {
        let case = sample.case() + first;
        run.samples.push(sample.with_case(case));
    }
    run.header.plan.cases.extend(fifo.header.plan.cases);
}

/// Marks the cases of a policy as measured beside other tasks.
fn disturb(mut results: Results, policy: &str) -> Results {
    change_estimates(&mut results, policy, |estimate| estimate.speed = Speed::NotAlone);
    results
}

/// Changes each estimate of the cases of a policy.
fn change_estimates(results: &mut Results, policy: &str, change: impl Fn(&mut Estimate)) {
    for case in &mut results.cases {
        if case.label("policy") != Some(policy) {
            continue;
        }
        for figure in case.figures.values_mut() {
            let CaseFigure::Measured(launches) = figure else { continue };
            for launch in launches {
                if let Some(estimate) = &mut launch.estimate {
                    change(estimate);
                }
            }
        }
    }
}

fn sun_results() -> Results {
    let machines = published_machines().unwrap();
    let sun = machines.iter().find(|machine| machine.name == "sun-4/280").unwrap();
    sun.to_results()
}

#[test]
fn a_run_is_not_different_from_itself_and_nothing_is_unfair() {
    let (base, new) = (results(|_| {}), results(|_| {}));
    let comparison = compare(&base, &new);
    let quantities: Vec<Quantity> =
        comparison.changes.iter().map(|change| change.quantity).collect();
    assert_eq!(
        quantities,
        [Quantity::NsPerHop, Quantity::NsPerSwitchAboveSolo, Quantity::NsPerSwitchAboveSolo]
    );
    for change in &comparison.changes {
        assert_eq!(change.ratio.value, Some(1.0));
        assert!(!matches!(change.answer, ChangeAnswer::Changed { .. }), "{change:?}");
    }
    assert!((comparison.confidence_each - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    assert_eq!((&comparison.conditions.bearing[..], comparison.unpaired.len()), (&[][..], 0));
    assert!(!comparison.is_worse_beyond_limit());
    assert_eq!(compare(&base, &new), comparison, "the same runs, the same answer");
}

/// Each ring of a run that measured both policies is compared with that of the same policy.
#[test]
fn rings_under_fifo_are_compared_with_rings_under_fifo_alone() {
    let normal = full_speed(|_| {});
    let both = full_speed(|run| add_fifo_rings(run, 3.0));
    let comparison = compare(&both, &full_speed(|run| add_fifo_rings(run, 3.0)));
    assert_eq!((comparison.changes.len(), comparison.unpaired.len()), (6, 0));
    let are_same = |comparison: &Comparison| {
        comparison.changes.iter().all(|change| change.ratio.value == Some(1.0))
    };
    assert!(are_same(&comparison), "{comparison:?}");
    let titles: Vec<&str> = both.cases.iter().map(|case| &*case.title).collect();
    assert_eq!(titles[1], "ring of 2");
    assert_eq!(titles[titles.len() / 2 + 1], "ring of 2 under fifo");
    let comparison = compare(&normal, &both);
    assert_eq!((comparison.changes.len(), comparison.unpaired.len()), (3, 3));
    assert!(are_same(&comparison), "{comparison:?}");
    for unpaired in &comparison.unpaired {
        assert_eq!(unpaired.labels["policy"], "fifo");
    }
}

/// The machine of 1992 has no figure under fifo, the run has both.
#[test]
fn a_published_figure_is_compared_with_the_ring_that_holds() {
    let sun = sun_results();
    let both = || full_speed(|run| add_fifo_rings(run, 3.0));
    let normal = compare(&sun, &both());
    assert_eq!(titles(&normal), ["ring of 2", "ring of 4"]);
    assert_eq!(unpaired_new_cases(&normal), [0, 3, 4, 5]);
    let fifo = compare(&sun, &disturb(both(), "other"));
    let fifo_titles =
        ["ring of 2, here fifo, published normal", "ring of 4, here fifo, published normal"];
    assert_eq!(titles(&fifo), fifo_titles);
    let unpaired = unpaired_new_cases(&fifo);
    assert_eq!(unpaired, [0, 3, 1, 2], "the normal rings in place of these under fifo");
    for change in &fifo.changes {
        assert!(matches!(change.answer, ChangeAnswer::Changed { .. }), "{change:?}");
    }
    let back = compare(&disturb(both(), "other"), &sun);
    assert_eq!(titles(&back)[0], fifo_titles[0]);
    assert!(back.in_words.starts_with("sun-4/280 is slower than "), "{}", back.in_words);
    // A run that has rings under fifo only.
    let only_fifo = compare(&sun, &full_speed(|run| set_all_policies(run, Policy::Fifo)));
    assert_eq!(titles(&only_fifo), fifo_titles);
    assert_eq!(unpaired_new_cases(&only_fifo), [0]);
    // Where neither holds, the policy of the publication stays.
    let neither = compare(&sun, &disturb(disturb(both(), "other"), "fifo"));
    assert_eq!(titles(&neither), ["ring of 2", "ring of 4"]);
}

#[test]
fn the_answer_is_of_the_policy_that_holds() {
    let both = |factor: f64| full_speed(move |run| add_fifo_rings(run, factor));
    let (base, new) = (both(1.0), both(3.0));
    let words = compare(&base, &new).in_words;
    assert!(words.contains("undecided in 2 (of 5 cases)"), "{words}");
    let comparison = compare(&base, &disturb(new, "other"));
    let words = &comparison.in_words;
    let start = "new is slower than base in all 3 cases; most in ring of 2 under fifo";
    assert!(words.starts_with(start), "{words}");
    assert_eq!(comparison.gate.verdict, GateVerdict::Fail);
    // Between two runs a policy may be all that differs: they are never paired across it.
    let comparison = compare(&full_speed(|_| {}), &disturb(both(3.0), "other"));
    for change in &comparison.changes {
        assert_eq!(change.labels["policy"], "other");
    }
    assert!(comparison.in_words.contains("undecided"), "{}", comparison.in_words);
}

#[test]
fn a_slower_run_is_worse_and_a_faster_one_is_not() {
    let slower = |factor: f64| full_speed(move |run| slow_down(run, factor));
    let worse = compare(&slower(1.0), &slower(3.0));
    assert!(worse.is_worse_beyond_limit());
    assert!(worse.changes.iter().all(CaseChange::is_worse_beyond_limit), "{}", worse.in_words);
    let start = "new is slower than base in all 3 cases; most in ring of ";
    assert!(worse.in_words.starts_with(start), "{}", worse.in_words);
    let better = compare(&slower(3.0), &slower(1.0));
    assert!(!better.is_worse_beyond_limit());
    assert!(better.in_words.contains(" is faster than "), "{}", better.in_words);
}

#[test]
fn a_session_stops_by_widths_in_proportion_to_the_ratio() {
    let precision = |factor: f64| {
        let slower = full_speed(move |run| slow_down(run, factor));
        compare(&full_speed(|_| {}), &slower).worst_precision().unwrap()
    };
    let (same, slower) = (precision(1.0), precision(20.0));
    assert!((same / slower - 1.0).abs() < 0.2, "{same} {slower}");
}

fn fail(run: &mut Run, case: usize, from_round: u32) {
    run.samples.retain(|sample| sample.case() != case || sample.round() < from_round);
    run.failures.push(Failure { case, round: from_round, message: "out of it".into() });
}

/// A case that cannot be measured neither keeps the others going nor is ignored by a gate.
#[test]
fn what_failed_stops_nobody_and_is_lost_to_the_new_side_only() {
    let whole = || full_speed(|_| {});
    assert!(compare(&whole(), &whole()).worst_precision().is_some());
    for from_round in [0, 3] {
        let failed = || full_speed(|run| fail(run, 2, from_round));
        let comparison = compare(&whole(), &failed());
        let [LostCase { title, why }] = comparison.lost_cases()[..] else {
            panic!("{:?}", comparison.lost_cases())
        };
        assert_eq!(title, "ring of 4");
        assert!(why.contains("out of it"), "{why}");
        assert!(comparison.worst_precision().is_some(), "{from_round}");
        assert_eq!(compare(&failed(), &whole()).lost_cases(), []);
        let both_failed = compare(&failed(), &failed());
        assert_eq!(both_failed.lost_cases().len(), usize::from(from_round > 0));
    }
    // A failure that left an interval has lost nothing.
    let once = full_speed(|run| fail(run, 2, 11));
    assert_eq!(compare(&whole(), &once).lost_cases(), []);
    // A case that was never planned was not lost, but left out by whoever planned it.
    let smaller = full_speed(|run| run.header.plan.cases.truncate(2));
    assert_eq!(compare(&whole(), &smaller).lost_cases(), []);
}

#[test]
fn cases_that_differ_are_listed_and_a_cpu_of_another_number_is_told() {
    for placement in
        [Placement::Same { cpu: 7 }, Placement::Pinned { cpus: vec![7], relation: None }]
    {
        let comparison = compare(&results(|_| {}), &on_another_cpu(&placement));
        let mut unpaired = Vec::new();
        for case in &comparison.unpaired {
            unpaired.push((case.in_base, &*case.title));
        }
        assert_eq!(unpaired, [(false, "ring of 16"), (true, "ring of 4")]);
        assert_eq!(comparison.changes.len(), 2);
        let warnings = &comparison.conditions.warnings;
        let is_told =
            warnings.iter().any(|warning| warning.starts_with("measured on different CPU"));
        assert!(is_told, "{warnings:?}");
    }
}

/// Returns a run whose rings are placed there, with one of 16 in place of the one of 4.
fn on_another_cpu(placement: &Placement) -> Results {
    results(|run| {
        for (number, case) in run.header.plan.cases.iter_mut().enumerate() {
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
    let Conditions { bearing, program, warnings, .. } =
        compare(&results(|_| {}), &other).conditions;
    let fields: Vec<&str> = bearing.iter().map(|difference| &*difference.field).collect();
    assert_eq!(fields, ["kernel.release", "virtualization.hypervisor_type"]);
    let words = "kernel, virtualization differ, and the ratio";
    assert!(warnings.iter().any(|warning| warning.contains(words)), "{warnings:?}");
    assert_eq!(program[0].field, "build.profile");
}

#[test]
fn a_published_machine_is_compared_by_hops_and_has_no_interval_of_its_own() {
    let sun = sun_results();
    let comparison = compare(&sun, &results(|_| {}));
    assert_eq!(titles(&comparison), ["ring of 2", "ring of 4"]);
    for change in &comparison.changes {
        assert_eq!(change.quantity, Quantity::NsPerHop);
        assert_eq!((change.base_rounds, change.new_rounds), (None, Some(6)));
        assert!(change.ratio.value < Some(0.1) && change.ratio.low.is_some(), "{change:?}");
    }
    assert_eq!(comparison.changes[0].base_ns, 647_000.0);
    let end = format!("is of {}", comparison.new.label);
    assert!(comparison.conditions.warnings[0].ends_with(&end));
    let no_interval = ChangeAnswer::CannotTell { reason: UndecidedReason::NoInterval, more: None };
    for change in compare(&sun, &sun_results()).changes {
        assert_eq!(change.answer, no_interval);
    }
}

/// Makes a run a half of a session.
fn join_session(run: &mut Run, arm: Arm, prefix: &[&str]) {
    let prefix = prefix.iter().map(|word| word.to_string()).collect();
    let (id, other) = ("s".to_string(), "other".to_string());
    run.header.session = Some(SessionHalf { id, arm, prefix, other, setting: None, command: None });
}

#[test]
fn halves_of_a_session_are_paired_in_spite_of_their_policy() {
    let half = |arm: Arm, policy: Policy| {
        results(move |run| {
            join_session(run, arm, &[]);
            set_all_policies(run, policy);
        })
    };
    let (a, b) = (half(Arm::A, Policy::Other), half(Arm::B, Policy::Fifo));
    let halves = compare(&a, &b);
    assert_eq!((halves.paired, halves.changes.len(), halves.unpaired.len()), (true, 3, 0));
    assert!(!compare(&a, &half(Arm::A, Policy::Other)).paired);
    let fifo_solo = results(|run| set_policy(&mut run.header.plan.cases[0], Policy::Fifo));
    let separate = compare(&a, &fifo_solo);
    assert_eq!((separate.paired, separate.changes.len()), (false, 2));
}

/// Returns a half of a session whose worker was started by `prefix`.
/// Returns the results of a run under a scheduler of that name.
fn under_scheduler(name: &str) -> Results {
    results(|run| {
        let scheduler = &mut run.header.machine.scheduler;
        scheduler.name = Reading::Known(name.to_string());
        let state = if name == "kernel" { "disabled" } else { "enabled" };
        let state = Reading::Known(state.to_string());
        scheduler.sched_ext = Reading::Known(SchedExt { state, ..SchedExt::default() });
        let delays = Reading::Known([("DELAY_DEQUEUE".to_string(), true)].into());
        scheduler.features = delays;
    })
}

#[test]
fn another_scheduler_is_named_and_is_one_change() {
    let (kernel, lavd) = (under_scheduler("kernel"), under_scheduler("lavd_1.0.5"));
    let Conditions { bearing, warnings, .. } = compare(&kernel, &lavd).conditions;
    let fields: Vec<&str> = bearing.iter().map(|difference| &*difference.field).collect();
    assert_eq!(fields, ["scheduler.name", "scheduler.sched_ext.state"]);
    assert!(!warnings.iter().any(|warning| warning.contains("one change")), "{warnings:?}");

    // A run that is older than the field says nothing.
    let old = results(|run| run.header.machine.scheduler = SchedulerSettings::default());
    assert_eq!(compare(&old, &lavd).conditions.bearing, []);
}

#[test]
fn a_setting_of_the_machine_that_is_asked_for_is_no_second_change() {
    let across = |base: &Results, new: &Results, setting| {
        let terms = ComparisonTerms { across: Some(setting), ..terms() };
        Comparison::from_results(base, new, terms).conditions.warnings
    };
    let mut other = under_scheduler("simple");
    other.machine.kernel.preemption.model = Reading::Known(PreemptionModel::Lazy);
    let kernel = under_scheduler("kernel");
    let (one, both) = (ComparedSetting::Preemption, None);
    let warns_of = |warnings: &[String], words: &str| warnings.iter().any(|w| w.contains(words));
    assert!(!warns_of(&across(&kernel, &other, one), "differ, and"), "only the scheduler is left");
    let terms = ComparisonTerms { across: both, ..terms() };
    let warnings = Comparison::from_results(&kernel, &other, terms).conditions.warnings;
    assert!(warns_of(&warnings, "scheduler, preemption differ, and"), "{warnings:?}");

    let same = across(&kernel, &kernel, ComparedSetting::Features);
    assert!(warns_of(&same, "--across features: it does not differ between the two"), "{same:?}");
    let unknown = across(&kernel, &kernel, ComparedSetting::Governor);
    let words = "--across governor: it is not known of the first run";
    assert!(warns_of(&unknown, words) || warns_of(&unknown, "does not differ"), "{unknown:?}");
}

fn half(arm: Arm, prefix: &[&str], policy: Policy) -> Results {
    full_speed(move |run| {
        join_session(run, arm, prefix);
        set_all_policies(run, policy);
    })
}

#[test]
fn fifo_is_not_advised_where_a_prefix_sets_a_priority() {
    let is_advised = |prefix: &[&str], typed: &[&str]| {
        let new = disturb(half(Arm::B, prefix, Policy::Other), "other");
        let comparison = compare(&half(Arm::A, &[], Policy::Other), &new);
        assert!(comparison.in_words.contains("no prefix"), "{}", comparison.in_words);
        let typed: Vec<String> = typed.iter().map(|word| word.to_string()).collect();
        comparison.would_fifo_help(&typed)
    };
    assert!(is_advised(&["taskset", "-c", "1"], &[]));
    for setter in [&["/usr/bin/nice", "-n", "10"][..], &["env", "A=b", "chrt", "-b", "0"]] {
        assert!(!is_advised(setter, &[]), "{setter:?}");
        assert!(!is_advised(&["env", "masked"], setter), "{setter:?}");
    }
}

#[test]
fn nice_under_fifo_is_told_to_have_no_effect() {
    let policy_without_nice = |prefix: &[&str], policy: Policy| {
        let comparison = compare(&half(Arm::A, &[], policy), &half(Arm::B, prefix, policy));
        comparison.policy_without_nice(&[]).map(str::to_string)
    };
    let nice = ["nice", "-n", "10"];
    assert_eq!(policy_without_nice(&nice, Policy::Fifo).as_deref(), Some("fifo"));
    assert_eq!(policy_without_nice(&nice, Policy::Other), None);
    assert_eq!(policy_without_nice(&["chrt", "-f", "1"], Policy::Fifo), None);
}

/// Returns a run whose reference quanta took `factor` times as long.
fn at_slower_clock(factor: f64) -> Results {
    full_speed(move |run| {
        run.header.build.target = "x86_64-unknown-linux-gnu".to_string();
        for sample in run.samples.iter_mut().filter_map(Sample::ring_mut) {
            let Some(slices) = &mut sample.slices else { continue };
            for ns in slices.latency_ns.iter_mut().chain(&mut slices.throughput_ns) {
                *ns = (f64::from(*ns) * factor) as u32;
            }
        }
    })
}

/// The comparison says beside its answer that the same work took more time as the clock was slower.
#[test]
fn another_clock_is_told() {
    assert_eq!(compare(&at_slower_clock(1.0), &at_slower_clock(1.005)).clocks, None);
    let clocks = compare(&at_slower_clock(1.0), &at_slower_clock(1.05)).clocks;
    let words = clocks.expect("two clocks").in_words;
    let start = "the core's clock was 4.8 % lower in new (3.51 GHz, 3.69 in base)";
    assert!(words.starts_with(start), "{words}");
}

#[test]
fn the_ratio_beside_figures_that_do_not_hold_is_theirs() {
    let [base, new] = [1.0, 3.0].map(|factor| full_speed(|run| slow_down(run, factor)));
    let tested = compare(&base, &new).changes.remove(0);
    assert_eq!(tested.ratio_told(), tested.ratio.value);
    let answer = ChangeAnswer::CannotTell { reason: UndecidedReason::NotAlone, more: None };
    let seen = CaseChange { answer, base_ns: 2.0, new_ns: 5.0, ..tested };
    assert_eq!(seen.ratio_told(), Some(2.5));
    assert_eq!(CaseChange { base_ns: 0.0, ..seen }.ratio_told(), None);
}

#[test]
fn a_session_on_a_shared_core_tells_its_interval_without_a_verdict() {
    let seen = |arm: Arm, factor: f64| {
        let mut half = full_speed(move |run| {
            join_session(run, arm, &[]);
            slow_down(run, factor);
        });
        change_estimates(&mut half, "other", |estimate| estimate.speed = Speed::Contended);
        half
    };
    let base = seen(Arm::A, 1.0);
    let slower = compare(&base, &seen(Arm::B, 1.1));
    let change = &slower.changes[0];
    let (low, high) = change.interval_as_seen().unwrap();
    assert!(low > 1.09 && high < 1.11, "{low} to {high}");
    assert_eq!(change.ratio_told(), change.ratio.value);
    assert!(change.reason().is_some(), "no verdict: {:?}", change.answer);
    assert_eq!(slower.gate.verdict, GateVerdict::Undecided);
    let separate = compare(&base, &seen(Arm::A, 1.1));
    assert_eq!(separate.changes[0].interval_as_seen(), None);
}

fn with_label(mut results: Results, label: &str) -> Results {
    results.side.label = label.to_string();
    results
}

/// A gate tells which of its open cases the answer does not count, and every reason has a verb.
#[test]
fn a_gate_and_the_answer_count_the_same_cases_or_tell_the_difference() {
    let base = full_speed(|_| {});
    let disturbed = with_label(disturb(full_speed(|_| {}), "other"), "new3");
    let undecided = compare(&base, &disturbed);
    assert!(undecided.in_words.contains("undecided in both cases"), "{}", undecided.in_words);
    let summary = "UNDECIDED: 3 of 3 cases are open (1 ring of one among them)";
    assert_eq!(undecided.gate.summary, summary);
    let terms = ComparisonTerms { limit: 1e-4, ..terms() };
    let near = Comparison::from_results(&base, &full_speed(|run| slow_down(run, 1.02)), terms);
    for reason in &near.gate.reasons {
        assert!(reason.contains(" is ") || reason.contains(" may be up to "), "{reason}");
    }
    let slow = compare(&base, &full_speed(|run| slow_down(run, 3.0))).gate;
    assert!(slow.brief.contains(" % slower ("), "{}", slow.brief);
    assert!(slow.reasons.iter().all(|reason| reason.contains(" is ")), "{slow:?}");
}

#[test]
fn sentences_use_the_labels_of_the_sides() {
    let mut old = with_label(full_speed(|_| {}), "old");
    let failed = with_label(full_speed(|run| fail(run, 2, 0)), "new3");
    let gate = compare(&old, &failed).gate;
    let first = &gate.reasons[0];
    assert!(first.starts_with("ring of 4 was measured in old only: "), "{first}");
    assert!(first.contains("nothing was measured of it in new3"), "{first}");
    let mut slow = with_label(full_speed(|_| {}), "new3");
    slow.clock_ghz = Some(2.0);
    old.clock_ghz = Some(4.0);
    let clocks = compare(&old, &slow).clocks.expect("two clocks").in_words;
    assert!(clocks.contains("50.0 % lower in new3 (2.00 GHz, 4.00 in old)"), "{clocks}");
}

#[test]
fn the_same_case_of_two_experiments_has_two_titles() {
    let twice = || {
        let mut results = full_speed(|_| {});
        for case in full_speed(|_| {}).cases {
            results.cases.push(CaseResults { experiment: Experiment::Cost.name(), ..case });
        }
        results
    };
    let comparison = compare(&twice(), &twice());
    assert_eq!(titles(&comparison)[1], "ring of 2, in ring");
    assert_eq!(titles(&comparison)[4], "ring of 2, in cost");
}
