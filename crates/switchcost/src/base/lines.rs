//! Lines on a terminal: how many columns it has, and prose that is broken to fit them.

use std::ops::Range;
use std::sync::OnceLock;
use std::{env, io};

use analysis::marked::MarkedText;
use charts::printable;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) prose: usize,
    pub(crate) table: usize,
}

/// As many columns as a terminal has that says nothing.
impl Default for Layout {
    fn default() -> Self {
        Self { prose: WIDTH, table: WIDTH }
    }
}

impl Layout {
    /// Lines of any length, as Markdown has them.
    pub(crate) const UNBROKEN: Self = Self { prose: usize::MAX, table: usize::MAX };

    /// What a page of HTML has room for, whose browser breaks prose.
    pub(crate) const PAGE: Self = Self { prose: usize::MAX, table: WIDTH };

    /// Returns the layout of the terminal that output or messages go to; looked up once.
    pub(crate) fn terminal() -> Self {
        static TERMINAL: OnceLock<Layout> = OnceLock::new();
        *TERMINAL.get_or_init(|| {
            let size = terminal_size_of(io::stdout()).or_else(|| terminal_size_of(io::stderr()));
            let table = columns(size.map(|(columns, _)| columns.0.into()));
            let prose = if wanted().is_some() { table } else { table.min(LONGEST) };
            Self { prose, table }
        })
    }

    /// Returns the same layout, whose tables keep all columns if that is asked for.
    pub(crate) fn with_wide_tables(self, are_wide: bool) -> Self {
        if are_wide { Self { table: usize::MAX, ..self } } else { self }
    }
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

/// Breaks the lines of a text.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| broken(line, columns)).collect();
    lines.join("\n")
}

/// Breaks a line of marked text; the marks stay on their words.
pub(crate) fn wrapped(line: &MarkedText, columns: usize) -> MarkedText {
    if display_width(line) <= columns {
        return line.clone();
    }
    with_marks_of(line, broken(line, columns))
}

/// Returns `shown` with the marks of `text`, from which it differs in blanks, in ends of lines and
/// by letters that are left out.
pub(crate) fn with_marks_of(text: &MarkedText, shown: String) -> MarkedText {
    let mut places = Vec::new();
    for span in text.spans() {
        if let Some(place) = find_shown(text, &span.range, &shown) {
            places.push((place, span.role));
        }
    }
    MarkedText::with_spans(shown, places)
}

/// Returns where a part of a text stands in what is shown of it, by the letters before it.
fn find_shown(text: &str, part: &Range<usize>, shown: &str) -> Option<Range<usize>> {
    let first = count_letters(&text[..part.start]);
    let last = (first + count_letters(&text[part.clone()])).checked_sub(1)?;
    let mut letters = shown.char_indices().filter(|(_, letter)| !letter.is_whitespace());
    let (start, _) = letters.clone().nth(first)?;
    let (end, letter) = letters.nth(last)?;
    Some(start..end + letter.len_utf8())
}

/// Counts what is neither a blank nor something that a terminal would obey.
fn count_letters(text: &str) -> usize {
    printable(text).chars().filter(|letter| !letter.is_whitespace()).count()
}

/// Breaks a line at blanks only: a path or a long name stays whole. What follows is indented, or
/// stands below the words that two blanks set apart from a label.
fn broken(line: &str, columns: usize) -> String {
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
pub(crate) fn command(label: &str, words: &str, columns: usize) -> String {
    continued(&format!("{label}{}", with_whole_words(words)), columns, "  ")
}

fn continued(line: &str, columns: usize, indent: &str) -> String {
    filled(line, columns.saturating_sub(2), indent).replace('\n', " \\\n")
}

/// Breaks the commands of a help's examples, which are indented, in the same way.
pub(crate) fn examples(text: &str, columns: usize) -> String {
    let line = |line: &str| match line.strip_prefix("  ") {
        Some(words) => continued(&format!("  {}", with_whole_words(words)), columns, "    "),
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
        let shown = |line: &str| broken(line, 24);
        assert_eq!(shown("nothing to break here"), "nothing to break here");
        assert_eq!(shown("note: one two three four five"), "note: one two three four\n  five");
        assert_eq!(shown("  costs of a run that is long"), "  costs of a run that is\n    long");
        assert_eq!(
            shown("pipe  a pipe between two processes"),
            "pipe  a pipe between two\n      processes"
        );
        let known = command("to know: ", "switchcost cost --pid 4711", 24);
        assert_eq!(known, "to know: switchcost \\\n  cost --pid 4711");
        // What stands in quotation marks is one word, in examples as in hints.
        let text = "Examples:\n  switchcost run -p 'sync; sync' \"a b\" 'rg x'\n  switchcost top";
        assert_eq!(
            examples(text, 30),
            "Examples:\n  switchcost run -p \\\n    'sync; sync' \"a b\" \\\n    'rg x'\n  \
             switchcost top"
        );
        assert_eq!(examples(text, 200), text);
        assert_eq!(
            shown("the launches scatter by 7 % each"),
            "the launches scatter by\n  7 % each"
        );
        let path = "/a/path/that/is/longer/than/a/line";
        assert_eq!(shown(&format!("run file: {path}")), format!("run file:\n  {path}"));
    }

    #[test]
    fn marks_stand_on_the_same_words_where_controls_are_gone() {
        let cost = MarkedText::figure("1.54 us");
        let text = analysis::marked!["of\x1b 'a\u{202e} \u{e4}' it ", cost, " each"];
        let shown = with_marks_of(&text, "of\n  'a \u{e4}'\n  it 1.54 us each".to_string());
        assert_eq!(&shown[shown.spans()[0].range.clone()], "1.54 us");
        // Where less is shown than there is, nothing is marked at a wrong place.
        assert!(with_marks_of(&text, "of 'a".to_string()).spans().is_empty());
    }
}
