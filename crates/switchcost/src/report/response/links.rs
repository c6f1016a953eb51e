//! Every link in one table.

use model::record::CaseSummary;
use model::response::{LinkCost, Record};
use model::ring::Case;

use crate::report::comparison::not_switching;
use crate::report::parts::{align, figure, interval_words, table};
use crate::report::terminal::{by_cpu_time, cost_words};

const LEGEND: &str = "a hop: one receive and one send by each of two processes on one CPU; ns/switch: what a hop costs above solo / switches as\n\
counted; above pipe: ns/switch less the pipe's of the same round\n";

/// The section, ending with a newline; none without a link.
pub(super) fn section(record: &Record) -> Option<String> {
    if record.links.is_empty() {
        return None;
    }
    let mut table = table([
        "link",
        "ns/hop",
        "switches/hop",
        "ns/switch",
        "interval",
        "above pipe",
        "interval",
        "rounds",
    ]);
    for link in &record.links {
        if let Some(summary) = record.ring(link.case) {
            table.add_row(row(link, summary));
        }
    }
    align(&mut table);
    let mut text = format!("links\n\n{table}\n\n{LEGEND}");
    let rings = record.links.iter().filter_map(|link| record.ring(link.case));
    let by_link = |case: &Case| case.link.clone();
    let by_cpu = by_cpu_time(rings.clone(), &record.noise, by_link);
    text.extend(by_cpu.map(|line| format!("{line}\n")));
    text.extend(not_switching(rings, ring_words).map(|line| format!("{line}\n")));
    Some(text)
}

fn ring_words(case: &Case) -> String {
    format!("{} by {}", case.members, case.link)
}

fn row(link: &LinkCost, summary: &CaseSummary) -> [String; 8] {
    let (cost, interval) = cost_words(summary);
    let above = link.above_pipe_ns.as_ref().filter(|_| !summary.does_not_switch);
    [
        link.link.clone(),
        figure(summary.ns_per_hop.map(|e| e.value)),
        summary.switches_per_hop.map_or("-".to_string(), |e| format!("{:.3}", e.value)),
        cost,
        interval,
        figure(above.map(|e| e.value)),
        above.map_or("-".to_string(), interval_words),
        summary.rounds.to_string(),
    ]
}
