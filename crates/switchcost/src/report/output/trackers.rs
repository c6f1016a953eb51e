//! Results in the formats of programs that follow figures from commit to commit:
//!
//! - Bencher's Metric Format (BMF): JSON, an object a benchmark, and in it one a measure with value
//!   and interval;
//! - github-action-benchmark's `customSmallerIsBetter`: JSON, a list of figures, of which more is
//!   worse;
//! - Apache Otava's CSV: a row a run, with its time, attributes, and a column a figure.
//!
//! Each raises an alarm by the values alone, so all have only figures that may be quoted, each with
//! its interval; what is left out is told on standard error. A benchmark is a case by its key, which is the same in every
//! run: `ring members=2 kind=process link=pipe placement=same policy=other`.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use analysis::estimate::Estimate;
use analysis::measures::{self, MeasureDirection, MeasureValue, RingMeasure};
use analysis::quote::QuotedFigure;
use analysis::results::{CaseResults, Origin, Quantity, QuantityUnit, Results};
use anyhow::{Error, Result, bail};
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
    low: f64,
    high: f64,
    /// Rounds behind the interval, and its confidence.
    rounds: u32,
    confidence: f64,
    /// Whether more of it is worse, as of every cost.
    is_cost: bool,
    /// Whether it is a measure beside the quantities: counts alone are no result of a run.
    is_measure: bool,
}

impl TrackedFigure {
    /// Makes a figure of the case `benchmark`, whose `quoted` value is of `estimate`.
    fn new(benchmark: &str, measure: String, quoted: QuotedFigure, estimate: &Estimate) -> Self {
        Self {
            benchmark: benchmark.to_string(),
            measure,
            unit: "",
            value: rounded(quoted.value()),
            low: rounded(quoted.low()),
            high: rounded(quoted.high()),
            rounds: estimate.rounds,
            confidence: estimate.confidence,
            is_cost: false,
            is_measure: false,
        }
    }

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
            for measure in measures::exported_measures() {
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
        let is_cost = quantity.unit() == QuantityUnit::Nanoseconds;
        let mut units = vec![(quantity.id().to_string(), quantity.unit().name(), quoted)];
        let cycles = target.and_then(|target| launch.cycles(target));
        if let Some(Ok(cycles)) = cycles.map(|cycles| cycles.quote_cost()) {
            units.push((in_cycles(quantity.id()), "cycles", cycles));
        }
        for (measure, unit, quoted) in units {
            let figure = TrackedFigure::new(benchmark, measure, quoted, &estimate);
            self.figures.push(TrackedFigure { unit, is_cost, ..figure });
        }
    }

    /// Adds a measure of a ring that has an interval. The count of a ring of one, which does not
    /// switch, is what else ran: noise near zero, of which a small rise is a large share.
    fn add_measure(&mut self, case: &CaseResults, benchmark: &str, measure: &RingMeasure) {
        let Some(summary) = &case.summary else { return };
        let value = (measure.read)(summary);
        let is_noise = summary.case.members == 1 && matches!(value, MeasureValue::Count(_));
        let (Some(estimate), false) = (value.estimate(), is_noise) else { return };
        match value.quote() {
            Some(Ok(quoted)) => self.figures.push(TrackedFigure {
                unit: measure.unit.name(),
                is_cost: measure.direction == MeasureDirection::Cost,
                is_measure: true,
                ..TrackedFigure::new(benchmark, measure.id.to_string(), quoted, &estimate)
            }),
            Some(Err(why)) => {
                self.left_out.push(format!("{}, {}: {why}", case.title, measure.title));
            }
            None => {}
        }
    }

    /// Keeps the costs alone, and says which figures are none.
    fn keep_costs(&mut self, run: &str) {
        let figures = mem::take(&mut self.figures);
        let (costs, others) = figures.into_iter().partition(|figure| figure.is_cost);
        self.figures = costs;
        let names: Vec<String> = others.iter().map(TrackedFigure::name).collect();
        if !names.is_empty() {
            let names = first_names(&names);
            print_message(&format!(
                "note: {run}: left out, as more of them is not worse: {names} (--format bmf has them)"
            ));
        }
    }

    /// Says what is left out.
    ///
    /// # Errors
    /// No quantity is left: an empty file would be taken for a run in which nothing was measured.
    fn check(&self, results: &Results) -> Result<()> {
        let run = &results.side.name;
        let named = first_names(&self.left_out);
        if self.figures.iter().all(|figure| figure.is_measure) {
            let reasons = if named.is_empty() { "nothing was measured".to_string() } else { named };
            let next = next_step(&results.side.experiment);
            bail!(
                "{run}: no figure may be quoted, so there is nothing to export: {reasons} ({next})"
            );
        }
        if !self.left_out.is_empty() {
            print_message(&format!("note: {run}: left out, as they may not be quoted: {named}"));
        }
        Ok(())
    }
}

/// Lists the first of several names.
fn first_names(names: &[String]) -> String {
    let shown = &names[..names.len().min(MAX_NAMED_FIGURES)];
    match names.len() - shown.len() {
        0 => shown.join("; "),
        more => format!("{} and {more} more", shown.join("; ")),
    }
}

/// Returns what to do for figures of an experiment that may be quoted.
fn next_step(experiment: &str) -> &'static str {
    match experiment {
        "run" | "profile" => "take more rounds: -n",
        "trace" => "trace for longer",
        _ => "raise --budget, or use --policy fifo",
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
    lower_value: f64,
    upper_value: f64,
}

/// Returns results in Bencher's Metric Format. Measures have the names of Bencher's slugs:
/// `ns-per-hop`.
///
/// # Errors
/// No figure may be quoted.
pub(crate) fn bmf(results: &Results) -> Result<Vec<u8>> {
    let tracked = TrackedFigures::from_results(results);
    tracked.check(results)?;
    let mut benchmarks: BTreeMap<&str, BTreeMap<String, BencherMetric>> = BTreeMap::new();
    for figure in &tracked.figures {
        let metric = BencherMetric {
            value: figure.value,
            lower_value: figure.low,
            upper_value: figure.high,
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
    /// The interval. It stands behind the value in its tables and charts.
    range: String,
    /// Stands in the tooltips of its charts, a line each.
    extra: String,
}

/// Returns results in github-action-benchmark's JSON for `customSmallerIsBetter`. What is no cost is
/// left out, with a note: work in a second, efficiencies, rates and shares of a trace.
///
/// # Errors
/// No cost may be quoted.
pub(crate) fn gab(results: &Results) -> Result<Vec<u8>> {
    let mut tracked = TrackedFigures::from_results(results);
    tracked.keep_costs(&results.side.name);
    tracked.check(results)?;
    let run = run_attributes(results);
    let mut figures = Vec::new();
    for figure in &tracked.figures {
        let confidence = rounded(100.0 * figure.confidence);
        let mut extra =
            vec![format!("interval: {confidence} %"), format!("rounds: {}", figure.rounds)];
        for (name, value) in &run {
            extra.push(format!("{name}: {value}"));
        }
        figures.push(ActionFigure {
            name: figure.name(),
            unit: figure.unit,
            value: figure.value,
            range: format!("{} to {}", figure.low, figure.high),
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
/// its value, `... low` and `... high`. A cell is empty where the run does not have the figure. A run
/// of which no figure may be quoted has no row, and a note.
///
/// # Errors
/// No figure of any of the runs may be quoted.
pub(crate) fn otava(runs: &[Results]) -> Result<Vec<u8>> {
    let (mut names, mut rows) = (BTreeSet::new(), Vec::new());
    let mut refused: Vec<Error> = Vec::new();
    for results in runs {
        let tracked = TrackedFigures::from_results(results);
        if let Err(why) = tracked.check(results) {
            refused.push(why);
            continue;
        }
        let mut cells = otava_attributes(results);
        for figure in tracked.figures {
            // A column's head is written as it is.
            let name = clean(&figure.name());
            names.insert(name.clone());
            cells.insert(format!("{name} low"), figure.low.to_string());
            cells.insert(format!("{name} high"), figure.high.to_string());
            cells.insert(name, figure.value.to_string());
        }
        rows.push(cells);
    }
    match &refused[..] {
        [why] if rows.is_empty() => bail!("{why}"),
        [why, ..] if rows.is_empty() => bail!("none of {} runs has a row: {why}", refused.len()),
        _ => {}
    }
    for why in &refused {
        print_message(&format!("note: no row: {why}"));
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
    use analysis::rings_at_once::SimultaneousRings;
    use serde_json::{Value, json};

    use super::*;
    use crate::report::figures::tests::fixture;

    #[test]
    fn what_is_no_cost_is_left_out_where_less_is_better() {
        let mut results = Results::from_run(&fixture());
        let two = results.cases[1].summary.as_mut().expect("a ring");
        let work = two.ns_per_hop;
        let at_once = json!({"rings": 2, "switches_per_second": work, "hops_per_second": work,
            "efficiency": work, "migrations": 0});
        let at_once: SimultaneousRings = serde_json::from_value(at_once).expect("figures");
        two.rings_at_once = Some(Box::new(at_once));
        let written = |format: fn(&Results) -> Result<Vec<u8>>| {
            String::from_utf8(format(&results).expect("figures")).expect("UTF-8")
        };
        let (metrics, costs) = (written(bmf), written(gab));
        for (id, slug) in [
            ("switches_per_second", "switches-per-second"),
            ("hops_per_second", "hops-per-second"),
            ("efficiency", "efficiency"),
        ] {
            assert!(metrics.contains(&format!("\"{slug}\": {{")), "{metrics}");
            assert!(!costs.contains(id), "{costs}");
        }
        let found: Value = serde_json::from_str(&metrics).expect("JSON");
        for (benchmark, measures) in found.as_object().expect("benchmarks") {
            let is_of_one = benchmark.contains("members=1 ");
            assert_eq!(measures.get("switches-per-hop").is_none(), is_of_one, "{benchmark}");
        }
    }

    #[test]
    fn figures_that_are_no_costs_are_no_list_of_costs() {
        let mut results = Results::from_run(&fixture());
        for case in &mut results.cases {
            let (_, figure) = case.figures.pop_first().expect("a figure");
            (case.figures, case.summary) = ([(Quantity::PerSecond, figure)].into(), None);
        }
        assert!(bmf(&results).is_ok());
        let why = gab(&results).expect_err("no cost").to_string();
        assert!(why.contains("no figure may be quoted"), "{why}");
    }

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
