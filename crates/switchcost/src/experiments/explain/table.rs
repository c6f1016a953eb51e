//! `switchcost explain` on the terminal: the chain of parts, and what would add to it.

use analysis::estimate::Estimate;
use analysis::marked::MarkedText;
use analysis::record::ExplainRecord;

use super::answer::{findings, found, headline, is_whole, whole_policy};
use crate::experiments::ring::settings::under_policy;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    ReportText, View, answer_interval, answer_value, cpu_list, difference, figure, interval, value,
};

const LEGEND: &str = "whole: a hop of the ring of two by pipe, measured by itself; two system \
    calls: twice getuid; pipe: the solo ring less these; scheduler: a switch by yield between \
    threads, above solo, less its call; address space: the same between processes, less that of \
    threads; sleep/wake-up: a switch by eventfd between threads, above solo, less the \
    scheduler; rest: the whole less the sum, signed\n\
    added: the same ring with one thing more, less the ring without it; 100 runnable: a switch among \
    100 threads that yield less one of two; in use: above those of the ring that uses none; \
    leaving idle, timer slack: medians of a sleeper's lateness, less those of one without\n\
    changed by: parameters of the kernel's command line (boot), settings, kinds of link\n";

pub(crate) fn text(record: &ExplainRecord, _view: View) -> ReportText {
    let (chain, added) = (chain(record), added(record));
    let mut tables = Printout::default();
    if !chain.is_empty() {
        tables.push(printout![chain, "\n"]);
    }
    if !added.is_empty() {
        tables.push(printout!["\n", added, "\n"]);
    }
    ReportText {
        headline: headline(record),
        heading: format!(
            ", on CPU {}{}",
            cpu_list(&record.header.plan.cpus()),
            policy_words(record)
        ),
        table: tables,
        details: LEGEND.into(),
        findings: findings(record).into_iter().map(MarkedText::from).collect(),
    }
}

/// Returns ` under fifo` of a run under it; nothing under the normal policy.
pub(crate) fn policy_words(record: &ExplainRecord) -> String {
    under_policy(whole_policy(record))
}

/// Returns the parts in the order of a hop, their sum, the rest and the whole. Of a run that did not
/// end nothing is added up.
fn chain(record: &ExplainRecord) -> Table {
    let Some(found) = found(record) else { return part_table("part", Vec::new()) };
    let whole_ns = quotable_ns(found.whole_ns);
    let mut rows = Vec::new();
    for part in &found.parts {
        rows.push(part_row(part.part.in_words(), part.ns, whole_ns, &part.changed_by));
    }
    if is_whole(record) {
        rows.push(part_row("sum", found.sum_ns, whole_ns, ""));
        let rest = difference(found.rest_ns);
        let percent = percent_cell(found.rest_ns, whole_ns);
        rows.push(cells!["not explained", answer_value(rest), answer_interval(rest), percent, ""]);
    }
    rows.push(part_row("whole", found.whole_ns, whole_ns, ""));
    part_table("a switch by pipe", rows)
}

fn part_row(
    name: &str,
    ns: Option<Estimate>,
    whole_ns: Option<f64>,
    changed_by: &str,
) -> [MarkedText; 5] {
    cells![name, value(ns), interval(ns), percent_cell(ns, whole_ns), changed_by]
}

/// Returns a cost in nanoseconds if it may be quoted.
fn quotable_ns(cost: Option<Estimate>) -> Option<f64> {
    Some(cost?.quote_cost().ok()?.value())
}

/// Returns what a part is of the whole, as a percentage.
fn percent_cell(part: Option<Estimate>, whole_ns: Option<f64>) -> String {
    match (quotable_ns(part), whole_ns) {
        (Some(part_ns), Some(whole_ns)) => figure(100.0 * part_ns / whole_ns),
        _ => figure(None),
    }
}

fn part_table(first: &str, rows: Vec<[MarkedText; 5]>) -> Table {
    let heads = [first, "ns", "interval", "%", "changed by"];
    Table::new(heads, rows).texts(|column| column == 0 || column == 4).first_to_go(&["%"])
}

/// Returns what would add to a switch, in the order of the list.
fn added(record: &ExplainRecord) -> Table {
    let mut rows = Vec::new();
    for part in found(record).map_or(&[][..], |found| &found.added) {
        let ns = difference(part.ns);
        let name = part.part.in_words();
        rows.push(cells![name, answer_value(ns), answer_interval(ns), part.changed_by.clone()]);
    }
    let heads = ["would add", "ns", "interval", "changed by"];
    Table::new(heads, rows).texts(|column| column == 0 || column == 3)
}
