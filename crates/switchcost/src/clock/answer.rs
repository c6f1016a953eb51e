//! What a run of clocks, allocators or accounting answers, in one sentence.

use model::estimate::Estimate;
use model::findings::malloc::Overall;
use model::findings::primes::{self, GETRUSAGE_NS};
use model::findings::sampling::{self, PROCESSES};
use model::findings::{Record, malloc, overhead};
use model::trial::Phase;
use model::words;

use super::table::ns;
use crate::terminal::{figure, time_words};

/// Ways to read the CPU time of a thread: the call, and what it is called.
const READINGS: [(&str, &str); 3] = [
    ("threadclock-now", "threadclock"),
    ("thread-cputime", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)"),
    ("getrusage", "getrusage"),
];

/// What it costs to read a thread's CPU time; where that was not asked for, of the cheapest call and of the dearest.
pub(super) fn overhead(record: &Record, found: &overhead::Found) -> String {
    let cost =
        |of: &overhead::CallCost| Some((of.call.clone(), ns(record, of.back_to_back_ticks)?));
    let mut calls: Vec<(String, Estimate)> = found.calls.iter().filter_map(cost).collect();
    calls.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    let reading = |(name, words): (&str, &str)| {
        let (_, ns) = calls.iter().find(|(call, _)| call == name)?;
        Some(format!("{} by {words}", words::time(ns.value)))
    };
    let readings: Vec<String> = READINGS.into_iter().filter_map(reading).collect();
    match (&calls[..], readings.len()) {
        ([], _) => "No call was measured.".to_string(),
        (_, 2..) => format!("Reading a thread's CPU time takes {}.", readings.join(", ")),
        ([(call, ns)], _) => format!("A call of {call} takes {}.", time_words(ns)),
        ([(call, ns), .., (dearest, most)], _) => {
            let (least, most) = (time_words(ns), words::time(most.value));
            format!("The cheapest call is {call} with {least}, the dearest {dearest} with {most}.")
        }
    }
}

/// Whether getrusage scatters more than threadclock over the same work, and whether their means agree.
pub(super) fn primes(found: &primes::Found) -> String {
    let Some(against) = found.overall.get(GETRUSAGE_NS) else {
        return "Nothing was measured.".to_string();
    };
    let scatter = match against.gain_percent {
        None => "getrusage or threadclock never scattered".to_string(),
        Some(gain) => {
            let (how, size) =
                if gain.value < 0.0 { ("less", -gain.value) } else { ("more", gain.value) };
            let size = figure(size);
            match gain.resolved {
                true => {
                    format!("getrusage scatters {size} % {how} than threadclock over the same work")
                }
                false => format!(
                    "whether getrusage or threadclock scatters more is not resolved ({size} % {how} by getrusage)"
                ),
            }
        }
    };
    let difference = against.mean_difference_percent;
    let means = match difference.map(|of| (of, of.interval())) {
        Some((of, Some(_))) if of.resolved => {
            format!("; its mean differs by {} %", figure(of.value))
        }
        Some((_, Some(interval))) => {
            let most = interval.low.abs().max(interval.high.abs());
            format!("; their means agree to {} %", figure(most))
        }
        _ => String::new(),
    };
    sentence(&format!("{scatter}{means}"))
}

/// What a block costs over all sizes, by each allocator.
pub(super) fn malloc(record: &Record, found: &malloc::Found) -> String {
    let sizes = || found.points.iter().map(|point| point.bytes);
    let of = |overall: &Overall| {
        let malloc = time_words(&ns(record, overall.malloc_median_ticks)?);
        let free = ns(record, overall.free_median_ticks);
        let free = free.map(|ns| format!(", free {}", words::time(ns.value)));
        let by = overall.preload.as_ref().map_or(String::new(), |library| format!(" of {library}"));
        Some(format!("malloc{by} takes {malloc}{}", free.unwrap_or_default()))
    };
    let costs: Vec<String> = found.overall.iter().filter_map(of).collect();
    match (&costs[..], sizes().min().zip(sizes().max())) {
        ([], _) | (_, None) => "What malloc costs was not measured.".to_string(),
        (_, Some((least, most))) if least == most => {
            format!("{}: blocks of {least} bytes.", costs.join("; "))
        }
        (_, Some((least, most))) => {
            format!("{}: means over sizes of {least} to {most} bytes.", costs.join("; "))
        }
    }
}

/// How much of its CPU time the ticks see of a process that sleeps whenever they come.
pub(super) fn sampling(points: &[sampling::Point]) -> String {
    let told = |account: &str| {
        let point = points.iter().find(|point| point.phase == Phase::AcrossTicks)?;
        let sleeper = point.processes.iter().find(|of| of.process == PROCESSES[0])?;
        Some(sleeper.accounts.get(account)?.ms_per_s.value)
    };
    let share = |account: &str| {
        let (told, truth) = (told(account)?, told("precise").filter(|truth| *truth > 0.0)?);
        Some((told, truth, 100.0 * told / truth))
    };
    let Some((seen, truth, percent)) = share("ticks") else {
        return "What the ticks see of a sleeper was not measured.".to_string();
    };
    let [percent, seen, truth] = [percent, seen, truth].map(figure);
    let usage = share("getrusage");
    let usage =
        usage.map(|(.., all)| format!("; getrusage's user + system is {} % of it", figure(all)));
    format!(
        "Ticks see {percent} % of the CPU time of a process that sleeps whenever they come ({seen} of {truth} ms a second){}.",
        usage.unwrap_or_default()
    )
}

/// With a capital and a full stop, but for a name at its beginning, which stays as it is.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    match words.starts_with("getrusage") {
        true => format!("{words}."),
        false => format!("{}{}.", first.unwrap_or_default(), letters.as_str()),
    }
}
