//! `switchcost help schema`: the JSON schemas of what this program writes.

use std::process::ExitCode;

use anyhow::{Context, Result};
use schemars::{Schema, schema_for};

use crate::base::failure::usage;
use crate::experiments::Record;
use crate::observe::{top, trace, watch};
use crate::present::output::{print, print_text};
use crate::usage::{profile, run};

/// A schema's name, what it is of, and itself.
type Named = (&'static str, &'static str, fn() -> Schema);

const ALL: [Named; 11] = [
    ("run-line", "a line of a run file", || schema_for!(model::run::Line)),
    (
        "record",
        "a run of ring, cost, response or clock with --json, and runs export --format json, of measure too",
        || schema_for!(Record),
    ),
    ("comparison", "compare --json", || schema_for!(model::comparison::Comparison)),
    ("several", "compare --json of three or more runs", || schema_for!(model::comparison::Several)),
    ("trend", "trend --json", || schema_for!(model::trend::Trend)),
    ("history", "history --json", || schema_for!(Vec<model::subject::Published>)),
    ("program", "cost --pid and cost -- CMD with --json", || schema_for!(watch::findings::Report)),
    ("profile", "profile --json", || schema_for!(profile::Profile)),
    ("top-update", "a line of top --batch=json", || schema_for!(top::Update)),
    ("trace", "trace --json", || schema_for!(trace::Trace)),
    ("command-use", "run --json", || schema_for!(run::record::Record)),
];

pub(crate) fn run(wanted: Option<&str>) -> Result<ExitCode> {
    let printed = match wanted {
        None => {
            let line = |(name, of, _): &Named| format!("{name:<12}  {of}\n");
            print_text(&ALL.iter().map(line).collect::<String>())
        }
        Some(wanted) => {
            let found = ALL.iter().find(|(name, ..)| *name == wanted);
            let (_, _, schema) = found.ok_or_else(|| {
                let names = ALL.map(|(name, ..)| name).join(", ");
                usage(format!("'{wanted}': no such schema (accepted: {names})"))
            })?;
            let text =
                serde_json::to_string_pretty(&schema()).context("cannot write the schema")?;
            print((text + "\n").as_bytes())
        }
    };
    printed.context("cannot print the schema")?;
    Ok(ExitCode::SUCCESS)
}
