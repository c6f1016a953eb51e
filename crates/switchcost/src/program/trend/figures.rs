//! The charts of a trend: the cost over time, and the core's clock.

use analysis::trend::{CaseTrend, PointGrouping};
use charts::{Axis, AxisMark, Figure, Point, Role, Scale, Series, Unit};

use super::day;
use crate::report::figures::{lines, nanoseconds};

/// Id of the chart of the cost.
pub(super) const COST_CHART: &str = "trend";
/// Id of the chart of the core's clock.
pub(super) const CLOCK_CHART: &str = "clock";

/// Draws all charts of a trend.
pub(super) fn figures(trend: &CaseTrend) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(cost_figure(trend));
    figures.extend(clock_figure(trend));
    figures
}

/// Draws the clock that the core had in each run; `None` where it is known of fewer than two.
fn clock_figure(trend: &CaseTrend) -> Option<Figure> {
    if trend.terms.by != PointGrouping::Run {
        return None;
    }
    let mut points = Vec::new();
    for (index, point) in trend.points.iter().enumerate() {
        points.extend(point.clock_ghz.map(|ghz| Point::bare(run_place(index), ghz)));
    }
    if points.len() < 2 {
        return None;
    }
    let (mut marks, mut sentences) = (Vec::new(), Vec::new());
    for change in &trend.clock_changes {
        marks.push(change_mark(change.at, &change.since));
        sentences.push(format!("{}.", change.in_words));
    }
    if sentences.is_empty() {
        sentences.push("No change of the core's clock shows.".to_string());
    }
    let x = Axis::new("run", Unit::Count, Scale::Linear);
    let y = Axis::new("clock of the core in GHz", Unit::Ratio, Scale::Linear);
    let figure = Figure::new(CLOCK_CHART, "Clock", x, y);
    let figure = Figure { in_words: sentences.join(" "), marks, ..figure };
    figure.with_series([Series::new("clock", 0, Role::Measured, points)])
}

/// Returns where a run stands on the axis of runs, which counts from 1.
fn run_place(index: usize) -> f64 {
    index as f64 + 1.0
}

/// Returns the mark of a change that begins at that run, with its day.
fn change_mark(index: usize, since: &str) -> AxisMark {
    AxisMark { x: run_place(index), between: None, label: day(since).to_string() }
}

/// Draws runs as points with their intervals, and levels as lines; by kernel or build a bar each.
/// `None` without points.
pub(super) fn cost_figure(trend: &CaseTrend) -> Option<Figure> {
    let (x, series, marks) = match trend.terms.by {
        PointGrouping::Run => {
            let x = Axis::new("run", Unit::Count, Scale::Linear);
            let mut series = vec![cost_series(trend, Role::Measured, run_place)];
            for level in &trend.levels {
                let ends = [level.first, level.last];
                let ends = ends.map(|index| Point::bare(run_place(index), level.ns));
                series.push(Series::new("level", 0, Role::Law, ends.to_vec()));
            }
            let mut marks = Vec::new();
            for change in &trend.changes {
                marks.push(change_mark(change.at, &change.since));
            }
            (x, series, marks)
        }
        PointGrouping::Kernel | PointGrouping::Scheduler | PointGrouping::Build => {
            let names = trend.points.iter().map(|point| point.name.clone()).collect();
            let x = Axis::with_names(trend.terms.by.name(), names);
            let bars = cost_series(trend, Role::Bars, |index| index as f64);
            (x, vec![bars], Vec::new())
        }
    };
    let clock = trend.clock_ghz.map_or(String::new(), |ghz| format!(", at {ghz:.2} GHz"));
    let title = format!("Cost over time{clock}");
    let axes = (x, nanoseconds("cost"));
    let figure = lines(COST_CHART, &title, trend.in_words.to_string(), axes, series)?;
    Some(Figure { marks, ..figure })
}

/// Returns the series of all points; `place` is where a point stands, by its index.
fn cost_series(trend: &CaseTrend, role: Role, place: fn(usize) -> f64) -> Series {
    let mut points = Vec::new();
    for (index, point) in trend.points.iter().enumerate() {
        points.push(Point::with_ends(place(index), point.ns, [point.low, point.high]));
    }
    Series::new(&*trend.case.title, 0, role, points)
}
