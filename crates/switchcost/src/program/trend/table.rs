//! `switchcost trend` on the terminal and as Markdown.

use std::io;

use analysis::marked::MarkedText;
use analysis::trend::{CaseTrend, PointGrouping};
use anyhow::{Context, Result};
use charts::render_text;
use rundata::words::{self, plain, whole};

use super::figures::cost_figure;
use super::page::page;
use super::{TrendArgs, day};
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::report::output::columns::Columns;
use crate::report::output::{
    plot_style, print, printable_text, render_printout, say_fitted, write_json,
};
use crate::report::printout::{Printout, printout};
use crate::report::terminal::counted;

/// Writes what was asked for: text, to standard error where JSON has standard output, and JSON.
pub(super) fn write(trend: &CaseTrend, args: &TrendArgs) -> Result<()> {
    let (text, layout) = if args.markdown {
        (markdown(trend).into(), Layout::UNBROKEN)
    } else {
        (text(trend, args.verbose), args.tables.layout())
    };
    let place = args.report.write(|| page(trend))?;
    let place = if args.markdown { String::new() } else { place };
    match &args.json {
        _ if args.quiet => {}
        Some(Destination::Stdout) => say_fitted(printout![text, place], layout),
        _ if args.report.is_stdout() => say_fitted(text, layout),
        _ if args.judgements.on_stdout().is_some() => say_fitted(printout![text, place], layout),
        _ => {
            let mut text = render_printout(&text, layout, &io::stdout());
            if args.plot && !args.markdown {
                text += &plot(trend);
            }
            text += &printable_text(&place, &io::stdout());
            print(text.as_bytes()).context("cannot print the series")?;
        }
    }
    write_json(trend, args.json.as_ref())
}

/// Draws the cost over time in text.
fn plot(trend: &CaseTrend) -> String {
    match cost_figure(trend) {
        Some(figure) => format!("\n{}", render_text(&figure, &[], &plot_style(&io::stdout()))),
        None => String::new(),
    }
}

/// Returns the text with a row for each point.
pub(super) fn whole_text(trend: &CaseTrend) -> String {
    text(trend, true).text(Layout::PAGE).into()
}

/// Returns the answer, the levels or the points, notes and the verdict, ending with a newline.
fn text(trend: &CaseTrend, is_verbose: bool) -> Printout {
    let has_points = is_verbose || trend.terms.by != PointGrouping::Run;
    let first_head = match trend.terms.by {
        PointGrouping::Kernel => "kernel",
        PointGrouping::Scheduler => "scheduler",
        PointGrouping::Build => "build",
        PointGrouping::Run if is_verbose => "run",
        PointGrouping::Run => SINCE,
    };
    let rows = if has_points { point_rows(trend) } else { level_rows(trend) };
    let mut lines = notes(trend);
    if has_points && !trend.changes.is_empty() {
        lines.push("< the cost is different from here on".to_string());
    }
    if is_verbose {
        for left_out in &trend.left_out {
            lines.push(format!("not used: {}: {}", left_out.why, left_out.runs.join(", ")));
        }
    } else {
        lines.extend(left_out(trend));
    }
    let mut lines: Vec<MarkedText> = lines.into_iter().map(MarkedText::from).collect();
    lines.extend(trend.gate.as_ref().map(|gate| gate.in_words.clone()));
    let table = columns(first_head).table(rows);
    Printout::paragraphs([
        Printout::from(&trend.in_words),
        table.into(),
        MarkedText::join(lines, "\n").into(),
    ])
}

fn markdown(trend: &CaseTrend) -> String {
    let table = columns(SINCE).markdown(level_rows(trend));
    let mut text = format!("**{}**\n\n{table}\n", trend.in_words);
    let mut notes = notes(trend);
    notes.extend(left_out(trend));
    for note in notes {
        text += &format!("- {note}\n");
    }
    if let Some(gate) = &trend.gate {
        text += &format!("\n{}\n", gate.in_words);
    }
    text
}

/// Head of the days on which levels begin.
const SINCE: &str = "since";

/// A row: a level, or a point of the series.
struct TrendRow {
    name: String,
    runs: usize,
    ns: f64,
    low_ns: f64,
    high_ns: f64,
    cycles: Option<f64>,
}

impl TrendRow {
    fn cost(&self) -> String {
        let (scale, unit) = words::time_unit(self.ns);
        format!("{} {unit}", words::four_digits(self.ns / scale))
    }

    /// Returns the interval in the unit of the cost.
    fn interval(&self) -> String {
        let (scale, _) = words::time_unit(self.ns);
        let [low, high] = [self.low_ns, self.high_ns].map(|ns| words::four_digits(ns / scale));
        format!("{low} to {high}")
    }
}

fn columns(first_head: &str) -> Columns<'static, TrendRow> {
    Columns::new()
        .left(first_head, |row: &TrendRow| row.name.clone())
        .right("runs", |row| row.runs)
        .right("cost", TrendRow::cost)
        .right("interval", TrendRow::interval)
        .or_dash("cycles", |row| row.cycles.map(whole))
}

fn level_rows(trend: &CaseTrend) -> Vec<TrendRow> {
    let mut rows = Vec::new();
    for level in &trend.levels {
        let since = trend.points.get(level.first).map_or("", |point| &point.started);
        rows.push(TrendRow {
            name: day(since).to_string(),
            runs: level.runs,
            ns: level.ns,
            low_ns: level.low,
            high_ns: level.high,
            cycles: level.cycles,
        });
    }
    rows
}

/// Returns a row for each point, with a mark where a change begins.
fn point_rows(trend: &CaseTrend) -> Vec<TrendRow> {
    let mut rows = Vec::new();
    for (index, point) in trend.points.iter().enumerate() {
        let is_change = trend.changes.iter().any(|change| change.at == index);
        rows.push(TrendRow {
            name: format!("{}{}", point.name, if is_change { "  <" } else { "" }),
            runs: point.runs.len(),
            ns: point.ns,
            low_ns: point.low,
            high_ns: point.high,
            cycles: point.cycles,
        });
    }
    rows
}

/// Returns notes on smaller changes, on changes of the clock, on how small a change would show, and
/// on runs that deviate alone.
fn notes(trend: &CaseTrend) -> Vec<String> {
    let mut lines = Vec::new();
    let largest = trend.largest_change().map(|change| change.at);
    for change in trend.changes.iter().rev() {
        if Some(change.at) != largest {
            lines.push(format!("also {}", change.in_words));
        }
    }
    for change in &trend.clock_changes {
        lines.push(format!("clock: {}", change.in_words));
    }
    let runs = counted(trend.runs, "run");
    let mut line = format!("{runs} of {} ({})", trend.case.experiment, trend.case.title);
    if let Some(ghz) = trend.clock_ghz {
        line += &format!(", all at {ghz:.2} GHz");
    }
    if let Some(share) = trend.detectable {
        let percent = plain((1000.0 * share).ceil() / 10.0);
        line += &format!("; three runs would show a change of {percent} %");
    }
    lines.push(line);
    let outliers: u32 = trend.points.iter().map(|point| point.alone).sum();
    if outliers > 0 {
        lines.push(format!(
            "{} far from the runs before and after: not taken for a change, and given little \
             weight",
            counted(outliers as usize, "run")
        ));
    }
    lines
}

/// Returns how many runs are not used, and why; `None` where all are.
pub(super) fn left_out(trend: &CaseTrend) -> Option<String> {
    let (mut count, mut reasons) = (0, Vec::new());
    for left_out in &trend.left_out {
        count += left_out.runs.len();
        reasons.push(format!("{} ({})", left_out.runs.len(), left_out.why));
    }
    if count == 0 {
        return None;
    }
    Some(format!("{} not used: {}", counted(count, "run"), reasons.join(", ")))
}
