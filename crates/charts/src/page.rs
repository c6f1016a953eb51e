//! A chart on its page: `layout` places it, and every format draws it.
//!
//! A page is measured in pixels on paper and in columns and lines on a terminal; a [`PageMedium`]
//! says which.

use crate::figure::{Point, Role};
use crate::ruler::AxisRuler;
use crate::shapes::{PlotShape, SeriesEntry, ShapePart};

/// A place on the page, from its upper left corner.
pub(crate) type PagePlace = (f64, f64);

/// Meaning of a text, which decides how large it is written. The styles of a page know these by
/// their names in lower case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextKind {
    Title,
    /// A name in the legend.
    Key,
    /// The title of the vertical axis.
    Upright,
    /// The title of the horizontal axis.
    Across,
    Tick,
    Mark,
    Region,
    /// The value of a bar.
    Value,
    /// The name of a line at its end.
    Name,
    /// The value of a cell of a map, with its position on the colour scale.
    Cell(f64),
    Note,
    /// Words in place of a plot.
    Nothing,
}

/// Point of a text that lies at its place; vertically it is the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAnchor {
    Left,
    Middle,
    Right,
}

/// A line of text on the page.
#[derive(Clone, Debug)]
pub(crate) struct PlacedText {
    pub(crate) words: String,
    pub(crate) at: PagePlace,
    pub(crate) anchor: TextAnchor,
    pub(crate) kind: TextKind,
    /// Stretch of the x axis that a label names.
    pub(crate) stretch: Option<(f64, f64)>,
}

/// Sizes on a kind of page.
#[derive(Clone, Copy)]
pub(crate) struct PageMedium {
    pub(crate) width: f64,
    pub(crate) margin: f64,
    /// Height of a row of text.
    pub(crate) row: fn(TextKind) -> f64,
    /// Height of a plot over numbers.
    pub(crate) plot: f64,
    /// Height of a name with one value, and of each further value.
    pub(crate) name: (f64, f64),
    /// Distance from the lower end of the plot to the middle of its ticks' labels.
    pub(crate) below: f64,
    /// Distance between two texts, and between the plot and a text beside it.
    pub(crate) gap: f64,
    /// Width of a sample in the legend.
    pub(crate) sample: f64,
    /// Largest number of ticks of the vertical axis.
    pub(crate) ticks: usize,
    /// Largest width of a tick's label.
    pub(crate) longest: f64,
    /// Rows of labels above the plot.
    pub(crate) rows: usize,
    /// Whether title, legend and notes are elsewhere.
    pub(crate) bare: bool,
    /// Whether all measured lines, if several, have their names at their ends.
    pub(crate) has_names_at_ends: bool,
    /// Returns the width of a text.
    pub(crate) measure: fn(&str, TextKind) -> f64,
    /// Sign in place of the end of a text that is cut.
    pub(crate) cut: &'static str,
}

impl PageMedium {
    pub(crate) fn width_of(&self, text: &str, kind: TextKind) -> f64 {
        (self.measure)(text, kind)
    }

    /// Cuts a text to the room, with a sign where it is cut.
    pub(crate) fn fit(&self, text: &str, kind: TextKind, room: f64) -> String {
        if self.width_of(text, kind) <= room {
            return text.to_string();
        }
        let mut fitting = String::new();
        for (end, _) in text.char_indices() {
            let cut = format!("{}{}", text[..end].trim_end(), self.cut);
            if self.width_of(&cut, kind) > room {
                break;
            }
            fitting = cut;
        }
        fitting
    }
}

/// Colour of a cell of a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CellShade {
    /// There is no value.
    Unknown,
    /// Position between the least value, 0, and the largest, 1.
    Rising(f64),
    /// Distance from the value without a colour: -1 and less and 1 and more are the strongest.
    Away(f64),
}

/// Content of a sample in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LegendSample {
    /// A series of this role, with the number of its colour; none for all series of the role.
    Series(Role, Option<usize>),
    /// A colour of a map.
    Shade(CellShade),
}

/// An item of the legend.
#[derive(Clone, Debug)]
pub(crate) struct LegendItem {
    pub(crate) sample: LegendSample,
    pub(crate) name: String,
    /// Indices of the series that it switches.
    pub(crate) series: Vec<usize>,
    /// Left end and middle.
    pub(crate) at: PagePlace,
}

/// A cell of a map, from its lower left to its upper right corner.
#[derive(Clone, Debug)]
pub(crate) struct MapCell {
    pub(crate) low: PagePlace,
    pub(crate) high: PagePlace,
    pub(crate) shade: CellShade,
    /// Place and value in words.
    pub(crate) words: String,
}

/// Edges of the plot and both of its axes.
#[derive(Clone, Debug)]
pub(crate) struct PlotAxes {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: AxisRuler,
    pub(crate) y: AxisRuler,
    /// Whether the x axis goes downwards: names are one below the other, so that they can be read.
    pub(crate) turned: bool,
}

impl PlotAxes {
    /// Returns the place on the page of values of both axes.
    pub(crate) fn place(&self, x: f64, y: f64) -> PagePlace {
        self.place_coordinates(self.x.scale.coordinate(x), self.y.scale.coordinate(y))
    }

    /// Returns the place on the page of coordinates, as `Scale::coordinate` gives them.
    fn place_coordinates(&self, x: f64, y: f64) -> PagePlace {
        let (x, y) = (self.x.position_at(x), self.y.position_at(y));
        let (across, up) = if self.turned { (y, 1.0 - x) } else { (x, y) };
        let (wide, high) = (self.right - self.left, self.bottom - self.top);
        (self.left + across * wide, self.bottom - up * high)
    }

    /// Returns the horizontal place of a value of the horizontal axis.
    pub(crate) fn horizontal(&self, value: f64) -> f64 {
        let (x, y) = if self.turned { (0.0, value) } else { (value, 0.0) };
        self.place(x, y).0
    }

    /// Returns the vertical place of a value of the vertical axis.
    pub(crate) fn vertical(&self, value: f64) -> f64 {
        let (x, y) = if self.turned { (value, 0.0) } else { (0.0, value) };
        self.place(x, y).1
    }

    /// Returns the paths of a shape on the page, without points that cannot be drawn and without
    /// empty paths.
    pub(crate) fn paths(&self, shape: &PlotShape) -> Vec<Vec<PagePlace>> {
        let mut paths = Vec::new();
        for points in &shape.paths {
            let mut seen: Vec<Point> = points.clone();
            // A mark beyond the axis would lie on its end.
            seen.retain(|point| shape.part != ShapePart::Mark || self.x.contains(point.x));
            let xs = shape.part.coordinates(self.x.scale, seen.iter().map(|point| point.x));
            let ys = shape.part.coordinates(self.y.scale, seen.iter().map(|point| point.y));
            let mut path = Vec::new();
            for pair in xs.into_iter().zip(ys) {
                if let (Some(x), Some(y)) = pair {
                    path.push(self.place_coordinates(x, y));
                }
            }
            if !path.is_empty() {
                paths.push(path);
            }
        }
        paths
    }
}

/// A figure on its page.
pub(crate) struct PlacedChart<'a> {
    pub(crate) height: f64,
    pub(crate) axes: PlotAxes,
    pub(crate) entries: Vec<SeriesEntry<'a>>,
    pub(crate) items: Vec<LegendItem>,
    pub(crate) texts: Vec<PlacedText>,
    /// Places of the ticks of the horizontal axis.
    pub(crate) across: Vec<f64>,
    /// Places of the ticks of the vertical axis.
    pub(crate) up: Vec<f64>,
    pub(crate) shapes: Vec<PlotShape>,
    pub(crate) cells: Vec<MapCell>,
    /// Sentence that says how many points are not drawn, and why.
    pub(crate) left_out: Option<String>,
}

impl<'a> PlacedChart<'a> {
    /// Returns the entry of the series that a shape belongs to, if it belongs to one.
    pub(crate) fn entry(&self, shape: &PlotShape) -> Option<&SeriesEntry<'a>> {
        self.entries.get(shape.series?)
    }
}
