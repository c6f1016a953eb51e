//! A chart in pixels: what SVG, PNG and HTML have in common. Each of them writes down these elements.

use crate::figure::Role;
use crate::font;
use crate::layout::{Anchor, At, Axes, Cell, Chart, Item, Kind, Medium, Sample, Text};
use crate::shapes::{Part, Shape};

/// The sizes of a picture for a paper: 7.2 inches at 100 pixels to the inch.
pub(crate) const PAPER: Medium = Medium {
    width: 720.0,
    margin: 14.0,
    row,
    plot: 340.0,
    name: (24.0, 14.0),
    below: 14.0,
    gap: 7.0,
    sample: 28.0,
    ticks: 9,
    longest: 210.0,
    rows: 8,
    bare: false,
    measure: |text, kind| font::width(&micro(text), letters(kind)),
    cut: "…",
};

fn row(kind: Kind) -> f64 {
    match kind {
        Kind::Title | Kind::Nothing => 24.0,
        Kind::Key | Kind::Across => 17.0,
        Kind::Upright => 18.0,
        Kind::Mark | Kind::Region | Kind::Note | Kind::Value | Kind::Tick => 13.0,
        Kind::Cell => 11.0,
    }
}

/// Pixels of a text, and whether it is bold.
pub(crate) fn letters(kind: Kind) -> (f64, bool) {
    match kind {
        Kind::Title | Kind::Nothing => (14.0, true),
        Kind::Upright | Kind::Across => (11.0, false),
        Kind::Key | Kind::Tick => (10.0, false),
        Kind::Mark | Kind::Region | Kind::Value => (9.5, false),
        Kind::Note => (9.0, false),
        Kind::Cell => (8.5, false),
    }
}

/// What something is drawn with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ink {
    Black,
    Soft,
    Grid,
    Paper,
    /// Of the series of that number. The colours are those that the colour-blind tell apart (Okabe and Ito
    /// 2008), without the yellow, which paper hides.
    Series(usize),
    /// Of a cell with that share of the greatest value.
    Cell(Option<f64>),
}

const SERIES: [[u8; 3]; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [90, 90, 90],
];

/// Five steps of the colour map viridis, evenly spaced.
const VIRIDIS: [[u8; 3]; 5] =
    [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

impl Ink {
    /// Red, green, blue.
    pub(crate) fn colour(self) -> [u8; 3] {
        match self {
            Self::Black => [20, 20, 20],
            Self::Soft => [95, 95, 95],
            Self::Grid => [226, 226, 226],
            Self::Paper => [255, 255, 255],
            Self::Series(number) => SERIES[number % SERIES.len()],
            Self::Cell(None) => [236, 236, 236],
            Self::Cell(Some(share)) => {
                let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
                let first = (place as usize).min(VIRIDIS.len() - 2);
                let mix = |k: usize| {
                    let (one, other) =
                        (f64::from(VIRIDIS[first][k]), f64::from(VIRIDIS[first + 1][k]));
                    (one + (other - one) * (place - first as f64)).round() as u8
                };
                [mix(0), mix(1), mix(2)]
            }
        }
    }

    /// Black or white, whichever is read better on it (WCAG's relative luminance).
    fn readable_on(self) -> [u8; 3] {
        let linear = |part: u8| (f64::from(part) / 255.0).powf(2.2);
        let [red, green, blue] = self.colour().map(linear);
        let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        if luminance > 0.18 { [0, 0, 0] } else { [255, 255, 255] }
    }
}

/// How paths are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Draw {
    Fill,
    /// So many pixels wide, with dashes and gaps of these lengths.
    Line(f64, Option<(f64, f64)>),
    /// A round dot of that diameter at each place.
    Dots(f64),
}

const DASHED: Option<(f64, f64)> = Some((6.0, 3.5));
const DOTTED: Option<(f64, f64)> = Some((1.4, 2.6));

/// Paths that look alike.
#[derive(Clone, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) paths: Vec<Vec<At>>,
    pub(crate) draw: Draw,
    pub(crate) ink: Ink,
    pub(crate) alpha: f64,
    /// What it is of the frame; empty within the plot.
    pub(crate) class: &'static str,
    /// The shape that it draws, and the corners around each of its stamps.
    pub(crate) of: Option<(&'a Shape, &'static [At])>,
}

impl Element<'_> {
    fn new(paths: Vec<Vec<At>>, draw: Draw, ink: Ink, alpha: f64) -> Self {
        Self { paths, draw, ink, alpha, class: "", of: None }
    }
}

/// The symbols by which series are told apart without colours; the first is a dot.
const SYMBOLS: [&[At]; 5] = [
    &[],
    &[(-2.7, -2.7), (2.7, -2.7), (2.7, 2.7), (-2.7, 2.7)],
    &[(0.0, -3.8), (3.4, 2.4), (-3.4, 2.4)],
    &[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)],
    &[(0.0, 3.8), (3.4, -2.4), (-3.4, -2.4)],
];

/// How a part of a series looks: how it is drawn, how strong, with which corners.
fn look(part: Part, role: Role, number: usize, turned: bool) -> (Draw, f64, &'static [At]) {
    let symbol = SYMBOLS[number % SYMBOLS.len()];
    // Beside a symbol that is used again stands another line.
    let beside = if (number / SYMBOLS.len()).is_multiple_of(2) { DOTTED } else { DASHED };
    let (draw, alpha) = match (part, role) {
        (Part::Band, _) => (Draw::Fill, 0.2),
        (Part::Steps, _) => (Draw::Fill, 0.16),
        (Part::Bar, _) => (Draw::Fill, 0.55),
        (Part::Shade, _) => (Draw::Fill, 0.1),
        (Part::Outline, _) => (Draw::Line(1.4, None), 1.0),
        (Part::Whisker | Part::Cap, _) => (Draw::Line(1.2, None), 1.0),
        (Part::Mark, _) => (Draw::Line(0.8, DASHED), 0.75),
        // A law of the same colour may lie over it.
        (Part::Line, Role::Measured) => (Draw::Line(1.0, None), 0.6),
        (Part::Line, Role::Projected) => (Draw::Line(1.6, DASHED), 1.0),
        (Part::Line, Role::Published) => (Draw::Line(1.0, beside), 1.0),
        (Part::Line, _) => (Draw::Line(2.2, None), 1.0),
        (_, Role::Raw) => return (Draw::Dots(3.4), 0.55, &[]),
        _ if symbol.is_empty() => (Draw::Dots(6.0), 1.0),
        _ => (Draw::Fill, 1.0),
    };
    let corners: &[At] = match part {
        Part::Cap if turned => &[(0.0, -3.0), (0.0, 3.0)],
        Part::Cap => &[(-3.0, 0.0), (3.0, 0.0)],
        Part::Points => symbol,
        _ => &[],
    };
    (draw, alpha, corners)
}

fn ink(part: Part, role: Role, number: usize) -> Ink {
    match (part, role) {
        (Part::Whisker | Part::Cap, Role::Bars) => Ink::Black,
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
pub(crate) fn elements<'a>(chart: &'a Chart) -> Vec<Element<'a>> {
    let axes = &chart.axes;
    let (mut behind, mut before) = (Vec::new(), Vec::new());
    for shape in chart.shapes.iter().filter(|shape| shape.part != Part::Hidden) {
        let entry = shape.series.and_then(|index| chart.entries.get(index));
        let (role, number) = entry.map_or((Role::Law, 0), |e| (e.series.role, e.colour));
        let (draw, alpha, corners) = look(shape.part, role, number, axes.turned);
        let ink = if entry.is_some() { ink(shape.part, role, number) } else { Ink::Soft };
        let paths = stamped(axes.paths(shape), corners);
        let of = Some((shape, corners));
        let is_shade = shape.part == Part::Shade;
        let to = if is_shade { &mut behind } else { &mut before };
        to.push(Element { of, ..Element::new(paths, draw, ink, alpha) });
    }
    behind.extend(grid(chart));
    for cell in &chart.cells {
        let ink = Ink::Cell(cell.share);
        let (low, high) = (cell.low, (cell.high.0 - 0.7, cell.high.1 + 0.7));
        behind.push(Element::new(vec![block(low, high)], Draw::Fill, ink, 1.0));
    }
    behind.extend(before);
    behind.extend(frame(chart));
    behind
}

fn block(low: At, high: At) -> Vec<At> {
    vec![low, (high.0, low.1), high, (low.0, high.1)]
}

/// Lines at the ticks; names have none.
fn grid<'a>(chart: &Chart) -> Option<Element<'a>> {
    let Axes { left, right, top, bottom, turned, .. } = chart.axes;
    let up = chart.up.iter().filter(|_| !turned).map(|y| vec![(left, *y), (right, *y)]);
    let across = chart.across.iter().map(|x| vec![(*x, top), (*x, bottom)]);
    let paths = across.chain(up).collect();
    let element = Element::new(paths, Draw::Line(0.6, None), Ink::Grid, 1.0);
    chart.cells.is_empty().then_some(Element { class: "grid", ..element })
}

/// Both axes with their ticks, and lines from labels down to the plot, which pass behind other labels.
fn frame<'a>(chart: &Chart) -> [Element<'a>; 3] {
    let Axes { left, right, top, bottom, .. } = chart.axes;
    let mut paths = vec![vec![(left, top), (left, bottom), (right, bottom)]];
    paths.extend(chart.across.iter().map(|x| vec![(*x, bottom), (*x, bottom + 4.0)]));
    paths.extend(chart.up.iter().map(|y| vec![(left - 4.0, *y), (left, *y)]));
    let axes = Element::new(paths, Draw::Line(1.0, None), Ink::Black, 1.0);
    let leader = |text: &Text| {
        let (from, _) = text.of.filter(|_| text.kind == Kind::Mark)?;
        let x = chart.axes.at((from, 0.0)).0;
        Some(vec![(x, text.at.1 + 5.0), (x, top)])
    };
    let leaders = chart.texts.iter().filter_map(leader).collect();
    let leaders = Element::new(leaders, Draw::Line(0.8, DASHED), Ink::Soft, 0.75);
    let behind = |text: &Text| {
        let (x, y) = start(text);
        let wide = font::width(&micro(&text.words), letters(text.kind));
        block((x - 1.0, y + 2.0), (x + wide + 1.0, y - 9.0))
    };
    let labels = chart.texts.iter().filter(|text| text.of.is_some()).map(behind).collect();
    let behind = Element::new(labels, Draw::Fill, Ink::Paper, 1.0);
    [
        Element { class: "frame", ..axes },
        Element { class: "leaders", ..leaders },
        Element { class: "behind", ..behind },
    ]
}

/// What stands before a name in the legend.
pub(crate) fn sample<'a>(item: &Item) -> Vec<Element<'a>> {
    let (x, y) = item.at;
    let (ends, area) = (vec![(x, y), (x + 22.0, y)], block((x, y - 4.0), (x + 22.0, y + 4.0)));
    let (role, number, all) = match item.sample {
        Sample::Shade(share) => {
            return vec![Element::new(vec![area], Draw::Fill, Ink::Cell(share), 1.0)];
        }
        Sample::Series(role, number) => (role, number, false),
        Sample::All(role) => (role, 0, true),
    };
    let parts: &[Part] = match role {
        Role::Measured => &[Part::Band, Part::Line, Part::Points],
        Role::Published => &[Part::Line, Part::Points],
        Role::Law | Role::Projected => &[Part::Line],
        Role::Raw => &[Part::Points],
        Role::Steps => &[Part::Steps, Part::Outline],
        Role::Bars => &[Part::Bar],
    };
    let element = |part: &Part| {
        let (draw, alpha, corners) = look(*part, role, number, false);
        let paths = match part {
            Part::Band | Part::Steps | Part::Bar => vec![area.clone()],
            Part::Points => stamped(vec![vec![(x + 11.0, y)]], corners),
            _ => vec![ends.clone()],
        };
        let ink = if all { Ink::Soft } else { ink(*part, role, number) };
        Element::new(paths, draw, ink, alpha)
    };
    parts.iter().map(element).collect()
}

/// The ink of a kind of text, but for those in cells.
pub(crate) fn ink_of(kind: Kind) -> Ink {
    match kind {
        Kind::Upright | Kind::Across | Kind::Region | Kind::Note | Kind::Nothing => Ink::Soft,
        _ => Ink::Black,
    }
}

/// All texts with their colours, those in cells among them.
pub(crate) fn texts(chart: &Chart) -> Vec<(Text, [u8; 3])> {
    let of_cell = |cell: &Cell| {
        let at = ((cell.low.0 + cell.high.0) / 2.0, (cell.low.1 + cell.high.1) / 2.0);
        let (words, anchor, kind) = (cell.words.clone(), Anchor::Middle, Kind::Cell);
        (Text { words, at, anchor, kind, of: None }, Ink::Cell(cell.share).readable_on())
    };
    let cells = chart.cells.iter().filter(|cell| !cell.words.is_empty()).map(of_cell);
    let own = chart.texts.iter().map(|text| (text.clone(), ink_of(text.kind).colour()));
    own.chain(cells).collect()
}

/// Program texts write `us`, as terminals may have no more than ASCII.
pub(crate) fn micro(text: &str) -> String {
    text.replace(" us", " µs").replace("(us)", "(µs)")
}

/// Where a text begins: its left end, and the line that its letters stand on.
pub(crate) fn start(text: &Text) -> At {
    let (pixels, bold) = letters(text.kind);
    let wide = font::width(&micro(&text.words), (pixels, bold));
    let left = match text.anchor {
        Anchor::Left => text.at.0,
        Anchor::Middle => text.at.0 - wide / 2.0,
        Anchor::Right => text.at.0 - wide,
    };
    (left, text.at.1 + 0.36 * pixels)
}
