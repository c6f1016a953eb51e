//! What every report on the terminal is made of: tables, figures, intervals, charts, the machine, the end.

use std::path::Path;

use charts::{Figure, Look};
use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};
use model::competing::CompetingTasks;
use model::estimate::Estimate;
use model::machine::Machine;
use model::noise::NoiseVerdict;
use model::record::CpuSpeed;
use model::run::{Header, Run, StopReason};
use model::speed::Speed;

/// `AMD EPYC, Linux 6.1`.
pub(crate) fn machine_words(machine: &Machine) -> String {
    let cpu = machine.cpu_name().map_or("unknown CPU", String::as_str);
    let kernel = machine.kernel.release.known().map_or("unknown", String::as_str);
    format!("{cpu}, Linux {kernel}")
}

/// What was measured on what: `ring on AMD EPYC, Linux 6.1`.
pub(crate) fn heading(header: &Header) -> String {
    format!("{} on {}", header.plan.experiment, machine_words(&header.machine))
}

/// The last line: where the run is kept.
pub(crate) fn place(path: Option<&Path>) -> String {
    let file = path.map_or("not stored".to_string(), |path| path.display().to_string());
    format!("run file: {file}")
}

/// Rows below their columns, all to the right.
pub(crate) fn table(
    columns: impl Into<Row>,
    rows: impl IntoIterator<Item = impl Into<Row>>,
) -> Table {
    let mut table = Table::new();
    let below_header = LineStyle::none().fill('-').junction('-');
    table.load_style(TableStyle::new().header_separator(below_header));
    table.set_header(columns).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_padding((0, 1));
    }
    table
}

/// Three significant digits or all before the point; a dash for what is not known.
pub(crate) fn figure(value: impl Into<Option<f64>>) -> String {
    let Some(value) = value.into() else { return "-".to_string() };
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// An estimate without its interval; a dash where there is none.
pub(crate) fn value(estimate: Option<Estimate>) -> String {
    figure(estimate.map(|estimate| estimate.value))
}

/// The interval of an estimate, or why there is none; a dash without an estimate.
pub(crate) fn interval(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return "-".to_string() };
    match estimate.interval().map(|i| format!("{} to {}", figure(i.low), figure(i.high))) {
        None if estimate.speed == Speed::Contended => "full speed not seen".to_string(),
        None => format!("not resolved ({})", rounds_words(estimate.rounds)),
        Some(range) if estimate.resolved => range,
        Some(range) => format!("not resolved ({range})"),
    }
}

/// An estimate with its interval; a dash where there is none.
pub(crate) fn estimate_words(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".to_string(), |_| format!("{} ({})", value(estimate), interval(estimate)))
}

/// CPUs as a list: `0,2`.
pub(crate) fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// `1 round`, `7 rounds`.
pub(crate) fn rounds_words(rounds: u32) -> String {
    if rounds == 1 { "1 round".to_string() } else { format!("{rounds} rounds") }
}

/// What an experiment prints of its run, between what the reports of all have.
pub(crate) struct Text {
    /// What follows the machine in the heading.
    pub(crate) heading: String,
    /// Tables and their legends, ending with an empty line.
    pub(crate) body: String,
    /// Lines of its own below them, before those on the machine and the end.
    pub(crate) findings: Vec<String>,
}

/// What the records of all experiments have beside their findings.
pub(crate) struct Common<'a> {
    pub(crate) noise: &'a NoiseVerdict,
    pub(crate) speed: &'a [CpuSpeed],
    pub(crate) ns_per_tick: Option<f64>,
    /// Widest relative half-width; none as long as a case has no interval.
    pub(crate) precision: Option<f64>,
}

/// The report of a run, ending with a newline.
pub(crate) fn report(run: &Run, text: Text, common: &Common, path: Option<&Path>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (number, case) in run.header.plan.cases.iter().enumerate() {
        if let Some(failure) = run.failures.iter().rev().find(|failure| failure.case == number) {
            let measured = run.samples.iter().any(|sample| sample.case() == number);
            let further = if measured { "failed in some rounds" } else { "not measured" };
            lines.push(format!("{further}: {}: {}", case.title(), failure.message));
        }
    }
    lines.extend(text.findings);
    lines.extend(common.ns_per_tick.map(|ns| {
        let mhz = 1000.0 / ns;
        format!(
            "ticks: of the time-stamp counter, {ns:.4} ns each ({mhz:.0} MHz), whatever the core's clock"
        )
    }));
    lines.push(format!("machine: {}", common.noise.in_words()));
    lines.extend(common.speed.iter().map(speed_words));
    lines.extend(run.company.as_ref().and_then(CompetingTasks::line));
    lines.push(format!("stopped: {}", stop_words(run, common)));
    lines.extend(run.header.notices.iter().map(|notice| format!("note: {notice}")));
    lines.extend(run.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.push(place(path));
    format!("{}{}\n\n{}{}\n", heading(&run.header), text.heading, text.body, lines.join("\n"))
}

/// How fast the CPU was, and how sure its full speed is.
fn speed_words(speed: &CpuSpeed) -> String {
    let clock = speed.clock_ghz.map_or(String::new(), |ghz| format!(" at {ghz:.2} GHz"));
    let known = match speed.level.established {
        true => "its full speed is known (from the table or three earlier runs)",
        false => "its full speed is provisional (fewer than three runs have seen it)",
    };
    format!("speed: CPU {}{clock}; {known}", cpu_list(&speed.cpus))
}

/// Why a run ended, after how many rounds, and how precise it is.
fn stop_words(run: &Run, common: &Common) -> String {
    let stopping = &run.header.plan.stopping;
    let Some(end) = &run.end else {
        return "no end line: the run was killed or is still going on".to_string();
    };
    if end.reason == StopReason::Failed {
        return reason_words(end.reason).to_string();
    }
    let widest = match common.precision {
        Some(widest) => format!("widest interval +-{:.1} %", widest * 100.0),
        None => "not every case has an interval: more time (--budget) gives it".to_string(),
    };
    // A plan of so many rounds asks for none.
    let precision = match stopping.precision > 0.0 {
        true => format!("; {widest}, +-{:.1} % asked", stopping.precision * 100.0),
        false => String::new(),
    };
    let rounds = rounds_words(run.rounds());
    let seconds = (end.spent_ns / 1_000_000) as f64 / 1e3;
    format!("{} ({rounds} in {seconds:.1} s{precision})", reason_words(end.reason))
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

/// A chart within a report, wherever that goes, and an empty line below it; nothing without one.
pub(crate) fn drawn(figure: Option<Figure>) -> String {
    let look = Look { columns: 80, colour: false, unicode: true };
    figure.map_or(String::new(), |figure| charts::terminal(&figure, &[], &look) + "\n")
}
