//! Charts of what was measured: what all experiments share, and what others have published.

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

/// Cost of a switch against the size of the ring: the figure's id.
pub(crate) const RING_COST: &str = "ring-cost";
/// CPU time of a lap against the size of the ring.
pub(crate) const RING_CPU: &str = "ring-cpu";
/// Cost of a switch against the array.
pub(crate) const COST_BY_ARRAY: &str = "cost-by-array";
/// What clocks and calls cost.
pub(crate) const CLOCK_CALLS: &str = "clock-calls";
/// What malloc and free cost.
pub(crate) const CLOCK_MALLOC: &str = "clock-malloc";

/// Names that a sentence on what is not drawn has.
const MOST_NAMED: usize = 3;

/// The best that is known of a figure, and its interval if it has one.
fn point(x: f64, answer: &BestEstimate) -> Point {
    let (low, high) = answer.ends().unzip();
    let certainty = if answer.is_rough() { PointCertainty::Rough } else { PointCertainty::Sure };
    Point { low, high, certainty, ..Point::bare(x, answer.value()) }
}

/// A time of a chart in a sentence: `~2.03 us`, where it is only roughly known.
pub(crate) fn time_words(of: &Point) -> String {
    let mark = if of.certainty == PointCertainty::Rough { ROUGH_MARK } else { "" };
    format!("{mark}{}", words::time(of.y))
}

/// Said of a chart with hollow points.
const ROUGH_POINTS: &str = "Hollow points (~): not at full speed, or without an interval.";

/// Says below a chart what its hollow points are, if it has any.
pub(crate) fn with_note_on_rough(mut figure: Figure) -> Figure {
    let mut points = figure.series().iter().flat_map(|series| &series.points);
    if points.any(|point| point.certainty == PointCertainty::Rough) {
        figure.in_words = format!("{} {ROUGH_POINTS}", figure.in_words).trim().to_string();
    }
    figure
}

/// The interval of a time: ` (1.1 us to 1.3 us)`; nothing of a figure that was published without
/// one.
pub(crate) fn interval_words(of: &Point) -> String {
    let ends = of.low.zip(of.high);
    ends.map_or(String::new(), |(low, high)| {
        format!(" ({} to {})", words::time(low), words::time(high))
    })
}

/// Costs by their places, the best that is known of each; a place without one is left out.
pub(crate) fn cost_points(all: impl IntoIterator<Item = (f64, Option<Estimate>)>) -> Vec<Point> {
    let known = |(x, of): (f64, Option<Estimate>)| Some(point(x, &of?.answer_cost().ok()?));
    all.into_iter().filter_map(known).collect()
}

/// The same of shares and rates, which may be zero.
pub(crate) fn count_points(all: impl IntoIterator<Item = (f64, Option<Estimate>)>) -> Vec<Point> {
    let known = |(x, of): (f64, Option<Estimate>)| Some(point(x, &of?.answer_count().ok()?));
    all.into_iter().filter_map(known).collect()
}

/// An axis of sizes of rings.
pub(crate) fn members_axis(scale: Scale) -> Axis {
    Axis::new("members of the ring", Unit::Count, scale)
}

/// An axis of times, linear as long as nothing needs more.
pub(crate) fn nanoseconds(label: &str) -> Axis {
    Axis::new(label, Unit::Nanoseconds, Scale::Linear)
}

/// A figure of series, without marks; none where nothing is on them.
pub(crate) fn lines(
    id: &str,
    title: &str,
    in_words: String,
    (x, y): (Axis, Axis),
    series: impl IntoIterator<Item = Series>,
) -> Option<Figure> {
    Figure { in_words, ..Figure::new(id, title, x, y) }
        .with_series(series)
        .map(Figure::with_fitting_scale)
}

/// The first of those that are not drawn, with why, and how many more there are.
fn not_drawn(others: &[String]) -> String {
    let (first, left) = others.split_at(others.len().min(MOST_NAMED));
    match (first, left.len()) {
        ([], _) => String::new(),
        (first, 0) => format!("Not drawn: {}.", first.join(", ")),
        (first, more) => format!("Not drawn: {} and {more} more.", first.join(", ")),
    }
}

/// Shares in percent at which a distribution is drawn beside every second one: the tail.
const TAIL: [f64; 5] = [99.0, 99.5, 99.9, 99.99, 100.0];

/// The percentiles that are marked, each where there are enough values for an interval of it.
const MARKED: [f64; 3] = [50.0, 99.0, 99.9];

/// How many values are up to each, in percent, as a line with its percentiles marked, the median
/// only where it `holds`. Values at or below zero have no place on a logarithmic axis: the line
/// begins with the share that it has behind them.
pub(crate) fn distribution(name: &str, holds: bool, index: usize, of: &Tally) -> [Series; 2] {
    let at = |percent: f64| {
        let value = of.quantile(percent / 100.0)?;
        (value > 0).then(|| Point::bare(value as f64, percent))
    };
    let shares = (0..=49).map(|k| 2.0 * f64::from(k)).chain(TAIL);
    let is_known =
        |percent: &f64| TailQuantile::from_tally(of, percent / 100.0, CONFIDENCE).is_some();
    let is_told = |percent: &f64| (holds || *percent != 50.0) && is_known(percent);
    let marked = MARKED.into_iter().filter(is_told).filter_map(at).collect();
    [
        Series::new(name, index, Role::Distribution, shares.filter_map(at).collect()),
        Series::new(format!("{name}, percentiles"), index, Role::Quantiles, marked),
    ]
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

/// Costs by name as bars, the best that is known of each, the smallest first; none without any.
/// Why others are not known is said below. `about` is said before the figures.
pub(crate) fn bars(
    labels: ChartLabels,
    about: &str,
    known: impl IntoIterator<Item = (String, Estimate)>,
    index: usize,
) -> Option<Figure> {
    let (mut answers, mut others) = (Vec::new(), Vec::new());
    for (name, of) in known {
        match of.answer_cost() {
            Ok(answer) => answers.push((name, answer)),
            Err(_) => others.push(format!("{name} ({})", analysis::quote::cost(&of))),
        }
    }
    answers.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    let told = |(name, answer): &(String, BestEstimate)| format!("{name} {}", answer.brief_time());
    let told = match &answers[..] {
        [] => String::new(),
        [only] => format!("{}.", told(only)),
        [least, .., most] => format!("From {} to {}.", told(least), told(most)),
    };
    let in_words = [about.to_string(), told, not_drawn(&others)];
    let in_words: Vec<String> = in_words.into_iter().filter(|words| !words.is_empty()).collect();
    let in_words = in_words.join(" ");
    let (names, answers): (Vec<String>, Vec<BestEstimate>) = answers.into_iter().unzip();
    let places = answers.iter().enumerate().map(|(place, answer)| point(place as f64, answer));
    let series = Series::new("measured", index, Role::Bars, places.collect());
    let axes = (Axis::with_names("", names), nanoseconds(labels.axis));
    lines(labels.id, labels.title, in_words, axes, [series])
}
