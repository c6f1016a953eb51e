//! What a run says, in a sentence or two.

use model::cost::{Cost, Curve, Direct};
use model::estimate::Estimate;
use model::findings::{self, Findings, wakeup};
use model::record::{CaseSummary, Record, Series};
use model::trial::loops;
use model::{response, words};

use crate::response::delays::policy;

/// More series than this are told by their cheapest and their most expensive.
const MOST_SERIES: usize = 2;

/// Calls that stand for the others: what a program pays to know how long it has run.
const CLOCKS: [&str; 4] = ["time-stamp", "threadclock-now", "thread-cputime", "getrusage"];

/// Calls and signals of the memorandum.
const LOOPS: [&str; 2] = [loops::GETUID, loops::SIGNAL_SELF];

/// Of rings: what a switch costs in the smallest and the largest, and the law between.
pub(super) fn of_rings(record: &Record) -> Vec<String> {
    match &record.cost {
        Some(cost) => of_working_sets(cost),
        None if record.scaling.len() > MOST_SERIES => {
            range(record.scaling.iter().filter_map(|of| first(record, of)))
        }
        None => record.scaling.iter().flat_map(|series| of_series(record, series)).collect(),
    }
}

/// Of responses: what a signal and a system call cost, how late a sleeper is woken.
pub(super) fn of_response(record: &response::Record) -> Vec<String> {
    let loops = record.loops.iter().filter(|of| LOOPS.contains(&&*of.call));
    let loops = loops.filter_map(|of| Some(format!("{} {}", of.call, estimate(of.ns.as_ref()?))));
    let late = |found: &wakeup::Found| {
        let median = estimate(found.median_ns.as_ref()?);
        let far = found.p99_ns.map(|tail| words::time(tail.value_ns as f64));
        let far = far.map_or(String::new(), |far| format!(", 99 % within {far}"));
        let (load, policy) = (found.load, policy(record, found.case));
        Some(format!("woken on a CPU that is {load}, policy {policy}: {median} late{far}"))
    };
    let loops = Some(loops.collect::<Vec<_>>().join(", ")).filter(|line| !line.is_empty());
    loops.into_iter().chain(record.wakeups.iter().filter_map(late)).collect()
}

/// Of trials: what each experiment is about.
pub(super) fn of_trials(record: &findings::Record) -> Vec<String> {
    let ns = |ticks: Option<Estimate>| ticks?.scaled(record.ns_per_tick?);
    match &record.findings {
        Findings::Overhead(found) => {
            let of = |name: &&str| {
                let call = found.calls.iter().find(|call| call.call == **name)?;
                Some(format!("{name} {}", estimate(&ns(call.back_to_back_ticks)?)))
            };
            let calls: Vec<String> = CLOCKS.iter().filter_map(of).collect();
            Some(calls.join(", ")).filter(|line| !line.is_empty()).into_iter().collect()
        }
        Findings::Malloc(found) => {
            let of_library = |of: &findings::malloc::Overall| {
                let library = of.preload.as_deref().unwrap_or("the C library");
                let malloc = estimate(&ns(of.malloc_median_ticks)?);
                Some(format!(
                    "A malloc by {library} takes {malloc}, the median over sizes of blocks."
                ))
            };
            found.overall.iter().filter_map(of_library).collect()
        }
        Findings::Interference(found) => vec![found.in_words.clone()],
        Findings::Primes(_) | Findings::Sampling(_) => Vec::new(),
    }
}

/// The least and the most of costs by what they are of, in a sentence.
fn range(costs: impl Iterator<Item = (String, Estimate)>) -> Vec<String> {
    let mut known: Vec<(String, Estimate)> = costs.collect();
    known.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    let told = |(name, cost): &(String, Estimate)| format!("{} ({name})", words::time(cost.value));
    match &known[..] {
        [] => Vec::new(),
        [only] => vec![format!("{}.", told(only))],
        [least, .., most] => vec![format!("From {} to {}.", told(least), told(most))],
    }
}

/// The smallest ring of a series, by its link.
fn first(record: &Record, series: &Series) -> Option<(String, Estimate)> {
    let CaseSummary { case, ns_per_switch_above_solo, .. } =
        record.cases.get(*series.cases.first()?)?;
    let state = case.state.map_or(String::new(), |state| format!(", registers {state}"));
    let placement = case.placement.relation().map_or(String::new(), |of| format!(", {of}"));
    let ring = format!("a switch in a ring of {} by {}{placement}{state}", case.members, case.link);
    Some((ring, (*ns_per_switch_above_solo)?))
}

/// A figure with its interval: `1.9 us (1.8 to 2 us)`.
fn estimate(of: &Estimate) -> String {
    let value = words::time(of.value);
    match of.interval() {
        Some(i) if of.resolved => {
            format!("{value} ({} to {})", words::time(i.low), words::time(i.high))
        }
        _ => format!("{value} (not resolved)"),
    }
}

fn of_series(record: &Record, series: &Series) -> Vec<String> {
    let summaries = series.cases.iter().filter_map(|case| record.cases.get(*case));
    let cost = |of: &CaseSummary| {
        let cost = estimate(of.ns_per_switch_above_solo.as_ref()?);
        let (members, link) = (of.case.members, &of.case.link);
        let start = format!("A switch costs {cost} in a ring of {members} by {link}");
        Some((start, format!("{cost} in one of {members}")))
    };
    let known: Vec<_> = summaries.filter_map(cost).collect();
    match &known[..] {
        [] => Vec::new(),
        [(only, _)] => vec![format!("{only}.")],
        [(first, _), .., (_, last)] => {
            vec![format!("{first}, {last}."), format!("Law: {}.", series.in_words)]
        }
    }
}

fn of_working_sets(cost: &Cost) -> Vec<String> {
    let direct = |of: &Direct| {
        let cost = estimate(of.cost_ns.as_ref()?);
        Some(format!("Without work a switch of {} members costs {cost}.", of.members))
    };
    // The most expensive point of all curves stands for them; the charts show the others.
    let points = |curve| {
        let curve: &Curve = curve;
        let costs = curve.points.iter().filter_map(|of| Some((of.array_bytes, of.total_ns?)));
        costs.map(move |(bytes, cost)| (curve, bytes, cost))
    };
    let most = cost.curves.iter().flat_map(points);
    let most = most.max_by(|(.., one), (.., other)| one.value.total_cmp(&other.value));
    let most = most.map(|(curve, bytes, cost)| {
        let (op, bytes, cost) = (curve.work.op, words::bytes(bytes), estimate(&cost));
        format!("With {bytes} of working set each ({op}), {cost}: {}.", curve.in_words)
    });
    cost.direct.iter().filter_map(direct).chain(most).collect()
}
