//! A run file of another time, and copies of it with other figures.

use std::fs;

use serde_json::Value;

use super::Home;

/// A run of two rings and their solo, 6 rounds of 3 samples of 200 laps.
pub const RUN: &str = include_str!("../../../model/tests/fixtures/run-v1.jsonl");

/// That run in a file of the home, with `change` made to each line; gives its path.
pub fn stored_run(home: &Home, name: &str, change: impl Fn(&mut Value)) -> String {
    let line = |text: &str| {
        let mut line: Value = serde_json::from_str(text).expect("a line of JSON");
        change(&mut line);
        format!("{line}\n")
    };
    let path = home.path().join(name);
    fs::write(&path, RUN.lines().map(line).collect::<String>()).expect("a file");
    path.display().to_string()
}
