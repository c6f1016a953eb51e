//! ResponseRecord times: what a wake-up is made of, how late it comes, what interrupts a busy loop.

use charts::{Axis, Figure, Mark, Point, Role, Scale, Series, Unit};
use model::findings::{gaps::ClassFound, wakeup};
use model::record::ResponseRecord;
use model::response::{Against, LinkCost};
use model::words;
use stats::{Bin, Histogram};

use super::answer::sleeper_words;
use crate::present::figures::{bars, lines};

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

/// The counts from each class's lower edge on, and zero behind the last.
fn steps(name: String, index: usize, histogram: &Histogram) -> Series {
    let bins = histogram.0.iter();
    let starts = bins.map(|bin| Point::bare(bin.from_ns.max(1) as f64, bin.count as f64));
    let end = histogram.0.last().map(|bin| Point::bare(bin.below_ns as f64, 0.0));
    Series::new(name, index, Role::Steps, starts.chain(end).collect())
}

/// A bar for each bin that has any, by its lower edge.
pub(super) fn histogram(title: &str, of: &Histogram) -> Option<Figure> {
    let bars = of.0.iter().enumerate().filter(|(_, bin)| bin.count > 0);
    let bars = bars.map(|(place, bin)| Point::bare(place as f64, bin.count as f64)).collect();
    let names = Axis::of_names("", of.0.iter().map(Bin::label).collect());
    let counts = Axis::new("", Unit::Count, Scale::Linear);
    Figure::new("", title, names, counts).of([Series::new("", 0, Role::Bars, bars)])
}

/// Times, and how many there are of each.
fn axes(times: &str, counted: &str) -> (Axis, Axis) {
    let x = Axis::new(times, Unit::Nanoseconds, Scale::Log);
    (x, Axis::new(counted, Unit::Count, Scale::Log))
}

fn late(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let found = &record.found.wakeups;
    let name = |of: &wakeup::Found| sleeper_words(record, of.case);
    let series = found.iter().map(|of| steps(name(of), index, &of.histogram));
    let tail = |of: &wakeup::Found| {
        let tail = of.p99_ns.filter(|tail| tail.value_ns > 0)?;
        let between = Some((tail.low_ns as f64, tail.high_ns as f64));
        Some(Mark { x: tail.value_ns as f64, between, label: format!("99 %, {}", name(of)) })
    };
    let time = |ns: i64| words::time(ns as f64);
    let sentence = |of: &wakeup::Found| {
        let far = of.p99_ns.map(|tail| format!(", 99 % within {}", time(tail.value_ns)));
        let (many, half, most) = (of.late_ns.count, time(of.late_ns.p50), time(of.late_ns.max));
        let (name, far) = (name(of), far.unwrap_or_default());
        format!("{name}: {many} wake-ups, half of them within {half}{far}, the latest {most}.")
    };
    let in_words = found.iter().map(sentence).collect::<Vec<_>>().join(" ");
    let (title, axes) = ("How late a sleeper is woken", axes("late by", "wake-ups"));
    let figure = lines("response-late", title, in_words, axes, series)?;
    Some(Figure { marks: found.iter().filter_map(tail).collect(), ..figure })
}

/// By class, of the first case in which a busy loop was watched.
fn gaps(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let found = record.found.gaps.first()?;
    let seen = || found.classes.iter().filter(|class| !class.histogram.0.is_empty());
    let series = seen().map(|class| steps(class.class.to_string(), index, &class.histogram));
    let sentence = |class: &ClassFound| {
        let length = class.length_ns?;
        let [half, most] = [length.p50, length.max].map(|ns| words::time(ns as f64));
        let (class, many) = (class.class, length.count);
        Some(format!("{class}: {many} gaps, half of them up to {half}, the longest {most}"))
    };
    let sentence = seen().filter_map(sentence).collect::<Vec<_>>().join("; ");
    let [watched, threshold] = [found.watched_ns, found.threshold_ns].map(words::time);
    let in_words = format!("{watched} watched for gaps above {threshold}. {sentence}.");
    let (title, axes) = ("What interrupts a busy loop", axes("length of the gap", "gaps"));
    lines("response-gaps", title, in_words, axes, series)
}

/// The parts, their sum, and what was measured.
fn budget(record: &ResponseRecord, index: usize) -> Option<Figure> {
    let budget = record.found.budget.as_ref()?;
    let parts = [
        ("entry and handler", budget.entry_and_handler_ns),
        ("switch", budget.switch_ns),
        ("sum of these two", budget.sum_ns),
    ];
    let measured = |of: &Against| {
        Some((format!("measured, {}", sleeper_words(record, of.case)), of.measured_ns?))
    };
    let parts = parts.into_iter().filter_map(|(name, of)| Some((name.to_string(), of?)));
    let known = parts.chain(budget.against.iter().filter_map(measured));
    let what = ("response-budget", "What a wake-up should take, and takes", "time");
    bars(what, "Medians.", known, index)
}
