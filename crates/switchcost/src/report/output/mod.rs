//! Where results go: the options of output, files, and the standard streams.
//!
//! ```text
//! report::terminal    Printout: prose, tables and drawings, of any width
//!        |
//! render_printout     1. break the prose and the tables to fit the layout
//!        |            2. take out control characters, and blanks at the ends of lines
//!        |            3. colour the answer's figure and the verdicts, on a terminal only
//! print_text          standard output; say_text: standard error
//!
//! to_json, csv        bytes of a record or of samples
//!        |
//! write_output        standard output, or a file that is there whole or not at all (`file`)
//! ```
//!
//! Colour comes last: an escape sequence in the text would be taken out as a control character,
//! and would count when lines are broken.

pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod declarations;
pub(crate) mod exports;
pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod judgements;
pub(crate) mod printed;
pub(crate) mod rows;
pub(crate) mod summary;
pub(crate) mod trackers;

use std::env;
use std::fmt::Display;
use std::io::{self, StdoutLock, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use analysis::marked::{MarkedText, SpanRole};
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use charts::{PlotStyle, is_obeyed, printable};
use clap::{Args, ValueEnum};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::Serialize;

use crate::base::failure::{print_message, usage};
use crate::base::lines::{self, Layout, with_marks_of};
use crate::base::values::{Destination, run_name};
use crate::report::printout::Printout;
use crate::report::terminal::View;
use file::{WriteTarget, fill_writer, folder_of};
use printed::{PrintRequest, PrintedMeasure};

/// The option that asks for one number.
const PRINT: &str = "--print";

/// Options of every command that measures: files of results, and what they contain.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FileOptions {
    /// Write the record as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,

    /// Write one row a sample as CSV to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<Destination>,

    /// Print one number alone: ns, cycles, p99, ...; help lists all
    ///
    /// It is that of the case that the first line answers with. `ns:ring of 4` or `ns:members=4` names
    /// another. The report goes to standard error, and so does the reason why a number is not for
    /// quoting.
    #[arg(long, value_name = "MEASURE[:CASE]")]
    pub(crate) print: Option<PrintRequest>,

    /// Print nothing but errors and --json/--csv/--print
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

/// Options of a run that is stored and can be drawn.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
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

/// Options of a command whose results are neither stored nor drawn.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct UnstoredOptions {
    #[command(flatten)]
    pub(crate) files: FileOptions,

    /// Print all that is known: legends, the machine, notes
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) tables: TableOptions,
}

/// Option of commands that print tables and have no other choice of detail.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TableOptions {
    /// Print all columns of tables, however narrow the terminal is
    #[arg(long)]
    pub(crate) wide: bool,
}

impl TableOptions {
    /// Returns the layout of the terminal, with tables of any width if asked for.
    pub(crate) fn layout(self) -> Layout {
        Layout::terminal().with_wide_tables(self.wide)
    }
}

impl Destination {
    /// Returns whether both are the same place, by whatever path.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        let (Self::File(path), Self::File(other_path)) = (self, other) else {
            return self == other;
        };
        if path == other_path {
            return true;
        }
        let real = real_path(path);
        real.is_some() && real == real_path(other_path)
    }
}

/// Returns a path without links; of a file that is not there yet, its folder's path without links.
fn real_path(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let folder = folder_of(path).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

impl FileOptions {
    /// Checks, before anything is measured, that the files can be written. Changes nothing.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(request) = &self.print {
            request.check()?;
        }
        check_apart(&self.places())?;
        if let Some(to) = &self.json {
            check_destination("--json", to)?;
        }
        if let Some(to) = &self.csv {
            check_destination("--csv", to)?;
        }
        Ok(())
    }

    /// Returns all outputs by the flags that ask for them. A printed number has standard output.
    pub(crate) fn places(&self) -> [(&'static str, Option<&Destination>); 3] {
        let print = self.print.is_some().then_some(&Destination::Stdout);
        [(PRINT, print), ("--json", self.json.as_ref()), ("--csv", self.csv.as_ref())]
    }

    /// Returns the option whose figures go to standard output, if any do.
    pub(crate) fn on_stdout(&self) -> Option<&'static str> {
        let stdout = Some(Destination::Stdout);
        if self.print.is_some() {
            Some(PRINT)
        } else if self.json == stdout {
            Some("--json")
        } else if self.csv == stdout {
            Some("--csv")
        } else {
            None
        }
    }

    /// Returns the number that is asked for, if one is.
    pub(crate) fn number(&self) -> Option<&PrintedMeasure> {
        self.print.as_ref().and_then(PrintRequest::number)
    }

    /// Refuses `--print` for `what`, which has no number of its own; `instead` is what has it.
    pub(crate) fn refuse_print(&self, what: &str, instead: &str) -> Result<()> {
        match self.number() {
            Some(_) => Err(usage(format!("{PRINT}: {what} has many figures ({instead})"))),
            None => Ok(()),
        }
    }

    /// Refuses to mix figures, those of `flag`, with what the measured commands print.
    pub(crate) fn refuse_shown(flag: Option<&str>, show_output: bool) -> Result<()> {
        match flag {
            Some(PRINT) if show_output => Err(usage(format!(
                "{PRINT}: with --show-output standard output is the commands' (leave one of them out)"
            ))),
            Some(flag) if show_output => Err(usage(format!(
                "{flag} -: with --show-output standard output is the commands' (accepted here: \
                 {flag} FILE)"
            ))),
            _ => Ok(()),
        }
    }
}

impl OutputOptions {
    /// Refuses `--plot` for `what`, which has no charts.
    pub(crate) fn refuse_plot(&self, what: &str) -> Result<()> {
        if self.plot { Err(usage(format!("--plot: {what} has no charts"))) } else { Ok(()) }
    }
}

/// Checks that no two outputs, which are named by their flags, have the same place: two formats in
/// one would be neither.
pub(crate) fn check_apart(outputs: &[(&str, Option<&Destination>)]) -> Result<()> {
    for (index, (flag, place)) in outputs.iter().enumerate() {
        for (other_flag, other) in &outputs[index + 1..] {
            let (Some(place), Some(other)) = (place, other) else { continue };
            if !place.is_same_place(other) {
                continue;
            }
            let what = match place {
                Destination::Stdout => "standard output",
                Destination::File(_) => "that file",
            };
            let [one, two] = [typed_output(flag, place), typed_output(other_flag, other)];
            return Err(usage(format!("{one} and {two}: only one of them can have {what}")));
        }
    }
    Ok(())
}

/// Returns an output as it was typed: `--json -`. The place of `--print` goes without saying.
fn typed_output(flag: &str, place: &Destination) -> String {
    if flag == PRINT { flag.to_string() } else { format!("{flag} {place}") }
}

/// Checks that the destination of an option can be written to. Changes nothing.
pub(crate) fn check_destination(flag: &str, to: &Destination) -> Result<()> {
    let Destination::File(path) = to else {
        if probe::output_was_closed() {
            return Err(usage(format!("{flag} -: standard output is closed")));
        }
        return Ok(());
    };
    let refuse = |why: &dyn Display| usage(format!("{flag} {}: {why}", path.display()));
    let target = WriteTarget::from_path(path).map_err(|why| refuse(&why))?;
    if !matches!(target, WriteTarget::File(None)) {
        access(path, Access::WRITE_OK).map_err(|errno| refuse(&io::Error::from(errno)))?;
    }
    if let WriteTarget::File(_) = target {
        // The new file is made in the folder, and then moved to its name.
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
    /// A table in Markdown, one row a case
    Markdown,
    /// Go's benchmark format, a line for each case and round: for benchstat
    GoBench,
    /// OpenMetrics: for the textfile collector of node_exporter
    Openmetrics,
    /// Bencher Metric Format: for `bencher run --adapter json`
    Bmf,
    /// JSON for github-action-benchmark, tool `customSmallerIsBetter`
    Gab,
    /// CSV for Apache Otava, a row a run: several runs are a series
    Otava,
    /// Rows of data/modern.csv, for `history`
    History,
    /// What a dataset takes of a run (docs/fleet.md), a line of JSON each; several runs may be named
    #[value(hide = true)]
    Rows,
}

/// Writes a value as JSON, ending with a newline. Characters that a terminal would obey are escaped
/// (RFC 8259, section 7).
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>> {
    let json = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    Ok((escape_controls(&json) + "\n").into_bytes())
}

/// Escapes in JSON all that a terminal would obey. Ends of lines stay: its strings have none.
fn escape_controls(json: &str) -> String {
    // Most JSON has nothing to escape.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return json.to_string();
    }
    let mut text = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if is_obeyed(character) && character != '\n' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text += &format!("\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Writes a value as JSON if a destination was asked for.
pub(crate) fn write_json(value: &impl Serialize, to: Option<&Destination>) -> Result<()> {
    match to {
        Some(to) => write_output(&to_json(value)?, to),
        None => Ok(()),
    }
}

/// Writes bytes to a file or to standard output.
pub(crate) fn write_output(bytes: &[u8], to: &Destination) -> Result<()> {
    write_output_with(to, |to| Ok(to.write_all(bytes)?))
}

/// Writes to a file or to standard output what `fill` makes, piece by piece.
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

/// Prints the errors of outputs to standard error; returns whether all outputs were written.
pub(crate) fn all_written(results: impl IntoIterator<Item = Result<()>>) -> bool {
    // All outputs are written before the first error is printed.
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    for error in &errors {
        print_message(&format!("error: {error:#}"));
    }
    errors.is_empty()
}

/// Prints to standard output. A reader that closed it (`| head`) is no error.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    ignore_broken_pipe(print_or_broken_pipe(bytes))
}

/// Like [`print()`], but returns `BrokenPipe` instead of ignoring it.
pub(crate) fn print_or_broken_pipe(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = stdout()?;
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Locks standard output; an error if it was closed when the program started.
fn stdout() -> io::Result<StdoutLock<'static>> {
    if probe::output_was_closed() { Err(Errno::BADF.into()) } else { Ok(io::stdout().lock()) }
}

/// Renders a printout for a stream, in the width of the terminal.
pub(crate) fn printable_text(printout: impl Into<Printout>, stream: &impl RawStream) -> String {
    render_printout(&printout.into(), Layout::terminal(), stream)
}

/// Renders a printout for a stream: broken to fit the layout, without control characters and
/// without blanks at the ends of lines, in colour if the stream has it.
pub(crate) fn render_printout(
    printout: &Printout,
    layout: Layout,
    stream: &impl RawStream,
) -> String {
    let text = printout.text(layout);
    let mut shown = String::new();
    for line in printable(&text).split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(words) => {
                shown += words.trim_end_matches(' ');
                shown.push('\n');
            }
            // A question that somebody is to answer ends in a blank.
            None => shown += line,
        }
    }
    if has_colour(stream) { coloured(&with_marks_of(&text, shown)) } else { shown }
}

/// Prints a text for people to standard output.
pub(crate) fn print_text(text: impl Into<Printout>) -> io::Result<()> {
    print_fitted(text, Layout::terminal())
}

/// Prints a text for people to standard output, broken to fit the layout.
pub(crate) fn print_fitted(text: impl Into<Printout>, layout: Layout) -> io::Result<()> {
    print(render_printout(&text.into(), layout, &io::stdout()).as_bytes())
}

/// Prints a text for people to standard error. That nobody can read it is no reason to fail.
pub(crate) fn say_text(text: impl Into<Printout>) {
    say_fitted(text, Layout::terminal());
}

/// Prints a text for people to standard error, broken to fit the layout.
pub(crate) fn say_fitted(text: impl Into<Printout>, layout: Layout) {
    let text = render_printout(&text.into(), layout, &io::stderr());
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Makes success of a broken pipe: a reader that has had enough (`| head`) is no failure.
pub(crate) fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Sets colour for the whole program as `--color` says: `auto` is for terminals, and reads NO_COLOR
/// and CLICOLOR_FORCE.
pub(crate) fn set_colour(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Returns whether a stream has colours, by --color, NO_COLOR, CLICOLOR_FORCE, TERM=dumb and whether
/// it is a terminal: clap's own rule.
fn has_colour(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// SGR sequences (ECMA-48, 8.3.117): bold cyan, green, red, yellow; the end of each.
const ANSWER_COLOUR: &str = "\x1b[1;36m";
const BETTER_COLOUR: &str = "\x1b[32m";
const WORSE_COLOUR: &str = "\x1b[31m";
const DOUBTFUL_COLOUR: &str = "\x1b[33m";
const END_COLOUR: &str = "\x1b[0m";

/// Colours the first figure of a text, which is the answer, and all verdicts.
fn coloured(text: &MarkedText) -> String {
    let (mut coloured, mut done) = (String::new(), 0);
    let mut has_answer = false;
    for span in text.spans() {
        let colour = match span.role {
            SpanRole::Figure if !has_answer => ANSWER_COLOUR,
            SpanRole::Better => BETTER_COLOUR,
            SpanRole::Worse => WORSE_COLOUR,
            SpanRole::Doubtful => DOUBTFUL_COLOUR,
            _ => continue,
        };
        has_answer |= span.role == SpanRole::Figure;
        coloured += &text[done..span.range.start];
        coloured += &format!("{colour}{}{END_COLOUR}", &text[span.range.clone()]);
        done = span.range.end;
    }
    coloured + &text[done..]
}

/// Widest plot, in columns, on however wide a terminal.
const MAX_PLOT_COLUMNS: usize = 80;

/// Returns how a plot is drawn on a stream: in its columns, with colour and Unicode if it has them.
pub(crate) fn plot_style(stream: &(impl RawStream + AsFd)) -> PlotStyle {
    let size = terminal_size::terminal_size_of(stream).map(|(columns, _)| columns.0.into());
    PlotStyle {
        columns: lines::columns(size).min(MAX_PLOT_COLUMNS),
        colour: has_colour(stream),
        unicode: is_utf8(|name| env::var_os(name).and_then(|value| value.into_string().ok())),
    }
}

/// Returns whether the locale has UTF-8: the first variable that is set and not empty counts
/// (locale(7)).
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
        let locale = variable(name).unwrap_or_default().to_ascii_lowercase();
        if !locale.is_empty() {
            return locale.contains("utf-8") || locale.contains("utf8");
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use analysis::marked;

    use super::*;

    /// Returns whether a locale of these variables has UTF-8.
    fn has_utf8(set: &[(&str, &str)]) -> bool {
        is_utf8(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn the_locale_says_whether_there_is_more_than_ascii() {
        assert!(has_utf8(&[("LANG", "en_US.UTF-8")]));
        assert!(has_utf8(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!has_utf8(&[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")]));
        assert!(has_utf8(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!has_utf8(&[]));
    }

    /// Returns the text with colours as letters in brackets.
    fn with_letters(text: impl Into<MarkedText>) -> String {
        let mut shown = coloured(&text.into());
        let letters = [
            (ANSWER_COLOUR, "[A:"),
            (BETTER_COLOUR, "[G:"),
            (WORSE_COLOUR, "[B:"),
            (DOUBTFUL_COLOUR, "[D:"),
            (END_COLOUR, "]"),
        ];
        for (code, letter) in letters {
            shown = shown.replace(code, letter);
        }
        shown
    }

    #[test]
    fn the_first_marked_figure_and_all_verdicts_are_coloured() {
        let cost = || marked![MarkedText::figure("1.54 us"), " (1.52 to 1.57)"];
        let text = marked!["A switch of 2 us costs ", cost(), " with 2, ", cost(), ".\n"];
        let expected = "A switch of 2 us costs [A:1.54 us] (1.52 to 1.57) with 2, 1.54 us (1.52 to \
             1.57).\n";
        assert_eq!(with_letters(text), expected);
        let faster = MarkedText::new(SpanRole::Better, "faster");
        let text = marked!["x is ", MarkedText::figure("1.94x"), " ", faster, " than the slower y"];
        assert_eq!(with_letters(text), "x is [A:1.94x] [G:faster] than the slower y");
        let gate = marked![MarkedText::new(SpanRole::Doubtful, "UNDECIDED"), ": PASS or FAIL"];
        assert_eq!(with_letters(gate), "[D:UNDECIDED]: PASS or FAIL");
        for plain in ["nothing was measured\n\n3 ms, slower\n", ""] {
            assert_eq!(with_letters(plain), plain);
        }
    }
}
