//! The formats of hyperfine 1.20, to the letter, so that whatever reads its files reads ours.
//!
//! ```text
//! CommandRun, ExportedCommand -> BenchmarkResult (seconds) -> JSON, CSV: every result, in seconds
//!                                                         \-> Markdown, AsciiDoc, org-mode: a table
//! ```
//!
//! Two figures differ in what they count. The start of a shell is not subtracted, and the memory of a
//! run is its own, where hyperfine has the largest of all runs so far.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use ::csv::Writer;
use anyhow::{Context, Result};
use charts::{clean, is_obeyed};
use clap::ValueEnum;
use launcher::CommandRun;
use serde::Serialize;
use stats::median;

use super::findings::{complete_runs, runs_of_command};
use crate::report::output::to_json;
use crate::report::terminal::TimeUnit;

/// A format of hyperfine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HyperfineFormat {
    Asciidoc,
    Csv,
    Json,
    Markdown,
    Orgmode,
}

/// The order of commands in the report and in tables of hyperfine's formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum SortMethod {
    /// As they were typed; the first line of the report ranks them
    #[default]
    Auto,
    /// As they were typed
    Command,
    /// By mean real time, the shortest first
    MeanTime,
}

/// A unit of time that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ChosenUnit {
    Microsecond,
    Millisecond,
    Second,
}

/// Choices for tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableChoices {
    /// Unit of times; `None` for the one that suits the first command.
    pub(super) unit: Option<ChosenUnit>,
    pub(super) sort: SortMethod,
}

impl ChosenUnit {
    /// Returns the unit in which hyperfine prints a time in seconds.
    fn for_time(seconds: f64) -> Self {
        if seconds < 1e-3 {
            Self::Microsecond
        } else if seconds < 1.0 {
            Self::Millisecond
        } else {
            Self::Second
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Microsecond => "µs",
            Self::Millisecond => "ms",
            Self::Second => "s",
        }
    }

    /// Formats a time in seconds as hyperfine does, without the unit.
    fn figure(self, seconds: f64) -> String {
        match self {
            Self::Microsecond => format!("{:.1}", seconds * 1e6),
            Self::Millisecond => format!("{:.1}", seconds * 1e3),
            Self::Second => format!("{seconds:.3}"),
        }
    }

    /// Returns the unit of our own tables.
    pub(super) fn time_unit(self) -> TimeUnit {
        match self {
            Self::Microsecond => TimeUnit { name: "us", ns: 1e3 },
            Self::Millisecond => TimeUnit { name: "ms", ns: 1e6 },
            Self::Second => TimeUnit { name: "s", ns: 1e9 },
        }
    }
}

/// The names of a command in files of hyperfine's formats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportedCommand {
    /// Name, or command line with the values of its parameters.
    pub(super) name: String,
    /// Name in tables, with the values that the command line has no place for.
    pub(super) table_name: String,
    /// Values of the parameters, as typed.
    pub(super) parameters: BTreeMap<String, String>,
}

impl ExportedCommand {
    /// Returns a command that is called by a label.
    pub(super) fn from_label(label: String) -> Self {
        Self { name: label.clone(), table_name: label, ..Self::default() }
    }
}

/// The result of one command: an element of `results`. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct BenchmarkResult {
    command: String,
    #[serde(skip)]
    table_name: String,
    mean: f64,
    /// `None` for a single run.
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    /// Exit code of each run; 128 + the signal that ended it.
    exit_codes: Vec<u8>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
}

/// The whole JSON file.
#[derive(Serialize)]
struct BenchmarkFile<'a> {
    results: &'a [BenchmarkResult],
}

/// Builds the results of all commands that have runs. An interrupted run does not count.
pub(super) fn benchmark_results(
    commands: &[ExportedCommand],
    runs: &[CommandRun],
) -> Vec<BenchmarkResult> {
    let complete_runs = complete_runs(runs);
    let mut results = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        let runs = runs_of_command(&complete_runs, number);
        results.extend(BenchmarkResult::from_runs(command, &runs));
    }
    results
}

impl BenchmarkResult {
    /// Builds the result of a command from its runs; `None` without any.
    fn from_runs(command: &ExportedCommand, runs: &[&CommandRun]) -> Option<Self> {
        let (mut times, mut user, mut system) = (Vec::new(), Vec::new(), Vec::new());
        let (mut memory_usage_byte, mut exit_codes) = (Vec::new(), Vec::new());
        for run in runs {
            let total = run.used.total();
            times.push(seconds(run.used.real_ns));
            user.push(seconds(total.user_ns));
            system.push(seconds(total.system_ns));
            memory_usage_byte.push(total.max_resident_bytes);
            exit_codes.push(run.used.ending.shell_code());
        }
        let mean_time = mean(&times);
        Some(Self {
            command: command.name.clone(),
            table_name: command.table_name.clone(),
            mean: mean_time,
            stddev: standard_deviation(&times, mean_time),
            median: median(&times)?,
            user: mean(&user),
            system: mean(&system),
            min: times.iter().copied().fold(f64::INFINITY, f64::min),
            max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            times,
            memory_usage_byte,
            exit_codes,
            parameters: command.parameters.clone(),
        })
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of a sample, with n - 1; `None` for a single value.
fn standard_deviation(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

impl HyperfineFormat {
    /// Returns the option that asks for it.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Asciidoc => "--export-asciidoc",
            Self::Csv => "--export-csv",
            Self::Json => "--export-json",
            Self::Markdown => "--export-markdown",
            Self::Orgmode => "--export-orgmode",
        }
    }

    /// Renders results in this format.
    pub(super) fn render(
        self,
        results: &[BenchmarkResult],
        choices: TableChoices,
    ) -> Result<Vec<u8>> {
        match self {
            Self::Json => to_json(&BenchmarkFile { results }),
            Self::Csv => render_csv(results),
            Self::Asciidoc | Self::Markdown | Self::Orgmode => {
                Ok(self.render_table(results, choices).into_bytes())
            }
        }
    }

    fn render_table(self, results: &[BenchmarkResult], choices: TableChoices) -> String {
        let first_unit = results.first().map(|result| ChosenUnit::for_time(result.mean));
        let unit = choices.unit.or(first_unit).unwrap_or(ChosenUnit::Second);
        let notation = unit.name();
        let heads = [
            "Command".to_string(),
            format!("Mean [{notation}]"),
            format!("Min [{notation}]"),
            format!("Max [{notation}]"),
            "Relative".to_string(),
        ];
        let mut table = String::new();
        if self == Self::Asciidoc {
            table += "[cols=\"<,>,>,>,>\"]\n|===";
        }
        table += &self.row(&heads);
        table += match self {
            Self::Markdown => "|:---|---:|---:|---:|---:|\n",
            Self::Orgmode => "|--+--+--+--+--|\n",
            _ => "",
        };
        for entry in relative_speeds(results, choices.sort) {
            table += &self.row(&self.cells(&entry, unit));
        }
        if self == Self::Asciidoc {
            table += "|===\n";
        }
        table
    }

    fn cells(self, entry: &RelativeSpeed<'_>, unit: ChosenUnit) -> [String; 5] {
        let result = entry.result;
        let quotation = if self == Self::Orgmode { '=' } else { '`' };
        let mut name = result.table_name.replace('|', "\\|");
        if name.contains(is_obeyed) {
            name = clean(&name);
        }
        let mut mean = unit.figure(result.mean);
        if let Some(stddev) = result.stddev {
            mean += &format!(" ± {}", unit.figure(stddev));
        }
        let mut relative = format!("{:.2}", entry.ratio);
        if let (Some(stddev), false) = (entry.stddev, entry.is_reference) {
            relative += &format!(" ± {stddev:.2}");
        }
        [
            format!("{quotation}{name}{quotation}"),
            mean,
            unit.figure(result.min),
            unit.figure(result.max),
            relative,
        ]
    }

    fn row(self, cells: &[String; 5]) -> String {
        match self {
            Self::Asciidoc => format!("\n| {} \n", cells.join(" \n| ")),
            Self::Orgmode => format!("| {}  |  {} |\n", cells[0], cells[1..].join(" |  ")),
            _ => format!("| {} |\n", cells.join(" | ")),
        }
    }
}

/// Columns of CSV before those of the parameters.
const CSV_COLUMNS: [&str; 8] =
    ["command", "mean", "stddev", "median", "user", "system", "min", "max"];

/// Renders one row a result. Cells are as they are, unlike those of our own tables: a value such as
/// `-O2` stays one, and line ends are quoted (RFC 4180).
fn render_csv(results: &[BenchmarkResult]) -> Result<Vec<u8>> {
    let names: BTreeSet<&String> =
        results.iter().flat_map(|result| result.parameters.keys()).collect();
    let mut heads = CSV_COLUMNS.map(str::to_string).to_vec();
    heads.extend(names.iter().map(|name| format!("parameter_{name}")));
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(&heads).context("cannot write CSV")?;
    for result in results {
        writer.write_record(csv_row(result, &names)).context("cannot write CSV")?;
    }
    writer.into_inner().context("cannot write CSV")
}

/// Returns a row with a cell for each name of a parameter: empty if the command does not have it.
fn csv_row(result: &BenchmarkResult, names: &BTreeSet<&String>) -> Vec<String> {
    let mut row = vec![result.command.clone()];
    let stddev = result.stddev.unwrap_or(0.0);
    let BenchmarkResult { mean, median, user, system, min, max, .. } = *result;
    for figure in [mean, stddev, median, user, system, min, max] {
        row.push(figure.to_string());
    }
    for name in names {
        row.push(result.parameters.get(*name).cloned().unwrap_or_default());
    }
    row
}

/// A result, and how many times as long it takes as the fastest.
struct RelativeSpeed<'a> {
    result: &'a BenchmarkResult,
    ratio: f64,
    /// Standard deviation of the ratio, if both are known.
    stddev: Option<f64>,
    is_reference: bool,
}

/// Returns the ratios of mean times to that of the fastest.
fn relative_speeds(results: &[BenchmarkResult], sort: SortMethod) -> Vec<RelativeSpeed<'_>> {
    let fastest = results.iter().min_by(|one, other| compare_means(one, other));
    let Some(fastest) = fastest else { return Vec::new() };
    let mut speeds = Vec::new();
    for result in results {
        let is_reference = std::ptr::eq(result, fastest);
        let ratio = if is_reference { 1.0 } else { result.mean / fastest.mean };
        speeds.push(RelativeSpeed {
            result,
            ratio,
            stddev: ratio_deviation(result, fastest, ratio),
            is_reference,
        });
    }
    if sort == SortMethod::MeanTime {
        speeds.sort_by(|one, other| compare_means(one.result, other.result));
    }
    speeds
}

fn compare_means(one: &BenchmarkResult, other: &BenchmarkResult) -> Ordering {
    one.mean.total_cmp(&other.mean)
}

/// Returns the standard deviation of a ratio of means, as of independent ones (propagation of
/// uncertainty).
fn ratio_deviation(result: &BenchmarkResult, base: &BenchmarkResult, ratio: f64) -> Option<f64> {
    let share = result.stddev? / result.mean;
    let base_share = base.stddev? / base.mean;
    Some(ratio * (share.powi(2) + base_share.powi(2)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a result with figures that were given, as hyperfine's own tests do.
    fn result(command: &str, mean: f64, stddev: f64, ends: [f64; 2]) -> BenchmarkResult {
        BenchmarkResult {
            command: command.to_string(),
            table_name: command.to_string(),
            mean,
            stddev: Some(stddev),
            median: mean,
            user: 0.0009,
            system: 0.0011,
            min: ends[0],
            max: ends[1],
            times: vec![0.1, 0.1, 0.1],
            memory_usage_byte: vec![1, 2, 3],
            exit_codes: vec![0, 0, 0],
            parameters: BTreeMap::new(),
        }
    }

    fn results() -> [BenchmarkResult; 2] {
        [
            result("sleep 2", 2.005, 0.002, [2.002, 2.008]),
            result("sleep 0.1", 0.1057, 0.0016, [0.1023, 0.1080]),
        ]
    }

    fn text(format: HyperfineFormat, results: &[BenchmarkResult], choices: TableChoices) -> String {
        String::from_utf8(format.render(results, choices).unwrap()).unwrap()
    }

    const AUTO: TableChoices = TableChoices { unit: None, sort: SortMethod::Auto };

    #[test]
    fn a_table_has_the_unit_of_the_first_command() {
        assert_eq!(
            text(HyperfineFormat::Markdown, &results(), AUTO),
            "| Command | Mean [s] | Min [s] | Max [s] | Relative |\n\
             |:---|---:|---:|---:|---:|\n\
             | `sleep 2` | 2.005 ± 0.002 | 2.002 | 2.008 | 18.97 ± 0.29 |\n\
             | `sleep 0.1` | 0.106 ± 0.002 | 0.102 | 0.108 | 1.00 |\n"
        );
        let [slow, fast] = results();
        assert_eq!(
            text(HyperfineFormat::Orgmode, &[fast, slow], AUTO),
            "| Command  |  Mean [ms] |  Min [ms] |  Max [ms] |  Relative |\n\
             |--+--+--+--+--|\n\
             | =sleep 0.1=  |  105.7 ± 1.6 |  102.3 |  108.0 |  1.00 |\n\
             | =sleep 2=  |  2005.0 ± 2.0 |  2002.0 |  2008.0 |  18.97 ± 0.29 |\n"
        );
    }

    #[test]
    fn unit_and_order_can_be_chosen() {
        let choices =
            TableChoices { unit: Some(ChosenUnit::Millisecond), sort: SortMethod::MeanTime };
        assert_eq!(
            text(HyperfineFormat::Asciidoc, &results(), choices),
            "[cols=\"<,>,>,>,>\"]\n|===\n| Command \n| Mean [ms] \n| Min [ms] \n| Max [ms] \n\
             | Relative \n\n| `sleep 0.1` \n| 105.7 ± 1.6 \n| 102.3 \n| 108.0 \n| 1.00 \n\n\
             | `sleep 2` \n| 2005.0 ± 2.0 \n| 2002.0 \n| 2008.0 \n| 18.97 ± 0.29 \n|===\n"
        );
        let choices = TableChoices { unit: Some(ChosenUnit::Microsecond), ..choices };
        let table = text(HyperfineFormat::Markdown, &results()[1..], choices);
        assert!(table.contains("| Mean [µs] |"), "{table}");
        assert!(
            table.ends_with("| `sleep 0.1` | 105700.0 ± 1600.0 | 102300.0 | 108000.0 | 1.00 |\n")
        );
    }

    #[test]
    fn csv_has_a_column_for_each_parameter() {
        let mut results = results();
        for (result, value) in results.iter_mut().zip(["two", "a,b"]) {
            result.parameters.insert("foo".into(), "one".into());
            result.parameters.insert("bar".into(), value.into());
        }
        results[0].stddev = None;
        assert_eq!(
            text(HyperfineFormat::Csv, &results, AUTO),
            "command,mean,stddev,median,user,system,min,max,parameter_bar,parameter_foo\n\
             sleep 2,2.005,0,2.005,0.0009,0.0011,2.002,2.008,two,one\n\
             sleep 0.1,0.1057,0.0016,0.1057,0.0009,0.0011,0.1023,0.108,\"a,b\",one\n"
        );
    }

    #[test]
    fn a_value_stands_below_the_name_of_its_parameter() {
        let mut results = [results()[0].clone(), results()[1].clone(), results()[0].clone()];
        results[1].parameters.insert("x".into(), "1".into());
        results[2].parameters.insert("a".into(), "-O2\t\n=3".into());
        let text = text(HyperfineFormat::Csv, &results, AUTO);
        assert!(text.contains("min,max,parameter_a,parameter_x\n"), "{text}");
        for end in ["2.008,,\n", "0.108,,1\n", "2.008,\"-O2\t\n=3\",\n"] {
            assert!(text.contains(end), "no {end:?} in {text}");
        }
    }

    #[test]
    fn json_has_hyperfines_fields_in_its_order() {
        let mut single = result("a\"b", 1.0, 0.0, [1.0, 1.0]);
        single.stddev = None;
        single.times = vec![1.0];
        single.memory_usage_byte = vec![4096];
        single.exit_codes = vec![137];
        single.parameters.insert("n".into(), "1".into());
        assert_eq!(
            text(HyperfineFormat::Json, &[single], AUTO),
            "{\n  \"results\": [\n    {\n      \"command\": \"a\\\"b\",\n      \"mean\": 1.0,\n      \
             \"stddev\": null,\n      \"median\": 1.0,\n      \"user\": 0.0009,\n      \"system\": \
             0.0011,\n      \"min\": 1.0,\n      \"max\": 1.0,\n      \"times\": [\n        \
             1.0\n      ],\n      \"memory_usage_byte\": [\n        4096\n      ],\n      \
             \"exit_codes\": [\n        137\n      ],\n      \"parameters\": {\n        \"n\": \
             \"1\"\n      }\n    }\n  ]\n}\n"
        );
        let without = text(HyperfineFormat::Json, &results(), AUTO);
        assert!(!without.contains("parameters"), "{without}");
    }

    #[test]
    fn a_name_cannot_break_its_row() {
        let odd = result("a | b\n\u{1b}[31mc", 1.0, 0.1, [1.0, 1.0]);
        let table = text(HyperfineFormat::Markdown, &[odd], AUTO);
        assert_eq!(
            table.lines().nth(2),
            Some("| `a \\| b [31mc` | 1.000 ± 0.100 | 1.000 | 1.000 | 1.00 |")
        );
        for format in [HyperfineFormat::Markdown, HyperfineFormat::Csv, HyperfineFormat::Json] {
            assert!(!text(format, &[], AUTO).is_empty());
        }
    }

    #[test]
    fn deviations_are_of_samples() {
        assert_eq!(standard_deviation(&[7.0, 8.0, 12.0], 9.0), Some(7.0_f64.sqrt()));
        assert_eq!(standard_deviation(&[7.0], 7.0), None);
    }
}
