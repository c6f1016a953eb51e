//! What is printed and written at the end of a run.

mod comparison;
mod csv;
mod terminal;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use model::record::Record;
use model::run::Run;

use crate::cli::{Destination, ExportFormat, Output};
use crate::failure::say;

/// Writes all that `output` asks for. The table goes to standard output, or to standard error where
/// that belongs to a machine-readable format.
pub(crate) fn write(
    run: &Run,
    record: &Record,
    path: Option<&Path>,
    output: &Output,
) -> Result<()> {
    let mut errors = Vec::new();
    if !output.quiet {
        let text = terminal::report(record, path);
        let shared = [&output.json, &output.csv].into_iter().flatten();
        let printed = match shared.into_iter().any(|to| *to == Destination::Stdout) {
            true => forgive(io::stderr().write_all(text.as_bytes())),
            false => print(text.as_bytes()),
        };
        errors.extend(printed.err().map(|error| anyhow!(error).context("cannot print the report")));
    }
    let wanted = [(ExportFormat::Json, &output.json), (ExportFormat::Csv, &output.csv)];
    for (format, to) in wanted {
        if let Some(to) = to {
            errors.extend(export(run, record, format, to).err());
        }
    }
    // The last is told by whoever asked; the others would be lost.
    let last = errors.pop();
    errors.iter().for_each(|error| say(&format!("error: {error:#}")));
    last.map_or(Ok(()), Err)
}

/// Prints the report of a stored run.
pub(crate) fn show(record: &Record, path: &Path) -> Result<()> {
    print(terminal::report(record, Some(path)).as_bytes()).context("cannot print the report")
}

/// Writes a run in a machine-readable format.
pub(crate) fn export(
    run: &Run,
    record: &Record,
    format: ExportFormat,
    to: &Destination,
) -> Result<()> {
    let bytes = match format {
        ExportFormat::Json => {
            let mut bytes = serde_json::to_vec_pretty(record).context("cannot write JSON")?;
            bytes.push(b'\n');
            bytes
        }
        ExportFormat::Csv => csv::rows(run)?,
    };
    put(&bytes, to)
}

/// Writes to where it was asked for.
pub(crate) fn put(bytes: &[u8], to: &Destination) -> Result<()> {
    match to {
        Destination::Stdout => print(bytes).context("cannot write to standard output"),
        Destination::File(path) => File::create(path)
            .and_then(|mut file| file.write_all(bytes))
            .with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Prints to standard output.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    forgive(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// A reader that has had enough (`| head`) is no failure.
fn forgive(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
