//! Comparisons of traces: one case a figure, told as higher or lower.

use rundata::trial::Trial;
use rundata::trial::switches::TracedTasks;

use super::*;
use crate::findings::trace::tests::{Second, traced_run};

/// Builds the seconds of a trace: some rate, scattered a little, and waits in one bin.
fn seconds(voluntary: i64, wait_ns: i64) -> Vec<Second> {
    let mut seconds = Vec::new();
    for second in 0..20 {
        let voluntary = voluntary + second % 3;
        seconds.push(Second { voluntary, preempted: 0, waits: vec![(wait_ns, 1000)] });
    }
    seconds
}

fn compared(base: &[Second], new: &[Second]) -> Comparison {
    let [base, new] = [("before", base), ("after", new)]
        .map(|(name, seconds)| Results::from_run(&traced_run(name, seconds)));
    Comparison::from_results(&base, &new, terms())
}

fn change<'a>(comparison: &'a Comparison, figure: &str) -> &'a CaseChange {
    let mut changes = comparison.changes.iter();
    let found = changes.find(|change| change.labels["figure"] == figure);
    found.unwrap_or_else(|| panic!("{figure} of {:?}", comparison.changes))
}

#[test]
fn each_figure_of_two_traces_is_a_case() {
    let comparison = compared(&seconds(1000, 1024), &seconds(3000, 8192));
    let mut figures = Vec::new();
    for change in &comparison.changes {
        figures.push(change.labels["figure"].as_str());
    }
    let expected =
        ["wait-p50", "wait-p99", "voluntary", "preempted", "yielded", "migrations", "busiest-cpu"];
    assert_eq!((figures, comparison.unpaired.len()), (expected.to_vec(), 0));
    let rate = change(&comparison, "voluntary");
    assert_eq!((rate.quantity, rate.base_rounds), (Quantity::PerSecond, Some(20)));
    assert_eq!(rate.answer, ChangeAnswer::Changed { worse: true, beyond_limit: true });
    assert!(rate.in_words.starts_with("changed: 3.00x higher"), "{}", rate.in_words);
    // Waits are eight times as long in each bin.
    let wait = change(&comparison, "wait-p99");
    assert_eq!(wait.quantity, Quantity::QueueWaitNs);
    assert!(wait.ratio.value.is_some_and(|ratio| (ratio - 8.0).abs() < 1e-9), "{wait:?}");
    let words = comparison.in_words.as_str();
    assert!(words.contains("higher in 3") && words.contains("8.00x higher"), "{words}");
    assert!(!words.contains("slower") && !words.contains("faster"), "{words}");
}

#[test]
fn what_never_happened_is_the_same() {
    let comparison = compared(&seconds(1000, 1024), &seconds(1000, 1024));
    assert_eq!(change(&comparison, "preempted").answer, ChangeAnswer::NotChanged);
}

/// The interval has a term for the scatter between traces: a tenth is not told from none.
#[test]
fn a_small_difference_of_two_traces_is_not_decided() {
    let comparison = compared(&seconds(1000, 1024), &seconds(1100, 1024));
    let rate = change(&comparison, "voluntary");
    assert!(matches!(rate.answer, ChangeAnswer::CannotTell { .. }), "{rate:?}");
    let why = rate.why_undecided(["a", "b"]);
    assert_eq!(why.as_deref(), Some("longer traces would not decide it"));
}

/// Builds the results of several traces as one side, each with a rate of its own.
fn one_side(rates: &[i64]) -> Results {
    let mut traces = Vec::new();
    for (number, rate) in rates.iter().enumerate() {
        let run = traced_run(&format!("trace-{number}"), &seconds(*rate, 1024));
        traces.push(Results::from_run(&run));
    }
    Results::from_launches(traces).expect("traces")
}

/// Four traces are taken to scatter by 7 %; five by what they do, less or more.
#[test]
fn five_traces_on_each_side_show_their_scatter() {
    assert!(!are_more(&[1000; 4], &[1100; 4]));
    assert!(!are_more(&[1000; 5], &[1100; 4]));
    assert!(are_more(&[1000; 5], &[1100; 5]));
    // Their mean is 1,000 and 1,250.
    let (scattered, more) = ([600, 1400, 1000, 700, 1300], [800, 1700, 1200, 950, 1600]);
    assert!(are_more(&[1000; 5], &[1250; 5]) && !are_more(&scattered, &more));
}

/// Returns whether traces of the new rates are found to have more switches.
fn are_more(base: &[i64], new: &[i64]) -> bool {
    let comparison = Comparison::from_results(&one_side(base), &one_side(new), terms());
    matches!(change(&comparison, "voluntary").answer, ChangeAnswer::Changed { worse: true, .. })
}

/// Three seconds of twenty have nearly all switches: the rate is known to a factor, and not zero.
#[test]
fn a_rate_that_is_known_to_a_factor_takes_a_longer_trace() {
    let mut bursts = seconds(10, 1024);
    for second in [3, 9, 15] {
        bursts[second].voluntary = 3000;
    }
    let comparison = compared(&seconds(1000, 1024), &bursts);
    let rate = change(&comparison, "voluntary");
    let (low, high) = rate.ratio.interval().expect("an interval");
    assert!(low > 0.0 && low < 0.3 && high > 1.0, "{low} to {high}");
    let (reason, more) = (UndecidedReason::TooWide, Some(MoreNeeded::LongerTraces));
    assert_eq!(rate.answer, ChangeAnswer::CannotTell { reason, more });
    assert_eq!(rate.why_undecided(["a", "b"]).as_deref(), Some("trace longer"));
}

/// Builds a trace of ten seconds with so many preemptions by tasks of each name in a second.
fn preempted(name: &str, by: &[(&str, i64)]) -> Results {
    let mut run = traced_run(name, &seconds(1000, 1024)[..10]);
    for sample in &mut run.samples {
        let Sample::Trial(sample) = sample else { panic!("a part") };
        for (name, count) in by {
            sample.counts.insert(format!("preempted_by:{name}"), *count);
            *sample.counts.get_mut("preempted").expect("a count") += count;
        }
    }
    Results::from_run(&run)
}

fn preempters(comparison: &Comparison) -> Vec<(&str, f64, f64)> {
    let mut found = Vec::new();
    for change in &comparison.changes {
        if let Some(name) = change.labels["figure"].strip_prefix("preempted-by:") {
            found.push((name, change.base_ns.round(), change.new_ns.round()));
        }
    }
    found
}

/// Eight tasks preempted more often in one of the traces than the ninth, which is alone in the other.
#[test]
fn preempters_are_those_of_both_sides_and_absent_ones_are_zero() {
    let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| (name, 5));
    let base = preempted("before", &[&many[..], &[("rare", 1)]].concat());
    let new = preempted("after", &[("rare", 40), ("a", 5)]);
    let comparison = Comparison::from_results(&base, &new, terms());
    let expected = [("rare", 1.0, 40.0), ("a", 5.0, 5.0), ("b", 5.0, 0.0), ("c", 5.0, 0.0)];
    assert_eq!(preempters(&comparison)[..4], expected);
    assert_eq!((preempters(&comparison).len(), comparison.unpaired.len()), (8, 0));
    let absent = change(&comparison, "preempted-by:b");
    let why = absent.why_undecided(["before", "after"]);
    assert_eq!(why.as_deref(), Some("none was counted in after"));
    assert!(absent.is_none_on_one_side() && absent.in_words.contains("none was counted in new"));
    // Of three traces the same tasks are compared in each pair.
    let third = preempted("third", &[("z", 7)]);
    let common = with_common_preempters(&[&base, &new, &third]).expect("traces");
    for side in &common {
        let figures: Vec<_> = side.cases.iter().filter_map(|case| case.label("figure")).collect();
        assert_eq!(figures[7..10], ["preempted-by:rare", "preempted-by:a", "preempted-by:z"]);
        assert_eq!(figures.len(), 7 + 8);
    }
}

/// Without names nothing is said of who preempted.
#[test]
fn a_trace_without_names_has_no_preempters_that_are_zero() {
    let base = preempted("before", &[("a", 5)]);
    let mut seconds = seconds(1000, 1024);
    for second in &mut seconds {
        second.preempted = 5;
    }
    let new = Results::from_run(&traced_run("after", &seconds));
    let comparison = Comparison::from_results(&base, &new, terms());
    assert_eq!((preempters(&comparison), comparison.unpaired.len()), (Vec::new(), 1));
    // Where nobody was preempted, each is zero.
    let calm = preempted("calm", &[]);
    let comparison = Comparison::from_results(&base, &calm, terms());
    assert_eq!(preempters(&comparison), [("a", 5.0, 0.0)]);
}

#[test]
fn one_part_decides_nothing() {
    let comparison = compared(&seconds(1000, 1024)[..1], &seconds(9000, 8192)[..1]);
    for change in &comparison.changes {
        let is_same = change.answer == ChangeAnswer::NotChanged;
        let has_few = change.why_undecided(["a", "b"]).is_some_and(|why| why.contains("too few"));
        assert!(is_same && change.base_ns == 0.0 || has_few, "{change:?}");
    }
}

#[test]
fn a_rate_that_is_not_resolved_is_no_cost() {
    let mut rare = seconds(0, 1024);
    for (number, second) in rare.iter_mut().enumerate() {
        second.voluntary = if number == 3 { 1000 } else { 0 };
    }
    let comparison = compared(&seconds(1000, 1024), &rare);
    let words = change(&comparison, "voluntary").why_undecided(["a", "b"]).expect("no answer");
    assert!(words.ends_with(" of b is not resolved; trace longer"), "{words}");
    assert!(!words.contains("cost"), "{words}");
}

#[test]
fn traces_of_other_tasks_have_no_case_in_common() {
    let mut run = traced_run("a", &seconds(1000, 1024));
    let Case::Trial(case) = &mut run.header.plan.cases[0] else { panic!("a trial") };
    let Trial::Switches(trace) = &mut case.trial else { panic!("a trace") };
    trace.tasks = TracedTasks::Processes;
    let machine = Results::from_run(&traced_run("b", &seconds(1000, 1024)));
    let comparison = Comparison::from_results(&Results::from_run(&run), &machine, terms());
    assert_eq!(comparison.changes.len(), 0);
}
