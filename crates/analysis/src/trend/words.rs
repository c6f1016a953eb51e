//! A trend in words.

use rundata::machine::FieldDifference;
use rundata::words::{plain, time, whole};

use super::series::short_commit;
use super::steps::FEWEST_OF_ALL;
use super::{CaseTrend, CostChange};
use crate::comparison::{GateVerdict, machine_differences, percent as limit_words, value_in_words};
use crate::marked;
use crate::marked::MarkedText;
use crate::results::Quantity;

/// Most differences that a sentence names.
const MAX_NAMED: usize = 3;

/// Returns the answer of a trend.
pub(super) fn answer(trend: &CaseTrend) -> MarkedText {
    let Some(level) = trend.levels.last() else {
        let subject = subject(trend, "a");
        return format!("No stored run has a reliable figure of {subject}").into();
    };
    let subject = subject(trend, "A");
    let mut cost = MarkedText::figure(time(level.ns));
    if let (Some(cycles), Some(ghz)) = (level.cycles, trend.clock_ghz) {
        cost.push(format!(" ({} cycles at {ghz:.2} GHz)", whole(cycles)));
    }
    if trend.runs < FEWEST_OF_ALL {
        return marked![subject, " costs ", cost, format!(": {}", too_few(trend.runs))];
    }
    let Some(largest) = trend.largest_change() else {
        let (runs, when) = (trend.runs, days(trend));
        return marked![subject, " costs ", cost, format!(": no change in {runs} runs {when}")];
    };
    let is_newest = trend.changes.last().is_none_or(|newest| newest.at == largest.at);
    if is_newest {
        return marked![subject, " is ", &largest.in_words];
    }
    // A later change may have undone it, so the newest cost is printed, too.
    marked![subject, " became ", &largest.in_words, "; now it costs ", cost]
}

/// Returns `on 2026-11-12` or `from 2026-11-12 to 2026-11-20`.
fn days(trend: &CaseTrend) -> String {
    let first = trend.points.first().map_or("", |point| day(&point.started));
    let last = trend.until.as_deref().map_or(first, day);
    if first == last { format!("on {first}") } else { format!("from {first} to {last}") }
}

/// Returns the thing that the cost is measured for: `a switch`, `a hop of the ring of 4`. `article`
/// is `a`, or `A` at the start of a sentence.
fn subject(trend: &CaseTrend, article: &str) -> String {
    let title = &trend.case.title;
    match trend.quantity {
        Some(quantity) if quantity == Quantity::TrialNs || quantity.is_of_wakes() => title.clone(),
        Some(Quantity::NsPerHop | Quantity::CpuNsPerHop) => format!("{article} hop of the {title}"),
        _ if title == "ring of 2" => format!("{article} switch"),
        _ => format!("{article} switch of the {title}"),
    }
}

/// Returns `4.1 % (3.6 to 4.7) slower since 2026-11-12 (upgraded), 1.54 us, not 1.48 us: kernel
/// 6.12.3 -> 6.12.9`. `last_before` is the start of the last run before the change; `run_label` is
/// the label that the user gave to the first run after it.
pub(super) fn change(
    change: &CostChange,
    last_before: &str,
    run_label: Option<&str>,
) -> MarkedText {
    let direction = if change.is_dearer() { "slower" } else { "faster" };
    let mut words = MarkedText::default();
    if let Some(ratio) = change.ratio.value {
        words.push(MarkedText::figure(format!("{} %", percent_from_one(ratio))));
        words.push(" ");
    }
    if let Some((low, high)) = change.ratio.interval() {
        let ends = if change.is_dearer() { [low, high] } else { [high, low] };
        let [near, far] = ends.map(percent_from_one);
        words.push(format!("({near} to {far}) "));
    }
    let label = run_label.map_or(String::new(), |label| format!(" ({label})"));
    words.push(format!(
        "{direction} since {}{label}, {}, not {}: {}",
        since(last_before, &change.since),
        time(change.after_ns),
        time(change.before_ns),
        why(change)
    ));
    words
}

/// Returns the distance of a ratio from 1 in per cent, with one decimal.
fn percent_from_one(ratio: f64) -> String {
    format!("{:.1}", 100.0 * (ratio - 1.0).abs())
}

/// Returns what changed in the machine and the program at the time of a change.
fn why(change: &CostChange) -> String {
    let mut differences = machine_differences(&change.machine);
    differences.extend(change.program.iter().map(program_difference));
    let more = differences.len().saturating_sub(MAX_NAMED);
    differences.truncate(MAX_NAMED);
    if more > 0 {
        differences.push(format!("{more} more"));
    }
    let named = if differences.is_empty() {
        "nothing that is recorded changed".to_string()
    } else {
        differences.join(", ")
    };
    let Some([before, after]) = change.clocks_ghz else { return named };
    format!(
        "{named}; the core's clock was {before:.2}, then {after:.2} GHz, which the figures are \
         corrected for"
    )
}

fn program_difference(difference: &FieldDifference) -> String {
    let (base, other) = (value_in_words(&difference.base), value_in_words(&difference.other));
    match difference.field.strip_prefix("build.") {
        Some("version") => format!("switchcost {base} -> {other}"),
        Some("commit") => {
            format!("switchcost's commit {} -> {}", short_commit(&base), short_commit(&other))
        }
        field => format!("switchcost's {} {base} -> {other}", field.unwrap_or("build")),
    }
}

/// Returns a change of the core's clock in words. `last_before` is the start of the last run before
/// it, `first_after` that of the first run after it.
pub(super) fn clock(
    before_ghz: f64,
    after_ghz: f64,
    last_before: &str,
    first_after: &str,
) -> String {
    let direction = if after_ghz > before_ghz { "higher" } else { "lower" };
    let percent = 100.0 * (after_ghz / before_ghz - 1.0).abs();
    format!(
        "the core's clock is {percent:.1} % {direction} since {}: {before_ghz:.2} -> {after_ghz:.2} \
         GHz, which the figures are corrected for",
        since(last_before, first_after)
    )
}

/// Returns the day of the second time; with the minute where both are on one day.
fn since(last_before: &str, first_after: &str) -> String {
    let day_after = day(first_after);
    if day(last_before) != day_after {
        return day_after.to_string();
    }
    match first_after.get(11..16) {
        Some(minute) => format!("{day_after} {minute}"),
        None => day_after.to_string(),
    }
}

/// Returns the day of a time in RFC 3339.
fn day(started: &str) -> &str {
    started.get(..10).unwrap_or(started)
}

/// Returns the reason of a gate's verdict.
pub(super) fn gate_reason(trend: &CaseTrend, verdict: GateVerdict, limit: f64) -> String {
    let beyond = limit_words(limit);
    match (verdict, trend.changes.last()) {
        (GateVerdict::Fail, Some(change)) => {
            format!("slower by more than {beyond}: {}", change.in_words)
        }
        (GateVerdict::Pass, None) => "no change".to_string(),
        (GateVerdict::Pass, Some(_)) => {
            format!("the last change is not slower by more than {beyond}")
        }
        (GateVerdict::Undecided, Some(change)) if change.may_be_beyond(limit) => {
            format!("it may be slower by more than {beyond}: {}", change.in_words)
        }
        _ => match trend.detectable {
            Some(least) => format!(
                "three runs would only show a change of {} %, not one of {beyond}",
                plain((1000.0 * least).ceil() / 10.0)
            ),
            None => too_few(trend.runs),
        },
    }
}

fn too_few(runs: usize) -> String {
    let runs = if runs == 1 { "1 usable run".to_string() } else { format!("{runs} usable runs") };
    format!("{runs} so far; a change shows from {FEWEST_OF_ALL} on")
}
