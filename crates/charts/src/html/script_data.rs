//! What the script of a page is told of a chart, so that it moves what is placed, and computes,
//! rounds and writes no value: the places of all shapes on both scales, the words of their values,
//! and for each state of the controls the ends of both axes with a ladder of ticks.

use crate::figure::{Axis, Figure, Point, Role, Scale, Series, Unit};
use crate::layout::{MOST, left_out, rulers};
use crate::page::{At, PlacedChart, PlotAxes};
use crate::picture::with_micro_sign;
use crate::ruler::{AxisRuler, AxisTick};
use crate::shapes::{PlotShape, ShapePart};
use crate::text::escape;

/// Ticks of the finer rungs of a ladder. What a reader sees up to four times as large has ticks as
/// dense as the whole; deeper in, the values there are the ticks, as each has its words. Rungs are a
/// sixth of a page.
const FINER: [usize; 2] = [22, 44];

/// The rulers of a chart in all states of the controls, each once, as elements of its SVG.
#[derive(Default)]
pub(super) struct RulerList(pub(super) Vec<String>);

impl RulerList {
    /// What is seen of a chart with those of its series, for axes as suit it, for linear and for
    /// logarithmic ones: a line each with the numbers of both rulers and what is said of points
    /// that are left out.
    pub(super) fn views(
        &mut self,
        figure: &Figure,
        chart: &PlacedChart,
        only: fn(&Series) -> bool,
    ) -> String {
        let shown: Vec<&Series> = figure.series().iter().filter(|series| only(series)).collect();
        let is_shown =
            |shape: &&PlotShape| shape.series.is_some_and(|at| only(chart.entries[at].series));
        let shapes: Vec<&PlotShape> = chart.shapes.iter().filter(is_shown).collect();
        let view = |scale: Option<Scale>| {
            let with = |axis: &Axis| Axis { scale: scale.unwrap_or(axis.scale), ..axis.clone() };
            let (x, y) = rulers(&with(&figure.x), &with(&figure.y), &shapes);
            let words = left_out(&shown, &x, &y).1.unwrap_or_default();
            let by_name = figure.x.unit == Unit::Names;
            format!("{} {} {words}", self.number(&x, 0, by_name), self.number(&y, 1, false))
        };
        joined([None, Some(Scale::Linear), Some(Scale::Log)].map(view).iter(), "\n")
    }

    /// The number of a ruler, of which `axis` is 0 for x and 1 for y.
    fn number(&mut self, ruler: &AxisRuler, axis: usize, by_name: bool) -> usize {
        let tick =
            |tick: &AxisTick| format!("{} {}", exact(ruler.scale.coordinate(tick.at)), tick.label);
        let rung = |rung: &Vec<AxisTick>| joined(rung.iter().map(tick), "\t");
        let rungs =
            |all: Vec<Vec<AxisTick>>| escape(&with_micro_sign(&joined(all.iter().map(rung), "\n")));
        let (whole, finer) = match by_name {
            true => (ruler.ladder([usize::MAX]), Vec::new()),
            false => (ruler.ladder(1..=MOST), ruler.ladder(FINER)),
        };
        let of = axis + if ruler.scale == Scale::Log { 2 } else { 0 };
        let (low, high) = ruler.ends();
        let own = format!(
            "<metadata class=\"ruler\" data-of=\"{of}\" data-ends=\"{},{}\" data-title=\"{}\" \
             data-ticks=\"{}\" data-finer=\"{}\"/>\n",
            exact(low),
            exact(high),
            escape(&with_micro_sign(&ruler.title)),
            rungs(whole),
            rungs(finer)
        );
        if !self.0.contains(&own) {
            self.0.push(own.clone());
        }
        self.0.iter().position(|known| *known == own).unwrap_or_default()
    }
}

/// Where a shape is and what its values are called. A place has four numbers: x and y on linear
/// axes, then both on logarithmic ones.
pub(super) fn shape(chart: &PlacedChart, shape: &PlotShape, corners: &[At]) -> String {
    let PlotShape { part, series, paths } = shape;
    let path = |path: &Vec<Point>| {
        let on = |scale| {
            let xs = part.places(scale, path.iter().map(|point| point.x));
            [xs, part.places(scale, path.iter().map(|point| point.y))]
        };
        let all: Vec<_> = [on(Scale::Linear), on(Scale::Log)].concat();
        let place = |k: usize| joined(all.iter().map(|of| exact(of[k].unwrap_or(f64::NAN))), ",");
        joined((0..path.len()).map(place), " ")
    };
    let role = series.and_then(|at| Some(chart.entries.get(at)?.series.role));
    let is_read = |role: &Role| match part {
        ShapePart::Points | ShapePart::Hollow => true,
        _ => *part == ShapePart::Line && role.is_line(),
    };
    let PlotAxes { x, y, .. } = &chart.axes;
    let said =
        |point: &Point| format!("{}\t{}", y.format_with_interval(point), x.format_value(point.x));
    let words = role.filter(is_read).map(|_| joined(paths.iter().flatten().map(said), "\n"));
    let words = words.map(|words| format!(" data-words=\"{}\"", escape(&with_micro_sign(&words))));
    format!(
        "data-part=\"{}\"{}{} data-corners=\"{}\" data-places=\"{}\"",
        lower(part),
        series.map_or(String::new(), |of| format!(" data-series=\"{of}\"")),
        words.unwrap_or_default(),
        joined(corners.iter().map(|(x, y)| format!("{x},{y}")), " "),
        joined(paths.iter().map(path), ";")
    )
}

/// A stretch of the x axis, linear and logarithmic.
pub(super) fn stretch((from, to): (f64, f64)) -> String {
    let on = |scale: Scale| [from, to].map(|end| exact(scale.coordinate(end)));
    joined([Scale::Linear, Scale::Log].map(on).concat().iter(), ",")
}

pub(super) fn joined<T: ToString>(all: impl Iterator<Item = T>, between: &str) -> String {
    all.map(|one| one.to_string()).collect::<Vec<_>>().join(between)
}

/// The name of a variant in lower case.
pub(super) fn lower(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// A number to six digits, as JavaScript reads it.
fn exact(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    let text = format!("{rounded:?}").replace("inf", "Infinity");
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}
