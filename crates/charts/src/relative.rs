//! Series as multiples of something: of their own value at one place, or of another run's.

use crate::figure::{Body, Figure, Point, Role, Series, Unit};

/// What a series is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Its own value at the figure's base: how it grows from there.
    Own,
    /// The series of the same name and role of that run, place by place.
    Run(usize),
}

impl Figure {
    /// The series divided by their base; those that have none, or a base that is not above zero where they
    /// have a point, lack it. None where that makes no sense: maps, counts, ratios, by [`Base::Own`] figures
    /// without a base, by [`Base::Run`] those with nothing beside that run.
    ///
    /// An interval reaches from the lower end over the base's upper end to the upper over the base's lower:
    /// it covers the ratio wherever both cover theirs, and so is wider than that of a comparison, which
    /// pairs rounds. What is divided by itself is 1.
    pub fn relative_to(&self, base: Base) -> Option<Vec<Series>> {
        let Body::Series(all) = &self.body else { return None };
        let own = self.base.filter(|_| base == Base::Own);
        if self.y.unit != Unit::Nanoseconds || (base == Base::Own && own.is_none()) {
            return None;
        }
        let divided: Vec<Series> =
            all.iter().map(|series| relative(series, all, base, own)).collect();
        // A run beside itself says nothing.
        let is_other = |series: &&Series| match base {
            Base::Own => true,
            Base::Run(run) => series.run != Some(run),
        };
        divided.iter().filter(is_other).any(|series| !series.points.is_empty()).then_some(divided)
    }
}

fn relative(series: &Series, all: &[Series], base: Base, own: Option<f64>) -> Series {
    let by = match base {
        Base::Own => Some(series),
        Base::Run(run) => of_run(series, all, run),
    };
    let divided = |point: &Point| {
        let at = own.unwrap_or(point.x);
        let base = value_at(by?, at)?;
        let is_base = std::ptr::eq(by?, series) && at == point.x;
        (base.y > 0.0).then(|| if is_base { Point::bare(point.x, 1.0) } else { over(point, &base) })
    };
    Series { points: series.points.iter().filter_map(divided).collect(), ..series.clone() }
}

/// What of the run is to be set beside a series: its own kind, and for what others have published, or
/// for a law, the run's first measured series.
fn of_run<'a>(series: &'a Series, all: &'a [Series], run: usize) -> Option<&'a Series> {
    let own = all.iter().filter(|other| other.run == Some(run));
    let same = own.clone().find(|other| other.name == series.name && other.role == series.role);
    let first = || {
        let mut measured =
            own.clone().filter(|other| matches!(other.role, Role::Measured | Role::Bars));
        measured.next()
    };
    match series.role {
        Role::Published => same.or_else(first),
        _ => same,
    }
}

/// The point at that place; of a line without one there, between its neighbours.
fn value_at(series: &Series, x: f64) -> Option<Point> {
    if let Some(point) = series.points.iter().find(|point| point.x == x) {
        return Some(*point);
    }
    let is_line = matches!(series.role, Role::Law | Role::Projected);
    let pair = series.points.windows(2).find(|pair| pair[0].x < x && x < pair[1].x)?;
    let part = (x - pair[0].x) / (pair[1].x - pair[0].x);
    is_line.then(|| Point::bare(x, pair[0].y + part * (pair[1].y - pair[0].y)))
}

fn over(point: &Point, base: &Point) -> Point {
    let (base_low, base_high) = (base.low.unwrap_or(base.y), base.high.unwrap_or(base.y));
    // An end of the base at or below zero leaves the ratio open there.
    let ends = || {
        let (low, high) = (point.low?, point.high?);
        let quotients = [low / base_low, low / base_high, high / base_low, high / base_high];
        let least = quotients.into_iter().fold(f64::INFINITY, f64::min);
        let most = quotients.into_iter().fold(f64::NEG_INFINITY, f64::max);
        (base_low > 0.0 && least.is_finite() && most.is_finite()).then_some((least, most))
    };
    let (low, high) = ends().unzip();
    Point { x: point.x, y: point.y / base.y, low, high }
}
