//! A page of cells that is written from top to bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::Line;

use super::Look;
use super::ink;

/// More lines than any plot has.
const TALLEST: u16 = 400;

/// Text and cells, as wide as the terminal.
pub(super) struct Page {
    cells: Buffer,
    /// The line that is written next.
    pub(super) line: u16,
    pub(super) columns: u16,
}

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    Line::raw(text).width()
}

/// As much of a text as fits.
pub(super) fn fit(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_string();
    }
    let dots = "..".get(..room.min(2)).unwrap_or_default();
    // Where each character ends; no terminal is as wide as what is left out here.
    let ends: Vec<usize> =
        text.char_indices().map(|(start, c)| start + c.len_utf8()).take(400).collect();
    let fitting = ends.partition_point(|end| width(&text[..*end]) + dots.len() <= room);
    let kept = fitting.checked_sub(1).map_or("", |last| &text[..ends[last]]);
    format!("{}{dots}", kept.trim_end())
}

impl Page {
    pub(super) fn new(look: &Look) -> Self {
        let columns = u16::try_from(look.columns).unwrap_or(80).clamp(1, 400);
        let cells = Buffer::empty(Rect::new(0, 0, columns, TALLEST));
        Self { cells, line: 0, columns }
    }

    /// Writes at a column of the present line; what is beyond the right edge is cut.
    pub(super) fn put(&mut self, column: usize, text: &str, colour: Color) {
        self.put_at(column, self.line, text, colour);
    }

    pub(super) fn put_at(&mut self, column: usize, line: u16, text: &str, colour: Color) {
        let Ok(column) = u16::try_from(column) else { return };
        if column >= self.columns || line >= TALLEST {
            return;
        }
        let room = usize::from(self.columns - column);
        self.cells.set_stringn(column, line, text, room, Style::new().fg(colour));
    }

    /// Goes to the next line.
    pub(super) fn end_line(&mut self) {
        self.skip(1);
    }

    pub(super) fn skip(&mut self, lines: u16) {
        self.line = (self.line + lines).min(TALLEST - 1);
    }

    /// Words over as many lines as they need, up to `most`.
    pub(super) fn words(&mut self, text: &str, colour: Color, most: usize) {
        let room = usize::from(self.columns);
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            let word = fit(word, room);
            match lines.last_mut() {
                Some(line) if width(line) + 1 + width(&word) <= room => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        for line in lines.iter().take(most) {
            self.put(0, line, colour);
            self.end_line();
        }
    }

    /// The cells of a rectangle from the present line on.
    pub(super) fn cells(&mut self, left: usize, width: usize, height: u16) -> (Rect, &mut Buffer) {
        let left = u16::try_from(left).unwrap_or(u16::MAX);
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        let area = Rect::new(left, self.line, width, height).intersection(self.cells.area);
        (area, &mut self.cells)
    }

    pub(super) fn text(mut self, look: &Look) -> String {
        self.cells.resize(Rect::new(0, 0, self.columns, self.line));
        ink::text(&self.cells, look)
    }
}
