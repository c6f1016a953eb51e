//! The one layout: where title, legend, labels, plot, ticks and notes of a chart are on a page.
//!
//! The page is filled from top to bottom:
//!
//! ```text
//! title
//! ── sample  ── sample          legend, in as many rows as it needs
//! title of the vertical axis
//!      knee   L2 1 MiB          labels of marks, below them those of regions
//! 4 us ┤                        labels of the vertical axis, left of the plot
//! 2 us ┤        plot   1.9 us   values of bars or names of lines, right of it
//!      └───┬──────┬──
//!          2      4             ticks, title of the horizontal axis
//! note
//! ```

use crate::figure::{Axis, Figure, FigureBody, HeatMap, Point, Role, Scale, Series, Unit};
use crate::page::{
    CellShade, LegendItem, LegendSample, MapCell, PageMedium, PagePlace, PlacedChart, PlacedText,
    PlotAxes, TextAnchor, TextKind,
};
use crate::ruler::{AxisRuler, AxisTick, MapGrid};
use crate::shapes::{PlotShape, SeriesEntry, ShapePart, entries, shapes, side_by_side};
use crate::text::clean;

/// Largest number of ticks of an axis that is seen whole.
pub(crate) const MAX_TICKS: usize = 11;

/// Largest number of lines of a title and of a note.
const MAX_TITLE_LINES: usize = 3;
const MAX_NOTE_LINES: usize = 5;

/// Part of the page that a text beside the plot, or a label above it, may take.
const MAX_TEXT_SHARE: f64 = 0.4;

/// Lays a figure out; `runs` are the names of the runs that it shows, `note` is written below it.
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
    let mut items = match &grid {
        Some(grid) => colour_scale(grid),
        None => legend(&entries, turned),
    };
    if !medium.bare {
        page.put_lines(&clean(&figure.title), TextKind::Title, MAX_TITLE_LINES);
        page.put_legend(&mut items);
    }
    page.put_lines(&upright.title, TextKind::Upright, 1);
    // All names and all rows of a map have a label.
    let up_ticks = if turned || grid.is_some() {
        upright.ticks(usize::MAX)
    } else {
        finest_fitting(upright, |ticks| ticks.len() <= medium.ticks)
    };
    let values = bar_values(&entries, &axes);
    let named_lines = named_lines(&entries, medium, turned);
    let label_width =
        widest(up_ticks.iter().map(|tick| &tick.label), TextKind::Tick, medium).min(medium.longest);
    let value_width = widest(values.iter().map(|value| &value.words), TextKind::Value, medium);
    let name_width = widest(named_lines.iter().map(|entry| &entry.name), TextKind::Tick, medium);
    let beside = value_width.max(name_width).min(MAX_TEXT_SHARE * medium.width);
    let left = medium.margin + label_width + medium.gap;
    let right = (medium.width - medium.margin - medium.gap - beside).max(left + 1.0);
    let across_ticks = ticks_apart(across, right - left, medium);
    let across_title = across.title.clone();

    (axes.left, axes.right) = (left, right);
    if !turned && grid.is_none() {
        page.put_labels(figure, &axes);
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
    page.put_up_ticks(&up_ticks, label_width, &axes);
    page.put_across_ticks(&across_ticks, &axes);
    page.put_across_title(&across_title, f64::midpoint(left, right));
    for BarValue { x, y, words } in &values {
        let words = medium.fit(words, TextKind::Value, beside);
        let at = (right + medium.gap, axes.place(*x, *y).1);
        page.put(words, at, TextAnchor::Left, TextKind::Value);
    }
    page.put_line_names(&named_lines, &axes);
    let cells = match &grid {
        Some(grid) => page.put_cells(&axes, grid),
        None => Vec::new(),
    };
    let left_out = LeftOut::count(figure.series(), &axes.x, &axes.y);
    if grid.is_none() && left_out.is_all() {
        let middle = ((left + right) / 2.0, (axes.top + axes.bottom) / 2.0);
        page.put("nothing to draw".to_string(), middle, TextAnchor::Middle, TextKind::Nothing);
    }
    let left_out = left_out.sentence();
    if !medium.bare {
        let notes = format!("{} {}", clean(note), left_out.as_deref().unwrap_or_default());
        page.put_lines(&notes, TextKind::Note, MAX_NOTE_LINES);
    }
    PlacedChart {
        height: page.y + medium.margin,
        entries,
        items,
        texts: page.texts,
        across: across_ticks.iter().map(|tick| axes.horizontal(tick.at)).collect(),
        up: up_ticks.iter().map(|tick| axes.vertical(tick.at)).collect(),
        axes,
        shapes,
        cells,
        left_out,
    }
}

/// Builds both rulers, as long as the shapes of the series along them.
pub(crate) fn rulers(x: &Axis, y: &Axis, shapes: &[&PlotShape]) -> (AxisRuler, AxisRuler) {
    let (mut xs, mut ys, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for shape in shapes.iter().filter(|shape| shape.series.is_some()) {
        let is_interval = matches!(shape.part, ShapePart::Band | ShapePart::Whisker);
        for point in shape.paths.iter().flatten() {
            xs.push(point.x);
            ys.push(point.y);
            if !is_interval {
                values.push(point.y);
            }
        }
    }
    // A scale that draws an interval's end but no value would be of no use.
    let scale = AxisRuler::new(y, &values).scale;
    (AxisRuler::new(x, &xs), AxisRuler::new(&Axis { scale, ..y.clone() }, &ys))
}

/// Number of points that cannot be drawn, and the reason.
pub(crate) struct LeftOut {
    lost: usize,
    count: usize,
    is_log: bool,
}

impl LeftOut {
    /// Counts the points of the series that both axes cannot show.
    pub(crate) fn count<'a>(
        series: impl IntoIterator<Item = &'a Series>,
        x: &AxisRuler,
        y: &AxisRuler,
    ) -> Self {
        let is_log = x.scale == Scale::Log || y.scale == Scale::Log;
        let mut left_out = Self { lost: 0, count: 0, is_log };
        for series in series {
            for point in &series.points {
                left_out.count += 1;
                left_out.lost += usize::from(!(x.draws(point.x) && y.draws(point.y)));
            }
        }
        left_out
    }

    /// Returns whether no point can be drawn.
    fn is_all(&self) -> bool {
        self.lost == self.count
    }

    /// Writes the number of lost points and the reason, if any are lost.
    pub(crate) fn sentence(&self) -> Option<String> {
        if self.lost == 0 {
            return None;
        }
        let reason = if self.is_log {
            "not above zero, so not on a logarithmic axis"
        } else {
            "not a number that can be drawn"
        };
        Some(format!("{} of {} points left out: {reason}.", self.lost, self.count))
    }
}

/// Lines that follow others share one item of the legend for each of these roles.
const FOLLOWERS: [(Role, &str); 3] =
    [(Role::Law, "fitted law"), (Role::Projected, "projected"), (Role::Quantiles, "percentiles")];

/// Builds one item for each series, and one for all laws. A single series needs none, nor does a
/// published value that has a name on the axis.
fn legend(entries: &[SeriesEntry], turned: bool) -> Vec<LegendItem> {
    let mut items = Vec::new();
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.follows) {
        let role = entry.series.role;
        let is_named = role == Role::Published && entry.series.points.len() == 1;
        if turned && (is_named || entry.is_reference()) {
            continue;
        }
        let mut series: Vec<usize> = (0..entries.len()).collect();
        series.retain(|at| {
            *at == index || (entries[*at].follows && entries[*at].colour == entry.colour)
        });
        let sample = LegendSample::Series(role, Some(entry.colour));
        items.push(LegendItem { sample, name: entry.name.clone(), series, at: (0.0, 0.0) });
    }
    for (role, name) in FOLLOWERS {
        let mut series: Vec<usize> = (0..entries.len()).collect();
        series.retain(|at| entries[*at].follows && entries[*at].series.role == role);
        if !series.is_empty() {
            let sample = LegendSample::Series(role, None);
            items.push(LegendItem { sample, name: name.to_string(), series, at: (0.0, 0.0) });
        }
    }
    if items.len() < 2 { Vec::new() } else { items }
}

/// Builds the items that explain the colours of a map: four values, and cells without one.
fn colour_scale(grid: &MapGrid) -> Vec<LegendItem> {
    let mut items = Vec::new();
    for share in [Some(0.0), Some(1.0 / 3.0), Some(2.0 / 3.0), Some(1.0), None] {
        let (name, shade) = match share {
            Some(position) => {
                let value = grid.values.value(position);
                (grid.values.format_value(value), cell_shade(grid.map, position))
            }
            None => ("not measured or not resolved".to_string(), CellShade::Unknown),
        };
        let sample = LegendSample::Shade(shade);
        items.push(LegendItem { sample, name, series: Vec::new(), at: (0.0, 0.0) });
    }
    items
}

/// Returns the colour of a cell whose value has that position between the ends of the colours.
fn cell_shade(map: &HeatMap, position: f64) -> CellShade {
    match map.contrast {
        Some(_) => CellShade::Away(2.0 * position - 1.0),
        None => CellShade::Rising(position),
    }
}

/// The value of a bar in words, and its place in units of the figure.
struct BarValue {
    x: f64,
    y: f64,
    words: String,
}

/// Writes the values of bars; none on an axis without names.
fn bar_values(entries: &[SeriesEntry], axes: &PlotAxes) -> Vec<BarValue> {
    let mut values = Vec::new();
    if !axes.turned {
        return values;
    }
    for entry in entries.iter().filter(|entry| !entry.series.role.is_line()) {
        for point in entry.points.iter().filter(|point| axes.y.draws(point.y)) {
            let words = axes.y.format_with_interval(point);
            values.push(BarValue { x: point.x, y: point.y, words });
        }
    }
    values
}

/// Returns the lines that have their names at their ends: published ones on a page of HTML, whose
/// legend leaves them out, and several measured ones on a page that has no legend.
fn named_lines<'a, 'b>(
    entries: &'b [SeriesEntry<'a>],
    medium: &PageMedium,
    turned: bool,
) -> Vec<&'b SeriesEntry<'a>> {
    let mut lines: Vec<&SeriesEntry> = entries.iter().collect();
    lines.retain(|entry| {
        let is_named = match entry.series.role {
            Role::Published => medium.bare,
            Role::Measured => medium.has_names_at_ends && entries.len() > 1,
            _ => false,
        };
        is_named && !turned && entry.points.len() > 1 && !entry.name.is_empty()
    });
    lines
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>, kind: TextKind, medium: &PageMedium) -> f64 {
    let mut widest = 0.0_f64;
    for text in texts {
        widest = widest.max(medium.width_of(text, kind));
    }
    widest
}

/// Returns as many ticks as have room side by side.
fn ticks_apart(ruler: &AxisRuler, room: f64, medium: &PageMedium) -> Vec<AxisTick> {
    finest_fitting(ruler, |ticks| {
        for pair in ticks.windows(2) {
            let distance = (ruler.position(pair[1].at) - ruler.position(pair[0].at)) * room;
            let halves = half_width(&pair[0].label, TextKind::Tick, medium)
                + half_width(&pair[1].label, TextKind::Tick, medium);
            if distance < halves + medium.gap {
                return false;
            }
        }
        ticks.len() <= MAX_TICKS
    })
}

fn half_width(text: &str, kind: TextKind, medium: &PageMedium) -> f64 {
    medium.width_of(text, kind) / 2.0
}

/// Returns the finest rung of a ruler's ladder that fits.
fn finest_fitting(ruler: &AxisRuler, fits: impl Fn(&[AxisTick]) -> bool) -> Vec<AxisTick> {
    let ladder = ruler.ladder(1..=MAX_TICKS);
    ladder.into_iter().rev().find(|ticks| fits(ticks)).unwrap_or_default()
}

/// A page that is written from top to bottom.
struct PageWriter<'a> {
    medium: &'a PageMedium,
    /// Upper end of the next row.
    y: f64,
    texts: Vec<PlacedText>,
}

/// The end of a line, and the name that is written beside it.
struct LineEnd {
    y: f64,
    name: String,
}

impl PageWriter<'_> {
    fn put(&mut self, words: String, at: PagePlace, anchor: TextAnchor, kind: TextKind) {
        self.texts.push(PlacedText { words, at, anchor, kind, stretch: None });
    }

    /// Puts words in as many lines as they need, up to `most`.
    fn put_lines(&mut self, words: &str, kind: TextKind, most: usize) {
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
    fn put_legend(&mut self, items: &mut [LegendItem]) {
        let medium = self.medium;
        let (row, end) = ((medium.row)(TextKind::Key), medium.width - medium.margin);
        let mut x = medium.margin;
        for item in &mut *items {
            let name = medium.fit(&item.name, TextKind::Key, end - medium.margin - medium.sample);
            let width = medium.sample + medium.width_of(&name, TextKind::Key);
            if x > medium.margin && x + width > end {
                (x, self.y) = (medium.margin, self.y + row);
            }
            item.at = (x, self.y + row / 2.0);
            self.put(name, (x + medium.sample, item.at.1), TextAnchor::Left, TextKind::Key);
            x += width + 2.0 * medium.gap;
        }
        if !items.is_empty() {
            self.y += row;
        }
    }

    /// Puts the labels of marks, and below them those of regions, in rows in which they do not
    /// touch. Labels without room are left out here; the text beside the chart has them.
    fn put_labels(&mut self, figure: &Figure, axes: &PlotAxes) {
        let (mut marks, mut regions) = (Vec::new(), Vec::new());
        for mark in &figure.marks {
            marks.extend(self.label(TextKind::Mark, (mark.x, mark.x), &mark.label, axes));
        }
        for region in figure.regions.iter().filter(|region| region.from < region.to) {
            let stretch = (region.from, region.to);
            regions.extend(self.label(TextKind::Region, stretch, &region.label, axes));
        }
        for labels in [marks, regions] {
            self.put_rows(labels, axes);
        }
    }

    /// Builds the label of a stretch of the x axis, if a part of it is seen. Its place is the middle
    /// of the stretch, from the left end of the plot.
    fn label(
        &self,
        kind: TextKind,
        stretch: (f64, f64),
        label: &str,
        axes: &PlotAxes,
    ) -> Option<PlacedText> {
        let (medium, x, (from, to)) = (self.medium, &axes.x, stretch);
        if !(x.draws(from) && x.draws(to) && to >= x.low && from <= x.high) {
            return None;
        }
        let words = medium.fit(&clean(label), kind, MAX_TEXT_SHARE * medium.width);
        let middle = (x.position(from) + x.position(to)) / 2.0 * (axes.right - axes.left);
        let (at, anchor) = ((middle, 0.0), TextAnchor::Left);
        Some(PlacedText { words, at, anchor, kind, stretch: Some(stretch) })
    }

    /// Puts labels in rows, the lowest first.
    fn put_rows(&mut self, mut labels: Vec<PlacedText>, axes: &PlotAxes) {
        let row_height = (self.medium.row)(TextKind::Mark);
        labels.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
        let mut wanted = Vec::new();
        for label in &labels {
            let width = self.medium.width_of(&label.words, label.kind);
            wanted.push(WantedPlace { middle: label.at.0, width });
        }
        let room = axes.right - axes.left;
        let places = place_in_rows(&wanted, room, self.medium.gap, self.medium.rows);
        let mut used = 0;
        for place in places.iter().flatten() {
            used = used.max(place.row + 1);
        }
        self.y += row_height * used as f64;
        for (mut label, place) in labels.into_iter().zip(places) {
            let Some(RowPlace { row, start }) = place else { continue };
            label.at = (axes.left + start, self.y - row_height * (row as f64 + 0.5));
            self.texts.push(label);
        }
    }

    /// Puts the labels of the vertical axis left of the plot, at most `width` wide.
    fn put_up_ticks(&mut self, ticks: &[AxisTick], width: f64, axes: &PlotAxes) {
        for tick in ticks {
            let label = self.medium.fit(&tick.label, TextKind::Tick, width);
            let at = (axes.left - self.medium.gap, axes.vertical(tick.at));
            self.put(label, at, TextAnchor::Right, TextKind::Tick);
        }
    }

    /// Puts the labels of the horizontal axis into the current row. The first and the last stay on
    /// the page.
    fn put_across_ticks(&mut self, ticks: &[AxisTick], axes: &PlotAxes) {
        for tick in ticks {
            let half = half_width(&tick.label, TextKind::Tick, self.medium);
            let x = axes.horizontal(tick.at).min(self.medium.width - half).max(half);
            self.put(tick.label.clone(), (x, self.y), TextAnchor::Middle, TextKind::Tick);
        }
    }

    /// Puts the names of lines at their right ends, none on another.
    fn put_line_names(&mut self, lines: &[&SeriesEntry], axes: &PlotAxes) {
        let mut ends = Vec::new();
        for line in lines {
            let is_drawn = |point: &&Point| axes.x.draws(point.x) && axes.y.draws(point.y);
            if let Some(last) = line.points.iter().rev().find(is_drawn) {
                let y = axes.place(last.x, last.y).1.clamp(axes.top, axes.bottom);
                ends.push(LineEnd { y, name: line.name.clone() });
            }
        }
        ends.sort_by(|one, other| one.y.total_cmp(&other.y));
        let height = axes.bottom - axes.top;
        let step = (self.medium.row)(TextKind::Tick).min(height / ends.len().max(1) as f64);
        // Downwards each name moves off the one above it, then upwards off the end of the plot.
        let mut least = f64::NEG_INFINITY;
        for end in &mut ends {
            end.y = end.y.max(least);
            least = end.y + step;
        }
        let mut most = axes.bottom;
        for end in ends.iter_mut().rev() {
            end.y = end.y.min(most);
            most = end.y - step;
        }
        for LineEnd { y, name } in ends {
            let left = axes.right + self.medium.gap;
            let name = self.medium.fit(&name, TextKind::Name, self.medium.width - left);
            self.put(name, (left, y), TextAnchor::Left, TextKind::Name);
        }
    }

    /// Puts the title of the horizontal axis below the middle of the plot if it fits there.
    fn put_across_title(&mut self, title: &str, middle: f64) {
        let (medium, row) = (self.medium, (self.medium.row)(TextKind::Across));
        let title = medium.fit(title, TextKind::Across, medium.width - 2.0 * medium.margin);
        let half = half_width(&title, TextKind::Across, medium);
        let x = middle.min(medium.width - medium.margin - half);
        self.put(title, (x, self.y + row), TextAnchor::Middle, TextKind::Across);
        self.y += 1.5 * row;
    }

    /// Builds the cells of a map; puts the values that fit into them.
    fn put_cells(&mut self, axes: &PlotAxes, grid: &MapGrid) -> Vec<MapCell> {
        let mut cells = Vec::new();
        for (row, values) in grid.map.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let (x, y) = (column as f64, row as f64);
                let (low, high) = (axes.place(x - 0.5, y - 0.5), axes.place(x + 0.5, y + 0.5));
                let place = format!("{}, {}", axes.y.format_value(y), axes.x.format_value(x));
                let Some(value) = value.filter(|value| grid.values.draws(*value)) else {
                    let words = format!("{place}: not resolved");
                    cells.push(MapCell { low, high, shade: CellShade::Unknown, words });
                    continue;
                };
                let shade = cell_shade(grid.map, grid.values.position(value));
                let value = grid.values.format_value(value);
                let words = format!("{place}: {value}");
                cells.push(MapCell { low, high, shade, words });
                // On colours that fit light and dark pages no ink is always readable.
                if let CellShade::Rising(share) = shade {
                    self.put_cell_value(value, TextKind::Cell(share), low, high);
                }
            }
        }
        cells
    }

    /// Puts the value of a cell into its middle, if it fits.
    fn put_cell_value(&mut self, value: String, kind: TextKind, low: PagePlace, high: PagePlace) {
        let room = high.0 - low.0 - self.medium.gap / 2.0;
        let is_fitting = self.medium.width_of(&value, kind) <= room;
        if is_fitting && low.1 - high.1 >= (self.medium.row)(kind) {
            let middle = (f64::midpoint(low.0, high.0), f64::midpoint(low.1, high.1));
            self.put(value, middle, TextAnchor::Middle, kind);
        }
    }
}

/// The middle where a label should be, and its width.
struct WantedPlace {
    middle: f64,
    width: f64,
}

/// The row of a label, 0 being next to the plot, and its left end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowPlace {
    row: usize,
    start: f64,
}

/// Puts labels between 0 and `room`, at least `gap` apart. Returns a place for each; none where
/// `most` rows have no place for it.
fn place_in_rows(
    labels: &[WantedPlace],
    room: f64,
    gap: f64,
    most: usize,
) -> Vec<Option<RowPlace>> {
    let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); most];
    let mut places = Vec::new();
    for WantedPlace { middle, width } in labels {
        if !middle.is_finite() || *width > room {
            places.push(None);
            continue;
        }
        let start = (middle - width / 2.0).clamp(0.0, room - width);
        let free = taken.iter().position(|row| {
            row.iter().all(|(from, to)| start >= to + gap || start + width + gap <= *from)
        });
        if let Some(row) = free {
            taken[row].push((start, start + width));
        }
        places.push(free.map(|row| RowPlace { row, start }));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(places: &[(f64, f64)]) -> Vec<WantedPlace> {
        places
            .iter()
            .map(|(middle, width)| WantedPlace { middle: *middle, width: *width })
            .collect()
    }

    #[test]
    fn labels_do_not_touch_and_stay_inside() {
        let labels = wanted(&[
            (0.0, 10.0),
            (8.0, 10.0),
            (50.0, 10.0),
            (99.0, 20.0),
            (95.0, 4.0),
            (9.0, 200.0),
        ]);
        let placed = place_in_rows(&labels, 100.0, 1.0, 2);
        let at = |row, start| Some(RowPlace { row, start });
        assert_eq!(placed, [at(0, 0.0), at(1, 3.0), at(0, 45.0), at(0, 80.0), at(1, 93.0), None]);
        let two = wanted(&[(1.0, 5.0), (2.0, 5.0)]);
        assert_eq!(place_in_rows(&two, 100.0, 1.0, 1)[1], None, "no third row");
        assert_eq!(place_in_rows(&wanted(&[(f64::NAN, 5.0)]), 100.0, 1.0, 1), [None]);
    }
}
