//! Lines on a terminal: how many columns it has, and prose that is broken to fit them.

use std::cell::Cell;
use std::{env, io};

use terminal_size::terminal_size_of;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Columns where nobody tells how many there are.
pub(crate) const WIDTH: usize = 80;

/// No terminal is taken to be narrower.
const NARROWEST: usize = 20;

/// Prose in longer lines is hard to read, on however wide a terminal.
const LONGEST: usize = 100;

/// Columns that a text may take.
#[derive(Clone, Copy)]
struct Layout {
    prose: usize,
    table: usize,
}

thread_local! {
    static LAYOUT: Cell<Layout> = const { Cell::new(Layout { prose: WIDTH, table: WIDTH }) };
}

/// From here on texts are as wide as the terminal that output or messages go to.
pub(crate) fn choose() {
    let of_output = terminal_size_of(io::stdout()).or_else(|| terminal_size_of(io::stderr()));
    let table = columns(of_output.map(|(columns, _)| columns.0.into()));
    let prose = if wanted().is_some() { table } else { table.min(LONGEST) };
    LAYOUT.set(Layout { prose, table });
}

/// Columns of a terminal that has so many, if it is one. COLUMNS says what a user wants.
pub(crate) fn columns(terminal: Option<usize>) -> usize {
    columns_by(wanted(), terminal)
}

fn wanted() -> Option<usize> {
    env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0)
}

fn columns_by(wanted: Option<usize>, terminal: Option<usize>) -> usize {
    let terminal = terminal.filter(|columns| *columns > 0);
    wanted.or(terminal).unwrap_or(WIDTH).max(NARROWEST)
}

/// Columns that prose may take.
pub(crate) fn width() -> usize {
    LAYOUT.get().prose
}

/// Columns that a table may take.
pub(crate) fn table_width() -> usize {
    LAYOUT.get().table
}

/// Makes a text whose tables keep all columns, if that is asked for.
pub(crate) fn with_tables<T>(are_whole: bool, make: impl FnOnce() -> T) -> T {
    let layout = LAYOUT.get();
    let table = if are_whole { usize::MAX } else { layout.table };
    laid_out(Layout { table, ..layout }, make)
}

/// Makes a text for so many columns.
pub(crate) fn within<T>(columns: usize, make: impl FnOnce() -> T) -> T {
    laid_out(Layout { prose: columns, table: columns }, make)
}

/// Makes or prints a text in lines of any length, as Markdown has them.
pub(crate) fn unbroken<T>(make: impl FnOnce() -> T) -> T {
    within(usize::MAX, make)
}

fn laid_out<T>(layout: Layout, make: impl FnOnce() -> T) -> T {
    let before = LAYOUT.replace(layout);
    let made = make();
    LAYOUT.set(before);
    made
}

/// A text whose prose fits. Tables fit already; they are known by the rule below their head.
pub(crate) fn fitted(text: &str) -> String {
    let mut lines = text.split('\n').peekable();
    let (mut fitting, mut table) = (Vec::new(), None);
    while let Some(line) = lines.next() {
        let below = lines.peek().filter(|line| is_rule(line));
        table = below.map(|rule| display_width(rule)).or(table.filter(|_| !line.is_empty()));
        let is_row = table.is_some_and(|columns| display_width(line) <= columns);
        fitting.push(if is_row { line.to_string() } else { wrapped(line) });
    }
    fitting.join("\n")
}

fn is_rule(line: &str) -> bool {
    line.len() > 1 && line.bytes().all(|byte| byte == b'-')
}

/// A line broken at blanks only: a path or a long name stays whole. What follows is indented, or
/// stands below the words that two blanks set apart from a label.
pub(crate) fn wrapped(line: &str) -> String {
    let columns = width();
    if display_width(line) <= columns {
        return line.to_string();
    }
    let indent = line.len() - line.trim_start().len();
    let label = line[indent..].find("  ").map(|end| {
        let words = line[indent + end..].trim_start();
        display_width(line) - display_width(words)
    });
    let hang = label.filter(|label| *label <= columns / 3).unwrap_or(indent + 2);
    filled(line, columns, &" ".repeat(hang.min(columns / 2)))
}

/// A command behind a label, to be copied: where it is broken a backslash goes on.
pub(crate) fn command(label: &str, words: &str) -> String {
    continued(&format!("{label}{}", with_whole_words(words)), "  ")
}

fn continued(line: &str, indent: &str) -> String {
    filled(line, width().saturating_sub(2), indent).replace('\n', " \\\n")
}

/// The same of the commands of a help's examples, which are indented.
pub(crate) fn examples(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("  ") {
        Some(words) => continued(&format!("  {}", with_whole_words(words)), "    "),
        None => line.to_string(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A command whose words in quotation marks are not broken.
fn with_whole_words(command: &str) -> String {
    let mut within = None;
    let blank = |c: char| {
        within = match within {
            None if c == '\'' || c == '"' => Some(c),
            Some(quote) if quote == c => None,
            other => other,
        };
        if c == ' ' && within.is_some() { FIXED.to_string() } else { c.to_string() }
    };
    command.chars().map(blank).collect()
}

/// Units that stay on the line of their figure.
const UNITS: [&str; 8] = ["%", "ns", "us", "ms", "s", "GHz", "KiB", "MiB"];

/// The line with blanks that are not broken between figures and units.
fn bound(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for (number, word) in line.split(' ').enumerate() {
        let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
        let is_unit = UNITS.contains(&unit) && text.ends_with(|c: char| c.is_ascii_digit());
        text += if number == 0 {
            ""
        } else if is_unit {
            FIXED
        } else {
            " "
        };
        text += word;
    }
    text
}

/// A blank at which no line is broken.
const FIXED: &str = "\u{a0}";

fn filled(line: &str, columns: usize, indent: &str) -> String {
    let options = Options::new(columns)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(&bound(line), options.subsequent_indent(indent)).replace(FIXED, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_user_or_the_terminal_or_eighty() {
        assert_eq!(columns_by(None, None), 80);
        assert_eq!(columns_by(None, Some(60)), 60);
        assert_eq!(columns_by(Some(50), Some(60)), 50);
        assert_eq!(columns_by(None, Some(0)), 80);
        assert_eq!(columns_by(Some(3), None), NARROWEST);
    }

    #[test]
    fn prose_is_broken_at_blanks_and_hangs() {
        let shown = |line: &str| within(24, || wrapped(line));
        assert_eq!(shown("nothing to break here"), "nothing to break here");
        assert_eq!(shown("note: one two three four five"), "note: one two three four\n  five");
        assert_eq!(shown("  costs of a run that is long"), "  costs of a run that is\n    long");
        assert_eq!(
            shown("pipe  a pipe between two processes"),
            "pipe  a pipe between two\n      processes"
        );
        let known = within(24, || command("to know: ", "switchcost cost --pid 4711"));
        assert_eq!(known, "to know: switchcost \\\n  cost --pid 4711");
        // What stands in quotation marks is one word, in examples as in hints.
        let text = "Examples:\n  switchcost run -p 'sync; sync' \"a b\" 'rg x'\n  switchcost top";
        assert_eq!(
            within(30, || examples(text)),
            "Examples:\n  switchcost run -p \\\n    'sync; sync' \"a b\" \\\n    'rg x'\n  \
             switchcost top"
        );
        assert_eq!(within(200, || examples(text)), text);
        assert_eq!(
            shown("the launches scatter by 7 % each"),
            "the launches scatter by\n  7 % each"
        );
        let path = "/a/path/that/is/longer/than/a/line";
        assert_eq!(shown(&format!("run file: {path}")), format!("run file:\n  {path}"));
    }

    #[test]
    fn rows_of_tables_are_left_alone() {
        let rule = "-".repeat(40);
        let row = "members   ns/switch   rounds   cycles";
        let text = format!("{row}\n{rule}\n{row}\n\nwhat stands below a table is prose again\n");
        let below = "what stands below a\n  table is prose again\n";
        assert_eq!(within(24, || fitted(&text)), format!("{row}\n{rule}\n{row}\n\n{below}"));
    }
}
