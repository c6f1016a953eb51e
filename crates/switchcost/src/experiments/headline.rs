//! What a run says, in a sentence or two.

use model::cost::Curve;
use model::estimate::Estimate;
use model::record::{CaseSummary, Record, Series};
use model::trial::{self, Findings, loops, wakeup};
use model::{response, words};

/// More series than this are told by their cheapest and their dearest.
const MOST_SERIES: usize = 2;

/// Of rings: what a switch costs in the smallest and the largest, and the law between.
pub(crate) fn of_rings(record: &Record) -> Vec<String> {
    match &record.cost {
        Some(cost) => of_working_sets(cost),
        None if record.scaling.len() > MOST_SERIES => {
            record.scaling.iter().filter_map(|of| first(record, of)).range()
        }
        None => record.scaling.iter().flat_map(|series| of_series(record, series)).collect(),
    }
}

/// Of responses: how late a sleeper is woken, what a signal and a system call cost.
pub(crate) fn of_response(record: &response::Record) -> Vec<String> {
    let late = |found: &wakeup::Found| {
        let [half, most] = [found.late_ns.p50, found.late_ns.p99].map(|ns| words::time(ns as f64));
        format!(
            "Half of the sleepers on the {} CPU wake within {half} of their time, 99 % within {most}.",
            found.load
        )
    };
    let call = |cost: &response::LoopCost| {
        Some(format!("{} takes {}.", cost.call, estimate(cost.ns.as_ref()?)))
    };
    let calls = [loops::GETUID, loops::SIGNAL_SELF]
        .iter()
        .filter_map(|name| record.loops.iter().find(|cost| cost.call == *name).and_then(call));
    record.wakeups.first().map(late).into_iter().chain(calls).collect()
}

/// Of trials: what each experiment is about.
pub(crate) fn of_trials(record: &trial::Record) -> Vec<String> {
    let ns = |ticks: Option<Estimate>| ticks?.scaled(record.ns_per_tick?);
    match &record.findings {
        Findings::Overhead(found) => {
            let call = |of: &trial::overhead::CallCost| {
                Some((format!("{} call", of.call), ns(of.back_to_back_ticks)?))
            };
            found.calls.iter().filter_map(call).range()
        }
        Findings::Malloc(found) => {
            let of_library = |of: &trial::malloc::Overall| {
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

/// Costs by what they are of, in a sentence.
trait Costs {
    fn range(self) -> Vec<String>;
}

impl<T: Iterator<Item = (String, Estimate)>> Costs for T {
    fn range(self) -> Vec<String> {
        let mut known: Vec<(String, Estimate)> = self.collect();
        known.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        let told =
            |(name, cost): &(String, Estimate)| format!("{} ({name})", words::time(cost.value));
        match (known.first(), known.last()) {
            (Some(least), Some(most)) if known.len() > 1 => {
                vec![format!("From {} to {}.", told(least), told(most))]
            }
            (Some(only), _) => vec![format!("{}.", told(only))],
            _ => Vec::new(),
        }
    }
}

/// The smallest ring of a series, by its link.
fn first(record: &Record, series: &Series) -> Option<(String, Estimate)> {
    let of = record.cases.get(*series.cases.first()?)?;
    let state = of.case.state.map_or(String::new(), |state| format!(", registers {state}"));
    let placement = of.case.placement.relation().map_or(String::new(), |of| format!(", {of}"));
    let name =
        format!("a switch in a ring of {} by {}{placement}{state}", of.case.members, of.case.link);
    Some((name, of.ns_per_switch_above_solo?))
}

/// A figure with its interval: `1.9 us (1.8 to 2 us)`.
pub(crate) fn estimate(of: &Estimate) -> String {
    let value = words::time(of.value);
    match of.interval() {
        Some(i) if of.resolved => {
            format!("{value} ({} to {})", words::time(i.low), words::time(i.high))
        }
        _ => format!("{value} (not resolved)"),
    }
}

fn of_series(record: &Record, series: &Series) -> Vec<String> {
    let summaries = || series.cases.iter().filter_map(|case| record.cases.get(*case));
    let cost = |of: &CaseSummary| {
        let cost = estimate(of.ns_per_switch_above_solo.as_ref()?);
        Some((of.case.members, of.case.link.clone(), cost))
    };
    let mut known = summaries().filter_map(cost);
    let Some((members, link, first)) = known.next() else { return Vec::new() };
    let start = format!("A switch costs {first} in a ring of {members} by {link}");
    match known.next_back() {
        None => vec![format!("{start}.")],
        Some((members, _, last)) => {
            vec![
                format!("{start}, {last} in one of {members}."),
                format!("Law: {}.", series.in_words),
            ]
        }
    }
}

fn of_working_sets(cost: &model::cost::Cost) -> Vec<String> {
    let direct = cost.direct.iter().filter_map(|direct| {
        let cost = estimate(direct.cost_ns.as_ref()?);
        Some(format!("Without work a switch of {} members costs {cost}.", direct.members))
    });
    let dearest = |curve: &Curve| {
        let known =
            curve.points.iter().filter_map(|point| Some((point.array_bytes, point.total_ns?)));
        known.max_by(|(_, one), (_, other)| one.value.total_cmp(&other.value))
    };
    let curve = |curve: &Curve| {
        let (bytes, cost) = dearest(curve)?;
        let (op, bytes) = (curve.work.op, words::bytes(bytes));
        Some(format!(
            "With {bytes} of working set each ({op}), {}: {}.",
            estimate(&cost),
            curve.in_words
        ))
    };
    // The dearest of all curves stands for them; the charts show the others.
    let most = cost.curves.iter().max_by(|one, other| {
        let value = |of: &Curve| dearest(of).map_or(f64::NEG_INFINITY, |(_, cost)| cost.value);
        value(one).total_cmp(&value(other))
    });
    direct.chain(most.and_then(curve)).collect()
}
