//! `classic experiment interference` on the terminal, and as a chart.

use analysis::findings::interference::{
    CONFIDENCE, ConditionTimes, InterferenceFindings, InterferenceVerdict, SettingComparison, judge,
};
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
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{ReportText, View, figure as digits};

pub(crate) fn text(record: &TrialRecord, found: &InterferenceFindings, view: View) -> ReportText {
    let noise = record.cases.iter().find_map(|of| match &of.case.trial {
        Trial::Execution(of) => Some(of.noise),
        _ => None,
    });
    let published = view.history.then(|| printout!["\n", published()]);
    let doubts = found.doubts.iter().map(|doubt| format!("doubt: {doubt}").into());
    let is_whole = unfinished(record.end.as_ref()).is_none();
    ReportText {
        headline: match is_whole {
            true => found.verdict.headline(noise.unwrap_or(Noise::Net)),
            false => NOT_COMPARED.into(),
        },
        table: printout![ranges(&found.verdict), "\n", published],
        details: printout![comparisons(&found.verdict, 1e6), "\n\n", legend(record, found), "\n"],
        findings: doubts
            .chain(is_whole.then(|| format!("verdict: {}", found.in_words).into()))
            .collect(),
        ..ReportText::default()
    }
}

/// In place of a verdict on a run that did not go to its end.
const NOT_COMPARED: &str = "The settings are not compared, as not all runs were made.";

/// In place of an interval that is none of a time.
const NOT_RESOLVED: &str = "not resolved";

/// Whether an interval of a mean time is above zero throughout: of few and scattered runs Student's
/// is not.
fn is_time(of: &Interval) -> bool {
    of.low > 0.0
}

/// The comparisons by their intervals alone: what one of growth leaves 1 out of is resolved, of
/// moves 0.
fn ranges(verdict: &InterferenceVerdict) -> Table {
    let columns = ["KiB", "setting", "quiet ms", "disturbed ms", "scatter x", "mean moved %"];
    let range =
        |low: f64, high: f64, decimals: usize| format!("{low:.decimals$} to {high:.decimals$}");
    let dash = || "-".to_string();
    let ms = |of: Option<Interval>| match of {
        None => dash(),
        Some(of) if !is_time(&of) => NOT_RESOLVED.to_string(),
        Some(of) => {
            let decimals = if of.high >= 100e6 { 1 } else { 2 };
            range(of.low / 1e6, of.high / 1e6, decimals)
        }
    };
    let row = |of: &SettingComparison| {
        let growth = of.growth.map(|of| format!("{} to {}", digits(of.low), digits(of.high)));
        let moved = of.moved.map(|of| range(100.0 * of.low, 100.0 * of.high, 1));
        [
            digits(of.array_bytes as f64 / 1024.0),
            of.setting.to_string(),
            ms(of.quiet),
            ms(of.disturbed),
            growth.unwrap_or_else(dash),
            moved.unwrap_or_else(dash),
        ]
    };
    Table::new(columns, verdict.comparisons.iter().map(row))
}

/// Intervals of the mean execution time, in `unit_ns`, and how they grew and moved.
fn comparisons(verdict: &InterferenceVerdict, unit_ns: f64) -> Table {
    let columns = ["array", "setting", "quiet", "disturbed", "grew", "moved %"];
    Table::new(columns, verdict.comparisons.iter().map(|comparison| row(comparison, unit_ns)))
}

fn row(comparison: &SettingComparison, unit_ns: f64) -> [String; 6] {
    let dash = || "-".to_string();
    let interval = |interval: Option<Interval>| match interval {
        None => dash(),
        Some(of) if !is_time(&of) => NOT_RESOLVED.to_string(),
        Some(of) => format!("({:.2}, {:.2})", of.low / unit_ns, of.high / unit_ns),
    };
    let growth = comparison.growth.map_or_else(dash, |growth| {
        let mark = if growth.is_resolved() { "" } else { "not resolved " };
        let [ratio, low, high] = [growth.ratio, growth.low, growth.high].map(digits);
        format!("{mark}{ratio}x ({low} to {high})")
    });
    let moved = comparison.moved.map_or_else(dash, |moved| {
        let [part, low, high] = [moved.part, moved.low, moved.high].map(|part| 100.0 * part);
        format!("{part:+.2} ({low:+.2} to {high:+.2})")
    });
    [
        format!("{} KiB", digits(comparison.array_bytes as f64 / 1024.0)),
        comparison.setting.to_string(),
        interval(comparison.quiet),
        interval(comparison.disturbed),
        growth,
        moved,
    ]
}

fn legend(record: &TrialRecord, found: &InterferenceFindings) -> String {
    let columns = "quiet, disturbed: mean execution time in ms, 90 % interval (Student); grew: \
         scatter disturbed / quiet, moved: of the mean";
    let mut lines = vec![columns.to_string()];
    for summary in &record.cases {
        let Trial::Execution(of) = &summary.case.trial else { continue };
        let laps = of.laps;
        lines
            .push(format!("every run: a ring of two, {laps} laps, each member rmw over its array"));
        lines.push(setting(&summary.case, of, found));
    }
    each_once(lines).join("\n")
}

fn setting(case: &TrialCase, of: &Execution, found: &InterferenceFindings) -> String {
    let Execution { setting, noise, noise_cpu, .. } = of;
    let events = found.events_per_run.get(&setting.to_string());
    let events = events.map(|many| format!(", {} {} a run", digits(*many), noise.events()));
    let priority = of.priority.map(|priority| format!(" at priority {priority}"));
    let wire = (*noise == Noise::Net).then(|| format!(" by {}", of.wire));
    format!(
        "{setting}: members on CPU {} under policy {}{}, noise ({noise}{}) on CPU {noise_cpu}{}",
        case.cpu,
        case.policy,
        priority.unwrap_or_default(),
        wire.unwrap_or_default(),
        events.unwrap_or_default()
    )
}

/// The paper's Tables 1 and 2, read in the same way.
fn published() -> Printout {
    // The file is part of the program and read by its tests.
    let Ok(figures) = LiFigures::published() else { return Printout::default() };
    let verdict = judge(&figures.runs);
    printout![
        "Li, Ding and Shen 2007 (dual Xeon 2.0 GHz, 512 KiB L2; unit not given; packets from \
         another machine):\n\n",
        comparisons(&verdict, 1.0),
        format!("\n\ntheir verdict: {}\n", verdict.in_words())
    ]
}

/// Execution times by condition, with the paper's intervals; without those that are not resolved.
pub(crate) fn figure(
    record: &TrialRecord,
    found: &InterferenceFindings,
    index: usize,
) -> Option<Figure> {
    let name = |of: &ConditionTimes| format!("{}, {}", words::bytes(of.array_bytes), of.setting);
    let names = each_once(found.runs.iter().map(name));
    let point = |of: &ConditionTimes| {
        let (times, place) = (of.times?, names.iter().position(|known| *known == name(of))?);
        let Interval { low, high, .. } = times.interval(CONFIDENCE).filter(is_time)?;
        Some(Point::with_ends(place as f64, times.mean, [low, high]))
    };
    let series = |(of, name): (Environment, &str)| {
        let runs = found.runs.iter().filter(|runs| runs.environment == of);
        Series::new(name, index, Role::Bars, runs.filter_map(point).collect())
    };
    let series = [(Environment::Disturbed, "disturbed"), (Environment::Quiet, "quiet")].map(series);
    let axes = (Axis::with_names("array and setting", names.clone()), nanoseconds("time of a run"));
    let in_words = match unfinished(record.end.as_ref()) {
        None => format!("{}.", found.in_words),
        Some(_) => NOT_COMPARED.to_string(),
    };
    let in_words = format!("{in_words} Intervals of {:.0} %.", CONFIDENCE * 100.0);
    lines("interference", "Runs in quiet and under disturbance", in_words, axes, series)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use rundata::trial::interference::ProgramSetting;

    /// Plain runs of 512 KiB in quiet and disturbed, of these execution times.
    fn verdict(quiet_ns: &[f64], disturbed_ns: &[f64]) -> InterferenceVerdict {
        let runs = |of: Environment, times: &[f64]| {
            let by_round: BTreeMap<u32, f64> = (0..).zip(times.iter().copied()).collect();
            ConditionTimes::from_rounds(ProgramSetting::Plain, of, 512 << 10, by_round)
        };
        judge(&[runs(Environment::Quiet, quiet_ns), runs(Environment::Disturbed, disturbed_ns)])
    }

    #[test]
    fn an_interval_that_begins_below_zero_is_none_of_a_time() {
        // Student's at 90 % of two runs: 22 ms -+ 6.31 * 18 ms, and 21 ms -+ 6.31 * 1 ms.
        let verdict = verdict(&[4e6, 40e6], &[20e6, 22e6]);
        let shown = Printout::from(ranges(&verdict)).to_string();
        assert!(shown.contains("not resolved  14.69 to 27.31"), "{shown}");
        let all = Printout::from(comparisons(&verdict, 1e6)).to_string();
        assert!(all.contains("not resolved  (14.69, 27.31)"), "{all}");
    }
}
