//! Values by name.

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use model::estimate::Estimate;
use model::words;

use super::point;

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
