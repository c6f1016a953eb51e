//! Tables whose columns are declared once: each with its head and the function that makes its cell.
//! The same declaration gives a table on the terminal, a table in Markdown and CSV.

use analysis::marked::MarkedText;
use anyhow::Result;

use super::csv;
use crate::report::table::Table;

/// The columns of a table whose rows are made from values of type `R`, in their order.
pub(crate) struct Columns<'a, R>(Vec<DeclaredColumn<'a, R>>);

struct DeclaredColumn<'a, R> {
    /// Stands above the cells, with their unit.
    head: String,
    cell: Box<dyn Fn(&R) -> MarkedText + 'a>,
    /// Words are aligned to the left, figures to the right.
    is_text: bool,
}

impl<'a, R> Columns<'a, R> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a column of words, aligned to the left.
    pub(crate) fn left<C: ToString>(self, head: &str, cell: impl Fn(&R) -> C + 'a) -> Self {
        self.marked(head, move |row| cell(row).to_string().into())
    }

    /// Adds a column of words that may be marked, aligned to the left.
    pub(crate) fn marked(mut self, head: &str, cell: impl Fn(&R) -> MarkedText + 'a) -> Self {
        let head = head.to_string();
        self.0.push(DeclaredColumn { head, cell: Box::new(cell), is_text: true });
        self
    }

    /// Adds a column of figures, aligned to the right.
    pub(crate) fn right<C: ToString>(self, head: &str, cell: impl Fn(&R) -> C + 'a) -> Self {
        self.marked_figure(head, move |row| cell(row).to_string().into())
    }

    /// Adds a column of figures that may be marked, aligned to the right.
    pub(crate) fn marked_figure(
        mut self,
        head: &str,
        cell: impl Fn(&R) -> MarkedText + 'a,
    ) -> Self {
        let head = head.to_string();
        self.0.push(DeclaredColumn { head, cell: Box::new(cell), is_text: false });
        self
    }

    /// Adds a column of figures; an unknown one is a dash.
    pub(crate) fn or_dash<C: ToString>(
        self,
        head: &str,
        cell: impl Fn(&R) -> Option<C> + 'a,
    ) -> Self {
        self.right(head, move |row| match cell(row) {
            Some(figure) => figure.to_string(),
            None => "-".to_string(),
        })
    }

    /// Adds a column of figures for CSV; an unknown one is empty.
    pub(crate) fn or_empty<C: ToString>(
        self,
        head: &str,
        cell: impl Fn(&R) -> Option<C> + 'a,
    ) -> Self {
        self.right(head, move |row| csv::known(cell(row)))
    }

    /// Returns the rows as a table for the terminal.
    pub(crate) fn table(&self, rows: impl IntoIterator<Item = R>) -> Table {
        let cells = rows.into_iter().map(|row| self.cells(&row));
        Table::new(self.heads(), cells).texts(|number| self.0[number].is_text)
    }

    /// Returns the rows as a table in Markdown, ending with a newline.
    pub(crate) fn markdown(&self, rows: impl IntoIterator<Item = R>) -> String {
        let mut text = markdown_line(&self.heads());
        for column in &self.0 {
            text += if column.is_text { "|:--" } else { "|--:" };
        }
        text += "|\n";
        for row in rows {
            text += &markdown_line(&self.plain_cells(&row));
        }
        text
    }

    /// Returns the rows as CSV, below a line with the heads.
    pub(crate) fn csv(&self, rows: impl IntoIterator<Item = R>) -> Result<Vec<u8>> {
        let heads: Vec<&str> = self.0.iter().map(|column| &*column.head).collect();
        let rows = rows.into_iter().map(|row| self.plain_cells(&row));
        csv::write(&heads, rows)
    }

    fn heads(&self) -> Vec<String> {
        self.0.iter().map(|column| column.head.clone()).collect()
    }

    fn cells(&self, row: &R) -> Vec<MarkedText> {
        self.0.iter().map(|column| (column.cell)(row)).collect()
    }

    fn plain_cells(&self, row: &R) -> Vec<String> {
        self.cells(row).into_iter().map(String::from).collect()
    }
}

/// Writes a line of a table in Markdown. A bar within a cell would end it, and is escaped.
fn markdown_line(cells: &[String]) -> String {
    let mut line = String::new();
    for cell in cells {
        line += &format!("| {} ", cell.trim().replace('|', "\\|"));
    }
    line + "|\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_does_not_end_a_cell_of_markdown() {
        let columns = Columns::<&str>::new()
            .left("a|b", |text| text.to_string())
            .right("n", |text| text.len());
        assert_eq!(
            columns.markdown(["x|y", "z"]),
            "| a\\|b | n |\n|:--|--:|\n| x\\|y | 3 |\n| z | 1 |\n"
        );
    }
}
