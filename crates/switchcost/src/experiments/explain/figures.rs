//! A switch as a waterfall: each part stands where the ones before it end.

use analysis::estimate::Estimate;
use analysis::explain::ExplainedSwitch;
use analysis::record::ExplainRecord;
use charts::{Axis, Figure, Point, PointCertainty, Role, Series};

use super::answer::{found, headline, is_whole};
use crate::report::figures::{ChartLabels, bars, lines, nanoseconds};
use crate::report::tiles::Tile;

/// Draws a run of `explain`. `index` is its place among the runs that are drawn together.
pub(crate) fn figures(record: &ExplainRecord, index: usize) -> Vec<Figure> {
    let Some(found) = found(record) else { return Vec::new() };
    let mut added = Vec::new();
    for part in &found.added {
        added.extend(part.ns.map(|ns| (part.part.in_words().to_string(), ns)));
    }
    let mut figures = Vec::new();
    figures.extend(waterfall(record, found, index));
    let labels = ChartLabels {
        id: "explain-added",
        title: "What would add to a switch",
        axis: "added to a switch",
    };
    figures.extend(bars(labels, "", added, index));
    figures
}

/// Draws the parts one above the other up to the whole: a bar ends where its part does, and begins
/// where the part before ends.
fn waterfall(record: &ExplainRecord, found: &ExplainedSwitch, index: usize) -> Option<Figure> {
    if !is_whole(record) {
        return None;
    }
    let whole = found.whole_ns.filter(|whole| whole.answer_cost().is_ok())?;
    let mut names = Vec::new();
    let (mut ends, mut sum) = (Vec::new(), 0.0);
    for part in &found.parts {
        // A part that is not resolved from zero stands there, too: it belongs to the sum.
        let ns = part.ns.filter(|ns| ns.value.is_finite())?;
        ends.push(end(names.len(), sum, &ns));
        names.push(part.part.in_words().to_string());
        sum += ns.value;
        if sum <= 0.0 {
            return None;
        }
    }
    ends.push(end(names.len(), 0.0, &whole));
    names.push("whole".to_string());
    let series = Series::new("up to and with it", index, Role::Bars, ends);
    let axes = (Axis::with_names("", names), nanoseconds("time of a switch"));
    let title = "What a switch is made of";
    lines("explain", title, headline(record).into(), axes, [series])
}

/// Returns the upper end of a part that begins where those before it end.
fn end(place: usize, begins_at: f64, ns: &Estimate) -> Point {
    let [low, high] = [ns.low, ns.high].map(|end| Some(begins_at + end?));
    let certainty =
        if ns.quote_cost().is_ok() { PointCertainty::Sure } else { PointCertainty::Rough };
    Point { low, high, certainty, ..Point::bare(place as f64, begins_at + ns.value) }
}

/// Returns the whole and its parts.
pub(crate) fn tiles(record: &ExplainRecord) -> Vec<Tile> {
    let Some(found) = found(record) else { return Vec::new() };
    let mut tiles = Vec::new();
    tiles.extend(Tile::cost("a switch by pipe", found.whole_ns));
    for part in &found.parts {
        tiles.extend(Tile::cost(part.part.in_words(), part.ns));
    }
    tiles
}
