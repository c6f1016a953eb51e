//! DejaVu Sans, of a free licence: pictures look the same where it is not installed.

use std::sync::OnceLock;

use ttf_parser::{Face, OutlineBuilder};

/// The regular or the bold face.
fn face(bold: bool) -> &'static Face<'static> {
    static FACES: OnceLock<[Face<'static>; 2]> = OnceLock::new();
    let parse = |data| Face::parse(data, 0).expect("the font in this program can be read");
    let faces = || [parse(dejavu::sans::regular()), parse(dejavu::sans::bold())];
    &FACES.get_or_init(faces)[usize::from(bold)]
}

/// Pixels of a text of that size.
pub(crate) fn width(text: &str, (pixels, bold): (f64, bool)) -> f64 {
    let face = face(bold);
    let wide: u32 = text.chars().map(|letter| u32::from(advance(face, letter))).sum();
    f64::from(wide) * scale(pixels, bold)
}

fn advance(face: &Face, letter: char) -> u16 {
    let glyph = face.glyph_index(letter).unwrap_or_default();
    face.glyph_hor_advance(glyph).unwrap_or_default()
}

/// Pixels for each of the font's units.
pub(crate) fn scale(pixels: f64, bold: bool) -> f64 {
    pixels / f64::from(face(bold).units_per_em())
}

/// A stroke of a pen, in the font's units, upwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pen {
    Move(f32, f32),
    Line(f32, f32),
    Curve(f32, f32, f32, f32),
    Close,
}

/// The outline of a text from its left end.
pub(crate) fn outline(text: &str, bold: bool) -> Vec<Pen> {
    let face = face(bold);
    let mut outline = Outline { strokes: Vec::new(), left: 0.0 };
    for letter in text.chars() {
        face.outline_glyph(face.glyph_index(letter).unwrap_or_default(), &mut outline);
        outline.left += f32::from(advance(face, letter));
    }
    outline.strokes
}

struct Outline {
    strokes: Vec<Pen>,
    /// Where the present letter begins.
    left: f32,
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.strokes.push(Pen::Move(self.left + x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.strokes.push(Pen::Line(self.left + x, y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.strokes.push(Pen::Curve(self.left + x1, y1, self.left + x, y));
    }

    /// TrueType has none of these.
    fn curve_to(&mut self, x1: f32, y1: f32, _: f32, _: f32, x: f32, y: f32) {
        self.quad_to(x1, y1, x, y);
    }

    fn close(&mut self) {
        self.strokes.push(Pen::Close);
    }
}
