//! A switch as a waterfall: each part stands where the ones before it end.

use charts::{Axis, Figure, Point, Role, Series};
use model::estimate::Estimate;
use model::explain::{Found, Part};
use model::quote::Quoted;
use model::record::ExplainRecord;

use super::answer::{found, headline, is_whole};
use crate::present::figures::{bars, lines, nanoseconds};
use crate::present::tiles::Tile;

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
fn waterfall(record: &ExplainRecord, found: &Found, index: usize) -> Option<Figure> {
    if !is_whole(record) {
        return None;
    }
    let quoted = |of: &Part| Some((of.part.in_words().to_string(), of.ns?.quote_cost().ok()?));
    let parts: Vec<(String, Quoted)> = found.parts.iter().map(quoted).collect::<Option<_>>()?;
    let whole = found.whole_ns?.quote_cost().ok()?;
    let mut names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    names.push("whole".to_string());
    let (mut ends, mut sum) = (Vec::new(), 0.0);
    for (place, (_, part)) in parts.iter().enumerate() {
        let [low, high] = [part.low(), part.high()].map(|end| Some(sum + end));
        sum += part.value();
        ends.push(Point { x: place as f64, y: sum, low, high });
    }
    let last = Point {
        x: parts.len() as f64,
        y: whole.value(),
        low: Some(whole.low()),
        high: Some(whole.high()),
    };
    ends.push(last);
    let series = Series::new("up to and with it", index, Role::Bars, ends);
    let axes = (Axis::of_names("", names), nanoseconds("time of a switch"));
    let title = "What a switch is made of";
    lines("explain", title, headline(record), axes, [series])
}

/// The whole and its parts.
pub(crate) fn tiles(record: &ExplainRecord) -> Vec<Tile> {
    let Some(found) = found(record) else { return Vec::new() };
    let tile = |name: &str, ns: Option<Estimate>| Tile::cost(name, ns);
    let whole = tile("a switch by pipe", found.whole_ns);
    let parts = found.parts.iter().filter_map(|of| tile(of.part.in_words(), of.ns));
    whole.into_iter().chain(parts).collect()
}
