//! `switchcost help schema`: the JSON schemas of what this program writes, the columns of its tables
//! and the facts of runs.

use std::process::ExitCode;

use analysis::facts::{FACTS, Fact};
use anyhow::{Context, Result};
use schemars::{Schema, schema_for};
use serde::Serialize;

use crate::base::failure::usage;
#[cfg(feature = "programs")]
use crate::programs::{profile, run, watch};
use crate::registry::Record;
use crate::report::output::declarations::{self, ColumnDeclaration};
use crate::report::output::{print, print_text};
#[cfg(feature = "switches")]
use crate::switches::{top, trace};

/// A format that has a schema.
struct SchemaEntry {
    name: &'static str,
    /// Files or outputs of this format.
    subject: &'static str,
    schema: fn() -> Schema,
}

/// Formats in the order in which their names are printed.
const SCHEMAS: &[SchemaEntry] = &[
    SchemaEntry {
        name: "run-line",
        subject: "a line of a run file",
        schema: || schema_for!(rundata::run::RunFileLine),
    },
    SchemaEntry {
        name: "record",
        subject: "a run of ring, cost, response or clock with --json, and runs export --format json, of measure too",
        schema: || schema_for!(Record),
    },
    SchemaEntry {
        name: "comparison",
        subject: "compare --json",
        schema: || schema_for!(analysis::comparison::Comparison),
    },
    SchemaEntry {
        name: "several",
        subject: "compare --json of three or more runs",
        schema: || schema_for!(analysis::comparison::PairwiseComparison),
    },
    SchemaEntry {
        name: "trend",
        subject: "trend --json",
        schema: || schema_for!(analysis::trend::CaseTrend),
    },
    SchemaEntry {
        name: "history",
        subject: "history --json",
        schema: || schema_for!(Vec<analysis::results::PublishedMachine>),
    },
    #[cfg(feature = "programs")]
    SchemaEntry {
        name: "program",
        subject: "cost --pid and cost -- CMD with --json",
        schema: || schema_for!(watch::findings::ProgramCostReport),
    },
    #[cfg(feature = "programs")]
    SchemaEntry {
        name: "profile",
        subject: "profile --json",
        schema: || schema_for!(profile::CallProfile),
    },
    #[cfg(feature = "switches")]
    SchemaEntry {
        name: "top-update",
        subject: "a line of top --batch=json",
        schema: || schema_for!(top::TopUpdate),
    },
    #[cfg(feature = "switches")]
    SchemaEntry {
        name: "trace",
        subject: "trace --json",
        schema: || schema_for!(trace::TraceReport),
    },
    #[cfg(feature = "programs")]
    SchemaEntry {
        name: "command-use",
        subject: "run --json",
        schema: || schema_for!(run::CommandUseRecord),
    },
    SchemaEntry {
        name: "figure",
        subject: "what chart draws",
        schema: || schema_for!(charts::Figure),
    },
];

/// Name that prints no schema but the declarations of columns and facts themselves.
const COLUMNS_NAME: &str = "columns";

/// Subject of these declarations.
const COLUMNS_SUBJECT: &str =
    "columns of --csv and runs export --format csv and summary-csv, and facts of runs, as lists";

/// The declared columns and facts.
#[derive(Serialize)]
struct Declarations {
    columns: Vec<ColumnDeclaration>,
    facts: &'static [Fact],
}

/// Prints the schema of that name; without a name, the names of all.
pub(crate) fn run(wanted: Option<&str>) -> Result<ExitCode> {
    match wanted {
        None => print_names()?,
        Some(COLUMNS_NAME) => {
            print_json(&Declarations { columns: declarations::all(), facts: FACTS })?;
        }
        Some(wanted) => match SCHEMAS.iter().find(|entry| entry.name == wanted) {
            Some(entry) => print_json(&(entry.schema)())?,
            None => return Err(no_such_schema(wanted)),
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn print_names() -> Result<()> {
    let mut lines = String::new();
    for SchemaEntry { name, subject, .. } in SCHEMAS {
        lines += &format!("{name:<12}  {subject}\n");
    }
    lines += &format!("{COLUMNS_NAME:<12}  {COLUMNS_SUBJECT}\n");
    print_text(lines).context("cannot print the names of schemas")
}

fn no_such_schema(wanted: &str) -> anyhow::Error {
    let mut names: Vec<&str> = SCHEMAS.iter().map(|entry| entry.name).collect();
    names.push(COLUMNS_NAME);
    usage(format!("'{wanted}': no such schema (accepted: {})", names.join(", ")))
}

fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot write the schema")?;
    print((text + "\n").as_bytes()).context("cannot print the schema")
}
