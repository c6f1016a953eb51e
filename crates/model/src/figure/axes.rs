//! Axes, points and series as most builders need them.

use super::{Axis, Body, Figure, Point, Role, Scale, Series, Unit};
use crate::estimate::Estimate;

/// From so many times the least value on, the greatest one leaves nothing to be seen of it on a linear
/// axis.
const WIDE: f64 = 20.0;

/// A logarithmic axis must be able to show at least this share of the points.
const MOSTLY: f64 = 0.75;

impl Axis {
    pub(super) fn new(label: &str, unit: Unit, scale: Scale) -> Self {
        Self { label: label.to_string(), unit, scale, names: Vec::new() }
    }

    pub(super) fn of_names(label: &str, names: Vec<String>) -> Self {
        Self { label: label.to_string(), unit: Unit::Names, scale: Scale::Linear, names }
    }
}

impl Point {
    /// A point without an interval.
    pub fn bare(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None }
    }

    /// An estimate and its interval.
    pub fn of(x: f64, estimate: &Estimate) -> Self {
        Self { x, y: estimate.value, low: estimate.low, high: estimate.high }
    }
}

impl Series {
    pub(super) fn new(name: impl Into<String>, run: usize, role: Role, points: Vec<Point>) -> Self {
        Self { name: name.into(), run: Some(run), role, points }
    }
}

impl Figure {
    /// The series; none of a map.
    pub fn series(&self) -> &[Series] {
        match &self.body {
            Body::Series(series) => series,
            Body::Map(_) => &[],
        }
    }

    /// The same with a vertical axis that suits its values: logarithmic where nearly all are above zero,
    /// and those far apart.
    pub(super) fn with_fitting_scale(mut self) -> Self {
        let values = || self.series().iter().flat_map(|series| &series.points).map(|point| point.y);
        let positive = || values().filter(|value| *value > 0.0);
        let least = positive().fold(f64::INFINITY, f64::min);
        let most = positive().fold(f64::NEG_INFINITY, f64::max);
        let enough = positive().count() as f64 >= MOSTLY * values().count() as f64;
        if enough && most / least >= WIDE {
            self.y.scale = Scale::Log;
        }
        self
    }
}
