//! Where results go: what may be typed, and what is printed and written at the end of a run.

pub(crate) mod colour;
pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod declarations;
pub(crate) mod exports;
pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod rows;
pub(crate) mod summary;

use std::env;
use std::fmt::Display;
use std::io::{self, StdoutLock, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use charts::{PlotStyle, is_obeyed, printable};
use clap::{Args, ValueEnum};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::Serialize;

use crate::base::failure::{say, usage};
use crate::base::lines::{self, Layout, with_marks_of};
use crate::base::values::{Destination, run_name};
use crate::report::printout::Printout;
use crate::report::terminal::View;
use file::{WriteTarget, fill_writer, folder_of};

/// Where figures go.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "OutputOptions")]
pub(crate) struct FileOptions {
    /// Write the record as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,

    /// Write one row a sample as CSV to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<Destination>,

    /// Print nothing but errors and --json/--csv
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Leave out of the record what identifies the machine: host name, boot id, command lines
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// Store whole commands, which may hold secrets, instead of the program and a hash of its
    /// arguments
    #[arg(long, conflicts_with = "anonymous")]
    pub(crate) store_command: bool,
}

/// The same of what is stored and drawn.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "OutputOptions")]
pub(crate) struct OutputOptions {
    #[command(flatten)]
    pub(crate) files: FileOptions,

    /// Draw the charts below the table, in 80 columns or what the terminal has (COLUMNS, NO_COLOR)
    #[arg(long)]
    pub(crate) plot: bool,

    /// Name of the stored run, for `compare`, `report` and `runs`
    ///
    /// Letters, digits, dot, dash, underscore and plus. A name stands for all runs stored under it.
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) view: View,
}

/// The same of what is neither stored nor drawn.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "OutputOptions")]
pub(crate) struct UnstoredOptions {
    #[command(flatten)]
    pub(crate) files: FileOptions,

    /// Print all that is known: legends, the machine, notes
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) tables: TableOptions,
}

/// How wide tables may be, where nothing else depends on it.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "OutputOptions")]
pub(crate) struct TableOptions {
    /// Print all columns of tables, however narrow the terminal is
    #[arg(long)]
    pub(crate) wide: bool,
}

impl TableOptions {
    /// Returns the layout of the terminal with such tables.
    pub(crate) fn layout(self) -> Layout {
        Layout::terminal().with_wide_tables(self.wide)
    }
}

impl Destination {
    /// Whether both are one place, whatever way leads there.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        let real = |path: &Path| {
            let beside = || Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
            path.canonicalize().ok().or_else(beside)
        };
        match (self, other) {
            (Self::File(one), Self::File(other)) => {
                one == other || real(one).is_some_and(|path| Some(path) == real(other))
            }
            _ => self == other,
        }
    }
}

impl FileOptions {
    /// Whether what is asked for can be written, before anything is measured for it. Nothing is
    /// changed.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        // Two formats in one place would be neither.
        if let (Some(json), Some(csv)) = (&self.json, &self.csv) {
            if json.is_same_place(csv) {
                let place = match json {
                    Destination::Stdout => "standard output",
                    Destination::File(_) => "that file",
                };
                let both = format!("--json {json} and --csv {csv}");
                return Err(usage(format!("{both}: only one of them can have {place}")));
            }
        }
        self.json.iter().try_for_each(|to| check_destination("--json", to))?;
        self.csv.iter().try_for_each(|to| check_destination("--csv", to))
    }

    /// Returns the option whose figures go to standard output, if any do.
    pub(crate) fn on_stdout(&self) -> Option<&'static str> {
        let all = [("--json", &self.json), ("--csv", &self.csv)];
        all.into_iter().find(|(_, to)| **to == Some(Destination::Stdout)).map(|(flag, _)| flag)
    }

    /// Refuses to mix figures, those of `flag`, with what commands print.
    pub(crate) fn refuse_shown(flag: Option<&str>, show_output: bool) -> anyhow::Result<()> {
        match flag.filter(|_| show_output) {
            Some(flag) => Err(usage(format!(
                "{flag} -: with --show-output standard output is the commands' (accepted here: \
                 {flag} FILE)"
            ))),
            None => Ok(()),
        }
    }
}

impl OutputOptions {
    /// For what has no chart.
    pub(crate) fn refuse_plot(&self, what: &str) -> anyhow::Result<()> {
        match self.plot {
            true => Err(usage(format!("--plot: {what} has no charts"))),
            false => Ok(()),
        }
    }
}

/// Whether what a flag names can be written. Nothing is changed.
pub(crate) fn check_destination(flag: &str, to: &Destination) -> anyhow::Result<()> {
    let Destination::File(path) = to else {
        return match probe::output_was_closed() {
            true => Err(usage(format!("{flag} -: standard output is closed"))),
            false => Ok(()),
        };
    };
    let refuse = |why: &dyn Display| usage(format!("{flag} {}: {why}", path.display()));
    let place = WriteTarget::from_path(path).map_err(|why| refuse(&why))?;
    if !matches!(place, WriteTarget::File(None)) {
        access(path, Access::WRITE_OK).map_err(|errno| refuse(&io::Error::from(errno)))?;
    }
    if let WriteTarget::File(_) = place {
        let folder = folder_of(path);
        access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
            let error = io::Error::from(errno);
            refuse(&format!("{} cannot be written to: {error}", folder.display()))
        })?;
    }
    Ok(())
}

/// Formats that a run can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The record: estimates, scaling law, verdicts, machine
    Json,
    /// One row a sample
    Csv,
    /// One row a case: estimate and interval
    SummaryCsv,
    /// The same as a table in Markdown
    Markdown,
    /// Go's benchmark format, a line for each case and round: for benchstat
    GoBench,
    /// OpenMetrics: for the textfile collector of node_exporter
    Openmetrics,
    /// Rows of data/modern.csv, for `history`
    History,
    /// What a dataset takes of a run (docs/fleet.md), a line of JSON each; the only one of several runs
    #[value(hide = true)]
    Rows,
}

/// A value as JSON, ending with a newline. All that a terminal would obey is escaped (RFC 8259,
/// section 7).
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>> {
    let plain = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    Ok((escaped(&plain) + "\n").into_bytes())
}

/// JSON with what a terminal would obey escaped; ends of lines are not within its strings.
fn escaped(plain: &str) -> String {
    // Most often there is nothing of the kind.
    if plain.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return plain.to_string();
    }
    let mut text = String::with_capacity(plain.len() + 1);
    for c in plain.chars() {
        match is_obeyed(c) && c != '\n' {
            true => {
                text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")))
            }
            false => text.push(c),
        }
    }
    text
}

/// Writes a value as JSON if that was asked for.
pub(crate) fn write_json(value: &impl Serialize, to: Option<&Destination>) -> Result<()> {
    to.map_or(Ok(()), |to| write_output(&to_json(value)?, to))
}

/// Writes to where it was asked for.
pub(crate) fn write_output(bytes: &[u8], to: &Destination) -> Result<()> {
    write_output_with(to, |to| Ok(to.write_all(bytes)?))
}

/// Writes to where it was asked for, as `fill` writes it.
pub(crate) fn write_output_with(
    to: &Destination,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match to {
        Destination::Stdout => {
            let mut stdout = stdout().context("cannot write to standard output")?;
            let done = fill_writer(&mut stdout, fill)?.and_then(|()| stdout.flush());
            ignore_broken_pipe(done).context("cannot write to standard output")
        }
        Destination::File(path) => file::write(path, fill),
    }
}

/// Says what could not be written; whether all was.
pub(crate) fn all_written(results: impl IntoIterator<Item = Result<()>>) -> bool {
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    errors.iter().for_each(|error| say(&format!("error: {error:#}")));
    errors.is_empty()
}

/// Prints to standard output.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    ignore_broken_pipe(print_or_broken_pipe(bytes))
}

/// The same; an error where nobody reads it any longer.
pub(crate) fn print_or_broken_pipe(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = stdout()?;
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

fn stdout() -> io::Result<StdoutLock<'static>> {
    match probe::output_was_closed() {
        true => Err(Errno::BADF.into()),
        false => Ok(io::stdout().lock()),
    }
}

/// Returns a printout as a stream shows it: without what a terminal would obey and without blanks at
/// the ends of lines, its prose broken to fit, in colour where that is wanted.
pub(crate) fn printable_text(printout: impl Into<Printout>, stream: &impl RawStream) -> String {
    render_printout(&printout.into(), Layout::terminal(), stream)
}

/// Like [`printable_text`], as `layout` has room for it.
pub(crate) fn render_printout(
    printout: &Printout,
    layout: Layout,
    stream: &impl RawStream,
) -> String {
    let text = printout.text(layout);
    let printable = printable(&text);
    let lines: String = printable.split_inclusive('\n').map(without_last_blanks).collect();
    if has_colour(stream) { colour::painted(&with_marks_of(&text, lines)) } else { lines }
}

fn without_last_blanks(line: &str) -> String {
    match line.strip_suffix('\n') {
        Some(words) => format!("{}\n", words.trim_end_matches(' ')),
        // A question that somebody is to answer.
        None => line.to_string(),
    }
}

/// Prints a text for people to standard output.
pub(crate) fn print_text(text: impl Into<Printout>) -> io::Result<()> {
    print_fitted(text, Layout::terminal())
}

/// Prints a text for people to standard output, as `layout` has room for it.
pub(crate) fn print_fitted(text: impl Into<Printout>, layout: Layout) -> io::Result<()> {
    print(render_printout(&text.into(), layout, &io::stdout()).as_bytes())
}

/// Prints a text for people to standard error. Nobody there to read it is no reason to fail.
pub(crate) fn say_text(text: impl Into<Printout>) {
    say_fitted(text, Layout::terminal());
}

/// Prints a text for people to standard error, as `layout` has room for it.
pub(crate) fn say_fitted(text: impl Into<Printout>, layout: Layout) {
    let _ = io::stderr().write_all(render_printout(&text.into(), layout, &io::stderr()).as_bytes());
}

/// Whether a stream has colours: by --color, NO_COLOR, CLICOLOR_FORCE, TERM=dumb and what is no
/// terminal, as every program of clap's has it.
fn has_colour(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// A reader that has had enough (`| head`) is no failure.
pub(crate) fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// No plot is wider, however wide the terminal is.
const WIDEST: usize = 80;

/// How a plot may look on a stream.
pub(crate) fn plot_style(stream: &(impl RawStream + AsFd)) -> PlotStyle {
    let size = terminal_size::terminal_size_of(stream).map(|(columns, _)| columns.0.into());
    let colour = has_colour(stream);
    let variable = |name: &str| env::var_os(name).and_then(|value| value.into_string().ok());
    PlotStyle { columns: lines::columns(size).min(WIDEST), colour, unicode: is_utf8(variable) }
}

/// The first of these that is set and not empty counts (locale(7)).
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_there_is_more_than_ascii() {
        let of = |set: &[(&str, &str)]| {
            is_utf8(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            })
        };
        assert!(of(&[("LANG", "en_US.UTF-8")]));
        assert!(of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!of(&[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")]));
        assert!(of(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!of(&[]));
    }
}
