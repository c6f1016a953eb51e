//! What a run of clocks, allocators or accounting answers, in one sentence.

use model::findings::malloc;
use model::findings::malloc::Overall;
use model::findings::primes;
use model::findings::sampling;
use model::quote::NotQuotable;
use model::record::Trials;
use model::run::unfinished;
use model::trial::Phase;
use model::trial::primes::GETRUSAGE_NS;
use model::trial::sampling::PROCESSES;
use model::words;

use super::ns;
use crate::experiments::measures;
use crate::present::terminal::figure;

/// Ways to read the CPU time of a thread: the call, and what it is called.
const READINGS: [(&str, &str); 3] = [
    ("threadclock-now", "threadclock"),
    ("thread-cputime", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)"),
    ("getrusage", "getrusage"),
];

/// What it costs to read a thread's CPU time; where that was not asked for, of the cheapest call
/// and of the dearest.
pub(super) fn overhead(record: &Trials) -> String {
    let costs = measures::costs(record);
    let reading = |(name, words): (&str, &str)| {
        let (_, ns) = costs.iter().find(|(call, _)| call == name)?;
        Some(format!("{} by {words}", words::time(ns.quote_cost().ok()?.value())))
    };
    let readings: Vec<String> = READINGS.into_iter().filter_map(reading).collect();
    if readings.len() > 1 {
        return format!("Reading a thread's CPU time takes {}.", readings.join(", "));
    }
    measures::answer(record, "call")
}

/// Whether getrusage scatters more than threadclock over the same work, and whether their means
/// agree.
pub(super) fn primes(record: &Trials, found: &primes::Found) -> String {
    let Some(against) = found.overall.get(GETRUSAGE_NS) else {
        return "Nothing was measured.".to_string();
    };
    if unfinished(record.end.as_ref()).is_some() {
        return "Whether getrusage or threadclock scatters more is not told.".to_string();
    }
    let scatter = match against.gain_percent.map(|gain| gain.quote()) {
        None => "getrusage or threadclock never scattered".to_string(),
        Some(Ok(gain)) => {
            let (how, size) =
                (if gain.value() < 0.0 { "less" } else { "more" }, gain.value().abs());
            let size = figure(size);
            format!("getrusage scatters {size} % {how} than threadclock over the same work")
        }
        Some(Err(why)) => {
            format!("how much more getrusage scatters than threadclock: {}", why.of("%"))
        }
    };
    let means = match against.mean_difference_percent.map(|of| of.quote()) {
        Some(Ok(of)) => format!("; its mean differs by {} %", figure(of.value())),
        Some(Err(NotQuotable::NotResolved { low, high })) => {
            format!("; their means agree to {} %", figure(low.abs().max(high.abs())))
        }
        _ => String::new(),
    };
    sentence(&format!("{scatter}{means}"))
}

/// What a block costs over all sizes, by each allocator.
pub(super) fn malloc(record: &Trials, found: &malloc::Found) -> String {
    let sizes = || found.points.iter().map(|point| point.bytes);
    let of = |overall: &Overall| {
        let by = overall.preload.as_ref().map_or(String::new(), |library| format!(" of {library}"));
        let malloc = match ns(record, overall.malloc_median_ticks)?.quote_cost() {
            Ok(malloc) => format!("malloc{by} takes {}", malloc.time()),
            Err(why) => format!("what malloc{by} takes: {}", why.of_time()),
        };
        let free = ns(record, overall.free_median_ticks).and_then(|free| free.quote_cost().ok());
        let free = free.map(|free| format!(", free {}", words::time(free.value())));
        Some(malloc + &free.unwrap_or_default())
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
        Some(sleeper.accounts.get(account)?.ms_per_s)
    };
    let share = |account: &str| {
        let (told, truth) =
            (told(account)?.quote_count().ok()?, told("precise")?.quote_cost().ok()?);
        Some((told.value(), truth.value(), 100.0 * told.value() / truth.value()))
    };
    let Some((seen, truth, percent)) = share("ticks") else {
        let open = ["ticks", "precise"].into_iter().filter_map(told);
        let why = open.filter_map(|of| of.quote_count().err()).next();
        let why =
            why.map(|why| format!("What the ticks see of a sleeper: {}.", why.of("ms a second")));
        return why.unwrap_or("What the ticks see of a sleeper was not measured.".to_string());
    };
    let [percent, seen, truth] = [percent, seen, truth].map(figure);
    let usage = share("getrusage");
    let usage =
        usage.map(|(.., all)| format!("; getrusage's user + system is {} % of it", figure(all)));
    format!(
        "Ticks see {percent} % of the CPU time of a process that sleeps whenever they come \
         ({seen} of {truth} ms a second){}.",
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
