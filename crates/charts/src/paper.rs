//! Charts for papers: SVG and PNG of the same drawing.

use std::fmt::Write;

use anyhow::{Context, Result};
use tiny_skia::{
    Color, FillRule, LineCap, Paint, Path, PathSegment, Pixmap, Point, Stroke, StrokeDash,
    Transform,
};

use crate::figure::Figure;
use crate::layout::layout;
use crate::picture::{DrawMode, Ink, PAPER, PictureElement, picture};
use crate::text::{clean, escape};

/// Pixels of a PNG for each pixel of the page: 300 to the inch.
const PNG_SCALE: f32 = 3.0;

/// Draws a figure as SVG, 720 pixels wide, its texts as outlines. `runs` are the names of the runs
/// that it shows; `note` is written below it.
pub fn render_svg(figure: &Figure, runs: &[String], note: &str) -> String {
    let chart = layout(figure, runs, note, &PAPER);
    let (width, height) = (PAPER.width, rounded(chart.height));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\
         <title>{}</title><desc>{}</desc>\n<path fill=\"#ffffff\" d=\"M0,0H{width}V{height}H0Z\"/>\n",
        escape(&clean(&figure.title)),
        escape(&clean(&figure.in_words)),
    );
    for element in picture(&chart) {
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "<path {}/>", attributes(&element, &hex_colour(element.ink)));
    }
    svg + "</svg>\n"
}

/// Draws a figure as the bytes of a PNG file: the picture of [`render_svg`], three pixels for each
/// of its own. An error for one that is higher than a picture can be.
pub fn render_png(figure: &Figure, runs: &[String], note: &str) -> Result<Vec<u8>> {
    let chart = layout(figure, runs, note, &PAPER);
    let width = (PAPER.width * f64::from(PNG_SCALE)) as u32;
    let height = (chart.height * f64::from(PNG_SCALE)) as u32;
    let mut image = Pixmap::new(width, height)
        .with_context(|| format!("a picture {} pixels high is too large", chart.height))?;
    image.fill(Color::WHITE);
    for element in picture(&chart) {
        draw(&mut image, &element);
    }
    image.encode_png().context("cannot encode the picture")
}

fn draw(image: &mut Pixmap, element: &PictureElement) {
    let Some(path) = &element.path else { return };
    let scale = Transform::from_scale(PNG_SCALE, PNG_SCALE);
    let mut paint = Paint::default();
    let [_, red, green, blue] = element.ink.colour().to_be_bytes();
    paint.set_color_rgba8(red, green, blue, (element.alpha * 255.0).round() as u8);
    let (width, dash, line_cap) = match element.mode {
        DrawMode::Fill => return image.fill_path(path, &paint, FillRule::Winding, scale, None),
        DrawMode::Dots(diameter) => (diameter, None, LineCap::Round),
        DrawMode::Line(width, dash) => (width, dash, LineCap::Butt),
    };
    let dash = dash.and_then(|(on, off)| StrokeDash::new(vec![on as f32, off as f32], 0.0));
    let stroke = Stroke { width: width as f32, dash, line_cap, ..Stroke::default() };
    image.stroke_path(path, &paint, &stroke, scale, None);
}

/// Writes a colour as SVG and CSS have it.
pub(crate) fn hex_colour(ink: Ink) -> String {
    format!("#{:06x}", ink.colour())
}

/// Rounds pixels to a hundredth.
pub(crate) fn rounded(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

/// Writes the look of an element in that colour, and its path, as attributes of SVG.
pub(crate) fn attributes(element: &PictureElement, ink: &str) -> String {
    let mut text = match element.mode {
        DrawMode::Fill => format!("fill=\"{ink}\""),
        DrawMode::Dots(diameter) => stroke(ink, diameter) + " stroke-linecap=\"round\"",
        DrawMode::Line(width, None) => stroke(ink, width),
        DrawMode::Line(width, Some((on, off))) => {
            stroke(ink, width) + &format!(" stroke-dasharray=\"{on} {off}\"")
        }
    };
    if element.alpha != 1.0 {
        text += &format!(" opacity=\"{}\"", element.alpha);
    }
    let path = element.path.as_ref().map(path_data).unwrap_or_default();
    text + &format!(" d=\"{path}\"")
}

fn stroke(ink: &str, width: f64) -> String {
    format!("fill=\"none\" stroke=\"{ink}\" stroke-width=\"{width}\"")
}

/// Writes a path as the attribute `d` of SVG has it.
fn path_data(path: &Path) -> String {
    let mut data = String::new();
    for segment in path.segments() {
        data += &match segment {
            PathSegment::MoveTo(to) => format!("M{}", point(to)),
            PathSegment::LineTo(to) => format!("L{}", point(to)),
            PathSegment::QuadTo(by, to) => format!("Q{} {}", point(by), point(to)),
            PathSegment::CubicTo(by, on, to) => {
                format!("C{} {} {}", point(by), point(on), point(to))
            }
            PathSegment::Close => "Z".to_string(),
        };
    }
    data
}

fn point(at: Point) -> String {
    format!("{},{}", rounded(at.x.into()), rounded(at.y.into()))
}
