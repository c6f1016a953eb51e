//! A run in one row a case: as CSV, and as a table in Markdown.

use anyhow::Result;
use charts::clean;
use model::estimate::Estimate;
use model::run::Run;
use model::speed::Speed;
use model::subject::{Quantity, Subcase, Subject};
use model::words;

use super::csv;

/// Labels of a case that have a column of their own; empty where a case has none of that name.
const LABELS: [&str; 9] =
    ["members", "kind", "link", "work", "stride", "op", "placement", "policy", "state"];

/// Columns of `summary-csv`; the guide lists them with their units.
const COLUMNS: [&str; 20] = [
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
];

/// The figure that stands for a case, of which a run has one estimate.
fn figure(case: &Subcase) -> Option<(Quantity, Estimate)> {
    let (of, values) = case.figures.first_key_value()?;
    Some((*of, values.launches().first()?.estimate?))
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
            number(estimate.map(|of| of.value)),
            number(estimate.and_then(|of| of.low)),
            number(estimate.and_then(|of| of.high)),
            csv::known(of.map(|_| "ns")),
        ]);
        cells
    };
    csv::write(&COLUMNS, subject.cases.iter().map(row))
}

/// A table for a page or a comment.
pub(crate) fn markdown(run: &Run) -> Vec<u8> {
    let subject = Subject::of_run(run);
    let escaped = |text: &str| clean(text).replace('|', "\\|");
    let mut text = format!(
        "**{}** on {}\n\n| case | cost of | estimate | interval | note |\n|:--|:--|--:|--:|:--|\n",
        escaped(run.header.called()),
        escaped(&subject.side.machine)
    );
    for case in &subject.cases {
        let (of, estimate) = figure(case).unzip();
        let time = |ns: Option<f64>| ns.map_or("-".to_string(), words::time);
        let interval = estimate.and_then(|of| of.interval());
        let interval = interval.map_or("-".to_string(), |i| {
            format!("{} to {}", words::time(i.low), words::time(i.high))
        });
        let note = match (estimate, &case.failure) {
            (None, Some(failure)) => format!("not measured: {failure}"),
            (None, None) => "not measured".to_string(),
            (Some(of), _) if of.speed == Speed::Contended => "full speed not seen".to_string(),
            (Some(of), _) if !of.resolved => "not resolved".to_string(),
            _ => String::new(),
        };
        text += &format!(
            "| {} | {} | {} | {interval} | {} |\n",
            escaped(&case.title),
            of.map_or("-", Quantity::in_words),
            time(estimate.map(|of| of.value)),
            escaped(&note)
        );
    }
    text.into_bytes()
}
