//! `switchcost schema`: the JSON schemas of what this program writes.

use std::process::ExitCode;

use anyhow::{Context, Result};
use schemars::{JsonSchema, Schema, schema_for};

use crate::failure::usage;
use crate::output::print;
use crate::{run, watch};

/// What `--json` writes of a run, and what `runs export` does.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyRecord")]
#[expect(dead_code, reason = "for its schema")]
enum Record {
    /// Of `ring` and `cost`.
    Rings(Box<model::record::Record>),
    /// Of `clock` and `cost --interference`.
    Trials(Box<model::trial::Record>),
    /// Of `response`.
    Response(Box<model::response::Record>),
}

/// A schema and what it is of.
struct Named {
    /// Its name.
    name: &'static str,
    /// What it is of.
    of: &'static str,
    /// The schema.
    schema: fn() -> Schema,
}

/// All schemas.
const ALL: [Named; 6] = [
    Named {
        name: "run-line",
        of: "a line of a run file",
        schema: || schema_for!(model::run::Line),
    },
    Named {
        name: "record",
        of: "a run of ring, cost, response or clock with --json, and runs export --format json",
        schema: || schema_for!(Record),
    },
    Named {
        name: "comparison",
        of: "compare --json",
        schema: || schema_for!(model::comparison::Comparison),
    },
    Named {
        name: "history",
        of: "history --json",
        schema: || schema_for!(Vec<model::subject::Published>),
    },
    Named {
        name: "program",
        of: "cost --pid and cost -- CMD with --json",
        schema: || schema_for!(watch::findings::Report),
    },
    Named { name: "command-use", of: "run --json", schema: || schema_for!(run::record::Record) },
];

pub(crate) fn run(wanted: Option<&str>) -> Result<ExitCode> {
    let text = match wanted {
        None => ALL.iter().map(|Named { name, of, .. }| format!("{name:<12} {of}\n")).collect(),
        Some(wanted) => {
            let found = ALL.iter().find(|schema| schema.name == wanted);
            let found = found.ok_or_else(|| {
                let names: Vec<&str> = ALL.iter().map(|schema| schema.name).collect();
                usage(format!("'{wanted}': no such schema (accepted: {})", names.join(", ")))
            })?;
            let text = serde_json::to_string_pretty(&(found.schema)());
            text.context("cannot write the schema")? + "\n"
        }
    };
    print(text.as_bytes()).context("cannot print the schema")?;
    Ok(ExitCode::SUCCESS)
}
