//! The report of `switchcost trace` on the terminal.

use analysis::program::{Range, percents};
use rundata::words::{grouped, time, two_digits};

use super::report::{DurationCounts, NamedTask, PairRow, PreempterGroup, TraceReport};
use crate::base::lines::Layout;
use crate::observe::live::rows::{
    LEGEND, QuantileBucket, ShownColumns, SwitchRow, below, percent_range,
};
use crate::programs::watch::CostConclusion;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, left_out};
use crate::report::terminal::{MAX_LINES, TO_FIND_OUT, figure};

/// Rows that are printed without --verbose, which prints all.
const MAX_ROWS: usize = 12;

/// Groups of preempters that are told.
const MAX_GROUPS: usize = 3;

/// Returns the complete report, ending with a newline: the answer, the table that it rests on, the
/// lines that matter.
pub(super) fn text(trace: &TraceReport, is_verbose: bool, layout: Layout) -> Printout {
    let mut answer = trace.in_words.clone();
    if let Some(conclusion) = conclusion(trace) {
        answer = answer + &format!(" {conclusion}");
    }
    let mut parts: Vec<Printout> = vec![answer.into()];
    if !trace.rows.is_empty() {
        let heading = format!(
            "{} s; counts/s; prmpts: preempted; moves: to other CPUs; run <66us: from 33",
            figure(trace.seconds)
        );
        parts.push(printout![heading, "\n\n", rows(trace, is_verbose, layout)]);
    }
    let mut lines = lines(trace);
    if is_verbose {
        parts.push(pairs(&trace.pairs).into());
        parts.push(lengths(&trace.lengths).into());
        for line in details(trace) {
            lines.push(line.into());
        }
    } else {
        lines.truncate(MAX_LINES);
    }
    lines.push(overhead(trace).into());
    parts.push(Printout::lines(lines));
    Printout::paragraphs(parts)
}

/// Returns what to conclude; nothing for the whole machine, and where no figure is known.
fn conclusion(trace: &TraceReport) -> Option<String> {
    let total = &trace.total;
    let per_s = total.switches_per_s();
    if trace.is_of_machine() || per_s == 0.0 {
        return None;
    }
    let mut share_of_others = 0.0;
    let mut most_frequent = None;
    for group in &trace.preempters {
        if !group.is_own {
            share_of_others += group.share;
            most_frequent = most_frequent.or(Some(group.name.as_str()));
        }
    }
    let conclusion = CostConclusion {
        figure: trace.figure?,
        refill: trace.refill_share.known().copied(),
        involuntary_share: (per_s - total.voluntary_per_s) / per_s,
        preempter: if share_of_others > 0.5 { most_frequent } else { None },
        to_trace: None,
    };
    Some(conclusion.in_words())
}

fn rows(trace: &TraceReport, is_verbose: bool, layout: Layout) -> Printout {
    let shown = if is_verbose { trace.rows.len() } else { MAX_ROWS.min(trace.rows.len()) };
    let columns = ShownColumns::fitting(layout.table, 0);
    let mut lines = vec![columns.head()];
    for row in &trace.rows[..shown] {
        lines.push(columns.row(row));
    }
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

/// Returns what is missing, who preempts it, what is not known.
fn lines(trace: &TraceReport) -> Vec<Printout> {
    let mut lines = Vec::new();
    for notice in &trace.notices {
        lines.push(notice.into());
    }
    if trace.total.switches_per_s() == 0.0 {
        // There is nothing that could cost.
        return lines;
    }
    if let Some(line) = preempted_by(&trace.preempters) {
        lines.push(line.into());
    }
    match (trace.direct_share.why(), trace.refill_share.why()) {
        (Some(why), _) => lines.push(format!("cost: unknown: {why}").into()),
        (None, Some(why)) => lines.push(format!("refill of caches: unknown: {why}").into()),
        (None, None) => {}
    }
    if let Some(words) = &trace.command_to_know {
        lines.push(Printout::command(TO_FIND_OUT, words));
    }
    lines
}

/// Returns what tracing took, which is always said: it is in the figures of what was traced.
fn overhead(trace: &TraceReport) -> String {
    let overhead = trace.own.in_words();
    match trace.own.took_in_words() {
        Some(took) => format!("{overhead}; it {took}"),
        None => overhead,
    }
}

/// Returns `preempted, times a second: 59 by its own threads (85 %), 4.9 by curl (7 %)`: the
/// largest groups.
fn preempted_by(groups: &[PreempterGroup]) -> Option<String> {
    if groups.is_empty() {
        return None;
    }
    let mut named = Vec::new();
    for group in groups.iter().take(MAX_GROUPS) {
        named.push(format!("{} by {group}", grouped(group.per_s)));
    }
    Some(format!("preempted, times a second: {}", named.join(", ")))
}

fn details(trace: &TraceReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(run) = trace.profile.known() {
        lines.push(format!("cost profile: {run}"));
    }
    if let Some(refill) = trace.refill_share.known() {
        lines.push(format!("refilling caches: {} of the CPU time", percents(*refill)));
    }
    if let Some(pinning) = &trace.pinning {
        let Range { low, high } = pinning.hand_over_ns;
        let hop = format!("{} to {}", time(low), time(high));
        lines.push(format!(
            "on CPUs of their own workers hand over in {hop} (measured by {}) and no longer \
            preempt each other",
            pinning.sweep
        ));
    }
    let missed = trace.missed_switches;
    if missed > 0 {
        lines.push(format!(
            "{missed} switches of the machine are counted, but are missing in lengths and pairs, \
             as the kernel did not run the program"
        ));
    }
    lines.push(LEGEND.to_string());
    lines
}

/// Returns the most expensive pairs: from whom, to whom, how often.
fn pairs(pairs: &[PairRow]) -> Option<Table> {
    if pairs.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for pair in pairs {
        rows.push([
            NamedTask { name: pair.from.clone(), id: pair.from_id }.to_string(),
            NamedTask { name: pair.to.clone(), id: pair.to_id }.to_string(),
            grouped(pair.voluntary as f64),
            grouped(pair.involuntary as f64),
            pair.cpu_share.map_or("-".to_string(), percent_range),
        ]);
    }
    let heads = ["from", "to", "sleeps", "preempts", "CPU %"];
    Some(Table::new(heads, rows).texts(|at| at < 2))
}

/// Returns a table with a row for each bucket of durations, with the share of each column's total,
/// in percent.
fn lengths(durations: &[DurationCounts]) -> Option<Table> {
    let mut columns = Vec::from_iter(durations);
    columns.retain(|column| !column.counts.is_empty());
    if columns.is_empty() {
        return None;
    }
    let (mut first, mut end) = (usize::MAX, 0);
    let mut heads = vec!["time".to_string()];
    for column in &columns {
        let first_of_column = column.counts.iter().position(|count| *count > 0);
        first = first.min(first_of_column.unwrap_or(usize::MAX));
        end = end.max(column.counts.len());
        heads.push(format!("{} %", column.of));
    }
    let mut rows = Vec::new();
    for bucket in first..end {
        let mut row = vec![below(Some(QuantileBucket::bucket(bucket)))];
        for column in &columns {
            row.push(share_cell(column, bucket));
        }
        rows.push(row);
    }
    Some(Table::new(heads, rows))
}

/// Returns the share of a bucket in a column's total, in percent.
fn share_cell(column: &DurationCounts, bucket: usize) -> String {
    let mut sum = 0;
    for count in &column.counts {
        sum += u64::from(*count);
    }
    match column.counts.get(bucket) {
        None | Some(0) => "-".to_string(),
        Some(count) => two_digits(100.0 * f64::from(*count) / sum as f64),
    }
}
