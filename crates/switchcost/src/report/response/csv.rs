//! Rows of rings and rows of trials in one file: the columns of rings first, then what only trials
//! have. What does not apply is empty.

use ::csv::{Reader, StringRecord, Writer};
use anyhow::{Context, Result};
use model::run::Run;

use crate::report::{csv as rings, trials};

/// Rows of rings, or of trials.
struct Table {
    columns: StringRecord,
    rows: Vec<StringRecord>,
}

impl Table {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::from_reader(bytes);
        let columns = reader.headers()?.clone();
        Ok(Self { columns, rows: reader.records().collect::<Result<_, _>>()? })
    }

    /// A row in the order of `columns`.
    fn row_by(&self, row: &StringRecord, columns: &[&str]) -> StringRecord {
        let place = |name: &&str| self.columns.iter().position(|column| column == *name);
        let cell = |name| place(name).and_then(|place| row.get(place)).unwrap_or_default();
        columns.iter().map(cell).collect()
    }
}

/// All samples of a run, with a header line, by round and case.
pub(crate) fn rows(run: &Run) -> Result<Vec<u8>> {
    let written = [rings::rows(run)?, trials::rows(run)?];
    let read = written.iter().map(|bytes| Table::read(bytes));
    let tables: Vec<Table> = read.collect::<Result<_>>().context("cannot read CSV")?;
    let mut columns: Vec<&str> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let (case, round) = (place("case"), place("round"));
    let mut rows: Vec<StringRecord> = tables
        .iter()
        .flat_map(|table| table.rows.iter().map(|row| table.row_by(row, &columns)))
        .collect();
    let number =
        |row: &StringRecord, place: Option<usize>| -> Option<u64> { row.get(place?)?.parse().ok() };
    rows.sort_by_key(|row| (number(row, round), number(row, case)));
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(&columns).context("cannot write CSV")?;
    rows.iter().try_for_each(|row| writer.write_record(row)).context("cannot write CSV")?;
    writer.into_inner().map_err(|error| error.into_error()).context("cannot write CSV")
}
