//! A chart on its page: what `layout` places and every format draws.
//!
//! A page is measured in pixels on paper and in columns and lines on a terminal; a [`PageMedium`] says
//! which.

use crate::figure::{Point, Role};
use crate::ruler::AxisRuler;
use crate::shapes::{PlotShape, SeriesEntry, ShapePart};

/// A place on the page, from its upper left corner.
pub(crate) type At = (f64, f64);

/// What a text is, and so how large it is written.
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
    /// In place of a plot.
    Nothing,
}

/// Which point of a text lies at its place; vertically it is the middle.
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
    pub(crate) at: At,
    pub(crate) anchor: TextAnchor,
    pub(crate) kind: TextKind,
    /// Of a label, the stretch of the x axis that it is for.
    pub(crate) of: Option<(f64, f64)>,
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
    /// From the lower end of the plot to the middle of its ticks' labels.
    pub(crate) below: f64,
    /// Between two texts, and between the plot and a text beside it.
    pub(crate) gap: f64,
    /// Width of a sample in the legend.
    pub(crate) sample: f64,
    /// Ticks of the vertical axis.
    pub(crate) ticks: usize,
    /// The widest label of a tick.
    pub(crate) longest: f64,
    /// Rows of labels above the plot.
    pub(crate) rows: usize,
    /// Whether title, legend and notes are elsewhere.
    pub(crate) bare: bool,
    /// The width of a text.
    pub(crate) measure: fn(&str, TextKind) -> f64,
    /// Stands for the end of a text that is cut.
    pub(crate) cut: &'static str,
}

impl PageMedium {
    pub(crate) fn width_of(&self, text: &str, kind: TextKind) -> f64 {
        (self.measure)(text, kind)
    }

    /// The beginning of a text that fits, marked where it is cut.
    pub(crate) fn fit(&self, text: &str, kind: TextKind, room: f64) -> String {
        if self.width_of(text, kind) <= room {
            return text.to_string();
        }
        let cut = |(end, _)| format!("{}{}", text[..end].trim_end(), self.cut);
        let fits = |cut: &String| self.width_of(cut, kind) <= room;
        text.char_indices().map(cut).take_while(fits).last().unwrap_or_default()
    }
}

/// What a sample in the legend shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LegendSample {
    /// A series of this role, with the number of its colour; none for all of the role.
    Series(Role, Option<usize>),
    /// A position on the colour scale of a map; none for cells without a value.
    Shade(Option<f64>),
}

/// An item of the legend.
#[derive(Clone, Debug)]
pub(crate) struct LegendItem {
    pub(crate) sample: LegendSample,
    pub(crate) name: String,
    /// The series that it switches.
    pub(crate) series: Vec<usize>,
    /// Left end and middle.
    pub(crate) at: At,
}

/// A cell of a map, from its lower left to its upper right corner.
#[derive(Clone, Debug)]
pub(crate) struct MapCell {
    pub(crate) low: At,
    pub(crate) high: At,
    /// Its position on the colour scale; none without a value.
    pub(crate) share: Option<f64>,
    /// Its place and value in words.
    pub(crate) said: String,
}

/// Where the plot is, and what is on its axes.
#[derive(Clone, Debug)]
pub(crate) struct PlotAxes {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: AxisRuler,
    pub(crate) y: AxisRuler,
    /// Names of x are one below the other, so that they can be read.
    pub(crate) turned: bool,
}

impl PlotAxes {
    /// Where a place of the figure lies on the page.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> At {
        self.put((self.x.scale.coordinate(x), self.y.scale.coordinate(y)))
    }

    /// The same of places that `Scale::coordinate` has given.
    fn put(&self, (x, y): (f64, f64)) -> At {
        let (across, up) = match self.turned {
            true => (self.y.position_at(y), 1.0 - self.x.position_at(x)),
            false => (self.x.position_at(x), self.y.position_at(y)),
        };
        let (wide, high) = (self.right - self.left, self.bottom - self.top);
        (self.left + across * wide, self.bottom - up * high)
    }

    /// The horizontal place of a value of the horizontal axis.
    pub(crate) fn across(&self, value: f64) -> f64 {
        self.at(if self.turned { (0.0, value) } else { (value, 0.0) }).0
    }

    /// The vertical place of a value of the vertical axis.
    pub(crate) fn up(&self, value: f64) -> f64 {
        self.at(if self.turned { (value, 0.0) } else { (0.0, value) }).1
    }

    /// The paths of a shape on the page.
    pub(crate) fn paths(&self, PlotShape { part, paths, .. }: &PlotShape) -> Vec<Vec<At>> {
        let is_seen = |p: &&Point| *part != ShapePart::Mark || self.x.contains(p.x);
        let path = |points: &Vec<Point>| -> Vec<At> {
            let points: Vec<&Point> = points.iter().filter(is_seen).collect();
            let xs = part.places(self.x.scale, points.iter().map(|p| p.x));
            let ys = part.places(self.y.scale, points.iter().map(|p| p.y));
            xs.into_iter().zip(ys).filter_map(|(x, y)| Some(self.put((x?, y?)))).collect()
        };
        paths.iter().map(path).filter(|path| !path.is_empty()).collect()
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
    /// How many points are not drawn, and why.
    pub(crate) left_out: Option<String>,
}
