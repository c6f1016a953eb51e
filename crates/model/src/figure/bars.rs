//! Values by name.

use super::{Axis, Body, Figure, Point, Role, Scale, Series, Unit};
use crate::estimate::Estimate;
use crate::words;

/// Estimates by name, cheapest first.
pub(super) struct Bars {
    id: &'static str,
    title: &'static str,
    label: &'static str,
    known: Vec<(String, Estimate)>,
    /// Said before the figures.
    pub(super) about: String,
}

impl Bars {
    pub(super) fn new(
        id: &'static str,
        title: &'static str,
        label: &'static str,
        mut known: Vec<(String, Estimate)>,
    ) -> Self {
        known.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        Self { id, title, label, known, about: String::new() }
    }

    /// None without anything to draw.
    pub(super) fn figure(self, index: usize) -> Option<Figure> {
        let told = |(name, of): &(String, Estimate)| format!("{name} {}", words::time(of.value));
        let told: Vec<String> = self.known.iter().map(told).collect();
        let point = |(place, (_, of)): (usize, &(String, Estimate))| Point::of(place as f64, of);
        let points: Vec<Point> = self.known.iter().enumerate().map(point).collect();
        let names = self.known.into_iter().map(|(name, _)| name).collect();
        let figure = Figure {
            id: self.id.to_string(),
            title: self.title.to_string(),
            in_words: format!("{} {}.", self.about, told.join(", ")).trim_start().to_string(),
            x: Axis::of_names("", names),
            y: Axis::new(self.label, Unit::Nanoseconds, Scale::Linear),
            body: Body::Series(vec![Series::new("measured", index, Role::Bars, points)]),
            marks: Vec::new(),
            regions: Vec::new(),
        };
        let drawn = figure.series().iter().any(|series| !series.points.is_empty());
        drawn.then(|| figure.with_fitting_scale())
    }
}
