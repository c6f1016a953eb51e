//! What commands used as OpenMetrics: a gauge for each figure, beside those of their results.

use analysis::results::Results;

use super::findings::{ComparedTime, FIGURE_SOURCES};
use super::record::CommandUseRecord;
use crate::report::output::declarations::{meaning_of, unit_of};
use crate::report::output::exports::{Gauge, GaugeValue, capitalized, case_labels};

/// Beginning of the gauges' names.
const PREFIX: &str = "switchcost_run_";

/// Nanoseconds of a second.
const NS_PER_SECOND: f64 = 1e9;

/// Returns the gauges of all figures that may be quoted, in seconds, bytes and counts. Real and CPU
/// time are among those of `results`, which are of the same record.
pub(crate) fn further_gauges(record: &CommandUseRecord, results: &Results) -> String {
    let mut text = String::new();
    for source in &FIGURE_SOURCES {
        if ComparedTime::ALL.iter().any(|time| time.name() == source.name) {
            continue;
        }
        let (name, unit, scale) = metric_name(source.name);
        let help = format!("{}, median over rounds.", capitalized(meaning_of(source.name)));
        let gauge = Gauge { name: &name, unit, help: &help };
        text += &gauge.text(&command_values(record, results, source.name, scale));
    }
    text
}

/// Returns the name of a figure's gauge, its unit, and what its values are divided by.
fn metric_name(figure: &str) -> (String, &'static str, f64) {
    let stem = figure.strip_prefix("run_").unwrap_or(figure);
    match unit_of(figure) {
        "ns" => {
            let stem = stem.strip_suffix("_ns").unwrap_or(stem);
            (format!("{PREFIX}{stem}_seconds"), "seconds", NS_PER_SECOND)
        }
        "bytes" => (format!("{PREFIX}{stem}"), "bytes", 1.0),
        _ => (format!("{PREFIX}{stem}"), "", 1.0),
    }
}

/// Returns a line for each command whose median may be quoted.
fn command_values(
    record: &CommandUseRecord,
    results: &Results,
    figure: &str,
    scale: f64,
) -> Vec<GaugeValue> {
    let mut values = Vec::new();
    for (case, summary) in results.cases.iter().zip(&record.commands) {
        let Some(figure) = summary.figure(figure) else { continue };
        if let Ok(quoted) = figure.estimate.quote_count() {
            values.push(GaugeValue { labels: case_labels(case), value: quoted.value() / scale });
        }
    }
    values
}
