//! Charts: what those of all experiments share, charts of published figures, and samples by round.
//!
//! An experiment makes points from its estimates ([`cost_points`], [`count_points`]), puts them into
//! series, and the series into a figure ([`lines`], [`bars`]). A figure without points is absent.

pub(crate) mod published;
pub(crate) mod rounds;

#[cfg(test)]
pub(crate) mod tests;

use analysis::estimate::Estimate;
use analysis::findings::wakeup::{CONFIDENCE, TailQuantile};
use analysis::quote::{BestEstimate, ROUGH_MARK};
use charts::{Axis, Figure, Point, PointCertainty, Role, Scale, Series, Unit};
use rundata::trial::Tally;
use rundata::words;

/// Id of the chart of the cost of a switch by the size of the ring.
pub(crate) const RING_COST: &str = "ring-cost";
/// Id of the chart of the CPU time of a lap by the size of the ring.
pub(crate) const RING_CPU: &str = "ring-cpu";
/// Id of the chart of the cost of a switch by the array of each member.
pub(crate) const COST_BY_ARRAY: &str = "cost-by-array";
/// Id of the chart of what clocks and calls cost.
pub(crate) const CLOCK_CALLS: &str = "clock-calls";
/// Id of the chart of what malloc and free cost.
pub(crate) const CLOCK_MALLOC: &str = "clock-malloc";

/// Most names in a sentence on what is not drawn.
const MAX_NAMED: usize = 3;

/// Makes a point of an answer, with its interval if it has one.
fn point(x: f64, answer: &BestEstimate) -> Point {
    let (low, high) = answer.ends().unzip();
    let certainty = if answer.is_rough() { PointCertainty::Rough } else { PointCertainty::Sure };
    Point { low, high, certainty, ..Point::bare(x, answer.value()) }
}

/// Writes the time of a point for a sentence: `2.03 us`, or `~2.03 us` if it is rough.
pub(crate) fn time_words(point: &Point) -> String {
    let mark = if point.certainty == PointCertainty::Rough { ROUGH_MARK } else { "" };
    format!("{mark}{}", words::time(point.y))
}

/// Note below a chart with hollow points.
const ROUGH_POINTS: &str = "Hollow points (~): not at full speed, or without an interval.";

/// Adds to a chart with hollow points the note that explains them.
pub(crate) fn with_note_on_rough(mut figure: Figure) -> Figure {
    let mut points = figure.series().iter().flat_map(|series| &series.points);
    if points.any(|point| point.certainty == PointCertainty::Rough) {
        figure.in_words = format!("{} {ROUGH_POINTS}", figure.in_words).trim().to_string();
    }
    figure
}

/// Writes the interval of a time: ` (1.1 us to 1.3 us)`; empty if the point has none.
pub(crate) fn interval_words(point: &Point) -> String {
    match (point.low, point.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", words::time(low), words::time(high)),
        _ => String::new(),
    }
}

/// Makes points of costs, which are pairs of place and estimate. Leaves out costs without an answer.
pub(crate) fn cost_points(costs: impl IntoIterator<Item = (f64, Option<Estimate>)>) -> Vec<Point> {
    let mut points = Vec::new();
    for (x, estimate) in costs {
        if let Some(Ok(answer)) = estimate.map(|estimate| estimate.answer_cost()) {
            points.push(point(x, &answer));
        }
    }
    points
}

/// Makes points of shares and rates, like [`cost_points`]; they may be zero.
pub(crate) fn count_points(
    counts: impl IntoIterator<Item = (f64, Option<Estimate>)>,
) -> Vec<Point> {
    let mut points = Vec::new();
    for (x, estimate) in counts {
        if let Some(Ok(answer)) = estimate.map(|estimate| estimate.answer_count()) {
            points.push(point(x, &answer));
        }
    }
    points
}

/// Makes an axis of sizes of rings.
pub(crate) fn members_axis(scale: Scale) -> Axis {
    Axis::new("members of the ring", Unit::Count, scale)
}

/// Makes an axis of times; it is linear until the figure gets a fitting scale.
pub(crate) fn nanoseconds(label: &str) -> Axis {
    Axis::new(label, Unit::Nanoseconds, Scale::Linear)
}

/// Builds a figure of series on an x axis and a y axis; absent if they have no points.
pub(crate) fn lines(
    id: &str,
    title: &str,
    in_words: String,
    axes: (Axis, Axis),
    series: impl IntoIterator<Item = Series>,
) -> Option<Figure> {
    let (x, y) = axes;
    let figure = Figure::new(id, title, x, y);
    Figure { in_words, ..figure }.with_series(series).map(Figure::with_fitting_scale)
}

/// Shares in percent at which a distribution is drawn beside every second percent: the tail.
const TAIL_PERCENT: [f64; 5] = [99.0, 99.5, 99.9, 99.99, 100.0];

/// Percentiles that are marked if there are enough values for their intervals.
const MARKED_PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// Returns a distribution as a line, and its marked percentiles as points. The line shows for each
/// value how many percent of the values are at most as large. The median is marked only if
/// `has_median`.
///
/// Values at or below zero have no place on a logarithmic axis: the line begins with the share that
/// is behind them.
pub(crate) fn distribution(
    name: &str,
    has_median: bool,
    index: usize,
    tally: &Tally,
) -> [Series; 2] {
    let mut points = Vec::new();
    for number in 0..50 {
        points.extend(quantile_point(tally, 2.0 * f64::from(number)));
    }
    for percent in TAIL_PERCENT {
        points.extend(quantile_point(tally, percent));
    }
    let mut marked = Vec::new();
    for percent in MARKED_PERCENTILES {
        let is_known = TailQuantile::from_tally(tally, percent / 100.0, CONFIDENCE).is_some();
        if is_known && (has_median || percent != 50.0) {
            marked.extend(quantile_point(tally, percent));
        }
    }
    [
        Series::new(name, index, Role::Distribution, points),
        Series::new(format!("{name}, percentiles"), index, Role::Quantiles, marked),
    ]
}

/// Returns the point of a quantile; absent if its value is not above zero.
fn quantile_point(tally: &Tally, percent: f64) -> Option<Point> {
    let value = tally.quantile(percent / 100.0)?;
    if value > 0 { Some(Point::bare(value as f64, percent)) } else { None }
}

/// Names of a chart of bars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChartLabels<'a> {
    /// Identifies the chart within a report.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// Stands beside the axis of times.
    pub(crate) axis: &'a str,
}

/// Builds a chart of costs by name as bars, the smallest first; absent if none has an answer. Below it
/// stand `about`, the smallest and the largest cost, and why others are not drawn.
pub(crate) fn bars(
    labels: ChartLabels,
    about: &str,
    costs: impl IntoIterator<Item = (String, Estimate)>,
    index: usize,
) -> Option<Figure> {
    let (mut drawn, mut not_drawn) = (Vec::new(), Vec::new());
    for (name, estimate) in costs {
        match estimate.answer_cost() {
            Ok(answer) => drawn.push(NamedAnswer { name, answer }),
            Err(_) => not_drawn.push(format!("{name} ({})", analysis::quote::cost(&estimate))),
        }
    }
    drawn.sort_by(|a, b| a.answer.value().total_cmp(&b.answer.value()));
    let sentences = [about.to_string(), range_sentence(&drawn), not_drawn_sentence(&not_drawn)];
    let mut in_words = String::new();
    for sentence in &sentences {
        if sentence.is_empty() {
            continue;
        }
        in_words += if in_words.is_empty() { "" } else { " " };
        in_words += sentence;
    }
    let (mut names, mut points) = (Vec::new(), Vec::new());
    for (place, NamedAnswer { name, answer }) in drawn.into_iter().enumerate() {
        points.push(point(place as f64, &answer));
        names.push(name);
    }
    let series = Series::new("measured", index, Role::Bars, points);
    let axes = (Axis::with_names("", names), nanoseconds(labels.axis));
    lines(labels.id, labels.title, in_words, axes, [series])
}

/// A bar: a cost with its name.
struct NamedAnswer {
    name: String,
    answer: BestEstimate,
}

impl NamedAnswer {
    fn in_words(&self) -> String {
        format!("{} {}", self.name, self.answer.brief_time())
    }
}

/// Names the smallest and the largest of sorted costs: `From getpid 60 ns to fork 90 us.`
fn range_sentence(sorted: &[NamedAnswer]) -> String {
    match sorted {
        [] => String::new(),
        [only] => format!("{}.", only.in_words()),
        [least, .., most] => format!("From {} to {}.", least.in_words(), most.in_words()),
    }
}

/// Names the first costs that are not drawn, each with the reason, and counts the others.
fn not_drawn_sentence(reasons: &[String]) -> String {
    if reasons.is_empty() {
        return String::new();
    }
    let (named, more) = reasons.split_at(reasons.len().min(MAX_NAMED));
    let named = named.join(", ");
    match more.len() {
        0 => format!("Not drawn: {named}."),
        count => format!("Not drawn: {named} and {count} more."),
    }
}
