//! A picture from its title to its caption.

use anyhow::Result;
use model::figure::{Body, Figure, Map, Role, Unit};
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea;
use plotters::style::WHITE;
use plotters::style::text_anchor::VPos;

use super::axes::{Axes, BELOW, Plot};
use super::key::Key;
use super::labels::Labels;
use super::letters::{self, wrap};
use super::paint::{Paint, UNITS, Writing, failed};
use super::palette::{INK, SOFT};
use super::series::Drawing;
use super::{Caption, cells};
use crate::report::drawing::{Entry, Frame, MapFrame, Ruler, clean, entries};

const WIDTH: f64 = 720.0;
const MARGIN: f64 = 14.0;
const TITLE: f64 = 14.0;
const TITLE_ROW: f64 = 20.0;
const CAPTION: f64 = 9.0;
const CAPTION_ROW: f64 = 12.5;
/// Height of a plot, and of one name's bars.
const PLOT: f64 = 360.0;
const NAME: f64 = 34.0;

/// What is between the axes.
enum Content<'a> {
    Series {
        frame: Frame,
        entries: Vec<Entry<'a>>,
        turned: bool,
    },
    Map {
        frame: MapFrame,
        map: &'a Map,
    },
    /// A map that has no cells.
    Nothing(Ruler),
}

impl<'a> Content<'a> {
    fn of(figure: &'a Figure, caption: &Caption) -> Self {
        match &figure.body {
            Body::Series(all) => Self::Series {
                frame: Frame::of(figure, all),
                entries: entries(all, caption.runs),
                turned: figure.x.unit == Unit::Names,
            },
            Body::Map(map) => match MapFrame::of(figure, map) {
                Some(frame) => Self::Map { frame, map },
                None => Self::Nothing(Ruler::empty(&figure.x)),
            },
        }
    }

    fn rulers(&self) -> (&Ruler, &Ruler) {
        match self {
            Self::Series { frame, .. } => (&frame.x, &frame.y),
            Self::Map { frame, .. } => (&frame.x, &frame.y),
            Self::Nothing(ruler) => (ruler, ruler),
        }
    }

    fn turned(&self) -> bool {
        matches!(self, Self::Series { turned: true, .. })
    }

    fn height(&self) -> f64 {
        match self {
            Self::Series { frame, entries, turned: true } => {
                let series = entries.iter().filter(|entry| entry.series.role == Role::Bars).count();
                let each = NAME + 10.0 * series.saturating_sub(1) as f64;
                (each * (frame.x.high - frame.x.low)).clamp(120.0, 2000.0)
            }
            _ => PLOT,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Series { frame, .. } => frame.left_out == frame.points,
            Self::Map { .. } => false,
            Self::Nothing(_) => true,
        }
    }

    fn left_out(&self) -> Option<String> {
        match self {
            Self::Series { frame, .. } => frame.left_out_in_words(),
            _ => None,
        }
    }
}

/// What a picture is drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sheet {
    /// White paper, with a title and a caption.
    Paper,
    /// A page that has its own colour, and tells the rest.
    Bare,
}

/// The SVG as plotters writes it, its text still text.
pub(super) fn draw(figure: &Figure, caption: &Caption, sheet: Sheet) -> Result<String> {
    letters::register()?;
    let content = Content::of(figure, caption);
    let (x, y) = content.rulers();
    let title = match sheet {
        Sheet::Paper => wrap(&clean(&figure.title), TITLE, WIDTH - 2.0 * MARGIN),
        Sheet::Bare => Vec::new(),
    };
    let key = match &content {
        Content::Series { entries, .. } => Key::new(entries, MARGIN, WIDTH - MARGIN),
        _ => Key::new(&[], MARGIN, WIDTH - MARGIN),
    };
    let words: Vec<String> =
        [Some(clean(caption.text)), content.left_out()].into_iter().flatten().collect();
    let small = wrap(&words.join(" "), CAPTION, WIDTH - 2.0 * MARGIN);

    let right = match &content {
        Content::Map { .. } => WIDTH - MARGIN - cells::SCALE_ROOM,
        _ => WIDTH - MARGIN - 10.0,
    };
    let head = MARGIN + TITLE_ROW * title.len().min(3) as f64 + 4.0;
    // How many rows the labels need is known once it is known where the plot begins.
    let rough = Plot { left: 8.0, right, top: 0.0, bottom: content.height() };
    let left = Axes::new(x, y, content.turned(), rough).plot.left;
    let labels = match content.turned() {
        true => Labels::none(),
        false => Labels::new(figure, x, right - left),
    };
    let top = head + key.height() + labels.height() + 4.0;
    let bottom = top + content.height();
    let axes = Axes::new(x, y, content.turned(), Plot { top, bottom, ..rough });
    let height = bottom + BELOW + CAPTION_ROW * small.len() as f64 + MARGIN;

    let mut svg = String::new();
    {
        let units = |pixels: f64| (pixels * f64::from(UNITS)) as u32;
        let area = SVGBackend::with_string(&mut svg, (units(WIDTH), units(height)));
        let area = area.into_drawing_area();
        if sheet == Sheet::Paper {
            area.fill(&WHITE).map_err(failed)?;
        }
        let paint = Paint(&area);
        let bold = Writing { bold: true, ..Writing::new(TITLE, INK) };
        for (row, line) in title.iter().take(3).enumerate() {
            paint.text(line, (MARGIN, MARGIN + TITLE_ROW * (row as f64 + 0.5)), bold)?;
        }
        key.draw(&paint, head)?;
        labels.shades(&paint, &axes)?;
        axes.grid(&paint)?;
        draw_content(&paint, &axes, &content)?;
        labels.draw(&paint, &axes)?;
        axes.frame(&paint)?;
        let below = Writing { up: VPos::Top, ..Writing::new(CAPTION, SOFT) };
        for (row, line) in small.iter().enumerate() {
            let y = bottom + BELOW + CAPTION_ROW * row as f64;
            paint.text(line, (MARGIN, y), below)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(in_pixels(&svg, height))
}

fn draw_content(paint: &Paint, axes: &Axes, content: &Content) -> Result<()> {
    match content {
        _ if content.is_empty() => {
            let Plot { left, right, top, bottom } = axes.plot;
            let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
            paint.text("nothing to draw", middle, Writing::new(TITLE, SOFT).centred())
        }
        Content::Series { frame, entries, .. } => {
            let bars = entries.iter().filter(|entry| entry.series.role == Role::Bars).count();
            Drawing { paint, axes, frame, bars }.all(entries)
        }
        Content::Map { frame, map } => {
            cells::cells(paint, axes, map, frame)?;
            cells::scale(paint, axes.plot, &frame.values)
        }
        Content::Nothing(_) => Ok(()),
    }
}

/// The size of the page in pixels; what is drawn stays in plotters' units.
fn in_pixels(svg: &str, height: f64) -> String {
    let drawn = |pixels: f64| (pixels * f64::from(UNITS)) as u32;
    let units = format!("width=\"{}\" height=\"{}\"", drawn(WIDTH), drawn(height));
    svg.replacen(&units, &format!("width=\"{WIDTH}\" height=\"{height}\""), 1)
}
