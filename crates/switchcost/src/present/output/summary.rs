//! A run in one row a case: as CSV, and as a table in Markdown.

use anyhow::Result;
use charts::clean;
use model::estimate::Estimate;
use model::run::Run;
use model::subject::{Quantity, Subcase, Subject};
use model::words;

use super::csv;

/// Labels of a case that have a column of their own; empty where a case has none of that name.
const LABELS: [&str; 9] =
    ["members", "kind", "link", "work", "stride", "op", "placement", "policy", "state"];

/// Columns of `summary-csv`; the guide lists them with their units.
const COLUMNS: [&str; 26] = [
    "run",
    "name",
    "host",
    "experiment",
    "case",
    "title",
    "members",
    "kind",
    "link",
    "work_bytes",
    "stride_bytes",
    "op",
    "placement",
    "policy",
    "state",
    "quantity",
    "estimate",
    "low",
    "high",
    "unit",
    "value",
    "not_quotable",
    "cycles",
    "clock_ghz",
    "elasticity",
    "elasticity_error",
];

/// The figure that stands for a case, of which a run has one estimate. `estimate` is it if it may
/// be quoted, `value` whatever was found.
fn figure(case: &Subcase) -> Option<(Quantity, Estimate)> {
    let (of, values) = case.figures.first_key_value()?;
    Some((*of, values.launches().first()?.estimate?))
}

/// The figure in cycles of the core's clock, if it may be quoted; that clock in GHz; by which power
/// of its period the figure goes, and that one's standard error.
fn at_clock(case: &Subcase, target: &str) -> [Option<f64>; 4] {
    let values = case.figures.first_key_value().map(|(_, values)| values);
    let launch = values.and_then(|values| values.launches().first());
    let cycles = launch.and_then(|launch| launch.cycles(target)?.quote_cost().ok());
    let power = launch.and_then(|launch| launch.clock?.elasticity);
    [
        cycles.map(|of| of.value()),
        launch.and_then(|launch| launch.clock_ghz(target)),
        power.map(|of| of.value),
        power.map(|of| of.standard_error),
    ]
}

/// One row a case.
pub(crate) fn summary_csv(run: &Run) -> Result<Vec<u8>> {
    let (subject, header) = (Subject::of_run(run), &run.header);
    let row = |case: &Subcase| {
        let mut cells = vec![
            header.run.clone(),
            csv::known(header.name.as_ref()),
            csv::known(header.host.as_ref()),
            header.plan.experiment.to_string(),
            case.number.to_string(),
            case.title.clone(),
        ];
        cells.extend(LABELS.map(|name| csv::known(case.label(name))));
        let (of, estimate) = figure(case).unzip();
        let number = |value: Option<f64>| csv::known(value);
        cells.extend([
            csv::known(of.map(Quantity::in_words)),
            number(estimate.and_then(|of| of.quote_cost().ok()).map(|of| of.value())),
            number(estimate.and_then(|of| of.low)),
            number(estimate.and_then(|of| of.high)),
            csv::known(of.map(|_| "ns")),
            number(estimate.map(|of| of.value)),
            csv::known(estimate.and_then(|of| of.quote_cost().err()).map(|why| why.of_time())),
        ]);
        cells.extend(at_clock(case, &header.build.target).map(number));
        cells
    };
    csv::write(&COLUMNS, subject.cases.iter().map(row))
}

/// A table for a page or a comment.
pub(crate) fn markdown(run: &Run) -> Vec<u8> {
    let subject = Subject::of_run(run);
    let escaped = |text: &str| clean(text).replace('|', "\\|");
    let mut text = format!(
        "**{}** on {}{}\n\n| case | cost of | estimate | interval | note |\n\
         |:--|:--|--:|--:|:--|\n",
        escaped(run.header.called()),
        escaped(&subject.side.machine),
        run.unfinished().map_or(String::new(), |how| format!(" ({})", how.to_lowercase()))
    );
    for case in &subject.cases {
        let (of, estimate) = figure(case).unzip();
        let dash = || "-".to_string();
        let quoted = estimate.and_then(|of| of.quote_cost().ok());
        let time = quoted.map_or_else(dash, |of| words::time(of.value()));
        let interval = quoted.map_or_else(dash, |of| {
            format!("{} to {}", words::time(of.low()), words::time(of.high()))
        });
        let note = match (estimate.map(|of| of.quote_cost()), &case.failure) {
            (None, Some(failure)) => format!("not measured: {failure}"),
            (None, None) => "not measured".to_string(),
            (Some(Err(why)), _) => why.of_time(),
            (Some(Ok(_)), _) => String::new(),
        };
        text += &format!(
            "| {} | {} | {time} | {interval} | {} |\n",
            escaped(&case.title),
            of.map_or("-", Quantity::in_words),
            escaped(&note)
        );
    }
    text.into_bytes()
}
