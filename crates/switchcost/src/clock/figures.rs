//! Charts of clocks, allocators and accounting.

use std::collections::BTreeMap;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use model::trial::{Record, malloc, overhead, primes, sampling};

use crate::figures::{self, Bars, lines, point};

/// What clocks and calls cost.
pub(crate) const CALLS: &str = "clock-calls";
/// What malloc and free cost.
pub(crate) const MALLOC: &str = "clock-malloc";

pub(crate) fn calls(record: &Record, found: &overhead::Found, index: usize) -> Option<Figure> {
    let ns = |call: &overhead::CallCost| {
        Some((call.call.clone(), call.back_to_back_ticks?.scaled(record.ns_per_tick?)?))
    };
    let known = found.calls.iter().filter_map(ns).collect();
    let mut bars = Bars::new(CALLS, "What it costs to ask for the time", "time of a call", known);
    bars.about = "Calls made one after the other.".to_string();
    bars.figure(index)
}

/// Which clock a tally of primes is by.
fn clock(tally: &str) -> &str {
    match tally {
        primes::THREADCLOCK_NS => "threadclock",
        primes::GETRUSAGE_NS => "getrusage",
        primes::GETRUSAGE_USER_NS => "getrusage, user time",
        primes::GETRUSAGE_THREAD_NS => "getrusage of the thread",
        other => other,
    }
}

pub(crate) fn deviations(found: &primes::Found, index: usize) -> Option<Figure> {
    let series = |name: &str| {
        let at = |of: &primes::Point| Some(point(f64::from(of.primes), &of.timed.get(name)?.sd_ns));
        let mut points: Vec<Point> = found.points.iter().filter_map(at).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(clock(name), index, Role::Measured, points)
    };
    let names = std::iter::once(primes::THREADCLOCK_NS).chain(primes::OTHERS);
    let gain = |name: &str| {
        let gain = found.overall.get(name)?.gain_percent?;
        Some(format!("{} by {:.0} %", clock(name), gain.value))
    };
    let gains: Vec<String> = primes::OTHERS.into_iter().filter_map(gain).collect();
    let mut in_words =
        "Standard deviation of the time of the same work: a more precise clock lies lower."
            .to_string();
    if !gains.is_empty() {
        in_words.push_str(&format!(" threadclock is more precise than {}.", gains.join(", ")));
    }
    let axes = (
        Axis::new("primes found", Unit::Count, Scale::Log),
        Axis::new("standard deviation", Unit::Nanoseconds, Scale::Linear),
    );
    lines("clock-primes", "How precise clocks are", in_words, axes, names.map(series))
}

pub(crate) fn blocks(record: &Record, found: &malloc::Found, index: usize) -> Option<Figure> {
    let mut by_name: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for point in &found.points {
        let library = point.preload.as_ref().map_or(String::new(), |name| format!(" by {name}"));
        for (call, cost) in [("malloc", &point.malloc), ("free", &point.free)] {
            let ticks = cost.as_ref().and_then(|cost| cost.median_ticks);
            let ns = record.ns_per_tick.and_then(|ns| ticks?.scaled(ns));
            if let Some(ns) = ns {
                let points = by_name.entry(format!("{call}{library}")).or_default();
                points.push(figures::point(point.bytes as f64, &ns));
            }
        }
    }
    let series = |(name, mut points): (String, Vec<Point>)| {
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(name, index, Role::Measured, points)
    };
    let axes = (
        Axis::new("block", Unit::Bytes, Scale::Log),
        Axis::new("time of a call", Unit::Nanoseconds, Scale::Linear),
    );
    let in_words = "Median time of one call by the size of the block.".to_string();
    let series = by_name.into_iter().map(series);
    lines(MALLOC, "What malloc and free cost", in_words, axes, series)
}

/// What each account told of each process, as a share of the time.
pub(crate) fn accounts(found: &[sampling::Point], index: usize) -> Option<Figure> {
    let names: Vec<String> =
        sampling::ACCOUNTS.iter().map(|account| account.in_words.to_string()).collect();
    let series = |point: &sampling::Point, process: &sampling::Process| {
        let told = |(place, account): (usize, &sampling::Account)| {
            let share = process.accounts.get(account.name)?.ms_per_s.scaled(1e-3)?;
            Some(figures::point(place as f64, &share))
        };
        let points = sampling::ACCOUNTS.iter().enumerate().filter_map(told).collect();
        Series::new(
            format!("{}, sleeps {}", process.process, point.phase),
            index,
            Role::Bars,
            points,
        )
    };
    let all =
        found.iter().flat_map(|point| point.processes.iter().map(move |of| series(point, of)));
    let axes = (
        Axis::of_names("account", names),
        Axis::new("CPU time told / time watched", Unit::Ratio, Scale::Linear),
    );
    let in_words =
        "Share of the time that each account gives to each process: where ticks sample, a \
                    process that sleeps whenever the tick comes is told too little."
            .to_string();
    lines("clock-sampling", "What accounting by ticks makes of a sleeper", in_words, axes, all)
}
