//! The report of `sensitivity` on the terminal.

use analysis::estimate::Estimate;
use analysis::findings::sensitivity::{RatePoint, SensitivityFindings, SensitivityPoint};
use analysis::marked::MarkedText;
use analysis::record::TrialRecord;
use rundata::trial::Trial;
use rundata::trial::command::{CommandSubject, DONE, NeighbourKind, PREEMPTIONS, neighbour_words};
use rundata::words;

use super::answer::headline;
use crate::base::secrets::masked;
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    ReportText, TimeUnit, answer_words, difference, estimate_words, figure as digits, interval,
    value,
};

const LEGEND: &str = "us a preemption: CPU time above that of the program alone in the same round, over \
     the preemptions that the kernel counted more, less a timer's interrupt\nper CPU second, more CPU \
     time: at the highest rate, with the timer's interrupts\n";

/// Returns the parts of the report.
pub(crate) fn text(record: &TrialRecord, found: &SensitivityFindings) -> ReportText {
    let mut lines = Vec::new();
    for point in &found.points {
        lines.extend(disproportion_line(point));
    }
    lines.push(timer_line(found));
    lines.extend(core_line(found));
    lines.extend(alone_line(record, found));
    ReportText {
        headline: headline(found),
        table: printout![cost_table(found), "\n"],
        details: printout![rate_table(record, found), "\n", LEGEND, subject_line(found)],
        findings: lines.into_iter().map(MarkedText::from).collect(),
        ..ReportText::default()
    }
}

/// Returns the estimate of a time in microseconds.
fn in_microseconds(ns: Option<Estimate>) -> Option<Estimate> {
    ns?.scaled(1e-3)
}

/// Returns whether any neighbour stays, so that tables have a column for it.
fn has_stays(found: &SensitivityFindings) -> bool {
    found.points.iter().any(|point| point.stays_ns > 0)
}

/// Returns the heads of the columns that describe the neighbour.
fn neighbour_heads(found: &SensitivityFindings) -> Vec<&'static str> {
    if has_stays(found) { vec!["neighbour KiB", "stays ms"] } else { vec!["neighbour KiB"] }
}

/// Returns the cells that describe the neighbour of a point.
fn neighbour_cells(found: &SensitivityFindings, point: &SensitivityPoint) -> Vec<MarkedText> {
    let mut cells = vec![digits(point.bytes as f64 / 1024.0).into()];
    if has_stays(found) {
        cells.push(digits(point.stays_ns as f64 / 1e6).into());
    }
    cells
}

/// Builds a table with the cost of a preemption by each neighbour.
fn cost_table(found: &SensitivityFindings) -> Table {
    let mut heads = neighbour_heads(found);
    heads.extend(["us a preemption", "interval", "per CPU second", "more CPU time %"]);
    let rows = found.points.iter().map(|point| cost_row(found, point));
    Table::new(heads, rows).first_to_go(&["per CPU second"])
}

fn cost_row(found: &SensitivityFindings, point: &SensitivityPoint) -> Vec<MarkedText> {
    let cost = in_microseconds(point.ns_per_preemption);
    let (mut preemptions_per_second, mut more_percent) = (None, None);
    if let Some(highest) = point.rates.last() {
        preemptions_per_second = highest.preemptions_per_cpu_second;
        more_percent = highest.more_cpu_share.and_then(|share| share.scaled(100.0));
    }
    let mut row = neighbour_cells(found, point);
    row.extend(cells![
        value(cost),
        interval(cost),
        digits(preemptions_per_second),
        answer_words(difference(more_percent)),
    ]);
    row
}

/// Builds a table with the cost of a preemption by each neighbour at each rate.
fn rate_table(record: &TrialRecord, found: &SensitivityFindings) -> Table {
    let mut heads = neighbour_heads(found);
    heads.extend(["wakes/s", "us a preemption", "samples", "preemptions/sample"]);
    let mut rows = Vec::new();
    for point in &found.points {
        for rate in &point.rates {
            let mut row = neighbour_cells(found, point);
            row.extend(rate_cells(record, rate));
            rows.push(row);
        }
    }
    Table::new(heads, rows)
}

fn rate_cells(record: &TrialRecord, rate: &RatePoint) -> [MarkedText; 4] {
    let (mut samples, mut preemptions) = (0, None);
    if let Some(summary) = record.cases.get(rate.case) {
        samples = summary.rounds;
        preemptions = summary.counts.get(PREEMPTIONS);
    }
    let per_sample = preemptions.map(|count| *count as f64 / f64::from(samples.max(1)));
    cells![
        rate.rate_hz.to_string(),
        estimate_words(in_microseconds(rate.ns_per_preemption)),
        samples.to_string(),
        digits(per_sample),
    ]
}

fn subject_line(found: &SensitivityFindings) -> String {
    match &found.subject {
        CommandSubject::Command(words) => {
            format!("command: {}\n", shell_words::join(masked(words)))
        }
        CommandSubject::Process { pid, window_ns, .. } => {
            format!("process: {pid}, in windows of {}\n", words::time(*window_ns as f64))
        }
    }
}

/// Returns by how much the cost differs between the rates of a neighbour; `None` if the loss is
/// proportional to the count of preemptions.
fn disproportion_line(point: &SensitivityPoint) -> Option<String> {
    let difference = point.highest_above_lowest_ns?.quote().ok()?;
    let direction = if difference.value() > 0.0 { "more" } else { "less" };
    let size = words::time(difference.value().abs());
    let neighbour = neighbour_words("a neighbour", point.bytes, point.stays_ns);
    Some(format!(
        "not proportional: by {neighbour} a preemption costs {size} {direction} at the highest rate \
         than at the lowest"
    ))
}

/// Returns the cost of the timer's interrupt, which is subtracted from all others.
fn timer_line(found: &SensitivityFindings) -> String {
    let Some(estimate) = found.timer_ns else {
        return "timer interrupts: not measured, so not subtracted".to_string();
    };
    match estimate.answer_cost() {
        Ok(cost) => {
            let time = cost.time();
            format!("timer: an interrupt without a switch costs {time}, which is subtracted")
        }
        Err(reason) => format!(
            "timer: the cost of an interrupt is {}; it is subtracted, with that error",
            reason.with_time_unit()
        ),
    }
}

/// Returns how often the core was shared, and the scatter of the runs with and without that.
fn core_line(found: &SensitivityFindings) -> Option<String> {
    let core = found.core_speed?;
    let shared = words::two_digits(100.0 * core.shared);
    if !core.fitted {
        return Some(format!(
            "core: shared for {shared} % of the time; too few runs to correct for it"
        ));
    }
    let [measured, left] = core.scatter.map(|share| words::two_digits(100.0 * share));
    Some(format!(
        "core: shared for {shared} % of the time; runs scatter by {measured} % of the CPU time, by \
         {left} % with the core's speed and slow changes taken out"
    ))
}

/// Returns how often a command ran alone, and its CPU time then.
fn alone_line(record: &TrialRecord, found: &SensitivityFindings) -> Option<String> {
    let CommandSubject::Command(_) = &found.subject else { return None };
    let ns = found.alone_cpu_ns?.quote_cost().ok()?.value();
    for summary in &record.cases {
        let Trial::Command(trial) = &summary.case.trial else { continue };
        if trial.neighbour == NeighbourKind::Nobody {
            let runs = summary.counts.get(DONE)?;
            let time = TimeUnit::for_time(ns).words(ns);
            return Some(format!("alone: {time} of CPU time a run, {runs} runs"));
        }
    }
    None
}
