//! Results in the formats of programs that follow figures from commit to commit:
//!
//! - Bencher's Metric Format (BMF): JSON, an object a benchmark, and in it one a measure with value
//!   and interval;
//! - github-action-benchmark's `customSmallerIsBetter`: JSON, a list of figures, of which more is
//!   worse;
//! - Apache Otava's CSV: a row a run, with its time, attributes, and a column a figure.
//!
//! Each raises an alarm by the values alone, so all have only figures that may be quoted; what is
//! left out is told on standard error. A benchmark is a case by its key, which is the same in every
//! run: `ring members=2 kind=process link=pipe placement=same policy=other`.

use std::collections::{BTreeMap, BTreeSet};

use analysis::measures::{self, MeasureValue, RingMeasure, SWITCHES_PER_HOP};
use analysis::results::{CaseResults, Origin, Quantity, QuantityUnit, Results};
use anyhow::{Result, bail};
use charts::clean;
use serde::Serialize;

use super::exports::{launch, run_labels, target};
use super::summary::keys;
use super::{csv, to_json};
use crate::base::failure::print_message;

/// Most figures without a value that a message names.
const MAX_NAMED_FIGURES: usize = 3;

/// A figure of a case, quotable, by names that are the same in every run.
struct TrackedFigure {
    /// The case by its key.
    benchmark: String,
    /// The quantity or measure: `ns_per_hop`.
    measure: String,
    /// Unit of the value; empty for counts and shares.
    unit: &'static str,
    value: f64,
    /// The interval; absent for a count.
    ends: Option<FigureEnds>,
    /// Whether more of it is worse, as of every cost.
    is_cost: bool,
}

/// The interval of a figure, and what it rests on.
struct FigureEnds {
    low: f64,
    high: f64,
    rounds: u32,
    confidence: f64,
}

impl TrackedFigure {
    /// Returns its name where that stands alone: `ring members=2 ...: ns_per_hop`.
    fn name(&self) -> String {
        format!("{}: {}", self.benchmark, self.measure)
    }
}

/// The figures of results that may be quoted, and the names of those that may not.
#[derive(Default)]
struct TrackedFigures {
    figures: Vec<TrackedFigure>,
    /// Figures that are left out, with the reason: `ring of 2, hop: not at full speed`.
    left_out: Vec<String>,
}

impl TrackedFigures {
    fn from_results(results: &Results) -> Self {
        let mut tracked = Self::default();
        for (case, benchmark) in results.cases.iter().zip(keys(&results.cases)) {
            for quantity in case.figures.keys() {
                tracked.add_quantity(case, &benchmark, *quantity, target(results));
            }
            for measure in measures::exported_measures().chain([&SWITCHES_PER_HOP]) {
                tracked.add_measure(case, &benchmark, measure);
            }
        }
        tracked
    }

    /// Adds a quantity of a case: in its unit, and in cycles where that may be quoted.
    fn add_quantity(
        &mut self,
        case: &CaseResults,
        benchmark: &str,
        quantity: Quantity,
        target: Option<&str>,
    ) {
        let Some(launch) = launch(case, quantity) else { return };
        let Some(estimate) = launch.estimate else { return };
        let quoted = match quantity.quote(&estimate) {
            Ok(quoted) => quoted,
            Err(why) => {
                let (name, why) = (quantity.in_words(), quantity.why_not(&why));
                self.left_out.push(format!("{}, {name}: {why}", case.title));
                return;
            }
        };
        let (rounds, confidence) = (estimate.rounds, estimate.confidence);
        let is_cost = quantity.unit() == QuantityUnit::Nanoseconds;
        let mut units = vec![(quantity.id().to_string(), quantity.unit().name(), quoted)];
        let cycles = target.and_then(|target| launch.cycles(target));
        if let Some(Ok(cycles)) = cycles.map(|cycles| cycles.quote_cost()) {
            units.push((in_cycles(quantity.id()), "cycles", cycles));
        }
        for (measure, unit, quoted) in units {
            let (low, high) = (rounded(quoted.low()), rounded(quoted.high()));
            self.figures.push(TrackedFigure {
                benchmark: benchmark.to_string(),
                measure,
                unit,
                value: rounded(quoted.value()),
                ends: Some(FigureEnds { low, high, rounds, confidence }),
                is_cost,
            });
        }
    }

    /// Adds a measure of a ring that is a plain number.
    fn add_measure(&mut self, case: &CaseResults, benchmark: &str, measure: &RingMeasure) {
        let Some(summary) = &case.summary else { return };
        let MeasureValue::Number(number) = (measure.read)(summary) else { return };
        if !number.is_finite() {
            return;
        }
        self.figures.push(TrackedFigure {
            benchmark: benchmark.to_string(),
            measure: measure.id.to_string(),
            unit: measure.unit.name(),
            value: rounded(number),
            ends: None,
            is_cost: true,
        });
    }

    /// Says what is left out. An error where no cost is left: an empty file would be taken for a run
    /// in which nothing was measured.
    fn check(&self, run: &str) -> Result<()> {
        let mut named = self.left_out.clone();
        named.truncate(MAX_NAMED_FIGURES);
        let more = match self.left_out.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = format!("{}{more}", named.join("; "));
        if self.figures.iter().all(|figure| figure.ends.is_none()) {
            let reasons = if named.is_empty() { "nothing was measured".to_string() } else { named };
            bail!("{run}: no figure may be quoted, so there is nothing to export: {reasons}");
        }
        if !self.left_out.is_empty() {
            print_message(&format!("note: {run}: left out, as they may not be quoted: {named}"));
        }
        Ok(())
    }
}

/// Returns the name of a quantity in cycles: `cycles_per_hop` of `ns_per_hop`.
fn in_cycles(id: &str) -> String {
    let mut words = Vec::new();
    for word in id.split('_') {
        words.push(if word == "ns" { "cycles" } else { word });
    }
    words.join("_")
}

/// Returns a number with six digits that count: more are below every interval.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A metric of BMF.
#[derive(Serialize)]
struct BencherMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Returns results in Bencher's Metric Format. Measures have the names of Bencher's slugs:
/// `ns-per-hop`.
///
/// # Errors
/// No figure may be quoted.
pub(crate) fn bmf(results: &Results) -> Result<Vec<u8>> {
    let tracked = TrackedFigures::from_results(results);
    tracked.check(&results.side.name)?;
    let mut benchmarks: BTreeMap<&str, BTreeMap<String, BencherMetric>> = BTreeMap::new();
    for figure in &tracked.figures {
        let metric = BencherMetric {
            value: figure.value,
            lower_value: figure.ends.as_ref().map(|ends| ends.low),
            upper_value: figure.ends.as_ref().map(|ends| ends.high),
        };
        let measures = benchmarks.entry(&figure.benchmark).or_default();
        measures.insert(figure.measure.replace('_', "-"), metric);
    }
    to_json(&benchmarks)
}

/// A figure of github-action-benchmark.
#[derive(Serialize)]
struct ActionFigure {
    name: String,
    unit: &'static str,
    value: f64,
    /// Stands behind the value in its tables and charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    /// Stands in the tooltips of its charts, a line each.
    extra: String,
}

/// Returns results in github-action-benchmark's JSON for `customSmallerIsBetter`. Rates and shares of
/// a trace are no costs, and left out.
///
/// # Errors
/// No figure may be quoted.
pub(crate) fn gab(results: &Results) -> Result<Vec<u8>> {
    let tracked = TrackedFigures::from_results(results);
    tracked.check(&results.side.name)?;
    let run = run_attributes(results);
    let mut figures = Vec::new();
    for figure in tracked.figures.iter().filter(|figure| figure.is_cost) {
        let mut extra = Vec::new();
        if let Some(ends) = &figure.ends {
            extra.push(format!("interval: {} %", rounded(100.0 * ends.confidence)));
            extra.push(format!("rounds: {}", ends.rounds));
        }
        for (name, value) in &run {
            extra.push(format!("{name}: {value}"));
        }
        figures.push(ActionFigure {
            name: figure.name(),
            unit: figure.unit,
            value: figure.value,
            range: figure.ends.as_ref().map(|ends| format!("{} to {}", ends.low, ends.high)),
            extra: extra.join("\n"),
        });
    }
    to_json(&figures)
}

/// Returns the facts of a run that stand beside its figures, by name: the build, the CPU, the kernel.
fn run_attributes(results: &Results) -> Vec<(String, String)> {
    let mut attributes = run_labels(results);
    attributes.retain(|(name, _)| name != "started" && name != "run");
    attributes
}

/// Columns of Otava's CSV before those of the figures: the time column, and attributes.
const OTAVA_COLUMNS: [&str; 6] =
    ["time", "run", "experiment", "build_version", "cpu_model", "kernel_release"];

/// Returns runs as CSV for Apache Otava, a row each in the order of time. A figure has three columns:
/// its value, `... low` and `... high`. A cell is empty where the run does not have the figure.
///
/// # Errors
/// No figure of one of the runs may be quoted.
pub(crate) fn otava(runs: &[Results]) -> Result<Vec<u8>> {
    let (mut names, mut rows) = (BTreeSet::new(), Vec::new());
    for results in runs {
        let tracked = TrackedFigures::from_results(results);
        tracked.check(&results.side.name)?;
        let mut cells = otava_attributes(results);
        for figure in tracked.figures {
            // A column's head is written as it is.
            let name = clean(&figure.name());
            names.insert(name.clone());
            if let Some(ends) = &figure.ends {
                cells.insert(format!("{name} low"), ends.low.to_string());
                cells.insert(format!("{name} high"), ends.high.to_string());
            }
            cells.insert(name, figure.value.to_string());
        }
        rows.push(cells);
    }
    rows.sort_by(|one, other| one.get("time").cmp(&other.get("time")));
    let mut columns: Vec<String> = OTAVA_COLUMNS.map(str::to_string).to_vec();
    for name in names {
        columns.extend([name.clone(), format!("{name} low"), format!("{name} high")]);
    }
    columns.retain(|column| {
        let is_figure = !OTAVA_COLUMNS.contains(&&**column);
        !is_figure || rows.iter().any(|cells| cells.contains_key(column))
    });
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    csv::write(&heads, rows.iter().map(|cells| otava_row(&heads, cells)))
}

/// Returns the cells of a row, in the order of the columns.
fn otava_row(heads: &[&str], cells: &BTreeMap<String, String>) -> Vec<String> {
    let mut row = Vec::new();
    for head in heads {
        row.push(cells.get(*head).cloned().unwrap_or_default());
    }
    row
}

/// Returns the cells of a run before those of its figures, by column.
fn otava_attributes(results: &Results) -> BTreeMap<String, String> {
    let mut cells: BTreeMap<String, String> = run_labels(results).into_iter().collect();
    cells.insert("experiment".to_string(), results.side.experiment.clone());
    if let Origin::Run { started, .. } = &results.side.origin {
        cells.insert("time".to_string(), started.clone());
    }
    cells.retain(|name, _| OTAVA_COLUMNS.contains(&&**name));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_in_cycles_is_named_as_in_nanoseconds() {
        assert_eq!(in_cycles("ns_per_switch_above_solo"), "cycles_per_switch_above_solo");
        assert_eq!(in_cycles("wake_p99_ns"), "wake_p99_cycles");
        assert_eq!(in_cycles("per_second"), "per_second");
    }

    #[test]
    fn numbers_keep_six_digits() {
        for (value, expected) in [
            (1_543.333_333, 1543.33),
            (0.000_123_456_789, 0.000_123_457),
            (-2.0, -2.0),
            (0.0, 0.0),
            (123_456_789.0, 123_457_000.0),
        ] {
            assert_eq!(rounded(value), expected);
        }
    }
}
