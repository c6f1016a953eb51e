//! Response times: what a wake-up is made of, how late it comes, what interrupts a busy loop.

use analysis::findings::{gaps::GapClassFindings, wakeup};
use analysis::quote::cost;
use analysis::record::ResponseRecord;
use analysis::response::{BudgetComparison, LinkCost};
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::trial::Tally;
use rundata::trial::loops::{GETUID, SIGNAL_SELF};
use rundata::words;
use stats::{Histogram, HistogramBin};

use super::answer::sleeper_words;
use crate::report::figures::{bars, distribution};
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// The figures of a run of `response`, as those of rings.
pub(crate) fn figures(record: &ResponseRecord, index: usize) -> Vec<Figure> {
    let cost = |link: &LinkCost| {
        let cost = record.ring(link.case)?.ns_per_switch_above_solo?;
        Some((link.link.clone(), cost))
    };
    let links = ("links", "Links compared", "cost of a switch");
    let calls = ("response-calls", "System calls and signals", "time of a call");
    let known = record.found.loops.iter().filter_map(|of| Some((of.call.clone(), of.ns?)));
    let all = [
        late(record, index),
        gaps(record, index),
        budget(record, index),
        bars(links, "Rings of 2.", record.found.links.iter().filter_map(cost), index),
        bars(calls, "", known, index),
    ];
    all.into_iter().flatten().collect()
}

/// What stands for the run: the calls that stand for the others, the switch by pipe, how late
/// sleepers are woken, what a busy thread loses.
pub(crate) fn tiles(record: &ResponseRecord) -> Vec<Tile> {
    let call = |name: &'static str| {
        let of = record.found.loops.iter().find(|of| of.call == name);
        of.and_then(|of| Tile::cost(name, of.ns))
    };
    let late = |of: &wakeup::WakeupFindings| {
        Tile::cost(format!("timer late, {}", sleeper_words(record, of.case)), of.median_ns)
    };
    let late: Vec<Tile> = record.found.wakeups.iter().filter_map(late).collect();
    let link = |of: &LinkCost| {
        Tile::cost(format!("switch by {}", of.link), record.ring(of.case)?.ns_per_switch_above_solo)
    };
    let lost = record.found.gaps.first();
    let lost = lost.and_then(|of| Tile::percent("lost by a busy thread", of.lost_percent));
    let first = [call(GETUID), late.first().cloned(), call(SIGNAL_SELF), lost];
    let links = record.found.links.iter().filter_map(link);
    let loops = record.found.loops.iter().filter(|of| ![GETUID, SIGNAL_SELF].contains(&&*of.call));
    let loops = loops.filter_map(|of| Tile::cost(&*of.call, of.ns));
    let late = late.iter().skip(1).cloned();
    first.into_iter().flatten().chain(late).chain(links).chain(loops).collect()
}

/// A bar for each bin that has any, by its lower edge.
pub(super) fn histogram(title: &str, of: &Histogram) -> Option<Figure> {
    let bars = of.0.iter().enumerate().filter(|(_, bin)| bin.count > 0);
    let bars = bars.map(|(place, bin)| Point::bare(place as f64, bin.count as f64)).collect();
    let names = Axis::with_names("", of.0.iter().map(HistogramBin::label).collect());
    let counts = Axis::new("", Unit::Count, Scale::Linear);
    Figure::new("", title, names, counts).with_series([Series::new("", 0, Role::Bars, bars)])
}

/// Times, and the share of all that is up to each.
fn axes(times: &str, of: &str) -> (Axis, Axis) {
    let x = Axis::new(times, Unit::Nanoseconds, Scale::Log);
    (x, Axis::new(&format!("share of {of} up to it"), Unit::Percent, Scale::Linear))
}

/// A figure of distributions; none where nothing is on it.
fn distributions<'a>(
    (id, title): (&str, &str),
    (in_words, axes): (String, (Axis, Axis)),
    all: impl Iterator<Item = (String, bool, &'a Tally)>,
    index: usize,
) -> Option<Figure> {
    let series = all.flat_map(|(name, holds, of)| distribution(&name, holds, index, of));
    Figure { in_words, ..Figure::new(id, title, axes.0, axes.1) }.with_series(series)
}

fn late(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let found = &record.found.wakeups;
    let name = |of: &wakeup::WakeupFindings| sleeper_words(record, of.case);
    let quoted =
        |of: &wakeup::WakeupFindings| Some((of.median_ns?.quote_cost().ok()?.value(), name(of)));
    let mut medians: Vec<(f64, String)> = found.iter().filter_map(quoted).collect();
    medians.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let told = |(ns, name): &(f64, String)| format!("{} ({name})", words::time(*ns));
    let in_words = match &medians[..] {
        [] => {
            let why = found.first()?.median_ns.as_ref().map_or(String::new(), cost);
            let many: u64 = found.iter().map(|of| of.late_ns.count).sum();
            format!("{}; their median: {why}.", counted(many as usize, "wake-up"))
        }
        [only] => format!("The median wake-up is {} late.", told(only)),
        [least, .., most] => {
            format!("The median wake-up is from {} to {} late.", told(least), told(most))
        }
    };
    let heading = ("response-late", "How late a sleeper is woken");
    let holds =
        |of: &wakeup::WakeupFindings| of.median_ns.is_some_and(|of| of.quote_cost().is_ok());
    let all = found.iter().map(|of| (name(of), holds(of), &of.all_late_ns));
    distributions(heading, (in_words, axes("late by", "wake-ups")), all, index)
}

/// By class, of the first case in which a busy loop was watched.
fn gaps(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let found = record.found.gaps.first()?;
    let [watched, threshold] = [found.watched_ns, found.threshold_ns].map(words::time);
    let lengths = |class: &GapClassFindings| Some((class.length_ns?, class.class));
    let all: Vec<_> = found.classes.iter().filter_map(lengths).collect();
    let many: u64 = all.iter().map(|(of, _)| of.count).sum();
    let (longest, class) = all.iter().max_by_key(|(of, _)| of.max)?;
    let in_words = format!(
        "{} above {threshold} in {watched}; the longest took {} ({class}).",
        counted(many as usize, "gap"),
        words::time(longest.max as f64)
    );
    let heading = ("response-gaps", "What interrupts a busy loop");
    let seen = found.classes.iter().filter(|class| class.length_ns.is_some());
    let seen = seen.map(|class| (class.class.to_string(), true, &class.all_lengths_ns));
    distributions(heading, (in_words, axes("length of the gap", "gaps")), seen, index)
}

/// The parts, their sum, and what was measured.
fn budget(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let budget = record.found.budget.as_ref()?;
    let parts = [
        ("entry and handler", budget.entry_and_handler_ns),
        ("switch", budget.switch_ns),
        ("sum of these two", budget.sum_ns),
    ];
    let measured = |of: &BudgetComparison| {
        Some((format!("measured, {}", sleeper_words(record, of.case)), of.measured_ns?))
    };
    let parts = parts.into_iter().filter_map(|(name, of)| Some((name.to_string(), of?)));
    let known = parts.chain(budget.against.iter().filter_map(measured));
    let what = ("response-budget", "What a wake-up should take, and takes", "time");
    bars(what, "Medians.", known, index)
}
