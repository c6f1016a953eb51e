//! What a run of responses answers, in a sentence or two, and what else matters of it.

use model::case::Policy;
use model::estimate::Estimate;
use model::findings::gaps::{self, Class};
use model::findings::wakeup::{DEFAULT_SLACK_NS, Found, LEAST_SLACK_NS, Load, Wakeup};
use model::response::{LoopCost, Record};
use model::summary::CaseSummary;
use model::trial::Trial;
use model::trial::loops::GETUID;
use model::words;
use probe::idle::LATENCY_DEVICE;
use probe::trial::SYSTEM_CALLS;

use crate::ring::answer::cheapest;
use crate::terminal::{cpu_list, figure, time_words};

/// The link whose switch stands for the others.
const PIPE: &str = "pipe";

/// The first line of a report.
pub(super) fn headline(record: &Record) -> String {
    let costs = costs(record);
    let links = costs.is_none().then(|| cheapest(rings(record))).flatten();
    let wakeup = wakeup(record, costs.is_none());
    // Beside the others it is a line of its own.
    let gaps = record.gaps.first().filter(|_| costs.is_none()).map(|of| lost(record, of));
    let is_normal = costs.is_some() || links.is_some() || wakeup.is_some();
    let clauses = [costs, links.map(|of| of.trim_end_matches('.').to_string()), wakeup, gaps];
    let clauses: Vec<String> = clauses.into_iter().flatten().collect();
    if clauses.is_empty() {
        return "Nothing was measured that tells a response.".to_string();
    }
    let policy = is_normal.then(|| format!("{}, ", scheduler(Policy::Other)));
    let cpus = cpu_list(&record.header.plan.cpus());
    let words = clauses.join("; ");
    // What begins with the name of a function keeps it as it is.
    let words = words.strip_prefix("a ").map_or(words.clone(), |rest| format!("A {rest}"));
    format!("{words}; {}CPU {cpus}.", policy.unwrap_or_default())
}

/// What matters beside the headline, most first.
pub(super) fn findings(record: &Record) -> Vec<String> {
    let has_costs = costs(record).is_some();
    let links = cheapest(rings(record)).filter(|_| has_costs);
    let links = links.map(|words| format!("links: {}", lowercase(&words)));
    let gaps = record.gaps.iter().filter(|_| has_costs);
    let gaps = gaps.map(|of| format!("interrupts: {}", lost(record, of)));
    let missing = no_idle(record);
    let of_sleepers = [missing, slack(record), idle(record)].into_iter().flatten();
    of_sleepers.chain(links).chain(gaps).collect()
}

/// SCHED_OTHER, as kernel engineers know it.
pub(super) fn scheduler(policy: Policy) -> String {
    format!("SCHED_{}", policy.name().to_uppercase())
}

fn lowercase(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// The summaries of all rings.
fn rings(record: &Record) -> impl Iterator<Item = &CaseSummary> + Clone {
    record.cases.iter().filter_map(|of| of.ring())
}

/// `122 ns`, or that it is not sure.
fn short(estimate: &Estimate) -> String {
    let about = if estimate.resolved { "" } else { "about " };
    format!("{about}{}", words::time(estimate.value))
}

/// A system call, a signal, a switch; none where none of them was measured.
fn costs(record: &Record) -> Option<String> {
    let is_call = |of: &&LoopCost| SYSTEM_CALLS.iter().any(|call| call.name == of.call);
    let known = |of: &LoopCost| Some((of.call.clone(), of.ns?));
    let calls: Vec<(String, Estimate)> =
        record.loops.iter().filter(is_call).filter_map(known).collect();
    let call = calls.iter().find(|(call, _)| call == GETUID).or(calls.first());
    let signal = record.signals.as_ref().and_then(|of| of.signal_ns);
    let pipe = rings(record).find(|of| of.case.members > 1 && of.case.link == PIPE);
    let switch = pipe.and_then(|of| of.ns_per_switch_above_solo).filter(|_| call.is_some());
    let others = [("a signal to oneself", signal), ("a switch by pipe", switch)]
        .map(|(name, ns)| (name, ns.filter(|ns| ns.value > 0.0)));
    let mut parts: Vec<String> = Vec::new();
    parts.extend(call.map(|(call, ns)| format!("{call} takes {}", time_words(ns))));
    for (name, ns) in others.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
        let takes = if parts.is_empty() { " takes" } else { "" };
        parts.push(format!("{name}{takes} {}", short(&ns)));
    }
    let slowest = calls.iter().max_by(|one, other| one.1.value.total_cmp(&other.1.value));
    if let ([only], Some((slowest, ns)), true) = (&parts[..], slowest, calls.len() > 1) {
        let others = format!("{only}; the slowest of {} calls is {slowest}", calls.len());
        return Some(format!("{others} with {}", short(ns)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The sleeper of a case.
pub(crate) fn sleeper(record: &Record, case: usize) -> Option<(&Wakeup, Policy)> {
    let case = record.header.plan.trial(case)?;
    match &case.trial {
        Trial::Wakeup(wakeup) => Some((wakeup, case.policy)),
        _ => None,
    }
}

/// A sleeper in a few words: `idle CPU, other, slack 50 us`. Of what is not usual only.
pub(crate) fn sleeper_words(record: &Record, case: usize) -> String {
    let Some((wakeup, policy)) = sleeper(record, case) else { return String::new() };
    let slack = (wakeup.timer_slack_ns != LEAST_SLACK_NS)
        .then(|| format!(", slack {}", wakeup.slack_words()));
    let awake = wakeup.cpu_latency_us.map(|_| ", awake".to_string());
    let others: String = [slack, awake].into_iter().flatten().collect();
    format!("{} CPU, {policy}{others}", wakeup.load)
}

/// What became of the sleeper under SCHED_OTHER on an idle CPU that had so much slack.
fn found(record: &Record, slack_ns: u64, cpu_latency_us: Option<u32>) -> Option<&Found> {
    let is_it = |of: &&Found| {
        sleeper(record, of.case).is_some_and(|(wakeup, policy)| {
            let setting = (wakeup.timer_slack_ns, wakeup.cpu_latency_us, wakeup.load);
            setting == (slack_ns, cpu_latency_us, Load::Idle) && policy == Policy::Other
        })
    };
    record.wakeups.iter().find(is_it)
}

/// How late a timer wakes a thread as applications have it; in older runs with the least slack. With `all` also what
/// it would be with less slack, and without idle states.
fn wakeup(record: &Record, all: bool) -> Option<String> {
    let by_default = found(record, DEFAULT_SLACK_NS, None);
    let plain = found(record, LEAST_SLACK_NS, None);
    let first = by_default.or(plain)?;
    let median = first.median_ns?;
    let late = if all && median.resolved { time_words(&median) } else { short(&median) };
    let tail = first.p99_ns.map(|tail| format!(", {} at 99 %", words::time(tail.value_ns as f64)));
    let slack = match by_default {
        Some(_) => ", with the default timer slack",
        None => ", with timer slack 1 ns",
    };
    let median = |of: &Found| Some(short(&of.median_ns?));
    let less = by_default.and(plain).and_then(median).map(|late| format!("; {late} with 1 ns"));
    let awake = found(record, LEAST_SLACK_NS, Some(0)).filter(|_| all).and_then(median);
    let awake = awake.map(|late| format!(", {late} without idle states"));
    Some(format!(
        "a timer on an idle CPU wakes a thread {late} late (median){}{slack}{}{}",
        tail.unwrap_or_default(),
        less.unwrap_or_default(),
        awake.unwrap_or_default()
    ))
}

/// What the slack of applications adds.
fn slack(record: &Record) -> Option<String> {
    let found = found(record, DEFAULT_SLACK_NS, None)?;
    let (above, (wakeup, _)) = (found.above_plain_ns?, sleeper(record, found.case)?);
    let slack = wakeup.slack_words();
    Some(format!(
        "timer slack: the default of {slack} adds {} to a wake-up under {}; prctl(PR_SET_TIMERSLACK) lowers it",
        time_words(&above),
        scheduler(Policy::Other)
    ))
}

/// That the device could not be opened, and who may; nothing of runs that did not ask for it.
fn no_idle(record: &Record) -> Option<String> {
    found(record, DEFAULT_SLACK_NS, None)?;
    let is_missing = found(record, LEAST_SLACK_NS, Some(0)).is_none();
    is_missing.then(|| {
        format!(
            "idle states: what leaving one adds is not measured: it needs access to {LATENCY_DEVICE} (root)"
        )
    })
}

/// What leaving an idle state takes.
fn idle(record: &Record) -> Option<String> {
    let awake = found(record, LEAST_SLACK_NS, Some(0))?;
    let less = awake.above_plain_ns?;
    // As a cost: the awake CPU has less.
    let cost = Estimate {
        value: -less.value,
        low: less.high.map(|high| -high),
        high: less.low.map(|low| -low),
        ..less
    };
    Some(format!(
        "idle states: leaving one takes {} of a wake-up; {LATENCY_DEVICE} held at 0 keeps the CPU awake",
        time_words(&cost)
    ))
}

/// What a class of gaps is called in a sentence.
fn taker(class: Class) -> &'static str {
    match class {
        Class::Interrupt => "interrupts",
        Class::SwitchedOut => "other tasks",
        Class::Uncharged => "uncharged",
    }
}

/// What a busy thread loses, and to whom.
fn lost(record: &Record, found: &gaps::Found) -> String {
    let policy = record.header.plan.trial(found.case).map_or(Policy::Other, |case| case.policy);
    let share = |of: Option<Estimate>| figure(of.map(|of| of.value));
    let to = |of: &gaps::ClassFound| {
        Some(format!("{} {} %", taker(of.class), share(Some(of.lost_percent?))))
    };
    let classes: Vec<String> = found.classes.iter().filter_map(to).collect();
    let classes =
        if classes.is_empty() { String::new() } else { format!(": {}", classes.join(", ")) };
    let all = share(found.lost_percent);
    format!("a busy thread ({}) loses {all} % of its time{classes}", scheduler(policy))
}
