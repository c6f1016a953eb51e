//! Charts before they are drawn: axes, series with intervals, names.
//!
//! A figure can be read from JSON, whose keys are the fields and whose words are the variants, both
//! in snake case (`switchcost help schema figure`). So other programs have their figures drawn, as
//! the pages of `switchcost fleet` do.

use schemars::JsonSchema;
use serde::Deserialize;

/// Unit of the numbers on an axis. The layout decides how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A whole number of things: members, rounds, pages.
    Count,
    /// A number without a unit: a multiple of something.
    Ratio,
    /// Hundredths of a whole.
    Percent,
    /// Hundredths by which something is more, with a sign: +5 %.
    Change,
    /// Days since 1 January 1970, written as dates.
    Day,
    /// The axis has names (`Axis::names`); a position is an index into them.
    Names,
}

/// Division of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart. Values at or below zero cannot be drawn on it; a drawing
    /// says how many points that left out.
    Log,
    /// Equal differences of square roots are equally far apart, so that one is seen beside
    /// thousands. Pages whose script changes the scale draw it as linear.
    Root,
}

/// Upper bound of the values that are drawn: beyond it, differences and ratios may be infinite.
const MAX_VALUE: f64 = 1e280;

impl Scale {
    /// Returns whether the value can be drawn at all.
    pub(crate) fn draws(self, value: f64) -> bool {
        let size = value.abs();
        size < MAX_VALUE && (self != Self::Log || (value > 0.0 && size > 1.0 / MAX_VALUE))
    }

    /// Maps a value to its coordinate: what is equally far apart on the axis has coordinates with
    /// equal differences.
    pub(crate) fn coordinate(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.ln(),
            Self::Root => value.abs().sqrt().copysign(value),
        }
    }

    /// Maps a coordinate to its value; the inverse of [`Scale::coordinate`].
    pub(crate) fn value_at(self, coordinate: f64) -> f64 {
        match self {
            Self::Linear => coordinate,
            Self::Log => coordinate.exp(),
            Self::Root => coordinate * coordinate.abs(),
        }
    }
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Label without the unit: "members of the ring".
    pub label: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Scale that is shown first; where a reader can choose, the other one is offered.
    pub scale: Scale,
    /// Names of a [`Unit::Names`] axis, by position; empty for any other.
    #[serde(default)]
    pub names: Vec<String>,
    /// Names in full where those at the ticks are short, such as numbers; else empty.
    #[serde(default)]
    pub full_names: Vec<String>,
}

impl Axis {
    /// Builds an axis of numbers.
    pub fn new(label: &str, unit: Unit, scale: Scale) -> Self {
        Self { label: label.to_string(), unit, scale, names: Vec::new(), full_names: Vec::new() }
    }

    /// Builds an axis of names.
    pub fn with_names(label: &str, names: Vec<String>) -> Self {
        Self { names, ..Self::new(label, Unit::Names, Scale::Linear) }
    }
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Position in the unit of the x axis; on an axis of names, the index of the name.
    pub x: f64,
    /// Value in the unit of the y axis: signed, never clamped.
    pub y: f64,
    /// Lower end of the interval of `y` in the same unit, if there is one.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end of the interval of `y` in the same unit.
    #[serde(default)]
    pub high: Option<f64>,
    /// Certainty of `y`, which decides how the point is drawn.
    #[serde(default)]
    pub certainty: PointCertainty,
}

/// Certainty of a point's value.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointCertainty {
    /// Drawn as a symbol at the value.
    #[default]
    Sure,
    /// Drawn as a hollow symbol, with a `~` before the value.
    Rough,
    /// Only the ends of a range are known: no symbol, and both ends in place of the value.
    RangeOnly,
}

impl Point {
    /// Builds a point without an interval.
    pub fn bare(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None, certainty: PointCertainty::Sure }
    }

    /// Builds a point whose interval has these ends.
    pub fn with_ends(x: f64, y: f64, [low, high]: [f64; 2]) -> Self {
        Self { low: Some(low), high: Some(high), ..Self::bare(x, y) }
    }

    /// Builds a point of which only the ends of its range are known; both are above zero.
    pub fn range(x: f64, [low, high]: [f64; 2]) -> Self {
        let middle = (low * high).sqrt();
        Self { certainty: PointCertainty::RangeOnly, ..Self::with_ends(x, middle, [low, high]) }
    }

    /// Returns the interval, if there is one that can be drawn.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.low?, self.high?);
        if low <= high && low.is_finite() && high.is_finite() { Some((low, high)) } else { None }
    }
}

/// Meaning of a series, which decides how it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Estimates with intervals: points, their line, a band.
    Measured,
    /// Single samples: small points, no line.
    Raw,
    /// A fitted law: a line without points.
    Law,
    /// A projection from another measurement: a dashed line.
    Projected,
    /// Published figures of other machines: thin, dotted, and switched off together.
    Published,
    /// Share of all samples that is not above each x: a line without points.
    Distribution,
    /// Percentiles of a distribution: points on its line.
    Quantiles,
    /// A value by name: bars with intervals.
    Bars,
    /// Numbers of things from each x to the next: bars side by side. The last point only ends the
    /// last bar.
    Histogram,
}

impl Role {
    /// Returns whether it is a line without points of its own.
    pub(crate) fn is_line(self) -> bool {
        matches!(self, Self::Law | Self::Projected | Self::Distribution)
    }

    /// Returns the role of the series that one of this role belongs to; none if it belongs to no
    /// other.
    pub(crate) fn leader_role(self) -> Option<Self> {
        match self {
            Self::Law | Self::Projected => Some(Self::Measured),
            Self::Quantiles => Some(Self::Distribution),
            _ => None,
        }
    }
}

/// Values that belong together.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name in the legend, without the run's.
    pub name: String,
    /// Index of the run that it belongs to; none if it belongs to no run.
    #[serde(default)]
    pub run: Option<usize>,
    /// Meaning of its points.
    pub role: Role,
    /// Points, by x.
    pub points: Vec<Point>,
}

impl Series {
    /// Builds a series of the run with that index.
    pub fn new(name: impl Into<String>, run: usize, role: Role, points: Vec<Point>) -> Self {
        Self { name: name.into(), run: Some(run), role, points }
    }
}

/// A named place on the x axis: a cache size, a knee.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisMark {
    /// Most likely place, in the unit of the x axis.
    pub x: f64,
    /// Interval of that place, if it is not exact.
    #[serde(default)]
    pub between: Option<(f64, f64)>,
    /// Text at the place.
    pub label: String,
}

/// A named stretch of the x axis.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisRegion {
    /// Lower end, in the unit of the x axis.
    pub from: f64,
    /// Upper end, in the same unit.
    pub to: f64,
    /// Text over the stretch.
    pub label: String,
}

/// A value for every place of a grid.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeatMap {
    /// Unit of the values.
    pub unit: Unit,
    /// Positions on the x axis, in its unit, rising.
    pub xs: Vec<f64>,
    /// Positions on the y axis, in its unit, rising.
    pub ys: Vec<f64>,
    /// Values in `unit`, a row for every y; none where nothing was measured or resolved.
    pub values: Vec<Vec<Option<f64>>>,
    /// Value that the colours compare with; none where they rise from the least value to the
    /// largest.
    #[serde(default)]
    pub contrast: Option<MapContrast>,
}

/// A value without a colour: values above it have one colour and those below it another, the
/// stronger the farther they are from it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapContrast {
    /// Value without a colour.
    pub middle: f64,
    /// Distance from which on colours are strongest, above zero.
    pub reach: f64,
}

/// Content between the axes.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureBody {
    /// Series over the same axes.
    Series(Vec<Series>),
    /// A heat map.
    Map(HeatMap),
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name in links and files: lower case letters, digits and hyphens.
    pub id: String,
    /// Heading that says what the chart shows.
    pub title: String,
    /// Text alternative: in a sentence or two, what the chart lets a reader see.
    #[serde(default)]
    pub in_words: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series or a heat map.
    pub body: FigureBody,
    /// Places on the x axis.
    #[serde(default)]
    pub marks: Vec<AxisMark>,
    /// Stretches of the x axis.
    #[serde(default)]
    pub regions: Vec<AxisRegion>,
    /// Least x of a base: each series may be divided by its first sure point from there on
    /// ([`crate::RatioBase::Own`]).
    #[serde(default)]
    pub base: Option<f64>,
    /// Name of the run that it is of, if figures of several runs could not be one.
    #[serde(skip)]
    pub run: Option<String>,
}

/// Ratio of the largest to the least value from which a linear axis hides the least.
const MIN_LOG_RATIO: f64 = 20.0;

/// Share of the points that a logarithmic axis must be able to show.
const MIN_LOG_SHARE: f64 = 0.75;

impl Figure {
    /// Builds a figure without series.
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
            run: None,
        }
    }

    /// Returns the series; none for a heat map.
    pub fn series(&self) -> &[Series] {
        match &self.body {
            FigureBody::Series(series) => series,
            FigureBody::Map(_) => &[],
        }
    }

    /// Replaces the content by those of the series that have points. None if no series has any.
    pub fn with_series(mut self, series: impl IntoIterator<Item = Series>) -> Option<Self> {
        let mut drawn: Vec<Series> = series.into_iter().collect();
        drawn.retain(|series| !series.points.is_empty());
        if drawn.is_empty() {
            return None;
        }
        self.body = FigureBody::Series(drawn);
        Some(self)
    }

    /// Makes the vertical axis logarithmic if at least three quarters of the values are above zero
    /// and the largest of these is at least 20 times the least.
    pub fn with_fitting_scale(mut self) -> Self {
        let (mut positive, mut count) = (Vec::new(), 0);
        for point in self.series().iter().flat_map(|series| &series.points) {
            count += 1;
            if point.y > 0.0 {
                positive.push(point.y);
            }
        }
        let enough = positive.len() as f64 >= MIN_LOG_SHARE * f64::from(count);
        let (least, most) = extremes(positive);
        if enough && most / least >= MIN_LOG_RATIO {
            self.y.scale = Scale::Log;
        }
        self
    }
}

/// Returns the least and the largest value; without values infinite ends in the wrong order.
pub(crate) fn extremes(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        low = low.min(value);
        high = high.max(value);
    }
    (low, high)
}
