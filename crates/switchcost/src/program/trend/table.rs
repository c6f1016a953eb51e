//! `switchcost trend` on the terminal and as Markdown.

use std::io;

use analysis::marked::MarkedText;
use analysis::trend::{CaseTrend, CostChange, CostLevel, LeftOutRuns, PointGrouping, TrendPoint};
use anyhow::{Context, Result};
use charts::render_text;
use rundata::words::{self, plain, whole};

use super::TrendArgs;
use super::figures::figure;
use super::page::page;
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::report::output::columns::Columns;
use crate::report::output::{
    plot_style, print, printable_text, render_printout, say_fitted, write_json,
};
use crate::report::printout::{Printout, printout};
use crate::report::terminal::counted;

/// Writes what was asked for: text, to standard error where JSON has standard output, and JSON.
pub(super) fn write(found: &CaseTrend, args: &TrendArgs) -> Result<()> {
    if args.markdown {
        return put(markdown(found).into(), Layout::UNBROKEN, found, args);
    }
    put(text(found, args.verbose), args.tables.layout(), found, args)
}

fn put(text: Printout, layout: Layout, found: &CaseTrend, args: &TrendArgs) -> Result<()> {
    let place = args.report.write(|| page(found))?;
    let place = if args.markdown { String::new() } else { place };
    match &args.json {
        _ if args.quiet => {}
        Some(Destination::Stdout) => say_fitted(printout![text, place], layout),
        _ if args.report.is_stdout() => say_fitted(text, layout),
        _ => {
            let place = printable_text(&place, &io::stdout());
            let text = render_printout(&text, layout, &io::stdout()) + &drawn(found, args) + &place;
            print(text.as_bytes()).context("cannot print the series")?;
        }
    }
    write_json(found, args.json.as_ref())
}

fn drawn(found: &CaseTrend, args: &TrendArgs) -> String {
    let figure = figure(found).filter(|_| args.plot && !args.markdown);
    let look = plot_style(&io::stdout());
    figure.map_or(String::new(), |figure| format!("\n{}", render_text(&figure, &[], &look)))
}

/// Returns the text with a row for each point.
pub(super) fn whole_text(found: &CaseTrend) -> String {
    text(found, true).text(Layout::PAGE).into()
}

/// The answer, the levels or the points, what else is to be known and the verdict, ending with a
/// newline.
fn text(found: &CaseTrend, is_verbose: bool) -> Printout {
    let are_points = is_verbose || found.terms.by != PointGrouping::Run;
    let first = match found.terms.by {
        PointGrouping::Kernel => "kernel",
        PointGrouping::Scheduler => "scheduler",
        PointGrouping::Build => "build",
        PointGrouping::Run if is_verbose => "run",
        PointGrouping::Run => SINCE,
    };
    let rows = if are_points { points(found) } else { levels(found) };
    let mut lines = notes(found);
    let legend = || "< the cost is different from here on".to_string();
    lines.extend((are_points && !found.changes.is_empty()).then(legend));
    if is_verbose {
        lines.extend(
            found.left_out.iter().map(|of| format!("not used: {}: {}", of.why, of.runs.join(", "))),
        );
    } else {
        lines.extend(left_out(found));
    }
    let mut lines: Vec<MarkedText> = lines.into_iter().map(MarkedText::from).collect();
    lines.extend(found.gate.as_ref().map(|gate| gate.in_words.clone()));
    let table = columns(first).table(rows);
    Printout::paragraphs([
        Printout::from(&found.in_words),
        table.into(),
        MarkedText::join(lines, "\n").into(),
    ])
}

fn markdown(found: &CaseTrend) -> String {
    let table = columns(SINCE).markdown(levels(found));
    let notes = notes(found).into_iter().chain(left_out(found)).map(|note| format!("- {note}\n"));
    let gate = found.gate.as_ref().map_or(String::new(), |gate| format!("\n{}\n", gate.in_words));
    format!("**{}**\n\n{table}\n{}{gate}", found.in_words, notes.collect::<String>())
}

/// Heading of the day on which a level begins.
const SINCE: &str = "since";

/// A level, or a point of the series.
struct Row {
    name: String,
    runs: usize,
    /// Its cost, and the ends of the interval.
    ns: [f64; 3],
    cycles: Option<f64>,
}

impl Row {
    /// In the unit of the cost, whose name is the last.
    fn figures(&self) -> ([String; 3], &'static str) {
        let (scale, unit) = words::time_unit(self.ns[0]);
        (self.ns.map(|ns| words::four_digits(ns / scale)), unit)
    }
}

fn columns(first: &str) -> Columns<'static, Row> {
    Columns::new()
        .left(first, |row: &Row| row.name.clone())
        .right("runs", |row| row.runs)
        .right("cost", |row| {
            let ([value, ..], unit) = row.figures();
            format!("{value} {unit}")
        })
        .right("interval", |row| {
            let ([_, low, high], _) = row.figures();
            format!("{low} to {high}")
        })
        .or_dash("cycles", |row| row.cycles.map(whole))
}

fn levels(found: &CaseTrend) -> Vec<Row> {
    let level = |of: &CostLevel| {
        let since = found.points.get(of.first).map_or("", |point| &point.started);
        let name = since.get(..10).unwrap_or(since).to_string();
        Row { name, runs: of.runs, ns: [of.ns, of.low, of.high], cycles: of.cycles }
    };
    found.levels.iter().map(level).collect()
}

/// With a mark where a change begins.
fn points(found: &CaseTrend) -> Vec<Row> {
    let point = |(at, of): (usize, &TrendPoint)| {
        let is_new = found.changes.iter().any(|change| change.at == at);
        let name = format!("{}{}", of.name, if is_new { "  <" } else { "" });
        Row { name, runs: of.runs.len(), ns: [of.ns, of.low, of.high], cycles: of.cycles }
    };
    found.points.iter().enumerate().map(point).collect()
}

/// Smaller changes, changes of the clock, and how much is seen.
fn notes(found: &CaseTrend) -> Vec<String> {
    let largest = found.largest_change().map(|change| change.at);
    let others = found.changes.iter().rev().filter(|change| Some(change.at) != largest);
    let mut lines: Vec<String> =
        others.map(|CostChange { in_words, .. }| format!("also {in_words}")).collect();
    lines.extend(found.clock_changes.iter().map(|of| format!("clock: {}", of.in_words)));
    let at = found.clock_ghz.map_or(String::new(), |ghz| format!(", all at {ghz:.2} GHz"));
    let runs = counted(found.runs, "run");
    let seen = found.detectable.map_or(String::new(), |least| {
        format!("; three runs would show a change of {} %", plain((1000.0 * least).ceil() / 10.0))
    });
    lines.push(format!("{runs} of {} ({}){at}{seen}", found.case.experiment, found.case.title));
    let alone: u32 = found.points.iter().map(|point| point.alone).sum();
    lines.extend((alone > 0).then(|| {
        let runs = counted(alone as usize, "run");
        format!(
            "{runs} far from the runs before and after: not taken for a change, and given \
            little weight"
        )
    }));
    lines
}

/// Runs that do not count, and why; none where all do.
pub(super) fn left_out(found: &CaseTrend) -> Option<String> {
    let of = |LeftOutRuns { why, runs }: &LeftOutRuns| format!("{} ({why})", runs.len());
    let all: Vec<String> = found.left_out.iter().map(of).collect();
    let runs: usize = found.left_out.iter().map(|of| of.runs.len()).sum();
    let words = || format!("{} not used: {}", counted(runs, "run"), all.join(", "));
    (runs > 0).then(words)
}
