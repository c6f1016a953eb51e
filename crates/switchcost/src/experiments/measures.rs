//! The report of trials by their declared measures: an experiment that finds nothing else out needs
//! no more.
//!
//! A trial declares its measures, and the first stands for it: of `clock overhead` the time of a
//! call. The report is then a sentence on the fastest and the slowest case, a table with a column a
//! measure, and bars of the first.

use analysis::estimate::Estimate;
use analysis::findings::TrialSummary;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::{QuotedFigure, cost};
use analysis::record::TrialRecord;
use charts::Figure;
use rundata::run::unfinished;
use rundata::trial::MeasureUnit;
use rundata::words;

use crate::base::values::each_once;
use crate::report::figures::{ChartLabels, bars};
use crate::report::printout::printout;
use crate::report::table::Table;
use crate::report::terminal::{CLOCK_LEGEND, GHZ, ReportText, View, at_clock, interval, value};
use crate::report::tiles::Tile;

/// Words of an experiment for its cases.
pub(super) struct MeasureLabels {
    /// Noun for one case: `call`.
    pub(super) noun: &'static str,
    /// Identifier and title of the chart.
    pub(super) chart: (&'static str, &'static str),
}

/// Labels of an experiment that has none of its own.
const ANY_TRIAL: MeasureLabels =
    MeasureLabels { noun: "trial", chart: ("measures", "What it costs") };

pub(crate) fn text(record: &TrialRecord, view: View) -> ReportText {
    ReportText {
        headline: answer(record, ANY_TRIAL.noun),
        table: printout![measures(record, ANY_TRIAL.noun, view), "\n"],
        details: view.wide.then_some(CLOCK_LEGEND).into(),
        ..ReportText::default()
    }
}

pub(crate) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    chart(record, &ANY_TRIAL, "", index)
}

/// Returns the measure that stands for each case, by the case in words, as far as it is a time.
pub(crate) fn costs(record: &TrialRecord) -> Vec<(String, Estimate)> {
    let mut costs = Vec::new();
    for summary in &record.cases {
        let trial = &summary.case.trial;
        let headline = trial.headline();
        if headline.unit == MeasureUnit::Share {
            continue;
        }
        let estimate = summary.measures.get(headline.name);
        costs.extend(estimate.map(|estimate| (trial.to_string(), *estimate)));
    }
    costs
}

/// Returns the figures that stand for the run: the readings of these clocks, then all else.
pub(crate) fn tiles(record: &TrialRecord, clocks: &[&str]) -> Vec<Tile> {
    let costs = costs(record);
    let mut tiles = Vec::new();
    for clock in clocks {
        if let Some((_, cost)) = costs.iter().find(|(name, _)| name == clock) {
            tiles.extend(Tile::cost(format!("reading {clock}"), Some(*cost)));
        }
    }
    for (name, cost) in &costs {
        if !clocks.contains(&&**name) {
            tiles.extend(Tile::cost(&**name, Some(*cost)));
        }
    }
    tiles
}

/// Returns what the cheapest case costs, and the slowest, as far as they are resolved from the
/// others.
pub(super) fn answer(record: &TrialRecord, noun: &str) -> MarkedText {
    let costs = costs(record);
    let mut quotable: Vec<(String, QuotedFigure)> = Vec::new();
    for (name, cost) in &costs {
        quotable.extend(cost.quote_cost().ok().map(|quoted| (name.clone(), quoted)));
    }
    if unfinished(record.end.as_ref()).is_some() {
        quotable.truncate(1);
    }
    quotable.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    match (&quotable[..], costs.first()) {
        ([], None) => format!("No {noun} was measured.").into(),
        ([], Some((name, ns))) => match ns.answer_cost() {
            Ok(answer) => {
                marked![format!("A {noun} of {name} takes "), answer.marked_time(), "."]
            }
            Err(_) => format!("What a {noun} of {name} takes: {}.", cost(ns)).into(),
        },
        ([(name, ns)], _) => marked![format!("A {noun} of {name} takes "), ns.marked_time(), "."],
        ([(name, ns), rest @ ..], _) if !rest.iter().any(|(_, other)| other.differs_from(ns)) => {
            let name = format!("No {noun} is shown to take longer than {name}, which takes ");
            marked![name, ns.marked_time(), "."]
        }
        ([(name, ns), .., (slowest, most)], _) => marked![
            format!("The fastest {noun} is {name} with "),
            ns.marked_time(),
            alike_in_words(&quotable, name, ns),
            format!(", the slowest {slowest} with {}", words::time(most.value())),
            alike_in_words(&quotable, slowest, most),
            "."
        ],
    }
}

/// Returns the other cases that a case is not resolved from, behind a comma.
fn alike_in_words(quotable: &[(String, QuotedFigure)], name: &str, ns: &QuotedFigure) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (other, other_ns) in quotable {
        if other != name && !other_ns.differs_from(ns) {
            names.push(other);
        }
    }
    if names.is_empty() {
        String::new()
    } else {
        format!(", not resolved from {}", names.join(" or "))
    }
}

/// Builds a table with a row a case and a column a measure. The first measure has its interval, and
/// its cycles in a wide table.
pub(super) fn measures(record: &TrialRecord, noun: &str, view: View) -> Table {
    let mut measured: Vec<&TrialSummary> = record.cases.iter().collect();
    measured.retain(|summary| !summary.measures.is_empty());
    let mut headers = Vec::new();
    for summary in &measured {
        headers.extend(summary.case.trial.measures().iter().map(|measure| measure.header));
    }
    let headers = each_once(headers);
    let mut columns = vec![noun];
    for (place, header) in headers.iter().enumerate() {
        columns.push(header);
        if place == 0 {
            columns.push("interval");
            if view.wide {
                columns.extend(["cycles", GHZ]);
            }
        }
    }
    let mut rows = Vec::new();
    for summary in measured {
        rows.push(measure_cells(summary, &headers, view));
    }
    Table::new(columns, rows)
}

fn measure_cells(summary: &TrialSummary, headers: &[&str], view: View) -> Vec<MarkedText> {
    let declared = summary.case.trial.measures();
    let mut cells = vec![MarkedText::from(summary.case.trial.to_string())];
    for (place, header) in headers.iter().enumerate() {
        let measure = declared.iter().find(|measure| measure.header == *header);
        let estimate = measure.and_then(|measure| summary.measures.get(measure.name).copied());
        cells.push(value(estimate));
        if place == 0 {
            cells.push(interval(estimate).into());
            if view.wide {
                cells.extend(at_clock(summary.cycles, summary.clock_ghz));
            }
        }
    }
    cells
}

/// Draws the measure that stands for each case as bars.
pub(super) fn chart(
    record: &TrialRecord,
    labels: &MeasureLabels,
    words: &str,
    index: usize,
) -> Option<Figure> {
    let axis = format!("time of a {}", labels.noun);
    let labels = ChartLabels { id: labels.chart.0, title: labels.chart.1, axis: &axis };
    bars(labels, words, costs(record), index)
}
