//! The first line of the report of `switchcost run`: which command is faster, or what one used.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::program::percents;
use analysis::quote::marked_cost;
use launcher::Ending;
use rundata::words::{times, two_digits, whole};

use super::findings::{
    CommandPair, CommandSummary, ComparedTime, complete_runs, estimate_ratio, sort_by_real_time,
};
use super::record::CommandUseRecord;
use crate::report::terminal::{TimeUnit, counted, figure};

/// Returns the first line of the report.
pub(super) fn headline(record: &CommandUseRecord) -> MarkedText {
    headline_in(record, None)
}

/// Returns the first line of the report, its times in `unit` if there is one.
pub(super) fn headline_in(record: &CommandUseRecord, unit: Option<TimeUnit>) -> MarkedText {
    match &record.commands[..] {
        [] => "Nothing was measured.".into(),
        [summary] if summary.runs == 1 => describe_run(record, summary, unit),
        [summary] => describe_runs(record, summary, unit),
        [base, other] => compare_two(record, base, other),
        summaries => compare_several(record, summaries),
    }
}

/// Describes a single run: `make -j4: 12.3 s real, 40.1 s CPU, 5,300 switches; switching took about
/// 1.2 to 2.1 % of the CPU time`.
fn describe_run(
    record: &CommandUseRecord,
    summary: &CommandSummary,
    unit: Option<TimeUnit>,
) -> MarkedText {
    let real_ns = summary.median("real_ns").unwrap_or_default();
    let unit = unit.unwrap_or(TimeUnit::for_time(real_ns));
    let mut parts = Vec::new();
    for (name, meaning) in [("real_ns", "real"), ("cpu_ns", "CPU")] {
        if let Some(ns) = summary.median(name) {
            parts.push(marked![MarkedText::figure(unit.words(ns)), format!(" {meaning}")]);
        }
    }
    if let Some(count) = summary.switches() {
        parts.push(count_words(count).into());
    }
    let mut label = record.plan.label(summary.number);
    if let Some((ending, _)) = summary.endings.first() {
        if summary.endings.len() > 1 || *ending != (Ending::Exited { code: 0 }) {
            label += &format!(" ({ending})");
        }
    }
    let mut line = marked![format!("{label}: "), MarkedText::join(parts, ", ")];
    if let Some(share) = SwitchingShare::from_summary(summary) {
        line.push(format!("; {}", share.in_sentence()));
    }
    line
}

/// Describes several runs of one command: `make: 12.3 s (12.1 to 12.6), 20 runs`.
fn describe_runs(
    record: &CommandUseRecord,
    summary: &CommandSummary,
    unit: Option<TimeUnit>,
) -> MarkedText {
    let label = record.plan.label(summary.number);
    let count = counted(summary.runs as usize, "run");
    let Some(real) = summary.figure("real_ns") else {
        return format!("{label}: {count}").into();
    };
    if let Some(interval) = real.estimate.interval() {
        let mut time = marked_cost(&real.estimate);
        if let (Some(unit), Ok(_)) = (unit, real.estimate.answer_cost()) {
            let (low, high) = (unit.figure(interval.low), unit.figure(interval.high));
            time = MarkedText::figure(unit.words(real.estimate.value));
            time.push(format!(" ({low} to {high})"));
        }
        return marked![format!("{label}: "), time, format!(", {count}")];
    }
    let unit = unit.unwrap_or(TimeUnit::for_time(real.estimate.value));
    let time = unit.words(real.estimate.value);
    let count = format!(", {count} (5 or more give an interval)");
    marked![format!("{label}: about "), MarkedText::figure(time), count]
}

/// Compares two commands: `sleep 0.01 is 1.94x (1.86 to 2.13) faster than sleep 0.02`.
///
/// The ratio within rounds decides, not the medians of both. An unresolved ratio is that of the
/// second to the first, as in the table.
fn compare_two(
    record: &CommandUseRecord,
    base: &CommandSummary,
    other: &CommandSummary,
) -> MarkedText {
    let labels = [base, other].map(|summary| record.plan.label(summary.number));
    let [base_label, other_label] = &labels;
    let Some(ratio) = real_time_ratio(record, base, other) else {
        return format!("{base_label} and {other_label}: no round has both").into();
    };
    if ratio.interval().is_none() {
        describe_without_interval(&labels, &ratio)
    } else if !ratio.resolved {
        let between = format!("between {base_label} and {other_label}: ");
        marked![format!("No difference is resolved {between}"), factor(&ratio)]
    } else if ratio.value >= 1.0 {
        describe_faster(base_label, &ratio, other_label)
    } else {
        describe_faster(other_label, &invert(&ratio), base_label)
    }
}

/// A command that takes longer than the fastest one, and how many times as long.
struct SlowerCommand<'a> {
    summary: &'a CommandSummary,
    ratio: Estimate,
}

/// Compares three or more commands with the one that has the lowest median.
fn compare_several(record: &CommandUseRecord, summaries: &[CommandSummary]) -> MarkedText {
    let by_time = sort_by_real_time(summaries);
    let [fastest, .., slowest] = by_time[..] else { return MarkedText::default() };
    let label = |summary: &CommandSummary| record.plan.label(summary.number);
    let (mut slower, mut unresolved) = (Vec::new(), Vec::new());
    for summary in &by_time[1..] {
        match real_time_ratio(record, fastest, summary) {
            Some(ratio) if is_slower(&ratio) => slower.push(SlowerCommand { summary, ratio }),
            _ => unresolved.push(label(summary)),
        }
    }
    let Some((next, rest)) = slower.split_first() else {
        return match real_time_ratio(record, fastest, slowest) {
            Some(ratio) if ratio.interval().is_none() => {
                describe_without_interval(&[label(fastest), label(slowest)], &ratio)
            }
            _ => format!("No difference is resolved between the {} commands", by_time.len()).into(),
        };
    };
    if !unresolved.is_empty() {
        let (fastest, unresolved) = (label(fastest), unresolved.join(", "));
        let next_label = label(next.summary);
        return marked![
            format!(
                "{fastest} is the fastest, not resolved from {unresolved}; {next_label} takes "
            ),
            factor(&next.ratio),
            " as long"
        ];
    }
    let mut line = describe_faster(&label(fastest), &next.ratio, &label(next.summary));
    for (number, command) in rest.iter().enumerate() {
        line.push(if number + 1 == rest.len() { " and " } else { ", " });
        line.push(format!("{} than {}", times(command.ratio.value), label(command.summary)));
    }
    if has_resolved_order(record, &by_time) {
        line.push(", in this order");
    }
    line
}

fn is_slower(ratio: &Estimate) -> bool {
    ratio.resolved && ratio.value > 1.0
}

/// Returns whether each command is resolved to be slower than the one before it.
fn has_resolved_order(record: &CommandUseRecord, by_time: &[&CommandSummary]) -> bool {
    for pair in by_time.windows(2) {
        let ratio = real_time_ratio(record, pair[0], pair[1]);
        if !ratio.is_some_and(|ratio| is_slower(&ratio)) {
            return false;
        }
    }
    true
}

/// Returns `A is 1.94x (1.86 to 2.13) faster than B`.
fn describe_faster(fast: &str, ratio: &Estimate, slow: &str) -> MarkedText {
    let faster = MarkedText::direction(false);
    marked![format!("{fast} is "), factor(ratio), " ", faster, format!(" than {slow}")]
}

/// Describes the ratio of two commands, second over first, from too few runs for an interval: `gzip
/// -1 is ~3.9x faster than gzip -6 (2 runs each, no interval: at least 5 are needed)`.
fn describe_without_interval(labels: &[String; 2], ratio: &Estimate) -> MarkedText {
    let [mut fast, mut slow] = labels.each_ref();
    let mut value = ratio.value;
    if value < 1.0 {
        std::mem::swap(&mut fast, &mut slow);
        value = 1.0 / value;
    }
    let runs = counted(ratio.rounds as usize, "run");
    marked![
        format!("{fast} is "),
        MarkedText::figure(format!("~{}x", two_digits(value))),
        " ",
        MarkedText::direction(false),
        format!(" than {slow} ({runs} each, no interval: at least 5 are needed)")
    ]
}

/// Returns `1.94x (1.86 to 2.13)`.
fn factor(ratio: &Estimate) -> MarkedText {
    let mut factor = MarkedText::figure(times(ratio.value));
    if let Some(interval) = ratio.interval() {
        factor.push(format!(" ({} to {})", figure(interval.low), figure(interval.high)));
    }
    factor
}

/// Returns first / second for second / first.
fn invert(ratio: &Estimate) -> Estimate {
    Estimate {
        value: 1.0 / ratio.value,
        low: ratio.high.map(|high| 1.0 / high),
        high: ratio.low.map(|low| 1.0 / low),
        ..*ratio
    }
}

/// Estimates the ratio of the real time of `command` to that of `base`.
fn real_time_ratio(
    record: &CommandUseRecord,
    base: &CommandSummary,
    command: &CommandSummary,
) -> Option<Estimate> {
    let pair = CommandPair { base: base.number, command: command.number };
    let runs = complete_runs(&record.runs);
    estimate_ratio(&runs, pair, |run| ComparedTime::Real.read(&run.used), &record.plan)
}

/// Returns `5,300 switches`.
fn count_words(switches: f64) -> String {
    let count = switches.round().max(0.0) as u64;
    let noun = if count == 1 { "switch" } else { "switches" };
    format!("{} {noun}", whole(count as f64))
}

/// Estimated share of a command's CPU time that switching takes.
pub(super) struct SwitchingShare {
    percents: String,
    /// True if the refill of caches is part of the share, false for the direct cost alone.
    with_refill: bool,
}

impl SwitchingShare {
    /// Returns the share, or that of the direct cost if the whole is too wide a range to be useful;
    /// `None` without an estimate or without switches.
    pub(super) fn from_summary(summary: &CommandSummary) -> Option<Self> {
        let overhead = summary.switching.as_ref()?;
        if summary.switches()? <= 0.0 {
            return None;
        }
        if let Some(share) = overhead.useful_share() {
            return Some(Self { percents: percents(share), with_refill: true });
        }
        let direct_share = overhead.useful_direct_share()?;
        Some(Self { percents: percents(direct_share), with_refill: false })
    }

    /// Returns `switching took about 0.5 to 0.8 % of the CPU time`.
    pub(super) fn in_sentence(&self) -> String {
        let Self { percents, with_refill } = self;
        if *with_refill {
            format!("switching took about {percents} of the CPU time")
        } else {
            format!(
                "switching itself took about {percents} of the CPU time, without the refill of \
                 caches"
            )
        }
    }

    /// Returns `0.5 to 0.8 %`, for a list.
    pub(super) fn in_list(self) -> String {
        if self.with_refill {
            self.percents
        } else {
            format!("{} without the refill of caches", self.percents)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_switches_have_commas() {
        assert_eq!(
            [0.0, 1.0, 5300.0].map(count_words),
            ["0 switches", "1 switch", "5,300 switches"]
        );
    }
}
