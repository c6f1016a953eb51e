//! Charts as text: the shape of a curve; its numbers are in the table above.
//!
//! A terminal has cells, each for one character. Lines are finer: a cell holds 2 by 4 dots, which
//! the characters of braille draw (U+2800 with a bit for each dot). Without Unicode a line is made
//! of one ASCII character for each cell that it passes.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::figure::{Figure, PointCertainty, Role, Scale, Unit};
use crate::layout::layout;
use crate::page::{
    CellShade, LegendItem, LegendSample, PageMedium, PagePlace, PlacedChart, PlacedText, PlotAxes,
    TextAnchor, TextKind,
};
use crate::shapes::{PlotShape, SeriesEntry, ShapePart};
use crate::text::clean;

/// Fewest columns of a plot.
const MIN_COLUMNS: usize = 30;

/// Most columns of a plot, on however wide a terminal.
const MAX_COLUMNS: usize = 400;

/// Most characters of a title without a plot.
const MAX_TITLE: usize = 200;

/// Dots of braille in a cell, across and down.
const DOTS_ACROSS: usize = 2;
const DOTS_DOWN: usize = 4;

/// Width and means of a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotStyle {
    /// Columns that it may take.
    pub columns: usize,
    /// Whether series have colours. Their symbols tell them apart without.
    pub colour: bool,
    /// Whether there is more than ASCII.
    pub unicode: bool,
}

/// Draws a figure as lines of text, none wider than the style has columns. `runs` are the names of
/// the runs that it shows.
pub fn render_text(figure: &Figure, runs: &[String], style: &PlotStyle) -> String {
    if style.columns < MIN_COLUMNS {
        return too_narrow(&clean(&figure.title), style);
    }
    let columns = style.columns.min(MAX_COLUMNS);
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
        has_names_at_ends: false,
        measure: |text, _| text.width() as f64,
        cut: "..",
    };
    let chart = layout(figure, runs, &mark_legend(figure), &medium);
    let mut page = TextPage { columns, style, chart: &chart, cells: Vec::new() };
    page.draw();
    page.text()
}

/// Explains the marks of a plot that are not in the legend of its series.
fn mark_legend(figure: &Figure) -> String {
    let is_by_name = figure.x.unit == Unit::Names;
    let (mut has_interval, mut has_rough) = (false, false);
    for point in figure.series().iter().flat_map(|series| &series.points) {
        has_interval |= point.interval().is_some();
        has_rough |= point.certainty == PointCertainty::Rough;
    }
    let mut marks: Vec<String> = Vec::new();
    if !is_by_name && has_interval {
        marks.push("│ interval".to_string());
    }
    if has_rough {
        // Bars have the mark before their values.
        let mark = if is_by_name { '~' } else { HOLLOW[0] };
        marks.push(format!("{mark} known only roughly"));
    }
    marks.join("   ")
}

/// Writes the title without a plot, and why there is none, in lines of any width.
fn too_narrow(title: &str, style: &PlotStyle) -> String {
    let columns = style.columns.max(1);
    let title: String = title.chars().take(MAX_TITLE).collect();
    let words = format!("{title} no plot: {columns} columns are too few ({MIN_COLUMNS})");
    let (mut text, mut column) = (String::new(), 0);
    for letter in words.chars() {
        let letter = if style.unicode { letter } else { to_ascii(letter) };
        let width = letter.width().unwrap_or(0);
        if column + width > columns {
            text.push('\n');
            column = 0;
        }
        if width <= columns {
            text.push(letter);
            column += width;
        }
    }
    text + "\n"
}

/// Symbols of points.
const SYMBOLS: [char; 8] = ['●', '■', '▲', '◆', '▼', '★', '◀', '▶'];
/// Symbols of values that are only roughly known.
const HOLLOW: [char; 8] = ['○', '□', '△', '◇', '▽', '☆', '◁', '▷'];
/// Shades from small to large values.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// Characters of plots, and below each the one that replaces it where there is only ASCII.
const SIGNS: &str = "●■▲◆▼★◀▶○□△◇▽☆◁▷░▒▓█·▇│─└┬┤┝┥╌┈";
const ASCII: &str = "ox+*#@%&~~~~~~~~.:+#?=|-+++<>-.";

/// Replaces a character that is not ASCII.
fn to_ascii(letter: char) -> char {
    for (sign, ascii) in SIGNS.chars().zip(ASCII.chars()) {
        if sign == letter {
            return ascii;
        }
    }
    if letter.is_ascii() { letter } else { '?' }
}

/// Returns the sign for the colour of a cell.
fn shade_sign(shade: CellShade) -> char {
    let share = match shade {
        CellShade::Unknown => None,
        CellShade::Rising(share) => Some(share),
        CellShade::Away(share) => Some(share.abs().min(1.0)),
    };
    let sign = share.and_then(|share| SHADES.get((share * 3.0).round() as usize));
    *sign.unwrap_or(&'·')
}

fn symbol(number: usize, part: ShapePart) -> String {
    let symbols = if part == ShapePart::Hollow { HOLLOW } else { SYMBOLS };
    symbols[number % symbols.len()].to_string()
}

/// Parameter of the escape sequence for a colour; none for the terminal's own.
type TerminalColour = Option<u8>;

/// Colours that are readable on dark and on light: cyan, magenta, yellow, green, red, blue.
const SERIES_COLOURS: [u8; 6] = [36, 35, 33, 32, 31, 34];
/// Grey, for the frame and for shapes without a series.
const SOFT: TerminalColour = Some(90);

fn series_colour(number: usize) -> TerminalColour {
    Some(SERIES_COLOURS[number % SERIES_COLOURS.len()])
}

/// Fills the second column of a wide character.
const COVERED: char = '\0';

/// Braille without a dot; the 255 characters that follow have dots.
const BRAILLE: u32 = 0x2800;

/// Bit of each dot of a cell in the characters of braille, by column and row.
const BRAILLE_BITS: [[u32; DOTS_DOWN]; DOTS_ACROSS] =
    [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Place of a character.
#[derive(Clone, Copy)]
struct CellPlace {
    column: usize,
    line: usize,
}

/// Place of a dot of braille, from the upper left corner of the page.
#[derive(Clone, Copy)]
struct DotPlace {
    x: usize,
    y: usize,
}

impl DotPlace {
    fn cell(self) -> CellPlace {
        CellPlace { column: self.x / DOTS_ACROSS, line: self.y / DOTS_DOWN }
    }
}

/// Pattern of a line: the first `on` of every `period` dots are drawn.
#[derive(Clone, Copy)]
struct DotPattern {
    on: usize,
    period: usize,
}

const SOLID: DotPattern = DotPattern { on: 1, period: 1 };

/// Cells of characters, as wide as the terminal.
struct TextPage<'a> {
    columns: usize,
    style: &'a PlotStyle,
    chart: &'a PlacedChart<'a>,
    cells: Vec<Vec<(char, TerminalColour)>>,
}

impl TextPage<'_> {
    /// Writes at a place; text beyond the right edge is cut.
    fn put(&mut self, at: CellPlace, text: &str, colour: TerminalColour) {
        if self.cells.len() <= at.line {
            self.cells.resize(at.line + 1, vec![(' ', None); self.columns]);
        }
        let (cells, mut column) = (&mut self.cells[at.line], at.column);
        for letter in text.chars() {
            let width = letter.width().unwrap_or(0);
            if width == 0 || column + width > cells.len() {
                continue;
            }
            // The other half of a wide character that is overwritten becomes a blank.
            if cells[column].0 == COVERED && column > 0 {
                cells[column - 1].0 = ' ';
            }
            match cells.get_mut(column + width) {
                Some(after) if after.0 == COVERED => after.0 = ' ',
                _ => {}
            }
            cells[column] = (letter, colour);
            cells[column + 1..column + width].fill((COVERED, colour));
            column += width;
        }
    }

    /// Adds a dot of braille, or writes a character where there is only ASCII.
    fn put_dot(&mut self, dot: DotPlace, ascii: char, colour: TerminalColour) {
        let at = dot.cell();
        let mut dots = 0;
        if let Some((letter, _)) = self.cells.get(at.line).and_then(|cells| cells.get(at.column)) {
            let bits = (*letter as u32).wrapping_sub(BRAILLE);
            dots = if bits < 0x100 { bits } else { 0 };
        }
        dots |= BRAILLE_BITS[dot.x % DOTS_ACROSS][dot.y % DOTS_DOWN];
        let braille = char::from_u32(BRAILLE + dots).unwrap_or(ascii);
        let sign = if self.style.unicode { braille } else { ascii };
        self.put(at, &sign.to_string(), colour);
    }

    /// Returns the page as lines, without blanks at their ends.
    fn text(&self) -> String {
        let mut text = String::new();
        for cells in &self.cells {
            let is_blank = |letter: char| matches!(letter, ' ' | '\u{2800}');
            let blanks = cells.iter().rev().take_while(|(letter, _)| is_blank(*letter)).count();
            for (letter, colour) in &cells[..cells.len() - blanks] {
                if *letter == COVERED {
                    continue;
                }
                let letter = if self.style.unicode { *letter } else { to_ascii(*letter) };
                match colour {
                    Some(colour) if self.style.colour && letter != ' ' => {
                        text += &format!("\x1b[{colour}m{letter}\x1b[0m");
                    }
                    _ => text.push(letter),
                }
            }
            text.push('\n');
        }
        text
    }

    fn draw(&mut self) {
        let chart = self.chart;
        self.put_cells();
        // Symbols are over all lines and intervals.
        let layers: [&[ShapePart]; 4] = [
            &[ShapePart::Mark],
            &[ShapePart::Line, ShapePart::Bar],
            &[ShapePart::Band, ShapePart::Whisker],
            &[ShapePart::Points, ShapePart::Hollow],
        ];
        for layer in layers {
            for shape in chart.shapes.iter().filter(|shape| layer.contains(&shape.part)) {
                self.put_shape(shape);
            }
        }
        self.put_frame();
        for item in &chart.items {
            self.put_sample(item);
        }
        for text in chart.texts.iter().filter(|text| text.kind == TextKind::Region) {
            self.put_region(text);
        }
        for text in &chart.texts {
            self.put_text(text);
        }
    }

    /// Puts the sample before a name in the legend.
    fn put_sample(&mut self, item: &LegendItem) {
        let (sign, colour) = match item.sample {
            LegendSample::Shade(shade) => (shade_sign(shade).to_string(), None),
            LegendSample::Series(role, number) => {
                let sign = match role {
                    Role::Law | Role::Distribution => "──".to_string(),
                    Role::Projected => "╌ ".to_string(),
                    Role::Published => "┈┈".to_string(),
                    Role::Bars | Role::Histogram => "▇".to_string(),
                    Role::Measured | Role::Raw | Role::Quantiles => {
                        symbol(number.unwrap_or(0), ShapePart::Points)
                    }
                };
                (sign, number.map_or(SOFT, series_colour))
            }
        };
        let at = CellPlace { column: item.at.0 as usize, line: item.at.1 as usize };
        self.put(at, &sign, colour);
    }

    /// Puts a line with ends below the plot's labels for the stretch of a region.
    fn put_region(&mut self, label: &PlacedText) {
        let Some((from, to)) = label.stretch else { return };
        let from = self.cell((self.chart.axes.horizontal(from), 0.0)).column;
        let to = self.cell((self.chart.axes.horizontal(to), 0.0)).column;
        let at = CellPlace { column: from, line: label.at.1 as usize };
        self.put_span(at, to, SOFT);
    }

    /// Puts the cells of a map; one without a value is a dot in its middle.
    fn put_cells(&mut self) {
        for cell in &self.chart.cells {
            let (from, to) = (cell.low.0.round() as usize, cell.high.0.round() as usize);
            let width = to.saturating_sub(from + 1).max(1);
            let (column, width) = match cell.shade {
                CellShade::Unknown => (from + width / 2, 1),
                _ => (from, width),
            };
            let signs = shade_sign(cell.shade).to_string().repeat(width);
            for line in cell.high.1.round() as usize..cell.low.1.round() as usize {
                self.put(CellPlace { column, line }, &signs, None);
            }
        }
    }

    /// Returns the dot that is nearest to a place.
    fn dot(&self, at: PagePlace) -> DotPlace {
        let PlotAxes { left, right, top, bottom, .. } = self.chart.axes;
        let x = nearest_dot(at.0, left, right, DOTS_ACROSS);
        DotPlace { x, y: nearest_dot(at.1, top, bottom, DOTS_DOWN) }
    }

    /// Returns the cell that is nearest to a place.
    fn cell(&self, at: PagePlace) -> CellPlace {
        self.dot(at).cell()
    }

    fn put_shape(&mut self, shape: &PlotShape) {
        let axes = &self.chart.axes;
        let entry = self.chart.entry(shape);
        let role = entry.map(|entry| entry.series.role);
        let number = entry.map_or(0, |entry| entry.colour);
        let colour = if entry.is_some() { series_colour(number) } else { SOFT };
        let pattern = match (shape.part, role) {
            (ShapePart::Mark, _) => DotPattern { on: 1, period: 3 },
            (_, Some(Role::Projected)) => DotPattern { on: 5, period: 8 },
            (_, Some(Role::Published)) => DotPattern { on: 1, period: 4 },
            _ => SOLID,
        };
        let has_symbol = match role {
            Some(Role::Published) => axes.turned,
            Some(Role::Bars) => axes.y.scale == Scale::Log,
            _ => true,
        };
        let is_hidden = entry.is_some_and(|entry| self.has_law(entry));
        for path in axes.paths(shape) {
            match shape.part {
                ShapePart::Mark => self.put_line(&path, pattern, ':', colour),
                ShapePart::Line if !is_hidden => self.put_line(&path, pattern, '.', colour),
                ShapePart::Bar if role == Some(Role::Histogram) => {
                    let middle = f64::midpoint(path[0].0, path[2].0);
                    let upright = [(middle, path[0].1), (middle, path[1].1)];
                    self.put_line(&upright, SOLID, '|', colour);
                }
                ShapePart::Bar => self.put_bar(&path, colour),
                // The upper ends from left to right, then the lower ends back.
                ShapePart::Band => {
                    for number in 0..path.len() / 2 {
                        let low = path[path.len() - 1 - number];
                        self.put_interval(low, path[number], colour);
                    }
                }
                ShapePart::Whisker => self.put_interval(path[0], path[1], colour),
                ShapePart::Points | ShapePart::Hollow if has_symbol => {
                    self.put(self.cell(path[0]), &symbol(number, shape.part), colour);
                }
                _ => {}
            }
        }
    }

    /// Returns whether a law of the same colour would be hidden by the line of this series.
    fn has_law(&self, entry: &SeriesEntry) -> bool {
        let is_law = |other: &SeriesEntry| {
            let follows = other.follows && other.series.role == Role::Law;
            follows && other.colour == entry.colour
        };
        entry.series.role == Role::Measured && self.chart.entries.iter().any(is_law)
    }

    /// Puts a bar, whose first two corners are its ends on one side.
    fn put_bar(&mut self, corners: &[PagePlace], colour: TerminalColour) {
        let middle = f64::midpoint(corners[0].1, corners[2].1);
        let one = self.cell((corners[0].0, middle));
        let other = self.cell((corners[1].0, middle));
        let at = CellPlace { column: one.column.min(other.column), line: one.line };
        self.put(at, &"▇".repeat(one.column.abs_diff(other.column) + 1), colour);
    }

    fn put_line(
        &mut self,
        path: &[PagePlace],
        pattern: DotPattern,
        ascii: char,
        colour: TerminalColour,
    ) {
        let mut number = 0;
        for pair in path.windows(2) {
            let (from, to) = (self.dot(pair[0]), self.dot(pair[1]));
            let steps = from.x.abs_diff(to.x).max(from.y.abs_diff(to.y)).max(1);
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                if number % pattern.period < pattern.on {
                    let x = between(from.x, to.x, share);
                    self.put_dot(DotPlace { x, y: between(from.y, to.y, share) }, ascii, colour);
                }
                number += 1;
            }
        }
    }

    fn put_interval(&mut self, low: PagePlace, high: PagePlace, colour: TerminalColour) {
        if self.chart.axes.turned {
            self.put_span(self.cell(low), self.cell(high).column, None);
        } else {
            self.put_line(&[low, high], SOLID, '|', colour);
        }
    }

    /// Puts a line with ends, from a cell to a column.
    fn put_span(&mut self, from: CellPlace, to: usize, colour: TerminalColour) {
        if to > from.column {
            self.put(from, &format!("┝{}┥", "─".repeat(to - from.column - 1)), colour);
        }
    }

    fn put_frame(&mut self) {
        let PlotAxes { left, right, top, bottom, .. } = self.chart.axes;
        let (column, bottom) = (left as usize - 1, bottom as usize);
        for line in top as usize..bottom {
            self.put(CellPlace { column, line }, "│", SOFT);
        }
        let across = "─".repeat(right as usize - column - 1);
        self.put(CellPlace { column, line: bottom }, &format!("└{across}"), SOFT);
        for y in &self.chart.up {
            let line = self.cell((0.0, *y)).line;
            self.put(CellPlace { column, line }, "┤", SOFT);
        }
        for x in &self.chart.across {
            let column = self.cell((*x, 0.0)).column;
            self.put(CellPlace { column, line: bottom }, "┬", SOFT);
        }
    }

    /// Puts a text. Labels of ticks and values are at the cells of what is drawn there.
    fn put_text(&mut self, text: &PlacedText) {
        let (cell, width) = (self.cell(text.at), text.words.width());
        let column = match (text.anchor, text.kind) {
            (TextAnchor::Left, _) => text.at.0,
            (TextAnchor::Middle, TextKind::Tick) => cell.column as f64 - (width / 2) as f64,
            (TextAnchor::Middle, _) => text.at.0 - (width / 2) as f64,
            (TextAnchor::Right, _) => text.at.0 - width as f64,
        };
        let line = match (text.kind, text.anchor) {
            (TextKind::Tick, TextAnchor::Right) | (TextKind::Value, _) => cell.line,
            _ => text.at.1 as usize,
        };
        let colour = match text.kind {
            TextKind::Upright | TextKind::Across | TextKind::Note => SOFT,
            _ => None,
        };
        let column = column.max(0.0).round() as usize;
        self.put(CellPlace { column, line }, &text.words, colour);
    }
}

/// Returns the number of the dot nearest to a place that lies between two ends of the plot.
fn nearest_dot(place: f64, low: f64, high: f64, dots: usize) -> usize {
    let share = ((place - low) / (high - low).max(1.0)).clamp(0.0, 1.0);
    let dots = dots as f64;
    (low * dots + (share * ((high - low) * dots - 1.0)).round()) as usize
}

/// Returns the number at a share of the way between two.
fn between(from: usize, to: usize, share: f64) -> usize {
    (from as f64 + share * (to as f64 - from as f64)).round() as usize
}
