//! Rows of rings and rows of trials in one file: the columns of rings first, then what only trials
//! have. What does not apply is empty.

use ::csv::{Reader, StringRecord, Writer};
use anyhow::{Context, Result};
use model::response::{Response, Split};
use model::run::Run;

use crate::report::{csv as rings, trials};

/// Rows of one instrument.
struct Table {
    columns: StringRecord,
    rows: Vec<StringRecord>,
}

impl Table {
    /// Reads what the instrument's own report wrote, and gives cases their number in the whole plan.
    fn read(bytes: &[u8], numbers: &[usize]) -> Result<Self> {
        let mut reader = Reader::from_reader(bytes);
        let columns = reader.headers()?.clone();
        let case = columns.iter().position(|column| column == "case");
        let renumbered = |row: StringRecord| -> StringRecord {
            let number = |cell: &str| numbers.get(cell.parse::<usize>().ok()?);
            let cell = |(place, cell): (usize, &str)| match number(cell) {
                Some(number) if Some(place) == case => number.to_string(),
                _ => cell.to_string(),
            };
            row.iter().enumerate().map(cell).collect()
        };
        let rows = reader.records().map(|row| Ok(renumbered(row?))).collect::<Result<_>>()?;
        Ok(Self { columns, rows })
    }

    /// A row in the order of `columns`.
    fn row_by(&self, row: &StringRecord, columns: &[&str]) -> StringRecord {
        let place = |name: &&str| self.columns.iter().position(|column| column == *name);
        let cell = |name| place(name).and_then(|place| row.get(place)).unwrap_or_default();
        columns.iter().map(cell).collect()
    }
}

/// All samples of a run, with a header line, by round and case.
pub(in crate::report) fn rows(run: &Run<Response>) -> Result<Vec<u8>> {
    let Split { rings, trials } = Split::of(&run.header.plan, &run.samples, &run.failures);
    let numbers = [rings.numbers.clone(), trials.numbers.clone()];
    let written =
        [rings::rows(&rings.into_run(&run.header))?, trials::rows(&trials.into_run(&run.header))?];
    let read = |(bytes, numbers): (&Vec<u8>, &Vec<usize>)| Table::read(bytes, numbers);
    let tables: Vec<Table> =
        written.iter().zip(&numbers).map(read).collect::<Result<_>>().context("cannot read CSV")?;
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
