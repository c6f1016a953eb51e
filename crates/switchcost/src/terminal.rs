//! What every report on the terminal is made of: tables, figures, intervals, bars, the machine, the end.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};
use model::company::Company;
use model::estimate::Estimate;
use model::record::CpuSpeed;
use model::run::{End, Header, StopReason};
use model::speed::Speed;
use model::trial::{Record, Summary};
use stats::Histogram;

/// What was measured on what: `ring on AMD EPYC, Linux 6.1`.
pub(crate) fn heading(header: &Header) -> String {
    let cpu = header.machine.cpu.models.known().and_then(|models| models.first());
    let cpu = cpu.and_then(|model| model.name.known()).map_or("unknown CPU", String::as_str);
    let kernel = header.machine.kernel.release.known().map_or("unknown", String::as_str);
    format!("{} on {cpu}, Linux {kernel}", header.plan.experiment)
}

/// The last line: where the run is kept.
pub(crate) fn place(path: Option<&Path>) -> String {
    let file = path.map_or("not stored".to_string(), |path| path.display().to_string());
    format!("run file: {file}")
}

/// An empty table with these columns, all to the right.
pub(crate) fn table(columns: impl Into<Row>) -> Table {
    let mut table = Table::new();
    let below_header = LineStyle::none().fill('-').junction('-');
    table.load_style(TableStyle::new().header_separator(below_header));
    table.set_header(columns);
    table
}

/// Puts the columns of a full table in place.
pub(crate) fn align(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_padding((0, 1));
    }
}

/// Three significant digits or all before the point; a dash for what is not known.
pub(crate) fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".to_string(),
        Some(value) => {
            let decimals = match value.abs() {
                size if size >= 100.0 || size == 0.0 => 0,
                size if size >= 10.0 => 1,
                size if size >= 1.0 => 2,
                _ => 3,
            };
            format!("{value:.decimals$}")
        }
    }
}

/// The interval, or why there is none.
pub(crate) fn interval_words(estimate: &Estimate) -> String {
    match estimate.interval() {
        None if estimate.speed == Speed::Contended => "full speed not seen".to_string(),
        None => format!("not resolved ({})", rounds_words(estimate.rounds)),
        Some(i) if estimate.resolved => {
            format!("{} to {}", figure(Some(i.low)), figure(Some(i.high)))
        }
        Some(i) => {
            format!("not resolved ({} to {})", figure(Some(i.low)), figure(Some(i.high)))
        }
    }
}

/// How fast the CPU was, and how sure its full speed is.
pub(crate) fn speed_words(speeds: &[CpuSpeed]) -> Vec<String> {
    let words = |speed: &CpuSpeed| {
        let cpus: Vec<String> = speed.cpus.iter().map(u32::to_string).collect();
        let clock = speed.clock_ghz.map_or(String::new(), |ghz| format!(" at {ghz:.2} GHz"));
        let known = match speed.level.established {
            true => "its full speed is known (from the table or three earlier runs)",
            false => "its full speed is provisional (fewer than three runs have seen it)",
        };
        format!("speed: CPU {}{clock}; {known}", cpus.join(","))
    };
    speeds.iter().map(words).collect()
}

/// What a tick is, below every table that has some.
pub(crate) fn ticks(ns: f64) -> String {
    let mhz = 1000.0 / ns;
    format!(
        "ticks: of the time-stamp counter, {ns:.4} ns each ({mhz:.0} MHz), whatever the core's clock"
    )
}

/// `1 round`, `7 rounds`.
fn rounds_words(rounds: u32) -> String {
    if rounds == 1 { "1 round".to_string() } else { format!("{rounds} rounds") }
}

/// A figure with its interval, or a dash.
pub(crate) fn estimate_words(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "-".to_string(),
        Some(e) => format!("{} ({})", figure(Some(e.value)), interval_words(e)),
    }
}

/// The report of a run of trials, ending with a newline: what was found stands in the middle.
pub(crate) fn of_trials(record: &Record, findings: &str, path: Option<&Path>) -> String {
    let cpu = record.cases.first().map(|case| case.case.cpu);
    let cpu = cpu.map_or(String::new(), |cpu| format!(", on CPU {cpu}"));
    let failure = |case: &Summary| {
        Some(failed(&case.case.trial.to_string(), case.rounds, case.failure.as_ref()?))
    };
    let mut lines: Vec<String> = record.cases.iter().filter_map(failure).collect();
    lines.extend(record.ns_per_tick.map(ticks));
    lines.push(format!("machine: {}", record.noise.in_words()));
    lines.extend(record.company.as_ref().and_then(Company::line));
    let rounds = record.cases.iter().map(|case| case.rounds).max().unwrap_or(0);
    let (header, end_line) = (&record.header, record.end.as_ref());
    lines.extend(end(header, end_line, rounds, record.worst_precision, &record.warnings));
    lines.push(place(path));
    format!("{}{cpu}\n\n{findings}{}\n", heading(header), lines.join("\n"))
}

/// A case that was not measured, or not in all rounds.
pub(crate) fn failed(case: &str, rounds: u32, failure: &str) -> String {
    let further = if rounds > 0 { "failed in some rounds" } else { "not measured" };
    format!("{further}: {case}: {failure}")
}

/// Why a run ended, what is noted of it and what is to be warned of.
pub(crate) fn end(
    header: &Header,
    end: Option<&End>,
    rounds: u32,
    widest: Option<f64>,
    warnings: &[String],
) -> Vec<String> {
    let stopped = format!("stopped: {}", stop_words(header, end, rounds, widest));
    let notes = header.notices.iter().map(|notice| format!("note: {notice}"));
    let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
    std::iter::once(stopped).chain(notes).chain(warnings).collect()
}

/// Why a run ended, after how many rounds, and how precise it is.
fn stop_words(header: &Header, end: Option<&End>, rounds: u32, widest: Option<f64>) -> String {
    let stopping = &header.plan.stopping;
    let Some(end) = end else {
        return "no end line: the run was killed or is still going on".to_string();
    };
    let spent = Duration::from_millis(end.spent_ns / 1_000_000);
    let spent = format!("{:.1} s", spent.as_secs_f64());
    let widest = match widest {
        Some(widest) => format!("widest interval +-{:.1} %", widest * 100.0),
        None => "not every case has an interval: more time (--budget) gives it".to_string(),
    };
    // A plan of so many rounds asks for none.
    let precision = match stopping.precision > 0.0 {
        true => format!("; {widest}, +-{:.1} % asked", stopping.precision * 100.0),
        false => String::new(),
    };
    let facts = format!("{} in {spent}{precision}", rounds_words(rounds));
    match end.reason {
        StopReason::Failed => reason_words(end.reason).to_string(),
        reason => format!("{} ({facts})", reason_words(reason)),
    }
}

/// Why a run ended.
pub(crate) fn reason_words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Precise => "precise enough",
        StopReason::BudgetSpent => "the budget is spent",
        StopReason::RoundsDone => "all rounds are done",
        StopReason::Interrupted => "interrupted",
        StopReason::Failed => "nothing could be measured",
    }
}

/// Columns of the longest bar.
const LONGEST: f64 = 44.0;

/// A line for each bin: where it begins, its bar, its count, its share of the time of all bins.
/// Anything at all has a bar of one.
pub(crate) fn bars(histogram: &Histogram) -> String {
    let most = histogram.0.iter().map(|bin| bin.count).max().unwrap_or(0).max(1) as f64;
    let total_ns: f64 = histogram.0.iter().map(|bin| bin.total_ns).sum();
    let mut text = String::new();
    for bin in &histogram.0 {
        let columns = (LONGEST * bin.count as f64 / most).ceil() as usize;
        let share = if total_ns > 0.0 { 100.0 * bin.total_ns / total_ns } else { 0.0 };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>8} |{:<44}| {:>8} {share:>6.1} %",
            bin.label(),
            "#".repeat(columns),
            bin.count
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_values_are_seen_and_lines_are_short() {
        let text = bars(&Histogram::of([(1500.0, 100_000_000), (5e6, 1), (3000.0, 0)]));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert_eq!(lines.len(), 12, "empty bins between are shown: {text}");
        assert!(lines[0].starts_with("    1 us |####"), "{text}");
        assert!(lines[11].contains("    5 ms |# ") && lines[11].contains(" 1 "), "{text}");
        assert!(lines[1].contains("|  ") && lines[1].contains(" 0 "), "{text}");
        assert_eq!(bars(&Histogram::default()), "");
    }
}
