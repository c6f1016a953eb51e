//! `switchcost explain` on the terminal: the chain of parts, and what would add to it.

use analysis::estimate::Estimate;
use analysis::explain::SwitchPart;
use analysis::marked::MarkedText;
use analysis::record::ExplainRecord;

use super::answer::{findings, found, headline, is_whole, whole_policy};
use crate::experiments::ring::settings::under_policy;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    Text, View, cpu_list, difference, figure, interval, told_interval, told_value, value,
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

pub(crate) fn text(record: &ExplainRecord, _view: View) -> Text {
    let (chain, added) = (chain(record), added(record));
    let mut tables = Printout::default();
    if !chain.is_empty() {
        tables.push(printout![chain, "\n"]);
    }
    if !added.is_empty() {
        tables.push(printout!["\n", added, "\n"]);
    }
    Text {
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

/// The parts in the order of a hop, their sum, the rest and the whole. Of a run that did not end
/// nothing is added up.
fn chain(record: &ExplainRecord) -> Table {
    let Some(found) = found(record) else { return rows("part", Vec::new()) };
    let whole = found.whole_ns.and_then(|of| of.quote_cost().ok()).map(|of| of.value());
    let share = |ns: Option<Estimate>| {
        let ns = ns.and_then(|of| of.quote_cost().ok()).map(|of| of.value());
        figure(ns.zip(whole).map(|(ns, whole)| 100.0 * ns / whole))
    };
    let row = |name: &str, ns: Option<Estimate>, changed_by: &str| {
        cells![name, value(ns), interval(ns), share(ns), changed_by]
    };
    let mut all: Vec<_> =
        found.parts.iter().map(|of| row(of.part.in_words(), of.ns, &of.changed_by)).collect();
    if is_whole(record) {
        all.push(row("sum", found.sum_ns, ""));
        let rest = difference(found.rest_ns);
        let share = share(found.rest_ns);
        all.push(cells!["not explained", told_value(rest), told_interval(rest), share, ""]);
    }
    all.push(row("whole", found.whole_ns, ""));
    rows("a switch by pipe", all)
}

fn rows(first: &str, all: Vec<[MarkedText; 5]>) -> Table {
    let heads = [first, "ns", "interval", "%", "changed by"];
    Table::new(heads, all).texts(|at| at == 0 || at == 4).first_to_go(&["%"])
}

/// What would add to it, in the order of the list.
fn added(record: &ExplainRecord) -> Table {
    let parts = found(record).map_or(&[][..], |of| &of.added);
    let row = |of: &SwitchPart| {
        let ns = difference(of.ns);
        cells![of.part.in_words(), told_value(ns), told_interval(ns), of.changed_by.clone()]
    };
    let heads = ["would add", "ns", "interval", "changed by"];
    let all = Table::new(heads, parts.iter().map(row));
    all.texts(|at| at == 0 || at == 3)
}
