//! Run files of older programs: read to the values that they always had.

// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

use rundata::experiment::Experiment;
use rundata::run::{Run, RunFileLine, RunResult};
use serde_json::{Value, json};

/// Each stored run of schema 1 beside its header as today's format has it.
const OLD: [(&str, &str); 2] = [
    (include_str!("fixtures/run-v1.jsonl"), include_str!("fixtures/upgraded/run-v1.json")),
    (include_str!("fixtures/trials-v1.jsonl"), include_str!("fixtures/upgraded/trials-v1.json")),
];

/// Runs of today, of which each has cases of another form.
const TODAY: [&str; 3] = [
    include_str!("../../switchcost/tests/fixtures/cost.jsonl"),
    include_str!("../../switchcost/tests/fixtures/interference.jsonl"),
    include_str!("../../switchcost/tests/fixtures/measure.jsonl"),
];

fn text(line: RunFileLine, run: &Run) -> String {
    line.to_text(run.header.plan.experiment).unwrap()
}

#[test]
fn an_old_run_is_written_back_with_todays_header_and_the_same_samples() {
    for (old, header) in OLD {
        let run = Run::parse(old).unwrap();
        assert_eq!(
            text(RunFileLine::Header(Box::new(run.header.clone())), &run),
            header.trim_end()
        );
        let stored = old.lines().filter(|line| line.starts_with(r#"{"sample""#));
        for (stored, sample) in stored.zip(&run.samples) {
            let [stored, written] = [stored, &text(RunFileLine::Sample(sample.clone()), &run)]
                .map(|text| serde_json::from_str::<Value>(text).unwrap());
            assert_eq!(written, stored);
        }
    }
}

/// Takes away what older programs did not write, where it says what they meant.
fn age(value: &mut Value) {
    let added = [
        ("notices", json!([])),
        ("reference", json!({})),
        ("walk", json!("whole")),
        ("huge_pages", json!(false)),
        ("wire", json!("loopback")),
    ];
    match value {
        Value::Object(object) => {
            object.retain(|key, value| !added.contains(&(key.as_str(), value.clone())));
            object.values_mut().for_each(age);
        }
        Value::Array(items) => items.iter_mut().for_each(age),
        _ => {}
    }
}

#[test]
fn a_header_without_what_was_added_reads_as_one_with_it() {
    for today in TODAY {
        let (header, lines) = today.split_once('\n').unwrap();
        let mut old: Value = serde_json::from_str(header).unwrap();
        age(&mut old);
        assert_ne!(old.to_string().len(), header.len(), "nothing was taken away");
        assert_eq!(Run::parse(&format!("{old}\n{lines}")), Run::parse(today));
    }
}

fn result(line: &str) -> RunResult {
    match RunFileLine::from_text(line, Experiment::Ring).unwrap() {
        RunFileLine::Result(result) => result,
        _ => panic!("not a result: {line}"),
    }
}

#[test]
fn a_result_of_older_programs_has_its_kind_in_a_mark() {
    let old = result(r#"{"result":"~2.03 us a switch (2)"}"#);
    assert_eq!(old, RunResult { text: "~2.03 us a switch (2)".to_string(), is_rough: true });
    assert!(!result(r#"{"result":"2.03 us a switch (2)"}"#).is_rough);
    let today = result(r#"{"result":{"text":"2.03 ms ~/bin/job","is_rough":false}}"#);
    assert_eq!(today, RunResult { text: "2.03 ms ~/bin/job".to_string(), is_rough: false });
}
