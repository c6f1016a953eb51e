//! Shapes between the axes, in units of the figure: no pixels, no colours.

use crate::figure::{AxisRegion, Figure, Point, PointCertainty, Role, Scale, Series, Unit};
use crate::text::clean;

/// Part of a name's width on the axis that its bars take.
const BAR_SHARE: f64 = 0.72;

/// Half of a bar's width, as a part of the width that it may take.
const HALF_BAR: f64 = 0.46;

/// A series with the name and the colour that set it apart from others.
#[derive(Clone, Debug)]
pub(crate) struct SeriesEntry<'a> {
    pub(crate) series: &'a Series,
    /// Points of the series; on an axis of names, those of one name are side by side.
    pub(crate) points: Vec<Point>,
    /// Name, with the run's where there are several.
    pub(crate) name: String,
    /// Number of the colour and symbol; a line has that of the series that it is fitted to.
    pub(crate) colour: usize,
    /// Whether it is a line of another series: such lines share an item of the legend.
    pub(crate) follows: bool,
}

impl SeriesEntry<'_> {
    /// Returns whether it is a line for comparison: it belongs to no run.
    pub(crate) fn is_reference(&self) -> bool {
        self.series.role.is_line() && self.series.run.is_none()
    }
}

/// Builds one entry for each series, in their order. `runs` are the names of the runs that the
/// figure shows.
pub(crate) fn entries<'a>(series: &'a [Series], runs: &[String]) -> Vec<SeriesEntry<'a>> {
    let leaders: Vec<Option<usize>> = series.iter().map(|one| leader(series, one)).collect();
    // Lines that would follow a leader come last, so that they do not use up colours.
    let mut owners: Vec<usize> = (0..series.len()).collect();
    owners.retain(|index| leaders[*index].is_none());
    owners.sort_by_key(|index| series[*index].role.leader_role().is_some());
    let mut entries = Vec::new();
    for (index, one) in series.iter().enumerate() {
        let owner = leaders[index].unwrap_or(index);
        entries.push(SeriesEntry {
            series: one,
            points: one.points.clone(),
            name: full_name(one, runs),
            colour: owners.iter().position(|known| *known == owner).unwrap_or_default(),
            follows: leaders[index].is_some(),
        });
    }
    entries
}

/// Finds the series that a law or percentiles belong to: the one whose name theirs begins with (the
/// longest such name), or the only candidate of their run.
pub(crate) fn leader(series: &[Series], follower: &Series) -> Option<usize> {
    let role = follower.role.leader_role()?;
    let mut candidates: Vec<usize> = (0..series.len()).collect();
    candidates.retain(|index| series[*index].role == role && series[*index].run == follower.run);
    let mut named = candidates.clone();
    named.retain(|index| follower.name.starts_with(&series[*index].name));
    match named.into_iter().max_by_key(|index| series[*index].name.len()) {
        Some(index) => Some(index),
        None if candidates.len() == 1 => Some(candidates[0]),
        None => None,
    }
}

/// Returns the name of a series, with the run's before it if the figure shows several runs.
fn full_name(series: &Series, runs: &[String]) -> String {
    let name = clean(&series.name);
    match series.run.and_then(|run| runs.get(run)) {
        Some(run) if runs.len() > 1 => format!("{}: {name}", clean(run)),
        _ => name,
    }
}

/// Puts points of one name side by side and leaves lines as they are; `names` is the number of names
/// on the axis. Returns the largest number of points of a name.
pub(crate) fn side_by_side(entries: &mut [SeriesEntry], names: usize) -> usize {
    // How many points each name has, and for each point how many of its name came before.
    let mut counts: Vec<usize> = vec![0; names];
    let mut lanes: Vec<usize> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.series.role.is_line()) {
        for point in &entry.points {
            // NaN and negative positions are taken for the first name.
            lanes.push(match counts.get_mut(point.x as usize) {
                Some(count) => {
                    *count += 1;
                    *count - 1
                }
                None => 0,
            });
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut lanes = lanes.into_iter();
    for entry in entries.iter_mut().filter(|entry| !entry.series.role.is_line()) {
        for (point, lane) in entry.points.iter_mut().zip(&mut lanes) {
            let count = counts.get(point.x as usize).copied().unwrap_or(1);
            point.x += BAR_SHARE / most as f64 * (lane as f64 - (count as f64 - 1.0) / 2.0);
        }
    }
    most
}

/// Part of a drawing. The script and the styles of a page know these by their names in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShapePart {
    /// A region, or the interval of a mark.
    Shade,
    /// The intervals of a curve.
    Band,
    Bar,
    Line,
    Whisker,
    /// The symbols of values.
    Points,
    /// The symbols of values that are only roughly known.
    Hollow,
    Mark,
}

impl ShapePart {
    /// Returns the coordinates of the values of a path, as [`Scale::coordinate`] has them; none for
    /// a value that is left out. An area or an interval of which one end can be drawn reaches with
    /// the other to the end of the axis.
    pub(crate) fn coordinates(
        self,
        scale: Scale,
        values: impl Iterator<Item = f64>,
    ) -> Vec<Option<f64>> {
        let mut coordinates: Vec<Option<f64>> = Vec::new();
        for value in values {
            coordinates.push(match self {
                Self::Mark | Self::Shade if value.is_infinite() => Some(value),
                // Lengths on a logarithmic axis would say nothing.
                Self::Bar if scale == Scale::Log => None,
                _ if scale.draws(value) => Some(scale.coordinate(value)),
                _ => None,
            });
        }
        let is_whole = matches!(self, Self::Band | Self::Bar | Self::Whisker);
        if is_whole && coordinates.iter().any(Option::is_some) {
            for coordinate in &mut coordinates {
                *coordinate = coordinate.or(Some(f64::NEG_INFINITY));
            }
        }
        coordinates
    }
}

/// A shape in units of the figure.
#[derive(Clone, Debug)]
pub(crate) struct PlotShape {
    pub(crate) part: ShapePart,
    /// Index of its series.
    pub(crate) series: Option<usize>,
    /// Lines or areas; a symbol is a path of one point. An infinite coordinate is the end of its
    /// axis.
    pub(crate) paths: Vec<Vec<Point>>,
}

impl PlotShape {
    /// Builds a shape of one path that belongs to no series.
    fn without_series(part: ShapePart, path: Vec<Point>) -> Self {
        Self { part, series: None, paths: vec![path] }
    }
}

/// Builds all shapes of a figure, from back to front. `lanes` is the largest number of points of a
/// name.
pub(crate) fn shapes(figure: &Figure, entries: &[SeriesEntry], lanes: usize) -> Vec<PlotShape> {
    let mut shapes = shades(figure);
    let mut drawn = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        drawn.extend(series_shapes(figure, lanes, index, entry));
    }
    // Bands first, so that no line is under one.
    drawn.sort_by_key(|shape| shape.part != ShapePart::Band);
    shapes.extend(drawn);
    for mark in figure.marks.iter().filter(|mark| mark.x.is_finite()) {
        let line = points_at([(mark.x, f64::NEG_INFINITY), (mark.x, f64::INFINITY)]);
        shapes.push(PlotShape::without_series(ShapePart::Mark, line));
    }
    shapes
}

/// Builds the areas behind the plot: every second region, so that neighbours are told apart, and the
/// intervals of marks.
fn shades(figure: &Figure) -> Vec<PlotShape> {
    let mut stretches = Vec::new();
    for AxisRegion { from, to, .. } in figure.regions.iter().skip(1).step_by(2) {
        stretches.push((*from, *to));
    }
    stretches.extend(figure.marks.iter().filter_map(|mark| mark.between));
    stretches.retain(|(from, to)| from < to);
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut shades = Vec::new();
    for (from, to) in stretches {
        let corners = points_at([(from, low), (from, high), (to, high), (to, low)]);
        shades.push(PlotShape::without_series(ShapePart::Shade, corners));
    }
    shades
}

fn points_at(places: impl IntoIterator<Item = (f64, f64)>) -> Vec<Point> {
    places.into_iter().map(|(x, y)| Point::bare(x, y)).collect()
}

/// Builds the shapes of one series: bars or a line, then intervals, then symbols.
fn series_shapes(
    figure: &Figure,
    lanes: usize,
    index: usize,
    entry: &SeriesEntry,
) -> Vec<PlotShape> {
    let (role, by_name) = (entry.series.role, figure.x.unit == Unit::Names);
    let mut parts = Vec::new();
    match role {
        Role::Bars => parts.push((ShapePart::Bar, bars(&entry.points, lanes))),
        Role::Histogram => parts.push((ShapePart::Bar, histogram_bars(&entry.points))),
        Role::Raw | Role::Quantiles => {}
        _ if by_name && !role.is_line() => {}
        _ => {
            let path = line(&entry.points);
            if !path.is_empty() {
                parts.push((ShapePart::Line, vec![path]));
            }
        }
    }
    for stretch in entry.points.split(|point| point.interval().is_none()) {
        let is_range = |point: &Point| point.certainty == PointCertainty::RangeOnly;
        let is_area = role == Role::Measured || stretch.iter().all(is_range);
        if !by_name && is_area && stretch.len() > 1 {
            parts.push((ShapePart::Band, vec![band(stretch)]));
        } else if !stretch.is_empty() {
            parts.push((ShapePart::Whisker, whiskers(stretch)));
        }
    }
    if !role.is_line() && role != Role::Histogram {
        let known = symbols(&entry.points, PointCertainty::Sure);
        let rough = symbols(&entry.points, PointCertainty::Rough);
        for (part, paths) in [(ShapePart::Points, known), (ShapePart::Hollow, rough)] {
            if !paths.is_empty() {
                parts.push((part, paths));
            }
        }
    }
    let mut shapes = Vec::new();
    for (part, paths) in parts {
        shapes.push(PlotShape { part, series: Some(index), paths });
    }
    shapes
}

/// Builds a bar from zero to each value.
fn bars(points: &[Point], lanes: usize) -> Vec<Vec<Point>> {
    let half = BAR_SHARE / lanes as f64 * HALF_BAR;
    let mut bars = Vec::new();
    for Point { x, y, .. } in points {
        let (left, right) = (x - half, x + half);
        bars.push(points_at([(left, 0.0), (left, *y), (right, *y), (right, 0.0)]));
    }
    bars
}

/// Builds a bar from each x to the next; none where nothing was counted.
fn histogram_bars(points: &[Point]) -> Vec<Vec<Point>> {
    let mut bars = Vec::new();
    for pair in points.windows(2) {
        let (left, right, y) = (pair[0].x, pair[1].x, pair[0].y);
        if y != 0.0 {
            bars.push(points_at([(left, 0.0), (left, y), (right, y), (right, 0.0)]));
        }
    }
    bars
}

/// Builds the line through all points that have a value.
fn line(points: &[Point]) -> Vec<Point> {
    let valued = points.iter().filter(|point| point.certainty != PointCertainty::RangeOnly);
    points_at(valued.map(|point| (point.x, point.y)))
}

/// Builds the area between the ends of intervals: the upper ends from left to right, then the lower
/// ends back.
fn band(points: &[Point]) -> Vec<Point> {
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for point in points {
        if let Some((low, high)) = point.interval() {
            above.push((point.x, high));
            below.push((point.x, low));
        }
    }
    below.reverse();
    points_at([above, below].concat())
}

/// Builds a line from end to end of each interval.
fn whiskers(points: &[Point]) -> Vec<Vec<Point>> {
    let mut whiskers = Vec::new();
    for point in points {
        if let Some((low, high)) = point.interval() {
            whiskers.push(points_at([(point.x, low), (point.x, high)]));
        }
    }
    whiskers
}

/// Returns a path of one point for each point of that certainty.
fn symbols(points: &[Point], certainty: PointCertainty) -> Vec<Vec<Point>> {
    let mut paths = Vec::new();
    for point in points {
        if point.certainty == certainty {
            paths.push(vec![*point]);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, run: usize, role: Role) -> Series {
        Series { name: name.into(), run: Some(run), role, points: Vec::new() }
    }

    #[test]
    fn a_law_has_the_colour_of_what_it_is_fitted_to() {
        let all = [
            series("pipe", 0, Role::Measured),
            series("pipe, threads", 0, Role::Measured),
            series("pipe, threads, law", 0, Role::Law),
            series("pipe, law", 0, Role::Law),
            series("pipe", 1, Role::Measured),
            series("law", 1, Role::Law),
            series("elsewhere", 2, Role::Law),
        ];
        let found = entries(&all, &["a".into(), "b\x1b".into()]);
        let colours: Vec<usize> = found.iter().map(|entry| entry.colour).collect();
        assert_eq!(colours, [0, 1, 1, 0, 2, 2, 3]);
        let follows: Vec<bool> = found.iter().map(|entry| entry.follows).collect();
        assert_eq!(follows, [false, false, true, true, false, true, false]);
        assert_eq!(found[4].name, "b: pipe");
        assert_eq!(entries(&all, &["a".into()])[4].name, "pipe");
    }

    #[test]
    fn percentiles_have_the_colour_of_their_distribution_and_a_law_none_of_it() {
        let all = [
            series("idle", 0, Role::Distribution),
            series("idle, percentiles", 0, Role::Quantiles),
            series("busy", 0, Role::Distribution),
            series("busy, percentiles", 0, Role::Quantiles),
            series("law", 0, Role::Law),
        ];
        let found = entries(&all, &["a".into()]);
        let colours: Vec<usize> = found.iter().map(|entry| entry.colour).collect();
        assert_eq!(colours, [0, 0, 1, 1, 2]);
        assert!(found[1].follows && found[3].follows && !found[4].follows);
    }
}
