//! Tables on a terminal: those of their columns that matter least go where it is too narrow, and
//! what went is said below.

use std::fmt::{self, Display};

use comfy_table::TableComponent::{HeaderLines, MiddleHeaderIntersections};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use textwrap::core::display_width;

use crate::base::lines::table_width;

/// Columns that a text takes at least where it is broken in its cell.
const NARROWEST_TEXT: usize = 24;

/// Rows below their heads, figures to the right.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

struct Column {
    head: String,
    is_text: bool,
    /// Which goes before which: the lowest first.
    goes: usize,
}

impl Table {
    /// Columns go from the last one on; the first two stay.
    pub(crate) fn of(
        heads: impl IntoIterator<Item = impl ToString>,
        rows: impl IntoIterator<Item = impl IntoIterator<Item = impl ToString>>,
    ) -> Self {
        let heads: Vec<String> = heads.into_iter().map(|head| head.to_string()).collect();
        let count = heads.len();
        let column = |(at, head)| Column { head, is_text: false, goes: 2 * count - at };
        let cells = rows.into_iter().map(|row| row.into_iter().map(|cell| cell.to_string()));
        Self {
            columns: heads.into_iter().enumerate().map(column).collect(),
            rows: cells.map(Iterator::collect).collect(),
        }
    }

    /// Columns of words, which stand to the left and may be broken.
    pub(crate) fn texts(mut self, is_text: impl Fn(usize) -> bool) -> Self {
        self.columns.iter_mut().enumerate().for_each(|(at, column)| column.is_text = is_text(at));
        self
    }

    /// These go before all others, in this order.
    pub(crate) fn first_to_go(mut self, heads: &[&str]) -> Self {
        for column in &mut self.columns {
            let place = heads.iter().position(|head| *head == column.head);
            column.goes = place.unwrap_or(column.goes + heads.len());
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn cell(&self, row: usize, at: usize) -> &str {
        self.rows[row].get(at).map_or("", String::as_str)
    }

    /// Of the widest cell.
    fn width_of(&self, at: usize) -> usize {
        let cells = (0..self.rows.len()).map(|row| self.cell(row, at));
        let cells = cells.chain([&*self.columns[at].head]);
        cells.map(display_width).max().unwrap_or(0)
    }

    /// Of these columns, two blanks apart, with the blank at their end; with `is_broken` text is.
    fn width(&self, shown: &[usize], is_broken: bool) -> usize {
        let width = |at: &usize| match self.columns[*at].is_text && is_broken {
            true => self.width_of(*at).min(NARROWEST_TEXT),
            false => self.width_of(*at),
        };
        (shown.iter().map(|at| width(at) + 2).sum::<usize>()).saturating_sub(1)
    }

    /// The columns that fit.
    fn fitting(&self, most: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut going = shown.get(2..).unwrap_or_default().to_vec();
        going.sort_by_key(|at| self.columns[*at].goes);
        for at in going {
            if self.width(&shown, true) <= most {
                break;
            }
            shown.retain(|of| *of != at);
        }
        shown
    }

    /// What to type for the columns that are not shown.
    fn left_out(&self, shown: &[usize]) -> Option<String> {
        let is_left = |(at, of): &(usize, &Column)| !shown.contains(at) && !of.head.is_empty();
        let left = self.columns.iter().enumerate().filter(is_left);
        left_out(&left.map(|(_, of)| &*of.head).collect::<Vec<&str>>())
    }
}

/// What to type for columns of these names, which are not shown.
pub(crate) fn left_out(names: &[&str]) -> Option<String> {
    let columns = if names.len() == 1 { "column" } else { "columns" };
    (!names.is_empty())
        .then(|| format!("--wide shows {} more {columns}: {}", names.len(), names.join(", ")))
}

impl Display for Table {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = table_width();
        let shown = self.fitting(most);
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_style(HeaderLines, '-').set_style(MiddleHeaderIntersections, '-');
        table.set_header(shown.iter().map(|at| &self.columns[*at].head));
        let cells = |row| shown.iter().map(move |at| self.cell(row, *at));
        table.add_rows((0..self.rows.len()).map(cells));
        let is_broken = self.width(&shown, false) > most;
        if is_broken {
            let width = u16::try_from(most).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        for (column, at) in table.column_iter_mut().zip(&shown) {
            let is_text = self.columns[*at].is_text;
            let to = if is_text { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(to);
            column.set_padding((0, 1));
            if is_broken && !is_text && *at > 0 {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        write!(to, "{table}")?;
        self.left_out(&shown).map_or(Ok(()), |left| write!(to, "\n\n{left}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::lines::{with_tables, within};

    fn table() -> Table {
        let row = ["pipe by a pair of processes", "1922", "1878 to 1966", "2813", "8"];
        Table::of(["link", "ns/switch", "interval", "ns/hop", "rounds"], [row])
    }

    #[test]
    fn what_matters_least_goes_and_is_named() {
        let shown = |columns, table: &Table| {
            let text = within(columns, || table.to_string());
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
        let whole = within(40, || with_tables(true, || table().to_string()));
        assert_eq!(whole, all);
    }

    #[test]
    fn words_are_broken_in_their_cell_before_a_figure_goes() {
        let broken = within(66, || table().texts(|at| at == 0).to_string());
        assert!(broken.contains("rounds") && !broken.contains("--wide"), "{broken}");
        let lines: Vec<&str> = broken.lines().map(str::trim_end).collect();
        assert!(lines[2].starts_with("pipe by a pair"), "{broken}");
        assert_eq!(lines[3], "processes", "{broken}");
    }
}
