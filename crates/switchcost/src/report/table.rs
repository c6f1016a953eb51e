//! Tables on a terminal. Where it is too narrow, words are broken within their cells; if that is not
//! enough, the columns that matter least are left out and named below the table:
//!
//! ```text
//! link  ns/switch  interval
//! -----------------------------
//! pipe       1922  1878 to 1966
//!
//! --wide shows 2 more columns: ns/hop, rounds
//! ```

use analysis::marked::{MarkedText, SpanRole};
use comfy_table::TableComponent::{HeaderLines, MiddleHeaderIntersections};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use textwrap::core::display_width;

/// Narrowest column of words that are broken within their cells.
const MIN_TEXT_COLUMNS: usize = 24;

/// Rows of cells below the heads of their columns.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<MarkedText>>,
    /// Number of columns, from the first one on, that are never left out.
    staying: usize,
}

#[derive(Clone, Debug)]
struct TableColumn {
    head: String,
    /// Words are aligned to the left and may be broken; figures are aligned to the right.
    is_text: bool,
    /// The column with the lowest rank is left out first.
    rank: usize,
}

/// Makes a row from texts of several types.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { [$(::analysis::marked::MarkedText::from($cell)),*] };
}
pub(crate) use cells;

impl Table {
    /// Makes a table of figures. Columns are left out from the last one on; the first two stay.
    pub(crate) fn new(
        heads: impl IntoIterator<Item = impl ToString>,
        rows: impl IntoIterator<Item = impl IntoIterator<Item = impl Into<MarkedText>>>,
    ) -> Self {
        let heads: Vec<String> = heads.into_iter().map(|head| head.to_string()).collect();
        let count = heads.len();
        let mut columns = Vec::new();
        for (number, head) in heads.into_iter().enumerate() {
            columns.push(TableColumn { head, is_text: false, rank: 2 * count - number });
        }
        let mut table = Self { columns, rows: Vec::new(), staying: 2 };
        for row in rows {
            table.rows.push(row.into_iter().map(Into::into).collect());
        }
        table
    }

    /// Declares by their numbers which columns are of words.
    pub(crate) fn texts(mut self, is_text: impl Fn(usize) -> bool) -> Self {
        for (number, column) in self.columns.iter_mut().enumerate() {
            column.is_text = is_text(number);
        }
        self
    }

    /// Declares which columns are left out before all others, in this order.
    pub(crate) fn first_to_go(mut self, heads: &[&str]) -> Self {
        for column in &mut self.columns {
            let place = heads.iter().position(|head| *head == column.head);
            column.rank = place.unwrap_or(column.rank + heads.len());
        }
        self
    }

    /// Declares that the second column may be left out, too.
    pub(crate) fn first_column_stays(self) -> Self {
        Self { staying: 1, ..self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns whether a part of a cell is marked as `role`.
    pub(crate) fn has(&self, role: SpanRole) -> bool {
        let mut cells = self.rows.iter().flatten();
        cells.any(|cell| cell.spans().iter().any(|span| span.role == role))
    }

    fn cell(&self, row: usize, column: usize) -> &str {
        self.rows[row].get(column).map_or("", MarkedText::as_str)
    }

    /// Returns the width of the widest cell, in columns of the terminal.
    fn width_of(&self, column: usize) -> usize {
        let mut width = display_width(&self.columns[column].head);
        for row in 0..self.rows.len() {
            width = width.max(display_width(self.cell(row, column)));
        }
        width
    }

    /// Returns the width of the shown columns, two blanks apart, with the blank at their end. With
    /// `is_broken`, words are broken in their cells.
    fn width(&self, shown: &[usize], is_broken: bool) -> usize {
        let mut width = 0;
        for column in shown {
            let widest = self.width_of(*column);
            let is_broken = is_broken && self.columns[*column].is_text;
            width += 2 + if is_broken { widest.min(MIN_TEXT_COLUMNS) } else { widest };
        }
        width.saturating_sub(1)
    }

    /// Returns the columns that fit into `room`.
    fn fitting(&self, room: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut removable = shown.get(self.staying..).unwrap_or_default().to_vec();
        removable.sort_by_key(|column| self.columns[*column].rank);
        for removed in removable {
            if self.width(&shown, true) <= room {
                break;
            }
            shown.retain(|column| *column != removed);
        }
        shown
    }

    /// Returns the line that names the columns that are not shown.
    fn left_out(&self, shown: &[usize]) -> Option<String> {
        let mut names = Vec::new();
        for (number, column) in self.columns.iter().enumerate() {
            if !shown.contains(&number) && !column.head.is_empty() {
                names.push(column.head.as_str());
            }
        }
        left_out(&names)
    }

    /// Returns the rows in `room` columns of the terminal, with the marks of their cells, and the
    /// text below them. Marks of a table whose words are broken are lost.
    pub(crate) fn rendered(&self, room: usize) -> (MarkedText, String) {
        let shown = self.fitting(room);
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_style(HeaderLines, '-').set_style(MiddleHeaderIntersections, '-');
        table.set_header(shown.iter().map(|column| &self.columns[*column].head));
        for row in 0..self.rows.len() {
            table.add_row(shown.iter().map(|column| self.cell(row, *column)));
        }
        let is_broken = self.width(&shown, false) > room;
        if is_broken {
            let width = u16::try_from(room).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        for (column, number) in table.column_iter_mut().zip(&shown) {
            let is_text = self.columns[*number].is_text;
            let side = if is_text { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(side);
            column.set_padding((0, 1));
            if is_broken && !is_text && *number > 0 {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let text = lines.join("\n");
        let rows = if is_broken { text.into() } else { self.marked(text, &shown) };
        let below = match self.left_out(&shown) {
            Some(line) => format!("\n\n{line}"),
            None => String::new(),
        };
        (rows, below)
    }

    /// Marks in a table's text what is marked in its cells, which it has in their order.
    fn marked(&self, text: String, shown: &[usize]) -> MarkedText {
        let mut parts = Vec::new();
        // Below the heads and the rule.
        let mut start = text.match_indices('\n').nth(1).map_or(text.len(), |(at, _)| at + 1);
        for row in &self.rows {
            for column in shown {
                let Some(cell) = row.get(*column) else { continue };
                let Some(place) = text[start..].find(cell.trim()) else { continue };
                let lead = cell.len() - cell.trim_start().len();
                for span in cell.spans() {
                    let from = (start + place + span.range.start).saturating_sub(lead);
                    parts.push((from..from + span.range.len(), span.role));
                }
                start += place + cell.trim().len();
            }
        }
        MarkedText::with_spans(text, parts)
    }
}

/// Returns the line that names columns that are not shown, and the option that shows them; absent
/// without columns.
pub(crate) fn left_out(names: &[&str]) -> Option<String> {
    let count = names.len();
    let columns = match count {
        0 => return None,
        1 => "column",
        _ => "columns",
    };
    Some(format!("--wide shows {count} more {columns}: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = ["pipe by a pair of processes", "1922", "1878 to 1966", "2813", "8"];
        Table::new(["link", "ns/switch", "interval", "ns/hop", "rounds"], [row])
    }

    fn shown_in(table: &Table, columns: usize) -> String {
        let (rows, below) = table.rendered(columns);
        format!("{rows}{below}")
    }

    #[test]
    fn marks_of_cells_are_those_of_the_rows() {
        let slower = || MarkedText::new(SpanRole::Worse, "slower");
        let row = |link: &str| [MarkedText::from(link), slower(), "slower".into()];
        let table = Table::new(["link", "", "note"], [row("pipe"), row("slower link")]);
        let (text, _) = table.rendered(80);
        let marked: Vec<&str> = text.spans().iter().map(|span| &text[span.range.clone()]).collect();
        assert_eq!(marked, ["slower", "slower"]);
        assert_eq!(text.spans()[1].range.start, text.rfind("slower  slower").expect("a row"));
    }

    #[test]
    fn what_matters_least_goes_and_is_named() {
        let shown = |columns, table: &Table| {
            let text = shown_in(table, columns);
            let widest = text.lines().map(|line| line.trim_end().len()).max();
            assert!(widest <= Some(columns), "{text}");
            text
        };
        let all = shown(80, &table());
        assert!(all.contains("rounds") && !all.contains("--wide"), "{all}");
        let narrow = shown(62, &table());
        assert!(narrow.ends_with("\n\n--wide shows 1 more column: rounds"), "{narrow}");
        let other = shown(62, &table().first_to_go(&["ns/hop"]));
        assert!(other.ends_with("--wide shows 1 more column: ns/hop"), "{other}");
        let two = shown(58, &table());
        assert!(two.ends_with("--wide shows 2 more columns: ns/hop, rounds"), "{two}");
        let last = shown_in(&table().first_to_go(&["ns/switch"]).first_column_stays(), 45);
        assert!(last.ends_with("--wide shows 3 more columns: ns/switch, ns/hop, rounds"), "{last}");
        let whole = shown_in(&table(), usize::MAX);
        assert_eq!(whole, all);
    }

    #[test]
    fn words_are_broken_in_their_cell_before_a_figure_goes() {
        let broken = shown_in(&table().texts(|at| at == 0), 66);
        assert!(broken.contains("rounds") && !broken.contains("--wide"), "{broken}");
        let lines: Vec<&str> = broken.lines().map(str::trim_end).collect();
        assert!(lines[2].starts_with("pipe by a pair"), "{broken}");
        assert_eq!(lines[3], "processes", "{broken}");
    }
}
