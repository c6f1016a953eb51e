//! Charts of what was measured: what all experiments share, and what others have published.

pub(crate) mod published;
pub(crate) mod rounds;

#[cfg(test)]
pub(crate) mod tests;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use model::estimate::Estimate;
use model::words;

/// An estimate and its interval.
pub(crate) fn point(x: f64, estimate: &Estimate) -> Point {
    Point { x, y: estimate.value, low: estimate.low, high: estimate.high }
}

/// Estimates by name, cheapest first.
pub(crate) struct Bars {
    id: &'static str,
    title: &'static str,
    label: &'static str,
    known: Vec<(String, Estimate)>,
    /// Said before the figures.
    pub(crate) about: String,
}

impl Bars {
    pub(crate) fn new(
        id: &'static str,
        title: &'static str,
        label: &'static str,
        mut known: Vec<(String, Estimate)>,
    ) -> Self {
        known.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        Self { id, title, label, known, about: String::new() }
    }

    /// None without anything to draw.
    pub(crate) fn figure(self, index: usize) -> Option<Figure> {
        let told = |(name, of): &(String, Estimate)| format!("{name} {}", words::time(of.value));
        let told: Vec<String> = self.known.iter().map(told).collect();
        let at = |(place, (_, of)): (usize, &(String, Estimate))| point(place as f64, of);
        let points: Vec<Point> = self.known.iter().enumerate().map(at).collect();
        let names = self.known.into_iter().map(|(name, _)| name).collect();
        let y = Axis::new(self.label, Unit::Nanoseconds, Scale::Linear);
        let in_words = format!("{} {}.", self.about, told.join(", ")).trim_start().to_string();
        Figure { in_words, ..Figure::new(self.id, self.title, Axis::of_names("", names), y) }
            .of([Series::new("measured", index, Role::Bars, points)])
            .map(Figure::with_fitting_scale)
    }
}

/// A figure of lines, without marks; none where nothing is on them.
pub(crate) fn lines(
    id: &str,
    title: &str,
    in_words: String,
    (x, y): (Axis, Axis),
    series: impl IntoIterator<Item = Series>,
) -> Option<Figure> {
    Figure { in_words, ..Figure::new(id, title, x, y) }.of(series).map(Figure::with_fitting_scale)
}
