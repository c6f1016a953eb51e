//! A chart in pixels: the elements that SVG, PNG and HTML have in common. Each of them writes these.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::pen::PathElement;
use skrifa::{FontRef, GlyphId, MetadataProvider};
use tiny_skia::{Path, PathBuilder};

use crate::figure::Role;
use crate::page::{
    CellShade, LegendItem, LegendSample, MapCell, PageMedium, PagePlace, PlacedChart, PlacedText,
    PlotAxes, TextAnchor, TextKind,
};
use crate::shapes::{PlotShape, ShapePart};

/// Sizes of a picture for a paper: 7.2 inches at 100 pixels to the inch.
pub(crate) const PAPER: PageMedium = PageMedium {
    width: 720.0,
    margin: 14.0,
    row: |kind| text_size(kind).row,
    plot: 340.0,
    name: (24.0, 14.0),
    below: 14.0,
    gap: 7.0,
    sample: 28.0,
    ticks: 9,
    longest: 210.0,
    rows: 8,
    bare: false,
    has_names_at_ends: false,
    measure: |text, kind| text_width(&with_micro_sign(text), kind),
    cut: "…",
};

/// Pixels of a row of text, and of its letters.
struct TextSize {
    row: f64,
    letters: f64,
}

fn text_size(kind: TextKind) -> TextSize {
    let (row, letters) = match kind {
        TextKind::Title | TextKind::Nothing => (24.0, 14.0),
        TextKind::Upright => (18.0, 11.0),
        TextKind::Across => (17.0, 11.0),
        TextKind::Key => (17.0, 10.0),
        TextKind::Tick => (13.0, 10.0),
        TextKind::Mark | TextKind::Region | TextKind::Value | TextKind::Name => (13.0, 9.5),
        TextKind::Note => (13.0, 9.0),
        TextKind::Cell(_) => (11.0, 8.5),
    };
    TextSize { row, letters }
}

/// Returns the size of the letters of a text in pixels.
pub(crate) fn letter_size(kind: TextKind) -> f64 {
    text_size(kind).letters
}

/// Returns the vertical place of the baseline of a text in pixels.
pub(crate) fn baseline(text: &PlacedText) -> f64 {
    text.at.1 + 0.36 * letter_size(text.kind)
}

/// Writes `µs` for the ` us` of texts that are also written for terminals with ASCII only.
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

/// Colour of an element. The styles of a page know some of these by their names in lower case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ink {
    Black,
    Soft,
    Grid,
    Paper,
    /// Colour of the series of that number.
    Series(usize),
    /// Colour of a cell at that position on the colour scale; none without a value.
    Cell(Option<f64>),
    /// Colour of the value in a cell at that position: black or white.
    OnCell(f64),
}

/// Colours of series. They are safe for colour-blind readers (Okabe and Ito 2008), without the
/// yellow, which is faint on paper.
const SERIES_COLOURS: [u32; 7] =
    [0x00_72b2, 0xd5_5e00, 0x00_9e73, 0xcc_79a7, 0xe6_9f00, 0x56_b4e9, 0x5a_5a5a];

/// Five steps of the colour map viridis, evenly spaced.
const VIRIDIS: [u32; 5] = [0x44_0154, 0x3b_528b, 0x21_918c, 0x5e_c962, 0xfd_e725];

/// Least position on the colour scale at which black has more contrast than white (WCAG's relative
/// luminance).
const MIN_BRIGHT_SHARE: f64 = 0.43;

impl Ink {
    /// Returns red, green and blue, a byte each.
    pub(crate) fn colour(self) -> u32 {
        match self {
            Self::Black => 0x14_1414,
            Self::Soft => 0x5f_5f5f,
            Self::Grid => 0xe2_e2e2,
            Self::Paper => 0xff_ffff,
            Self::Series(number) => SERIES_COLOURS[number % SERIES_COLOURS.len()],
            Self::Cell(None) => 0xec_ecec,
            Self::Cell(Some(share)) => viridis(share),
            Self::OnCell(share) if share < MIN_BRIGHT_SHARE => 0xff_ffff,
            Self::OnCell(_) => 0,
        }
    }
}

/// Returns the colour at a position from 0 to 1, mixed from the two steps beside it.
fn viridis(share: f64) -> u32 {
    let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let first = (place as usize).min(VIRIDIS.len() - 2);
    let part = place - first as f64;
    let mut colour = 0;
    for shift in [16, 8, 0] {
        let below = f64::from((VIRIDIS[first] >> shift) & 0xff);
        let above = f64::from((VIRIDIS[first + 1] >> shift) & 0xff);
        colour |= ((below * (1.0 - part) + above * part).round() as u32) << shift;
    }
    colour
}

/// Way in which paths are drawn. Lengths are in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DrawMode {
    Fill,
    /// A line of this width, with dashes and gaps of these lengths.
    Line(f64, Option<(f64, f64)>),
    /// A round dot of this diameter at each place.
    Dots(f64),
}

const DASHED: Option<(f64, f64)> = Some((6.0, 3.5));
const DOTTED: Option<(f64, f64)> = Some((1.4, 2.6));

/// Origin of an element: a browser draws it again on other axes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementSource<'a> {
    /// A shape, and the corners around each of its points.
    Shape(&'a PlotShape, &'static [PagePlace]),
    Cell(&'a MapCell),
    /// A part of the frame, by the name of its class.
    Frame(&'static str),
    /// A sample of the legend, or text.
    Other,
}

/// Look of a part of a chart.
#[derive(Clone, Copy, Debug)]
struct ElementLook {
    mode: DrawMode,
    /// Opacity: 1 hides what is behind it.
    alpha: f64,
    /// Corners around each point; without corners the points are a line or an area.
    corners: &'static [PagePlace],
}

impl ElementLook {
    const FILLED: Self = Self::new(DrawMode::Fill, 1.0);

    const fn new(mode: DrawMode, alpha: f64) -> Self {
        Self { mode, alpha, corners: &[] }
    }
}

/// A path and its look.
#[derive(Clone, Debug)]
pub(crate) struct PictureElement<'a> {
    /// Path; none if nothing is drawn.
    pub(crate) path: Option<Path>,
    pub(crate) mode: DrawMode,
    pub(crate) ink: Ink,
    pub(crate) alpha: f64,
    pub(crate) source: ElementSource<'a>,
}

impl<'a> PictureElement<'a> {
    fn new(
        paths: &[Vec<PagePlace>],
        look: ElementLook,
        ink: Ink,
        source: ElementSource<'a>,
    ) -> Self {
        let mut builder = PathBuilder::new();
        for places in paths {
            let Some(((x, y), others)) = places.split_first() else { continue };
            builder.move_to(*x as f32, *y as f32);
            for (x, y) in others {
                builder.line_to(*x as f32, *y as f32);
            }
            match look.mode {
                DrawMode::Fill => builder.close(),
                // A line without length is a dot.
                DrawMode::Dots(_) => builder.line_to(*x as f32, *y as f32),
                DrawMode::Line(..) => {}
            }
        }
        Self { path: builder.finish(), mode: look.mode, ink, alpha: look.alpha, source }
    }
}

/// Symbols that tell series apart without colours; the first is a dot.
const SYMBOLS: [&[PagePlace]; 5] = [
    &[],
    &[(-2.7, -2.7), (2.7, -2.7), (2.7, 2.7), (-2.7, 2.7)],
    &[(0.0, -3.8), (3.4, 2.4), (-3.4, 2.4)],
    &[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)],
    &[(0.0, 3.8), (3.4, -2.4), (-3.4, -2.4)],
];

/// Symbols as closed lines, in the order of [`SYMBOLS`]; the first is a ring.
const HOLLOW: [&[PagePlace]; 5] = [
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

/// Returns the look of a part of a series whose colour has that number.
fn series_look(part: ShapePart, role: Role, number: usize) -> ElementLook {
    let symbol = SYMBOLS[number % SYMBOLS.len()];
    // A symbol that is used again stands beside another kind of line.
    let published = if (number / SYMBOLS.len()) % 2 == 0 { DOTTED } else { DASHED };
    let (mode, alpha) = match (part, role) {
        (ShapePart::Band, _) => (DrawMode::Fill, 0.2),
        (ShapePart::Bar, _) => (DrawMode::Fill, 0.55),
        (ShapePart::Shade, _) => (DrawMode::Fill, 0.1),
        (ShapePart::Whisker, _) => (DrawMode::Line(1.2, None), 1.0),
        (ShapePart::Mark, _) => (DrawMode::Line(0.8, DASHED), 0.75),
        // A law of the same colour may lie over it.
        (ShapePart::Line, Role::Measured) => (DrawMode::Line(1.0, None), 0.6),
        (ShapePart::Line, Role::Projected) => (DrawMode::Line(1.6, DASHED), 1.0),
        (ShapePart::Line, Role::Distribution) => (DrawMode::Line(1.6, None), 1.0),
        (ShapePart::Line, Role::Published) => (DrawMode::Line(1.0, published), 1.0),
        (ShapePart::Line, _) => (DrawMode::Line(2.2, None), 1.0),
        (ShapePart::Hollow, _) => {
            let corners = HOLLOW[number % HOLLOW.len()];
            return ElementLook { mode: DrawMode::Line(1.3, None), alpha: 1.0, corners };
        }
        (_, Role::Raw) => return ElementLook::new(DrawMode::Dots(3.4), 0.55),
        _ if symbol.is_empty() => (DrawMode::Dots(6.0), 1.0),
        _ => (DrawMode::Fill, 1.0),
    };
    let corners = if part == ShapePart::Points { symbol } else { &[] };
    ElementLook { mode, alpha, corners }
}

fn series_ink(part: ShapePart, role: Role, number: usize) -> Ink {
    match (part, role) {
        (ShapePart::Whisker, Role::Bars) => Ink::Black,
        // Published ones are many, and no measured one is to have the colour of one.
        (_, Role::Published) => Ink::Soft,
        _ => Ink::Series(number),
    }
}

/// Puts the corners around each place, a path for each; without corners the paths stay.
fn stamped(paths: Vec<Vec<PagePlace>>, corners: &[PagePlace]) -> Vec<Vec<PagePlace>> {
    if corners.is_empty() {
        return paths;
    }
    let mut stamps = Vec::new();
    for (x, y) in paths.into_iter().flatten() {
        stamps.push(corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect());
    }
    stamps
}

/// Returns all elements of a chart but its texts and its legend, from back to front.
pub(crate) fn elements<'a>(chart: &'a PlacedChart) -> Vec<PictureElement<'a>> {
    let (shades, shapes): (Vec<&PlotShape>, Vec<&PlotShape>) =
        chart.shapes.iter().partition(|shape| shape.part == ShapePart::Shade);
    let mut elements: Vec<PictureElement> = Vec::new();
    elements.extend(shades.into_iter().map(|shape| shape_element(chart, shape)));
    elements.extend(frame(chart));
    for cell in &chart.cells {
        // A thin line of paper is left between neighbours.
        let area = block(cell.low, (cell.high.0 - 0.7, cell.high.1 + 0.7));
        elements.push(cell_element(area, cell.shade, ElementSource::Cell(cell)));
    }
    elements.extend(shapes.into_iter().map(|shape| shape_element(chart, shape)));
    elements
}

/// Opacity of a cell whose value is the one without a colour, so that it is seen, too.
const MIN_CELL_ALPHA: f64 = 0.06;

/// Fills an area with the colour of a cell. Values away from the middle have the colour of the first
/// series below it, and of the second above it: these fit light and dark pages.
fn cell_element(area: Vec<PagePlace>, shade: CellShade, source: ElementSource) -> PictureElement {
    let (ink, alpha) = match shade {
        CellShade::Unknown => (Ink::Cell(None), 1.0),
        CellShade::Rising(share) => (Ink::Cell(Some(share)), 1.0),
        CellShade::Away(share) => {
            let strength = share.abs().min(1.0);
            let alpha = MIN_CELL_ALPHA + (1.0 - MIN_CELL_ALPHA) * strength;
            (Ink::Series(usize::from(share > 0.0)), (alpha * 100.0).round() / 100.0)
        }
    };
    PictureElement::new(&[area], ElementLook::new(DrawMode::Fill, alpha), ink, source)
}

/// Draws a shape of the chart, or a part of one.
pub(crate) fn shape_element<'a>(chart: &PlacedChart, shape: &'a PlotShape) -> PictureElement<'a> {
    let entry = chart.entry(shape);
    let (role, number) = match entry {
        Some(entry) => (entry.series.role, entry.colour),
        None => (Role::Law, 0),
    };
    let look = series_look(shape.part, role, number);
    let ink = match entry {
        Some(entry) if !entry.is_reference() => series_ink(shape.part, role, number),
        _ => Ink::Soft,
    };
    let paths = stamped(chart.axes.paths(shape), look.corners);
    PictureElement::new(&paths, look, ink, ElementSource::Shape(shape, look.corners))
}

/// Returns the corners of an area between a lower left and an upper right one.
fn block(low: PagePlace, high: PagePlace) -> Vec<PagePlace> {
    vec![low, (high.0, low.1), high, (low.0, high.1)]
}

/// Draws lines at the ticks (names have none, nor has a map), both axes with their ticks, and lines
/// from labels down to the plot.
fn frame<'a>(chart: &PlacedChart) -> [PictureElement<'a>; 3] {
    let PlotAxes { left, right, top, bottom, turned, .. } = chart.axes;
    let mut axes = vec![vec![(left, top), (left, bottom), (right, bottom)]];
    let mut grid = Vec::new();
    for x in &chart.across {
        axes.push(vec![(*x, bottom), (*x, bottom + 4.0)]);
        grid.push(vec![(*x, top), (*x, bottom)]);
    }
    for y in &chart.up {
        axes.push(vec![(left - 4.0, *y), (left, *y)]);
        if !turned {
            grid.push(vec![(left, *y), (right, *y)]);
        }
    }
    if !chart.cells.is_empty() {
        grid.clear();
    }
    let mut leaders = Vec::new();
    for text in chart.texts.iter().filter(|text| text.kind == TextKind::Mark) {
        if let Some((from, _)) = text.stretch {
            let x = chart.axes.horizontal(from);
            leaders.push(vec![(x, text.at.1 + 5.0), (x, top)]);
        }
    }
    let thin = ElementLook::new(DrawMode::Line(0.6, None), 1.0);
    let plain = ElementLook::new(DrawMode::Line(1.0, None), 1.0);
    let dashed = ElementLook::new(DrawMode::Line(0.8, DASHED), 0.75);
    [
        PictureElement::new(&grid, thin, Ink::Grid, ElementSource::Frame("grid")),
        PictureElement::new(&axes, plain, Ink::Black, ElementSource::Frame("frame")),
        PictureElement::new(&leaders, dashed, Ink::Soft, ElementSource::Frame("leaders")),
    ]
}

/// Draws the sample before a name in the legend.
pub(crate) fn sample_elements<'a>(item: &LegendItem) -> Vec<PictureElement<'a>> {
    let (x, y) = item.at;
    let (ends, area) = (vec![(x, y), (x + 22.0, y)], block((x, y - 4.0), (x + 22.0, y + 4.0)));
    let (role, number) = match item.sample {
        LegendSample::Shade(shade) => {
            return vec![cell_element(area, shade, ElementSource::Other)];
        }
        LegendSample::Series(role, number) => (role, number),
    };
    let parts: &[ShapePart] = match role {
        Role::Measured => &[ShapePart::Band, ShapePart::Line, ShapePart::Points],
        Role::Published => &[ShapePart::Line, ShapePart::Points],
        Role::Law | Role::Projected | Role::Distribution => &[ShapePart::Line],
        Role::Raw | Role::Quantiles => &[ShapePart::Points],
        Role::Bars | Role::Histogram => &[ShapePart::Bar],
    };
    let mut elements = Vec::new();
    for part in parts {
        let look = series_look(*part, role, number.unwrap_or(0));
        let paths = match part {
            ShapePart::Band | ShapePart::Bar => vec![area.clone()],
            ShapePart::Points => stamped(vec![vec![(x + 11.0, y)]], look.corners),
            _ => vec![ends.clone()],
        };
        let ink = match number {
            Some(number) => series_ink(*part, role, number),
            None => Ink::Soft,
        };
        elements.push(PictureElement::new(&paths, look, ink, ElementSource::Other));
    }
    elements
}

/// Returns the whole picture: elements, legend and texts as outlines.
pub(crate) fn picture<'a>(chart: &'a PlacedChart) -> Vec<PictureElement<'a>> {
    let mut picture = elements(chart);
    // Lines from labels pass behind other labels.
    let mut blanks = Vec::new();
    for text in chart.texts.iter().filter(|text| text.stretch.is_some()) {
        let (x, y) = text_start(text);
        let width = text_width(&with_micro_sign(&text.words), text.kind);
        blanks.push(block((x - 1.0, y + 2.0), (x + width + 1.0, y - 9.0)));
    }
    let (look, source) = (ElementLook::FILLED, ElementSource::Other);
    picture.push(PictureElement::new(&blanks, look, Ink::Paper, source));
    for item in &chart.items {
        picture.extend(sample_elements(item));
    }
    picture.extend(chart.texts.iter().map(outline));
    picture.retain(|element| element.path.is_some());
    picture
}

/// Returns the ink of a kind of text.
pub(crate) fn text_ink(kind: TextKind) -> Ink {
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

/// Returns the font, DejaVu Sans (free licence), bold for titles: pictures look the same where it is
/// not installed.
fn font(kind: TextKind) -> FontRef<'static> {
    static REGULAR: LazyLock<Vec<u8>> =
        LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/regular"))));
    static BOLD: LazyLock<Vec<u8>> =
        LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/bold"))));
    let data = match kind {
        TextKind::Title | TextKind::Nothing => &BOLD,
        _ => &REGULAR,
    };
    FontRef::new(data).expect("the font in this program can be read")
}

/// Unpacks a font that `build.rs` has packed.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut font = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut font).expect("the font in this program can be read");
    font
}

/// Returns the glyph of a letter, and the pixels from it to the next letter's.
fn glyph(font: &FontRef, letter: char, size: Size) -> (GlyphId, f64) {
    let glyph = font.charmap().map(letter).unwrap_or_default();
    let advance = font.glyph_metrics(size, LocationRef::default()).advance_width(glyph);
    (glyph, advance.unwrap_or_default().into())
}

/// Returns the pixels of a text on paper.
pub(crate) fn text_width(text: &str, kind: TextKind) -> f64 {
    let (font, size) = (font(kind), Size::new(letter_size(kind) as f32));
    text.chars().map(|letter| glyph(&font, letter, size).1).sum()
}

/// Returns the start of a text on paper: its left end, and its baseline.
pub(crate) fn text_start(text: &PlacedText) -> PagePlace {
    let width = text_width(&with_micro_sign(&text.words), text.kind);
    let left = match text.anchor {
        TextAnchor::Left => text.at.0,
        TextAnchor::Middle => text.at.0 - width / 2.0,
        TextAnchor::Right => text.at.0 - width,
    };
    (left, baseline(text))
}

/// Draws a text as the outlines of its letters.
fn outline<'a>(text: &PlacedText) -> PictureElement<'a> {
    let (font, size) = (font(text.kind), Size::new(letter_size(text.kind) as f32));
    let (glyphs, (mut start, base)) = (font.outline_glyphs(), text_start(text));
    let mut path = PathBuilder::new();
    for letter in with_micro_sign(&text.words).chars() {
        let (glyph, advance) = glyph(&font, letter, size);
        let mut strokes: Vec<PathElement> = Vec::new();
        if let Some(outline) = glyphs.get(glyph) {
            // A letter whose outline is broken is left blank.
            let _ = outline.draw((size, LocationRef::default()), &mut strokes);
        }
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
    let (mode, ink) = (DrawMode::Fill, text_ink(text.kind));
    PictureElement { path: path.finish(), mode, ink, alpha: 1.0, source: ElementSource::Other }
}
