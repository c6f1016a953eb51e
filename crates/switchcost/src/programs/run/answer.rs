//! What runs of commands answer, in a sentence.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::program::percents;
use analysis::quote::marked_cost;
use launcher::Ending;
use rundata::words::{times, two_digits, whole};

use super::findings::Summary;
use super::record::Record;
use crate::report::terminal::{TimeUnit, counted, figure};

/// The first line of the report.
pub(super) fn headline(record: &Record) -> MarkedText {
    match &record.commands[..] {
        [] => "Nothing was measured.".into(),
        [one] if one.runs == 1 => one_run(record, one),
        [one] => runs(record, one),
        all => comparison(record, all),
    }
}

/// `make -j4: 12.3 s real, 40.1 s CPU, 5,300 switches; switching took an estimated 1.2 to 2.1 % of
/// the CPU time`
fn one_run(record: &Record, summary: &Summary) -> MarkedText {
    let median = |name: &str| summary.median(name);
    let unit = TimeUnit::for_time(median("real_ns").unwrap_or_default());
    let time = |name: &str, what: &str| {
        Some(marked![MarkedText::figure(unit.words(median(name)?)), format!(" {what}")])
    };
    let switches = switches(summary).map(|count| counted_switches(count).into());
    let parts = [time("real_ns", "real"), time("cpu_ns", "CPU"), switches];
    let parts = MarkedText::join(parts.into_iter().flatten(), ", ");
    let ending = match summary.endings[..] {
        [(Ending::Exited { code: 0 }, _)] | [] => String::new(),
        [(ending, _), ..] => format!(" ({ending})"),
    };
    let share = switching(summary).map_or(String::new(), |words| format!("; {words}"));
    marked![format!("{}{ending}: ", record.plan.label(summary.number)), parts, share]
}

/// `make: 12.3 s (12.1 to 12.6), 20 runs`
fn runs(record: &Record, summary: &Summary) -> MarkedText {
    let label = record.plan.label(summary.number);
    let count = counted(summary.runs as usize, "run");
    let Some(real) = summary.figure("real_ns") else {
        return format!("{label}: {count}").into();
    };
    match real.estimate.interval() {
        Some(_) => {
            marked![format!("{label}: "), marked_cost(&real.estimate), format!(", {count}")]
        }
        None => {
            let time = TimeUnit::for_time(real.estimate.value).words(real.estimate.value);
            let count = format!(", {count} (5 or more give an interval)");
            marked![format!("{label}: about "), MarkedText::figure(time), count]
        }
    }
}

/// `sleep 0.01 is 1.94x (1.86 to 2.13) faster than sleep 0.02`, and what else is told of more than
/// two.
fn comparison(record: &Record, all: &[Summary]) -> MarkedText {
    let label = |summary: &Summary| record.plan.label(summary.number);
    let over = |one: &Summary, other: &Summary| ratio(record, one.number, other.number);
    if let [base, other] = all {
        // The ratio within rounds decides, not the medians of both; what is not resolved is that of
        // the table.
        return match over(base, other) {
            None => format!("{} and {}: no round has both", label(base), label(other)).into(),
            Some(found) if found.interval().is_none() => seen(record, [base, other], &found),
            Some(found) if !found.resolved => {
                unresolved(&format!("between {} and {}", label(base), label(other)), &found)
            }
            Some(found) if found.value >= 1.0 => faster(&label(base), &found, &label(other)),
            Some(found) => faster(&label(other), &inverse(&found), &label(base)),
        };
    }
    let real = |summary: &Summary| summary.median("real_ns").unwrap_or(f64::INFINITY);
    let mut sorted: Vec<&Summary> = all.iter().collect();
    sorted.sort_by(|one, other| real(one).total_cmp(&real(other)));
    let Some((first, others)) = sorted.split_first() else { return MarkedText::default() };
    let is_slower = |of: &Estimate| of.resolved && of.value > 1.0;
    let slower: Vec<(&Summary, Estimate)> = others
        .iter()
        .filter_map(|other| Some((*other, over(first, other).filter(is_slower)?)))
        .collect();
    let alike =
        others.iter().filter(|other| !slower.iter().any(|(of, _)| of.number == other.number));
    let alike: Vec<String> = alike.map(|other| label(other)).collect();
    match (&slower[..], &alike[..]) {
        ([], _) => {
            let slowest = others.last().and_then(|last| Some((last, over(first, last)?)));
            match slowest.filter(|(_, by)| by.interval().is_none()) {
                Some((last, by)) => seen(record, [first, last], &by),
                None => {
                    format!("No difference is resolved between the {} commands", all.len()).into()
                }
            }
        }
        ([(next, by), rest @ ..], []) => {
            let each_holds =
                |pair: &[&Summary]| over(pair[0], pair[1]).is_some_and(|of| is_slower(&of));
            let ranking = sorted.windows(2).all(each_holds);
            let than =
                |(of, by): &(&Summary, Estimate)| format!("{} than {}", times(by.value), label(of));
            let rest: Vec<String> = rest.iter().map(than).collect();
            let rest = match &rest[..] {
                [] => String::new(),
                [all @ .., last] => format!(
                    "{} and {last}",
                    all.iter().map(|of| format!(", {of}")).collect::<String>()
                ),
            };
            let order = if ranking { ", in this order" } else { "" };
            faster(&label(first), by, &label(next)) + &rest + order
        }
        ([(next, by), ..], alike) => {
            let (first, alike) = (label(first), alike.join(", "));
            let next = label(next);
            marked![
                format!("{first} is the fastest, not resolved from {alike}; {next} takes "),
                factor(by),
                " as long"
            ]
        }
    }
}

/// `A is 1.94x (1.86 to 2.13) faster than B`
fn faster(one: &str, by: &Estimate, other: &str) -> MarkedText {
    let faster = MarkedText::direction(false);
    marked![format!("{one} is "), factor(by), " ", faster, format!(" than {other}")]
}

fn unresolved(between: &str, by: &Estimate) -> MarkedText {
    marked![format!("No difference is resolved {between}: "), factor(by)]
}

/// What was seen in too few runs for an interval; `by` is the time of the second over the first:
/// `gzip -1 is ~3.9x faster than gzip -6 (2 runs each, no interval: at least 5 are needed)`
fn seen(record: &Record, [one, other]: [&Summary; 2], by: &Estimate) -> MarkedText {
    let [mut fast, mut slow] = [one, other].map(|summary| record.plan.label(summary.number));
    let mut ratio = by.value;
    if ratio < 1.0 {
        std::mem::swap(&mut fast, &mut slow);
        ratio = 1.0 / ratio;
    }
    let runs = counted(by.rounds as usize, "run");
    marked![
        format!("{fast} is "),
        MarkedText::figure(format!("~{}x", two_digits(ratio))),
        " ",
        MarkedText::direction(false),
        format!(" than {slow} ({runs} each, no interval: at least 5 are needed)")
    ]
}

/// `1.94x (1.86 to 2.13)`
pub(super) fn factor(by: &Estimate) -> MarkedText {
    let range = by.interval().map(|i| format!(" ({} to {})", figure(i.low), figure(i.high)));
    marked![MarkedText::figure(times(by.value)), range.unwrap_or_default()]
}

/// First over second of what is second over first.
fn inverse(of: &Estimate) -> Estimate {
    let one_over = |value: f64| 1.0 / value;
    Estimate {
        value: one_over(of.value),
        low: of.high.map(one_over),
        high: of.low.map(one_over),
        ..*of
    }
}

/// Real time of a command over that of another.
fn ratio(record: &Record, base: usize, command: usize) -> Option<Estimate> {
    let whole: Vec<_> = record.runs.iter().filter(|run| !run.interrupted).collect();
    super::findings::ratio(&whole, [base, command], |run| run.used.real_ns, &record.plan)
}

/// Switches of both kinds in a run.
pub(super) fn switches(summary: &Summary) -> Option<f64> {
    Some(summary.median("voluntary")? + summary.median("involuntary")?)
}

/// `5,300 switches`
fn counted_switches(count: f64) -> String {
    let count = count.round().max(0.0) as u64;
    let what = if count == 1 { "switch" } else { "switches" };
    format!("{} {what}", whole(count as f64))
}

/// What share of the CPU time went to switches, where that is estimated. Where the whole is too wide
/// a range, the share of the switches themselves.
pub(super) fn switching(summary: &Summary) -> Option<String> {
    let switching = summary.switching.as_ref()?;
    let (share, direct) = (switching.cost.share(), switching.cost.direct_share());
    switches(summary).filter(|count| *count > 0.0)?;
    if let Some(whole) = share.filter(|share| !share.is_wide()) {
        return Some(format!("switching took about {} of the CPU time", percents(whole)));
    }
    let direct = percents(direct.filter(|direct| !direct.is_wide())?);
    Some(format!(
        "switching itself took about {direct} of the CPU time, without the refill of caches"
    ))
}

/// The share alone, for a list: `0.5 to 0.8 %`.
pub(super) fn switching_share(summary: &Summary) -> Option<String> {
    let cost = &summary.switching.as_ref()?.cost;
    switches(summary).filter(|count| *count > 0.0)?;
    if let Some(whole) = cost.share().filter(|share| !share.is_wide()) {
        return Some(percents(whole));
    }
    let direct = percents(cost.direct_share().filter(|direct| !direct.is_wide())?);
    Some(format!("{direct} without the refill of caches"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        assert_eq!(
            [0.0, 1.0, 5300.0].map(counted_switches),
            ["0 switches", "1 switch", "5,300 switches"]
        );
    }
}
