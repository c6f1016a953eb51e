//! Charts as text: the shape of a curve at a glance, its numbers being in the table above.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::figure::{Figure, Point, Role, Scale, Unit};
use crate::layout::{Anchor, At, Axes, Chart, Kind, Medium, Sample, Text, layout};
use crate::shapes::{Form, Part, Shape};
use crate::text::clean;

/// Narrower than this, nothing can be seen.
const NARROWEST: usize = 30;
/// No plot has more lines.
const TALLEST: usize = 400;
/// Dots of braille in a cell.
const DOTS: (f64, f64) = (2.0, 4.0);

/// How a plot may look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Columns that it may take.
    pub columns: usize,
    /// Whether series have colours. Their symbols tell them apart without.
    pub colour: bool,
    /// Whether there is more than ASCII.
    pub unicode: bool,
}

/// A figure as lines of text, none wider than the look has columns.
pub fn terminal(figure: &Figure, runs: &[String], look: &Look) -> String {
    let columns = look.columns.clamp(1, 400);
    let medium = Medium {
        width: columns as f64,
        margin: 0.0,
        row: |_| 1.0,
        plot: 16.0,
        name: (1.0, 1.0),
        below: 1.5,
        gap: 2.0,
        sample: 3.0,
        ticks: 6,
        longest: (columns / 3) as f64,
        rows: 3,
        bare: false,
        measure: |text, _| text.width() as f64,
        cut: "..",
    };
    let signs = if look.unicode { &UNICODE } else { &ASCII };
    let mut page = Page { columns, signs, cells: Vec::new() };
    if columns < NARROWEST {
        let title: String = clean(&figure.title).chars().take(200).collect();
        let few = format!("no plot: {columns} columns are too few ({NARROWEST})");
        page.wrapped(&[title, few].join(" "));
        return page.text(look);
    }
    let mut points = figure.series().iter().flat_map(|series| &series.points);
    let note = match figure.x.unit != Unit::Names && points.any(|p| p.interval().is_some()) {
        true => format!("{} interval", signs.upright),
        false => String::new(),
    };
    let chart = layout(figure, runs, &note, &medium);
    page.draw(&chart);
    page.text(look)
}

/// The characters that plots are made of.
struct Signs {
    points: [char; 8],
    upright: char,
    across: char,
    corner: char,
    up_tick: char,
    across_tick: char,
    block: char,
    ends: [char; 2],
    /// From little to much.
    shades: [char; 4],
    unknown: char,
    law: &'static str,
    projected: &'static str,
    published: &'static str,
}

const UNICODE: Signs = Signs {
    points: ['●', '■', '▲', '◆', '▼', '○', '□', '△'],
    upright: '│',
    across: '─',
    corner: '└',
    up_tick: '┤',
    across_tick: '┬',
    block: '█',
    ends: ['├', '┤'],
    shades: ['░', '▒', '▓', '█'],
    unknown: '·',
    law: "──",
    projected: "╌╌",
    published: "··",
};

const ASCII: Signs = Signs {
    points: ['o', 'x', '+', '*', '#', '@', '%', '&'],
    upright: '|',
    across: '-',
    corner: '+',
    up_tick: '+',
    across_tick: '+',
    block: '=',
    ends: ['<', '>'],
    shades: ['.', ':', '+', '#'],
    unknown: '?',
    law: "--",
    projected: "- ",
    published: "..",
};

impl Signs {
    fn point(&self, number: usize) -> String {
        self.points[number % self.points.len()].to_string()
    }

    fn shade(&self, share: Option<f64>) -> char {
        let place = share.map(|share| (share * 3.0).round() as usize);
        place.and_then(|place| self.shades.get(place)).copied().unwrap_or(self.unknown)
    }

    fn sample(&self, sample: Sample) -> String {
        match sample {
            Sample::Shade(share) => self.shade(share).to_string(),
            Sample::All(role) | Sample::Series(role, _) if role == Role::Law => self.law.into(),
            Sample::All(_) | Sample::Series(Role::Projected, _) => self.projected.into(),
            Sample::Series(Role::Published, _) => self.published.into(),
            Sample::Series(Role::Steps | Role::Bars, _) => self.block.into(),
            Sample::Series(_, number) => self.point(number),
        }
    }
}

/// Parameters of the escape sequence for a colour; none for the terminal's own.
type Colour = Option<u8>;

/// Colours that are read on dark and on light: cyan, magenta, yellow, green, red, blue.
const SERIES: [u8; 6] = [36, 35, 33, 32, 31, 34];
/// Of what is no series: grey.
const SOFT: Colour = Some(90);

fn colour(number: usize) -> Colour {
    Some(SERIES[number % SERIES.len()])
}

/// What stands in the second column of a wide character.
const COVERED: char = '\0';

/// Cells of characters, as wide as the terminal.
struct Page {
    columns: usize,
    signs: &'static Signs,
    cells: Vec<Vec<(char, Colour)>>,
}

impl Page {
    /// Writes at a place; what is beyond the right edge is cut.
    fn put(&mut self, mut column: usize, line: usize, text: &str, colour: Colour) {
        if line >= TALLEST {
            return;
        }
        if self.cells.len() <= line {
            self.cells.resize(line + 1, vec![(' ', None); self.columns]);
        }
        let cells = &mut self.cells[line];
        for letter in text.chars() {
            let wide = letter.width().unwrap_or(0);
            if wide == 0 || column + wide > cells.len() {
                continue;
            }
            // Half of a wide character is none.
            if cells[column].0 == COVERED && column > 0 {
                cells[column - 1].0 = ' ';
            }
            if let Some(after) = cells.get_mut(column + wide).filter(|cell| cell.0 == COVERED) {
                after.0 = ' ';
            }
            cells[column] = (letter, colour);
            cells[column + 1..column + wide].fill((COVERED, colour));
            column += wide;
        }
    }

    /// Adds a dot of braille, or a character where there is none.
    fn dot(&mut self, (x, y): (usize, usize), ascii: char, colour: Colour) {
        let bits = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let (column, line) = (x / 2, y / 4);
        let sign = if self.signs.corner == ASCII.corner {
            ascii
        } else {
            let there = self.cells.get(line).and_then(|cells| cells.get(column));
            let there = there.map_or(' ', |cell| cell.0) as u32;
            let dots = if (0x2800..0x2900).contains(&there) { there } else { 0x2800 };
            char::from_u32(dots | bits[x % 2][y % 4]).unwrap_or(ascii)
        };
        self.put(column, line, &sign.to_string(), colour);
    }

    fn draw(&mut self, chart: &Chart) {
        for cell in &chart.cells {
            let sign = self.signs.shade(cell.share).to_string();
            let (from, to) = (cell.low.0.round() as usize, cell.high.0.round() as usize);
            let wide = to.saturating_sub(from + 1).max(1);
            for line in cell.high.1.round() as usize..cell.low.1.round() as usize {
                match cell.share {
                    Some(_) => self.put(from, line, &sign.repeat(wide), None),
                    None => self.put(from + wide / 2, line, &sign, None),
                }
            }
            let line = f64::midpoint(cell.low.1, cell.high.1) as usize;
            let spare = wide.saturating_sub(cell.words.width());
            self.put(from + spare / 2, line, &cell.words, None);
        }
        let plot = Plot { axes: &chart.axes, chart };
        let shapes = || chart.shapes.iter();
        let mark = |shape: &&Shape| shape.part == Part::Mark;
        shapes().filter(mark).for_each(|shape| plot.shape(self, shape));
        shapes().filter(|shape| !mark(shape)).for_each(|shape| plot.shape(self, shape));
        plot.points(self);
        plot.frame(self);
        for item in &chart.items {
            let number = match item.sample {
                Sample::Series(_, number) => colour(number),
                Sample::All(_) => SOFT,
                Sample::Shade(_) => None,
            };
            let sign = self.signs.sample(item.sample);
            self.put(item.at.0 as usize, item.at.1 as usize, &sign, number);
        }
        let regions = |text: &&Text| text.kind == Kind::Region;
        chart.texts.iter().filter(regions).for_each(|text| plot.span(self, text));
        chart.texts.iter().for_each(|text| plot.write(self, text));
    }

    fn wrapped(&mut self, words: &str) {
        let (mut column, mut line) = (0, 0);
        for letter in words.chars() {
            let wide = letter.width().unwrap_or(0);
            if column + wide > self.columns {
                (column, line) = (0, line + 1);
            }
            self.put(column, line, &letter.to_string(), None);
            column += wide;
        }
    }

    /// The page as lines, without blanks at their ends.
    fn text(&self, look: &Look) -> String {
        let mut text = String::new();
        for cells in &self.cells {
            let end = cells.iter().rposition(|cell| !matches!(cell.0, ' ' | '\u{2800}'));
            let mut now = None;
            for (letter, wanted) in cells.iter().take(end.map_or(0, |end| end + 1)) {
                if look.colour && *letter != ' ' && *wanted != now {
                    // Each from the start, so that none inherits from the one before.
                    text.push_str("\x1b[0m");
                    text.extend(wanted.map(|colour| format!("\x1b[{colour}m")));
                    now = *wanted;
                }
                match letter {
                    &COVERED => {}
                    letter if look.unicode || letter.is_ascii() => text.push(*letter),
                    _ => text.push('?'),
                }
            }
            if now.is_some() {
                text.push_str("\x1b[0m");
            }
            text.push('\n');
        }
        text
    }
}

/// What lies between the axes.
struct Plot<'a> {
    axes: &'a Axes,
    chart: &'a Chart<'a>,
}

impl Plot<'_> {
    /// The dot that is nearest to a place.
    fn dot(&self, (x, y): At) -> (usize, usize) {
        let Axes { left, right, top, bottom, .. } = self.axes;
        let nearest = |value: f64, low: f64, high: f64, dots: f64| {
            let share = ((value - low) / (high - low).max(1.0)).clamp(0.0, 1.0);
            (low * dots + (share * ((high - low) * dots - 1.0)).round()) as usize
        };
        (nearest(x, *left, *right, DOTS.0), nearest(y, *top, *bottom, DOTS.1))
    }

    /// The column and the line of a place.
    fn cell(&self, at: At) -> (usize, usize) {
        let (x, y) = self.dot(at);
        (x / 2, y / 4)
    }

    fn shape(&self, page: &mut Page, shape: &Shape) {
        let entry = shape.series.and_then(|index| self.chart.entries.get(index));
        let role = entry.map(|entry| entry.series.role);
        let ink = entry.map_or(SOFT, |entry| colour(entry.colour));
        let every: fn(usize) -> bool = match (shape.part, role) {
            (Part::Mark, _) => |place| place.is_multiple_of(3),
            (Part::Line, Some(Role::Projected)) => |place| place % 8 < 5,
            (Part::Line, Some(Role::Published)) => |place| place.is_multiple_of(4),
            _ => |_| true,
        };
        for path in self.axes.paths(shape) {
            match shape.part {
                Part::Mark => self.line(page, &path, every, ':', ink),
                Part::Line if !self.has_law(shape) => self.line(page, &path, every, '.', ink),
                Part::Steps => self.steps(page, &path, ink),
                Part::Bar => self.bar(page, &path, ink),
                _ => {}
            }
        }
    }

    /// A line under a law of the same colour would only hide it.
    fn has_law(&self, shape: &Shape) -> bool {
        let entry = shape.series.and_then(|index| self.chart.entries.get(index));
        entry.filter(|entry| entry.series.role == Role::Measured).is_some_and(|entry| {
            let law = |e: &crate::legend::Entry| e.follows && e.series.role == Role::Law;
            self.chart.entries.iter().any(|other| law(other) && other.colour == entry.colour)
        })
    }

    fn line(
        &self,
        page: &mut Page,
        path: &[At],
        every: fn(usize) -> bool,
        ascii: char,
        ink: Colour,
    ) {
        let mut place = 0;
        for two in path.windows(2) {
            let (from, to) = (self.dot(two[0]), self.dot(two[1]));
            let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                let at = |from: usize, to: usize| {
                    (from as f64 + share * (to as f64 - from as f64)).round() as usize
                };
                if every(place) {
                    page.dot((at(from.0, to.0), at(from.1, to.1)), ascii, ink);
                }
                place += 1;
            }
        }
    }

    /// Counts by class, filled: every two places between the first and the last are a class's top.
    fn steps(&self, page: &mut Page, path: &[At], ink: Colour) {
        let (_, floor) = self.dot(path[0]);
        for top in path[1..].chunks_exact(2) {
            let ((from, high), (to, _)) = (self.dot(top[0]), self.dot(top[1]));
            for x in from..to.max(from + 1) {
                (high..=floor).filter(|_| high < floor).for_each(|y| page.dot((x, y), '#', ink));
            }
        }
    }

    fn bar(&self, page: &mut Page, path: &[At], ink: Colour) {
        let middle = path.iter().map(|(_, y)| y).sum::<f64>() / path.len() as f64;
        let columns: Vec<usize> = path.iter().map(|(x, _)| self.cell((*x, middle)).0).collect();
        let (from, to) = (columns.iter().min(), columns.iter().max());
        let (Some(from), Some(to)) = (from, to) else { return };
        let (_, line) = self.cell((0.0, middle));
        page.put(*from, line, &page.signs.block.to_string().repeat(to - from + 1), ink);
    }

    /// Symbols over all lines, and behind them their intervals.
    fn points(&self, page: &mut Page) {
        for shape in self.chart.shapes.iter().filter(|shape| shape.part == Part::Points) {
            let (Form::Stamps(points), Some(index)) = (&shape.form, shape.series) else { continue };
            let entry = &self.chart.entries[index];
            let (role, ink) = (entry.series.role, colour(entry.colour));
            let drawn = |p: &&Point| self.axes.x.draws(p.x) && self.axes.y.draws(p.y);
            points.iter().filter(drawn).for_each(|point| self.interval(page, point, ink));
            let is_seen = match role {
                Role::Published => self.axes.turned,
                Role::Bars => self.axes.y.scale == Scale::Log,
                _ => true,
            };
            for point in points.iter().filter(drawn).filter(|_| is_seen) {
                let (column, line) = self.cell(self.axes.at((point.x, point.y)));
                page.put(column, line, &page.signs.point(entry.colour), ink);
            }
        }
    }

    fn interval(&self, page: &mut Page, point: &Point, ink: Colour) {
        let Some((low, high)) = point.interval().filter(|(_, high)| self.axes.y.draws(*high))
        else {
            return;
        };
        let ends = [low, high].map(|end| self.axes.at((point.x, end)));
        if !self.axes.turned {
            return self.line(page, &ends, |_| true, '|', ink);
        }
        let [(from, line), (to, _)] = ends.map(|end| self.cell(end));
        if to > from {
            let across = page.signs.across.to_string().repeat(to - from - 1);
            let [start, end] = page.signs.ends;
            page.put(from, line, &format!("{start}{across}{end}"), None);
        }
    }

    fn frame(&self, page: &mut Page) {
        let Axes { left, right, top, bottom, .. } = *self.axes;
        let (left, bottom) = (left as usize - 1, bottom as usize);
        let signs = page.signs;
        (top as usize..bottom)
            .for_each(|line| page.put(left, line, &signs.upright.to_string(), SOFT));
        let across = signs.across.to_string().repeat(right as usize - left - 1);
        page.put(left, bottom, &format!("{}{across}", signs.corner), SOFT);
        for y in &self.chart.up {
            let (_, line) = self.cell((0.0, *y));
            page.put(left, line, &signs.up_tick.to_string(), SOFT);
        }
        for x in &self.chart.across {
            let (column, _) = self.cell((*x, 0.0));
            page.put(column, bottom, &signs.across_tick.to_string(), SOFT);
        }
    }

    /// From where to where a region reaches.
    fn span(&self, page: &mut Page, text: &Text) {
        let Some((from, to)) = text.of else { return };
        let column = |x: f64| self.cell(self.axes.at((x, 0.0))).0;
        let (from, to) = (column(from), column(to));
        if to > from {
            let across = page.signs.across.to_string().repeat(to - from - 1);
            let [start, end] = page.signs.ends;
            page.put(from, text.at.1 as usize, &format!("{start}{across}{end}"), SOFT);
        }
    }

    fn write(&self, page: &mut Page, text: &Text) {
        let wide = text.words.width();
        let column = match text.anchor {
            Anchor::Left => text.at.0,
            Anchor::Middle => self.middle(text) - (wide / 2) as f64,
            Anchor::Right => text.at.0 - wide as f64,
        };
        let line = match (text.kind, text.anchor) {
            (Kind::Tick, Anchor::Right) | (Kind::Value, _) => self.cell(text.at).1,
            _ => text.at.1 as usize,
        };
        let ink = match text.kind {
            Kind::Upright | Kind::Across | Kind::Note => SOFT,
            _ => None,
        };
        page.put(column.max(0.0).round() as usize, line, &text.words, ink);
    }

    /// The column of a tick is that of what is drawn there.
    fn middle(&self, text: &Text) -> f64 {
        match text.kind {
            Kind::Tick => self.cell(text.at).0 as f64,
            _ => text.at.0,
        }
    }
}
