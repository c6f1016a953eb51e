//! Charts of costs by working set.

use std::collections::BTreeSet;

use analysis::cost::{
    CostCurve, CostFindings, CostPoint, CostSweep, DirectCost, MachineLevels, SweepPoint,
};
use analysis::estimate::Estimate;
use analysis::jump::CostRatio;
use analysis::quote::cost as estimate;
use analysis::record::RingRecord;
use analysis::regions::{self, CacheRegions};
use analysis::summary_line::with_work;
use charts::{Axis, AxisMark, AxisRegion, Figure, FigureBody, HeatMap, Role, Scale, Series, Unit};
use rundata::ring::{Walk, Work};
use rundata::words;

use crate::report::figures::{COST_BY_ARRAY, lines, members, nanoseconds, points};
use crate::report::tiles::Tile;

/// Heat maps of fewer rows say less than lines.
const FEWEST_ROWS: usize = 3;

/// What stands for the run: the array that says most and what it adds, no work at all, the largest
/// jump, the other arrays of the curve that says most, the rings of several sizes.
pub(crate) fn tiles(record: &RingRecord, cost: &CostFindings) -> Vec<Tile> {
    let direct = cost.direct.iter().filter_map(|of| {
        Tile::cost(format!("switch, no working set{}", ring_words(of.members)), of.cost_ns)
    });
    let mut all = Vec::new();
    let found = with_work(record);
    let place = |bytes: u64| format!("switch, {} each", words::bytes(bytes));
    all.extend(found.and_then(|(_, bytes, with)| Tile::cost(place(bytes), Some(with))));
    all.extend(direct);
    if let Some((curve, bytes, _)) = found {
        let point = curve.points.iter().find(|point| point.array_bytes == bytes);
        let added = point.and_then(|point| point.indirect_ns);
        all.extend(Tile::cost(format!("added by {}", words::bytes(bytes)), added));
        all.extend(curve.jump.map(|jump| {
            let CostRatio { value, low, high } = jump.factor;
            Tile::times("largest jump", [value, low, high])
        }));
        let others = curve.points.iter().rev();
        all.extend(others.filter_map(|of| Tile::cost(place(of.array_bytes), of.total_ns)));
    }
    let sweeps = cost.by_members.iter().flat_map(|sweep| {
        let what = sweep.work.map_or("no work".to_string(), |work| words::bytes(work.bytes));
        let tile = move |of: &SweepPoint| {
            Tile::cost(format!("switch, {what} each, {} members", of.size), of.cost.total_ns)
        };
        sweep.points.iter().rev().filter_map(tile)
    });
    all.extend(sweeps);
    Tile::each_once(all)
}

pub(crate) fn figures(record: &RingRecord, cost: &CostFindings, index: usize) -> Vec<Figure> {
    let levels = MachineLevels::from_machine(&record.header.machine, &record.header.plan);
    let is_sparse = |curve: &&CostCurve| curve.work.walk == Walk::Sparse;
    let (pages, arrays): (Vec<&CostCurve>, Vec<&CostCurve>) =
        cost.curves.iter().partition(is_sparse);
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

fn level_marks(levels: &[regions::MachineLevel], size: fn(u64) -> String) -> Vec<AxisMark> {
    let mark = |level: &regions::MachineLevel| {
        let label = format!("{} {}", level.name, size(level.size));
        AxisMark { x: level.size as f64, between: None, label }
    };
    levels.iter().map(mark).collect()
}

/// `rmw by 128 B`, with the size of the ring where it is not two.
fn name(curve: &CostCurve) -> String {
    let huge = if curve.work.huge_pages { ", huge pages" } else { "" };
    format!("{}{huge}{}", curve.work.walk_in_words(), ring_words(curve.members))
}

/// The size of the ring where it is not two.
fn ring_words(members: u32) -> String {
    if members == 2 { String::new() } else { format!(", {members} members") }
}

/// Curves over one axis: bytes of an array, or pages.
struct Over<'a> {
    curves: &'a [&'a CostCurve],
    direct: &'a [DirectCost],
    x: Axis,
    index: usize,
}

fn place(curve: &CostCurve, point: &CostPoint) -> f64 {
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

    /// What was measured, and the cost without work. The pieces of each course are left to its
    /// breaks: drawn, they would leave the values wherever a size between breaks stands out.
    fn total(&self, id: &str, title: &str, mut marks: Vec<AxisMark>) -> Option<Figure> {
        let series = self.measured(|point| point.total_ns).chain(self.without_work());
        marks.extend(self.breaks());
        let without = self.direct.first().and_then(|direct| {
            let direct = direct.cost_ns.filter(|cost| cost.answer_cost().is_ok())?;
            Some(format!("Without a working set {}", estimate(&direct)))
        });
        let known: Vec<String> = without.into_iter().chain(self.jump()).collect();
        let in_words = known.iter().map(|words| format!("{words}. ")).collect::<String>();
        let in_words = in_words.trim().to_string();
        let axes = (self.x.clone(), nanoseconds("cost of a switch"));
        lines(id, title, in_words, axes, series).map(|figure| Figure { marks, ..figure })
    }

    /// Each place where a course breaks once: those whose intervals overlap are one.
    fn breaks(&self) -> Vec<AxisMark> {
        let found = |curve: &&CostCurve| {
            let name = curve.work.walk_in_words() + &ring_words(curve.members);
            let found = curve.outcome.breaks().breaks.iter();
            found.map(|of| (of.at as f64, (of.low as f64, of.high as f64), name.clone())).collect()
        };
        let mut all: Vec<(f64, (f64, f64), String)> =
            self.curves.iter().flat_map::<Vec<_>, _>(found).collect();
        all.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let mut places: Vec<(AxisMark, usize)> = Vec::new();
        for (x, (low, high), name) in all {
            match places.last_mut() {
                Some((AxisMark { between: Some((_, end)), label, .. }, many)) if low <= *end => {
                    *end = end.max(high);
                    *many += 1;
                    *label = format!("break, {many} curves");
                }
                _ => {
                    let label = format!("break, {name}");
                    places.push((AxisMark { x, between: Some((low, high)), label }, 1));
                }
            }
        }
        places.into_iter().map(|(mark, _)| mark).collect()
    }

    /// The largest jump of all curves; where none has one what is known of the first, if anything.
    fn jump(&self) -> Option<String> {
        let jump =
            |curve: &&&CostCurve| curve.jump.map_or(0.0, |jump| jump.factor.value.ln().abs());
        // The first of equals.
        let largest = self.curves.iter().rev().max_by(|a, b| jump(a).total_cmp(&jump(b)));
        let curve = largest?;
        let is_known = !curve.outcome.breaks().pieces.is_empty();
        match curve.jump {
            Some(jump) => Some(format!("{} {}", name(curve), jump.in_words(&curve.axis()))),
            None => is_known.then(|| format!("{}: {}", name(curve), curve.in_words)),
        }
    }

    /// The cost without work, across all sizes.
    fn without_work(&self) -> Vec<Series> {
        let places =
            || self.curves.iter().flat_map(|of| of.points.iter().map(|point| place(of, point)));
        let ends = places().reduce(f64::min).zip(places().reduce(f64::max));
        let line = |direct: &DirectCost| {
            let (low, high) = ends?;
            let name = format!("no working set (c1){}", ring_words(direct.members));
            let points = points([(low, direct.cost_ns), (high, direct.cost_ns)]);
            Some(Series::new(name, self.index, Role::Measured, points))
        };
        self.direct.iter().filter_map(line).collect()
    }

    /// Those of the first curve that has any: shades of several would hide each other.
    fn regions(&self) -> Vec<AxisRegion> {
        let seen = |curve: &&CostCurve| {
            curve.outcome.regions().filter(|of| !of.extents.is_empty()).map(shaded)
        };
        self.curves.iter().find_map(seen).unwrap_or_default()
    }

    fn indirect(&self) -> Option<Figure> {
        let in_words =
            "Cost with a working set (c2) less the cost without (c1), taken within rounds. Below \
             zero, the solo ring lost more by its work than the ring did."
                .to_string();
        let title = "What the working set adds to a switch";
        let figure =
            Figure::new("cost-indirect", title, self.x.clone(), nanoseconds("indirect cost"));
        Figure { in_words, ..figure }.with_series(self.measured(|point| point.indirect_ns))
    }
}

/// From the start of each region to that of the next.
fn shaded(found: &CacheRegions) -> Vec<AxisRegion> {
    let starts = found.extents.iter().map(|extent| extent.piece.first);
    let ends = starts.skip(1).map(Some).chain([None]);
    let region = |(extent, end): (&regions::RegionExtent, Option<u64>)| AxisRegion {
        from: extent.piece.first as f64,
        to: end.unwrap_or(extent.piece.last) as f64,
        label: extent.region.in_words().to_string(),
    };
    let further = found.further_level_from.map(|from| {
        let to = found.breaks.largest.max(from) as f64;
        AxisRegion { from: from as f64, to, label: "a further level".to_string() }
    });
    found.extents.iter().zip(ends).map(region).chain(further).collect()
}

/// The costs of all walks over arrays. None of a few, nor where nothing is resolved: a map of
/// nothing but holes.
pub(super) fn map(cost: &CostFindings) -> Option<Figure> {
    let is_array = |curve: &&CostCurve| curve.work.walk != Walk::Sparse;
    let rows: Vec<&CostCurve> = cost.curves.iter().filter(is_array).collect();
    rows.get(FEWEST_ROWS - 1)?;
    let points = rows.iter().flat_map(|curve| &curve.points);
    let arrays: BTreeSet<u64> = points.map(|point| point.array_bytes).collect();
    let value = |curve: &CostCurve, bytes: u64| {
        let point = curve.points.iter().find(|point| point.array_bytes == bytes)?;
        quotable(point.total_ns).map(|cost| cost.value)
    };
    let row = |curve: &&CostCurve| arrays.iter().map(|bytes| value(curve, *bytes)).collect();
    let values: Vec<Vec<Option<f64>>> = rows.iter().map(row).collect();
    let resolved = || values.iter().flatten().flatten().copied();
    let (low, high) = (resolved().reduce(f64::min)?, resolved().reduce(f64::max)?);
    let (least, most) = (words::time(low), words::time(high));
    let in_words = format!(
        "From {least} to {most}. Empty cells were not measured or are not resolved from zero."
    );
    let x = Axis::new("array of each member", Unit::Bytes, Scale::Log);
    let y = Axis::with_names("access", rows.iter().map(|curve| name(curve)).collect());
    let figure = Figure::new("cost-map", "Cost of a switch by array and access", x, y);
    let body = FigureBody::Map(HeatMap {
        unit: Unit::Nanoseconds,
        xs: arrays.iter().map(|bytes| *bytes as f64).collect(),
        ys: (0..rows.len()).map(|row| row as f64).collect(),
        values,
        contrast: None,
    });
    Some(Figure { in_words, body, ..figure })
}

/// Cost by the size of the ring, for each kind of work that was measured at several sizes.
fn by_members(cost: &CostFindings, index: usize) -> Option<Figure> {
    let named = |work: Option<Work>| work.map_or("no work".to_string(), |work| work.in_words());
    let series = |sweep: &CostSweep| {
        let all = sweep.points.iter().map(|of| (of.size as f64, of.cost.total_ns));
        Series::new(named(sweep.work), index, Role::Measured, points(all))
    };
    // The largest jump of all, and of equals the first.
    let jump = |sweep: &&CostSweep| sweep.jump.map_or(0.0, |jump| jump.factor.value.ln().abs());
    let largest = cost.by_members.iter().rev().max_by(|a, b| jump(a).total_cmp(&jump(b)))?;
    let in_words = match largest.jump {
        Some(jump) => {
            format!("{} {}.", named(largest.work), jump.in_words(&largest.breaks.axis))
        }
        None if largest.breaks.pieces.is_empty() => String::new(),
        None => format!("{}: {}.", named(largest.work), largest.in_words),
    };
    let axes = (members(Scale::Log), nanoseconds("cost of a switch"));
    let title = "Cost of a switch by the size of the ring, with work";
    let series = cost.by_members.iter().map(series);
    let figure = lines("cost-by-members", title, in_words, axes, series)?;
    Some(Figure { base: Some(2.0), ..figure })
}

/// What may be a cell of a map, which has no mark of a rough figure.
fn quotable(cost: Option<Estimate>) -> Option<Estimate> {
    cost.filter(|cost| cost.quote_cost().is_ok())
}
