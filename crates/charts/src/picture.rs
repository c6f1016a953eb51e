//! A chart in pixels: what SVG, PNG and HTML have in common. Each of them writes these elements.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::pen::PathElement;
use skrifa::{FontRef, GlyphId, MetadataProvider};
use tiny_skia::{Path, PathBuilder};

use crate::figure::Role;
use crate::page::{
    At, LegendItem, LegendSample, MapCell, PageMedium, PlacedChart, PlacedText, PlotAxes,
    TextAnchor, TextKind,
};
use crate::shapes::{PlotShape, SeriesEntry, ShapePart};

/// The sizes of a picture for a paper: 7.2 inches at 100 pixels to the inch.
pub(crate) const PAPER: PageMedium = PageMedium {
    width: 720.0,
    margin: 14.0,
    row: |kind| size(kind).0,
    plot: 340.0,
    name: (24.0, 14.0),
    below: 14.0,
    gap: 7.0,
    sample: 28.0,
    ticks: 9,
    longest: 210.0,
    rows: 8,
    bare: false,
    measure: |text, kind| width(&with_micro_sign(text), kind),
    cut: "…",
};

/// Pixels of a row of text and of its letters.
fn size(kind: TextKind) -> (f64, f64) {
    match kind {
        TextKind::Title | TextKind::Nothing => (24.0, 14.0),
        TextKind::Upright => (18.0, 11.0),
        TextKind::Across => (17.0, 11.0),
        TextKind::Key => (17.0, 10.0),
        TextKind::Tick => (13.0, 10.0),
        TextKind::Mark | TextKind::Region | TextKind::Value | TextKind::Name => (13.0, 9.5),
        TextKind::Note => (13.0, 9.0),
        TextKind::Cell(_) => (11.0, 8.5),
    }
}

/// Pixels of the letters of a text.
pub(crate) fn letters(kind: TextKind) -> f64 {
    size(kind).1
}

/// Unicode for the `us` of texts that are also written for terminals with ASCII only.
pub fn with_micro_sign(text: &str) -> String {
    let mut parts = text.split(" us");
    let mut written = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let is_word = part.starts_with(|letter: char| letter.is_alphanumeric() || letter == '-');
        written.push_str(if is_word { " us" } else { " µs" });
        written.push_str(part);
    }
    written.replace("(us)", "(µs)")
}

/// What something is drawn with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ink {
    Black,
    Soft,
    Grid,
    Paper,
    /// Of the series of that number. The colours are safe for colour-blind readers (Okabe and Ito
    /// 2008), without the yellow, which is faint on paper.
    Series(usize),
    /// Of a cell at that position on the colour scale.
    Cell(Option<f64>),
    /// Of the value in such a cell: black or white.
    OnCell(f64),
}

const SERIES: [u32; 7] =
    [0x00_72b2, 0xd5_5e00, 0x00_9e73, 0xcc_79a7, 0xe6_9f00, 0x56_b4e9, 0x5a_5a5a];

/// Five steps of the colour map viridis, evenly spaced.
const VIRIDIS: [u32; 5] = [0x44_0154, 0x3b_528b, 0x21_918c, 0x5e_c962, 0xfd_e725];

/// Position on the colour scale from which black has more contrast than white (WCAG's relative
/// luminance).
const BRIGHT: f64 = 0.43;

impl Ink {
    /// Red, green and blue, a byte each.
    pub(crate) fn colour(self) -> u32 {
        match self {
            Self::Black => 0x14_1414,
            Self::Soft => 0x5f_5f5f,
            Self::Grid => 0xe2_e2e2,
            Self::Paper => 0xff_ffff,
            Self::Series(number) => SERIES[number % SERIES.len()],
            Self::Cell(None) => 0xec_ecec,
            Self::Cell(Some(share)) => {
                let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
                let first = (place as usize).min(VIRIDIS.len() - 2);
                let mix = |byte: u32| {
                    let of = |step: usize| f64::from((VIRIDIS[step] >> byte) & 0xff);
                    let part = place - first as f64;
                    ((of(first) * (1.0 - part) + of(first + 1) * part).round() as u32) << byte
                };
                mix(16) | mix(8) | mix(0)
            }
            Self::OnCell(share) if share < BRIGHT => 0xff_ffff,
            Self::OnCell(_) => 0,
        }
    }
}

/// How paths are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DrawMode {
    Fill,
    /// So many pixels wide, with dashes and gaps of these lengths.
    Line(f64, Option<(f64, f64)>),
    /// A round dot of that diameter at each place.
    Dots(f64),
}

const DASHED: Option<(f64, f64)> = Some((6.0, 3.5));
const DOTTED: Option<(f64, f64)> = Some((1.4, 2.6));

/// What an element is for: a browser draws it again on other axes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementSource<'a> {
    /// A shape, and the corners around each of its points.
    Shape(&'a PlotShape, &'static [At]),
    Cell(&'a MapCell),
    /// A part of the frame, by the name of its class.
    Frame(&'static str),
    /// A sample of the legend, or text.
    Other,
}

/// A path and its look.
#[derive(Clone, Debug)]
pub(crate) struct PictureElement<'a> {
    /// None if nothing is drawn.
    pub(crate) path: Option<Path>,
    pub(crate) draw: DrawMode,
    pub(crate) ink: Ink,
    pub(crate) alpha: f64,
    pub(crate) source: ElementSource<'a>,
}

fn element<'a>(
    paths: &[Vec<At>],
    look: (DrawMode, f64),
    ink: Ink,
    source: ElementSource<'a>,
) -> PictureElement<'a> {
    let mut path = PathBuilder::new();
    for places in paths {
        let mut places = places.iter().map(|(x, y)| (*x as f32, *y as f32));
        let Some((x, y)) = places.next() else { continue };
        path.move_to(x, y);
        places.for_each(|(x, y)| path.line_to(x, y));
        match look.0 {
            DrawMode::Fill => path.close(),
            // A line without length is a dot.
            DrawMode::Dots(_) => path.line_to(x, y),
            DrawMode::Line(..) => {}
        }
    }
    PictureElement { path: path.finish(), draw: look.0, ink, alpha: look.1, source }
}

/// The symbols by which series are told apart without colours; the first is a dot.
const SYMBOLS: [&[At]; 5] = [
    &[],
    &[(-2.7, -2.7), (2.7, -2.7), (2.7, 2.7), (-2.7, 2.7)],
    &[(0.0, -3.8), (3.4, 2.4), (-3.4, 2.4)],
    &[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)],
    &[(0.0, 3.8), (3.4, -2.4), (-3.4, -2.4)],
];

/// The same symbols as closed lines; the first is a ring.
const HOLLOW: [&[At]; 5] = [
    &[
        (3.0, 0.0),
        (2.1, 2.1),
        (0.0, 3.0),
        (-2.1, 2.1),
        (-3.0, 0.0),
        (-2.1, -2.1),
        (0.0, -3.0),
        (2.1, -2.1),
        (3.0, 0.0),
    ],
    &[(-2.7, -2.7), (2.7, -2.7), (2.7, 2.7), (-2.7, 2.7), (-2.7, -2.7)],
    &[(0.0, -3.8), (3.4, 2.4), (-3.4, 2.4), (0.0, -3.8)],
    &[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0), (0.0, -4.0)],
    &[(0.0, 3.8), (3.4, -2.4), (-3.4, -2.4), (0.0, 3.8)],
];

/// How a part of a series looks: how it is drawn, its opacity, and the corners around each point.
fn look(part: ShapePart, role: Role, number: usize) -> ((DrawMode, f64), &'static [At]) {
    let symbol = SYMBOLS[number % SYMBOLS.len()];
    // Beside a symbol that is used again stands another line.
    let beside = if (number / SYMBOLS.len()) % 2 == 0 { DOTTED } else { DASHED };
    let look = match (part, role) {
        (ShapePart::Band, _) => (DrawMode::Fill, 0.2),
        (ShapePart::Bar, _) => (DrawMode::Fill, 0.55),
        (ShapePart::Shade, _) => (DrawMode::Fill, 0.1),
        (ShapePart::Whisker, _) => (DrawMode::Line(1.2, None), 1.0),
        (ShapePart::Mark, _) => (DrawMode::Line(0.8, DASHED), 0.75),
        // A law of the same colour may lie over it.
        (ShapePart::Line, Role::Measured) => (DrawMode::Line(1.0, None), 0.6),
        (ShapePart::Line, Role::Projected) => (DrawMode::Line(1.6, DASHED), 1.0),
        (ShapePart::Line, Role::Distribution) => (DrawMode::Line(1.6, None), 1.0),
        (ShapePart::Line, Role::Published) => (DrawMode::Line(1.0, beside), 1.0),
        (ShapePart::Line, _) => (DrawMode::Line(2.2, None), 1.0),
        (ShapePart::Hollow, _) => {
            return ((DrawMode::Line(1.3, None), 1.0), HOLLOW[number % HOLLOW.len()]);
        }
        (_, Role::Raw) => return ((DrawMode::Dots(3.4), 0.55), &[]),
        _ if symbol.is_empty() => (DrawMode::Dots(6.0), 1.0),
        _ => (DrawMode::Fill, 1.0),
    };
    (look, if part == ShapePart::Points { symbol } else { &[] })
}

fn ink(part: ShapePart, role: Role, number: usize) -> Ink {
    match (part, role) {
        (ShapePart::Whisker, Role::Bars) => Ink::Black,
        // Published ones are many, and no measured one is to have the colour of one.
        (_, Role::Published) => Ink::Soft,
        _ => Ink::Series(number),
    }
}

/// Each place with the corners around it.
fn stamped(paths: Vec<Vec<At>>, corners: &[At]) -> Vec<Vec<At>> {
    if corners.is_empty() {
        return paths;
    }
    let around = |(x, y): At| corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    paths.into_iter().flatten().map(around).collect()
}

/// All that is drawn of a chart but its texts and its legend, from back to front.
pub(crate) fn elements<'a>(chart: &'a PlacedChart) -> Vec<PictureElement<'a>> {
    let (shades, shapes): (Vec<&PlotShape>, Vec<&PlotShape>) =
        chart.shapes.iter().partition(|shape| shape.part == ShapePart::Shade);
    let draw = |shape| of_shape(chart, shape);
    let cell = |cell: &'a MapCell| {
        // A thin line of paper is left between neighbours.
        let area = block(cell.low, (cell.high.0 - 0.7, cell.high.1 + 0.7));
        element(&[area], (DrawMode::Fill, 1.0), Ink::Cell(cell.share), ElementSource::Cell(cell))
    };
    let behind = shades.into_iter().map(draw).chain(frame(chart));
    behind.chain(chart.cells.iter().map(cell)).chain(shapes.into_iter().map(draw)).collect()
}

fn of_shape<'a>(chart: &PlacedChart, shape: &'a PlotShape) -> PictureElement<'a> {
    let entry = shape.series.and_then(|index| chart.entries.get(index));
    let (role, number) = entry.map_or((Role::Law, 0), |e| (e.series.role, e.colour));
    let (look, corners) = look(shape.part, role, number);
    let is_reference =
        |entry: &SeriesEntry| entry.series.role.is_line() && entry.series.run.is_none();
    let ink = match entry {
        Some(entry) if !is_reference(entry) => ink(shape.part, role, number),
        _ => Ink::Soft,
    };
    let paths = stamped(chart.axes.paths(shape), corners);
    element(&paths, look, ink, ElementSource::Shape(shape, corners))
}

fn block(low: At, high: At) -> Vec<At> {
    vec![low, (high.0, low.1), high, (low.0, high.1)]
}

/// Lines at the ticks (names have none, nor has a map), both axes with their ticks, and lines from
/// labels down to the plot.
fn frame<'a>(chart: &PlacedChart) -> [PictureElement<'a>; 3] {
    let PlotAxes { left, right, top, bottom, turned, .. } = chart.axes;
    let mut axes = vec![vec![(left, top), (left, bottom), (right, bottom)]];
    axes.extend(chart.across.iter().map(|x| vec![(*x, bottom), (*x, bottom + 4.0)]));
    axes.extend(chart.up.iter().map(|y| vec![(left - 4.0, *y), (left, *y)]));
    let up = chart.up.iter().filter(|_| !turned).map(|y| vec![(left, *y), (right, *y)]);
    let grid = chart.across.iter().map(|x| vec![(*x, top), (*x, bottom)]).chain(up);
    let grid: Vec<Vec<At>> = grid.filter(|_| chart.cells.is_empty()).collect();
    let marks = chart.texts.iter().filter(|text| text.kind == TextKind::Mark);
    let leader = |text: &PlacedText| {
        let x = chart.axes.across(text.of?.0);
        Some(vec![(x, text.at.1 + 5.0), (x, top)])
    };
    let leaders: Vec<Vec<At>> = marks.filter_map(leader).collect();
    let dashed = (DrawMode::Line(0.8, DASHED), 0.75);
    [
        element(&grid, (DrawMode::Line(0.6, None), 1.0), Ink::Grid, ElementSource::Frame("grid")),
        element(&axes, (DrawMode::Line(1.0, None), 1.0), Ink::Black, ElementSource::Frame("frame")),
        element(&leaders, dashed, Ink::Soft, ElementSource::Frame("leaders")),
    ]
}

/// What is written before a name in the legend.
pub(crate) fn sample<'a>(item: &LegendItem) -> Vec<PictureElement<'a>> {
    let (x, y) = item.at;
    let (ends, area) = (vec![(x, y), (x + 22.0, y)], block((x, y - 4.0), (x + 22.0, y + 4.0)));
    let (role, number) = match item.sample {
        LegendSample::Shade(share) => {
            return vec![element(
                &[area],
                (DrawMode::Fill, 1.0),
                Ink::Cell(share),
                ElementSource::Other,
            )];
        }
        LegendSample::Series(role, number) => (role, number),
    };
    let parts: &[ShapePart] = match role {
        Role::Measured => &[ShapePart::Band, ShapePart::Line, ShapePart::Points],
        Role::Published => &[ShapePart::Line, ShapePart::Points],
        Role::Law | Role::Projected | Role::Distribution => &[ShapePart::Line],
        Role::Raw | Role::Quantiles => &[ShapePart::Points],
        Role::Bars => &[ShapePart::Bar],
    };
    let of_part = |part: &ShapePart| {
        let (look, corners) = look(*part, role, number.unwrap_or(0));
        let paths = match part {
            ShapePart::Band | ShapePart::Bar => vec![area.clone()],
            ShapePart::Points => stamped(vec![vec![(x + 11.0, y)]], corners),
            _ => vec![ends.clone()],
        };
        let ink = number.map_or(Ink::Soft, |number| ink(*part, role, number));
        element(&paths, look, ink, ElementSource::Other)
    };
    parts.iter().map(of_part).collect()
}

/// The whole picture: elements, legend and texts as outlines.
pub(crate) fn picture<'a>(chart: &'a PlacedChart) -> impl Iterator<Item = PictureElement<'a>> {
    // Lines from labels pass behind other labels.
    let behind = |text: &PlacedText| {
        let (x, y) = start(text);
        let wide = width(&with_micro_sign(&text.words), text.kind);
        block((x - 1.0, y + 2.0), (x + wide + 1.0, y - 9.0))
    };
    let behind: Vec<Vec<At>> =
        chart.texts.iter().filter(|text| text.of.is_some()).map(behind).collect();
    let behind = element(&behind, (DrawMode::Fill, 1.0), Ink::Paper, ElementSource::Other);
    let samples = chart.items.iter().flat_map(sample);
    let all = elements(chart).into_iter().chain([behind]).chain(samples);
    all.chain(chart.texts.iter().map(outline)).filter(|element| element.path.is_some())
}

/// The ink of a kind of text.
pub(crate) fn ink_of(kind: TextKind) -> Ink {
    match kind {
        TextKind::Upright
        | TextKind::Across
        | TextKind::Region
        | TextKind::Note
        | TextKind::Nothing => Ink::Soft,
        TextKind::Cell(share) => Ink::OnCell(share),
        _ => Ink::Black,
    }
}

/// The font, DejaVu Sans (free licence), bold for titles: pictures look the same where it is not
/// installed.
fn font(kind: TextKind) -> FontRef<'static> {
    static REGULAR: LazyLock<Vec<u8>> =
        LazyLock::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/regular"))));
    static BOLD: LazyLock<Vec<u8>> =
        LazyLock::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/bold"))));
    let data = match kind {
        TextKind::Title | TextKind::Nothing => &BOLD,
        _ => &REGULAR,
    };
    FontRef::new(data).expect("the font in this program can be read")
}

/// A font as `build.rs` has packed it.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut font = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut font).expect("the font in this program can be read");
    font
}

/// The glyph of a letter, and the pixels from it to the next letter's.
fn glyph(font: &FontRef, letter: char, size: Size) -> (GlyphId, f64) {
    let glyph = font.charmap().map(letter).unwrap_or_default();
    let advance = font.glyph_metrics(size, LocationRef::default()).advance_width(glyph);
    (glyph, advance.unwrap_or_default().into())
}

/// Pixels of a text on paper.
pub(crate) fn width(text: &str, kind: TextKind) -> f64 {
    let (font, size) = (font(kind), Size::new(letters(kind) as f32));
    text.chars().map(|letter| glyph(&font, letter, size).1).sum()
}

/// Where a text begins on paper: its left end, and its baseline.
pub(crate) fn start(text: &PlacedText) -> At {
    let wide = width(&with_micro_sign(&text.words), text.kind);
    let left = match text.anchor {
        TextAnchor::Left => text.at.0,
        TextAnchor::Middle => text.at.0 - wide / 2.0,
        TextAnchor::Right => text.at.0 - wide,
    };
    (left, text.at.1 + 0.36 * letters(text.kind))
}

fn outline<'a>(text: &PlacedText) -> PictureElement<'a> {
    let (font, size) = (font(text.kind), Size::new(letters(text.kind) as f32));
    let (glyphs, (mut start, base)) = (font.outline_glyphs(), start(text));
    let mut path = PathBuilder::new();
    for letter in with_micro_sign(&text.words).chars() {
        let (glyph, advance) = glyph(&font, letter, size);
        let mut strokes: Vec<PathElement> = Vec::new();
        // A letter whose outline is broken is left blank.
        let _ = glyphs.get(glyph).map(|of| of.draw((size, LocationRef::default()), &mut strokes));
        let (left, base) = (start as f32, base as f32);
        for stroke in strokes {
            match stroke {
                PathElement::MoveTo { x, y } => path.move_to(left + x, base - y),
                PathElement::LineTo { x, y } => path.line_to(left + x, base - y),
                PathElement::QuadTo { cx0, cy0, x, y } => {
                    path.quad_to(left + cx0, base - cy0, left + x, base - y);
                }
                // TrueType has none of these.
                PathElement::CurveTo { .. } => {}
                PathElement::Close => path.close(),
            }
        }
        start += advance;
    }
    let (path, ink) = (path.finish(), ink_of(text.kind));
    PictureElement { path, draw: DrawMode::Fill, ink, alpha: 1.0, source: ElementSource::Other }
}
