//! What tests of `switchcost run` share.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::schema::Schema;
use super::{Home, Said};

/// Runs commands by `args`; gives what was said, and the record, which must be as documented.
pub fn record(home: &Home, args: &[&str]) -> (Said, Value) {
    let file = home.path().join("record.json");
    let to = file.to_str().expect("a path in UTF-8");
    let said = home.run(&[&["run", "--no-estimate", "--json", to], args].concat());
    (said, read(&file))
}

/// A record that was written, which must be as documented.
pub fn read(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("no record: {error}"));
    let record = serde_json::from_str(&text).expect("JSON");
    assert_valid(&record);
    record
}

pub fn assert_valid(value: &Value) {
    Schema::of("command-use").assert_holds(value);
}

pub fn runs(record: &Value) -> &Vec<Value> {
    record["runs"].as_array().expect("runs")
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}
