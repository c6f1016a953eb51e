//! The text of a command before it is known how wide the terminal is: prose, tables, drawings and
//! commands to be copied, in order.
//!
//! | Block | in a terminal that is too narrow |
//! |---|---|
//! | prose | is broken between words |
//! | table | leaves out the columns that matter least |
//! | drawing | stays as it is |
//! | command | is broken with backslashes, so that it can be copied |

use std::ops::Range;

use analysis::marked::{MarkedText, SpanRole};

use super::table::Table;
use crate::base::lines::{Layout, wrapped};

/// A part of a printout.
#[derive(Clone, Debug)]
enum PrintoutBlock {
    /// Lines of prose, with their ends.
    Prose(MarkedText),
    /// A table, without the end of its last line.
    Table(Table),
    /// Lines that are not broken, with their ends.
    Drawing(String),
    /// A command to be copied, behind a label. Where it is broken, a backslash continues it.
    Command { label: String, words: String },
}

/// Prose, tables, drawings and commands, one behind another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printout {
    blocks: Vec<PrintoutBlock>,
}

/// Makes a printout from parts, one behind another.
macro_rules! printout {
    ($($part:expr),* $(,)?) => {{
        let mut printout = $crate::report::printout::Printout::default();
        $(printout.push($part);)*
        printout
    }};
}
pub(crate) use printout;

impl Printout {
    /// Makes a printout of lines that are not broken.
    pub(crate) fn drawing(lines: String) -> Self {
        Self { blocks: vec![PrintoutBlock::Drawing(lines)] }
    }

    /// Makes a printout of a command to be copied, behind a label.
    pub(crate) fn command(label: &str, words: &str) -> Self {
        let (label, words) = (label.to_string(), words.to_string());
        Self { blocks: vec![PrintoutBlock::Command { label, words }] }
    }

    /// Adds a part at the end.
    pub(crate) fn push(&mut self, part: impl Into<Self>) {
        for block in part.into().blocks {
            match (self.blocks.last_mut(), block) {
                (Some(PrintoutBlock::Prose(text)), PrintoutBlock::Prose(more)) => text.push(more),
                (_, block) => self.blocks.push(block),
            }
        }
    }

    /// Returns whether nothing would be printed.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| match block {
            PrintoutBlock::Prose(text) => text.is_empty(),
            PrintoutBlock::Table(_) | PrintoutBlock::Command { .. } => false,
            PrintoutBlock::Drawing(lines) => lines.is_empty(),
        })
    }

    /// Returns the tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            PrintoutBlock::Table(table) => Some(table),
            PrintoutBlock::Prose(_) | PrintoutBlock::Drawing(_) | PrintoutBlock::Command { .. } => {
                None
            }
        })
    }

    /// Returns whether a cell of a table is marked as `role`.
    pub(crate) fn has_cell(&self, role: SpanRole) -> bool {
        self.tables().any(|table| table.has(role))
    }

    /// Returns the text, broken to fit the layout.
    pub(crate) fn text(&self, layout: Layout) -> MarkedText {
        let (text, fixed) = self.unbroken(layout);
        broken(&text, &fixed, layout.prose)
    }

    /// Returns the text with its prose unbroken, and the ranges of it that are not prose.
    fn unbroken(&self, layout: Layout) -> (MarkedText, Vec<Range<usize>>) {
        let (mut text, mut fixed) = (MarkedText::default(), Vec::new());
        for block in &self.blocks {
            let start = text.len();
            match block {
                PrintoutBlock::Prose(prose) => text.push(prose),
                PrintoutBlock::Table(table) => {
                    let (rows, below) = table.rendered(layout.table);
                    text.push(rows);
                    fixed.push(start..text.len());
                    text.push(below);
                }
                PrintoutBlock::Drawing(lines) => {
                    text.push(lines);
                    fixed.push(start..text.len());
                }
                PrintoutBlock::Command { label, words } => {
                    let columns = layout.prose.min(layout.table);
                    text.push(crate::base::lines::command(label, words, columns));
                    fixed.push(start..text.len());
                }
            }
        }
        (text, fixed)
    }

    /// Joins lines, one below another. The last one has no end.
    pub(crate) fn lines(lines: impl IntoIterator<Item = impl Into<Self>>) -> Self {
        let mut joined = Self::default();
        for (number, line) in lines.into_iter().enumerate() {
            if number > 0 {
                joined.push("\n");
            }
            joined.push(line);
        }
        joined
    }

    /// Joins parts with an empty line between them, ending with a newline. Leaves out empty parts,
    /// and empty lines around each part.
    pub(crate) fn paragraphs(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = Self::default();
        for part in parts {
            let part = part.trimmed();
            if part.is_empty() {
                continue;
            }
            if !joined.is_empty() {
                joined.push("\n\n");
            }
            joined.push(part);
        }
        joined.push("\n");
        joined
    }

    /// Returns the printout without empty lines at its beginning and its end.
    fn trimmed(mut self) -> Self {
        if let Some(PrintoutBlock::Prose(text)) = self.blocks.first_mut() {
            let lead = text.len() - text.trim_start_matches('\n').len();
            *text = text.slice(lead..text.len());
        }
        loop {
            match self.blocks.last_mut() {
                Some(PrintoutBlock::Prose(text)) => {
                    *text = text.slice(0..text.trim_end().len());
                    if !text.is_empty() {
                        return self;
                    }
                    self.blocks.pop();
                }
                Some(PrintoutBlock::Drawing(lines)) => {
                    lines.truncate(lines.trim_end().len());
                    if !lines.is_empty() {
                        return self;
                    }
                    self.blocks.pop();
                }
                Some(PrintoutBlock::Table(_) | PrintoutBlock::Command { .. }) | None => {
                    return self;
                }
            }
        }
    }
}

/// Breaks the lines of a text, except those that are in a fixed range.
fn broken(text: &MarkedText, fixed: &[Range<usize>], columns: usize) -> MarkedText {
    let (mut lines, mut start) = (Vec::new(), 0);
    for line in text.split('\n') {
        let end = start + line.len();
        // An empty line counts as one letter: it may stand within a drawing.
        let is_fixed = fixed.iter().any(|part| part.start < end.max(start + 1) && start < part.end);
        let line = text.slice(start..end);
        lines.push(if is_fixed { line } else { wrapped(&line, columns) });
        start = end + 1;
    }
    MarkedText::join(lines, "\n")
}

impl From<Table> for Printout {
    fn from(table: Table) -> Self {
        Self { blocks: vec![PrintoutBlock::Table(table)] }
    }
}

impl From<MarkedText> for Printout {
    fn from(text: MarkedText) -> Self {
        Self { blocks: vec![PrintoutBlock::Prose(text)] }
    }
}

impl From<&MarkedText> for Printout {
    fn from(text: &MarkedText) -> Self {
        text.clone().into()
    }
}

impl From<String> for Printout {
    fn from(text: String) -> Self {
        MarkedText::from(text).into()
    }
}

impl From<&String> for Printout {
    fn from(text: &String) -> Self {
        MarkedText::from(text).into()
    }
}

impl From<&str> for Printout {
    fn from(text: &str) -> Self {
        MarkedText::from(text).into()
    }
}

impl<T: Into<Printout>> From<Option<T>> for Printout {
    fn from(part: Option<T>) -> Self {
        part.map_or_else(Self::default, Into::into)
    }
}

/// Writes prose in whole lines and tables in 80 columns, for messages and tests.
impl std::fmt::Display for Printout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(Layout::PAGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(columns: usize) -> Layout {
        Layout { prose: columns, table: columns }
    }

    #[test]
    fn prose_is_broken_and_rows_are_not() {
        let row = ["pipe by a pair", "1922", "1878 to 1966"];
        let table = Table::new(["link", "ns/switch", "interval"], [row]);
        let page = printout!["a sentence of some words\n\n", table, "\nand another that is long\n"];
        let text = page.text(narrow(42));
        assert!(text.contains("pipe by a pair       1922  1878 to 1966"), "{text}");
        let text = page.text(narrow(20));
        assert!(text.starts_with("a sentence of some\n  words\n\n"), "{text}");
        assert!(text.ends_with("and another that is\n  long\n"), "{text}");
    }

    #[test]
    fn paragraphs_have_one_empty_line_between_them() {
        let drawn = Printout::drawing("| |\n\n".to_string());
        let page = Printout::paragraphs([
            printout!["one\n"],
            Printout::default(),
            printout!["\n", drawn],
            printout!["two"],
        ]);
        assert_eq!(page.to_string(), "one\n\n| |\n\ntwo\n");
    }

    #[test]
    fn marks_stay_where_lines_are_broken() {
        let cost = MarkedText::figure("1.54 us");
        let page = printout![analysis::marked!["a switch of two costs ", cost, " here"]];
        let text = page.text(narrow(24));
        assert_eq!(text.as_str(), "a switch of two costs\n  1.54 us here");
        assert_eq!(&text[text.spans()[0].range.clone()], "1.54 us");
    }
}
