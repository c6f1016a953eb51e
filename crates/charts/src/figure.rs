//! Charts before they are drawn: axes, series with intervals, names.

/// What the numbers of an axis are. How they are written is up to the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A whole number of things: members, rounds, pages.
    Count,
    /// A number without a unit: how many times as much.
    Ratio,
    /// Hundredths of a whole.
    Percent,
    /// The axis has names (`Axis::names`); a position is an index into them.
    Names,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart. Values at or below zero cannot be drawn on it; a drawing
    /// says how many points that left out.
    Log,
}

/// Beyond this, differences and ratios of finite values may be infinite.
const HUGE: f64 = 1e280;

impl Scale {
    /// Whether the value can be drawn at all.
    pub(crate) fn draws(self, value: f64) -> bool {
        let size = value.abs();
        size < HUGE && (self == Self::Linear || (value > 0.0 && size > 1.0 / HUGE))
    }

    /// Maps values so that what is equally far apart on the axis has equal differences.
    pub(crate) fn on(self, value: f64) -> f64 {
        if self == Self::Log { value.ln() } else { value }
    }

    /// The inverse of [`Scale::on`].
    pub(crate) fn back(self, place: f64) -> f64 {
        if self == Self::Log { place.exp() } else { place }
    }
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is on it, without the unit: "members of the ring".
    pub label: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// How it is first shown; where a reader can choose, the other is offered.
    pub scale: Scale,
    /// The names of a [`Unit::Names`] axis, by position; empty for any other.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis of numbers.
    pub fn new(label: &str, unit: Unit, scale: Scale) -> Self {
        Self { label: label.to_string(), unit, scale, names: Vec::new() }
    }

    /// An axis of names.
    pub fn with_names(label: &str, names: Vec<String>) -> Self {
        Self { names, ..Self::new(label, Unit::Names, Scale::Linear) }
    }
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position, in the unit of the x axis; of a name, its index.
    pub x: f64,
    /// Value, in the unit of the y axis: signed, never clamped.
    pub y: f64,
    /// Lower end of the interval of `y` in the same unit, if there is one.
    pub low: Option<f64>,
    /// Upper end of the interval of `y` in the same unit.
    pub high: Option<f64>,
    /// How well it is known, and so how it is drawn.
    pub certainty: PointCertainty,
}

/// How well the value of a point is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointCertainty {
    /// A symbol at the value.
    Sure,
    /// The symbol is hollow, and a `~` stands before the value.
    Rough,
    /// Only the ends of a range are known: no symbol, and both ends in place of the value.
    RangeOnly,
}

impl Point {
    /// A point without an interval.
    pub fn bare(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None, certainty: PointCertainty::Sure }
    }

    /// A point whose interval has these ends.
    pub fn with_ends(x: f64, y: f64, [low, high]: [f64; 2]) -> Self {
        Self { low: Some(low), high: Some(high), ..Self::bare(x, y) }
    }

    /// A point of which only the ends of its range are known; both are above zero.
    pub fn range(x: f64, [low, high]: [f64; 2]) -> Self {
        Self {
            certainty: PointCertainty::RangeOnly,
            ..Self::with_ends(x, (low * high).sqrt(), [low, high])
        }
    }

    /// The interval, if it is one that can be drawn.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.low?, self.high?);
        (low <= high && low.is_finite() && high.is_finite()).then_some((low, high))
    }
}

/// What a series is, and so how it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Estimates with intervals: points, their line, a band.
    Measured,
    /// Single samples: small points, no line.
    Raw,
    /// A fitted law: a line without points.
    Law,
    /// A projection from another measurement: a dashed line.
    Projected,
    /// Figures that others have published: thin, dotted, and switched off together.
    Published,
    /// The share of all that is not above each x: a line without points.
    Distribution,
    /// Percentiles of a distribution: points on its line.
    Quantiles,
    /// A value by name: bars with intervals.
    Bars,
}

impl Role {
    /// Whether it is a line without points of its own.
    pub(crate) fn is_line(self) -> bool {
        matches!(self, Self::Law | Self::Projected | Self::Distribution)
    }

    /// The role of the series that one of this role goes with; none of one that stands for itself.
    pub(crate) fn led_by(self) -> Option<Self> {
        match self {
            Self::Law | Self::Projected => Some(Self::Measured),
            Self::Quantiles => Some(Self::Distribution),
            _ => None,
        }
    }
}

/// Values that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend, without the run's.
    pub name: String,
    /// Index of the run that it is of; none for what is of no run.
    pub run: Option<usize>,
    /// What it is.
    pub role: Role,
    /// Its points, by x.
    pub points: Vec<Point>,
}

impl Series {
    /// A series of the run of that index.
    pub fn new(name: impl Into<String>, run: usize, role: Role, points: Vec<Point>) -> Self {
        Self { name: name.into(), run: Some(run), role, points }
    }
}

/// A named place on the x axis: a cache size, a knee.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisMark {
    /// Its most likely place, in the unit of the x axis.
    pub x: f64,
    /// The interval of that place, if it is not exact.
    pub between: Option<(f64, f64)>,
    /// What is there.
    pub label: String,
}

/// A named stretch of the x axis.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisRegion {
    /// Lower end, in the unit of the x axis.
    pub from: f64,
    /// Upper end, in the same unit.
    pub to: f64,
    /// What it is.
    pub label: String,
}

/// A value for every place of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// Unit of the values.
    pub unit: Unit,
    /// Positions on the x axis, in its unit, rising.
    pub xs: Vec<f64>,
    /// Positions on the y axis, in its unit, rising.
    pub ys: Vec<f64>,
    /// Values in `unit`, a row for every y; none where nothing was measured or resolved.
    pub values: Vec<Vec<Option<f64>>>,
}

/// What is drawn between the axes.
#[derive(Debug, Clone, PartialEq)]
pub enum FigureBody {
    /// Series over the same axes.
    Series(Vec<Series>),
    /// A heat map.
    Map(HeatMap),
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in links and files: lower case letters, digits and hyphens.
    pub id: String,
    /// What it shows, as a heading.
    pub title: String,
    /// What is to be seen in it, in a sentence or two: its text alternative.
    pub in_words: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub body: FigureBody,
    /// Places on the x axis.
    pub marks: Vec<AxisMark>,
    /// Stretches of the x axis.
    pub regions: Vec<AxisRegion>,
    /// The x from which on the first point that holds is what its series may be divided by
    /// ([`crate::RatioBase::Own`]).
    pub base: Option<f64>,
}

/// Ratio of the largest to the least value from which a linear axis hides the least.
const WIDE: f64 = 20.0;

/// Share of the points that a logarithmic axis must be able to show.
const MOSTLY: f64 = 0.75;

impl Figure {
    /// A figure without series.
    pub fn new(id: &str, title: &str, x: Axis, y: Axis) -> Self {
        Self {
            id: id.to_string(),
            title: title.to_string(),
            in_words: String::new(),
            x,
            y,
            body: FigureBody::Series(Vec::new()),
            marks: Vec::new(),
            regions: Vec::new(),
            base: None,
        }
    }

    /// The series; none of a map.
    pub fn series(&self) -> &[Series] {
        match &self.body {
            FigureBody::Series(series) => series,
            FigureBody::Map(_) => &[],
        }
    }

    /// The same figure of those of the series that have points; none where there are none.
    pub fn with_series(mut self, series: impl IntoIterator<Item = Series>) -> Option<Self> {
        let series = series.into_iter().filter(|series| !series.points.is_empty());
        self.body = FigureBody::Series(series.collect());
        (!self.series().is_empty()).then_some(self)
    }

    /// The same with a vertical axis that suits its values: logarithmic if at least three quarters
    /// of them are above zero and the largest is at least 20 times the least of these.
    pub fn with_fitting_scale(mut self) -> Self {
        let values = || self.series().iter().flat_map(|series| &series.points).map(|point| point.y);
        let positive = || values().filter(|value| *value > 0.0);
        let (least, most) = extremes(positive());
        let enough = positive().count() as f64 >= MOSTLY * values().count() as f64;
        if enough && most / least >= WIDE {
            self.y.scale = Scale::Log;
        }
        self
    }
}

/// The least and the largest of these; infinite ends, in the wrong order, if there are none.
pub(crate) fn extremes(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let wider = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), wider)
}
