//! Charts and tiles of response times: what a wake-up is made of, how late it comes, what
//! interrupts a busy loop.

use analysis::findings::wakeup::WakeupFindings;
use analysis::quote::cost;
use analysis::record::ResponseRecord;
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::trial::Tally;
use rundata::trial::loops::{GETUID, SIGNAL_SELF};
use rundata::words;
use stats::{Histogram, HistogramBin};

use super::answer::sleeper_words;
use super::load;
use crate::report::figures::{ChartLabels, bars, distribution};
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// Draws a run of `response`. `index` is its place among the runs that are drawn together.
pub(crate) fn figures(record: &ResponseRecord, index: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(load::report::figures(record, index));
    figures.extend(lateness(record, index));
    figures.extend(gap_lengths(record, index));
    figures.extend(budget(record, index));
    let mut switches = Vec::new();
    for link in &record.found.links {
        let Some(ring) = record.ring(link.case) else { continue };
        if let Some(cost) = ring.ns_per_switch_above_solo {
            switches.push((link.link.clone(), cost));
        }
    }
    let links = ChartLabels { id: "links", title: "Links compared", axis: "cost of a switch" };
    figures.extend(bars(links, "Rings of 2.", switches, index));
    let mut costs = Vec::new();
    for call in &record.found.loops {
        if let Some(ns) = call.ns {
            costs.push((call.call.clone(), ns));
        }
    }
    let calls = ChartLabels {
        id: "response-calls",
        title: "System calls and signals",
        axis: "time of a call",
    };
    figures.extend(bars(calls, "", costs, index));
    figures
}

/// Returns the figures that stand for the run: the calls that stand for the others, the switch by
/// pipe, how late sleepers are woken, what a busy thread loses.
pub(crate) fn tiles(record: &ResponseRecord) -> Vec<Tile> {
    let mut late: Vec<Tile> = Vec::new();
    for found in &record.found.wakeups {
        let name = format!("timer late, {}", sleeper_words(record, found.case));
        late.extend(Tile::cost(name, found.median_ns));
    }
    let mut late = late.into_iter();
    let mut tiles = load::report::tiles(record);
    tiles.extend(call_tile(record, GETUID));
    tiles.extend(late.next());
    tiles.extend(call_tile(record, SIGNAL_SELF));
    if let Some(watched) = record.found.gaps.first() {
        tiles.extend(Tile::percent("lost by a busy thread", watched.lost_percent));
    }
    tiles.extend(late);
    for link in &record.found.links {
        let Some(ring) = record.ring(link.case) else { continue };
        let name = format!("switch by {}", link.link);
        tiles.extend(Tile::cost(name, ring.ns_per_switch_above_solo));
    }
    for cost in &record.found.loops {
        if ![GETUID, SIGNAL_SELF].contains(&&*cost.call) {
            tiles.extend(Tile::cost(&*cost.call, cost.ns));
        }
    }
    tiles
}

fn call_tile(record: &ResponseRecord, name: &str) -> Option<Tile> {
    let cost = record.found.loops.iter().find(|cost| cost.call == name)?;
    Tile::cost(name, cost.ns)
}

/// Draws a bar for each bin that has any, by its lower edge.
pub(super) fn histogram(title: &str, histogram: &Histogram) -> Option<Figure> {
    let mut bars = Vec::new();
    for (place, bin) in histogram.0.iter().enumerate() {
        if bin.count > 0 {
            bars.push(Point::bare(place as f64, bin.count as f64));
        }
    }
    let names = Axis::with_names("", histogram.0.iter().map(HistogramBin::label).collect());
    let counts = Axis::new("", Unit::Count, Scale::Linear);
    Figure::new("", title, names, counts).with_series([Series::new("", 0, Role::Bars, bars)])
}

/// Times by name, and whether what stands for them is resolved.
pub(super) struct NamedTimes<'a> {
    pub(super) name: String,
    pub(super) is_sure: bool,
    pub(super) times: &'a Tally,
}

/// Draws the share of the times up to each; `None` without any.
///
/// The first pair has identifier and title; `times` is what they are, `whole` what each is a share
/// of.
pub(super) fn distributions(
    (id, title): (&str, &str),
    in_words: String,
    (times, whole): (&str, &str),
    named: Vec<NamedTimes>,
    index: usize,
) -> Option<Figure> {
    let x = Axis::new(times, Unit::Nanoseconds, Scale::Log);
    let y = Axis::new(&format!("share of {whole} up to it"), Unit::Percent, Scale::Linear);
    let mut series = Vec::new();
    for NamedTimes { name, is_sure, times } in named {
        series.extend(distribution(&name, is_sure, index, times));
    }
    Figure { in_words, ..Figure::new(id, title, x, y) }.with_series(series)
}

/// Returns the median of a sleeper's delay if it may be quoted.
fn quotable_median_ns(found: &WakeupFindings) -> Option<f64> {
    Some(found.median_ns?.quote_cost().ok()?.value())
}

/// Draws how late each sleeper is woken.
fn lateness(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let mut medians: Vec<(f64, String)> = Vec::new();
    let mut named = Vec::new();
    let mut wakeups = 0;
    for found in &record.found.wakeups {
        let name = sleeper_words(record, found.case);
        let median = quotable_median_ns(found);
        if let Some(ns) = median {
            medians.push((ns, name.clone()));
        }
        named.push(NamedTimes { name, is_sure: median.is_some(), times: &found.all_late_ns });
        wakeups += found.late_ns.count;
    }
    medians.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let in_words = match &medians[..] {
        [] => {
            let first = record.found.wakeups.first()?;
            let why = first.median_ns.as_ref().map_or(String::new(), cost);
            format!("{}; their median: {why}.", counted(wakeups as usize, "wake-up"))
        }
        [only] => format!("The median wake-up is {} late.", median_in_words(only)),
        [least, .., most] => {
            let (least, most) = (median_in_words(least), median_in_words(most));
            format!("The median wake-up is from {least} to {most} late.")
        }
    };
    let heading = ("response-late", "How late a sleeper is woken");
    distributions(heading, in_words, ("late by", "wake-ups"), named, index)
}

/// Returns `3.1 us (idle CPU)`.
fn median_in_words((ns, name): &(f64, String)) -> String {
    format!("{} ({name})", words::time(*ns))
}

/// Draws the lengths of gaps by class, of the first case in which a busy loop was watched.
fn gap_lengths(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let found = record.found.gaps.first()?;
    let (mut count, mut longest) = (0, None);
    let mut named = Vec::new();
    for class in &found.classes {
        let Some(length) = class.length_ns else { continue };
        count += length.count;
        // Of equals the last.
        if longest.is_none_or(|(max, _)| length.max >= max) {
            longest = Some((length.max, class.class));
        }
        let name = class.class.to_string();
        named.push(NamedTimes { name, is_sure: true, times: &class.all_lengths_ns });
    }
    let (max_ns, class) = longest?;
    let [watched, threshold] = [found.watched_ns, found.threshold_ns].map(words::time);
    let in_words = format!(
        "{} above {threshold} in {watched}; the longest took {} ({class}).",
        counted(count as usize, "gap"),
        words::time(max_ns as f64)
    );
    let heading = ("response-gaps", "What interrupts a busy loop");
    distributions(heading, in_words, ("length of the gap", "gaps"), named, index)
}

/// Draws the parts of a wake-up, their sum, and what was measured.
fn budget(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let budget = record.found.budget.as_ref()?;
    let parts = [
        ("entry and handler", budget.entry_and_handler_ns),
        ("switch", budget.switch_ns),
        ("sum of these two", budget.sum_ns),
    ];
    let mut known = Vec::new();
    for (name, ns) in parts {
        if let Some(ns) = ns {
            known.push((name.to_string(), ns));
        }
    }
    for comparison in &budget.against {
        let Some(ns) = comparison.measured_ns else { continue };
        known.push((format!("measured, {}", sleeper_words(record, comparison.case)), ns));
    }
    let labels = ChartLabels {
        id: "response-budget",
        title: "What a wake-up should take, and takes",
        axis: "time",
    };
    bars(labels, "Medians.", known, index)
}
