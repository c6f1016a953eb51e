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

/// A schema's name, what it is of, and itself.
type Named = (&'static str, &'static str, fn() -> Schema);

const ALL: &[Named] = &[
    ("run-line", "a line of a run file", || schema_for!(rundata::run::RunFileLine)),
    (
        "record",
        "a run of ring, cost, response or clock with --json, and runs export --format json, of measure too",
        || schema_for!(Record),
    ),
    ("comparison", "compare --json", || schema_for!(analysis::comparison::Comparison)),
    ("several", "compare --json of three or more runs", || {
        schema_for!(analysis::comparison::PairwiseComparison)
    }),
    ("trend", "trend --json", || schema_for!(analysis::trend::CaseTrend)),
    ("history", "history --json", || schema_for!(Vec<analysis::results::PublishedMachine>)),
    #[cfg(feature = "programs")]
    ("program", "cost --pid and cost -- CMD with --json", || schema_for!(watch::findings::Report)),
    #[cfg(feature = "programs")]
    ("profile", "profile --json", || schema_for!(profile::Profile)),
    #[cfg(feature = "switches")]
    ("top-update", "a line of top --batch=json", || schema_for!(top::TopUpdate)),
    #[cfg(feature = "switches")]
    ("trace", "trace --json", || schema_for!(trace::TraceReport)),
    #[cfg(feature = "programs")]
    ("command-use", "run --json", || schema_for!(run::record::CommandUseRecord)),
    ("figure", "what chart draws", || schema_for!(charts::Figure)),
];

/// Prints the declarations of columns and facts themselves, not a schema.
const OF_COLUMNS: (&str, &str) = (
    "columns",
    "columns of --csv and runs export --format csv and summary-csv, and facts of runs, as lists",
);

/// All declared columns and facts.
#[derive(Serialize)]
struct Declarations {
    columns: Vec<ColumnDeclaration>,
    facts: &'static [Fact],
}

pub(crate) fn run(wanted: Option<&str>) -> Result<ExitCode> {
    let mut named: Vec<(&str, &str)> = ALL.iter().map(|(name, what, _)| (*name, *what)).collect();
    named.push(OF_COLUMNS);
    let printed = match wanted {
        None => {
            let lines = named.iter().map(|(name, what)| format!("{name:<12}  {what}\n"));
            print_text(lines.collect::<String>()).context("cannot print the names of schemas")
        }
        Some(wanted) if wanted == OF_COLUMNS.0 => {
            print_json(&Declarations { columns: declarations::all(), facts: FACTS })
        }
        Some(wanted) => {
            let found = ALL.iter().find(|(name, ..)| *name == wanted);
            let (_, _, schema) = found.ok_or_else(|| {
                let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
                usage(format!("'{wanted}': no such schema (accepted: {})", names.join(", ")))
            })?;
            print_json(&schema())
        }
    };
    printed.map(|()| ExitCode::SUCCESS)
}

fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot write the schema")?;
    print((text + "\n").as_bytes()).context("cannot print the schema")
}
