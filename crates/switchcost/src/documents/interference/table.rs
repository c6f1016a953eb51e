//! The results of `classic experiment interference`: on the terminal, and as a chart.

use analysis::findings::interference::{
    CONFIDENCE, ConditionTimes, InterferenceFindings, InterferenceVerdict, SettingComparison, judge,
};
use analysis::marked::MarkedText;
use analysis::published::li2007::LiFigures;
use analysis::record::TrialRecord;
use charts::{Axis, Figure, Point, Role, Series};
use rundata::run::unfinished;
use rundata::trial::interference::{Environment, Execution, Noise};
use rundata::trial::{Trial, TrialCase};
use rundata::words;
use stats::Interval;

use crate::base::values::each_once;
use crate::report::figures::{lines, nanoseconds};
use crate::report::output::columns::Columns;
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{ReportText, View, figure as digits};

/// Stands in place of a verdict on an unfinished run.
const NOT_COMPARED: &str = "The settings are not compared, as not all runs were made.";

/// Stands in place of an interval that reaches below zero, where no time is.
const NOT_RESOLVED: &str = "not resolved";

/// Nanoseconds of a millisecond.
const NS_PER_MS: f64 = 1e6;

pub(crate) fn text(
    record: &TrialRecord,
    findings: &InterferenceFindings,
    view: View,
) -> ReportText {
    let verdict = &findings.verdict;
    let mut lines: Vec<MarkedText> = Vec::new();
    for doubt in &findings.doubts {
        lines.push(format!("doubt: {doubt}").into());
    }
    let mut headline = MarkedText::from(NOT_COMPARED);
    if unfinished(record.end.as_ref()).is_none() {
        headline = verdict.headline(noise(record));
        lines.push(format!("verdict: {}", findings.in_words).into());
    }
    let mut published = Printout::default();
    if view.history {
        published = printout!["\n", published_table()];
    }
    let legend = legend(record, findings);
    ReportText {
        headline,
        table: printout![interval_table(verdict), "\n", published],
        details: printout![comparison_table(verdict, NS_PER_MS), "\n\n", legend, "\n"],
        findings: lines,
        ..ReportText::default()
    }
}

/// Returns the noise of the run, which all its cases share.
fn noise(record: &TrialRecord) -> Noise {
    for summary in &record.cases {
        if let Trial::Execution(execution) = &summary.case.trial {
            return execution.noise;
        }
    }
    Noise::Net
}

/// Returns whether an interval of a mean time is above zero throughout. Student's is not for few runs
/// that scatter much: 4 ms and 40 ms give -92 to 136 ms.
fn is_time(interval: &Interval) -> bool {
    interval.low > 0.0
}

fn array_kib(comparison: &SettingComparison) -> String {
    digits(comparison.array_bytes as f64 / 1024.0)
}

/// Returns the comparisons by their intervals alone. A scatter has grown if its interval leaves out
/// 1, a mean has moved if its interval leaves out 0.
fn interval_table(verdict: &InterferenceVerdict) -> Table {
    let columns = Columns::<&SettingComparison>::new()
        .right("KiB", |comparison| array_kib(comparison))
        .right("setting", |comparison| comparison.setting)
        .right("quiet ms", |comparison| ms_range(comparison.quiet))
        .right("disturbed ms", |comparison| ms_range(comparison.disturbed))
        .or_dash("scatter x", |comparison| {
            let growth = comparison.growth?;
            Some(format!("{} to {}", digits(growth.low), digits(growth.high)))
        })
        .or_dash("mean moved %", |comparison| {
            let moved = comparison.moved?;
            Some(format!("{:.1} to {:.1}", 100.0 * moved.low, 100.0 * moved.high))
        });
    columns.table(&verdict.comparisons)
}

/// Writes an interval of a time as a range of milliseconds; a dash if it is unknown.
fn ms_range(interval: Option<Interval>) -> String {
    let Some(interval) = interval else { return "-".to_string() };
    if !is_time(&interval) {
        return NOT_RESOLVED.to_string();
    }
    let Interval { low, high, .. } = interval;
    let decimals = if high >= 100.0 * NS_PER_MS { 1 } else { 2 };
    format!("{:.decimals$} to {:.decimals$}", low / NS_PER_MS, high / NS_PER_MS)
}

/// Returns the comparisons with all figures: intervals of the mean execution time in a unit of so
/// many nanoseconds, how much their scatter grew, and how far their mean moved.
fn comparison_table(verdict: &InterferenceVerdict, unit_ns: f64) -> Table {
    let columns = Columns::<&SettingComparison>::new()
        .right("array", |comparison| format!("{} KiB", array_kib(comparison)))
        .right("setting", |comparison| comparison.setting)
        .right("quiet", |comparison| interval_words(comparison.quiet, unit_ns))
        .right("disturbed", |comparison| interval_words(comparison.disturbed, unit_ns))
        .or_dash("grew", |comparison| {
            let growth = comparison.growth?;
            let mark = if growth.is_resolved() { "" } else { "not resolved " };
            let [ratio, low, high] = [growth.ratio, growth.low, growth.high].map(digits);
            Some(format!("{mark}{ratio}x ({low} to {high})"))
        })
        .or_dash("moved %", |comparison| {
            let moved = comparison.moved?;
            let [percent, low, high] = [moved.part, moved.low, moved.high].map(|part| 100.0 * part);
            Some(format!("{percent:+.2} ({low:+.2} to {high:+.2})"))
        });
    columns.table(&verdict.comparisons)
}

/// Writes an interval in a unit of so many nanoseconds; a dash if it is unknown.
fn interval_words(interval: Option<Interval>, unit_ns: f64) -> String {
    match interval {
        None => "-".to_string(),
        Some(interval) if !is_time(&interval) => NOT_RESOLVED.to_string(),
        Some(Interval { low, high, .. }) => {
            format!("({:.2}, {:.2})", low / unit_ns, high / unit_ns)
        }
    }
}

fn legend(record: &TrialRecord, findings: &InterferenceFindings) -> String {
    let columns = "quiet, disturbed: mean execution time in ms, 90 % interval (Student); grew: \
         scatter disturbed / quiet, moved: of the mean";
    let mut lines = vec![columns.to_string()];
    for summary in &record.cases {
        let Trial::Execution(execution) = &summary.case.trial else { continue };
        let laps = execution.laps;
        lines
            .push(format!("every run: a ring of two, {laps} laps, each member rmw over its array"));
        lines.push(setting_line(&summary.case, execution, findings));
    }
    each_once(lines).join("\n")
}

/// Says where the members and the noise of a setting run, and how many events a run had.
fn setting_line(
    case: &TrialCase,
    execution: &Execution,
    findings: &InterferenceFindings,
) -> String {
    let Execution { setting, noise, noise_cpu, .. } = execution;
    let (cpu, policy) = (case.cpu, case.policy);
    let priority = match execution.priority {
        Some(priority) => format!(" at priority {priority}"),
        None => String::new(),
    };
    let wire = if *noise == Noise::Net { format!(" by {}", execution.wire) } else { String::new() };
    let events = match findings.events_per_run.get(&setting.to_string()) {
        Some(count) => format!(", {} {} a run", digits(*count), noise.events()),
        None => String::new(),
    };
    format!(
        "{setting}: members on CPU {cpu} under policy {policy}{priority}, noise ({noise}{wire}) on \
         CPU {noise_cpu}{events}"
    )
}

/// Returns Tables 1 and 2 of the paper as one table, with the verdict that this program gives on
/// them.
fn published_table() -> Printout {
    // The file is part of the program and read by its tests.
    let Ok(figures) = LiFigures::published() else { return Printout::default() };
    let verdict = judge(&figures.runs);
    printout![
        "Li, Ding and Shen 2007 (dual Xeon 2.0 GHz, 512 KiB L2; unit not given; packets from \
         another machine):\n\n",
        comparison_table(&verdict, 1.0),
        format!("\n\ntheir verdict: {}\n", verdict.in_words())
    ]
}

/// Draws the execution times by condition, with the intervals that the paper has. Intervals that are
/// not resolved are left out.
pub(crate) fn figure(
    record: &TrialRecord,
    findings: &InterferenceFindings,
    index: usize,
) -> Option<Figure> {
    let names = each_once(findings.runs.iter().map(condition_name));
    let series = [
        condition_series(findings, Environment::Disturbed, &names, index),
        condition_series(findings, Environment::Quiet, &names, index),
    ];
    let axes = (Axis::with_names("array and setting", names), nanoseconds("time of a run"));
    let verdict = match unfinished(record.end.as_ref()) {
        None => format!("{}.", findings.in_words),
        Some(_) => NOT_COMPARED.to_string(),
    };
    let in_words = format!("{verdict} Intervals of {:.0} %.", CONFIDENCE * 100.0);
    lines("interference", "Runs in quiet and under disturbance", in_words, axes, series)
}

/// Names the array and the setting: `256 KiB, plain`.
fn condition_name(runs: &ConditionTimes) -> String {
    format!("{}, {}", words::bytes(runs.array_bytes), runs.setting)
}

/// Returns the bars of an environment, each at the place of its name.
fn condition_series(
    findings: &InterferenceFindings,
    environment: Environment,
    names: &[String],
    index: usize,
) -> Series {
    let mut points = Vec::new();
    for runs in findings.runs.iter().filter(|runs| runs.environment == environment) {
        let name = condition_name(runs);
        if let Some(place) = names.iter().position(|known| *known == name) {
            points.extend(condition_point(runs, place));
        }
    }
    Series::new(environment.to_string(), index, Role::Bars, points)
}

/// Returns the mean time of runs with its interval; absent if that is unknown or not resolved.
fn condition_point(runs: &ConditionTimes, place: usize) -> Option<Point> {
    let times = runs.times?;
    let Interval { low, high, .. } = times.interval(CONFIDENCE).filter(is_time)?;
    Some(Point::with_ends(place as f64, times.mean, [low, high]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use rundata::trial::interference::ProgramSetting;

    /// Returns the verdict on plain runs of 512 KiB with these execution times.
    fn verdict(quiet_ns: &[f64], disturbed_ns: &[f64]) -> InterferenceVerdict {
        let runs = |environment: Environment, times: &[f64]| {
            let by_round: BTreeMap<u32, f64> = (0..).zip(times.iter().copied()).collect();
            ConditionTimes::from_rounds(ProgramSetting::Plain, environment, 512 << 10, by_round)
        };
        judge(&[runs(Environment::Quiet, quiet_ns), runs(Environment::Disturbed, disturbed_ns)])
    }

    #[test]
    fn an_interval_that_begins_below_zero_is_none_of_a_time() {
        // Student's at 90 % of two runs: 22 ms -+ 6.31 * 18 ms, and 21 ms -+ 6.31 * 1 ms.
        let verdict = verdict(&[4e6, 40e6], &[20e6, 22e6]);
        let shown = Printout::from(interval_table(&verdict)).to_string();
        assert!(shown.contains("not resolved  14.69 to 27.31"), "{shown}");
        let all = Printout::from(comparison_table(&verdict, NS_PER_MS)).to_string();
        assert!(all.contains("not resolved  (14.69, 27.31)"), "{all}");
    }
}
