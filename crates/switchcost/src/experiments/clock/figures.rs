//! Charts of clocks, allocators and accounting.

use std::collections::BTreeMap;
use std::iter::once;

use charts::{Axis, Figure, Role, Scale, Series, Unit};
use model::estimate::Estimate;
use model::findings::{malloc, primes, sampling};
use model::quote::cost;
use model::record::Trials;
use model::trial;

use crate::experiments::measures::{self, About};
use crate::present::figures::{CLOCK_CALLS, CLOCK_MALLOC, counts, lines, nanoseconds, points};

pub(crate) fn calls(record: &Trials, index: usize) -> Option<Figure> {
    let chart = (CLOCK_CALLS, "What it costs to ask for the time");
    let about = About { noun: "call", chart };
    measures::chart(record, &about, "Calls made one after the other.", index)
}

/// A line of estimates, by ascending places.
fn line(name: String, index: usize, mut at: Vec<(f64, Option<Estimate>)>) -> Series {
    at.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Series::new(name, index, Role::Measured, points(at))
}

/// Which clock a tally of primes is by.
fn clock(tally: &str) -> &str {
    match tally {
        trial::primes::THREADCLOCK_NS => "threadclock",
        trial::primes::GETRUSAGE_NS => "getrusage",
        trial::primes::GETRUSAGE_USER_NS => "getrusage, user time",
        trial::primes::GETRUSAGE_THREAD_NS => "getrusage of the thread",
        other => other,
    }
}

pub(crate) fn deviations(found: &primes::Found, index: usize) -> Option<Figure> {
    let series = |name: &str| {
        let at = |of: &primes::Point| (f64::from(of.primes), of.timed.get(name).map(|t| t.sd_ns));
        line(clock(name).to_string(), index, found.points.iter().map(at).collect())
    };
    let gain = |name: &str| {
        let gain = found.overall.get(name)?.gain_percent?.quote_cost().ok()?;
        Some(format!("{} by {:.0} %", clock(name), gain.value()))
    };
    let gains: Vec<String> = trial::primes::OTHERS.into_iter().filter_map(gain).collect();
    let gains = match gains.is_empty() {
        true => String::new(),
        false => format!(" threadclock is more precise than {}.", gains.join(", ")),
    };
    let in_words = format!(
        "Standard deviation of the time of the same work: a more precise clock lies lower.{gains}"
    );
    let x = Axis::new("primes found", Unit::Count, Scale::Log);
    let axes = (x, nanoseconds("standard deviation"));
    let series = once(trial::primes::THREADCLOCK_NS).chain(trial::primes::OTHERS).map(series);
    lines("clock-primes", "How precise clocks are", in_words, axes, series)
}

pub(crate) fn blocks(record: &Trials, found: &malloc::Found, index: usize) -> Option<Figure> {
    let mut by_name: BTreeMap<String, Vec<(f64, Option<Estimate>)>> = BTreeMap::new();
    for point in &found.points {
        let library = point.preload.as_ref().map_or(String::new(), |name| format!(" by {name}"));
        for (call, cost) in [("malloc", &point.malloc), ("free", &point.free)] {
            let ticks = cost.as_ref().and_then(|cost| cost.median_ticks);
            let ns = record.found.ns_per_tick.and_then(|ns| ticks?.scaled(ns));
            by_name.entry(format!("{call}{library}")).or_default().push((point.bytes as f64, ns));
        }
    }
    let axes = (Axis::new("block", Unit::Bytes, Scale::Log), nanoseconds("time of a call"));
    let of_library = |of: &malloc::Overall| {
        let library = of.preload.as_deref().unwrap_or("the C library");
        let malloc = cost(&of.malloc_median_ticks?.scaled(record.found.ns_per_tick?)?);
        Some(format!(" A malloc by {library}, the median over sizes of blocks: {malloc}."))
    };
    let overall: String = found.overall.iter().filter_map(of_library).collect();
    let in_words = format!("Median time of one call by the size of the block.{overall}");
    let series = by_name.into_iter().map(|(name, at)| line(name, index, at));
    lines(CLOCK_MALLOC, "What malloc and free cost", in_words, axes, series)
}

/// What each account told of each process, as a share of the time.
pub(crate) fn accounts(found: &[sampling::Point], index: usize) -> Option<Figure> {
    let series = |point: &sampling::Point, process: &sampling::Process| {
        let shares = trial::sampling::ACCOUNTS.iter().enumerate().map(|(place, account)| {
            let reading = process.accounts.get(account.name);
            (place as f64, reading.and_then(|of| of.ms_per_s.scaled(1e-3)))
        });
        let name = format!("{}, sleeps {}", process.process, point.phase);
        Series::new(name, index, Role::Bars, counts(shares))
    };
    let all =
        found.iter().flat_map(|point| point.processes.iter().map(move |of| series(point, of)));
    let names =
        trial::sampling::ACCOUNTS.iter().map(|account| account.in_words.to_string()).collect();
    let y = Axis::new("CPU time told / time watched", Unit::Ratio, Scale::Linear);
    let axes = (Axis::of_names("account", names), y);
    let in_words = "Share of the time that each account gives to each process: where ticks \
         sample, a process that sleeps whenever the tick comes is told too little.";
    let title = "What accounting by ticks makes of a sleeper";
    lines("clock-sampling", title, in_words.to_string(), axes, all)
}
