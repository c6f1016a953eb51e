//! The canvas: lines, shapes and text in pixels of the page.

use anyhow::{Result, anyhow};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{
    Circle, DashedPathElement, Drawable, PathElement, PointCollection, Polygon, Rectangle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, RGBAColor, RGBColor, ShapeStyle};

use super::letters;

/// plotters rounds to whole units: the page has this many to a pixel.
pub(super) const UNITS: i32 = 8;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A place on the page in pixels, from its upper left corner.
pub(super) type At = (f64, f64);

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line {
    Solid,
    Dashed,
    Dotted,
}

/// Shapes of [`Paint::symbol`].
const SYMBOLS: usize = 5;

impl Line {
    /// Beside the symbol of that number, another for each round of them.
    pub(super) fn of(number: usize) -> Self {
        if (number / SYMBOLS).is_multiple_of(2) { Self::Dotted } else { Self::Dashed }
    }
}

/// Draws on an area.
pub(super) struct Paint<'a, 'b>(pub(super) &'a Area<'b>);

impl Paint<'_, '_> {
    pub(super) fn line(&self, from: &[At], line: Line, wide: f64, colour: RGBAColor) -> Result<()> {
        let points: Vec<(i32, i32)> = from.iter().map(|at| units(*at)).collect();
        if points.len() < 2 {
            return Ok(());
        }
        let style = ShapeStyle { color: colour, filled: false, stroke_width: length(wide) };
        let (on, off) = match line {
            Line::Solid => return self.draw(&PathElement::new(points, style)),
            Line::Dashed => (6.0, 3.5),
            Line::Dotted => (1.4, 2.6),
        };
        let (on, off) = (length(on) as i32, length(off) as i32);
        self.draw(&DashedPathElement::new(points, on, off, style))
    }

    pub(super) fn area(&self, outline: &[At], colour: RGBAColor) -> Result<()> {
        let points: Vec<(i32, i32)> = outline.iter().map(|at| units(*at)).collect();
        self.draw(&Polygon::new(points, colour))
    }

    pub(super) fn block(&self, one: At, other: At, colour: RGBAColor) -> Result<()> {
        self.draw(&Rectangle::new([units(one), units(other)], colour.filled()))
    }

    pub(super) fn circle(&self, at: At, radius: f64, colour: RGBAColor) -> Result<()> {
        self.draw(&Circle::new(units(at), length(radius) as i32, colour.filled()))
    }

    /// One of the shapes by which series are told apart without colours.
    pub(super) fn symbol(&self, at: At, number: usize, colour: RGBAColor) -> Result<()> {
        let around = |corners: &[At]| -> Vec<At> {
            corners.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect()
        };
        match number % SYMBOLS {
            0 => self.circle(at, 3.0, colour),
            1 => self.area(&around(&[(-2.7, -2.7), (2.7, -2.7), (2.7, 2.7), (-2.7, 2.7)]), colour),
            2 => self.area(&around(&[(0.0, -3.8), (3.4, 2.4), (-3.4, 2.4)]), colour),
            3 => self.area(&around(&[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)]), colour),
            _ => self.area(&around(&[(0.0, 3.8), (3.4, -2.4), (-3.4, -2.4)]), colour),
        }
    }

    /// Text; `across` and `up` say which point of it is at the place.
    pub(super) fn text(&self, words: &str, at: At, how: Writing) -> Result<()> {
        let mut style = letters::style(how.pixels, how.colour).pos(Pos::new(how.across, how.up));
        if how.bold {
            style.font = style.font.style(plotters::style::FontStyle::Bold);
        }
        if how.upwards {
            style = style.transform(FontTransform::Rotate270);
        }
        self.draw(&Text::new(words.replace(" us", " µs").replace("(us)", "(µs)"), units(at), style))
    }

    fn draw<'c, E>(&self, element: &'c E) -> Result<()>
    where
        &'c E: PointCollection<'c, (i32, i32)>,
        E: for<'d> Drawable<SVGBackend<'d>>,
    {
        self.0.draw(element).map_err(failed)
    }
}

/// How text is written.
#[derive(Clone, Copy)]
pub(super) struct Writing {
    pub(super) pixels: f64,
    pub(super) colour: RGBColor,
    pub(super) across: HPos,
    pub(super) up: VPos,
    pub(super) bold: bool,
    pub(super) upwards: bool,
}

impl Writing {
    pub(super) fn new(pixels: f64, colour: RGBColor) -> Self {
        let (across, up) = (HPos::Left, VPos::Center);
        Self { pixels, colour, across, up, bold: false, upwards: false }
    }

    pub(super) fn centred(self) -> Self {
        Self { across: HPos::Center, ..self }
    }

    pub(super) fn to_the_right(self) -> Self {
        Self { across: HPos::Right, ..self }
    }
}

/// plotters' errors borrow what they are of.
pub(super) fn failed<E: std::error::Error + Send + Sync>(
    error: DrawingAreaErrorKind<E>,
) -> anyhow::Error {
    anyhow!("{error}")
}

fn units((x, y): At) -> (i32, i32) {
    let of = |pixels: f64| (pixels * f64::from(UNITS)).round() as i32;
    (of(x), of(y))
}

fn length(pixels: f64) -> u32 {
    (pixels * f64::from(UNITS)).round().max(1.0) as u32
}
