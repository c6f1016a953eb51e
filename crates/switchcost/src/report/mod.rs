//! What is printed and written at the end of a run.

mod bars;
mod caption;
pub(crate) mod change;
pub(crate) mod command_use;
mod comparison;
mod cost;
mod csv;
mod exports;
mod headline;
pub(crate) mod history;
pub(crate) mod html;
pub(crate) mod launches;
mod look;
mod parts;
pub(crate) mod program;
mod response;
mod states;
pub(crate) mod summary;
mod terminal;
mod trials;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
pub(crate) use charts::printable;
use charts::{Figure, Look, Role, terminal as plot};
use model::response::Response;
use model::ring::Ring;
use model::run::Run;
use model::subject::Comparable;
use model::trial::Trials;
use probe::assignment::Measure;
use rustix::io::Errno;

use crate::cli::{Destination, ExportFormat, Output};
use crate::failure::say;
use crate::figures::Drawable;

/// An instrument whose runs this program prints and draws.
pub(crate) trait Report: Measure + Comparable + Drawable {
    /// All that is printed of a run, ending with a newline; `path` is where it is stored.
    fn terminal(record: &Self::Record, path: Option<&Path>) -> String;

    /// All samples as CSV, with a header line.
    fn csv(run: &Run<Self>) -> Result<Vec<u8>>;

    /// What a run says, a sentence each, the most important first; where there is nothing, its first
    /// chart in words stands for it.
    fn headline(_: &Self::Record) -> Vec<String> {
        Vec::new()
    }
}

impl Report for Ring {
    fn terminal(record: &Self::Record, path: Option<&Path>) -> String {
        match &record.cost {
            Some(found) => cost::report(record, found, path),
            None => terminal::report(record, path),
        }
    }

    fn csv(run: &Run) -> Result<Vec<u8>> {
        csv::rows(run)
    }

    fn headline(record: &Self::Record) -> Vec<String> {
        headline::of_rings(record)
    }
}

impl Report for Trials {
    fn terminal(record: &Self::Record, path: Option<&Path>) -> String {
        trials::report(record, path)
    }

    fn csv(run: &Run<Self>) -> Result<Vec<u8>> {
        trials::rows(run)
    }

    fn headline(record: &Self::Record) -> Vec<String> {
        headline::of_trials(record)
    }
}

impl Report for Response {
    fn terminal(record: &Self::Record, path: Option<&Path>) -> String {
        response::report(record, path)
    }

    fn csv(run: &Run<Self>) -> Result<Vec<u8>> {
        response::rows(run)
    }

    fn headline(record: &Self::Record) -> Vec<String> {
        headline::of_response(record)
    }
}

/// Writes all that `output` asks for. The table goes to standard output, or to standard error where
/// that belongs to a machine-readable format.
pub(crate) fn write<I: Report>(
    run: &Run<I>,
    record: &I::Record,
    path: Option<&Path>,
    output: &Output,
) -> Result<()> {
    let mut errors = Vec::new();
    if !output.quiet {
        let mut text = printable(&I::terminal(record, path));
        let mut shared = [&output.json, &output.csv].into_iter().flatten();
        let taken = shared.any(|to| *to == Destination::Stdout);
        if output.plot {
            let look = if taken { look::of_stderr() } else { look::of_stdout() };
            text.push_str(&plots(run, record, &look));
        }
        let printed = match taken {
            true => forgive(io::stderr().write_all(text.as_bytes())),
            false => print(text.as_bytes()),
        };
        errors.extend(printed.err().map(|error| anyhow!(error).context("cannot print the report")));
    }
    let wanted = [(ExportFormat::Json, &output.json), (ExportFormat::Csv, &output.csv)];
    for (format, to) in wanted {
        if let Some(to) = to {
            errors.extend(export::<I>(run, record, format, to).err());
        }
    }
    // The last is told by whoever asked; the others would be lost.
    let last = errors.pop();
    errors.iter().for_each(|error| say(&format!("error: {error:#}")));
    last.map_or(Ok(()), Err)
}

/// Prints the report of a stored run, with its charts if they are asked for.
pub(crate) fn show<I: Report>(run: &Run<I>, path: &Path, plot: bool) -> Result<()> {
    let record = I::record(run);
    let mut text = printable(&I::terminal(&record, Some(path)));
    if plot {
        text.push_str(&plots(run, &record, &look::of_stdout()));
    }
    print(text.as_bytes()).context("cannot print the report")
}

/// The run's charts in text. Single samples by round are left to the report: they are too many for a
/// terminal.
fn plots<I: Report>(run: &Run<I>, record: &I::Record, look: &Look) -> String {
    let figures = I::figures(run, record, 0);
    let raw = |figure: &Figure| figure.series().iter().any(|series| series.role == Role::Raw);
    let drawn: Vec<String> = figures
        .iter()
        .filter(|figure| !raw(figure))
        .map(|figure| format!("\n{}", plot(figure, &[], look)))
        .collect();
    match drawn.is_empty() {
        true => "\nplot: nothing was measured that can be drawn\n".to_string(),
        false => drawn.concat(),
    }
}

/// Writes a run in a machine-readable format.
pub(crate) fn export<I: Report>(
    run: &Run<I>,
    record: &I::Record,
    format: ExportFormat,
    to: &Destination,
) -> Result<()> {
    let bytes = match format {
        ExportFormat::Json => {
            let mut bytes = serde_json::to_vec_pretty(record).context("cannot write JSON")?;
            bytes.push(b'\n');
            bytes
        }
        ExportFormat::Csv => I::csv(run)?,
        ExportFormat::GoBench => exports::go_bench(&I::subject(run)),
        ExportFormat::Openmetrics => exports::openmetrics(&I::subject(run)),
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
    if probe::output_was_closed() {
        return Err(Errno::BADF.into());
    }
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
