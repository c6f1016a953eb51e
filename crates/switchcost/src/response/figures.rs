//! Response times: what a wake-up is made of, how late it comes, what interrupts a busy loop.

use charts::{Axis, Figure, Mark, Point, Role, Scale, Series, Unit};
use model::estimate::Estimate;
use model::response::{Budget, Record};
use model::run::Run;
use model::trial::{headlines_ns, wakeup};
use model::words;
use stats::Histogram;

use crate::figures::{Bars, rounds};

/// The figures of a run of `response`, as those of rings.
pub(crate) fn figures(run: &Run, record: &Record, index: usize) -> Vec<Figure> {
    let all = [
        late(record, index),
        gaps(record, index),
        budget(record.budget.as_ref(), index),
        links(record, index),
        loops(record, index),
        by_round(run, index),
    ];
    all.into_iter().flatten().collect()
}

/// The counts from each class's lower edge on, and zero behind the last.
fn steps(histogram: &Histogram) -> Vec<Point> {
    let mut points: Vec<Point> = histogram
        .0
        .iter()
        .map(|bin| Point::bare(bin.from_ns.max(1) as f64, bin.count as f64))
        .collect();
    points.extend(histogram.0.last().map(|bin| Point::bare(bin.below_ns as f64, 0.0)));
    points
}

/// None where nothing was counted.
fn histograms(
    id: &str,
    title: &str,
    label: &str,
    counted: &str,
    series: impl Iterator<Item = Series>,
) -> Option<Figure> {
    let x = Axis::new(label, Unit::Nanoseconds, Scale::Log);
    Figure::new(id, title, x, Axis::new(counted, Unit::Count, Scale::Log)).of(series)
}

fn late(record: &Record, index: usize) -> Option<Figure> {
    let found = &record.wakeups;
    let name = |found: &wakeup::Found| {
        let case = record.cases.get(found.case).and_then(|case| case.trial());
        let policy = case.map_or(String::new(), |of| format!(", {}", of.case.policy));
        format!("{} CPU{policy}", found.load)
    };
    let of_case = |found: &wakeup::Found| {
        Series::new(name(found), index, Role::Steps, steps(&found.histogram))
    };
    let title = "How late a sleeper is woken";
    let series = found.iter().map(of_case);
    let mut figure = histograms("response-late", title, "late by", "wake-ups", series)?;
    let tail = |found: &wakeup::Found| {
        let tail = found.p99_ns?;
        Some(Mark {
            x: tail.value_ns as f64,
            between: Some((tail.low_ns as f64, tail.high_ns as f64)),
            label: format!("99 %, {}", name(found)),
        })
    };
    figure.marks = found.iter().filter_map(tail).filter(|mark| mark.x > 0.0).collect();
    let told = |found: &wakeup::Found| {
        let time = |ns: i64| words::time(ns as f64);
        let far = found
            .p99_ns
            .map_or(String::new(), |p99| format!(", 99 % within {}", time(p99.value_ns)));
        let late = &found.late_ns;
        format!(
            "{}: {} wake-ups, half of them within {}{far}, the latest {}.",
            name(found),
            late.count,
            time(late.p50),
            time(late.max)
        )
    };
    figure.in_words = found.iter().map(told).collect::<Vec<_>>().join(" ");
    Some(figure)
}

/// By class, of the first case in which a busy loop was watched.
fn gaps(record: &Record, index: usize) -> Option<Figure> {
    let found = record.gaps.first()?;
    let seen = || found.classes.iter().filter(|class| !class.histogram.0.is_empty());
    let of_class = |class: &model::trial::gaps::ClassFound| {
        Series::new(class.class.to_string(), index, Role::Steps, steps(&class.histogram))
    };
    let title = "What interrupts a busy loop";
    let series = seen().map(of_class);
    let mut figure = histograms("response-gaps", title, "length of the gap", "gaps", series)?;
    let told = |class: &model::trial::gaps::ClassFound| {
        let length = class.length_ns?;
        Some(format!(
            "{}: {} gaps, half of them up to {}, the longest {}",
            class.class,
            length.count,
            words::time(length.p50 as f64),
            words::time(length.max as f64)
        ))
    };
    let told: Vec<String> = seen().filter_map(told).collect();
    figure.in_words = format!(
        "{} watched for gaps above {}. {}.",
        words::time(found.watched_ns),
        words::time(found.threshold_ns),
        told.join("; ")
    );
    Some(figure)
}

/// The parts, their sum, and what was measured.
fn budget(budget: Option<&Budget>, index: usize) -> Option<Figure> {
    let budget = budget?;
    let parts = [
        ("entry and handler", budget.entry_and_handler_ns),
        ("switch", budget.switch_ns),
        ("sum of these", budget.sum_ns),
    ];
    let mut known: Vec<(String, Estimate)> =
        parts.into_iter().filter_map(|(name, of)| Some((name.to_string(), of?))).collect();
    let measured = |of: &model::response::Against| {
        Some((format!("measured, {} CPU, {}", of.load, of.policy), of.measured_ns?))
    };
    known.extend(budget.against.iter().filter_map(measured));
    let mut bars =
        Bars::new("response-budget", "What a wake-up should take, and takes", "time", known);
    bars.about = "Medians.".to_string();
    bars.figure(index)
}

fn links(record: &Record, index: usize) -> Option<Figure> {
    let cost = |link: &model::response::LinkCost| {
        let cost = record.ring(link.case)?.ns_per_switch_above_solo?;
        Some((link.link.clone(), cost))
    };
    let known = record.links.iter().filter_map(cost).collect();
    let mut bars = Bars::new("links", "Links compared", "cost of a switch", known);
    bars.about = "Rings of 2.".to_string();
    bars.figure(index)
}

fn loops(record: &Record, index: usize) -> Option<Figure> {
    let known = record.loops.iter().filter_map(|of| Some((of.call.clone(), of.ns?))).collect();
    Bars::new("response-calls", "System calls and signals", "time of a call", known).figure(index)
}

/// Rings and trials of a round together.
fn by_round(run: &Run, index: usize) -> Option<Figure> {
    let mut seen = rounds::of_rings(run);
    seen.extend(rounds::of_cases(&headlines_ns(run)));
    rounds::figure(seen, index)
}
