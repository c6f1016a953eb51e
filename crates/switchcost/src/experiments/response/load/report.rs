//! Sentences, tables and charts of wake-ups under load.

use analysis::estimate::Estimate;
use analysis::findings::load::{LatencyQuantiles, LoadFindings, QuantileRatio};
use analysis::findings::wakeup::TailQuantile;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::record::ResponseRecord;
use charts::Figure;
use rundata::trial::Trial;
use rundata::trial::load::{ArrivalSchedule, WakeLoad};
use rundata::words;

use super::super::figures::{NamedTimes, distributions};
use super::super::us_cell;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{counted, figure};
use crate::report::tiles::Tile;

/// Returns the load of a case.
fn load_of(record: &ResponseRecord, case: usize) -> Option<&WakeLoad> {
    match &record.header.plan.trial(case)?.trial {
        Trial::Load(load) => Some(load),
        _ => None,
    }
}

/// Returns the load of a case in a few words: `80 % load`, with the way to wake where the run has
/// several.
pub(in crate::experiments::response) fn load_words(record: &ResponseRecord, case: usize) -> String {
    let Some(load) = load_of(record, case) else { return String::new() };
    for found in &record.found.loads {
        let other = load_of(record, found.case);
        if other.is_some_and(|other| other.mechanism != load.mechanism) {
            return format!("{}, {}", load.mechanism, load.load_words());
        }
    }
    load.load_words()
}

/// Returns a quantile with its interval: `410 us (380 to 450)`.
fn tail_words(tail: &TailQuantile) -> String {
    let (unit_ns, unit) = words::time_unit(tail.value_ns as f64);
    let [value, low, high] = [tail.value_ns, tail.low_ns, tail.high_ns]
        .map(|ns| words::three_digits(ns as f64 / unit_ns));
    format!("{value} {unit} ({low} to {high})")
}

fn ratio_words(ratio: &QuantileRatio) -> String {
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(words::three_digits);
    format!("{value} times ({low} to {high}) that of the idle machine")
}

/// Returns the load that the first line tells: of those above the idle machine the one whose 99th
/// percentile is farthest above it; else the last.
fn chosen(record: &ResponseRecord) -> Option<&LoadFindings> {
    let mut chosen: Option<(&LoadFindings, f64)> = None;
    for found in &record.found.loads {
        let Some(ratio) = found.p99_above_idle else { continue };
        if chosen.is_none_or(|(_, most)| ratio.value > most) {
            chosen = Some((found, ratio.value));
        }
    }
    match chosen {
        Some((found, _)) => Some(found),
        None => record.found.loads.last(),
    }
}

/// Returns the number of the case that the first line tells; absent where nothing was measured.
pub(in crate::experiments::response) fn answer_case(record: &ResponseRecord) -> Option<usize> {
    Some(chosen(record)?.case)
}

/// Returns the clause of the first line; absent where nothing was measured.
pub(in crate::experiments::response) fn headline_words(
    record: &ResponseRecord,
) -> Option<MarkedText> {
    if let Some(words) = sleep_words(record) {
        return Some(words);
    }
    let found = chosen(record)?;
    let load = load_words(record, found.case);
    let load = match load_of(record, found.case)?.arrivals {
        ArrivalSchedule::Idle => "on the idle machine".to_string(),
        _ => format!("at {load}"),
    };
    if found.is_overloaded {
        let [planned, done] = [found.planned_per_s, found.done_per_s].map(figure);
        let done = MarkedText::figure(format!("{done} of {planned} requests"));
        let who = if found.is_limited_by_messengers() {
            "messengers do not keep up (--messengers N): they send "
        } else {
            "workers do not keep up: they do "
        };
        return Some(marked![format!("{load} {who}"), done, " a second"]);
    }
    let Some(wake) = &found.wake else {
        return Some(format!("{load} no request found its worker asleep").into());
    };
    let what = format!("{load} a woken worker waits ");
    let (Some(p50), Some(p99)) = (&wake.p50_ns, &wake.p99_ns) else {
        let median = words::time(wake.all_ns.p50 as f64);
        let count = counted(wake.all_ns.count as usize, "wake-up");
        return Some(marked![
            what,
            MarkedText::figure(format!("~{median}")),
            format!(" (p50; {count}, too few for intervals)")
        ]);
    };
    let median = MarkedText::figure(words::time(p50.value_ns as f64));
    let tail = MarkedText::figure(tail_words(p99));
    let mut clause = marked![what, median, " at p50 and ", tail, " at p99"];
    match &found.p99_above_idle {
        Some(ratio) if ratio.is_resolved() => clause.push(format!(": {}", ratio_words(ratio))),
        Some(_) => clause.push(", not resolved from the idle machine"),
        None => {}
    }
    Some(clause)
}

/// Returns the clause on a sweep of sleeps: the shortest and the one after which wakes take longest;
/// absent where the run is no such sweep, where one is overloaded or its worker seldom slept, and where
/// the run has several ways to wake.
fn sleep_words(record: &ResponseRecord) -> Option<MarkedText> {
    let mut sleeps: Vec<(u64, TailQuantile)> = Vec::new();
    let mechanism = load_of(record, record.found.loads.first()?.case)?.mechanism;
    for found in &record.found.loads {
        let load = load_of(record, found.case)?;
        let ArrivalSchedule::SleepNs(ns) = load.arrivals else {
            return None;
        };
        if found.is_overloaded || load.mechanism != mechanism || !found.mostly_slept() {
            return None;
        }
        sleeps.push((ns, found.wake.as_ref()?.p50_ns?));
    }
    let (shortest_ns, least) = sleeps.iter().min_by_key(|(ns, _)| *ns)?;
    let (slowest_ns, most) = sleeps.iter().max_by_key(|(_, p50)| p50.value_ns)?;
    let what = "a worker that is woken every ";
    let clause = marked![
        format!("{what}{} waits ", words::time(*shortest_ns as f64)),
        MarkedText::figure(tail_words(least)),
        " (p50)"
    ];
    if slowest_ns == shortest_ns {
        return Some(clause);
    }
    let slowest = words::time(*slowest_ns as f64);
    Some(marked![clause, format!(", every {slowest} {}", tail_words(most))])
}

/// Returns what matters beside the first line.
pub(in crate::experiments::response) fn findings(record: &ResponseRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for found in &record.found.loads {
        if !found.is_overloaded {
            continue;
        }
        lines.push(format!(
            "overload at {}{}: times grow with the duration of the schedule",
            load_words(record, found.case),
            need_words(found)
        ));
    }
    if let Some(found) = chosen(record) {
        if let (Some(p50), Some(p99)) = (&found.request.p50_ns, &found.request.p99_ns) {
            lines.push(format!(
                "requests, from the intended arrival to the end, at {}: {} at p50, {} at p99",
                load_words(record, found.case),
                tail_words(p50),
                tail_words(p99)
            ));
        }
    }
    lines
}

/// Returns what an overload needs: `, where requests need 124 % of the workers' CPUs`; empty for runs
/// of older versions.
fn need_words(found: &LoadFindings) -> String {
    let is_messengers = found.is_limited_by_messengers();
    let need = if is_messengers { found.messengers_need } else { found.workers_need };
    let Some(need) = need else { return String::new() };
    let percent = figure(100.0 * need);
    if is_messengers {
        format!(", where messengers need {percent} % of their time")
    } else {
        format!(", where requests need {percent} % of the workers' CPUs")
    }
}

/// Builds the table of wake-ups under load, a row a load.
pub(in crate::experiments::response) fn table(record: &ResponseRecord) -> Table {
    let mut rows = Vec::new();
    for found in &record.found.loads {
        let (p50_ns, p99_ns) = match &found.wake {
            Some(wake) => (wake.p50_ns, wake.p99_ns),
            None => (None, None),
        };
        let ratio = match found.p99_above_idle {
            Some(ratio) => words::three_digits(ratio.value),
            None => figure(None),
        };
        rows.push(cells![
            load_words(record, found.case),
            tail_us(p50_ns),
            tail_us(p99_ns),
            tail_interval(p99_ns),
            ratio,
            tail_us(found.request.p50_ns),
            tail_us(found.request.p99_ns),
            figure(found.worker_percent),
        ]);
    }
    let columns =
        ["load", "p50 us", "p99 us", "interval", "x idle", "request p50", "request p99", "CPU %"];
    Table::new(columns, rows)
}

fn tail_us(tail: Option<TailQuantile>) -> String {
    match tail {
        Some(tail) => us_cell(Some(tail.value_ns)),
        None => us_cell(None),
    }
}

fn tail_interval(tail: Option<TailQuantile>) -> String {
    match tail {
        Some(tail) => format!("{} to {}", us_cell(Some(tail.low_ns)), us_cell(Some(tail.high_ns))),
        None => String::new(),
    }
}

const LEGEND: &str = "wake: from the messenger's reading of the clock right before the wake to the worker's \
     right after it, of requests for which their worker slept\n\
     request: from the intended arrival to the end of the work, of all requests: the \
     schedule waits for nobody\n\
     times are counted in 64 parts an octave; intervals (95 %) hold for wakes that depend \
     on each other within a round\n\
     -: too few for an interval; x idle: p99 of the wakes over that of the idle machine\n";

/// Returns the section of wake-ups under load; absent where none were measured.
pub(in crate::experiments::response) fn section(record: &ResponseRecord) -> Option<Printout> {
    if record.found.loads.is_empty() {
        return None;
    }
    let mut section = printout!["wake-ups under load\n\n"];
    for found in &record.found.loads {
        section.push(conditions(record, found) + "\n\n");
        section.push(quantile_table(found));
        section.push("\n\n");
    }
    section.push(LEGEND);
    Some(section)
}

/// Builds the table of the quantiles of a load, a row each.
fn quantile_table(found: &LoadFindings) -> Table {
    let wakes = quantile_cells(found.wake.as_ref());
    let requests = quantile_cells(Some(&found.request));
    let mut rows = Vec::new();
    for (name, (wake, request)) in QUANTILE_NAMES.iter().zip(wakes.into_iter().zip(requests)) {
        let ([wake, wake_interval], [request, request_interval]) = (wake, request);
        rows.push(cells![*name, wake, wake_interval, request, request_interval]);
    }
    Table::new(["", "wake us", "interval", "request us", "interval"], rows)
}

/// Names of the rows of a table of quantiles.
const QUANTILE_NAMES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "max", "count"];

/// Returns value and interval of each of [`QUANTILE_NAMES`]; dashes without values.
fn quantile_cells(quantiles: Option<&LatencyQuantiles>) -> Vec<[String; 2]> {
    let Some(quantiles) = quantiles else {
        return vec![[figure(None), String::new()]; QUANTILE_NAMES.len()];
    };
    let tails = [quantiles.p50_ns, quantiles.p90_ns, quantiles.p99_ns, quantiles.p999_ns];
    let mut cells = tails.map(|tail| [tail_us(tail), tail_interval(tail)]).to_vec();
    cells.push([us_cell(Some(quantiles.all_ns.max)), String::new()]);
    cells.push([quantiles.all_ns.count.to_string(), String::new()]);
    cells
}

/// Returns what was counted of a load, and what else ran.
fn conditions(record: &ResponseRecord, found: &LoadFindings) -> String {
    let mut words = vec![
        format!("sent {}, received {}", found.requests_sent, found.requests_received),
        format!("{} of {} a second", figure(found.done_per_s), figure(found.planned_per_s)),
        format!("a request takes {} us", figure(found.demand_ns.map(|ns| ns / 1e3))),
        format!("workers had {} % of their CPUs", figure(found.worker_percent)),
    ];
    if let Some(percent) = found.busy_percent {
        words.push(format!("busy tasks {} %", figure(percent)));
    }
    words.push(format!("messengers {} us late", figure(found.mean_late_ns.map(|ns| ns / 1e3))));
    words.push(format!(
        "{} voluntary and {} involuntary switches a request",
        figure(found.voluntary_per_request),
        figure(found.involuntary_per_request)
    ));
    match found.steal_percent {
        Some(percent) if percent > 0.0 => {
            words.push(format!("stolen {} % of the time", figure(percent)));
        }
        _ => {}
    }
    format!("{}: {}", load_words(record, found.case), words.join("; "))
}

/// Draws how long woken workers and requests wait.
pub(in crate::experiments::response) fn figures(
    record: &ResponseRecord,
    index: usize,
) -> Vec<Figure> {
    let (mut wakes, mut requests) = (Vec::new(), Vec::new());
    for found in &record.found.loads {
        let name = load_words(record, found.case);
        if let Some(wake) = &found.wake {
            wakes.push(named_times(&name, wake));
        }
        requests.push(named_times(&name, &found.request));
    }
    let mut figures = Vec::new();
    if let (false, Some(words)) = (wakes.is_empty(), headline_words(record)) {
        let heading = ("response-load-wake", "How long a woken worker waits");
        let words = format!("{}.", words.capitalized().as_str());
        figures.extend(distributions(heading, words, ("wait", "wake-ups"), wakes, index));
    }
    if !requests.is_empty() {
        let heading = ("response-load-request", "How long requests take");
        let words = "From the intended arrival to the end.".to_string();
        figures.extend(distributions(heading, words, ("time", "requests"), requests, index));
    }
    figures
}

fn named_times<'a>(name: &str, quantiles: &'a LatencyQuantiles) -> NamedTimes<'a> {
    NamedTimes {
        name: name.to_string(),
        is_sure: quantiles.p50_ns.is_some(),
        times: &quantiles.tally,
    }
}

/// Returns a tile of the 99th percentile of each load, that of the first line first.
pub(in crate::experiments::response) fn tiles(record: &ResponseRecord) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let first = chosen(record).map(|found| found.case);
    let mut loads: Vec<&LoadFindings> = record.found.loads.iter().collect();
    loads.sort_by_key(|found| Some(found.case) != first);
    for found in loads {
        let Some(wake) = &found.wake else { continue };
        let rounds = record.trial(found.case).map_or(0, |trial| trial.rounds);
        let p99: Option<Estimate> = wake.p99_ns.and_then(|tail| tail.estimate(rounds));
        let name = format!("wake-up p99, {}", load_words(record, found.case));
        tiles.extend(Tile::cost(name, p99));
    }
    tiles
}
