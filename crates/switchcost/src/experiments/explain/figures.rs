//! A switch as a waterfall: each part stands where the ones before it end.

use analysis::estimate::Estimate;
use analysis::explain::ExplainedSwitch;
use analysis::record::ExplainRecord;
use charts::{Axis, Figure, Point, PointCertainty, Role, Series};

use super::answer::{found, headline, is_whole};
use crate::report::figures::{bars, lines, nanoseconds};
use crate::report::tiles::Tile;

/// The figures of a run of `explain`.
pub(crate) fn figures(record: &ExplainRecord, index: usize) -> Vec<Figure> {
    let Some(found) = found(record) else { return Vec::new() };
    let what = ("explain-added", "What would add to a switch", "added to a switch");
    let known = found.added.iter().filter_map(|of| Some((of.part.in_words().to_string(), of.ns?)));
    let added = bars(what, "", known, index);
    waterfall(record, found, index).into_iter().chain(added).collect()
}

/// The parts one above the other up to the whole: the upper end of each is a bar's, its lower end
/// that of the one before.
fn waterfall(record: &ExplainRecord, found: &ExplainedSwitch, index: usize) -> Option<Figure> {
    if !is_whole(record) {
        return None;
    }
    let whole = found.whole_ns.filter(|of| of.answer_cost().is_ok())?;
    let mut names = Vec::new();
    let (mut ends, mut sum) = (Vec::new(), 0.0);
    for part in &found.parts {
        // One that is not resolved from zero stands there, too: it is a part of the sum.
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

/// The upper end of a part that begins where those before it end.
fn end(place: usize, begins_at: f64, ns: &Estimate) -> Point {
    let [low, high] = [ns.low, ns.high].map(|end| Some(begins_at + end?));
    let certainty =
        if ns.quote_cost().is_ok() { PointCertainty::Sure } else { PointCertainty::Rough };
    Point { low, high, certainty, ..Point::bare(place as f64, begins_at + ns.value) }
}

/// The whole and its parts.
pub(crate) fn tiles(record: &ExplainRecord) -> Vec<Tile> {
    let Some(found) = found(record) else { return Vec::new() };
    let tile = |name: &str, ns: Option<Estimate>| Tile::cost(name, ns);
    let whole = tile("a switch by pipe", found.whole_ns);
    let parts = found.parts.iter().filter_map(|of| tile(of.part.in_words(), of.ns));
    whole.into_iter().chain(parts).collect()
}
