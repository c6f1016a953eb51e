//! Charts as PNG.

use anyhow::{Context, Result};
use tiny_skia::{
    Color, FillRule, LineCap, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use crate::figure::Figure;
use crate::font::{self, Pen};
use crate::layout::layout;
use crate::picture::{Draw, Element, PAPER, elements, letters, micro, sample, start, texts};

/// Pixels of the image for each of the page: 300 to the inch.
const PIXELS: f32 = 3.0;

/// A figure for a paper as the bytes of a PNG file, the same drawing as [`crate::svg`].
pub fn png(figure: &Figure, runs: &[String], note: &str) -> Result<Vec<u8>> {
    let chart = layout(figure, runs, note, &PAPER);
    let pixels = |length: f64| (length * f64::from(PIXELS)) as u32;
    let mut image = Pixmap::new(pixels(PAPER.width), pixels(chart.height))
        .with_context(|| format!("a picture {} pixels high is too large", chart.height))?;
    image.fill(Color::WHITE);
    for element in elements(&chart).into_iter().chain(chart.items.iter().flat_map(sample)) {
        draw(&mut image, &element);
    }
    for (text, colour) in texts(&chart) {
        let (pixels, bold) = letters(text.kind);
        let ((x, y), scale) = (start(&text), font::scale(pixels, bold) as f32);
        let mut path = PathBuilder::new();
        for stroke in font::outline(&micro(&text.words), bold) {
            match stroke {
                Pen::Move(x, y) => path.move_to(x, y),
                Pen::Line(x, y) => path.line_to(x, y),
                Pen::Curve(x1, y1, x, y) => path.quad_to(x1, y1, x, y),
                Pen::Close => path.close(),
            }
        }
        let Some(path) = path.finish() else { continue };
        let place = Transform::from_row(scale, 0.0, 0.0, -scale, x as f32, y as f32);
        let place = place.post_scale(PIXELS, PIXELS);
        image.fill_path(&path, &paint(colour, 1.0), FillRule::Winding, place, None);
    }
    image.encode_png().context("cannot encode the picture")
}

fn paint([red, green, blue]: [u8; 3], alpha: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (alpha * 255.0).round() as u8);
    paint
}

fn draw(image: &mut Pixmap, element: &Element) {
    let mut path = PathBuilder::new();
    for places in &element.paths {
        for (place, (x, y)) in places.iter().enumerate() {
            match place {
                0 => path.move_to(*x as f32, *y as f32),
                _ => path.line_to(*x as f32, *y as f32),
            }
        }
        match (element.draw, places.first()) {
            (Draw::Fill, _) => path.close(),
            (Draw::Dots(_), Some((x, y))) => path.line_to(*x as f32, *y as f32),
            _ => {}
        }
    }
    let Some(path) = path.finish() else { return };
    let scale = Transform::from_scale(PIXELS, PIXELS);
    let paint = paint(element.ink.colour(), element.alpha);
    let (width, dash, line_cap) = match element.draw {
        Draw::Fill => return image.fill_path(&path, &paint, FillRule::Winding, scale, None),
        Draw::Dots(wide) => (wide, None, LineCap::Round),
        Draw::Line(wide, dash) => (wide, dash, LineCap::Butt),
    };
    let dash = dash.and_then(|(on, off)| StrokeDash::new(vec![on as f32, off as f32], 0.0));
    let stroke = Stroke { width: width as f32, dash, line_cap, ..Stroke::default() };
    image.stroke_path(&path, &paint, &stroke, scale, None);
}
