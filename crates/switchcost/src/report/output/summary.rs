//! A run as a table with a row for each case: as CSV for programs, in Markdown for people.

use std::collections::{BTreeMap, BTreeSet};

use analysis::estimate::Estimate;
use analysis::measures::{self, MeasureValue, RingMeasure};
use analysis::quote::BestEstimate;
use analysis::results::{CaseResults, LaunchFigure, Quantity, QuantityUnit, Results};
use anyhow::Result;
use charts::clean;
use rundata::run::{Header, Run};
use rundata::words;
use stats::Elasticity;

use super::columns::Columns;
use super::declarations::COLUMNS;

/// The figure that stands for a case: the first of its quantities.
struct CaseEstimate {
    quantity: Quantity,
    estimate: Estimate,
}

impl CaseEstimate {
    /// Returns the figure of a case of one run; absent where there is no estimate.
    fn from_case(case: &CaseResults) -> Option<Self> {
        let (quantity, _) = case.figures.first_key_value()?;
        Some(Self { quantity: *quantity, estimate: launch(case)?.estimate? })
    }
}

/// Returns the figure of the run's only launch, with its clock.
fn launch(case: &CaseResults) -> Option<&LaunchFigure> {
    let (_, figure) = case.figures.first_key_value()?;
    figure.launches().first()
}

/// Priority under real-time policies if none is asked for.
const LOWEST_PRIORITY: &str = "1";

/// Returns a key for each case: unique within the run, and the same on every host, as titles are not.
pub(super) fn keys(cases: &[CaseResults]) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for case in cases {
        *counts.entry(key(case)).or_insert(0) += 1;
    }
    let (mut keys, mut used) = (Vec::new(), BTreeSet::new());
    for case in cases {
        let mut key = key(case);
        if counts[&key] > 1 {
            for (name, value) in &case.details {
                key += &format!(" {name}={value}");
            }
        }
        if !used.insert(key.clone()) {
            key += &format!(" case={}", case.number);
        }
        keys.push(key);
    }
    keys
}

/// Returns the experiment and the settings of a case: `ring members=2 kind=process link=pipe`.
fn key(case: &CaseResults) -> String {
    let mut key = case.experiment.to_string();
    for (name, value) in &case.labels {
        key += &format!(" {name}={value}");
    }
    if let Some(priority) = priority(case).filter(|priority| *priority != LOWEST_PRIORITY) {
        key += &format!(" priority={priority}");
    }
    key
}

/// Returns the priority of a case under a real-time policy.
fn priority(case: &CaseResults) -> Option<&str> {
    let (_, value) = case.details.iter().find(|(name, _)| name == "real-time priority")?;
    if value == "0" { None } else { Some(value.as_str()) }
}

/// Returns one row for each case; docs/columns.md lists the columns with their units.
pub(crate) fn summary_csv(run: &Run) -> Result<Vec<u8>> {
    summary_of(run, &Results::from_run(run))
}

/// A row of the table of cases; a column reads its cell from it.
pub(crate) struct CaseRow<'a> {
    pub(super) header: &'a Header,
    pub(super) case: &'a CaseResults,
    pub(super) key: &'a str,
}

impl CaseRow<'_> {
    pub(super) fn label(&self, name: &str) -> Option<String> {
        self.case.label(name).map(str::to_string)
    }

    pub(super) fn quantity(&self) -> Option<Quantity> {
        CaseEstimate::from_case(self.case).map(|figure| figure.quantity)
    }

    pub(super) fn estimate(&self) -> Option<Estimate> {
        CaseEstimate::from_case(self.case).map(|figure| figure.estimate)
    }

    /// Returns the figure in the unit of its quantity if it may be quoted.
    pub(super) fn quoted(&self) -> Option<f64> {
        Some(self.quantity()?.quote(&self.estimate()?).ok()?.value())
    }

    /// Says why the figure may not be quoted; absent where it may.
    pub(super) fn why_not_quotable(&self) -> Option<String> {
        let quantity = self.quantity()?;
        Some(quantity.why_not(&quantity.quote(&self.estimate()?).err()?))
    }

    /// Returns the figure in cycles of the core's clock if it may be quoted so.
    pub(super) fn quoted_cycles(&self) -> Option<f64> {
        let cycles = launch(self.case)?.cycles(&self.header.build.target)?;
        Some(cycles.quote_cost().ok()?.value())
    }

    pub(super) fn clock_ghz(&self) -> Option<f64> {
        launch(self.case)?.clock_ghz(&self.header.build.target)
    }

    /// Returns the power of the clock's period that the figure goes with.
    pub(super) fn elasticity(&self) -> Option<Elasticity> {
        launch(self.case)?.clock?.elasticity
    }

    pub(super) fn priority(&self) -> Option<&str> {
        priority(self.case)
    }
}

/// Like [`summary_csv`], for a run whose results are computed already.
pub(super) fn summary_of(run: &Run, results: &Results) -> Result<Vec<u8>> {
    cases_csv(run, results, measures::exported_measures())
}

/// Returns the declared columns of cases, and behind them the columns of the exported measures.
fn cases_csv(
    run: &Run,
    results: &Results,
    exported: impl Iterator<Item = &'static RingMeasure>,
) -> Result<Vec<u8>> {
    let keys = keys(&results.cases);
    let mut columns = Columns::<CaseRow>::new();
    for column in COLUMNS {
        if let Some(cell) = column.cell {
            columns = columns.or_empty(column.name, cell);
        }
    }
    for measure in exported {
        columns = columns.or_empty(measure.id, |row| exported_value(measure, row.case));
        for (end, id) in measure.end_ids.into_iter().flatten().enumerate() {
            columns = columns.or_empty(id, move |row| Some(ends_of(measure, row.case)?[end]));
        }
    }
    let rows = results.cases.iter().zip(&keys);
    columns.csv(rows.map(|(case, key)| CaseRow { header: &run.header, case, key }))
}

/// Returns the cell of an exported measure; absent where the measure is not known.
fn exported_value(measure: &RingMeasure, case: &CaseResults) -> Option<String> {
    match (measure.read)(case.summary.as_deref()?) {
        MeasureValue::Flag(is_set) => Some(is_set.to_string()),
        value => value.number().map(|number| number.to_string()),
    }
}

/// Returns a table in Markdown for a page or a comment, below the names of the run and the machine.
pub(crate) fn markdown(run: &Run) -> Vec<u8> {
    markdown_with(run, measures::exported_measures())
}

/// Returns the table with the columns of the exported measures behind its others.
fn markdown_with(run: &Run, exported: impl Iterator<Item = &'static RingMeasure>) -> Vec<u8> {
    let results = Results::from_run(run);
    let mut columns = Columns::<&CaseResults>::new()
        .left("case", |case| clean(&case.title))
        .left("cost of", |case| quantity_words(case))
        .or_dash("estimate", |case| estimate_words(case))
        .or_dash("interval", |case| interval_words(case))
        .left("note", |case| clean(&note(case)));
    for measure in exported {
        if results.cases.iter().all(|case| measure_of(measure, case).is_none()) {
            continue;
        }
        columns = columns.or_dash(measure.title, |case| measure_words(measure, case));
    }
    let unfinished = match run.unfinished() {
        Some(how) => format!(" ({})", how.to_lowercase()),
        None => String::new(),
    };
    let text = format!(
        "**{}** on {}{unfinished}\n\n{}",
        escape_bars(run.header.called()),
        escape_bars(&results.side.machine),
        columns.markdown(&results.cases)
    );
    text.into_bytes()
}

/// Returns the number of a measure of a case; absent where it is not known.
fn measure_of(measure: &RingMeasure, case: &CaseResults) -> Option<f64> {
    (measure.read)(case.summary.as_deref()?).number()
}

/// Returns the ends of the interval of a measure of a case; absent where it is not known.
fn ends_of(measure: &RingMeasure, case: &CaseResults) -> Option<[f64; 2]> {
    (measure.read)(case.summary.as_deref()?).ends()
}

/// Returns a measure of a case, with its interval where that is exported: `0.825 (0.81 to 0.84)`.
fn measure_words(measure: &RingMeasure, case: &CaseResults) -> Option<String> {
    let value = words::three_digits(measure_of(measure, case)?);
    if measure.end_ids.is_none() {
        return Some(value);
    }
    let [low, high] = ends_of(measure, case)?.map(words::three_digits);
    Some(format!("{value} ({low} to {high})"))
}

/// Escapes bars, which would end a cell of a table.
fn escape_bars(text: &str) -> String {
    clean(text).replace('|', "\\|")
}

/// Returns the best figure of a case, at full speed or not.
fn answer(case: &CaseResults) -> Option<BestEstimate> {
    let figure = CaseEstimate::from_case(case)?;
    figure.quantity.answer(&figure.estimate).ok()
}

fn quantity_words(case: &CaseResults) -> &'static str {
    CaseEstimate::from_case(case).map_or("-", |figure| figure.quantity.in_words())
}

fn interval_words(case: &CaseResults) -> Option<String> {
    let quantity = CaseEstimate::from_case(case)?.quantity;
    let (low, high) = answer(case)?.ends()?;
    Some(format!("{} to {}", quantity.value_in_words(low), quantity.value_in_words(high)))
}

fn estimate_words(case: &CaseResults) -> Option<String> {
    let quantity = CaseEstimate::from_case(case)?.quantity;
    let answer = answer(case)?;
    if quantity.unit() == QuantityUnit::Nanoseconds {
        return Some(answer.brief_time());
    }
    Some(format!("{}{}", answer.mark(), quantity.value_in_words(answer.value())))
}

/// Says what a figure is if it is not at full speed in many rounds, or why there is none.
fn note(case: &CaseResults) -> String {
    let Some(figure) = CaseEstimate::from_case(case) else {
        return match &case.failure {
            Some(failure) => format!("not measured: {failure}"),
            None => "not measured".to_string(),
        };
    };
    match figure.quantity.answer(&figure.estimate) {
        Ok(answer) => answer.few_rounds().unwrap_or_else(|| answer.kind().to_string()),
        Err(why) => figure.quantity.why_not(&why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::output::declarations;

    fn fixture() -> Run {
        Run::parse(include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl"))
            .expect("a run file")
    }

    /// Returns the last column of all cells that a line has, without its head.
    fn last_cells(text: &[u8], separator: &str) -> Vec<String> {
        let text = std::str::from_utf8(text).expect("UTF-8");
        let mut cells = Vec::new();
        for line in text.lines().filter(|line| line.contains(separator)) {
            let line = line.trim_end_matches(" |");
            cells.extend(line.rsplit(separator).next().map(str::to_string));
        }
        cells
    }

    #[test]
    fn an_exported_measure_is_the_last_column() {
        let (run, exported) = (fixture(), [&measures::NS_PER_HOP, &measures::ROUNDS]);
        let results = Results::from_run(&run);
        let csv = cases_csv(&run, &results, exported.into_iter()).expect("CSV");
        let mut expected = vec!["rounds".to_string()];
        for case in &results.cases {
            let summary = case.summary.as_ref().expect("a ring");
            expected.push(summary.rounds.to_string());
        }
        assert_eq!(last_cells(&csv, ","), expected);
        let markdown = markdown_with(&run, [&measures::NS_PER_HOP].into_iter());
        let cells = last_cells(&markdown, " | ");
        let hop = results.cases[0].summary.as_ref().and_then(|summary| summary.ns_per_hop);
        let hop = hop.and_then(|hop| hop.quote_cost().ok()).expect("the time of a hop");
        assert_eq!(cells[..2], ["ns/hop".to_string(), words::three_digits(hop.value())]);
    }

    #[test]
    fn the_columns_of_cases_are_those_declared() {
        let run = fixture();
        let text = String::from_utf8(summary_csv(&run).expect("CSV")).expect("UTF-8");
        let mut names: Vec<&str> = text.lines().next().expect("a heading").split(',').collect();
        names.sort_unstable();
        assert_eq!(names, declarations::names(declarations::ExportedTable::Cases));
    }
}
