//! Run files: one of every schema version stays readable, whatever befell it.

use analysis::record::RingRecord;
use proptest::prelude::*;
use rundata::case::{Sample, rings};
use rundata::run::{Run, RunFileReader, StopReason};

/// Two rings and their solo, 6 rounds of 3 samples of 200 laps, on the 2-CPU test machine.
const V1: &str = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");

#[test]
fn version_1_is_read_whole() {
    let run = Run::parse(V1).unwrap();
    assert_eq!(run.header.schema, 1);
    assert_eq!(run.samples.len(), 3 * 6 * 3);
    assert_eq!(run.end.as_ref().map(|end| end.reason), Some(StopReason::RoundsDone));
    assert_eq!((run.warnings.len(), run.failures.len()), (0, 0));
    assert_eq!(run.competing_tasks, None, "written before anybody looked");
    for sample in rings(&run.samples) {
        let members = run.header.plan.ring(sample.case).map(|case| case.members);
        assert_eq!(Some(sample.hops), members.map(|members| 200 * u64::from(members)));
    }
}

#[test]
fn the_record_of_version_1_has_its_figures() {
    let record = RingRecord::from_run(&Run::parse(V1).unwrap());
    let [solo, two, four] = &record.cases[..] else { panic!("three cases") };
    assert_eq!((solo.rounds, two.samples, four.case.members), (6, 18, 4));
    // Counts are laws: alone nothing switches, two switch once a hop.
    assert!(solo.switches_per_hop.unwrap().value < 0.05);
    assert!((two.switches_per_hop.unwrap().value - 1.0).abs() < 0.01);
    assert!(solo.ns_per_switch_above_solo.is_none() && solo.projected_cpu_ns_per_lap.is_none());
    let cost = two.ns_per_switch_above_solo.unwrap();
    assert!(cost.resolved && cost.low.unwrap() < cost.value && cost.value < cost.high.unwrap());
    // Sloan's projection: the ring of two projects onto itself and twice that onto four.
    let totals = two.totals.unwrap();
    let per_lap = totals.cpu_ns as f64 / totals.laps as f64;
    assert_eq!(two.projected_cpu_ns_per_lap, Some(per_lap));
    assert_eq!(four.projected_cpu_ns_per_lap, Some(2.0 * per_lap));
    assert_eq!(record.found.scaling[0].cases, [1, 2]);
    assert!(record.found.scaling[0].in_words.starts_with("inconclusive"), "two sizes are no law");
    assert_eq!(
        RingRecord::from_run(&Run::parse(V1).unwrap()),
        record,
        "the same samples, the same record"
    );
}

#[test]
fn a_negative_difference_is_recorded_as_negative_and_not_resolved_around_zero() {
    let mut run = Run::parse(V1).unwrap();
    // The ring made as fast as half of its solo: a cost below zero, and clearly so.
    for sample in
        run.samples.iter_mut().filter_map(Sample::ring_mut).filter(|sample| sample.case == 1)
    {
        sample.elapsed_ns = sample.hops * 400;
    }
    for sample in
        run.samples.iter_mut().filter_map(Sample::ring_mut).filter(|sample| sample.case == 0)
    {
        sample.elapsed_ns = sample.hops * 800;
    }
    let cost = RingRecord::from_run(&run).cases[1].ns_per_switch_above_solo.unwrap();
    assert!((cost.value + 400.0).abs() < 5.0 && cost.high.unwrap() < 0.0 && cost.resolved);
    // As fast as the solo, give or take: not resolved.
    for sample in
        run.samples.iter_mut().filter_map(Sample::ring_mut).filter(|sample| sample.case == 1)
    {
        let wobble = if sample.round % 2 == 0 { 20 } else { 0 };
        sample.elapsed_ns = sample.hops * (790 + wobble);
    }
    let cost = RingRecord::from_run(&run).cases[1].ns_per_switch_above_solo.unwrap();
    assert!(!cost.resolved && cost.low.unwrap() < 0.0 && cost.high.unwrap() > 0.0);
}

#[test]
fn a_ring_that_does_not_switch_has_no_cost_of_a_switch() {
    let mut run = Run::parse(V1).unwrap();
    // As by coroutines: all that the kernel counts are the strays of something else on the CPU.
    for sample in
        run.samples.iter_mut().filter_map(Sample::ring_mut).filter(|sample| sample.case > 0)
    {
        sample.counters.voluntary = 0;
        sample.counters.involuntary = 1 + u64::from(sample.round % 2);
    }
    let record = RingRecord::from_run(&run);
    let [solo, two, four] = &record.cases[..] else { panic!("three cases") };
    assert!(!solo.does_not_switch && two.does_not_switch && four.does_not_switch);
    for ring in [two, four] {
        assert_eq!(ring.ns_per_switch_above_solo, None);
        assert_eq!(ring.cpu_ns_per_switch_above_solo, None);
        assert_eq!(ring.headline(), ring.ns_per_hop.as_ref());
    }
    // No law, and a run that can become precise: by its hops.
    assert_eq!(record.found.scaling, []);
    let widest = [solo, two, four].map(|c| c.ns_per_hop.unwrap().relative_half_width().unwrap());
    let widest = widest.into_iter().reduce(f64::max);
    assert_eq!(analysis::summary::worst_precision(&record.cases), widest);
    // One switch in ten hops is a ring that switches.
    for sample in
        run.samples.iter_mut().filter_map(Sample::ring_mut).filter(|sample| sample.case == 1)
    {
        sample.counters.voluntary = sample.hops / 10;
        sample.counters.involuntary = 0;
    }
    let two = &RingRecord::from_run(&run).cases[1];
    assert!(!two.does_not_switch && two.ns_per_switch_above_solo.is_some());
}

#[test]
fn quick_measurements_of_older_files_are_known_by_their_notice() {
    let is_quick = |notices: &[&str], is_stored: bool| {
        let (header, lines) = V1.split_once('\n').unwrap();
        let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
        header["header"]["notices"] = notices.into();
        if is_stored {
            header["header"]["is_quick"] = true.into();
        }
        Run::parse(&format!("{header}\n{lines}")).unwrap().header.is_quick
    };
    assert!(!is_quick(&[], false));
    assert!(!is_quick(&["a quick note"], false));
    assert!(is_quick(&["another", "a quick measurement of `switchcost run`"], false));
    assert!(is_quick(&[], true));
}

#[test]
fn a_killed_run_loses_its_last_line_at_most() {
    let whole = Run::parse(V1).unwrap();
    let cut = &V1[..V1.len() - 100];
    let run = Run::parse(cut).unwrap();
    assert_eq!((run.end.is_none(), run.warnings.len()), (true, 1));
    assert_eq!(run.samples[..], whole.samples[..run.samples.len()]);
    assert!(run.warnings[0].contains("cut off"), "{:?}", run.warnings);
}

/// A file from before the line had it keeps what the plan has.
#[test]
fn a_resumed_run_is_read_by_what_was_known_when_it_went_on() {
    let stopping = r#"{"precision":0.01,"budget_ns":9,"rounds":null,"confidence":0.95}"#;
    let reference = |known: &str| {
        let line = format!(
            r#"{{"resumed":{{"at":"2026-01-01T00:00:00Z","spent_ns":1,"stopping":{stopping},"differences":[]{known}}}}}"#
        );
        let run = Run::parse(&format!("{V1}{line}\n")).unwrap();
        (run.header.plan.reference.unshared_ratio, run.resumed.len(), run.warnings.len())
    };
    assert_eq!(reference(""), (None, 1, 0));
    assert_eq!(reference(r#","reference":{"unshared_ratio":0.9}"#), (Some(0.9), 1, 0));
    assert_eq!(reference(r#","reference":{"unshared_ratio":-1}"#), (None, 0, 1), "not meant");
}

/// One that was killed after that is told from one that is done; what it had spent is known.
#[test]
fn a_run_that_went_on_has_not_ended_until_it_ends_again() {
    let end = V1.lines().last().filter(|line| line.starts_with(r#"{"end":"#)).unwrap();
    let went_on = format!(
        r#"{V1}{{"resumed":{{"at":"","spent_ns":7,"stopping":{{"precision":0.01,"budget_ns":9,"rounds":null,"confidence":0.95}},"differences":[]}}}}"#
    );
    let run = Run::parse(&went_on).unwrap();
    assert_eq!((run.end.is_none(), run.unfinished().is_some(), run.spent_ns()), (true, true, 7));
    let run = Run::parse(&format!("{went_on}\n{end}\n")).unwrap();
    assert_eq!((run.end, run.resumed.len()), (Run::parse(V1).unwrap().end, 1));
}

#[test]
fn what_is_no_run_is_told() {
    let why = |text: &str| Run::parse(text).unwrap_err().to_string();
    assert_eq!(why(""), "is empty: not a run file");
    assert_eq!(why("\n \n"), "is empty: not a run file");
    for text in ["hello", "{}", "[1]", "{\"sample\":{}}", "{\"header\":{\"schema\":\"x\"}}"] {
        assert!(why(text).contains("its first line is no header ("), "{text}");
    }
    let newer = V1.replacen("\"schema\":1", "\"schema\":3", 1);
    assert!(why(&newer).starts_with("has schema version 3, this program reads up to 2: "));
    let unknown = V1.replacen("\"experiment\":\"ring\"", "\"experiment\":\"else\"", 1);
    let error = why(&unknown);
    assert!(error.starts_with("is a run of another experiment than this program has"), "{error}");
    assert!(error.contains("'else'") && error.contains("clock-malloc"), "{error}");
    let unlike = "{\"header\":{\"schema\":9,\"all\":\"new\"}}";
    assert!(why(unlike).starts_with("has schema version 9, "));
}

#[test]
fn samples_of_unknown_cases_are_passed_over() {
    let foreign = V1.replace("\"case\":2,", "\"case\":7,");
    let run = Run::parse(&foreign).unwrap();
    assert_eq!(run.samples.len(), 2 * 6 * 3);
    assert!(run.warnings[0].contains("18 samples"), "{:?}", run.warnings);
    // And nothing later trips over them.
    assert_eq!(RingRecord::from_run(&run).cases[2].rounds, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_damage_is_borne(at in 0..V1.len(), with in ".{0,20}", cut in any::<bool>()) {
        let at = (0..=at).rev().find(|at| V1.is_char_boundary(*at)).unwrap_or(0);
        let rest = if cut { "" } else { &V1[at..] };
        let damaged = format!("{}{with}{rest}", &V1[..at]);
        if let Ok(run) = Run::parse(&damaged) {
            let record = RingRecord::from_run(&run);
            prop_assert!(record.cases.len() == run.header.plan.cases.len());
        }
    }
}

#[test]
fn a_reader_hands_on_each_sample_and_keeps_none() {
    let whole = Run::parse(V1).unwrap();
    let mut reader = RunFileReader::default();
    let samples: Vec<Sample> =
        V1.lines().filter_map(|line| reader.line(line).expect("a run file")).collect();
    assert_eq!(samples, whole.samples);
    let rest = reader.finish().unwrap();
    assert_eq!(rest, Run { samples: Vec::new(), ..whole });
}
