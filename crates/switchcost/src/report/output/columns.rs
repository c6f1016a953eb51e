//! Tables of declared columns: each is what stands above it, and how a row fills its cell.

use analysis::marked::MarkedText;
use anyhow::Result;

use super::csv;
use crate::report::table::Table;

/// The columns of a table whose rows are of `R`, in their order.
pub(crate) struct Columns<'a, R>(Vec<Column<'a, R>>);

struct Column<'a, R> {
    /// With the unit of what is below it.
    head: String,
    cell: Box<dyn Fn(&R) -> MarkedText + 'a>,
    /// Words stand to the left.
    is_text: bool,
}

impl<'a, R> Columns<'a, R> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a column of words, to the left.
    pub(crate) fn left<C: ToString>(mut self, head: &str, of: impl Fn(&R) -> C + 'a) -> Self {
        let cell = Box::new(move |row: &R| of(row).to_string().into());
        self.0.push(Column { head: head.to_string(), cell, is_text: true });
        self
    }

    /// Adds a column of words that may be marked, to the left.
    pub(crate) fn marked(mut self, head: &str, cell: impl Fn(&R) -> MarkedText + 'a) -> Self {
        self.0.push(Column { head: head.to_string(), cell: Box::new(cell), is_text: true });
        self
    }

    /// Adds a column of figures, to the right.
    pub(crate) fn right<C: ToString>(self, head: &str, of: impl Fn(&R) -> C + 'a) -> Self {
        let mut columns = self.left(head, of);
        columns.0.last_mut().into_iter().for_each(|last| last.is_text = false);
        columns
    }

    /// Adds a column of figures; one that is not known is a dash.
    pub(crate) fn or_dash<C: ToString>(
        self,
        head: &str,
        of: impl Fn(&R) -> Option<C> + 'a,
    ) -> Self {
        self.right(head, move |row| of(row).map_or("-".to_string(), |of| of.to_string()))
    }

    /// Adds a column of figures for CSV; one that is not known is empty.
    pub(crate) fn or_empty<C: ToString>(
        self,
        head: &str,
        of: impl Fn(&R) -> Option<C> + 'a,
    ) -> Self {
        self.right(head, move |row| csv::known(of(row)))
    }

    /// The rows on the terminal.
    pub(crate) fn table(&self, rows: impl IntoIterator<Item = R>) -> Table {
        let cells = rows.into_iter().map(|row| self.cells(&row));
        Table::new(self.heads(), cells).texts(|at| self.0[at].is_text)
    }

    /// The rows as a table in Markdown, ending with a newline.
    pub(crate) fn markdown(&self, rows: impl IntoIterator<Item = R>) -> String {
        let line = |cells: Vec<MarkedText>| {
            let cells = cells.iter().map(|cell| cell.trim().replace('|', "\\|"));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = self.0.iter().map(|column| if column.is_text { "|:--" } else { "|--:" });
        let rows = rows.into_iter().map(|row| line(self.cells(&row)));
        line(self.heads().into_iter().map(MarkedText::from).collect())
            + &rule.collect::<String>()
            + "|\n"
            + &rows.collect::<String>()
    }

    /// The rows as CSV.
    pub(crate) fn csv(&self, rows: impl IntoIterator<Item = R>) -> Result<Vec<u8>> {
        let heads: Vec<&str> = self.0.iter().map(|column| &*column.head).collect();
        let text = |row| self.cells(&row).into_iter().map(String::from).collect();
        csv::write(&heads, rows.into_iter().map(text))
    }

    fn heads(&self) -> Vec<String> {
        self.0.iter().map(|column| column.head.clone()).collect()
    }

    fn cells(&self, row: &R) -> Vec<MarkedText> {
        self.0.iter().map(|column| (column.cell)(row)).collect()
    }
}
