//! Lines on a terminal: how many columns it has, and prose that is broken to fit them.

use std::ops::Range;
use std::sync::OnceLock;
use std::{env, io};

use analysis::marked::MarkedText;
use charts::printable;
use terminal_size::terminal_size_of;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Columns of a terminal that does not say how many it has.
pub(crate) const WIDTH: usize = 80;

/// Fewest columns, however narrow a terminal says it is.
const MIN_COLUMNS: usize = 20;

/// Most columns of prose, on however wide a terminal: longer lines are hard to read.
const MAX_PROSE_COLUMNS: usize = 100;

/// Columns that a text may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) prose: usize,
    pub(crate) table: usize,
}

/// The layout of a terminal that does not say how many columns it has.
impl Default for Layout {
    fn default() -> Self {
        Self { prose: WIDTH, table: WIDTH }
    }
}

impl Layout {
    /// Layout with lines of any length, as Markdown has them.
    pub(crate) const UNBROKEN: Self = Self { prose: usize::MAX, table: usize::MAX };

    /// Layout of a page of HTML, whose browser breaks prose.
    pub(crate) const PAGE: Self = Self { prose: usize::MAX, table: WIDTH };

    /// Returns the layout of the terminal that output or messages go to; looked up once.
    pub(crate) fn terminal() -> Self {
        static TERMINAL: OnceLock<Layout> = OnceLock::new();
        *TERMINAL.get_or_init(|| {
            let size = terminal_size_of(io::stdout()).or_else(|| terminal_size_of(io::stderr()));
            let table = columns(size.map(|(columns, _)| columns.0.into()));
            let prose =
                if wanted_columns().is_some() { table } else { table.min(MAX_PROSE_COLUMNS) };
            Self { prose, table }
        })
    }

    /// Returns the same layout, whose tables keep all columns if that is asked for.
    pub(crate) fn with_wide_tables(self, are_wide: bool) -> Self {
        if are_wide { Self { table: usize::MAX, ..self } } else { self }
    }
}

/// Returns the columns to use: those that the user wants (COLUMNS), else those of the terminal, if
/// there is one.
pub(crate) fn columns(terminal: Option<usize>) -> usize {
    choose_columns(wanted_columns(), terminal)
}

fn wanted_columns() -> Option<usize> {
    let columns = env::var("COLUMNS").ok()?.trim().parse().ok()?;
    if columns > 0 { Some(columns) } else { None }
}

fn choose_columns(wanted: Option<usize>, terminal: Option<usize>) -> usize {
    let columns = match (wanted, terminal) {
        (Some(wanted), _) => wanted,
        (None, Some(terminal)) if terminal > 0 => terminal,
        _ => WIDTH,
    };
    columns.max(MIN_COLUMNS)
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

/// Counts the letters that are neither blanks nor obeyed by a terminal.
fn count_letters(text: &str) -> usize {
    printable(text).chars().filter(|letter| !letter.is_whitespace()).count()
}

/// Breaks a line at blanks only: a path or a long name stays whole. The further lines are indented,
/// or stand below the words that two blanks set apart from a label.
fn broken(line: &str, columns: usize) -> String {
    if display_width(line) <= columns {
        return line.to_string();
    }
    let indent = line.len() - line.trim_start().len();
    let mut hang = indent + 2;
    if let Some(end) = line[indent..].find("  ") {
        let words = line[indent + end..].trim_start();
        let label = display_width(line) - display_width(words);
        if label <= columns / 3 {
            hang = label;
        }
    }
    filled(line, columns, &" ".repeat(hang.min(columns / 2)))
}

/// Writes a command behind a label, to be copied: where it is broken, the line ends in a backslash.
pub(crate) fn command(label: &str, words: &str, columns: usize) -> String {
    continued(&format!("{label}{}", with_whole_words(words)), columns, "  ")
}

fn continued(line: &str, columns: usize, indent: &str) -> String {
    filled(line, columns.saturating_sub(2), indent).replace('\n', " \\\n")
}

/// Breaks the commands of a help's examples, which are indented, like [`command`].
pub(crate) fn examples(text: &str, columns: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        lines.push(match line.strip_prefix("  ") {
            Some(words) => continued(&format!("  {}", with_whole_words(words)), columns, "    "),
            None => line.to_string(),
        });
    }
    lines.join("\n")
}

/// Protects the words of a command that are in quotation marks, or whose blanks follow a backslash:
/// they are not broken. The quotation mark in `'it'\''s'` opens nothing, as a shell reads it.
fn with_whole_words(command: &str) -> String {
    let mut text = String::with_capacity(command.len());
    let mut quote = None;
    let mut is_escaped = false;
    for c in command.chars() {
        let is_whole = quote.is_some() || is_escaped;
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && quote != Some('\'') {
            is_escaped = true;
        } else {
            quote = match quote {
                None if c == '\'' || c == '"' => Some(c),
                Some(open) if open == c => None,
                unchanged => unchanged,
            };
        }
        if c == ' ' && is_whole {
            text.push_str(UNBREAKABLE_BLANK);
        } else {
            text.push(c);
        }
    }
    text
}

/// Units that stay on the line of their figure.
const UNITS: [&str; 8] = ["%", "ns", "us", "ms", "s", "GHz", "KiB", "MiB"];

/// Protects the blanks between figures and units: no line is broken there.
fn with_whole_figures(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for (number, word) in line.split(' ').enumerate() {
        let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
        let is_unit = UNITS.contains(&unit) && text.ends_with(|c: char| c.is_ascii_digit());
        text += if number == 0 {
            ""
        } else if is_unit {
            UNBREAKABLE_BLANK
        } else {
            " "
        };
        text += word;
    }
    text
}

/// A blank at which no line is broken.
const UNBREAKABLE_BLANK: &str = "\u{a0}";

fn filled(line: &str, columns: usize, indent: &str) -> String {
    let options = Options::new(columns)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    let options = options.subsequent_indent(indent);
    textwrap::fill(&with_whole_figures(line), options).replace(UNBREAKABLE_BLANK, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_user_or_the_terminal_or_eighty() {
        assert_eq!(choose_columns(None, None), 80);
        assert_eq!(choose_columns(None, Some(60)), 60);
        assert_eq!(choose_columns(Some(50), Some(60)), 50);
        assert_eq!(choose_columns(None, Some(0)), 80);
        assert_eq!(choose_columns(Some(3), None), MIN_COLUMNS);
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
        // Words in quotation marks are one word, in examples as in hints.
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
    fn a_quotation_mark_behind_a_backslash_opens_no_word() {
        let shown = command("type: ", r"echo 'it'\''s a b' c d\ e", 14);
        assert_eq!(shown, "type: echo \\\n  'it'\\''s a b' \\\n  c d\\ e");
    }

    #[test]
    fn marks_stand_on_the_same_words_where_controls_are_gone() {
        let cost = MarkedText::figure("1.54 us");
        let text = analysis::marked!["of\x1b 'a\u{202e} \u{e4}' it ", cost, " each"];
        let shown = with_marks_of(&text, "of\n  'a \u{e4}'\n  it 1.54 us each".to_string());
        assert_eq!(&shown[shown.spans()[0].range.clone()], "1.54 us");
        // If less is shown than there is, nothing is marked at a wrong place.
        assert!(with_marks_of(&text, "of 'a".to_string()).spans().is_empty());
    }
}
