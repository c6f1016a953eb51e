//! What a run of responses answers, in a sentence or two, and what else matters of it.

use analysis::estimate::Estimate;
use analysis::findings::gaps;
use analysis::findings::wakeup::WakeupFindings;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::{QuotedFigure, difference, marked_cost};
use analysis::record::ResponseRecord;
use analysis::response::LoopCost;
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

use crate::experiments::ring::answer::cheapest;
use crate::report::terminal::{count, cpu_list, told_value, told_words};

/// The link whose switch stands for the others.
const PIPE: &str = "pipe";

/// The first line of a report.
pub(crate) fn headline(record: &ResponseRecord) -> MarkedText {
    let costs = costs(record);
    let links = cheapest(rings(record), is_whole(record)).filter(|_| costs.is_none());
    let has_others = costs.is_some() || links.is_some();
    let wakeup = wakeup(record, costs.is_none()).map(|clause| {
        // Of the normal policy, whatever the others had.
        let is_apart = has_others && measured_policy(record) != Policy::Other;
        let policy = format!(" ({})", scheduler(Policy::Other));
        if is_apart { Clause { words: clause.words + &policy, ..clause } } else { clause }
    });
    // Beside the others it is a line of its own.
    let gaps = record.found.gaps.first().filter(|_| costs.is_none());
    let gaps = gaps.map(|of| Clause::from_words(lost(record, of)));
    let is_normal = costs.is_some() || links.is_some() || wakeup.is_some();
    let clauses = [costs, links.map(Clause::from_words), wakeup, gaps];
    let clauses: Vec<Clause> = clauses.into_iter().flatten().collect();
    let Some(first) = clauses.first() else {
        return "Nothing was measured that a response time consists of.".into();
    };
    let policy = measured_policy(record);
    let policy = is_normal.then(|| match policy.is_realtime() {
        true => format!("under {policy}, "),
        false => format!("{}, ", scheduler(policy)),
    });
    let cpus = cpu_list(&record.header.plan.cpus());
    let starts_with_name = first.starts_with_name;
    let words = MarkedText::join(clauses.into_iter().map(|clause| clause.words), "; ");
    let words = if starts_with_name { words } else { words.capitalized() };
    marked![words, format!("; {}CPU {cpus}.", policy.unwrap_or_default())]
}

/// A part of the first line.
struct Clause {
    words: MarkedText,
    /// Whether it begins with the name of a function, which stays as it is in front.
    starts_with_name: bool,
}

impl Clause {
    fn from_words(words: impl Into<MarkedText>) -> Self {
        Self { words: words.into(), starts_with_name: false }
    }
}

/// What matters beside the headline, most first.
pub(super) fn findings(record: &ResponseRecord) -> Vec<String> {
    let has_costs = costs(record).is_some();
    let links = cheapest(rings(record), is_whole(record)).filter(|_| has_costs);
    let links = links.map(|words| format!("links: {}.", words.uncapitalized()));
    let gaps = record.found.gaps.iter().filter(|_| has_costs);
    let gaps = gaps.map(|of| format!("interrupts: {}", lost(record, of)));
    let missing = no_idle(record);
    let of_sleepers = [missing, slack(record), idle(record)].into_iter().flatten();
    of_sleepers.chain(links).chain(gaps).collect()
}

/// Returns the policy of system calls, signals and links; the normal one where none was measured.
pub(crate) fn measured_policy(record: &ResponseRecord) -> Policy {
    let plan = &record.header.plan;
    let of_ring = plan.rings().next().map(|(_, ring)| ring.policy);
    let takes_policy = |trial: &Trial| matches!(trial, Trial::Loop { .. } | Trial::TwoProcesses);
    let of_trial = || {
        let mut trials = plan.trials().map(|(_, case)| case);
        trials.find(|case| takes_policy(&case.trial)).map(|case| case.policy)
    };
    of_ring.or_else(of_trial).unwrap_or(Policy::Other)
}

/// SCHED_OTHER, as kernel engineers know it.
pub(super) fn scheduler(policy: Policy) -> String {
    format!("SCHED_{}", policy.name().to_uppercase())
}

/// The summaries of all rings.
fn rings(record: &ResponseRecord) -> impl Iterator<Item = &CaseSummary> + Clone {
    record.cases.iter().filter_map(|of| of.ring())
}

/// Whether the run ended.
fn is_whole(record: &ResponseRecord) -> bool {
    unfinished(record.end.as_ref()).is_none()
}

/// A system call, a signal, a switch; none where none of them was measured.
fn costs(record: &ResponseRecord) -> Option<Clause> {
    let is_call = |of: &&LoopCost| SYSTEM_CALLS.iter().any(|call| call.name == of.call);
    let known = |of: &LoopCost| Some((of.call.clone(), of.ns?));
    let calls: Vec<(String, Estimate)> =
        record.found.loops.iter().filter(is_call).filter_map(known).collect();
    let call = calls.iter().find(|(call, _)| call == GETUID).or(calls.first());
    let signal = record.found.signals.as_ref().and_then(|of| of.signal_ns);
    let pipe = rings(record).find(|of| of.case.members > 1 && of.case.link == PIPE);
    let switch = pipe.and_then(|of| of.ns_per_switch_above_solo).filter(|_| call.is_some());
    let all = [
        call.map(|(call, ns)| (&**call, *ns, true)),
        signal.map(|ns| ("a signal to oneself", ns, false)),
        switch.map(|ns| ("a switch by pipe", ns, false)),
    ];
    let (mut parts, mut open) = (Vec::new(), Vec::new());
    for (name, ns, starts_with_name) in all.into_iter().flatten() {
        let (to, words) = match ns.answer_cost() {
            Ok(ns) if parts.is_empty() => {
                (&mut parts, marked![format!("{name} takes "), ns.marked_time()])
            }
            Ok(ns) => (&mut parts, format!("{name} {}", ns.brief_time()).into()),
            Err(why) => (&mut open, format!("{name}: {}", why.with_time_unit()).into()),
        };
        to.push(Clause { words, starts_with_name });
    }
    let slowest = slowest(&calls).filter(|_| parts.len() == 1 && is_whole(record));
    let (told, separator) = if parts.is_empty() { (open, "; ") } else { (parts, ", ") };
    let starts_with_name = told.first()?.starts_with_name;
    let mut words = MarkedText::join(told.into_iter().map(|part| part.words), separator);
    if let Some(slowest) = slowest {
        words.push(format!("; {slowest}"));
    }
    Some(Clause { words, starts_with_name })
}

/// The slowest of several calls, of those that may be quoted.
fn slowest(calls: &[(String, Estimate)]) -> Option<String> {
    let quoted = |(call, ns): &(String, Estimate)| Some((call.clone(), ns.quote_cost().ok()?));
    let known: Vec<(String, QuotedFigure)> = calls.iter().filter_map(quoted).collect();
    let (slowest, ns) = known.iter().max_by(|(_, a), (_, b)| a.value().total_cmp(&b.value()))?;
    let many = known.len();
    (many > 1).then(|| {
        format!("the slowest of {many} calls is {slowest} with {}", words::time(ns.value()))
    })
}

/// The sleeper of a case.
pub(crate) fn sleeper(record: &ResponseRecord, case: usize) -> Option<(&Wakeup, Policy)> {
    let case = record.header.plan.trial(case)?;
    match &case.trial {
        Trial::Wakeup(wakeup) => Some((wakeup, case.policy)),
        _ => None,
    }
}

/// A sleeper in a few words: `idle CPU, other, slack 50 us`. Of what is not usual only.
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

/// What became of the sleeper under SCHED_OTHER on an idle CPU that had so much slack.
fn found(
    record: &ResponseRecord,
    slack_ns: u64,
    cpu_latency_us: Option<u32>,
) -> Option<&WakeupFindings> {
    let is_it = |of: &&WakeupFindings| {
        sleeper(record, of.case).is_some_and(|(wakeup, policy)| {
            let setting = (wakeup.timer_slack_ns, wakeup.cpu_latency_us, wakeup.load);
            setting == (slack_ns, cpu_latency_us, WakeupLoad::Idle) && policy == Policy::Other
        })
    };
    record.found.wakeups.iter().find(is_it)
}

/// How late a timer wakes a thread as applications have it; in older runs with the least slack.
/// With `all` also what it would be with less slack, and without idle states.
fn wakeup(record: &ResponseRecord, all: bool) -> Option<Clause> {
    let by_default = found(record, DEFAULT_SLACK_NS, None);
    let plain = found(record, MIN_SLACK_NS, None);
    let first = by_default.or(plain)?;
    let median = first.median_ns?;
    let what = "a timer on an idle CPU wakes a thread";
    let Ok(late) = median.answer_cost() else {
        let what = format!("how late {what} (median): ");
        return Some(Clause::from_words(marked![what, marked_cost(&median)]));
    };
    let late = if all { late.marked_time() } else { MarkedText::figure(late.brief_time()) };
    let tail = first.p99_ns.map(|tail| format!(", {} at 99 %", words::time(tail.value_ns as f64)));
    let slack = match by_default {
        Some(_) => ", with the default timer slack",
        None => ", with timer slack 1 ns",
    };
    let median = |of: &WakeupFindings| Some(of.median_ns?.answer_cost().ok()?.brief_time());
    let less = by_default.and(plain).and_then(median).map(|late| format!("; {late} with 1 ns"));
    let awake = found(record, MIN_SLACK_NS, Some(0)).filter(|_| all).and_then(median);
    let awake = awake.map(|late| format!(", {late} without idle states"));
    let [tail, less, awake] = [tail, less, awake].map(Option::unwrap_or_default);
    let behind = format!(" late (median){tail}{slack}{less}{awake}");
    Some(Clause::from_words(marked![format!("{what} "), late, behind]))
}

/// What the slack of applications adds.
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

/// That the device could not be opened, and who may; nothing of runs that did not ask for it.
fn no_idle(record: &ResponseRecord) -> Option<String> {
    found(record, DEFAULT_SLACK_NS, None)?;
    let is_missing = found(record, MIN_SLACK_NS, Some(0)).is_none();
    is_missing.then(|| {
        format!(
            "idle states: what leaving one adds is not measured: it needs access to \
             {LATENCY_DEVICE} (root)"
        )
    })
}

/// What leaving an idle state takes.
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

/// What a class of gaps is called in a sentence.
fn taker(class: GapClass) -> &'static str {
    match class {
        GapClass::Interrupt => "interrupts",
        GapClass::SwitchedOut => "other tasks",
        GapClass::Uncharged => "uncharged",
    }
}

/// What a busy thread loses, and to whom.
fn lost(record: &ResponseRecord, found: &gaps::GapFindings) -> MarkedText {
    let policy = record.header.plan.trial(found.case).map_or(Policy::Other, |case| case.policy);
    let to = |of: &gaps::GapClassFindings| {
        let lost = count(Some(of.lost_percent?));
        let is_told = lost.is_some_and(|lost| lost.is_ok());
        is_told.then(|| format!("{} {} %", taker(of.class), told_value(lost)))
    };
    let classes: Vec<String> = found.classes.iter().filter_map(to).collect();
    let classes =
        if classes.is_empty() { String::new() } else { format!(": {}", classes.join(", ")) };
    let (all, thread) =
        (count(found.lost_percent), format!("a busy thread ({})", scheduler(policy)));
    match all {
        Some(Ok(_)) => {
            let lost = MarkedText::figure(format!("{} %", told_value(all)));
            marked![format!("{thread} loses "), lost, format!(" of its time{classes}")]
        }
        _ => format!("what {thread} loses of its time: {}{classes}", told_words(all)).into(),
    }
}
