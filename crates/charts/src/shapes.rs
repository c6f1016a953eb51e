//! What is drawn between the axes, in places of the figure: no pixels, no colours.

use crate::figure::{Figure, Point, Role, Scale, Unit};
use crate::legend::Entry;

/// Of the room of a name, the part that its bars take.
const BARS: f64 = 0.72;

/// Which part of a drawing a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A region, or the interval of a mark.
    Shade,
    /// The intervals of a curve.
    Band,
    /// Counts by class.
    Steps,
    Outline,
    Bar,
    Line,
    Whisker,
    /// The end of a whisker.
    Cap,
    /// The symbols of values.
    Points,
    /// Values that are read but not seen.
    Hidden,
    Mark,
}

/// A shape in places of the figure.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) part: Part,
    /// Index of its series.
    pub(crate) series: Option<usize>,
    pub(crate) form: Form,
}

/// Where a shape is.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Lines or areas. An infinite place lies at the end of its axis.
    Paths(Vec<Vec<(f64, f64)>>),
    /// The same small thing at each point.
    Stamps(Vec<Point>),
}

impl Shape {
    /// All places.
    pub(crate) fn places(&self) -> Vec<(f64, f64)> {
        match &self.form {
            Form::Paths(paths) => paths.concat(),
            Form::Stamps(points) => points.iter().map(|point| (point.x, point.y)).collect(),
        }
    }
}

/// All shapes of a figure, from back to front.
pub(crate) fn shapes(figure: &Figure, entries: &[Entry]) -> Vec<Shape> {
    let paths = |part, paths| Shape { part, series: None, form: Form::Paths(paths) };
    let mut all = Vec::new();
    // Every second one, so that neighbours are told apart.
    for region in figure.regions.iter().skip(1).step_by(2).filter(|of| of.from < of.to) {
        all.push(paths(Part::Shade, vec![block(region.from, region.to)]));
    }
    for mark in &figure.marks {
        if let Some((from, to)) = mark.between.filter(|(from, to)| from < to) {
            all.push(paths(Part::Shade, vec![block(from, to)]));
        }
    }
    let lanes = Lanes::of(figure, entries);
    let of_entry = |(index, entry)| of_series(figure, &lanes, index, entry);
    let drawn: Vec<Shape> = entries.iter().enumerate().flat_map(of_entry).collect();
    // Bands first, so that no line is under one.
    let (behind, before): (Vec<Shape>, Vec<Shape>) =
        drawn.into_iter().partition(|shape| shape.part == Part::Band);
    all.extend(behind);
    all.extend(before);
    for mark in figure.marks.iter().filter(|mark| mark.x.is_finite()) {
        let line = vec![(mark.x, f64::NEG_INFINITY), (mark.x, f64::INFINITY)];
        all.push(paths(Part::Mark, vec![line]));
    }
    all
}

fn block(from: f64, to: f64) -> Vec<(f64, f64)> {
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    vec![(from, low), (from, high), (to, high), (to, low)]
}

fn of_series(figure: &Figure, lanes: &Lanes, index: usize, entry: &Entry) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let mut add = |part, form| shapes.push(Shape { part, series: Some(index), form });
    let points = lanes.points(index, entry);
    let line = || Form::Paths(vec![points.iter().map(|point| (point.x, point.y)).collect()]);
    let by_name = figure.x.unit == Unit::Names;
    match entry.series.role {
        Role::Steps => {
            let outline = steps(&points, figure.x.scale);
            add(Part::Steps, Form::Paths(vec![outline.clone()]));
            add(Part::Outline, Form::Paths(vec![outline]));
            add(Part::Hidden, Form::Stamps(points));
            return shapes;
        }
        Role::Law | Role::Projected => add(Part::Line, line()),
        Role::Measured | Role::Published if !by_name => add(Part::Line, line()),
        Role::Bars => {
            let half = lanes.width * 0.46;
            let bar = |p: &Point| {
                let (left, right) = (p.x - half, p.x + half);
                vec![(left, 0.0), (left, p.y), (right, p.y), (right, 0.0)]
            };
            add(Part::Bar, Form::Paths(points.iter().map(bar).collect()));
        }
        _ => {}
    }
    let is_band = !by_name && entry.series.role == Role::Measured;
    for stretch in points.split(|point| point.interval().is_none()) {
        let ends = |point: &Point| (point.x, point.interval().unwrap_or((point.y, point.y)));
        let ends: Vec<(f64, (f64, f64))> = stretch.iter().map(ends).collect();
        if is_band && ends.len() > 1 {
            let above = ends.iter().map(|(x, (_, high))| (*x, *high));
            let below = ends.iter().rev().map(|(x, (low, _))| (*x, *low));
            add(Part::Band, Form::Paths(vec![above.chain(below).collect()]));
        } else if !ends.is_empty() {
            let whisker = |(x, (low, high)): &(f64, (f64, f64))| vec![(*x, *low), (*x, *high)];
            let whiskers: Vec<Vec<(f64, f64)>> = ends.iter().map(whisker).collect();
            let caps = whiskers.concat().into_iter().map(|(x, y)| Point::bare(x, y));
            add(Part::Cap, Form::Stamps(caps.collect()));
            add(Part::Whisker, Form::Paths(whiskers));
        }
    }
    if !matches!(entry.series.role, Role::Law | Role::Projected) {
        add(Part::Points, Form::Stamps(points));
    }
    shapes
}

/// The outline of counts by class; the last class is as wide as the one before it.
fn steps(points: &[Point], scale: Scale) -> Vec<(f64, f64)> {
    let end = match points {
        [.., before, last] if scale == Scale::Log => last.x * (last.x / before.x),
        [.., before, last] => last.x + (last.x - before.x),
        [only] => only.x,
        [] => return Vec::new(),
    };
    let ends = points.iter().skip(1).map(|next| next.x).chain([end]);
    let mut outline = vec![(points[0].x, 0.0)];
    outline.extend(points.iter().zip(ends).flat_map(|(p, end)| [(p.x, p.y), (end, p.y)]));
    outline.push((end, 0.0));
    outline
}

/// Values of the same name stand side by side.
pub(crate) struct Lanes {
    /// How many values the name with the most has.
    pub(crate) count: usize,
    /// The room of one, where names are one apart.
    width: f64,
    /// The places of each series' points.
    places: Vec<Vec<f64>>,
}

impl Lanes {
    pub(crate) fn of(figure: &Figure, entries: &[Entry]) -> Self {
        if figure.x.unit != Unit::Names {
            return Self { count: 1, width: BARS, places: Vec::new() };
        }
        let mut taken = vec![0; figure.x.names.len()];
        let mut lane = |point: &Point| {
            // NaN and what is below zero is the first.
            let Some(taken) = taken.get_mut(point.x as usize) else { return 0 };
            *taken += 1;
            *taken - 1
        };
        let of_entry = |e: &Entry| e.series.points.iter().map(&mut lane).collect::<Vec<usize>>();
        let lanes: Vec<Vec<usize>> = entries.iter().map(of_entry).collect();
        let count = lanes.iter().flatten().max().map_or(1, |last| last + 1);
        let width = BARS / count as f64;
        let place = |(point, lane): (&Point, &usize)| {
            let own = taken.get(point.x as usize).copied().unwrap_or(1) as f64;
            point.x + width * (*lane as f64 - (own - 1.0) / 2.0)
        };
        let places = entries.iter().zip(&lanes);
        let places =
            places.map(|(e, lanes)| e.series.points.iter().zip(lanes).map(place).collect());
        Self { count, width, places: places.collect() }
    }

    /// The points of a series, each in its lane.
    pub(crate) fn points(&self, index: usize, entry: &Entry) -> Vec<Point> {
        let mut points = entry.series.points.clone();
        for (point, place) in points.iter_mut().zip(self.places.get(index).into_iter().flatten()) {
            point.x = *place;
        }
        points
    }
}
