//! The schemas in docs/ are those of the types. `UPDATE_SCHEMA=1 cargo test -p switchcost-model
//! --test schema` writes them anew.

use std::path::Path;

use schemars::Schema;

fn check(schema: &Schema, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let mut now = serde_json::to_string_pretty(schema).expect("a schema is JSON");
    now.push('\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &now).expect("docs/ can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "docs/{file} is not the schema of the types: see this test's first lines");
}

#[test]
fn the_record_is_documented() {
    check(&schemars::schema_for!(model::record::Record), "record.schema.json");
}

#[test]
fn the_lines_of_a_run_file_are_documented() {
    check(&schemars::schema_for!(model::run::Line), "run-line.schema.json");
}

#[test]
fn the_record_of_trials_is_documented() {
    check(&schemars::schema_for!(model::trial::Record), "trials-record.schema.json");
}

#[test]
fn the_record_of_a_response_is_documented() {
    check(&schemars::schema_for!(model::response::Record), "response-record.schema.json");
}

#[test]
fn the_lines_of_a_run_file_of_a_response_are_documented() {
    let schema = schemars::schema_for!(model::run::Line<model::response::Response>);
    check(&schema, "response-run-line.schema.json");
}

#[test]
fn the_lines_of_a_run_file_of_trials_are_documented() {
    let schema = schemars::schema_for!(model::run::Line<model::trial::Trials>);
    check(&schema, "trials-run-line.schema.json");
}

#[test]
fn what_a_comparison_says_is_documented() {
    check(&schemars::schema_for!(model::comparison::Comparison), "comparison.schema.json");
}

#[test]
fn published_machines_are_documented() {
    check(&schemars::schema_for!(Vec<model::subject::Published>), "history.schema.json");
}
