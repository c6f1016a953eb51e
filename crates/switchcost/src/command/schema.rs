//! `switchcost schema`: the JSON schemas of what this program writes.

use std::process::ExitCode;

use anyhow::{Context, Result};
use model::schema::{ALL, Named};

use crate::failure::usage;
use crate::report::print;

pub(super) fn run(wanted: Option<&str>) -> Result<ExitCode> {
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
