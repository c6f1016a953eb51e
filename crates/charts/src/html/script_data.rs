//! Data of a chart for the script of a page, which moves what is placed, and computes, rounds and
//! writes no value: the places of all shapes on both scales, the words of their values, and for each
//! state of the controls the ends of both axes with a ladder of ticks.
//!
//! A place has four numbers, as in `data-places="2,1900,0.693,7.55"`: 2 members and 1900 ns on
//! linear axes, then ln 2 and ln 1900 for logarithmic ones. A view is a line of two numbers of
//! rulers and a sentence, as in `0 1 ` for the first two rulers with nothing left out.

use std::fmt::{Debug, Display};

use crate::figure::{Axis, Figure, Point, Scale, Series, Unit};
use crate::layout::{LeftOut, MAX_TICKS, rulers};
use crate::page::{PagePlace, PlacedChart};
use crate::picture::with_micro_sign;
use crate::ruler::{AxisRuler, AxisTick};
use crate::shapes::{PlotShape, ShapePart};
use crate::text::escape;

/// Ticks of the finer rungs of a ladder. A part that a reader sees up to four times as large has
/// ticks as dense as the whole; deeper in, the values there are the ticks, as each has its words.
/// Rungs are a sixth of a page.
const FINER_TICKS: [usize; 2] = [22, 44];

/// The rulers of a chart in all states of the controls, each once, as elements of its SVG.
#[derive(Default)]
pub(super) struct RulerList {
    pub(super) elements: Vec<String>,
}

/// An axis of a ruler. The script knows x by 0 and y by 1, on a logarithmic scale by 2 more.
#[derive(Clone, Copy)]
enum RulerAxis {
    X = 0,
    Y = 1,
}

impl RulerList {
    /// Returns the views of a chart with the series that are `shown`: one for axes as suit it, one
    /// for linear and one for logarithmic ones, a line each with the numbers of both rulers and the
    /// sentence about points that are left out.
    pub(super) fn views(
        &mut self,
        figure: &Figure,
        chart: &PlacedChart,
        shown: fn(&Series) -> bool,
    ) -> String {
        let series = figure.series().iter().filter(|series| shown(series));
        let series: Vec<&Series> = series.collect();
        let mut shapes = Vec::new();
        for shape in &chart.shapes {
            if shape.series.is_some_and(|index| shown(chart.entries[index].series)) {
                shapes.push(shape);
            }
        }
        let by_name = figure.x.unit == Unit::Names;
        let mut views = Vec::new();
        for scale in [None, Some(Scale::Linear), Some(Scale::Log)] {
            let (x, y) =
                rulers(&with_scale(&figure.x, scale), &with_scale(&figure.y, scale), &shapes);
            let left_out = LeftOut::count(series.iter().copied(), &x, &y);
            let words = left_out.sentence().unwrap_or_default();
            let x_number = self.number(&x, RulerAxis::X, by_name);
            let y_number = self.number(&y, RulerAxis::Y, false);
            views.push(format!("{x_number} {y_number} {words}"));
        }
        views.join("\n")
    }

    /// Returns the number of a ruler, which is added if it is not yet known.
    fn number(&mut self, ruler: &AxisRuler, axis: RulerAxis, by_name: bool) -> usize {
        let (whole, finer) = if by_name {
            (ruler.ladder([usize::MAX]), Vec::new())
        } else {
            (ruler.ladder(1..=MAX_TICKS), ruler.ladder(FINER_TICKS))
        };
        let kind = axis as usize + if ruler.scale == Scale::Log { 2 } else { 0 };
        let (low, high) = ruler.ends();
        let element = format!(
            "<metadata class=\"ruler\" data-of=\"{kind}\" data-ends=\"{},{}\" data-title=\"{}\" \
             data-ticks=\"{}\" data-finer=\"{}\"/>\n",
            exact(low),
            exact(high),
            escape(&with_micro_sign(&ruler.title)),
            ladder_text(ruler.scale, &whole),
            ladder_text(ruler.scale, &finer)
        );
        match self.elements.iter().position(|known| *known == element) {
            Some(number) => number,
            None => {
                self.elements.push(element);
                self.elements.len() - 1
            }
        }
    }
}

/// Returns the axis with that scale; with its own for none.
fn with_scale(axis: &Axis, scale: Option<Scale>) -> Axis {
    Axis { scale: scale.unwrap_or(axis.scale), ..axis.clone() }
}

/// Writes a ladder: a line for each rung, with the coordinates and labels of its ticks.
fn ladder_text(scale: Scale, ladder: &[Vec<AxisTick>]) -> String {
    let mut rungs = Vec::new();
    for rung in ladder {
        let ticks =
            rung.iter().map(|tick| format!("{} {}", exact(scale.coordinate(tick.at)), tick.label));
        rungs.push(join(ticks, "\t"));
    }
    escape(&with_micro_sign(&rungs.join("\n")))
}

/// Writes the attributes of a shape: where it is, and its values in words.
pub(super) fn shape_data(chart: &PlacedChart, shape: &PlotShape, corners: &[PagePlace]) -> String {
    let mut data = format!("data-part=\"{}\"", lower_case(shape.part));
    if let Some(index) = shape.series {
        data += &format!(" data-series=\"{index}\"");
    }
    if has_words(chart, shape) {
        data += &format!(" data-words=\"{}\"", escape(&with_micro_sign(&words(chart, shape))));
    }
    data += &format!(
        " data-corners=\"{}\" data-places=\"{}\"",
        join(corners.iter().map(|(x, y)| format!("{x},{y}")), " "),
        join(shape.paths.iter().map(|path| path_places(shape.part, path)), ";")
    );
    data
}

/// Returns whether a reader can ask for the values of a shape: of symbols, and of lines without
/// symbols.
fn has_words(chart: &PlacedChart, shape: &PlotShape) -> bool {
    let Some(entry) = chart.entry(shape) else { return false };
    match shape.part {
        ShapePart::Points | ShapePart::Hollow => true,
        ShapePart::Line => entry.series.role.is_line(),
        _ => false,
    }
}

/// Writes the values of a shape, a line each: the value with its interval, and its place.
fn words(chart: &PlacedChart, shape: &PlotShape) -> String {
    let mut lines = Vec::new();
    for point in shape.paths.iter().flatten() {
        let value = chart.axes.y.format_with_interval(point);
        lines.push(format!("{value}\t{}", chart.axes.x.format_value(point.x)));
    }
    lines.join("\n")
}

/// Writes the places of a path: x and y on linear axes, then both on logarithmic ones.
fn path_places(part: ShapePart, path: &[Point]) -> String {
    let mut coordinates = Vec::new();
    for scale in [Scale::Linear, Scale::Log] {
        coordinates.push(part.coordinates(scale, path.iter().map(|point| point.x)));
        coordinates.push(part.coordinates(scale, path.iter().map(|point| point.y)));
    }
    let mut places = Vec::new();
    for number in 0..path.len() {
        let place = coordinates.iter().map(|all| exact(all[number].unwrap_or(f64::NAN)));
        places.push(join(place, ","));
    }
    places.join(" ")
}

/// Writes the ends of a stretch of the x axis, linear, then logarithmic.
pub(super) fn stretch_ends(from: f64, to: f64) -> String {
    let mut ends = Vec::new();
    for scale in [Scale::Linear, Scale::Log] {
        ends.push(exact(scale.coordinate(from)));
        ends.push(exact(scale.coordinate(to)));
    }
    ends.join(",")
}

pub(super) fn join<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}

/// Returns the name of a variant in lower case.
pub(super) fn lower_case(variant: impl Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// Writes a number to six digits, as JavaScript reads it.
fn exact(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    let text = format!("{rounded:?}").replace("inf", "Infinity");
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}
