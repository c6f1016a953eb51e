//! The answer of a run of responses, in a sentence or two, and what else matters of it.

use analysis::estimate::Estimate;
use analysis::findings::gaps;
use analysis::findings::wakeup::WakeupFindings;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::{QuotedFigure, difference, marked_cost};
use analysis::record::ResponseRecord;
use analysis::response::SignalCosts;
use analysis::summary::CaseSummary;
use probe::idle::LATENCY_DEVICE;
use probe::trial::calls::SYSTEM_CALLS;
use rundata::ring::Policy;
use rundata::run::unfinished;
use rundata::trial::Trial;
use rundata::trial::gaps::GapClass;
use rundata::trial::loops::GETUID;
use rundata::trial::wakeup::{DEFAULT_SLACK_NS, MIN_SLACK_NS, Wakeup, WakeupLoad};
use rundata::words;

use super::load;
use crate::experiments::ring::answer::cheapest;
use crate::report::terminal::{answer_value, answer_words, count, cpu_list};

/// The link whose switch stands for the others.
const PIPE: &str = "pipe";

/// Returns the first line of a report.
pub(crate) fn headline(record: &ResponseRecord) -> MarkedText {
    let mut clauses = Vec::new();
    let costs = costs_clause(record);
    let has_costs = costs.is_some();
    clauses.extend(costs);
    // Beside costs, links and gaps are lines of their own.
    if !has_costs {
        clauses.extend(cheapest(rings(record), is_whole(record)).map(Clause::from_words));
    }
    let is_realtime = measured_policy(record) != Policy::Other;
    if let Some(mut clause) = wakeup_clause(record, !has_costs) {
        // The sleeper is of the normal policy, whatever the others had.
        if !clauses.is_empty() && is_realtime {
            clause.words = clause.words + &format!(" ({})", scheduler(Policy::Other));
        }
        clauses.push(clause);
    }
    clauses.extend(load::report::headline_words(record).map(Clause::from_words));
    let has_policy = !clauses.is_empty();
    if !has_costs {
        let watched = record.found.gaps.first();
        clauses.extend(watched.map(|found| Clause::from_words(lost_in_words(record, found))));
    }
    let Some(first) = clauses.first() else {
        return "Nothing was measured that a response time consists of.".into();
    };
    let policy = measured_policy(record);
    let policy = if !has_policy {
        String::new()
    } else if policy.is_realtime() {
        format!("under {policy}, ")
    } else {
        format!("{}, ", scheduler(policy))
    };
    let cpus = cpu_list(&record.header.plan.cpus());
    let starts_with_name = first.starts_with_name;
    let words = MarkedText::join(clauses.into_iter().map(|clause| clause.words), "; ");
    let words = if starts_with_name { words } else { words.capitalized() };
    marked![words, format!("; {policy}CPU {cpus}.")]
}

/// Returns the numbers of the cases that the first line answers with, in its order: a system call, a
/// timer's wake-up, wake-ups under load.
pub(crate) fn answer_cases(record: &ResponseRecord) -> Vec<usize> {
    let mut cases = Vec::new();
    let mut loops = record.found.loops.iter();
    let getuid = loops.find(|cost| cost.call == GETUID);
    cases.extend(getuid.map(|cost| cost.case));
    cases.extend(usual_sleeper(record).map(|found| found.case));
    cases.extend(load::report::answer_case(record));
    cases
}

/// A part of the first line.
struct Clause {
    words: MarkedText,
    /// Tells whether it begins with the name of a function, which is not capitalized.
    starts_with_name: bool,
}

impl Clause {
    fn from_words(words: impl Into<MarkedText>) -> Self {
        Self { words: words.into(), starts_with_name: false }
    }
}

/// Returns what matters beside the headline, most first.
pub(super) fn findings(record: &ResponseRecord) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(no_idle(record));
    lines.extend(slack(record));
    lines.extend(idle(record));
    lines.extend(load::report::findings(record));
    // Without costs both are in the headline.
    if costs_clause(record).is_none() {
        return lines;
    }
    if let Some(words) = cheapest(rings(record), is_whole(record)) {
        lines.push(format!("links: {}.", words.uncapitalized()));
    }
    for found in &record.found.gaps {
        lines.push(format!("interrupts: {}", lost_in_words(record, found)));
    }
    lines
}

/// Returns the policy of system calls, signals and links; the normal one where none was measured.
pub(crate) fn measured_policy(record: &ResponseRecord) -> Policy {
    let plan = &record.header.plan;
    if let Some((_, ring)) = plan.rings().next() {
        return ring.policy;
    }
    for (_, case) in plan.trials() {
        if matches!(case.trial, Trial::Loop { .. } | Trial::TwoProcesses) {
            return case.policy;
        }
    }
    Policy::Other
}

/// Returns a policy as kernel engineers know it: `SCHED_OTHER`.
pub(super) fn scheduler(policy: Policy) -> String {
    format!("SCHED_{}", policy.name().to_uppercase())
}

/// Returns the summaries of all rings.
fn rings(record: &ResponseRecord) -> impl Iterator<Item = &CaseSummary> + Clone {
    record.cases.iter().filter_map(|summary| summary.ring())
}

/// Returns whether the run ended.
fn is_whole(record: &ResponseRecord) -> bool {
    unfinished(record.end.as_ref()).is_none()
}

/// Returns the measured system calls with their costs.
fn system_calls(record: &ResponseRecord) -> Vec<(String, Estimate)> {
    let mut calls = Vec::new();
    for cost in &record.found.loops {
        if SYSTEM_CALLS.iter().any(|call| call.name == cost.call) {
            let Some(ns) = cost.ns else { continue };
            calls.push((cost.call.clone(), ns));
        }
    }
    calls
}

/// Returns a clause on a system call, a signal and a switch; `None` where none of them was
/// measured.
fn costs_clause(record: &ResponseRecord) -> Option<Clause> {
    let calls = system_calls(record);
    let mut costs = Vec::new();
    let getuid = calls.iter().find(|(call, _)| call == GETUID);
    if let Some((call, ns)) = getuid.or(calls.first()) {
        costs.push((call.as_str(), *ns, true));
    }
    if let Some(SignalCosts { signal_ns: Some(ns), .. }) = &record.found.signals {
        costs.push(("a signal to oneself", *ns, false));
    }
    let pipe = rings(record).find(|ring| ring.case.members > 1 && ring.case.link == PIPE);
    let switch = pipe.and_then(|ring| ring.ns_per_switch_above_solo);
    if let Some(ns) = switch.filter(|_| !calls.is_empty()) {
        costs.push(("a switch by pipe", ns, false));
    }
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (name, ns, starts_with_name) in costs {
        match ns.answer_cost() {
            Ok(best) => {
                let words = if known.is_empty() {
                    marked![format!("{name} takes "), best.marked_time()]
                } else {
                    format!("{name} {}", best.brief_time()).into()
                };
                known.push(Clause { words, starts_with_name });
            }
            Err(why) => {
                let words = format!("{name}: {}", why.with_time_unit()).into();
                unknown.push(Clause { words, starts_with_name });
            }
        }
    }
    let slowest =
        if known.len() == 1 && is_whole(record) { slowest_in_words(&calls) } else { None };
    let (clauses, separator) = if known.is_empty() { (unknown, "; ") } else { (known, ", ") };
    let starts_with_name = clauses.first()?.starts_with_name;
    let mut words = MarkedText::join(clauses.into_iter().map(|clause| clause.words), separator);
    if let Some(slowest) = slowest {
        words.push(format!("; {slowest}"));
    }
    Some(Clause { words, starts_with_name })
}

/// Returns the slowest of several calls, of those that may be quoted.
fn slowest_in_words(calls: &[(String, Estimate)]) -> Option<String> {
    let mut known: Vec<(&str, QuotedFigure)> = Vec::new();
    for (call, ns) in calls {
        if let Ok(quoted) = ns.quote_cost() {
            known.push((call, quoted));
        }
    }
    let slowest = known.iter().max_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    let (slowest, ns) = slowest?;
    let count = known.len();
    if count == 1 {
        return None;
    }
    Some(format!("the slowest of {count} calls is {slowest} with {}", words::time(ns.value())))
}

/// Returns the sleeper of a case.
pub(crate) fn sleeper(record: &ResponseRecord, case: usize) -> Option<(&Wakeup, Policy)> {
    let case = record.header.plan.trial(case)?;
    match &case.trial {
        Trial::Wakeup(wakeup) => Some((wakeup, case.policy)),
        _ => None,
    }
}

/// Returns a sleeper in a few words: `idle CPU, other, slack 50 us`. What is usual is left out.
pub(crate) fn sleeper_words(record: &ResponseRecord, case: usize) -> String {
    let Some((wakeup, policy)) = sleeper(record, case) else { return String::new() };
    format!("{} CPU, {policy}{}", wakeup.load, unusual_setting(wakeup))
}

/// Like [`sleeper_words`], for a table; without the policy that everything else has, where that is
/// the normal one.
pub(super) fn brief_sleeper_words(record: &ResponseRecord, case: usize) -> String {
    let Some((wakeup, policy)) = sleeper(record, case) else { return String::new() };
    let is_told = policy != Policy::Other || measured_policy(record) != Policy::Other;
    let policy = if is_told { format!(", {policy}") } else { String::new() };
    format!("{}{policy}{}", wakeup.load, unusual_setting(wakeup))
}

/// Returns the setting of a sleeper where it is not the usual one: `, slack 50 us, awake`.
fn unusual_setting(wakeup: &Wakeup) -> String {
    let mut words = String::new();
    if wakeup.timer_slack_ns != MIN_SLACK_NS {
        words += &format!(", slack {}", wakeup.slack_words());
    }
    if wakeup.cpu_latency_us.is_some() {
        words += ", awake";
    }
    words
}

/// Returns the findings on the sleeper under SCHED_OTHER on an idle CPU that had so much slack.
fn found(
    record: &ResponseRecord,
    slack_ns: u64,
    cpu_latency_us: Option<u32>,
) -> Option<&WakeupFindings> {
    for found in &record.found.wakeups {
        let Some((wakeup, policy)) = sleeper(record, found.case) else { continue };
        let setting = (wakeup.timer_slack_ns, wakeup.cpu_latency_us, wakeup.load);
        if setting == (slack_ns, cpu_latency_us, WakeupLoad::Idle) && policy == Policy::Other {
            return Some(found);
        }
    }
    None
}

/// Returns how late a sleeper is woken, in a few words; `None` where that is not known.
fn median_in_words(found: &WakeupFindings) -> Option<String> {
    Some(found.median_ns?.answer_cost().ok()?.brief_time())
}

/// Returns the findings on the sleeper as applications have it; in older runs with the least slack.
fn usual_sleeper(record: &ResponseRecord) -> Option<&WakeupFindings> {
    let by_default = found(record, DEFAULT_SLACK_NS, None);
    by_default.or_else(|| found(record, MIN_SLACK_NS, None))
}

/// Returns a clause on how late a timer wakes a thread as applications have it; in older runs with
/// the least slack. With `has_details` also what it would be with less slack, and without idle
/// states.
fn wakeup_clause(record: &ResponseRecord, has_details: bool) -> Option<Clause> {
    let by_default = found(record, DEFAULT_SLACK_NS, None);
    let plain = found(record, MIN_SLACK_NS, None);
    let first = by_default.or(plain)?;
    let median = first.median_ns?;
    let what = "a timer on an idle CPU wakes a thread";
    let Ok(late) = median.answer_cost() else {
        let what = format!("how late {what} (median): ");
        return Some(Clause::from_words(marked![what, marked_cost(&median)]));
    };
    let late = if has_details { late.marked_time() } else { MarkedText::figure(late.brief_time()) };
    let mut behind = " late (median)".to_string();
    if let Some(tail) = first.p99_ns {
        behind += &format!(", {} at 99 %", words::time(tail.value_ns as f64));
    }
    behind += if by_default.is_some() {
        ", with the default timer slack"
    } else {
        ", with timer slack 1 ns"
    };
    if let Some(late) = by_default.and(plain).and_then(median_in_words) {
        behind += &format!("; {late} with 1 ns");
    }
    let awake = if has_details { found(record, MIN_SLACK_NS, Some(0)) } else { None };
    if let Some(late) = awake.and_then(median_in_words) {
        behind += &format!(", {late} without idle states");
    }
    Some(Clause::from_words(marked![format!("{what} "), late, behind]))
}

/// Returns what the slack of applications adds.
fn slack(record: &ResponseRecord) -> Option<String> {
    let found = found(record, DEFAULT_SLACK_NS, None)?;
    let (above, (wakeup, _)) = (found.above_plain_ns?, sleeper(record, found.case)?);
    let slack = format!("timer slack: the default of {}", wakeup.slack_words());
    let under = format!("a wake-up under {}", scheduler(Policy::Other));
    Some(match above.answer() {
        Ok(above) => {
            format!("{slack} adds {} to {under}; prctl(PR_SET_TIMERSLACK) lowers it", above.time())
        }
        Err(_) => format!("{slack}, what it adds to {under}: {}", difference(&above)),
    })
}

/// Returns that the device could not be opened, and who may; `None` of runs that did not ask for it.
fn no_idle(record: &ResponseRecord) -> Option<String> {
    found(record, DEFAULT_SLACK_NS, None)?;
    let is_missing = found(record, MIN_SLACK_NS, Some(0)).is_none();
    if !is_missing {
        return None;
    }
    Some(format!(
        "idle states: what leaving one adds is not measured: it needs access to {LATENCY_DEVICE} \
         (root)"
    ))
}

/// Returns what leaving an idle state takes.
fn idle(record: &ResponseRecord) -> Option<String> {
    let awake = found(record, MIN_SLACK_NS, Some(0))?;
    let less = awake.above_plain_ns?;
    // As a cost: the awake CPU has less.
    let cost = Estimate {
        value: -less.value,
        low: less.high.map(|high| -high),
        high: less.low.map(|low| -low),
        ..less
    };
    let awake = format!("{LATENCY_DEVICE} held at 0 keeps the CPU awake");
    Some(match cost.answer_cost() {
        Ok(cost) => {
            format!("idle states: leaving one takes {} of the wake-up; {awake}", cost.time())
        }
        Err(why) => {
            format!(
                "idle states: what leaving one adds to a wake-up: {}; {awake}",
                why.with_time_unit()
            )
        }
    })
}

/// Returns what a class of gaps is called in a sentence.
fn taker(class: GapClass) -> &'static str {
    match class {
        GapClass::Interrupt => "interrupts",
        GapClass::SwitchedOut => "other tasks",
        GapClass::Uncharged => "uncharged",
    }
}

/// Returns what a busy thread loses, and to whom.
fn lost_in_words(record: &ResponseRecord, found: &gaps::GapFindings) -> MarkedText {
    let policy = record.header.plan.trial(found.case).map_or(Policy::Other, |case| case.policy);
    let mut classes = Vec::new();
    for class in &found.classes {
        let lost = count(class.lost_percent);
        if matches!(lost, Some(Ok(_))) {
            classes.push(format!("{} {} %", taker(class.class), answer_value(lost)));
        }
    }
    let classes =
        if classes.is_empty() { String::new() } else { format!(": {}", classes.join(", ")) };
    let lost = count(found.lost_percent);
    let thread = format!("a busy thread ({})", scheduler(policy));
    match lost {
        Some(Ok(_)) => {
            let percent = MarkedText::figure(format!("{} %", answer_value(lost)));
            marked![format!("{thread} loses "), percent, format!(" of its time{classes}")]
        }
        _ => format!("what {thread} loses of its time: {}{classes}", answer_words(lost)).into(),
    }
}
