//! Lines of a run file about cases that its plan does not have: they are left out on reading.

// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

use rundata::run::Run;
use serde_json::json;

const RINGS: &str = include_str!("fixtures/run-v1.jsonl");

#[test]
fn failures_and_samples_of_no_case_are_left_out() {
    let whole = Run::parse(RINGS).unwrap();
    let count = whole.header.plan.cases.len();
    let mut text = RINGS.to_string();
    for case in [0, count - 1, count, count + 1] {
        text += &format!("{}\n", json!({"failure": {"case": case, "round": 0, "message": ""}}));
    }
    for case in [count, count + 1] {
        let mut sample: serde_json::Value =
            serde_json::from_str(RINGS.lines().nth(1).unwrap()).unwrap();
        sample["sample"]["case"] = case.into();
        text += &format!("{sample}\n");
    }
    let run = Run::parse(&text).unwrap();
    let failed: Vec<usize> = run.failures.iter().map(|failure| failure.case).collect();
    assert_eq!(failed, [0, count - 1]);
    assert_eq!(run.samples, whole.samples);
    assert_eq!(run.warnings, ["2 samples of cases not in the plan were skipped"]);
}
