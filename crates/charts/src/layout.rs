//! The one layout: where title, legend, labels, plot, ticks and notes of a chart lie on a page.
//!
//! A page is measured in pixels on paper and in columns and lines on a terminal; a [`Medium`] says which.

use crate::figure::{Axis, Body, Figure, Map, Point, Role, Scale, Unit};
use crate::legend::{Entry, entries, followers};
use crate::map::MapFrame;
use crate::rows::{rows, used};
use crate::ruler::{Ruler, Tick};
use crate::shapes::{Form, Lanes, Part, Shape, shapes};
use crate::text::clean;

/// A place on the page, from its upper left corner.
pub(crate) type At = (f64, f64);

/// What a text is, and so how large it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Title,
    Key,
    /// The title of the vertical axis.
    Upright,
    /// The title of the horizontal axis.
    Across,
    Tick,
    Mark,
    Region,
    /// The value of a bar.
    Value,
    /// The value of a cell of a map.
    Cell,
    Note,
    /// In place of a plot.
    Nothing,
}

/// Which point of a text lies at its place; up and down it is the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Left,
    Middle,
    Right,
}

/// A line of text on the page.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) words: String,
    pub(crate) at: At,
    pub(crate) anchor: Anchor,
    pub(crate) kind: Kind,
    /// Of a label, the stretch of the x axis that it is for.
    pub(crate) of: Option<(f64, f64)>,
}

/// Sizes on a kind of page.
#[derive(Clone, Copy)]
pub(crate) struct Medium {
    pub(crate) width: f64,
    pub(crate) margin: f64,
    /// Height of a row of text.
    pub(crate) row: fn(Kind) -> f64,
    /// Height of a plot over numbers.
    pub(crate) plot: f64,
    /// Height of a name with one value, and of each further value.
    pub(crate) name: (f64, f64),
    /// From the lower end of the plot to the middle of its ticks' labels.
    pub(crate) below: f64,
    /// Between two texts, and between the plot and a text beside it.
    pub(crate) gap: f64,
    /// Width of a sample in the legend.
    pub(crate) sample: f64,
    /// Ticks of the vertical axis.
    pub(crate) ticks: usize,
    /// The widest label of a tick.
    pub(crate) longest: f64,
    /// Rows of labels above the plot.
    pub(crate) rows: usize,
    /// Whether title, legend and notes stand elsewhere.
    pub(crate) bare: bool,
    /// The width of a text.
    pub(crate) measure: fn(&str, Kind) -> f64,
    /// What stands for the end of a text that is cut.
    pub(crate) cut: &'static str,
}

/// What a sample in the legend shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    /// A series of this role and number.
    Series(Role, usize),
    /// What all series of this role have in common.
    All(Role),
    /// A share of the colours of a map; none for cells without a value.
    Shade(Option<f64>),
}

/// A sample and what it stands for.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) sample: Sample,
    pub(crate) name: String,
    /// The series that are switched by it.
    pub(crate) series: Vec<usize>,
    /// Left end and middle.
    pub(crate) at: At,
}

/// A cell of a map, from its lower left to its upper right corner.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) low: At,
    pub(crate) high: At,
    /// Its place between the least and the greatest value.
    pub(crate) share: Option<f64>,
    /// Its value; empty where it has no room.
    pub(crate) words: String,
}

/// Where the plot is, and what is on its axes.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
    /// Names of x stand one below the other, so that they can be read.
    pub(crate) turned: bool,
}

impl Axes {
    /// Where a place of the figure lies on the page.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> At {
        let (across, up) = match self.turned {
            true => (self.y.position(y), 1.0 - self.x.position(x)),
            false => (self.x.position(x), self.y.position(y)),
        };
        let (wide, high) = (self.right - self.left, self.bottom - self.top);
        (self.left + across * wide, self.bottom - up * high)
    }

    /// The paths of a shape on the page; of stamps a path of one place for each.
    pub(crate) fn paths(&self, shape: &Shape) -> Vec<Vec<At>> {
        let draws = |(x, y): &(f64, f64)| self.x.draws(*x) && self.y.draws(*y);
        let path = |places: &[(f64, f64)]| -> Vec<At> {
            let has_floor = places.iter().any(draws);
            let is_seen = |place: &&(f64, f64)| match shape.part {
                Part::Mark => self.x.holds(place.0),
                Part::Shade => self.x.draws(place.0),
                // Lengths on a logarithmic axis would say nothing.
                Part::Bar => has_floor && self.y.scale == Scale::Linear,
                // What an axis cannot show lies at its lower end.
                Part::Band | Part::Steps | Part::Outline | Part::Whisker => has_floor,
                _ => draws(place),
            };
            places.iter().filter(is_seen).map(|place| self.at(*place)).collect()
        };
        let all: Vec<Vec<At>> = match &shape.form {
            Form::Paths(paths) => paths.iter().map(|places| path(places)).collect(),
            Form::Stamps(points) => points.iter().map(|p| path(&[(p.x, p.y)])).collect(),
        };
        all.into_iter().filter(|path| !path.is_empty()).collect()
    }
}

/// A figure on its page.
pub(crate) struct Chart<'a> {
    pub(crate) height: f64,
    pub(crate) axes: Axes,
    pub(crate) entries: Vec<Entry<'a>>,
    pub(crate) items: Vec<Item>,
    pub(crate) texts: Vec<Text>,
    /// Places of the ticks, along the lower and the left side of the plot.
    pub(crate) across: Vec<f64>,
    pub(crate) up: Vec<f64>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) cells: Vec<Cell>,
    /// How many points are not drawn, and why.
    pub(crate) left_out: Option<String>,
}

/// Lays a figure out; `runs` are the names of the runs that it is of, `note` stands below it.
pub(crate) fn layout<'a>(
    figure: &'a Figure,
    runs: &[String],
    note: &str,
    medium: &Medium,
) -> Chart<'a> {
    let entries = entries(figure.series(), runs);
    let shapes = shapes(figure, &entries);
    let map = match &figure.body {
        Body::Map(map) => MapFrame::of(figure, map).map(|frame| (map, frame)),
        Body::Series(_) => None,
    };
    let (x, y) = match &map {
        Some((_, frame)) => (frame.x.clone(), frame.y.clone()),
        None => rulers(figure, &shapes),
    };
    let turned = figure.x.unit == Unit::Names && map.is_none();
    let (upright, across) = if turned { (&x, &y) } else { (&y, &x) };
    let places = |ruler: &Ruler, at: &[f64], every: usize| -> Vec<Tick> {
        let tick = |at: &f64| Tick { at: *at, label: ruler.say(*at) };
        at.iter().step_by(every).map(tick).collect()
    };

    let mut page = Page { medium, y: medium.margin, texts: Vec::new() };
    if !medium.bare {
        page.lines(&clean(&figure.title), Kind::Title, 3);
    }
    let items = match &map {
        Some((_, frame)) => shades(&frame.values),
        None => legend(&entries, turned),
    };
    let items = if medium.bare { items } else { page.flow(items) };
    page.lines(&upright.title, Kind::Upright, 1);
    let up = match &map {
        Some((map, frame)) => places(&frame.y, &map.ys, 1),
        None => upright.ticks(medium.ticks),
    };
    let values = values(&entries, &Lanes::of(figure, &entries), &y, turned);
    let widest = |texts: &mut dyn Iterator<Item = &String>, kind, most: f64| {
        texts.map(|text| medium.width_of(text, kind)).fold(0.0, f64::max).min(most)
    };
    let names = widest(&mut up.iter().map(|tick| &tick.label), Kind::Tick, medium.longest);
    let most = 0.4 * medium.width;
    let beside = widest(&mut values.iter().map(|(_, words)| words), Kind::Value, most);
    let left = medium.margin + names + medium.gap;
    let right = (medium.width - medium.margin - medium.gap - beside).max(left + 1.0);
    let ticks = that_do_not_touch(across, right - left, medium, |most| match &map {
        Some((map, frame)) => places(&frame.x, &map.xs, map.xs.len().div_ceil(most)),
        None => across.ticks(most),
    });

    let mut axes = Axes { left, right, top: 0.0, bottom: 0.0, x: x.clone(), y: y.clone(), turned };
    if !turned {
        page.labels(figure, &axes);
    }
    let lanes = Lanes::of(figure, &entries).count as f64;
    let height = match &map {
        _ if turned => (x.high - x.low) * (medium.name.0 + medium.name.1 * (lanes - 1.0)),
        Some((map, _)) => map.ys.len() as f64 * medium.name.0,
        None => medium.plot,
    };
    axes.top = page.y;
    axes.bottom = page.y + height.min(10.0 * medium.plot);
    page.y = axes.bottom + medium.below;
    let up_at = page.ticks(&axes, &up, names, turned);
    let across_at = page.across(&axes, &ticks);
    for (place, words) in &values {
        let words = medium.fit(words, Kind::Value, beside);
        let at = (right + medium.gap, axes.at(*place).1);
        page.put(words, at, Anchor::Left, Kind::Value);
    }
    let (count, lost) = left_out(&entries, &x, &y);
    if map.is_none() && lost == count {
        let middle = ((left + right) / 2.0, (axes.top + axes.bottom) / 2.0);
        page.put("nothing to draw".to_string(), middle, Anchor::Middle, Kind::Nothing);
    }
    let cells = map.iter().flat_map(|(map, frame)| cells(&axes, map, frame, medium)).collect();
    let why = match [&x, &y].into_iter().any(|ruler| ruler.scale == Scale::Log) {
        true => "not above zero, so not on a logarithmic axis",
        false => "not a number that can be drawn",
    };
    let left_out = (lost > 0).then(|| format!("{lost} of {count} points left out: {why}."));
    if !medium.bare {
        let notes = [Some(clean(note)), left_out.clone()];
        page.lines(&notes.into_iter().flatten().collect::<Vec<_>>().join(" "), Kind::Note, 5);
    }
    let (height, texts) = (page.y + medium.margin, page.texts);
    Chart {
        height,
        axes,
        entries,
        items,
        texts,
        across: across_at,
        up: up_at,
        shapes,
        cells,
        left_out,
    }
}

/// Both rulers, as long as what is drawn along them.
fn rulers(figure: &Figure, shapes: &[Shape]) -> (Ruler, Ruler) {
    let of_series = || shapes.iter().filter(|shape| shape.series.is_some());
    let (xs, ys): (Vec<f64>, Vec<f64>) = of_series().flat_map(Shape::places).unzip();
    // A scale that draws an interval's end but no value would be of no use.
    let values =
        of_series().filter(|shape| !matches!(shape.part, Part::Band | Part::Cap | Part::Whisker));
    let values: Vec<f64> = values.flat_map(Shape::places).map(|(_, y)| y).collect();
    let scale = Ruler::new(&figure.y, &values).scale;
    (Ruler::new(&figure.x, &xs), Ruler::new(&Axis { scale, ..figure.y.clone() }, &ys))
}

/// How many points there are, and how many of them cannot be drawn. A class without any is drawn as that.
fn left_out(entries: &[Entry], x: &Ruler, y: &Ruler) -> (usize, usize) {
    let points =
        || entries.iter().flat_map(|e| e.series.points.iter().map(move |p| (e.series.role, p)));
    let lost = |(role, p): &(Role, &Point)| {
        !x.draws(p.x) || !(y.draws(p.y) || (*role == Role::Steps && p.y == 0.0))
    };
    (points().count(), points().filter(lost).count())
}

/// One item for each series, and one for all laws. A series alone needs none, nor a published value that has
/// a name on the axis.
fn legend(entries: &[Entry], turned: bool) -> Vec<Item> {
    let is_named = |entry: &Entry| {
        turned && entry.series.role == Role::Published && entry.series.points.len() == 1
    };
    let of_entry = |(index, entry): (usize, &Entry)| {
        let follows = |other: &Entry| other.follows && other.colour == entry.colour;
        let own = |(other, e): &(usize, &Entry)| *other == index || follows(e);
        let series = entries.iter().enumerate().filter(own).map(|(other, _)| other).collect();
        let sample = Sample::Series(entry.series.role, entry.colour);
        Item { sample, name: entry.name.clone(), series, at: (0.0, 0.0) }
    };
    let named = entries.iter().enumerate();
    let named = named.filter(|(_, entry)| !entry.follows && !is_named(entry));
    let mut items: Vec<Item> = named.map(of_entry).collect();
    for (role, name) in followers(entries) {
        let all = entries.iter().enumerate().filter(|(_, e)| e.follows && e.series.role == role);
        let series = all.map(|(index, _)| index).collect();
        items.push(Item {
            sample: Sample::All(role),
            name: name.to_string(),
            series,
            at: (0.0, 0.0),
        });
    }
    if items.len() < 2 {
        items.clear();
    }
    items
}

/// What the colours of a map mean.
fn shades(values: &Ruler) -> Vec<Item> {
    let item = |share: Option<f64>, name: String| Item {
        sample: Sample::Shade(share),
        name,
        series: Vec::new(),
        at: (0.0, 0.0),
    };
    let steps = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];
    let mut items = steps.map(|at| item(Some(at), values.say(values.value(at)))).to_vec();
    items.push(item(None, "not measured or not resolved".to_string()));
    items
}

/// The values of bars in words, each with its place.
fn values(entries: &[Entry], lanes: &Lanes, y: &Ruler, turned: bool) -> Vec<((f64, f64), String)> {
    let points = entries.iter().enumerate().filter(|_| turned);
    let points = points.flat_map(|(index, entry)| lanes.points(index, entry));
    let told = |point: &Point| {
        let value = y.say(point.y);
        let words = match point.interval() {
            Some((low, high)) => format!("{value} ({} to {})", y.say(low), y.say(high)),
            None => value,
        };
        ((point.x, point.y), words)
    };
    points.filter(|point| y.draws(point.y)).map(|point| told(&point)).collect()
}

fn cells(axes: &Axes, map: &Map, frame: &MapFrame, medium: &Medium) -> Vec<Cell> {
    let mut all = Vec::new();
    for (row, up) in map.values.iter().zip(frame.y_edges.windows(2)) {
        for (value, across) in row.iter().zip(frame.x_edges.windows(2)) {
            let (low, high) = (axes.at((across[0], up[0])), axes.at((across[1], up[1])));
            let value = value.filter(|value| frame.values.draws(*value));
            let words = value.map_or(String::new(), |value| frame.values.say(value));
            let fits = medium.width_of(&words, Kind::Cell) + medium.gap / 2.0 <= high.0 - low.0
                && low.1 - high.1 >= (medium.row)(Kind::Cell);
            let share = value.map(|value| frame.values.position(value));
            all.push(Cell { low, high, share, words: if fits { words } else { String::new() } });
        }
    }
    all
}

/// As many ticks as have room side by side.
fn that_do_not_touch(
    ruler: &Ruler,
    room: f64,
    medium: &Medium,
    ticks: impl Fn(usize) -> Vec<Tick>,
) -> Vec<Tick> {
    let half = |tick: &Tick| medium.width_of(&tick.label, Kind::Tick) / 2.0;
    let touch = |two: &[Tick]| {
        let apart = (ruler.position(two[1].at) - ruler.position(two[0].at)) * room;
        apart < half(&two[0]) + half(&two[1]) + medium.gap
    };
    let fits = |ticks: &Vec<Tick>| !ticks.windows(2).any(touch);
    (1..=11).rev().map(ticks).find(fits).unwrap_or_default()
}

impl Medium {
    /// The width of a text.
    pub(crate) fn width_of(&self, text: &str, kind: Kind) -> f64 {
        (self.measure)(text, kind)
    }

    /// As much of a text as fits.
    pub(crate) fn fit(&self, text: &str, kind: Kind, room: f64) -> String {
        if self.width_of(text, kind) <= room {
            return text.to_string();
        }
        // Where each character ends; no page is as wide as what is left out here.
        let ends = text.char_indices().map(|(start, c)| start + c.len_utf8()).take(400);
        let ends: Vec<usize> = ends.collect();
        let shortened = |end: &usize| format!("{}{}", text[..*end].trim_end(), self.cut);
        let fitting = ends.partition_point(|end| self.width_of(&shortened(end), kind) <= room);
        fitting.checked_sub(1).map_or(String::new(), |last| shortened(&ends[last]))
    }
}

/// A page that is written from top to bottom.
struct Page<'a> {
    medium: &'a Medium,
    /// Where the next row begins.
    y: f64,
    texts: Vec<Text>,
}

impl Page<'_> {
    fn put(&mut self, words: String, at: At, anchor: Anchor, kind: Kind) {
        self.texts.push(Text { words, at, anchor, kind, of: None });
    }

    /// Words in as many lines as they need, up to `most`.
    fn lines(&mut self, words: &str, kind: Kind, most: usize) {
        let medium = self.medium;
        let room = medium.width - 2.0 * medium.margin;
        let mut lines: Vec<String> = Vec::new();
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            let word = medium.fit(word, kind, room);
            match lines.last_mut() {
                Some(line) if medium.width_of(&format!("{line} {word}"), kind) <= room => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        let row = (medium.row)(kind);
        for line in lines.into_iter().take(most) {
            self.put(line, (medium.margin, self.y + row / 2.0), Anchor::Left, kind);
            self.y += row;
        }
    }

    /// Puts the items of a legend side by side, in as many rows as they need.
    fn flow(&mut self, mut items: Vec<Item>) -> Vec<Item> {
        let medium = self.medium;
        let (row, end) = ((medium.row)(Kind::Key), medium.width - medium.margin);
        let mut x = medium.margin;
        for item in &mut items {
            let room = end - medium.margin - medium.sample;
            let name = medium.fit(&item.name, Kind::Key, room);
            let wide = medium.sample + medium.width_of(&name, Kind::Key);
            if x > medium.margin && x + wide > end {
                (x, self.y) = (medium.margin, self.y + row);
            }
            item.at = (x, self.y + row / 2.0);
            self.put(name, (x + medium.sample, item.at.1), Anchor::Left, Kind::Key);
            x += wide + 2.0 * medium.gap;
        }
        if !items.is_empty() {
            self.y += row;
        }
        items
    }

    /// The labels of marks, and below them those of regions, in rows in which they do not touch. Those that
    /// have no room are left to the words beside the chart.
    fn labels(&mut self, figure: &Figure, axes: &Axes) {
        let x = &axes.x;
        let seen = |from: f64, to: f64| from <= to && to >= x.low && from <= x.high;
        let sane = |from: f64, to: f64| x.draws(from) && x.draws(to) && seen(from, to);
        let marks = figure.marks.iter().filter(|mark| sane(mark.x, mark.x));
        let marks = marks.map(|mark| (Kind::Mark, (mark.x, mark.x), &mark.label)).collect();
        let regions = figure.regions.iter().filter(|of| of.from < of.to && sane(of.from, of.to));
        let regions = regions.map(|of| (Kind::Region, (of.from, of.to), &of.label)).collect();
        self.in_rows(marks, axes);
        self.in_rows(regions, axes);
    }

    fn in_rows(&mut self, labels: Vec<(Kind, (f64, f64), &String)>, axes: &Axes) {
        let medium = self.medium;
        let middle = |(from, to)| {
            (axes.x.position(from) + axes.x.position(to)) / 2.0 * (axes.right - axes.left)
        };
        let fitted = |(kind, of, label): (Kind, (f64, f64), &String)| {
            let words = medium.fit(&clean(label), kind, 0.4 * medium.width);
            Text { words, at: (middle(of), 0.0), anchor: Anchor::Left, kind, of: Some(of) }
        };
        let mut labels: Vec<Text> = labels.into_iter().map(fitted).collect();
        labels.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
        let span = |label: &Text| (label.at.0, medium.width_of(&label.words, label.kind));
        let spans: Vec<(f64, f64)> = labels.iter().map(span).collect();
        let placed = rows(&spans, axes.right - axes.left, medium.gap, medium.rows);
        let row = (medium.row)(Kind::Mark);
        self.y += row * used(&placed) as f64;
        for (mut label, placed) in labels.into_iter().zip(placed) {
            let Some(placed) = placed else { continue };
            label.at = (axes.left + placed.start, self.y - row * (placed.row as f64 + 0.5));
            self.texts.push(label);
        }
    }

    /// The labels of the vertical axis; gives the places of its ticks.
    fn ticks(&mut self, axes: &Axes, ticks: &[Tick], room: f64, turned: bool) -> Vec<f64> {
        let medium = self.medium;
        let place = |tick: &Tick| match turned {
            true => axes.at((tick.at, 0.0)).1,
            false => axes.at((0.0, tick.at)).1,
        };
        for tick in ticks {
            let label = medium.fit(&tick.label, Kind::Tick, room);
            self.put(label, (axes.left - medium.gap, place(tick)), Anchor::Right, Kind::Tick);
        }
        ticks.iter().map(place).collect()
    }

    /// The labels of the horizontal axis and its title; gives the places of its ticks.
    fn across(&mut self, axes: &Axes, ticks: &[Tick]) -> Vec<f64> {
        let ruler = if axes.turned { &axes.y } else { &axes.x };
        let place = |tick: &Tick| axes.left + ruler.position(tick.at) * (axes.right - axes.left);
        let row = (self.medium.row)(Kind::Across);
        for tick in ticks {
            // The first and the last stay on the page.
            let half = self.medium.width_of(&tick.label, Kind::Tick) / 2.0;
            let x = place(tick).min(self.medium.width - half).max(half);
            self.put(tick.label.clone(), (x, self.y), Anchor::Middle, Kind::Tick);
        }
        let room = self.medium.width - 2.0 * self.medium.margin;
        let title = self.medium.fit(&ruler.title, Kind::Across, room);
        let half = self.medium.width_of(&title, Kind::Across) / 2.0;
        let end = self.medium.width - self.medium.margin - half;
        let middle = f64::midpoint(axes.left, axes.right).min(end);
        self.put(title, (middle, self.y + row), Anchor::Middle, Kind::Across);
        self.y += 1.5 * row;
        ticks.iter().map(place).collect()
    }
}
