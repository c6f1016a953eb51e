//! `switchcost trend` on the terminal and as Markdown.

use std::io;

use anyhow::{Context, Result};
use charts::terminal as plotted;
use comfy_table::CellAlignment;
use model::trend::{By, Change, LeftOut, Level, Trend};
use model::words::{self, plain, whole};

use super::TrendArgs;
use super::figures::figure;
use crate::base::values::Destination;
use crate::present::output::{for_people, look_of, print, put_json, say_text};
use crate::present::terminal::{self, counted};

/// Writes what was asked for: text, to standard error where JSON has standard output, and JSON.
pub(super) fn write(found: &Trend, args: &TrendArgs) -> Result<()> {
    let text = match args.markdown {
        true => markdown(found),
        false => text(found, args),
    };
    match &args.json {
        _ if args.quiet => {}
        Some(Destination::Stdout) => say_text(&text),
        _ => {
            let text = for_people(&text, &io::stdout()) + &drawn(found, args);
            print(text.as_bytes()).context("cannot print the series")?;
        }
    }
    put_json(found, args.json.as_ref())
}

fn drawn(found: &Trend, args: &TrendArgs) -> String {
    let figure = figure(found).filter(|_| args.plot && !args.markdown);
    let look = look_of(&io::stdout());
    figure.map_or(String::new(), |figure| format!("\n{}", plotted(&figure, &[], &look)))
}

/// The answer, the levels or the points, what else is to be known and the verdict, ending with a
/// newline.
fn text(found: &Trend, args: &TrendArgs) -> String {
    let rows: Vec<[String; 5]> = match args.verbose || found.terms.by != By::Run {
        true => (0..found.points.len()).map(|at| point(found, at)).collect(),
        false => found.levels.iter().map(|of| level(found, of)).collect(),
    };
    let mut table = terminal::table(columns(found, args), rows);
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    let mut lines = notes(found);
    let is_marked = args.verbose || found.terms.by != By::Run;
    let legend = || "< since then the cost is another".to_string();
    lines.extend((is_marked && !found.changes.is_empty()).then(legend));
    if args.verbose {
        lines.extend(
            found.left_out.iter().map(|of| format!("left out: {}: {}", of.why, of.runs.join(", "))),
        );
    } else {
        lines.extend(left_out(found));
    }
    lines.extend(found.gate.as_ref().map(|gate| gate.in_words.clone()));
    let lines: Vec<String> = lines.iter().map(|line| terminal::wrapped(line)).collect();
    terminal::page(&[terminal::wrapped(&found.in_words), table.to_string(), lines.join("\n")])
}

fn markdown(found: &Trend) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let head = ["since", "runs", "cost", "interval", "cycles"].map(String::from);
    let mut lines = vec![format!("**{}**\n", found.in_words), row(&head)];
    lines.push("|:--|--:|--:|--:|--:|".to_string());
    lines.extend(found.levels.iter().map(|of| row(&level(found, of))));
    lines.push(String::new());
    lines.extend(notes(found).into_iter().chain(left_out(found)).map(|note| format!("- {note}")));
    lines.extend(found.gate.as_ref().map(|gate| format!("\n{}", gate.in_words)));
    lines.join("\n") + "\n"
}

fn columns(found: &Trend, args: &TrendArgs) -> [&'static str; 5] {
    let first = match found.terms.by {
        By::Kernel => "kernel",
        By::Build => "build",
        By::Run if args.verbose => "run",
        By::Run => "since",
    };
    [first, "runs", "cost", "interval", "cycles"]
}

fn level(found: &Trend, of: &Level) -> [String; 5] {
    let since = found.points.get(of.first).map_or("", |point| &point.started);
    let since = since.get(..10).unwrap_or(since).to_string();
    cells(since, of.runs, [of.ns, of.low, of.high], of.cycles)
}

/// The row of a point, with a mark where a change begins with it.
fn point(found: &Trend, at: usize) -> [String; 5] {
    let of = &found.points[at];
    let is_new = found.changes.iter().any(|change| change.at == at);
    let name = format!("{}{}", of.name, if is_new { "  <" } else { "" });
    cells(name, of.runs.len(), [of.ns, of.low, of.high], of.cycles)
}

fn cells(name: String, runs: usize, [ns, low, high]: [f64; 3], cycles: Option<f64>) -> [String; 5] {
    let (scale, unit) = words::time_unit(ns);
    let [value, low, high] = [ns, low, high].map(|ns| words::four_digits(ns / scale));
    [
        name,
        runs.to_string(),
        format!("{value} {unit}"),
        format!("{low} to {high}"),
        cycles.map_or("-".to_string(), whole),
    ]
}

/// Earlier changes, changes of the clock, and how much is seen.
fn notes(found: &Trend) -> Vec<String> {
    let earlier = found.changes.iter().rev().skip(1);
    let mut lines: Vec<String> =
        earlier.map(|Change { in_words, .. }| format!("before that: {in_words}")).collect();
    lines.extend(found.clock_changes.iter().map(|of| format!("clock: {}", of.in_words)));
    let at = found.clock_ghz.map_or(String::new(), |ghz| format!(", all at {ghz:.2} GHz"));
    let runs = counted(found.runs, "run");
    let seen = found.detectable.map_or(String::new(), |least| {
        format!("; a change of {} % would show in three", plain((1000.0 * least).ceil() / 10.0))
    });
    lines.push(format!("{runs} of {} ({}){at}{seen}", found.case.experiment, found.case.title));
    let alone: u32 = found.points.iter().map(|point| point.alone).sum();
    lines.extend((alone > 0).then(|| {
        let runs = counted(alone as usize, "run");
        format!("{runs} far from those before and behind: no change, and hardly counted")
    }));
    lines
}

fn left_out(found: &Trend) -> Option<String> {
    let of = |LeftOut { why, runs }: &LeftOut| format!("{} ({why})", runs.len());
    let all: Vec<String> = found.left_out.iter().map(of).collect();
    let runs: usize = found.left_out.iter().map(|of| of.runs.len()).sum();
    let words = || format!("left out: {}: {}", counted(runs, "run"), all.join(", "));
    (runs > 0).then(words)
}

/// Why there is no series: ` (left out: ...)`; nothing where nothing was left out.
pub(super) fn reasons(found: &Trend) -> String {
    left_out(found).map_or(String::new(), |words| format!(" ({words})"))
}
