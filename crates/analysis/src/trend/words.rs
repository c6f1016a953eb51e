//! What the runs say, in words.

use rundata::machine::FieldDifference;
use rundata::words::{plain, time, whole};
use serde_json::Value;

use super::series::short;
use super::steps::FEWEST_OF_ALL;
use super::{Change, Trend};
use crate::comparison::{GateVerdict, bearing_kind, percent as limit_words};
use crate::marked;
use crate::marked::MarkedText;
use crate::results::Quantity;

/// Things that changed which a sentence names.
const MOST_NAMED: usize = 3;
/// Characters of a value that are told.
const LONGEST: usize = 48;

/// The whole.
pub(super) fn answer(of: &Trend) -> MarkedText {
    let Some(level) = of.levels.last() else {
        return format!("No stored run has a reliable figure of {}", what(of, "a")).into();
    };
    let what = what(of, "A");
    let mut cost = MarkedText::figure(time(level.ns));
    if let Some((cycles, ghz)) = level.cycles.zip(of.clock_ghz) {
        cost.push(format!(" ({} cycles at {ghz:.2} GHz)", whole(cycles)));
    }
    if of.runs < FEWEST_OF_ALL {
        return marked![what, " costs ", cost, format!(": {}", too_few(of.runs))];
    }
    match of.largest_change() {
        // What came behind it may have undone it: then the newest cost is told, too.
        Some(change) if change.at != of.changes.last().map_or(change.at, |last| last.at) => {
            marked![what, " became ", &change.in_words, "; now it costs ", cost]
        }
        Some(change) => marked![what, " is ", &change.in_words],
        None => {
            let first = of.points.first().map_or("", |point| day(&point.started));
            let last = of.until.as_deref().map_or(first, day);
            let when = match first == last {
                true => format!("on {first}"),
                false => format!("from {first} to {last}"),
            };
            marked![what, " costs ", cost, format!(": no change in {} runs {when}", of.runs)]
        }
    }
}

/// Returns what it is the cost of; `article` is that of its place in the sentence.
fn what(of: &Trend, article: &str) -> String {
    let title = &of.case.title;
    match of.of {
        Some(Quantity::TrialNs) => title.clone(),
        Some(Quantity::NsPerHop | Quantity::CpuNsPerHop) => format!("{article} hop of the {title}"),
        _ if title == "ring of 2" => format!("{article} switch"),
        _ => format!("{article} switch of the {title}"),
    }
}

/// `4.1 % (3.6 to 4.7) slower since 2026-11-12 (upgraded), 1.54 us, not 1.48 us: kernel 6.12.3 ->
/// 6.12.9`; `name` is what the reader calls the first run behind the change.
pub(super) fn change(of: &Change, before: &str, name: Option<&str>) -> MarkedText {
    let way = if of.is_dearer() { "slower" } else { "faster" };
    let share = |ratio: f64| format!("{:.1}", 100.0 * (ratio - 1.0).abs());
    let mut words = MarkedText::default();
    if let Some(ratio) = of.ratio.value {
        words.push(MarkedText::figure(format!("{} %", share(ratio))));
        words.push(" ");
    }
    let ends = of.ratio.interval().map(|(low, high)| {
        let ends = if of.is_dearer() { [low, high] } else { [high, low] };
        format!("({} to {}) ", share(ends[0]), share(ends[1]))
    });
    let named = name.map_or(String::new(), |name| format!(" ({name})"));
    words.push(format!(
        "{}{way} since {}{named}, {}, not {}: {}",
        ends.unwrap_or_default(),
        since(before, &of.since),
        time(of.after_ns),
        time(of.before_ns),
        why(of)
    ));
    words
}

/// What changed beside it.
fn why(of: &Change) -> String {
    let mut all = machine(&of.machine);
    all.extend(of.program.iter().map(program));
    let clocks = of.clocks_ghz.map(|[before, after]| {
        format!(
            "the core's clock was {before:.2}, then {after:.2} GHz, which the figures are \
            corrected for"
        )
    });
    let more = all.len().saturating_sub(MOST_NAMED);
    all.truncate(MOST_NAMED);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    let named = match all.is_empty() {
        true => "nothing that is recorded changed".to_string(),
        false => all.join(", "),
    };
    clocks.map_or(named.clone(), |clocks| format!("{named}; {clocks}"))
}

/// Each once: of a kernel its release, which its banner repeats.
fn machine(all: &[FieldDifference]) -> Vec<String> {
    let has_release = all.iter().any(|of| of.field == "kernel.release");
    let is_repeated = |of: &&FieldDifference| {
        has_release && ["kernel.version", "kernel.banner"].contains(&&*of.field)
    };
    let told = all.iter().filter(|of| !is_repeated(of));
    told.filter_map(|of| Some(difference(bearing_kind(of)?.1, of))).collect()
}

fn difference(kind: &str, of: &FieldDifference) -> String {
    let last = of.field.rsplit('.').next().unwrap_or_default();
    let what = match &*of.field {
        "kernel.command_line" => return command_line(of),
        "kernel.release" => kind.to_string(),
        _ if kind == "microcode" || kind == "clock source" => kind.to_string(),
        _ if kind == "CPU" && last == "name" => kind.to_string(),
        _ => format!("{kind} ({last})"),
    };
    format!("{what} {} -> {}", value(&of.base), value(&of.other))
}

/// The parameters that came and went.
fn command_line(of: &FieldDifference) -> String {
    let words = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        text.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    let (old, new) = (words(&of.base), words(&of.other));
    let signed = |sign: &str, all: &[String], others: &[String]| {
        let own = all.iter().filter(|word| !others.contains(word));
        own.map(|word| format!("{sign}{}", cut(word))).collect::<Vec<_>>()
    };
    let all = [signed("-", &old, &new), signed("+", &new, &old)].concat();
    let shown = if all.is_empty() { "in another order".to_string() } else { all.join(" ") };
    format!("kernel command line {}", cut(&shown))
}

fn program(of: &FieldDifference) -> String {
    let (base, other) = (value(&of.base), value(&of.other));
    match of.field.strip_prefix("build.") {
        Some("version") => format!("switchcost {base} -> {other}"),
        Some("commit") => format!("switchcost's commit {} -> {}", short(&base), short(&other)),
        field => format!("switchcost's {} {base} -> {other}", field.unwrap_or("build")),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_string(),
        Value::String(text) => cut(text),
        Value::Object(map) if map.len() == 1 && map.contains_key("unknown") => {
            "not recorded".to_string()
        }
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// The clock of the core, before and behind.
pub(super) fn clock(before_ghz: f64, after_ghz: f64, before: &str, after: &str) -> String {
    let way = if after_ghz > before_ghz { "higher" } else { "lower" };
    let percent = 100.0 * (after_ghz / before_ghz - 1.0).abs();
    format!(
        "the core's clock is {percent:.1} % {way} since {}: {before_ghz:.2} -> {after_ghz:.2} \
         GHz, which the figures are corrected for",
        since(before, after)
    )
}

/// The day, or where both are on one day the minute.
fn since(before: &str, after: &str) -> String {
    let minute = || Some(format!("{} {}", day(after), after.get(11..16)?));
    let is_same = day(before) == day(after);
    is_same.then(minute).flatten().unwrap_or_else(|| day(after).to_string())
}

/// The day of a time in RFC 3339.
pub(super) fn day(started: &str) -> &str {
    started.get(..10).unwrap_or(started)
}

/// The verdict and its reason.
pub(super) fn gate(of: &Trend, verdict: GateVerdict, limit: f64) -> MarkedText {
    let beyond = limit_words(limit);
    let reason = match (verdict, of.changes.last()) {
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
        _ => match of.detectable {
            Some(least) => format!(
                "three runs would only show a change of {} %, not one of {beyond}",
                plain((1000.0 * least).ceil() / 10.0)
            ),
            None => too_few(of.runs),
        },
    };
    marked![verdict.marked(), format!(": {reason}")]
}

fn too_few(runs: usize) -> String {
    let runs = if runs == 1 { "1 usable run".to_string() } else { format!("{runs} usable runs") };
    format!("{runs} so far; a change shows from {FEWEST_OF_ALL} on")
}
