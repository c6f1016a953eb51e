//! A run of trials that was written before there were slices says what it said then.

use analysis::estimate::Speed;
use analysis::findings::ExperimentFindings;
use analysis::noise::NoiseLevel;
use analysis::record::TrialRecord;
use rundata::case::trials;
use rundata::run::Run;
use rundata::trial::Trial;

/// `clock overhead --calls time-stamp,monotonic --trials 100 --rounds 6` of schema 1.
const V1: &str = include_str!("../../../rundata/tests/fixtures/trials-v1.jsonl");

#[test]
fn a_run_of_schema_1_has_its_figures() {
    let run = Run::parse(V1).expect("a run");
    assert!(trials(&run.samples).all(|sample| sample.sliced.is_empty()));
    let record = TrialRecord::from_run(&run);
    let Some(ExperimentFindings::Overhead(found)) = &record.found.findings else {
        panic!("{:?}", record.found.findings)
    };
    // As the program printed that wrote it: value, low and high, in a row and alone.
    let expected = [
        ([25.35, 25.22, 27.56], [52.0, 26.0, 52.0], (600, 0, 52)),
        ([60.84, 60.84, 62.01], [78.0, 78.0, 78.0], (600, 52, 182)),
    ];
    for (call, (in_a_row, alone, net)) in found.calls.iter().zip(expected) {
        for (estimate, values) in [(call.back_to_back_ticks, in_a_row), (call.median_ticks, alone)]
        {
            let estimate = estimate.expect("six rounds");
            assert_eq!((estimate.speed, estimate.rounds), (Speed::NotJudged, 6));
            let found = [Some(estimate.value), estimate.low, estimate.high];
            for (found, value) in found.into_iter().zip(values) {
                assert!(found.is_some_and(|found| (found - value).abs() < 1e-9), "{estimate:?}");
            }
        }
        let of = call.net_ticks;
        assert_eq!((of.count, of.min, of.max), net);
    }
    assert_eq!((record.noise.level, record.noise.clean_share), (NoiseLevel::Quiet, None));
    // Of the intervals that are shown: in nanoseconds, by the rate of each round.
    let widths = record.cases.iter().map(|of| {
        of.measures[of.case.trial.headline().name].relative_half_width().expect("an interval")
    });
    assert_eq!(record.worst_precision, widths.reduce(f64::max));
    assert!((record.worst_precision.expect("intervals") / 0.046_153_846 - 1.0).abs() < 1e-2);
}

#[test]
fn the_docs_name_every_measure() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record-format.md");
    let docs = std::fs::read_to_string(path).expect("docs/record-format.md");
    let docs = docs.split("Of each trial `measures`").nth(1).expect("a paragraph on measures");
    let docs = docs.split("`findings` is absent").next().expect("its end");
    let trials = [
        r#"{"of": "call", "call": "times"}"#,
        r#"{"of": "primes", "primes": 1}"#,
        r#"{"of": "malloc", "bytes": 1, "preload": null}"#,
        r#"{"of": "sampling", "phase": "anywhere", "duration_ns": 1}"#,
        r#"{"of": "loop", "call": "getuid"}"#,
        r#"{"of": "two_processes"}"#,
        r#"{"of": "gaps", "duration_ns": 1}"#,
        r#"{"of": "execution", "setting": "plain", "environment": "quiet", "noise": "cpu",
            "noise_cpu": 0, "laps": 1, "seed": 1,
            "work": {"bytes": 8, "stride_bytes": 8, "op": "read", "walk": "whole", "huge_pages": false},
            "wire": "loopback"}"#,
        r#"{"of": "wakeup", "load": "idle", "wakes": 1, "period_ns": 1, "timer_slack_ns": 1, "seed": 1}"#,
    ];
    for text in trials {
        let trial: Trial = serde_json::from_str(text).expect(text);
        for of in trial.measures() {
            assert!(docs.contains(&format!("`{}`", of.name)), "{}", of.name);
        }
    }
}
