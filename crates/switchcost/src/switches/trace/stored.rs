//! The report of a stored trace: its figures, each with the interval that its parts leave.

use std::path::Path;

use analysis::findings::ExperimentFindings;
use analysis::findings::trace::{TraceFigure, TraceFindings};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::record::TrialRecord;
use analysis::results::{Quantity, QuantityUnit};
use analysis::setting_changes::run_warnings;
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::plan::MIN_ROUNDS;
use rundata::run::{Run, RunResult};
use rundata::trial::switches::TracedTasks;
use rundata::words::{grouped, plain};

use crate::report::figures::lines;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{ReportText, View, counted, heading, run_file_line, sentence};
use crate::report::tiles::Tile;

const LEGEND: &str = "figures of all parts together; interval: by the scatter between parts, 95 %; it \
     does not cover other traces\nwaits are counted by bins: a percentile is right to within its \
     bin\nbusiest CPU: the time in which it was not idle, whatever was traced\n";

/// Returns the report for a terminal; `path` is where the trace is stored.
pub(crate) fn printout(
    run: &Run,
    found: &TraceFindings,
    path: Option<&Path>,
    view: View,
) -> Printout {
    let ReportText { headline, table, details, .. } = text(found);
    let mut parts: Vec<Printout> = vec![sentence(run.unfinished(), headline).into()];
    if view.verbose {
        parts.push(heading(&run.header).into());
    }
    parts.push(table);
    let mut lines = Vec::new();
    for warning in run_warnings(run) {
        lines.push(format!("warning: {warning}"));
    }
    if view.verbose {
        parts.push(details);
        lines.push(run_file_line(path));
    }
    parts.push(lines.join("\n").into());
    Printout::paragraphs(parts)
}

/// Returns the parts of the report.
pub(crate) fn text(found: &TraceFindings) -> ReportText {
    ReportText {
        headline: headline(found),
        table: printout![table(found), "\n"],
        details: printout![LEGEND, &length_line(found), "\n"],
        ..ReportText::default()
    }
}

fn tasks_in_words(tasks: TracedTasks) -> &'static str {
    match tasks {
        TracedTasks::Machine => "The machine",
        TracedTasks::Processes => "The processes",
        TracedTasks::Command => "The command",
    }
}

/// Returns `The machine: 41,200 switches a second, 93 % voluntary; waits in the run queue: p50
/// 5.1 us, p99 320 us (210 to 400).`
fn headline(found: &TraceFindings) -> MarkedText {
    let whose = tasks_in_words(found.tasks);
    let per_s = found.switches_per_s();
    if per_s == 0.0 {
        let seconds = plain(found.seconds);
        return format!("{whose}: no switch in {seconds} s.").into();
    }
    let voluntary = found.figure("voluntary").map_or(0.0, |figure| figure.estimate.value);
    let rate = MarkedText::figure(format!("{} switches a second", grouped(per_s)));
    let share = format!(", {:.0} % voluntary", 100.0 * voluntary / per_s);
    let mut waits = Vec::new();
    for (id, name) in [("wait-p50", "p50"), ("wait-p99", "p99")] {
        if let Some(figure) = found.figure(id) {
            waits.push(marked![format!("{name} "), MarkedText::figure(value(figure))]);
        }
    }
    let waits = if waits.is_empty() {
        MarkedText::default()
    } else {
        marked!["; waits in the run queue: ", MarkedText::join(waits, ", ")]
    };
    marked![format!("{whose}: "), rate, share, waits, "."]
}

fn table(found: &TraceFindings) -> Table {
    let mut rows = Vec::new();
    for figure in &found.figures {
        rows.push(cells![figure.title.clone(), value(figure), interval(figure)]);
    }
    Table::new(["figure", "value", "interval"], rows).texts(|at| at == 0)
}

fn value(figure: &TraceFigure) -> String {
    figure.quantity.value_in_words(figure.estimate.value)
}

/// Returns the interval of a figure, or why there is none.
fn interval(figure: &TraceFigure) -> String {
    let TraceFigure { quantity, estimate, .. } = figure;
    let Some(ends) = estimate.interval() else {
        let parts = counted(estimate.rounds as usize, "part");
        return format!("not judged: {parts} (at least {MIN_ROUNDS} are needed)");
    };
    format!("{} to {}", quantity.value_in_words(ends.low), quantity.value_in_words(ends.high))
}

fn length_line(found: &TraceFindings) -> String {
    format!("{} s in {}", plain(found.seconds), counted(found.parts as usize, "part"))
}

/// Returns the tiles: how often it was switched, how long it waited, how busy a CPU was.
pub(crate) fn tiles(found: &TraceFindings) -> Vec<Tile> {
    let mut tiles = vec![Tile::counted("a second", found.switches_per_s(), "switches")];
    for figure in &found.figures {
        let (title, estimate) = (figure.title.clone(), Some(figure.estimate));
        match figure.quantity.unit() {
            QuantityUnit::Nanoseconds => tiles.extend(Tile::cost(title, estimate)),
            QuantityUnit::Share => {
                let percent = figure.estimate.scaled(100.0);
                tiles.extend(Tile::percent(title, percent));
            }
            QuantityUnit::PerSecond => {}
        }
    }
    tiles
}

/// Draws the rates of all parts.
pub(crate) fn figure(found: &TraceFindings, index: usize) -> Option<Figure> {
    let mut series = Vec::new();
    for figure in &found.figures {
        if figure.quantity != Quantity::PerSecond {
            continue;
        }
        let mut points = Vec::new();
        for (part, rate) in &figure.by_part {
            points.push(Point::bare(f64::from(*part) + 1.0, *rate));
        }
        series.push(Series::new(figure.title.clone(), index, Role::Measured, points));
    }
    let x = Axis::new("part", Unit::Count, Scale::Linear);
    let y = Axis::new("a second", Unit::Count, Scale::Linear);
    lines("trace-rates", "Switches by part", headline(found).into(), (x, y), series)
}

/// Returns the result in a few words, for lists of runs: `41,200 switches a second`.
pub(crate) fn result(found: &TraceFindings) -> RunResult {
    let text = format!("{} switches a second", grouped(found.switches_per_s()));
    RunResult { text, is_rough: false }
}

/// Like [`result`], for a run; absent for a run of another experiment.
pub(super) fn result_of_run(run: &Run) -> Option<RunResult> {
    match TrialRecord::from_run(run).found.findings {
        Some(ExperimentFindings::Trace(found)) => Some(result(&found)),
        _ => None,
    }
}
