//! What every report on the terminal is made of: tables, figures, intervals, the machine, the end.

use std::path::Path;
use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};
use model::estimate::Estimate;
use model::record::CpuSpeed;
use model::run::{End, Header, StopReason};
use model::speed::Speed;

/// What was measured on what: `ring on AMD EPYC, Linux 6.1`.
pub(super) fn heading(header: &Header) -> String {
    let cpu = header.machine.cpu.models.known().and_then(|models| models.first());
    let cpu = cpu.and_then(|model| model.name.known()).map_or("unknown CPU", String::as_str);
    let kernel = header.machine.kernel.release.known().map_or("unknown", String::as_str);
    format!("{} on {cpu}, Linux {kernel}", header.plan.experiment)
}

/// The last line: where the run is kept.
pub(super) fn place(path: Option<&Path>) -> String {
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
pub(super) fn interval_words(estimate: &Estimate) -> String {
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
pub(super) fn speed_words(speeds: &[CpuSpeed]) -> Vec<String> {
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
pub(super) fn ticks(ns: f64) -> String {
    let mhz = 1000.0 / ns;
    format!(
        "ticks: of the time-stamp counter, {ns:.4} ns each ({mhz:.0} MHz), whatever the core's clock"
    )
}

/// `1 round`, `7 rounds`.
pub(super) fn rounds_words(rounds: u32) -> String {
    if rounds == 1 { "1 round".to_string() } else { format!("{rounds} rounds") }
}

/// A figure with its interval, or a dash.
pub(super) fn estimate_words(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "-".to_string(),
        Some(e) => format!("{} ({})", figure(Some(e.value)), interval_words(e)),
    }
}

/// Why a run ended, after how many rounds, and how precise it is.
pub(super) fn stop_words(
    header: &Header,
    end: Option<&End>,
    rounds: u32,
    widest: Option<f64>,
) -> String {
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
pub(super) fn reason_words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Precise => "precise enough",
        StopReason::BudgetSpent => "the budget is spent",
        StopReason::RoundsDone => "all rounds are done",
        StopReason::Interrupted => "interrupted",
        StopReason::Failed => "nothing could be measured",
    }
}
