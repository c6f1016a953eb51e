//! Charts of costs by working set.

use std::collections::BTreeSet;

use charts::{Axis, Body, Figure, Map, Mark, Point, Region, Role, Scale, Series, Unit};
use model::cost::{Cost, CostPoint, Curve, Direct, Levels, Sweep};
use model::estimate::Estimate;
use model::quote::cost as estimate;
use model::record::RingRecord;
use model::regions::{self, Regions};
use model::ring::{Walk, Work};
use model::words;

use super::walk_words;
use crate::present::figures::{COST_BY_ARRAY, lines, members, nanoseconds, points};

/// Parts in which a piece of a course is drawn.
const PIECE_STEPS: i32 = 12;

pub(crate) fn figures(record: &RingRecord, cost: &Cost, index: usize) -> Vec<Figure> {
    let levels = Levels::of(&record.header.machine, &record.header.plan);
    let is_sparse = |curve: &&Curve| curve.work.walk == Walk::Sparse;
    let (pages, arrays): (Vec<&Curve>, Vec<&Curve>) = cost.curves.iter().partition(is_sparse);
    let over = |curves, label: &str, unit| Over {
        curves,
        direct: &cost.direct,
        x: Axis::new(label, unit, Scale::Log),
        index,
    };
    let mut all = Vec::new();
    if !arrays.is_empty() {
        let over = over(&arrays, "array of each member", Unit::Bytes);
        let marks = level_marks(&levels.for_arrays(), words::bytes);
        let total = over.total(COST_BY_ARRAY, "Cost of a switch by working set", marks);
        all.extend(total.map(|total| Figure { regions: over.regions(), ..total }));
        all.extend(over.indirect());
        all.extend(map(cost));
    }
    if !pages.is_empty() {
        let over = over(&pages, "pages of each member", Unit::Count);
        let marks = level_marks(&levels.for_pages(), |pages| pages.to_string());
        all.extend(over.total("cost-by-pages", "Cost of a switch by pages touched", marks));
    }
    all.extend(by_members(cost, index));
    all
}

fn level_marks(levels: &[regions::Level], size: fn(u64) -> String) -> Vec<Mark> {
    let mark = |level: &regions::Level| {
        let label = format!("{} {}", level.name, size(level.size));
        Mark { x: level.size as f64, between: None, label }
    };
    levels.iter().map(mark).collect()
}

/// `rmw by 128 B`, with the size of the ring where it is not two.
fn name(curve: &Curve) -> String {
    let huge = if curve.work.huge_pages { ", huge pages" } else { "" };
    format!("{}{huge}{}", walk_words(&curve.work), ring_words(curve.members))
}

/// The size of the ring where it is not two.
fn ring_words(members: u32) -> String {
    if members == 2 { String::new() } else { format!(", {members} members") }
}

/// Curves over one axis: bytes of an array, or pages.
struct Over<'a> {
    curves: &'a [&'a Curve],
    direct: &'a [Direct],
    x: Axis,
    index: usize,
}

fn place(curve: &Curve, point: &CostPoint) -> f64 {
    match curve.work.walk {
        Walk::Whole | Walk::Chase => point.array_bytes as f64,
        Walk::Sparse => Work { bytes: point.array_bytes, ..curve.work }.touches() as f64,
    }
}

impl Over<'_> {
    fn measured(&self, of: fn(&CostPoint) -> Option<Estimate>) -> impl Iterator<Item = Series> {
        self.curves.iter().map(move |curve| {
            let all = curve.points.iter().map(|point| (place(curve, point), of(point)));
            Series::new(name(curve), self.index, Role::Measured, points(all))
        })
    }

    /// What was measured, the pieces of each course from break to break, and the cost without work.
    fn total(&self, id: &str, title: &str, mut marks: Vec<Mark>) -> Option<Figure> {
        let law = |curve: &&Curve| {
            let points = curve.outcome.breaks().pieces.iter().flat_map(piece).collect();
            Series::new(format!("{}, course", name(curve)), self.index, Role::Law, points)
        };
        let laws = self.curves.iter().map(law).chain(self.without_work());
        let series = self.measured(|point| quotable(point.total_ns)).chain(laws);
        for curve in self.curves {
            let name = name(curve);
            marks.extend(curve.outcome.breaks().breaks.iter().map(|found| Mark {
                x: found.at as f64,
                between: Some((found.low as f64, found.high as f64)),
                label: format!("break, {name}"),
            }));
        }
        let without = self.direct.iter().filter_map(|direct| {
            let (members, cost) = (direct.members, estimate(&quotable(direct.cost_ns)?));
            Some(format!("Without work a switch of {members} members costs {cost}."))
        });
        let sentences =
            self.curves.iter().map(|curve| format!("{}: {}.", name(curve), curve.in_words));
        let in_words = without.chain(sentences).collect::<Vec<_>>().join(" ");
        let axes = (self.x.clone(), nanoseconds("cost of a switch"));
        lines(id, title, in_words, axes, series).map(|figure| Figure { marks, ..figure })
    }

    /// The cost without work, across all sizes.
    fn without_work(&self) -> Vec<Series> {
        let places =
            || self.curves.iter().flat_map(|of| of.points.iter().map(|point| place(of, point)));
        let ends = places().reduce(f64::min).zip(places().reduce(f64::max));
        let line = |direct: &Direct| {
            let (low, high) = ends?;
            let name = format!("without work (c1){}", ring_words(direct.members));
            let points =
                points([(low, quotable(direct.cost_ns)), (high, quotable(direct.cost_ns))]);
            Some(Series::new(name, self.index, Role::Measured, points))
        };
        self.direct.iter().filter_map(line).collect()
    }

    /// Those of the first curve that has any: shades of several would hide each other.
    fn regions(&self) -> Vec<Region> {
        let seen = |curve: &&Curve| {
            curve.outcome.regions().filter(|of| !of.extents.is_empty()).map(shaded)
        };
        self.curves.iter().find_map(seen).unwrap_or_default()
    }

    fn indirect(&self) -> Option<Figure> {
        let in_words =
            "Cost with work less cost without (c2 - c1), taken within rounds. Signed: below zero, \
                        the solo ring lost more by its work than the ring did."
                .to_string();
        let title = "What the working set adds to a switch";
        let figure =
            Figure::new("cost-indirect", title, self.x.clone(), nanoseconds("indirect cost"));
        Figure { in_words, ..figure }
            .of(self.measured(|point| point.indirect_ns.filter(|of| of.quote().is_ok())))
    }
}

/// A piece is straight over sizes, and so bent where equal ratios are equally far apart.
fn piece(piece: &regions::Piece) -> Vec<Point> {
    let (first, last) = (piece.first as f64, piece.last as f64);
    let rise = piece.cost_at_last_ns - piece.cost_at_first_ns;
    let at = |step: i32| {
        let x = (first * (last / first).powf(f64::from(step) / f64::from(PIECE_STEPS))).min(last);
        let part = if last > first { (x - first) / (last - first) } else { 0.0 };
        Point::bare(x, piece.cost_at_first_ns + part * rise)
    };
    (0..=PIECE_STEPS).map(at).filter(|point| point.x.is_finite()).collect()
}

/// From the start of each region to that of the next.
fn shaded(found: &Regions) -> Vec<Region> {
    let starts = found.extents.iter().map(|extent| extent.piece.first);
    let ends = starts.skip(1).map(Some).chain([None]);
    let region = |(extent, end): (&regions::Extent, Option<u64>)| Region {
        from: extent.piece.first as f64,
        to: end.unwrap_or(extent.piece.last) as f64,
        label: extent.region.in_words().to_string(),
    };
    let further = found.further_level_from.map(|from| {
        let to = found.breaks.largest.max(from) as f64;
        Region { from: from as f64, to, label: "a further level".to_string() }
    });
    found.extents.iter().zip(ends).map(region).chain(further).collect()
}

/// The costs of all walks over arrays. None of a single one, nor where nothing is resolved: a map
/// of nothing but holes.
pub(super) fn map(cost: &Cost) -> Option<Figure> {
    let is_array = |curve: &&Curve| curve.work.walk != Walk::Sparse;
    let rows: Vec<&Curve> = cost.curves.iter().filter(is_array).collect();
    rows.get(1)?;
    let points = rows.iter().flat_map(|curve| &curve.points);
    let arrays: BTreeSet<u64> = points.map(|point| point.array_bytes).collect();
    let value = |curve: &Curve, bytes: u64| {
        let point = curve.points.iter().find(|point| point.array_bytes == bytes)?;
        quotable(point.total_ns).map(|cost| cost.value)
    };
    let row = |curve: &&Curve| arrays.iter().map(|bytes| value(curve, *bytes)).collect();
    let values: Vec<Vec<Option<f64>>> = rows.iter().map(row).collect();
    let resolved = || values.iter().flatten().flatten().copied();
    let (low, high) = (resolved().reduce(f64::min)?, resolved().reduce(f64::max)?);
    let (least, most) = (words::time(low), words::time(high));
    let in_words = format!(
        "From {least} to {most}. Empty cells were not measured or are not resolved from zero."
    );
    let x = Axis::new("array of each member", Unit::Bytes, Scale::Log);
    let y = Axis::of_names("access", rows.iter().map(|curve| name(curve)).collect());
    let figure = Figure::new("cost-map", "Cost of a switch by array and access", x, y);
    let body = Body::Map(Map {
        unit: Unit::Nanoseconds,
        xs: arrays.iter().map(|bytes| *bytes as f64).collect(),
        ys: (0..rows.len()).map(|row| row as f64).collect(),
        values,
    });
    Some(Figure { in_words, body, ..figure })
}

/// Cost by the size of the ring, for each kind of work that was measured at several sizes.
fn by_members(cost: &Cost, index: usize) -> Option<Figure> {
    let named = |work: Option<Work>| work.map_or("no work".to_string(), |work| work.in_words());
    let series = |sweep: &Sweep| {
        let all = sweep.points.iter().map(|of| (of.size as f64, quotable(of.cost.total_ns)));
        Series::new(named(sweep.work), index, Role::Measured, points(all))
    };
    let sentence = |sweep: &Sweep| format!("{}: {}.", named(sweep.work), sweep.in_words);
    let sentences: Vec<String> = cost.by_members.iter().map(sentence).collect();
    let axes = (members(Scale::Log), nanoseconds("cost of a switch"));
    let title = "Cost of a switch by the size of the ring, with work";
    let series = cost.by_members.iter().map(series);
    let figure = lines("cost-by-members", title, sentences.join(" "), axes, series)?;
    Some(Figure { base: Some(2.0), ..figure })
}

/// What may be a point.
fn quotable(cost: Option<Estimate>) -> Option<Estimate> {
    cost.filter(|cost| cost.quote_cost().is_ok())
}
