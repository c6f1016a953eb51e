//! Charts as text: the shape of a curve; its numbers are in the table above.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::figure::{Figure, Point, PointCertainty, Role, Scale, Unit};
use crate::layout::layout;
use crate::page::{
    At, LegendSample, PageMedium, PlacedChart, PlacedText, PlotAxes, TextAnchor, TextKind,
};
use crate::shapes::{PlotShape, SeriesEntry, ShapePart};
use crate::text::clean;

/// Plots are not drawn on fewer columns.
const NARROWEST: usize = 30;
/// Dots of braille in a cell.
const DOTS: (f64, f64) = (2.0, 4.0);

/// How a plot may look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotStyle {
    /// Columns that it may take.
    pub columns: usize,
    /// Whether series have colours. Their symbols tell them apart without.
    pub colour: bool,
    /// Whether there is more than ASCII.
    pub unicode: bool,
}

/// A figure as lines of text, none wider than the look has columns.
pub fn render_text(figure: &Figure, runs: &[String], look: &PlotStyle) -> String {
    if look.columns < NARROWEST {
        return too_narrow(&clean(&figure.title), look);
    }
    let columns = look.columns.min(400);
    let medium = PageMedium {
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
    let chart = layout(figure, runs, &legend(figure), &medium);
    let mut page = TextPage { columns, look, chart: &chart, cells: Vec::new() };
    page.draw();
    page.text()
}

/// What the marks of a plot mean, beside those of its series.
fn legend(figure: &Figure) -> String {
    let points: Vec<&Point> = figure.series().iter().flat_map(|of| &of.points).collect();
    let is_by_name = figure.x.unit == Unit::Names;
    let mut marks: Vec<String> = Vec::new();
    if !is_by_name && points.iter().any(|point| point.interval().is_some()) {
        marks.push("│ interval".to_string());
    }
    if points.iter().any(|point| point.certainty == PointCertainty::Rough) {
        // Bars have the mark before their values.
        let mark = if is_by_name { '~' } else { HOLLOW[0] };
        marks.push(format!("{mark} known only roughly"));
    }
    marks.join("   ")
}

/// The title without a plot, and why, in lines of any width.
fn too_narrow(title: &str, look: &PlotStyle) -> String {
    let columns = look.columns.max(1);
    let title: String = title.chars().take(200).collect();
    let words = format!("{title} no plot: {columns} columns are too few ({NARROWEST})");
    let (mut text, mut column) = (String::new(), 0);
    for letter in words.chars().map(|letter| if look.unicode { letter } else { ascii(letter) }) {
        let wide = letter.width().unwrap_or(0);
        if column + wide > columns {
            text.push('\n');
            column = 0;
        }
        if wide <= columns {
            text.push(letter);
            column += wide;
        }
    }
    text + "\n"
}

const POINTS: [char; 8] = ['●', '■', '▲', '◆', '▼', '★', '◀', '▶'];
/// The same of values that are only roughly known.
const HOLLOW: [char; 8] = ['○', '□', '△', '◇', '▽', '☆', '◁', '▷'];
/// From small to large values.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// Characters of plots, and what stands for them where there is only ASCII.
const SIGNS: &str = "●■▲◆▼★◀▶○□△◇▽☆◁▷░▒▓█·▇│─└┬┤┝┥╌┈";
const ASCII: &str = "ox+*#@%&~~~~~~~~.:+#?=|-+++<>-.";

fn ascii(letter: char) -> char {
    let known = SIGNS.chars().zip(ASCII.chars()).find(|(sign, _)| *sign == letter);
    known.map_or(if letter.is_ascii() { letter } else { '?' }, |(_, ascii)| ascii)
}

fn shade(share: Option<f64>) -> String {
    let sign = share.and_then(|share| SHADES.get((share * 3.0).round() as usize));
    sign.unwrap_or(&'·').to_string()
}

fn symbol(number: usize, part: ShapePart) -> String {
    let symbols = if part == ShapePart::Hollow { HOLLOW } else { POINTS };
    symbols[number % symbols.len()].to_string()
}

/// Parameter of the escape sequence for a colour; none for the terminal's own.
type Colour = Option<u8>;

/// Colours that are readable on dark and on light: cyan, magenta, yellow, green, red, blue.
const SERIES: [u8; 6] = [36, 35, 33, 32, 31, 34];
/// Grey, for the frame and for what is of no series.
const SOFT: Colour = Some(90);

fn colour(number: usize) -> Colour {
    Some(SERIES[number % SERIES.len()])
}

/// Fills the second column of a wide character.
const COVERED: char = '\0';

/// Cells of characters, as wide as the terminal.
struct TextPage<'a> {
    columns: usize,
    look: &'a PlotStyle,
    chart: &'a PlacedChart<'a>,
    cells: Vec<Vec<(char, Colour)>>,
}

impl TextPage<'_> {
    /// Writes at a place; what is beyond the right edge is cut.
    fn put(&mut self, (mut column, line): (usize, usize), text: &str, colour: Colour) {
        if self.cells.len() <= line {
            self.cells.resize(line + 1, vec![(' ', None); self.columns]);
        }
        let cells = &mut self.cells[line];
        for letter in text.chars() {
            let wide = letter.width().unwrap_or(0);
            if wide == 0 || column + wide > cells.len() {
                continue;
            }
            // The other half of a wide character that is overwritten becomes a blank.
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

    /// Adds a dot of braille, or writes a character where there is only ASCII.
    fn put_dot(&mut self, (x, y): (usize, usize), ascii: char, colour: Colour) {
        let bits = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let (column, line) = (x / 2, y / 4);
        let there = self.cells.get(line).and_then(|cells| cells.get(column));
        let dots = there.map_or(0, |cell| cell.0 as u32).checked_sub(0x2800);
        let dots = dots.filter(|dots| *dots < 0x100).unwrap_or(0) | bits[x % 2][y % 4];
        let braille = char::from_u32(0x2800 + dots).unwrap_or(ascii);
        let sign = if self.look.unicode { braille } else { ascii };
        self.put((column, line), &sign.to_string(), colour);
    }

    /// The page as lines, without blanks at their ends.
    fn text(&self) -> String {
        let mut text = String::new();
        for cells in &self.cells {
            let end = cells.iter().rposition(|cell| !matches!(cell.0, ' ' | '\u{2800}'));
            let cells = cells.iter().take(end.map_or(0, |end| end + 1));
            for (letter, colour) in cells.filter(|(letter, _)| *letter != COVERED) {
                let letter = if self.look.unicode { *letter } else { ascii(*letter) };
                match colour.filter(|_| self.look.colour && letter != ' ') {
                    Some(colour) => text += &format!("\x1b[{colour}m{letter}\x1b[0m"),
                    None => text.push(letter),
                }
            }
            text.push('\n');
        }
        text
    }

    fn draw(&mut self) {
        let chart = self.chart;
        self.cells();
        // Symbols are over all lines and intervals.
        let layers: [&[ShapePart]; 4] = [
            &[ShapePart::Mark],
            &[ShapePart::Line, ShapePart::Bar],
            &[ShapePart::Band, ShapePart::Whisker],
            &[ShapePart::Points, ShapePart::Hollow],
        ];
        for layer in layers {
            let shapes = chart.shapes.iter().filter(|shape| layer.contains(&shape.part));
            shapes.for_each(|shape| self.shape(shape));
        }
        self.frame();
        for item in &chart.items {
            let (sign, ink) = match item.sample {
                LegendSample::Shade(share) => (shade(share), None),
                LegendSample::Series(role, number) => {
                    let sign = match role {
                        Role::Law | Role::Distribution => "──".to_string(),
                        Role::Projected => "╌ ".to_string(),
                        Role::Published => "┈┈".to_string(),
                        Role::Bars => "▇".to_string(),
                        Role::Measured | Role::Raw | Role::Quantiles => {
                            symbol(number.unwrap_or(0), ShapePart::Points)
                        }
                    };
                    (sign, number.map_or(SOFT, colour))
                }
            };
            self.put((item.at.0 as usize, item.at.1 as usize), &sign, ink);
        }
        for text in chart.texts.iter().filter(|text| text.kind == TextKind::Region) {
            let column = |x: f64| self.cell((chart.axes.across(x), 0.0)).0;
            let Some((from, to)) = text.of else { continue };
            self.span((column(from), text.at.1 as usize), column(to), SOFT);
        }
        chart.texts.iter().for_each(|text| self.write(text));
    }

    /// The cells of a map.
    fn cells(&mut self) {
        for cell in &self.chart.cells {
            let (from, to) = (cell.low.0.round() as usize, cell.high.0.round() as usize);
            let wide = to.saturating_sub(from + 1).max(1);
            let (at, wide) = if cell.share.is_some() { (from, wide) } else { (from + wide / 2, 1) };
            for line in cell.high.1.round() as usize..cell.low.1.round() as usize {
                self.put((at, line), &shade(cell.share).repeat(wide), None);
            }
        }
    }

    /// The dot that is nearest to a place.
    fn dot(&self, (x, y): At) -> (usize, usize) {
        let PlotAxes { left, right, top, bottom, .. } = self.chart.axes;
        let nearest = |value: f64, low: f64, high: f64, dots: f64| {
            let share = ((value - low) / (high - low).max(1.0)).clamp(0.0, 1.0);
            (low * dots + (share * ((high - low) * dots - 1.0)).round()) as usize
        };
        (nearest(x, left, right, DOTS.0), nearest(y, top, bottom, DOTS.1))
    }

    /// The column and the line of a place.
    fn cell(&self, at: At) -> (usize, usize) {
        let (x, y) = self.dot(at);
        (x / 2, y / 4)
    }

    fn shape(&mut self, shape: &PlotShape) {
        let axes = &self.chart.axes;
        let entry = shape.series.and_then(|index| self.chart.entries.get(index));
        let role = entry.map(|entry| entry.series.role);
        let ink = entry.map_or(SOFT, |entry| colour(entry.colour));
        let dash = match (shape.part, role) {
            (ShapePart::Mark, _) => (1, 3),
            (_, Some(Role::Projected)) => (5, 8),
            (_, Some(Role::Published)) => (1, 4),
            _ => (1, 1),
        };
        let has_symbol = match role {
            Some(Role::Published) => axes.turned,
            Some(Role::Bars) => axes.y.scale == Scale::Log,
            _ => true,
        };
        for path in axes.paths(shape) {
            match shape.part {
                ShapePart::Mark => self.line(&path, dash, ':', ink),
                ShapePart::Line if !entry.is_some_and(|entry| self.has_law(entry)) => {
                    self.line(&path, dash, '.', ink);
                }
                ShapePart::Bar => {
                    let middle = f64::midpoint(path[0].1, path[2].1);
                    let [one, other] = [path[0], path[1]].map(|(x, _)| self.cell((x, middle)));
                    let from = (one.0.min(other.0), one.1);
                    self.put(from, &"▇".repeat(one.0.abs_diff(other.0) + 1), ink);
                }
                // The upper ends from left to right, then the lower ends back.
                ShapePart::Band => {
                    let ends = path.iter().zip(path.iter().rev()).take(path.len() / 2);
                    ends.for_each(|(high, low)| self.interval(*low, *high, ink));
                }
                ShapePart::Whisker => self.interval(path[0], path[1], ink),
                ShapePart::Points | ShapePart::Hollow if has_symbol => {
                    let symbol = symbol(entry.map_or(0, |entry| entry.colour), shape.part);
                    self.put(self.cell(path[0]), &symbol, ink);
                }
                _ => {}
            }
        }
    }

    /// Whether a law of the same colour would be hidden by the line of this series.
    fn has_law(&self, entry: &SeriesEntry) -> bool {
        let is_law = |other: &SeriesEntry| other.follows && other.series.role == Role::Law;
        let mut others = self.chart.entries.iter();
        entry.series.role == Role::Measured
            && others.any(|other| is_law(other) && other.colour == entry.colour)
    }

    /// Draws the first `on` of every `of` dots.
    fn line(&mut self, path: &[At], (on, of): (usize, usize), ascii: char, ink: Colour) {
        let mut place = 0;
        for two in path.windows(2) {
            let (from, to) = (self.dot(two[0]), self.dot(two[1]));
            let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                let at = |from: usize, to: usize| {
                    (from as f64 + share * (to as f64 - from as f64)).round() as usize
                };
                if place % of < on {
                    self.put_dot((at(from.0, to.0), at(from.1, to.1)), ascii, ink);
                }
                place += 1;
            }
        }
    }

    fn interval(&mut self, low: At, high: At, ink: Colour) {
        match self.chart.axes.turned {
            true => self.span(self.cell(low), self.cell(high).0, None),
            false => self.line(&[low, high], (1, 1), '|', ink),
        }
    }

    /// A line with ends, from a cell to a column.
    fn span(&mut self, (from, line): (usize, usize), to: usize, ink: Colour) {
        if to > from {
            self.put((from, line), &format!("┝{}┥", "─".repeat(to - from - 1)), ink);
        }
    }

    fn frame(&mut self) {
        let PlotAxes { left, right, top, bottom, .. } = self.chart.axes;
        let (left, bottom) = (left as usize - 1, bottom as usize);
        (top as usize..bottom).for_each(|line| self.put((left, line), "│", SOFT));
        let across = "─".repeat(right as usize - left - 1);
        self.put((left, bottom), &format!("└{across}"), SOFT);
        for y in &self.chart.up {
            self.put((left, self.cell((0.0, *y)).1), "┤", SOFT);
        }
        for x in &self.chart.across {
            self.put((self.cell((*x, 0.0)).0, bottom), "┬", SOFT);
        }
    }

    /// Labels of ticks and values are at the cells of what is drawn there.
    fn write(&mut self, text: &PlacedText) {
        let (cell, wide) = (self.cell(text.at), text.words.width());
        let column = match (text.anchor, text.kind) {
            (TextAnchor::Left, _) => text.at.0,
            (TextAnchor::Middle, TextKind::Tick) => cell.0 as f64 - (wide / 2) as f64,
            (TextAnchor::Middle, _) => text.at.0 - (wide / 2) as f64,
            (TextAnchor::Right, _) => text.at.0 - wide as f64,
        };
        let line = match (text.kind, text.anchor) {
            (TextKind::Tick, TextAnchor::Right) | (TextKind::Value, _) => cell.1,
            _ => text.at.1 as usize,
        };
        let ink = match text.kind {
            TextKind::Upright | TextKind::Across | TextKind::Note => SOFT,
            _ => None,
        };
        self.put((column.max(0.0).round() as usize, line), &text.words, ink);
    }
}
