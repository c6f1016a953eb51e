//! A run of several experiments, made from a run of rings and one of trials: its parts say what
//! those say, and a file whose parts do not fit its cases is refused.

// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

use analysis::record::{RingRecord, TrialRecord};
use analysis::results::Results;
use analysis::trend::{PlannedCases, choose};
use rundata::experiment::Experiment;
use rundata::plan::Plan;
use rundata::run::{Failure, Run, RunFileLine};
use serde_json::{Value, json};

const RINGS: &str = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
const TRIALS: &str = include_str!("../../../rundata/tests/fixtures/trials-v1.jsonl");

/// The runs of the two fixtures.
fn single_runs() -> [Run; 2] {
    [RINGS, TRIALS].map(|text| Run::parse(text).unwrap())
}

/// The same cases with the same samples as one run. A notice is of the second part.
fn whole_run() -> Run {
    let [rings, trials] = single_runs();
    let first = rings.header.plan.cases.len();
    let mut header = rings.header.clone();
    let (seed, stopping) = (header.plan.seed, header.plan.stopping.clone());
    let plans = [&rings, &trials].map(|run| (run.header.plan.clone(), Vec::new()));
    header.plan = Plan::from_parts(plans.into(), seed, stopping);
    header.plan.parts[1].notices.push("no clock".into());
    header.notices = vec!["moved".into(), "no clock".into()];
    let mut whole = Run::new(header);
    whole.samples = rings.samples.clone();
    for sample in &trials.samples {
        whole.samples.push(sample.clone().with_case(first + sample.case()));
    }
    whole.failures.push(Failure { case: first, round: 2, message: "once".to_string() });
    whole.end.clone_from(&rings.end);
    whole
}

fn text_of(run: &Run) -> String {
    let experiment = run.header.plan.experiment;
    let mut lines = vec![RunFileLine::Header(Box::new(run.header.clone()))];
    lines.extend(run.samples.iter().cloned().map(RunFileLine::Sample));
    lines.extend(run.failures.iter().cloned().map(RunFileLine::Failure));
    lines.extend(run.end.clone().map(RunFileLine::End));
    let text = |line: &RunFileLine| line.to_text(experiment).unwrap() + "\n";
    lines.iter().map(text).collect()
}

#[test]
fn each_part_says_what_a_run_of_its_experiment_says() {
    let whole = whole_run();
    let [rings, trials] = single_runs();
    let parts = analysis::parts::part_runs(&whole);
    assert_eq!(parts.len(), 2);
    let [of_rings, of_trials] = &parts[..] else { unreachable!() };
    assert_eq!((&of_rings.samples, &of_trials.samples), (&rings.samples, &trials.samples));
    assert_eq!(of_rings.header.plan.cases, rings.header.plan.cases);
    assert_eq!(of_trials.header.plan.batching, trials.header.plan.batching);
    assert_eq!(of_trials.header.plan.experiment, trials.header.plan.experiment);
    assert_eq!(RingRecord::from_run(of_rings).cases, RingRecord::from_run(&rings).cases);
    let measures = |run: &Run| -> Vec<_> {
        TrialRecord::from_run(run).cases.into_iter().map(|case| case.quantities).collect()
    };
    assert_eq!(measures(of_trials), measures(&trials));
    // Failures have the numbers of the part, notices are where they belong.
    assert!(of_rings.failures.is_empty());
    assert_eq!(of_trials.failures[0].case, 0);
    assert_eq!(of_rings.header.notices, ["moved".into()]);
    assert_eq!(of_trials.header.notices, ["moved".into(), "no clock".into()]);
    assert_eq!(
        analysis::parts::part_runs(&rings),
        std::slice::from_ref(&rings),
        "a run of one experiment is its only part"
    );
}

#[test]
fn it_is_read_as_it_was_written() {
    let whole = whole_run();
    let read = Run::parse(&text_of(&whole)).unwrap();
    assert_eq!((&read.header, &read.samples), (&whole.header, &whole.samples));
    assert_eq!(read.failures, whole.failures);
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
}

#[test]
fn a_comparison_and_a_trend_have_the_cases_of_all_parts() {
    let whole = whole_run();
    let [rings, trials] = single_runs();
    let results = Results::from_run(&whole);
    let [of_rings, of_trials] = [&rings, &trials].map(Results::from_run);
    assert_eq!(results.cases.len(), of_rings.cases.len() + of_trials.cases.len());
    let first = rings.header.plan.cases.len();
    let behind: Vec<usize> = results.cases.iter().map(|case| case.number).collect();
    assert!(behind.is_sorted() && behind.contains(&first), "{behind:?}");
    assert_eq!(results.cases[1].experiment, Experiment::Ring.name());
    assert_eq!(results.cases[1].figures, of_rings.cases[1].figures);
    assert_eq!(results.side.experiment, "measure");
    // The ring of two is the same case as in a run of `ring`.
    let planned = [&whole, &rings].map(|run| PlannedCases::from_plan(&run.header.plan));
    let case = choose(&planned, &[]).unwrap();
    assert_eq!((case.experiment, case.title.as_str()), (Experiment::Ring, "ring of 2"));
    assert!(planned.iter().all(|plan| plan.has(&case)));
}

#[test]
fn parts_that_do_not_fit_the_cases_are_refused_by_name() {
    let text = text_of(&whole_run());
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut header = header.clone();
        change(&mut header["header"]["plan"]);
        Run::parse(&header.to_string()).map_or_else(|error| error.to_string(), |_| "read".into())
    };
    let cases = header["header"]["plan"]["cases"].as_array().unwrap().len();
    let of_part = |part: usize, name: &'static str, value: Value| {
        refused(&|plan| plan["parts"][part][name] = value.clone())
    };
    for (why, told) in [
        (refused(&|_| ()), "read".to_string()),
        (of_part(0, "cases", json!(1)), "case".to_string()),
        (of_part(1, "cases", json!(1)), format!("the plan has {cases}")),
        (of_part(1, "cases", json!(u64::MAX)), "number of cases of a part is".to_string()),
        (of_part(1, "cases", json!(cases)), format!("the plan has {cases}")),
        (of_part(0, "cases", json!(0)), "number of cases of a part is 0".to_string()),
        (of_part(1, "experiment", json!("measure")), "measure cannot be a part".to_string()),
        (of_part(1, "experiment", json!("ring")), "ring cannot be a part".to_string()),
        (of_part(1, "experiment", json!("cost")), "cost has no such case".to_string()),
        (refused(&|plan| plan["parts"] = json!([])), "they have 0 cases".to_string()),
        (
            refused(&|plan| plan["parts"][0]["batching"]["ring"]["slice_ns"] = json!(0)),
            "slice_ns is 0".to_string(),
        ),
    ] {
        assert!(why.contains(&told), "no {told:?} in {why}");
    }
    let mut ring: Value = serde_json::from_str(RINGS.lines().next().unwrap()).unwrap();
    ring["header"]["plan"]["parts"] = header["header"]["plan"]["parts"].clone();
    let why = Run::parse(&ring.to_string()).unwrap_err().to_string();
    assert!(why.contains("a plan of ring has no parts"), "{why}");
}
