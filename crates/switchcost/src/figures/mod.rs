//! Charts of what was measured: what all experiments share, and what others have published.

pub(crate) mod published;
pub(crate) mod rounds;

#[cfg(test)]
pub(crate) mod tests;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use model::estimate::Estimate;
use model::words;

/// Cost of a switch against the size of the ring: the figure's id.
pub(crate) const RING_COST: &str = "ring-cost";
/// CPU time of a lap against the size of the ring.
pub(crate) const RING_CPU: &str = "ring-cpu";
/// Cost of a switch against the array.
pub(crate) const COST_BY_ARRAY: &str = "cost-by-array";
/// What clocks and calls cost.
pub(crate) const CLOCK_CALLS: &str = "clock-calls";
/// What malloc and free cost.
pub(crate) const CLOCK_MALLOC: &str = "clock-malloc";

/// An estimate and its interval.
pub(crate) fn point(x: f64, estimate: &Estimate) -> Point {
    Point { x, y: estimate.value, low: estimate.low, high: estimate.high }
}

/// The interval of a value: ` (1.1 us to 1.3 us)`, or that it is not resolved.
pub(crate) fn interval_words(of: &Point) -> String {
    match (of.low, of.high) {
        (Some(low), Some(high)) if low > 0.0 || high < 0.0 => {
            format!(" ({} to {})", words::time(low), words::time(high))
        }
        _ => " (not resolved)".to_string(),
    }
}

/// Estimates by their places; a place without one is left out.
pub(crate) fn points(all: impl IntoIterator<Item = (f64, Option<Estimate>)>) -> Vec<Point> {
    all.into_iter().filter_map(|(x, estimate)| Some(point(x, &estimate?))).collect()
}

/// An axis of sizes of rings.
pub(crate) fn members(scale: Scale) -> Axis {
    Axis::new("members of the ring", Unit::Count, scale)
}

/// An axis of times, linear as long as nothing needs more.
pub(crate) fn nanoseconds(label: &str) -> Axis {
    Axis::new(label, Unit::Nanoseconds, Scale::Linear)
}

/// A figure of series, without marks; none where nothing is on them.
pub(crate) fn lines(
    id: &str,
    title: &str,
    in_words: String,
    (x, y): (Axis, Axis),
    series: impl IntoIterator<Item = Series>,
) -> Option<Figure> {
    Figure { in_words, ..Figure::new(id, title, x, y) }.of(series).map(Figure::with_fitting_scale)
}

/// Estimates by name as bars, the smallest first; none without any. `about` is said before the figures.
pub(crate) fn bars(
    (id, title, label): (&str, &str, &str),
    about: &str,
    known: impl IntoIterator<Item = (String, Estimate)>,
    index: usize,
) -> Option<Figure> {
    let mut known: Vec<(String, Estimate)> = known.into_iter().collect();
    known.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    let told = |(name, of): &(String, Estimate)| format!("{name} {}", words::time(of.value));
    let told: Vec<String> = known.iter().map(told).collect();
    let in_words = format!("{about} {}.", told.join(", ")).trim_start().to_string();
    let (names, estimates): (Vec<String>, Vec<Estimate>) = known.into_iter().unzip();
    let places = estimates.iter().enumerate().map(|(place, of)| point(place as f64, of));
    let series = Series::new("measured", index, Role::Bars, places.collect());
    lines(id, title, in_words, (Axis::of_names("", names), nanoseconds(label)), [series])
}
