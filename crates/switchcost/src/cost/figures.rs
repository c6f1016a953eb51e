//! Charts of costs by working set.

use charts::{Axis, Body, Figure, Map, Mark, Point, Region, Role, Scale, Series, Unit};
use model::case::{Op, Walk, Work};
use model::cost::{Cost, CostPoint, Curve, Direct, levels};
use model::estimate::Estimate;
use model::record::Record;
use model::regions::{self, Regions};
use model::words;

use crate::figures::point;

/// Parts in which a piece of a course is drawn.
const PIECE_STEPS: i32 = 12;

/// Cost of a switch against the array.
pub(crate) const BY_ARRAY: &str = "cost-by-array";

pub(crate) fn figures(record: &Record, cost: &Cost, index: usize) -> Vec<Figure> {
    let levels = levels::of(&record.header.machine, &record.header.plan);
    let is_sparse = |curve: &&Curve| curve.work.walk == Walk::Sparse;
    let (pages, arrays): (Vec<&Curve>, Vec<&Curve>) = cost.curves.iter().partition(is_sparse);
    let mut all = Vec::new();
    if !arrays.is_empty() {
        let over = Over { curves: &arrays, direct: &cost.direct, index };
        let mut total = over.figure(BY_ARRAY, "Cost of a switch by working set");
        total.marks = level_marks(&levels.for_arrays(), Unit::Bytes);
        total.marks.extend(over.breaks());
        total.regions = over.regions();
        all.push(total);
        all.extend(over.indirect());
        all.extend(maps(&arrays));
    }
    if !pages.is_empty() {
        let over = Over { curves: &pages, direct: &cost.direct, index };
        let mut total = over.figure("cost-by-pages", "Cost of a switch by pages touched");
        total.marks = level_marks(&levels.for_pages(), Unit::Count);
        total.marks.extend(over.breaks());
        all.push(total);
    }
    all.extend(by_members(record, cost, index));
    all
}

fn level_marks(levels: &[regions::Level], unit: Unit) -> Vec<Mark> {
    let mark = |level: &regions::Level| {
        let size = match unit {
            Unit::Bytes => words::bytes(level.size),
            _ => level.size.to_string(),
        };
        Mark { x: level.size as f64, between: None, label: format!("{} {size}", level.name) }
    };
    levels.iter().map(mark).collect()
}

/// `rmw by 128 B`, with the size of the ring where it is not two.
fn name(work: &Work, members: u32) -> String {
    let stride = words::bytes(work.stride_bytes);
    let mut words = match work.walk {
        Walk::Whole => format!("{} by {stride}", work.op),
        Walk::Chase => format!("{} of lines at random", work.op),
        Walk::Sparse => format!("{} of one line in each {stride}", work.op),
    };
    if work.huge_pages {
        words.push_str(", huge pages");
    }
    if members != 2 {
        words.push_str(&format!(", {members} members"));
    }
    words
}

/// Curves over one axis: bytes of an array, or pages.
struct Over<'a> {
    curves: &'a [&'a Curve],
    direct: &'a [Direct],
    index: usize,
}

impl Over<'_> {
    fn x(&self) -> Axis {
        let sparse = self.curves.iter().any(|curve| curve.work.walk == Walk::Sparse);
        match sparse {
            true => Axis::new("pages of each member", Unit::Count, Scale::Log),
            false => Axis::new("array of each member", Unit::Bytes, Scale::Log),
        }
    }

    fn place(curve: &Curve, point: &CostPoint) -> f64 {
        match curve.work.walk {
            Walk::Whole | Walk::Chase => point.array_bytes as f64,
            Walk::Sparse => Work { bytes: point.array_bytes, ..curve.work }.touches() as f64,
        }
    }

    fn measured(&self, of: fn(&CostPoint) -> Option<Estimate>) -> Vec<Series> {
        let series = |curve: &&Curve| {
            let at =
                |of_array: &CostPoint| Some(point(Self::place(curve, of_array), &of(of_array)?));
            let points: Vec<Point> = curve.points.iter().filter_map(at).collect();
            Series::new(name(&curve.work, curve.members), self.index, Role::Measured, points)
        };
        self.curves.iter().map(series).filter(|series| !series.points.is_empty()).collect()
    }

    fn figure(&self, id: &str, title: &str) -> Figure {
        let mut series = self.measured(|point| point.total_ns);
        series.extend(self.laws());
        series.extend(self.direct_lines());
        let told =
            |curve: &&Curve| format!("{}: {}.", name(&curve.work, curve.members), curve.in_words);
        let mut sentences: Vec<String> = self.direct.iter().filter_map(direct_words).collect();
        sentences.extend(self.curves.iter().map(told));
        let y = Axis::new("cost of a switch", Unit::Nanoseconds, Scale::Linear);
        let (in_words, body) = (sentences.join(" "), Body::Series(series));
        Figure { in_words, body, ..Figure::new(id, title, self.x(), y) }.with_fitting_scale()
    }

    /// The pieces of each course, from break to break.
    fn laws(&self) -> Vec<Series> {
        let law = |curve: &&Curve| {
            let points = curve.outcome.breaks().pieces.iter().flat_map(piece).collect();
            let name = format!("{}, course", name(&curve.work, curve.members));
            Series::new(name, self.index, Role::Law, points)
        };
        self.curves.iter().map(law).filter(|series| !series.points.is_empty()).collect()
    }

    /// The cost without work, across all sizes.
    fn direct_lines(&self) -> Vec<Series> {
        let places = || {
            self.curves.iter().flat_map(|of| of.points.iter().map(|point| Self::place(of, point)))
        };
        let low = places().fold(f64::INFINITY, f64::min);
        let high = places().fold(f64::NEG_INFINITY, f64::max);
        let line = |direct: &Direct| {
            let cost = direct.cost_ns.as_ref().filter(|_| low <= high)?;
            let name = match direct.members {
                2 => "without work (c1)".to_string(),
                members => format!("without work (c1), {members} members"),
            };
            let points = vec![point(low, cost), point(high, cost)];
            Some(Series::new(name, self.index, Role::Measured, points))
        };
        self.direct.iter().filter_map(line).collect()
    }

    fn breaks(&self) -> Vec<Mark> {
        let of_curve = |curve: &&Curve| {
            let name = name(&curve.work, curve.members);
            let mark = move |found: &regions::Break| Mark {
                x: found.at as f64,
                between: Some((found.low as f64, found.high as f64)),
                label: format!("break, {name}"),
            };
            curve.outcome.breaks().breaks.iter().map(mark).collect::<Vec<Mark>>()
        };
        self.curves.iter().flat_map(of_curve).collect()
    }

    /// Those of the first curve that has any: shades of several would hide each other.
    fn regions(&self) -> Vec<Region> {
        let seen =
            |curve: &&Curve| curve.outcome.regions().filter(|of| !of.extents.is_empty()).cloned();
        let Some(found) = self.curves.iter().find_map(seen) else { return Vec::new() };
        shaded(&found)
    }

    fn indirect(&self) -> Option<Figure> {
        let title = "What the working set adds to a switch";
        let in_words =
            "Cost with work less cost without (c2 - c1), taken within rounds. Signed: below zero, \
                        the solo ring lost more by its work than the ring did."
                .to_string();
        let y = Axis::new("indirect cost", Unit::Nanoseconds, Scale::Linear);
        Figure { in_words, ..Figure::new("cost-indirect", title, self.x(), y) }
            .of(self.measured(|point| point.indirect_ns))
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

fn direct_words(direct: &Direct) -> Option<String> {
    let cost = direct.cost_ns.as_ref()?;
    Some(format!(
        "Without work a switch of {} members costs {}.",
        direct.members,
        words::time(cost.value)
    ))
}

/// From the start of each region to that of the next.
fn shaded(found: &Regions) -> Vec<Region> {
    let starts: Vec<u64> = found.extents.iter().map(|extent| extent.piece.first).collect();
    let region = |(which, extent): (usize, &regions::Extent)| Region {
        from: extent.piece.first as f64,
        to: starts.get(which + 1).copied().unwrap_or(extent.piece.last) as f64,
        label: extent.region.in_words().to_string(),
    };
    let mut all: Vec<Region> = found.extents.iter().enumerate().map(region).collect();
    if let Some(from) = found.further_level_from {
        let to = found.breaks.largest.max(from) as f64;
        all.push(Region { from: from as f64, to, label: "a further level".to_string() });
    }
    all
}

/// One for each kind of access that was measured by several strides.
fn maps(curves: &[&Curve]) -> Vec<Figure> {
    let mut kinds: Vec<(u32, Op)> = Vec::new();
    let whole: Vec<&Curve> =
        curves.iter().copied().filter(|curve| curve.work.walk == Walk::Whole).collect();
    for curve in &whole {
        let kind = (curve.members, curve.work.op);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let of_kind = |(members, op): (u32, Op)| {
        let mut rows: Vec<&Curve> = whole
            .iter()
            .copied()
            .filter(|curve| (curve.members, curve.work.op) == (members, op))
            .collect();
        rows.sort_by_key(|curve| curve.work.stride_bytes);
        (rows.len() > 1).then(|| map(members, op, &rows)).flatten()
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// None where nothing is resolved: a map of nothing but holes.
fn map(members: u32, op: Op, rows: &[&Curve]) -> Option<Figure> {
    let mut arrays: Vec<u64> =
        rows.iter().flat_map(|curve| curve.points.iter().map(|point| point.array_bytes)).collect();
    arrays.sort_unstable();
    arrays.dedup();
    let value = |curve: &Curve, bytes: u64| {
        let point = curve.points.iter().find(|point| point.array_bytes == bytes)?;
        point.total_ns.filter(|cost| cost.resolved).map(|cost| cost.value)
    };
    let row = |curve: &&Curve| arrays.iter().map(|bytes| value(curve, *bytes)).collect();
    let values: Vec<Vec<Option<f64>>> = rows.iter().map(row).collect();
    let resolved = values.iter().flatten().flatten();
    let (low, high) = resolved.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(*value), high.max(*value))
    });
    let range = format!("From {} to {}.", words::time(low), words::time(high));
    let ring = if members == 2 { String::new() } else { format!(", {members} members") };
    let (id, title) = (
        format!("cost-map-{op}-{members}"),
        format!("Cost of a switch by array and stride ({op}{ring})"),
    );
    let x = Axis::new("array of each member", Unit::Bytes, Scale::Log);
    let figure = Figure::new(&id, &title, x, Axis::new("stride", Unit::Bytes, Scale::Log));
    (low <= high).then(|| Figure {
        in_words: format!("{range} Empty cells were not measured or are not resolved from zero."),
        body: Body::Map(Map {
            label: "cost of a switch".to_string(),
            unit: Unit::Nanoseconds,
            xs: arrays.iter().map(|bytes| *bytes as f64).collect(),
            ys: rows.iter().map(|curve| curve.work.stride_bytes as f64).collect(),
            values,
        }),
        ..figure
    })
}

/// Cost by the size of the ring, for each kind of work that was measured at several sizes.
fn by_members(record: &Record, cost: &Cost, index: usize) -> Option<Figure> {
    let named = |work: Option<Work>| work.map_or("no work".to_string(), |work| work.in_words());
    let series = |curve: &model::cost::MembersCurve| {
        let at = |number: &usize| {
            let of = record.cases.get(*number)?;
            Some(point(f64::from(of.case.members), of.ns_per_switch_above_solo.as_ref()?))
        };
        let points = curve.cases.iter().filter_map(at).collect();
        Series::new(named(curve.work), index, Role::Measured, points)
    };
    let told =
        |curve: &model::cost::MembersCurve| format!("{}: {}.", named(curve.work), curve.in_words);
    let told: Vec<String> = cost.by_members.iter().map(told).collect();
    let x = Axis::new("members of the ring", Unit::Count, Scale::Log);
    let y = Axis::new("cost of a switch", Unit::Nanoseconds, Scale::Linear);
    let title = "Cost of a switch by the size of the ring, with work";
    let (in_words, base) = (told.join(" "), Some(2.0));
    Figure { in_words, base, ..Figure::new("cost-by-members", title, x, y) }
        .of(cost.by_members.iter().map(series))
        .map(Figure::with_fitting_scale)
}
