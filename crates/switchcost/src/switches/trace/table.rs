//! `switchcost trace` on the terminal.

use analysis::program::{Range, percents};
use rundata::words::{grouped, time, two_digits};

use super::report::{DurationCounts, PairRow, PreempterGroup, TraceReport};
use crate::base::lines::Layout;
use crate::observe::live::rows::{
    LEGEND, QuantileBucket, ShownColumns, SwitchRow, below, percent_range,
};
use crate::programs::watch::Conclusion;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, left_out};
use crate::report::terminal::{MOST_LINES, TO_FIND_OUT, figure};

/// Rows that are printed without --verbose, which prints all.
const MOST_ROWS: usize = 12;

/// The whole report, ending with a newline: the answer, the table that it rests on, the lines that
/// matter.
pub(super) fn text(trace: &TraceReport, is_verbose: bool, layout: Layout) -> Printout {
    let heading = format!(
        "{} s; counts/s; prmpts: preempted; moves: to other CPUs; <66us: 33 to 66 us",
        figure(trace.seconds)
    );
    let conclusion = conclusion(trace).map_or(String::new(), |words| format!(" {words}"));
    let mut parts: Vec<Printout> = vec![(trace.in_words.clone() + &conclusion).into()];
    if !trace.rows.is_empty() {
        parts.push(printout![heading, "\n\n", rows(trace, is_verbose, layout)]);
    }
    let mut lines = lines(trace);
    if is_verbose {
        parts.extend([pairs(&trace.pairs).into(), lengths(&trace.lengths).into()]);
        lines.extend(details(trace).into_iter().map(Printout::from));
    } else {
        lines.truncate(MOST_LINES);
    }
    lines.push(own(trace).into());
    parts.push(Printout::lines(lines));
    Printout::paragraphs(parts)
}

/// What to conclude; nothing of the whole machine, and where no figure is known.
fn conclusion(trace: &TraceReport) -> Option<String> {
    let total = &trace.total;
    let per_s = total.switches_per_s();
    if trace.is_of_machine() || per_s == 0.0 {
        return None;
    }
    let involuntary_per_s = per_s - total.voluntary_per_s;
    let others = trace.preempters.iter().filter(|group| !group.is_own);
    let by_others: f64 = others.clone().map(|group| group.share).sum();
    let worst = others.clone().next().filter(|_| by_others > 0.5);
    let conclusion = Conclusion {
        figure: trace.figure?,
        refill: trace.refill_share.known().copied(),
        involuntary_share: involuntary_per_s / per_s,
        preempter: worst.map(|group| group.name.as_str()),
        to_trace: None,
    };
    Some(conclusion.in_words())
}

fn rows(trace: &TraceReport, is_verbose: bool, layout: Layout) -> Printout {
    let shown = if is_verbose { trace.rows.len() } else { MOST_ROWS.min(trace.rows.len()) };
    let columns = ShownColumns::of(layout.table, 0);
    let mut lines = vec![columns.head()];
    lines.extend(trace.rows[..shown].iter().map(|row| columns.row(row)));
    let more = &trace.rows[shown..];
    if !more.is_empty() {
        let per_s: f64 = more.iter().map(SwitchRow::switches_per_s).sum();
        let (count, per_s) = (grouped(more.len() as f64), grouped(per_s));
        lines.push(format!("{count} more: {per_s} switches a second (--verbose)"));
    }
    // As other tables say it.
    let left_out = left_out(&columns.left_out).map(|words| format!("\n\n{words}"));
    printout![Printout::drawing(lines.join("\n")), left_out]
}

/// What is missing, who preempts it, what is not known.
fn lines(trace: &TraceReport) -> Vec<Printout> {
    let mut lines: Vec<Printout> = trace.notices.iter().map(Printout::from).collect();
    if trace.total.switches_per_s() == 0.0 {
        // There is nothing that could cost.
        return lines;
    }
    lines.extend(preempted_by(&trace.preempters).map(Printout::from));
    let not_known = trace.refill_share.why().filter(|_| trace.direct_share.known().is_some());
    lines.extend(not_known.map(|why| format!("refill of caches: unknown: {why}").into()));
    let cost = trace.direct_share.why();
    lines.extend(cost.map(|why| Printout::from(format!("cost: unknown: {why}"))));
    let to_know = trace.command_to_know.as_ref();
    lines.extend(to_know.map(|words| Printout::command(TO_FIND_OUT, words)));
    lines
}

/// What tracing took, which is always said: it is in the figures of what was traced.
fn own(trace: &TraceReport) -> String {
    let took = trace.own.took_in_words().map_or(String::new(), |took| format!("; it {took}"));
    trace.own.in_words() + &took
}

/// `preempted, times a second: 59 by its own threads (85 %), 4.9 by curl (7 %)`: the three largest
/// groups.
fn preempted_by(groups: &[PreempterGroup]) -> Option<String> {
    let mut named = Vec::new();
    for group in groups.iter().take(3) {
        named.push(format!("{} by {group}", grouped(group.per_s)));
    }
    (!named.is_empty()).then(|| format!("preempted, times a second: {}", named.join(", ")))
}

fn details(trace: &TraceReport) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(trace.profile.known().map(|run| format!("cost profile: {run}")));
    let refill = trace.refill_share.known();
    lines.extend(refill.map(|of| format!("refilling caches: {} of the CPU time", percents(*of))));
    lines.extend(trace.pinning.as_ref().map(|of| {
        let Range { low, high } = of.hand_over_ns;
        let hop = format!("{} to {}", time(low), time(high));
        format!(
            "on CPUs of their own workers hand over in {hop} (measured by {}) and no longer \
            preempt each other",
            of.sweep
        )
    }));
    let missed = trace.missed_switches;
    lines.extend((missed > 0).then(|| {
        format!(
            "{missed} switches of the machine are counted, but are missing in lengths and pairs, \
             as the kernel did not run the program"
        )
    }));
    lines.push(LEGEND.to_string());
    lines
}

/// The most expensive pairs: from whom, to whom, how often.
fn pairs(pairs: &[PairRow]) -> Option<Table> {
    if pairs.is_empty() {
        return None;
    }
    let name = |name: &str, id: Option<u32>| match id {
        Some(id) => format!("{name} ({id})"),
        None => name.to_string(),
    };
    let row = |of: &PairRow| {
        let (from, to) = (name(&of.from, of.from_id), name(&of.to, of.to_id));
        let [sleeps, preempted] = [of.voluntary, of.involuntary].map(|of| grouped(of as f64));
        let cost = of.cpu_share.map_or("-".to_string(), percent_range);
        [from, to, sleeps, preempted, cost]
    };
    let heads = ["from", "to", "sleeps", "preempts", "CPU %"];
    Some(Table::new(heads, pairs.iter().map(row)).texts(|at| at < 2))
}

/// A row for each length, with the share of each column's total, in percent.
fn lengths(all: &[DurationCounts]) -> Option<Table> {
    let all: Vec<&DurationCounts> = all.iter().filter(|of| !of.counts.is_empty()).collect();
    let rows = all.iter().map(|of| of.counts.len()).max().unwrap_or(0);
    let first = all.iter().filter_map(|of| of.counts.iter().position(|count| *count > 0)).min();
    let share = |of: &DurationCounts, bucket: usize| {
        let sum: u64 = of.counts.iter().copied().map(u64::from).sum();
        match of.counts.get(bucket).copied().unwrap_or(0) {
            0 => "-".to_string(),
            count => two_digits(100.0 * f64::from(count) / sum as f64),
        }
    };
    let row = |bucket: usize| {
        let time = below(Some(QuantileBucket::bucket(bucket)));
        std::iter::once(time).chain(all.iter().map(move |of| share(of, bucket)))
    };
    let heads =
        std::iter::once("time".to_string()).chain(all.iter().map(|of| format!("{} %", of.of)));
    let rows = (first.unwrap_or(0)..rows).map(row);
    (!all.is_empty()).then(|| Table::new(heads, rows))
}
