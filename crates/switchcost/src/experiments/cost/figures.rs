//! Charts and tiles of costs by working set.

use std::collections::BTreeSet;

use analysis::cost::{CostCurve, CostFindings, CostPoint, DirectCost, MachineLevels};
use analysis::estimate::Estimate;
use analysis::jump::{CostJump, CostRatio};
use analysis::quote::cost as estimate;
use analysis::record::RingRecord;
use analysis::regions::{self, CacheRegions};
use analysis::summary_line::with_work;
use charts::{Axis, AxisMark, AxisRegion, Figure, FigureBody, HeatMap, Role, Scale, Series, Unit};
use rundata::ring::{Walk, Work};
use rundata::words;

use crate::report::figures::{COST_BY_ARRAY, cost_points, lines, members_axis, nanoseconds};
use crate::report::tiles::Tile;

/// Heat maps of fewer rows say less than lines.
const MIN_MAP_ROWS: usize = 3;

/// Returns the figures that stand for the run: the array that says most and what it adds, no work
/// at all, the largest jump, the other arrays of the curve that says most, the rings of several
/// sizes.
pub(crate) fn tiles(record: &RingRecord, cost: &CostFindings) -> Vec<Tile> {
    let found = with_work(record);
    let mut tiles = Vec::new();
    if let Some((_, bytes, total)) = found {
        tiles.extend(Tile::cost(array_tile_name(bytes), Some(total)));
    }
    for direct in &cost.direct {
        let name = format!("switch, no working set{}", size_suffix(direct.members));
        tiles.extend(Tile::cost(name, direct.cost_ns));
    }
    if let Some((curve, bytes, _)) = found {
        let point = curve.points.iter().find(|point| point.array_bytes == bytes);
        let added = point.and_then(|point| point.indirect_ns);
        tiles.extend(Tile::cost(format!("added by {}", words::bytes(bytes)), added));
        if let Some(jump) = curve.jump {
            let CostRatio { value, low, high } = jump.factor;
            tiles.push(Tile::times("largest jump", [value, low, high]));
        }
        for point in curve.points.iter().rev() {
            tiles.extend(Tile::cost(array_tile_name(point.array_bytes), point.total_ns));
        }
    }
    for sweep in &cost.by_members {
        let work = array_or_none(sweep.work);
        for point in sweep.points.iter().rev() {
            let name = format!("switch, {work} each, {} members", point.size);
            tiles.extend(Tile::cost(name, point.cost.total_ns));
        }
    }
    Tile::each_once(tiles)
}

fn array_tile_name(bytes: u64) -> String {
    format!("switch, {} each", words::bytes(bytes))
}

/// Returns the size of the array: `64 KiB`, `no work`.
pub(super) fn array_or_none(work: Option<Work>) -> String {
    match work {
        Some(work) => words::bytes(work.bytes),
        None => "no work".to_string(),
    }
}

/// Draws a run of costs by working set. `index` is its place among the runs that are drawn
/// together.
pub(crate) fn figures(record: &RingRecord, cost: &CostFindings, index: usize) -> Vec<Figure> {
    let levels = MachineLevels::from_machine(&record.header.machine, &record.header.plan);
    let (mut pages, mut arrays): (Vec<&CostCurve>, Vec<&CostCurve>) = (Vec::new(), Vec::new());
    for curve in &cost.curves {
        let curves = if curve.work.walk == Walk::Sparse { &mut pages } else { &mut arrays };
        curves.push(curve);
    }
    let direct = &cost.direct;
    let mut figures = Vec::new();
    if !arrays.is_empty() {
        let x = Axis::new("array of each member", Unit::Bytes, Scale::Log);
        let curves = CurveFigure { curves: &arrays, direct, x, index };
        let marks = level_marks(&levels.for_arrays(), words::bytes);
        let title = "Cost of a switch by working set";
        if let Some(total) = curves.total(COST_BY_ARRAY, title, marks) {
            figures.push(Figure { regions: curves.regions(), ..total });
        }
        figures.extend(curves.indirect());
        figures.extend(map(cost));
    }
    if !pages.is_empty() {
        let x = Axis::new("pages of each member", Unit::Count, Scale::Log);
        let curves = CurveFigure { curves: &pages, direct, x, index };
        let marks = level_marks(&levels.for_pages(), |pages| pages.to_string());
        figures.extend(curves.total("cost-by-pages", "Cost of a switch by pages touched", marks));
    }
    figures.extend(by_members(cost, index));
    figures
}

fn level_marks(levels: &[regions::MachineLevel], size: fn(u64) -> String) -> Vec<AxisMark> {
    let mut marks = Vec::new();
    for level in levels {
        let label = format!("{} {}", level.name, size(level.size));
        marks.push(AxisMark { x: level.size as f64, between: None, label });
    }
    marks
}

/// Returns `rmw by 128 B`, with the size of the ring where it is not two.
fn curve_name(curve: &CostCurve) -> String {
    let huge = if curve.work.huge_pages { ", huge pages" } else { "" };
    format!("{}{huge}{}", curve.work.walk_in_words(), size_suffix(curve.members))
}

/// Returns the size of the ring where it is not two: `, 4 members`.
fn size_suffix(members: u32) -> String {
    if members == 2 { String::new() } else { format!(", {members} members") }
}

/// Curves over one axis: bytes of an array, or pages.
struct CurveFigure<'a> {
    curves: &'a [&'a CostCurve],
    direct: &'a [DirectCost],
    x: Axis,
    index: usize,
}

/// Returns the place of a point on the axis of its curve.
fn place(curve: &CostCurve, point: &CostPoint) -> f64 {
    match curve.work.walk {
        Walk::Whole | Walk::Chase => point.array_bytes as f64,
        Walk::Sparse => Work { bytes: point.array_bytes, ..curve.work }.touches() as f64,
    }
}

impl CurveFigure<'_> {
    /// Draws an estimate of each point, a line a curve.
    fn lines(&self, estimate: fn(&CostPoint) -> Option<Estimate>) -> Vec<Series> {
        let mut series = Vec::new();
        for curve in self.curves {
            let places = curve.points.iter().map(|point| (place(curve, point), estimate(point)));
            let points = cost_points(places);
            series.push(Series::new(curve_name(curve), self.index, Role::Measured, points));
        }
        series
    }

    /// Draws what was measured, and the cost without work. The pieces of each course are left to
    /// its breaks: drawn, they would leave the values wherever a size between breaks stands out.
    fn total(&self, id: &str, title: &str, mut marks: Vec<AxisMark>) -> Option<Figure> {
        let mut series = self.lines(|point| point.total_ns);
        series.extend(self.without_work());
        marks.extend(self.breaks());
        let mut sentences = Vec::new();
        if let Some(DirectCost { cost_ns: Some(direct), .. }) = self.direct.first() {
            if direct.answer_cost().is_ok() {
                sentences.push(format!("Without a working set {}.", estimate(direct)));
            }
        }
        if let Some(words) = self.jump() {
            sentences.push(format!("{words}."));
        }
        let axes = (self.x.clone(), nanoseconds("cost of a switch"));
        let figure = lines(id, title, sentences.join(" "), axes, series)?;
        Some(Figure { marks, ..figure })
    }

    /// Marks each place where a course breaks once: breaks whose intervals overlap are one.
    fn breaks(&self) -> Vec<AxisMark> {
        let mut breaks: Vec<(f64, (f64, f64), String)> = Vec::new();
        for curve in self.curves {
            let name = curve.work.walk_in_words() + &size_suffix(curve.members);
            for found in &curve.outcome.breaks().breaks {
                let between = (found.low as f64, found.high as f64);
                breaks.push((found.at as f64, between, name.clone()));
            }
        }
        breaks.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let mut marks: Vec<(AxisMark, usize)> = Vec::new();
        for (x, (low, high), name) in breaks {
            match marks.last_mut() {
                Some((AxisMark { between: Some((_, end)), label, .. }, count)) if low <= *end => {
                    *end = end.max(high);
                    *count += 1;
                    *label = format!("break, {count} curves");
                }
                _ => {
                    let label = format!("break, {name}");
                    marks.push((AxisMark { x, between: Some((low, high)), label }, 1));
                }
            }
        }
        marks.into_iter().map(|(mark, _)| mark).collect()
    }

    /// Returns the largest jump of all curves; where none has one, what is known of the first, if
    /// anything.
    fn jump(&self) -> Option<String> {
        // Of equals the first.
        let curve = self
            .curves
            .iter()
            .rev()
            .max_by(|one, other| jump_extent(one.jump).total_cmp(&jump_extent(other.jump)))?;
        let name = curve_name(curve);
        match curve.jump {
            Some(jump) => Some(format!("{name} {}", jump.in_words(&curve.axis()))),
            None if curve.outcome.breaks().pieces.is_empty() => None,
            None => Some(format!("{name}: {}", curve.in_words)),
        }
    }

    /// Draws the cost without work, across all sizes.
    fn without_work(&self) -> Vec<Series> {
        let mut places = Vec::new();
        for curve in self.curves {
            places.extend(curve.points.iter().map(|point| place(curve, point)));
        }
        places.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (places.first(), places.last()) else {
            return Vec::new();
        };
        let mut series = Vec::new();
        for direct in self.direct {
            let name = format!("no working set (c1){}", size_suffix(direct.members));
            let ends = cost_points([(*least, direct.cost_ns), (*most, direct.cost_ns)]);
            series.push(Series::new(name, self.index, Role::Measured, ends));
        }
        series
    }

    /// Shades the regions of the first curve that has any: shades of several would hide each other.
    fn regions(&self) -> Vec<AxisRegion> {
        for curve in self.curves {
            match curve.outcome.regions() {
                Some(found) if !found.extents.is_empty() => return shaded(found),
                _ => {}
            }
        }
        Vec::new()
    }

    fn indirect(&self) -> Option<Figure> {
        let in_words =
            "Cost with a working set (c2) less the cost without (c1), taken within rounds. Below \
             zero, the solo ring lost more by its work than the ring did."
                .to_string();
        let title = "What the working set adds to a switch";
        let y = nanoseconds("indirect cost");
        let figure = Figure::new("cost-indirect", title, self.x.clone(), y);
        Figure { in_words, ..figure }.with_series(self.lines(|point| point.indirect_ns))
    }
}

/// Returns how far a jump goes, up or down; 0 without one.
pub(super) fn jump_extent(jump: Option<CostJump>) -> f64 {
    match jump {
        Some(jump) => jump.factor.value.ln().abs(),
        None => 0.0,
    }
}

/// Shades each region from its start to that of the next.
fn shaded(found: &CacheRegions) -> Vec<AxisRegion> {
    let mut shades = Vec::new();
    for (number, extent) in found.extents.iter().enumerate() {
        let end = match found.extents.get(number + 1) {
            Some(next) => next.piece.first,
            None => extent.piece.last,
        };
        shades.push(AxisRegion {
            from: extent.piece.first as f64,
            to: end as f64,
            label: extent.region.in_words().to_string(),
        });
    }
    if let Some(from) = found.further_level_from {
        let to = found.breaks.largest.max(from) as f64;
        shades.push(AxisRegion { from: from as f64, to, label: "a further level".to_string() });
    }
    shades
}

/// Draws the costs of all walks over arrays as a heat map; `None` of a few, and where nothing is
/// resolved: a map of nothing but holes.
pub(super) fn map(cost: &CostFindings) -> Option<Figure> {
    let mut rows: Vec<&CostCurve> = cost.curves.iter().collect();
    rows.retain(|curve| curve.work.walk != Walk::Sparse);
    rows.get(MIN_MAP_ROWS - 1)?;
    let mut arrays: BTreeSet<u64> = BTreeSet::new();
    for row in &rows {
        arrays.extend(row.points.iter().map(|point| point.array_bytes));
    }
    let (mut values, mut resolved) = (Vec::new(), Vec::new());
    for row in &rows {
        let mut cells = Vec::new();
        for bytes in &arrays {
            let ns = quotable_ns(row, *bytes);
            resolved.extend(ns);
            cells.push(ns);
        }
        values.push(cells);
    }
    resolved.sort_by(f64::total_cmp);
    let (least, most) = (words::time(*resolved.first()?), words::time(*resolved.last()?));
    let in_words = format!(
        "From {least} to {most}. Empty cells were not measured or are not resolved from zero."
    );
    let x = Axis::new("array of each member", Unit::Bytes, Scale::Log);
    let y = Axis::with_names("access", rows.iter().map(|curve| curve_name(curve)).collect());
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

/// Returns the cost with an array if it may be quoted: a cell of a map has no mark of a rough
/// figure.
fn quotable_ns(curve: &CostCurve, array_bytes: u64) -> Option<f64> {
    let point = curve.points.iter().find(|point| point.array_bytes == array_bytes)?;
    let total = point.total_ns?;
    if total.quote_cost().is_ok() { Some(total.value) } else { None }
}

/// Draws the cost by the size of the ring, for each kind of work that was measured at several
/// sizes.
fn by_members(cost: &CostFindings, index: usize) -> Option<Figure> {
    // The largest jump of all, and of equals the first.
    let largest = cost
        .by_members
        .iter()
        .rev()
        .max_by(|one, other| jump_extent(one.jump).total_cmp(&jump_extent(other.jump)))?;
    let work = work_name(largest.work);
    let in_words = match largest.jump {
        Some(jump) => format!("{work} {}.", jump.in_words(&largest.breaks.axis)),
        None if largest.breaks.pieces.is_empty() => String::new(),
        None => format!("{work}: {}.", largest.in_words),
    };
    let mut series = Vec::new();
    for sweep in &cost.by_members {
        let by_size = sweep.points.iter().map(|point| (point.size as f64, point.cost.total_ns));
        let points = cost_points(by_size);
        series.push(Series::new(work_name(sweep.work), index, Role::Measured, points));
    }
    let axes = (members_axis(Scale::Log), nanoseconds("cost of a switch"));
    let title = "Cost of a switch by the size of the ring, with work";
    let figure = lines("cost-by-members", title, in_words, axes, series)?;
    Some(Figure { base: Some(2.0), ..figure })
}

/// Returns the work in words: `rmw of 64 KiB by 128 B`, `no work`.
pub(super) fn work_name(work: Option<Work>) -> String {
    match work {
        Some(work) => work.in_words(),
        None => "no work".to_string(),
    }
}
