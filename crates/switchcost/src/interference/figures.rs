//! Charts of execution times in quiet and under disturbance.

use std::collections::BTreeMap;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use model::interference::{CONFIDENCE, Environment, Runs};
use model::trial::interference;
use model::words;

use crate::figures::lines;

/// Execution times by condition, with the paper's intervals.
pub(crate) fn executions(found: &interference::Found, index: usize) -> Option<Figure> {
    let mut names: Vec<String> = Vec::new();
    let mut points: BTreeMap<&'static str, Vec<Point>> = BTreeMap::new();
    for runs in &found.runs {
        let name = format!("{}, {}", words::bytes(runs.array_bytes), runs.setting);
        let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        let environment = match runs.environment {
            Environment::Quiet => "quiet",
            Environment::Disturbed => "disturbed",
        };
        points.entry(environment).or_default().extend(execution(runs, place));
    }
    let series = |(name, points): (&str, Vec<Point>)| Series::new(name, index, Role::Bars, points);
    let axes = (
        Axis::of_names("array and setting", names),
        Axis::new("time of a run", Unit::Nanoseconds, Scale::Linear),
    );
    let in_words = format!("{}. Intervals of {:.0} %.", found.in_words, CONFIDENCE * 100.0);
    let series = points.into_iter().map(series);
    lines("interference", "Runs in quiet and under disturbance", in_words, axes, series)
}

fn execution(runs: &Runs, place: usize) -> Option<Point> {
    let times = runs.times?;
    let interval = times.interval(CONFIDENCE);
    let (low, high) = (interval.map(|of| of.low), interval.map(|of| of.high));
    Some(Point { x: place as f64, y: times.mean, low, high })
}
