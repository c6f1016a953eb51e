//! Charts for papers: SVG and PNG of the same drawing.

use std::fmt::Write;

use anyhow::{Context, Result};
use tiny_skia::{
    Color, FillRule, LineCap, Paint, PathSegment, Pixmap, Point, Stroke, StrokeDash, Transform,
};

use crate::figure::Figure;
use crate::layout::layout;
use crate::picture::{DrawMode, Ink, PAPER, PictureElement, picture};
use crate::text::{clean, escape};

/// Pixels of a PNG for each of the page: 300 to the inch.
const PIXELS: f32 = 3.0;

/// A figure as SVG, 720 pixels wide, its texts as outlines. `runs` are the names of the runs that
/// it is of; `note` is written below it.
pub fn render_svg(figure: &Figure, runs: &[String], note: &str) -> String {
    let chart = layout(figure, runs, note, &PAPER);
    let (width, height) = (PAPER.width, number(chart.height));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\
         <title>{}</title><desc>{}</desc>\n<path fill=\"#ffffff\" d=\"M0,0H{width}V{height}H0Z\"/>\n",
        escape(&clean(&figure.title)),
        escape(&clean(&figure.in_words)),
    );
    for element in picture(&chart) {
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "<path {}/>", attributes(&element, &hex(element.ink)));
    }
    svg + "</svg>\n"
}

/// A figure as the bytes of a PNG file: the drawing of [`render_svg`], three pixels for each of its. Fails
/// for one that is higher than a picture can be.
pub fn render_png(figure: &Figure, runs: &[String], note: &str) -> Result<Vec<u8>> {
    let chart = layout(figure, runs, note, &PAPER);
    let pixels = |length: f64| (length * f64::from(PIXELS)) as u32;
    let mut image = Pixmap::new(pixels(PAPER.width), pixels(chart.height))
        .with_context(|| format!("a picture {} pixels high is too large", chart.height))?;
    image.fill(Color::WHITE);
    for element in picture(&chart) {
        draw(&mut image, &element);
    }
    image.encode_png().context("cannot encode the picture")
}

fn draw(image: &mut Pixmap, element: &PictureElement) {
    let Some(path) = &element.path else { return };
    let scale = Transform::from_scale(PIXELS, PIXELS);
    let mut paint = Paint::default();
    let [_, red, green, blue] = element.ink.colour().to_be_bytes();
    paint.set_color_rgba8(red, green, blue, (element.alpha * 255.0).round() as u8);
    let (width, dash, line_cap) = match element.draw {
        DrawMode::Fill => return image.fill_path(path, &paint, FillRule::Winding, scale, None),
        DrawMode::Dots(wide) => (wide, None, LineCap::Round),
        DrawMode::Line(wide, dash) => (wide, dash, LineCap::Butt),
    };
    let dash = dash.and_then(|(on, off)| StrokeDash::new(vec![on as f32, off as f32], 0.0));
    let stroke = Stroke { width: width as f32, dash, line_cap, ..Stroke::default() };
    image.stroke_path(path, &paint, &stroke, scale, None);
}

/// A colour as SVG and CSS write it.
pub(crate) fn hex(ink: Ink) -> String {
    format!("#{:06x}", ink.colour())
}

/// Pixels to a hundredth.
pub(crate) fn number(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

/// The look of an element in that colour, and its path.
pub(crate) fn attributes(element: &PictureElement, ink: &str) -> String {
    let line = |wide| format!("fill=\"none\" stroke=\"{ink}\" stroke-width=\"{wide}\"");
    let mut text = match element.draw {
        DrawMode::Fill => format!("fill=\"{ink}\""),
        DrawMode::Dots(wide) => line(wide) + " stroke-linecap=\"round\"",
        DrawMode::Line(wide, None) => line(wide),
        DrawMode::Line(wide, Some((on, off))) => {
            line(wide) + &format!(" stroke-dasharray=\"{on} {off}\"")
        }
    };
    if element.alpha != 1.0 {
        text += &format!(" opacity=\"{}\"", element.alpha);
    }
    let place = |to: Point| format!("{},{}", number(to.x.into()), number(to.y.into()));
    let segment = |segment| match segment {
        PathSegment::MoveTo(to) => format!("M{}", place(to)),
        PathSegment::LineTo(to) => format!("L{}", place(to)),
        PathSegment::QuadTo(by, to) => format!("Q{} {}", place(by), place(to)),
        PathSegment::CubicTo(by, on, to) => format!("C{} {} {}", place(by), place(on), place(to)),
        PathSegment::Close => "Z".to_string(),
    };
    let segments = element.path.iter().flat_map(|path| path.segments());
    text + &format!(" d=\"{}\"", segments.map(segment).collect::<String>())
}
