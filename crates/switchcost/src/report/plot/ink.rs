//! Signs and colours of a plot, and a page of them made text.

use anstyle::AnsiColor;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::Look;
use super::page::width;

/// Colours that are read on dark and on light.
const SERIES: [Color; 6] =
    [Color::Cyan, Color::Magenta, Color::Yellow, Color::Green, Color::Red, Color::Blue];
/// What is no series.
pub(super) const SOFT: Color = Color::DarkGray;

/// The signs that plots are made of.
pub(super) struct Signs {
    pub(super) points: &'static [char],
    pub(super) upright: char,
    pub(super) across: char,
    pub(super) corner: char,
    pub(super) up_tick: char,
    pub(super) across_tick: char,
    pub(super) block: char,
    pub(super) ends: [char; 2],
    /// From little to much.
    pub(super) shades: &'static [char],
    pub(super) unknown: char,
}

const UNICODE: Signs = Signs {
    points: &['●', '■', '▲', '◆', '▼', '○', '□', '△'],
    upright: '│',
    across: '─',
    corner: '└',
    up_tick: '┤',
    across_tick: '┬',
    block: '█',
    ends: ['├', '┤'],
    shades: &['░', '▒', '▓', '█'],
    unknown: '·',
};

const ASCII: Signs = Signs {
    points: &['o', 'x', '+', '*', '#', '@', '%', '&'],
    upright: '|',
    across: '-',
    corner: '+',
    up_tick: '+',
    across_tick: '+',
    block: '=',
    ends: ['<', '>'],
    shades: &['.', ':', '+', '#'],
    unknown: '?',
};

impl Signs {
    pub(super) fn of(look: &Look) -> &'static Self {
        if look.unicode { &UNICODE } else { &ASCII }
    }

    pub(super) fn point(&self, number: usize) -> char {
        self.points[number % self.points.len()]
    }
}

pub(super) fn colour(number: usize) -> Color {
    SERIES[number % SERIES.len()]
}

/// The page as lines, without blanks at their ends.
pub(super) fn text(page: &Buffer, look: &Look) -> String {
    let mut text = String::new();
    for y in page.area.top()..page.area.bottom() {
        let mut line = String::new();
        let mut now = Color::Reset;
        let blank = |x: u16| page.cell((x, y)).is_none_or(|cell| cell.symbol().trim().is_empty());
        let end = (page.area.left()..page.area.right()).rev().find(|x| !blank(*x));
        let Some(end) = end else {
            text.push('\n');
            continue;
        };
        let mut covered = 0;
        for cell in (page.area.left()..=end).filter_map(|x| page.cell((x, y))) {
            // A wide character stands in the cell after its own too.
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = width(cell.symbol()).saturating_sub(1);
            let fg = if cell.symbol() == " " { now } else { cell.fg };
            if look.colour && fg != now {
                line.push_str(&escape(fg));
                now = fg;
            }
            match look.unicode || cell.symbol().is_ascii() {
                true => line.push_str(cell.symbol()),
                false => line.push('?'),
            }
        }
        if now != Color::Reset {
            line.push_str(&escape(Color::Reset));
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn escape(colour: Color) -> String {
    let known = match colour {
        Color::Cyan => AnsiColor::Cyan,
        Color::Magenta => AnsiColor::Magenta,
        Color::Yellow => AnsiColor::Yellow,
        Color::Green => AnsiColor::Green,
        Color::Red => AnsiColor::Red,
        Color::Blue => AnsiColor::Blue,
        SOFT => AnsiColor::BrightBlack,
        _ => return anstyle::Reset.render().to_string(),
    };
    // Each from the start, so that none inherits from the one before.
    format!("{}{}", anstyle::Reset.render(), known.render_fg())
}
