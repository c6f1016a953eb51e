//! JSON schemas of all that is stored and of all that `--json` writes.

use schemars::{JsonSchema, Schema, schema_for};

use crate::{command_use, comparison, program_cost, record, response, run, subject, trial};

/// What `--json` writes of a run, and what `runs export` does.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyRecord")]
#[expect(dead_code, reason = "for its schema")]
enum Record {
    /// Of `ring` and `cost`.
    Rings(Box<record::Record>),
    /// Of `clock` and `cost --interference`.
    Trials(Box<trial::Record>),
    /// Of `response`.
    Response(Box<response::Record>),
}

/// A schema and what it is of.
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it is of.
    pub of: &'static str,
    /// The schema.
    pub schema: fn() -> Schema,
}

/// All schemas.
pub const ALL: [Named; 6] = [
    Named { name: "run-line", of: "a line of a run file", schema: || schema_for!(run::Line) },
    Named {
        name: "record",
        of: "a run of ring, cost, response or clock with --json, and runs export --format json",
        schema: || schema_for!(Record),
    },
    Named {
        name: "comparison",
        of: "compare --json",
        schema: || schema_for!(comparison::Comparison),
    },
    Named {
        name: "history",
        of: "history --json",
        schema: || schema_for!(Vec<subject::Published>),
    },
    Named {
        name: "program",
        of: "cost --pid and cost -- CMD with --json",
        schema: || schema_for!(program_cost::Report),
    },
    Named { name: "command-use", of: "run --json", schema: || schema_for!(command_use::Record) },
];
