//! Charts before they are drawn: what is on which axis, with which interval, and what it is called.
//!
//! A record becomes figures here; HTML, SVG, PNG and the terminal draw the same ones. No drawing, no
//! colours, no units chosen for looks.
//!
//! [`of_rings`], [`of_trials`] and [`of_response`] make figures of one run. [`together`] lays those of several
//! runs over each other.

mod axes;
mod bars;
mod cost;
mod overlay;
mod published;
mod relative;
mod response;
mod ring;
mod rounds;
mod trials;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use overlay::together;
pub use published::with_published;
pub use relative::Base;
pub use response::figures as of_response;
pub use ring::figures as of_rings;
pub use trials::figures as of_trials;

/// What the numbers of an axis are. How they are written is the drawing's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A whole number of things: members, rounds, pages.
    Count,
    /// A number without a unit: how many times as much.
    Ratio,
    /// CPU cycles or ticks of the time stamp counter.
    Ticks,
    /// The axis has names (`Axis::names`); a position is an index into them.
    Names,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart. What is not above zero cannot be drawn on it, and a drawing says
    /// how many points that left out.
    Log,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What is on it, without the unit: "members of the ring".
    pub label: String,
    /// Of what its numbers are.
    pub unit: Unit,
    /// How it is first shown; where a reader can choose, the other is offered.
    pub scale: Scale,
    /// The names of a [`Unit::Names`] axis, by position; empty for any other.
    pub names: Vec<String>,
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Position.
    pub x: f64,
    /// Value: signed, never clamped.
    pub y: f64,
    /// Lower end of the interval of `y`; none where there is no interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// What a series is, and so how it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Estimates with intervals: points, their line, a band.
    Measured,
    /// Single samples: small points, no line.
    Raw,
    /// A fitted law: a line without points.
    Law,
    /// Sloan's projected line (cost of two, scaled): a dashed line.
    Projected,
    /// Figures that others have published: thin, dotted, and switched off together.
    Published,
    /// A count by class, from each x to the next one's: steps.
    Steps,
    /// A value by name: bars with intervals.
    Bars,
}

/// Values that belong together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend, without the run's.
    pub name: String,
    /// Which of the runs that are drawn it is of, by index; none for what is of no run.
    pub run: Option<usize>,
    /// What it is.
    pub role: Role,
    /// Its points, by x.
    pub points: Vec<Point>,
}

/// A place on the x axis with a name: a cache size, a knee.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// From where to where it may be, if that is not known better.
    pub between: Option<(f64, f64)>,
    /// What is there.
    pub label: String,
}

/// A stretch of the x axis with a name: a region.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Region {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// What it is.
    pub label: String,
}

/// A value for every place of a grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map {
    /// What the values are, without the unit.
    pub label: String,
    /// Their unit.
    pub unit: Unit,
    /// Positions on the x axis.
    pub xs: Vec<f64>,
    /// Positions on the y axis.
    pub ys: Vec<f64>,
    /// Values, a row for every y; none where nothing was measured or resolved.
    pub values: Vec<Vec<Option<f64>>>,
}

/// What is drawn between the axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Series over the same axes.
    Series(Vec<Series>),
    /// A heat map.
    Map(Map),
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in links and files: lower case letters, digits and hyphens, the first of `id`s that are alike
    /// gets no number.
    pub id: String,
    /// What it shows, as a heading.
    pub title: String,
    /// What is to be seen in it, in a sentence or two: its text alternative.
    pub in_words: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical one.
    pub y: Axis,
    /// What is drawn.
    pub body: Body,
    /// Places on the x axis.
    pub marks: Vec<Mark>,
    /// Stretches of it.
    pub regions: Vec<Region>,
}
