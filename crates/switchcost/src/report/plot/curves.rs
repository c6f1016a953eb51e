//! Series over axes of numbers.

use model::figure::{Figure, Point, Role, Scale, Series};
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::widgets::Widget;
use ratatui::widgets::canvas::{Canvas, Context, Line, Points};

use super::Look;
use super::ink::{self, SOFT, Signs};
use super::page::{Page, fit, width};
use super::words;
use crate::report::drawing::{
    Entry, Frame, Placed, Ruler, Tick, clean, end_of_last, entries, rows, used,
};

/// Lines of a plot.
const HEIGHT: u16 = 16;
/// Lines for labels of marks above it.
const MOST_ROWS: usize = 3;
/// Dots of braille in a cell.
const DOTS: (usize, usize) = (2, 4);

pub(super) fn draw(page: &mut Page, figure: &Figure, all: &[Series], runs: &[String], look: &Look) {
    let frame = Frame::of(figure, all);
    let entries = entries(all, runs);
    let signs = Signs::of(look);
    if frame.left_out == frame.points {
        words::nothing(page, "there is no point that can be drawn");
        return;
    }
    words::legend(page, &entries, signs);
    let room = usize::from(page.columns);
    page.put(0, &fit(&frame.y.title, room), SOFT);
    page.end_line();
    let up = frame.y.ticks(6);
    let longest = up.iter().map(|tick| width(&tick.label)).max().unwrap_or(0).min(12);
    let left = longest + 2;
    let plot = Plot { frame: &frame, signs, look, left, wide: room.saturating_sub(left + 1) };
    let unplaced = plot.labels(page, figure);
    let (area, cells) = page.cells(left, plot.wide, HEIGHT);
    let canvas = Canvas::default().x_bounds([0.0, 1.0]).y_bounds([0.0, 1.0]);
    canvas.paint(|context| plot.lines(context, figure, &entries)).render(area, cells);
    plot.symbols(page, &entries);
    plot.upright(page, &up, longest);
    page.skip(HEIGHT);
    plot.across(page);
    words::missing(page, &frame);
    if !unplaced.is_empty() {
        page.words(&format!("Marked too: {}.", unplaced.join(", ")), SOFT, 3);
    }
}

struct Plot<'a> {
    frame: &'a Frame,
    signs: &'static Signs,
    look: &'a Look,
    /// Columns to the left of it, the axis among them.
    left: usize,
    wide: usize,
}

/// What stands above a place of the axis.
struct Label {
    shown: String,
    middle: f64,
    words: String,
}

impl Plot<'_> {
    /// The column of a value of x within the plot.
    fn column(&self, x: f64) -> usize {
        nearest(self.frame.x.position(x), self.wide * DOTS.0) / DOTS.0
    }

    /// The line of a value of y within the plot.
    fn row(&self, y: f64) -> u16 {
        let row = nearest(1.0 - self.frame.y.position(y), usize::from(HEIGHT) * DOTS.1) / DOTS.1;
        u16::try_from(row).unwrap_or(HEIGHT - 1)
    }

    /// The labels of marks and regions above the plot; gives those that have no place.
    fn labels(&self, page: &mut Page, figure: &Figure) -> Vec<String> {
        let x = &self.frame.x;
        let middle = |value: f64| self.column(value) as f64 + 0.5;
        let marks = figure.marks.iter().filter(|mark| x.holds(mark.x));
        let marks: Vec<Label> = marks
            .map(|mark| {
                let words = clean(&mark.label);
                Label { shown: words.clone(), middle: middle(mark.x), words }
            })
            .collect();
        let sane = |from: f64, to: f64| from < to && x.draws(from) && x.draws(to);
        let seen = figure.regions.iter().filter(|of| sane(of.from, of.to));
        let seen = seen.filter(|of| of.from < x.high && of.to > x.low);
        let regions: Vec<Label> = seen
            .map(|of| Label {
                shown: self.span(of.from, of.to, &of.label),
                middle: (middle(of.from) + middle(of.to)) / 2.0,
                words: clean(&of.label),
            })
            .collect();
        let mut unplaced = self.in_rows(page, marks);
        unplaced.extend(self.in_rows(page, regions));
        unplaced
    }

    /// `|- all fits -|` as wide as the region, or as its label needs.
    fn span(&self, from: f64, to: f64, label: &str) -> String {
        let label = clean(label);
        let wide = self.column(to).saturating_sub(self.column(from)) + 1;
        let spare = wide.saturating_sub(width(&label) + 4);
        let dash = |number: usize| self.signs.across.to_string().repeat(number);
        let [start, end] = self.signs.ends;
        format!("{start}{} {label} {}{end}", dash(spare / 2), dash(spare - spare / 2))
    }

    fn in_rows(&self, page: &mut Page, mut labels: Vec<Label>) -> Vec<String> {
        labels.sort_by(|one, other| one.middle.total_cmp(&other.middle));
        let spans: Vec<(f64, f64)> =
            labels.iter().map(|label| (label.middle, width(&label.shown) as f64)).collect();
        let placed: Vec<Option<Placed>> = rows(&spans, self.wide as f64, 1.0, MOST_ROWS);
        let height = used(&placed);
        for (label, placed) in labels.iter().zip(&placed) {
            let Some(placed) = placed else { continue };
            let line = page.line + (height - 1 - placed.row) as u16;
            page.put_at(self.left + placed.start as usize, line, &label.shown, Color::Reset);
        }
        page.skip(height as u16);
        let lost = labels.into_iter().zip(placed).filter(|(_, placed)| placed.is_none());
        lost.map(|(label, _)| label.words).collect()
    }

    /// From behind to front: marks, published, laws, lines, intervals.
    fn lines(&self, context: &mut Context, figure: &Figure, entries: &[Entry]) {
        self.marker(context, if self.look.unicode { None } else { Some(':') });
        for mark in figure.marks.iter().filter(|mark| self.frame.x.holds(mark.x)) {
            let x = self.frame.x.position(mark.x);
            self.dotted(context, &[(x, 0.0), (x, 1.0)], 3, SOFT);
        }
        self.marker(context, if self.look.unicode { None } else { Some('.') });
        let has_law = |entry: &Entry| {
            let same = |other: &&Entry| other.follows && other.colour == entry.colour;
            entries.iter().find(same).is_some_and(|law| law.series.role == Role::Law)
        };
        for entry in entries {
            let colour = ink::colour(entry.colour);
            let places: Vec<(f64, f64)> = self.drawn(entry).map(|point| self.at(point)).collect();
            match entry.series.role {
                Role::Measured if has_law(entry) => {}
                Role::Measured | Role::Law => self.dotted(context, &places, 1, colour),
                Role::Projected => self.dotted(context, &places, 2, colour),
                Role::Published => self.dotted(context, &places, 4, colour),
                Role::Steps | Role::Bars => self.columns(context, entry.series, colour),
                Role::Raw => {}
            }
        }
        self.marker(context, if self.look.unicode { None } else { Some('|') });
        let measured = entries.iter().filter(|entry| entry.series.role == Role::Measured);
        for entry in measured {
            for point in self.drawn(entry) {
                let Some((low, high)) = self.interval(point) else { continue };
                let x = self.frame.x.position(point.x);
                let ends = [(x, low), (x, high)];
                self.dotted(context, &ends, 1, ink::colour(entry.colour));
            }
        }
        context.layer();
    }

    /// What the next lines are made of: braille, or a character of ASCII.
    fn marker(&self, context: &mut Context, ascii: Option<char>) {
        context.marker(ascii.map_or(Marker::Braille, Marker::Custom));
    }

    fn drawn<'e>(&self, entry: &'e Entry) -> impl Iterator<Item = &'e Point> {
        let (x, y) = (self.frame.x.clone(), self.frame.y.clone());
        entry.series.points.iter().filter(move |point| x.draws(point.x) && y.draws(point.y))
    }

    fn at(&self, point: &Point) -> (f64, f64) {
        (self.frame.x.position(point.x), self.frame.y.position(point.y))
    }

    fn interval(&self, point: &Point) -> Option<(f64, f64)> {
        let (low, high) = (point.low?, point.high?);
        let sane = low <= high && self.frame.y.draws(high) && low.is_finite();
        sane.then(|| (self.frame.y.position(low), self.frame.y.position(high)))
    }

    /// A line through places, of which every so many dots are shown.
    fn dotted(&self, context: &mut Context, places: &[(f64, f64)], every: usize, colour: Color) {
        if every == 1 {
            for two in places.windows(2) {
                let ((x1, y1), (x2, y2)) = (two[0], two[1]);
                context.draw(&Line { x1, y1, x2, y2, color: colour });
            }
            return;
        }
        let (wide, high) = (self.wide * DOTS.0, usize::from(HEIGHT) * DOTS.1);
        let mut dots: Vec<(f64, f64)> = Vec::new();
        for two in places.windows(2) {
            let (across, up) = (two[1].0 - two[0].0, two[1].1 - two[0].1);
            let steps = (across.abs() * wide as f64).max(up.abs() * high as f64).ceil().max(1.0);
            dots.extend((0..steps as usize).map(|step| {
                let share = step as f64 / steps;
                (two[0].0 + share * across, two[0].1 + share * up)
            }));
        }
        let shown = |place: usize| match every {
            2 => place % 8 < 5,
            _ => place.is_multiple_of(every),
        };
        let dots: Vec<(f64, f64)> =
            dots.into_iter().enumerate().filter(|(k, _)| shown(*k)).map(|(_, dot)| dot).collect();
        context.draw(&Points { coords: &dots, color: colour });
    }

    /// Counts by class, filled.
    fn columns(&self, context: &mut Context, series: &Series, colour: Color) {
        self.marker(context, (!self.look.unicode).then_some('#'));
        let floor = match self.frame.y.scale {
            Scale::Linear => self.frame.y.position(0.0),
            Scale::Log => 0.0,
        };
        let dots = (self.wide * DOTS.0).max(2) - 1;
        for (place, point) in series.points.iter().enumerate() {
            if !self.frame.x.draws(point.x) || !self.frame.y.draws(point.y) {
                continue;
            }
            let next = series.points.get(place + 1).map(|next| next.x);
            let end = next.or_else(|| end_of_last(series, self.frame.x.scale)).unwrap_or(point.x);
            let (from, to) = (self.frame.x.position(point.x), self.frame.x.position(end));
            let top = self.frame.y.position(point.y);
            let first = (from * dots as f64).round() as usize;
            // The next class begins where this one ends.
            let last = ((to * dots as f64).round() as usize).max(first + 1);
            for dot in first..last {
                let x = dot as f64 / dots as f64;
                context.draw(&Line { x1: x, y1: floor, x2: x, y2: top, color: colour });
            }
        }
    }

    /// Points, over all lines.
    fn symbols(&self, page: &mut Page, entries: &[Entry]) {
        let has_points = |role| matches!(role, Role::Measured | Role::Raw);
        for entry in entries.iter().filter(|entry| has_points(entry.series.role)) {
            let sign = self.signs.point(entry.colour).to_string();
            for point in self.drawn(entry) {
                let line = page.line + self.row(point.y);
                let column = self.left + self.column(point.x);
                page.put_at(column, line, &sign, ink::colour(entry.colour));
            }
        }
    }

    fn upright(&self, page: &mut Page, ticks: &[Tick], longest: usize) {
        for line in 0..HEIGHT {
            let sign = self.signs.upright.to_string();
            page.put_at(self.left - 1, page.line + line, &sign, SOFT);
        }
        for tick in ticks {
            let line = page.line + self.row(tick.at);
            let label = fit(&tick.label, longest);
            page.put_at(longest - width(&label), line, &label, Color::Reset);
            page.put_at(self.left - 1, line, &self.signs.up_tick.to_string(), SOFT);
        }
    }

    /// The axis, its numbers, and what they are of.
    fn across(&self, page: &mut Page) {
        page.put(self.left - 1, &self.signs.corner.to_string(), SOFT);
        page.put(self.left, &self.signs.across.to_string().repeat(self.wide), SOFT);
        let numbers = page.line + 1;
        for (tick, start) in self.numbers(&self.frame.x) {
            let column = self.left + self.column(tick.at);
            page.put(column, &self.signs.across_tick.to_string(), SOFT);
            page.put_at(self.left + start, numbers, &tick.label, Color::Reset);
        }
        page.skip(2);
        let title = fit(&self.frame.x.title, self.wide);
        page.put(self.left + (self.wide - width(&title)) / 2, &title, SOFT);
        page.end_line();
    }

    /// As many ticks as can be read, and where their labels begin.
    fn numbers(&self, ruler: &Ruler) -> Vec<(Tick, usize)> {
        for most in (1..=9).rev() {
            let ticks = ruler.ticks(most);
            let spans: Vec<(f64, f64)> = ticks
                .iter()
                .map(|tick| (self.column(tick.at) as f64 + 0.5, width(&tick.label) as f64))
                .collect();
            let placed = rows(&spans, self.wide as f64, 2.0, 1);
            if placed.iter().all(Option::is_some) {
                let starts = placed.into_iter().flatten().map(|placed| placed.start as usize);
                return ticks.into_iter().zip(starts).collect();
            }
        }
        Vec::new()
    }
}

/// Of so many dots the one that is nearest to a share of them.
fn nearest(share: f64, dots: usize) -> usize {
    (share * (dots.max(1) - 1) as f64).round() as usize
}
