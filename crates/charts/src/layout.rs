//! The one layout: where title, legend, labels, plot, ticks and notes of a chart are on a page.

use crate::figure::{Axis, Figure, FigureBody, Point, Role, Scale, Series, Unit};
use crate::page::{
    At, LegendItem, LegendSample, MapCell, PageMedium, PlacedChart, PlacedText, PlotAxes,
    TextAnchor, TextKind,
};
use crate::ruler::{AxisRuler, AxisTick, MapGrid};
use crate::shapes::{PlotShape, SeriesEntry, ShapePart, entries, shapes, side_by_side};
use crate::text::clean;

/// Ticks of an axis that is seen whole, at the most.
pub(crate) const MOST: usize = 11;

/// Lays a figure out; `runs` are the names of the runs that it is of, `note` is written below it.
pub(crate) fn layout<'a>(
    figure: &'a Figure,
    runs: &[String],
    note: &str,
    medium: &PageMedium,
) -> PlacedChart<'a> {
    let grid = match &figure.body {
        FigureBody::Map(map) => MapGrid::from_map(figure, map),
        FigureBody::Series(_) => None,
    };
    let turned = figure.x.unit == Unit::Names && grid.is_none();
    let mut entries = entries(figure.series(), runs);
    let lanes = match figure.x.unit {
        Unit::Names => side_by_side(&mut entries, figure.x.names.len()),
        _ => 1,
    };
    let shapes = shapes(figure, &entries, lanes);
    let (x, y) = match &grid {
        Some(grid) => (grid.x.clone(), grid.y.clone()),
        None => rulers(&figure.x, &figure.y, &shapes.iter().collect::<Vec<_>>()),
    };
    let mut axes = PlotAxes { left: 0.0, right: 1.0, top: 0.0, bottom: 1.0, x, y, turned };
    let (upright, across) = if turned { (&axes.x, &axes.y) } else { (&axes.y, &axes.x) };

    let mut page = PageWriter { medium, y: medium.margin, texts: Vec::new() };
    let mut items = grid.as_ref().map_or_else(|| legend(&entries, turned), |of| shades(&of.values));
    if !medium.bare {
        page.lines(&clean(&figure.title), TextKind::Title, 3);
        page.flow(&mut items);
    }
    page.lines(&upright.title, TextKind::Upright, 1);
    // All names and all rows of a map have a label.
    let up = match turned || grid.is_some() {
        true => upright.ticks(usize::MAX),
        false => finest(upright, |ticks| ticks.len() <= medium.ticks),
    };
    let values = values(&entries, &axes);
    let widest = |texts: &mut dyn Iterator<Item = &String>, kind, most: f64| {
        texts.map(|text| medium.width_of(text, kind)).fold(0.0, f64::max).min(most)
    };
    let names = widest(&mut up.iter().map(|tick| &tick.label), TextKind::Tick, medium.longest);
    let most = 0.4 * medium.width;
    let beside = widest(&mut values.iter().map(|(_, words)| words), TextKind::Value, most);
    // A page has no legend of lines that are published: their names are at their ends.
    let is_named = |entry: &&SeriesEntry| {
        medium.bare && !turned && entry.series.role == Role::Published && entry.points.len() > 1
    };
    let named: Vec<&SeriesEntry> = entries.iter().filter(is_named).collect();
    let beside = beside.max(widest(&mut named.iter().map(|of| &of.name), TextKind::Tick, most));
    let left = medium.margin + names + medium.gap;
    let right = (medium.width - medium.margin - medium.gap - beside).max(left + 1.0);
    let ticks = that_do_not_touch(across, right - left, medium);
    let across_title = across.title.clone();

    (axes.left, axes.right) = (left, right);
    if !turned && grid.is_none() {
        page.labels(figure, &axes);
    }
    let height = match &grid {
        _ if turned => {
            (axes.x.high - axes.x.low) * (medium.name.0 + medium.name.1 * (lanes as f64 - 1.0))
        }
        Some(grid) => grid.map.ys.len() as f64 * medium.name.0,
        None => medium.plot,
    };
    (axes.top, axes.bottom) = (page.y, page.y + height.min(10.0 * medium.plot));
    page.y = axes.bottom + medium.below;
    for tick in &up {
        let label = medium.fit(&tick.label, TextKind::Tick, names);
        page.put(label, (left - medium.gap, axes.up(tick.at)), TextAnchor::Right, TextKind::Tick);
    }
    for tick in &ticks {
        // The first and the last stay on the page.
        let half = medium.width_of(&tick.label, TextKind::Tick) / 2.0;
        let x = axes.across(tick.at).min(medium.width - half).max(half);
        page.put(tick.label.clone(), (x, page.y), TextAnchor::Middle, TextKind::Tick);
    }
    page.across_title(&across_title, f64::midpoint(left, right));
    for ((x, y), words) in &values {
        let words = medium.fit(words, TextKind::Value, beside);
        page.put(
            words,
            (right + medium.gap, axes.at((*x, *y)).1),
            TextAnchor::Left,
            TextKind::Value,
        );
    }
    page.names(&named, &axes);
    let cells = grid.iter().flat_map(|grid| page.cells(&axes, grid)).collect();
    let (is_empty, left_out) =
        left_out(&figure.series().iter().collect::<Vec<_>>(), &axes.x, &axes.y);
    if grid.is_none() && is_empty {
        let middle = ((left + right) / 2.0, (axes.top + axes.bottom) / 2.0);
        page.put("nothing to draw".to_string(), middle, TextAnchor::Middle, TextKind::Nothing);
    }
    if !medium.bare {
        let notes = format!("{} {}", clean(note), left_out.as_deref().unwrap_or_default());
        page.lines(&notes, TextKind::Note, 5);
    }
    PlacedChart {
        height: page.y + medium.margin,
        entries,
        items,
        texts: page.texts,
        across: ticks.iter().map(|tick| axes.across(tick.at)).collect(),
        up: up.iter().map(|tick| axes.up(tick.at)).collect(),
        axes,
        shapes,
        cells,
        left_out,
    }
}

/// Both rulers, as long as what is drawn along them.
pub(crate) fn rulers(x: &Axis, y: &Axis, shapes: &[&PlotShape]) -> (AxisRuler, AxisRuler) {
    let points = |without: &[ShapePart]| -> (Vec<f64>, Vec<f64>) {
        let shapes = shapes.iter().filter(|of| of.series.is_some() && !without.contains(&of.part));
        shapes.flat_map(|shape| shape.paths.iter().flatten()).map(|p| (p.x, p.y)).unzip()
    };
    let (xs, ys) = points(&[]);
    // A scale that draws an interval's end but no value would be of no use.
    let (_, values) = points(&[ShapePart::Band, ShapePart::Whisker]);
    let scale = AxisRuler::new(y, &values).scale;
    (AxisRuler::new(x, &xs), AxisRuler::new(&Axis { scale, ..y.clone() }, &ys))
}

/// Whether no point can be drawn, and how many cannot and why.
pub(crate) fn left_out(all: &[&Series], x: &AxisRuler, y: &AxisRuler) -> (bool, Option<String>) {
    let points = all.iter().flat_map(|of| &of.points);
    let (count, lost) = points.fold((0, 0), |(count, lost), p| {
        let is_drawn = x.draws(p.x) && y.draws(p.y);
        (count + 1, lost + usize::from(!is_drawn))
    });
    let why = match x.scale == Scale::Log || y.scale == Scale::Log {
        true => "not above zero, so not on a logarithmic axis",
        false => "not a number that can be drawn",
    };
    let words = (lost > 0).then(|| format!("{lost} of {count} points left out: {why}."));
    (lost == count, words)
}

/// What the points of a distribution are.
const QUANTILES: &str = "percentiles";

/// One item for each series, and one for all laws. A single series needs none, nor a published
/// value that has a name on the axis.
fn legend(entries: &[SeriesEntry], turned: bool) -> Vec<LegendItem> {
    let item = |sample, name: &str, of: &dyn Fn(usize, &SeriesEntry) -> bool| {
        let series = (0..entries.len()).filter(|place| of(*place, &entries[*place])).collect();
        LegendItem { sample, name: name.to_string(), series, at: (0.0, 0.0) }
    };
    let mut items = Vec::new();
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.follows) {
        let role = entry.series.role;
        let is_named = role == Role::Published && entry.series.points.len() == 1;
        // A line that goes with nothing and is of no run is for comparison.
        let is_reference = role.is_line() && entry.series.run.is_none();
        if !(turned && (is_named || is_reference)) {
            let sample = LegendSample::Series(role, Some(entry.colour));
            let own = |at, e: &SeriesEntry| at == index || (e.follows && e.colour == entry.colour);
            items.push(item(sample, &entry.name, &own));
        }
    }
    let followers =
        [(Role::Law, "fitted law"), (Role::Projected, "projected"), (Role::Quantiles, QUANTILES)];
    for (role, name) in followers {
        let own = |_, entry: &SeriesEntry| entry.follows && entry.series.role == role;
        items.push(item(LegendSample::Series(role, None), name, &own));
    }
    items.retain(|item| !item.series.is_empty());
    if items.len() < 2 { Vec::new() } else { items }
}

/// What the colours of a map mean.
fn shades(values: &AxisRuler) -> Vec<LegendItem> {
    let item = |share: Option<f64>| {
        let name = share.map(|at| values.format_value(values.value(at)));
        let name = name.unwrap_or("not measured or not resolved".to_string());
        LegendItem { sample: LegendSample::Shade(share), name, series: Vec::new(), at: (0.0, 0.0) }
    };
    [Some(0.0), Some(1.0 / 3.0), Some(2.0 / 3.0), Some(1.0), None].map(item).to_vec()
}

/// The values of bars in words, each with its place; none on an axis without names.
fn values(entries: &[SeriesEntry], PlotAxes { y, turned, .. }: &PlotAxes) -> Vec<(At, String)> {
    let is_told = |entry: &&SeriesEntry| *turned && !entry.series.role.is_line();
    let points = entries.iter().filter(is_told).flat_map(|entry| &entry.points);
    let label = |point: &Point| ((point.x, point.y), y.format_with_interval(point));
    points.filter(|point| y.draws(point.y)).map(label).collect()
}

/// As many ticks as have room side by side.
fn that_do_not_touch(ruler: &AxisRuler, room: f64, medium: &PageMedium) -> Vec<AxisTick> {
    let half = |tick: &AxisTick| medium.width_of(&tick.label, TextKind::Tick) / 2.0;
    let touch = |two: &[AxisTick]| {
        let apart = (ruler.position(two[1].at) - ruler.position(two[0].at)) * room;
        apart < half(&two[0]) + half(&two[1]) + medium.gap
    };
    finest(ruler, |ticks| ticks.len() <= MOST && !ticks.windows(2).any(touch))
}

/// The finest rung of a ruler's ladder that fits.
fn finest(ruler: &AxisRuler, fits: impl Fn(&[AxisTick]) -> bool) -> Vec<AxisTick> {
    ruler.ladder(1..=MOST).into_iter().rev().find(|ticks| fits(ticks)).unwrap_or_default()
}

/// A page that is written from top to bottom.
struct PageWriter<'a> {
    medium: &'a PageMedium,
    /// Where the next row begins.
    y: f64,
    texts: Vec<PlacedText>,
}

impl PageWriter<'_> {
    fn put(&mut self, words: String, at: At, anchor: TextAnchor, kind: TextKind) {
        self.texts.push(PlacedText { words, at, anchor, kind, of: None });
    }

    /// Words in as many lines as they need, up to `most`.
    fn lines(&mut self, words: &str, kind: TextKind, most: usize) {
        let medium = self.medium;
        let room = medium.width - 2.0 * medium.margin;
        let mut lines: Vec<String> = Vec::new();
        for word in words.split_whitespace() {
            let word = medium.fit(word, kind, room);
            match lines.last_mut() {
                Some(line) if medium.width_of(&format!("{line} {word}"), kind) <= room => {
                    line.push_str(&format!(" {word}"));
                }
                _ => lines.push(word),
            }
        }
        let row = (medium.row)(kind);
        for line in lines.into_iter().take(most) {
            self.put(line, (medium.margin, self.y + row / 2.0), TextAnchor::Left, kind);
            self.y += row;
        }
    }

    /// Puts the items of a legend side by side, in as many rows as they need.
    fn flow(&mut self, items: &mut [LegendItem]) {
        let medium = self.medium;
        let (row, end) = ((medium.row)(TextKind::Key), medium.width - medium.margin);
        let mut x = medium.margin;
        for item in &mut *items {
            let name = medium.fit(&item.name, TextKind::Key, end - medium.margin - medium.sample);
            let wide = medium.sample + medium.width_of(&name, TextKind::Key);
            if x > medium.margin && x + wide > end {
                (x, self.y) = (medium.margin, self.y + row);
            }
            item.at = (x, self.y + row / 2.0);
            self.put(name, (x + medium.sample, item.at.1), TextAnchor::Left, TextKind::Key);
            x += wide + 2.0 * medium.gap;
        }
        if !items.is_empty() {
            self.y += row;
        }
    }

    /// The labels of marks, and below them those of regions, in rows in which they do not touch.
    /// What does not fit is left out here; the text beside the chart has it.
    fn labels(&mut self, figure: &Figure, axes: &PlotAxes) {
        let (medium, x, room) = (self.medium, &axes.x, axes.right - axes.left);
        let row = (medium.row)(TextKind::Mark);
        let text = |kind, (from, to): (f64, f64), label: &str| {
            let is_seen = x.draws(from) && x.draws(to) && to >= x.low && from <= x.high;
            let words = medium.fit(&clean(label), kind, 0.4 * medium.width);
            let at = ((x.position(from) + x.position(to)) / 2.0 * room, 0.0);
            is_seen.then_some(PlacedText {
                words,
                at,
                anchor: TextAnchor::Left,
                kind,
                of: Some((from, to)),
            })
        };
        let marks =
            figure.marks.iter().map(|mark| text(TextKind::Mark, (mark.x, mark.x), &mark.label));
        let regions = figure.regions.iter().filter(|region| region.from < region.to);
        let regions = regions.map(|of| text(TextKind::Region, (of.from, of.to), &of.label));
        for mut labels in
            [marks.flatten().collect::<Vec<PlacedText>>(), regions.flatten().collect()]
        {
            labels.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
            let span = |label: &PlacedText| (label.at.0, medium.width_of(&label.words, label.kind));
            let spans: Vec<(f64, f64)> = labels.iter().map(span).collect();
            let placed = rows(&spans, room, medium.gap, medium.rows);
            let used = placed.iter().flatten().map(|(row, _)| row + 1).max().unwrap_or(0);
            self.y += row * used as f64;
            for (mut label, placed) in labels.into_iter().zip(placed) {
                let Some((place, start)) = placed else { continue };
                label.at = (axes.left + start, self.y - row * (place as f64 + 0.5));
                self.texts.push(label);
            }
        }
    }

    /// The names of these lines at their right ends, none on another.
    fn names(&mut self, lines: &[&SeriesEntry], axes: &PlotAxes) {
        let end = |of: &&SeriesEntry| {
            let points = of.points.iter().rev();
            let last = points.copied().find(|p| axes.x.draws(p.x) && axes.y.draws(p.y))?;
            let (_, y) = axes.at((last.x, last.y));
            Some((y.clamp(axes.top, axes.bottom), of.name.clone()))
        };
        let mut ends: Vec<(f64, String)> = lines.iter().filter_map(end).collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let height = axes.bottom - axes.top;
        let step = (self.medium.row)(TextKind::Tick).min(height / ends.len().max(1) as f64);
        let mut least = f64::NEG_INFINITY;
        for (y, _) in &mut ends {
            *y = y.max(least);
            least = *y + step;
        }
        let mut most = axes.bottom;
        for (y, _) in ends.iter_mut().rev() {
            *y = y.min(most);
            most = *y - step;
        }
        for (y, name) in ends {
            self.put(name, (axes.right + self.medium.gap, y), TextAnchor::Left, TextKind::Name);
        }
    }

    /// The title of the horizontal axis, in the middle of the plot if it fits there.
    fn across_title(&mut self, title: &str, middle: f64) {
        let (medium, row) = (self.medium, (self.medium.row)(TextKind::Across));
        let title = medium.fit(title, TextKind::Across, medium.width - 2.0 * medium.margin);
        let half = medium.width_of(&title, TextKind::Across) / 2.0;
        let x = middle.min(medium.width - medium.margin - half);
        self.put(title, (x, self.y + row), TextAnchor::Middle, TextKind::Across);
        self.y += 1.5 * row;
    }

    /// The cells of a map; writes the values that fit into them.
    fn cells(&mut self, axes: &PlotAxes, grid: &MapGrid) -> Vec<MapCell> {
        let mut all = Vec::new();
        let unresolved = "not resolved".to_string();
        for (row, values) in grid.map.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let (x, y) = (column as f64, row as f64);
                let (low, high) = (axes.at((x - 0.5, y - 0.5)), axes.at((x + 0.5, y + 0.5)));
                let value = value.filter(|value| grid.values.draws(*value));
                let share = value.map(|value| grid.values.position(value));
                let words = value.map(|value| grid.values.format_value(value));
                let said = words.as_ref().unwrap_or(&unresolved);
                let said =
                    format!("{}, {}: {said}", axes.y.format_value(y), axes.x.format_value(x));
                all.push(MapCell { low, high, share, said });
                let (Some(share), Some(words)) = (share, words) else { continue };
                let kind = TextKind::Cell(share);
                let room = high.0 - low.0 - self.medium.gap / 2.0;
                let fits = self.medium.width_of(&words, kind) <= room;
                if fits && low.1 - high.1 >= (self.medium.row)(kind) {
                    let middle = (f64::midpoint(low.0, high.0), f64::midpoint(low.1, high.1));
                    self.put(words, middle, TextAnchor::Middle, kind);
                }
            }
        }
        all
    }
}

/// Puts labels, each given as the middle where it should be and its width, between 0 and `room`, at
/// least `gap` apart. Gives the row of each, 0 being next to the plot, and its left end; none where
/// `most` rows have no place for it.
fn rows(labels: &[(f64, f64)], room: f64, gap: f64, most: usize) -> Vec<Option<(usize, f64)>> {
    let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); most];
    let mut place = |(middle, width): &(f64, f64)| {
        if !middle.is_finite() || *width > room {
            return None;
        }
        let start = (middle - width / 2.0).clamp(0.0, room - width);
        let is_free = |row: &Vec<(f64, f64)>| {
            row.iter().all(|(from, to)| start >= to + gap || start + width + gap <= *from)
        };
        let row = taken.iter().position(is_free)?;
        taken[row].push((start, start + width));
        Some((row, start))
    };
    labels.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_touch_and_stay_inside() {
        let labels =
            [(0.0, 10.0), (8.0, 10.0), (50.0, 10.0), (99.0, 20.0), (95.0, 4.0), (9.0, 200.0)];
        let placed = rows(&labels, 100.0, 1.0, 2);
        let at = |row, start| Some((row, start));
        assert_eq!(placed, [at(0, 0.0), at(1, 3.0), at(0, 45.0), at(0, 80.0), at(1, 93.0), None]);
        assert_eq!(rows(&[(1.0, 5.0), (2.0, 5.0)], 100.0, 1.0, 1)[1], None, "no third row");
        assert_eq!(rows(&[(f64::NAN, 5.0)], 100.0, 1.0, 1), [None]);
    }
}
