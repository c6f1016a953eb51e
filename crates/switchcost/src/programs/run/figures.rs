//! Charts of commands: how long each takes, against the first, and run by run.

use analysis::estimate::Estimate;
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};

use super::findings::Summary;
use super::record::Record;
use crate::report::figures::{cost_points, count_points, lines, nanoseconds};
use crate::report::terminal::counted;

/// How long each command takes; of one command where its time goes.
pub(super) const TIMES: &str = "times";
/// Times of the other commands over that of the first.
pub(super) const RATIOS: &str = "ratios";
/// The real time of each run.
pub(super) const ROUNDS: &str = "rounds";

/// All that there is to draw.
pub(super) fn figures(record: &Record) -> Vec<Figure> {
    let times = match &record.commands[..] {
        [one] => parts(one),
        all => times(record, all),
    };
    [times, ratios(record), rounds(record)].into_iter().flatten().collect()
}

/// What the bars are, by the number of runs.
fn medians(runs: u32) -> String {
    match runs {
        1 => "Of one run, without intervals.".to_string(),
        runs if runs < rundata::plan::MIN_ROUNDS => {
            format!("Medians of {runs} runs; hollow: too few for an interval.")
        }
        runs => format!("Medians of {}, with 95 % intervals.", counted(runs as usize, "run")),
    }
}

/// Real and CPU time of each command, the fastest first.
fn times(record: &Record, all: &[Summary]) -> Option<Figure> {
    let real = |summary: &Summary| summary.median("real_ns").unwrap_or(f64::INFINITY);
    let mut sorted: Vec<&Summary> = all.iter().collect();
    sorted.sort_by(|one, other| real(one).total_cmp(&real(other)));
    let names = sorted.iter().map(|summary| record.plan.label(summary.number)).collect();
    let bars = |label: &str, figure: &str| {
        let estimates = sorted.iter().map(|summary| Some(summary.figure(figure)?.estimate));
        let places = estimates.enumerate().map(|(place, estimate)| (place as f64, estimate));
        Series::new(label, 0, Role::Bars, cost_points(places))
    };
    let series = [bars("real time", "real_ns"), bars("CPU time", "cpu_ns")];
    let runs = sorted.iter().map(|summary| summary.runs).min()?;
    let axes = (Axis::with_names("command", names), nanoseconds("time of a run"));
    let figure = lines(TIMES, "Time of a run", medians(runs), axes, series)?;
    Some(Figure { y: Axis { scale: Scale::Linear, ..figure.y }, ..figure })
}

/// Where the time of one command goes: its real time, its CPU time and the parts of it, and the time
/// in which it waited for a CPU.
fn parts(summary: &Summary) -> Option<Figure> {
    let mut names: Vec<String> = Vec::new();
    let mut bars: Vec<Point> = Vec::new();
    let mut add = |name: &str, bar: Option<Point>| {
        if let Some(bar) = bar {
            bars.push(Point { x: names.len() as f64, ..bar });
            names.push(name.to_string());
        }
    };
    let median = |figure: &str| cost_points([(0.0, Some(summary.figure(figure)?.estimate))]).pop();
    add("real time", median("real_ns"));
    add("CPU time", median("cpu_ns"));
    if let (Some(cpu), Some(user)) = (summary.median("cpu_ns"), summary.split.user) {
        let part = |value: f64, low: f64, high: f64| {
            let bar = Point::with_ends(0.0, value * cpu, [low * cpu, high * cpu]);
            (value > 0.0).then_some(bar)
        };
        add("user", part(user.value, user.low, user.high));
        add("system", part(1.0 - user.value, 1.0 - user.high, 1.0 - user.low));
    }
    add("waiting for a CPU, all threads", median("run_delay_ns"));
    let axes = (Axis::with_names("part of the time", names), nanoseconds("time of a run"));
    let series = [Series::new("time", 0, Role::Bars, bars)];
    let figure = lines(TIMES, "Time of a run", medians(summary.runs), axes, series)?;
    Some(Figure { y: Axis { scale: Scale::Linear, ..figure.y }, ..figure })
}

/// Real and CPU time of each further command over those of the first, with a line at no change.
fn ratios(record: &Record) -> Option<Figure> {
    let names: Vec<String> =
        (1..record.plan.commands.len()).map(|number| record.plan.label(number)).collect();
    let of_figure = |label: &str, figure: &str| {
        let ratios = record.ratios.iter().filter(|ratio| ratio.of == figure);
        let place = |ratio: &super::findings::Ratio| -> (f64, Option<Estimate>) {
            (ratio.command as f64 - 1.0, Some(ratio.estimate))
        };
        Series::new(label, 0, Role::Measured, count_points(ratios.map(place)))
    };
    let measured = [of_figure("real time", "real_ns"), of_figure("CPU time", "cpu_ns")];
    if measured.iter().all(|series| series.points.is_empty()) {
        return None;
    }
    let ends = [-0.4, names.len() as f64 - 0.6].map(|x| Point::bare(x, 1.0)).to_vec();
    let same = Series { name: "no change".into(), run: None, role: Role::Law, points: ends };
    let first = record.plan.label(0);
    let in_words = format!("Within each round; 1 is as long as {first}.");
    let y = Axis::new(&format!("time / time of {first}"), Unit::Ratio, Scale::Linear);
    let axes = (Axis::with_names("command", names), y);
    lines(
        RATIOS,
        "Times over that of the first",
        in_words,
        axes,
        measured.into_iter().chain([same]),
    )
}

/// The real time of each run, by round; none of one run.
fn rounds(record: &Record) -> Option<Figure> {
    let mut series = Vec::new();
    for summary in &record.commands {
        let runs = record.runs.iter();
        let runs = runs.filter(|run| run.command == summary.number && !run.interrupted);
        let points: Vec<Point> = runs
            .map(|run| Point::bare(f64::from(run.round) + 1.0, run.used.real_ns as f64))
            .collect();
        if points.len() > 1 {
            series.push(Series::new(record.plan.label(summary.number), 0, Role::Raw, points));
        }
    }
    let axes = (Axis::new("round", Unit::Count, Scale::Linear), nanoseconds("real time"));
    lines(ROUNDS, "Real time by round", outliers(record), axes, series)
}

/// Names the run that is furthest from the others.
fn outliers(record: &Record) -> String {
    let count: usize = record.commands.iter().map(|summary| summary.outliers.len()).sum();
    match count {
        0 => "No run is unlike the others.".to_string(),
        1 => "One run is unlike the others.".to_string(),
        count => format!("{count} runs are unlike the others."),
    }
}
