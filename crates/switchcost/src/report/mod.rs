//! What is printed and written at the end of a run.

mod bars;
mod caption;
pub(crate) mod change;
mod comparison;
pub(crate) mod cost;
mod csv;
mod exports;
pub(crate) mod headline;
pub(crate) mod history;
pub(crate) mod html;
pub(crate) mod launches;
mod look;
pub(crate) mod parts;
pub(crate) mod response;
mod states;
pub(crate) mod summary;
pub(crate) mod terminal;
pub(crate) mod trials;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
pub(crate) use charts::printable;
use charts::{Figure, Look, Role, terminal as plot};
use model::run::Run;
use model::subject::Subject;
use rustix::io::Errno;

pub(crate) use self::csv::rows as rings_csv;
pub(crate) use self::response::rows as response_csv;
pub(crate) use self::trials::rows as trials_csv;
use crate::cli::{Destination, ExportFormat, Output};
use crate::failure::say;

/// What a run says, as it is printed, drawn and exported.
pub(crate) trait Record {
    /// All of it as JSON.
    fn json(&self) -> serde_json::Result<Vec<u8>>;

    /// All that is printed of it, ending with a newline; `path` is where the run is stored.
    fn table(&self, path: Option<&Path>) -> String;

    /// A sentence each, the most important first; where there is nothing, the first chart in words stands for it.
    fn headline(&self) -> Vec<String>;

    /// Its charts. `run` is the run that it is of, `index` its place among the runs that are drawn together.
    fn figures(&self, run: &Run, index: usize) -> Vec<Figure>;

    /// All samples of the run as CSV, with a header line.
    fn csv(&self, run: &Run) -> Result<Vec<u8>>;
}

/// Writes all that `output` asks for. The table goes to standard output, or to standard error where
/// that belongs to a machine-readable format.
pub(crate) fn write(
    run: &Run,
    record: &dyn Record,
    path: Option<&Path>,
    output: &Output,
) -> Result<()> {
    let mut errors = Vec::new();
    if !output.quiet {
        let mut text = printable(&record.table(path));
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
            errors.extend(export(run, record, format, to).err());
        }
    }
    // The last is told by whoever asked; the others would be lost.
    let last = errors.pop();
    errors.iter().for_each(|error| say(&format!("error: {error:#}")));
    last.map_or(Ok(()), Err)
}

/// Prints the report of a stored run, with its charts if they are asked for.
pub(crate) fn show(run: &Run, record: &dyn Record, path: &Path, plot: bool) -> Result<()> {
    let mut text = printable(&record.table(Some(path)));
    if plot {
        text.push_str(&plots(run, record, &look::of_stdout()));
    }
    print(text.as_bytes()).context("cannot print the report")
}

/// The run's charts in text. Single samples by round are left to the report: they are too many for a
/// terminal.
fn plots(run: &Run, record: &dyn Record, look: &Look) -> String {
    let figures = record.figures(run, 0);
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
pub(crate) fn export(
    run: &Run,
    record: &dyn Record,
    format: ExportFormat,
    to: &Destination,
) -> Result<()> {
    let bytes = match format {
        ExportFormat::Json => {
            let mut bytes = record.json().context("cannot write JSON")?;
            bytes.push(b'\n');
            bytes
        }
        ExportFormat::Csv => record.csv(run)?,
        ExportFormat::GoBench => exports::go_bench(&Subject::of_run(run)),
        ExportFormat::Openmetrics => exports::openmetrics(&Subject::of_run(run)),
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
