//! `switchcost response` on the terminal.

use comfy_table::Table;
use model::estimate::Estimate;
use model::findings::gaps::{Class, ClassFound};
use model::findings::wakeup::Found;
use model::response::{LinkCost, LoopCost, Record};
use model::run::unfinished;
use model::summary::CaseSummary;
use model::trial::loops::{SIGACTION, SIGNAL_SELF};

use super::answer::{findings, headline, sleeper, sleeper_words};
use super::details::details;
use crate::ring::table::{by_hop, switches_words};
use crate::terminal::{
    Text, View, count, cpu_list, figure, interval, table, told_interval, told_value, value,
};

pub(crate) fn text(record: &Record, view: View) -> Text {
    Text {
        headline: headline(record),
        heading: format!(", on CPU {}", cpu_list(&record.header.plan.cpus())),
        table: format!("{}\n", shown(record)),
        details: details(record, view.history),
        findings: findings(record),
    }
}

/// The table of a part that was measured alone; of several the figure that stands for each case.
fn shown(record: &Record) -> Table {
    let has = [
        !record.loops.is_empty() || record.signals.is_some(),
        !record.links.is_empty(),
        !record.gaps.is_empty(),
        !record.wakeups.is_empty(),
    ];
    match has {
        [false, true, false, false] => links(record),
        [false, false, true, false] => gaps(record),
        [false, false, false, true] => wakeups(record),
        _ => all(record),
    }
}

/// Nanoseconds as microseconds.
pub(super) fn us(ns: Option<Estimate>) -> Option<Estimate> {
    ns?.scaled(1e-3)
}

fn us_of(ns: Option<i64>) -> String {
    figure(ns.map(|ns| ns as f64 / 1e3))
}

/// A line of the table of several parts: what, in which unit, its median with the interval, and the 99th percentile.
type Line = [String; 5];

fn line(what: String, unit: &str, median: Option<Estimate>, p99: String) -> Line {
    [what, unit.to_string(), value(median), interval(median), p99]
}

fn all(record: &Record) -> Table {
    let mut lines: Vec<Line> = record.loops.iter().map(of_loop).collect();
    lines.extend(record.signals.as_ref().map(|of| {
        let what = "signal there and back".to_string();
        line(what, "ns", of.two_process_loop_ns, String::new())
    }));
    lines.extend(of_links(record));
    lines.extend(record.gaps.iter().flat_map(|of| &of.classes).filter_map(of_interrupts));
    lines.extend(record.wakeups.iter().map(|of| of_wakeup(record, of)));
    let columns = ["", "unit", "median", "interval", "99 %"];
    let has_tails = lines.iter().any(|[.., p99]| !p99.is_empty());
    let width = if has_tails { columns.len() } else { columns.len() - 1 };
    table(columns[..width].to_vec(), lines.into_iter().map(|of| of[..width].to_vec()))
}

fn of_loop(cost: &LoopCost) -> Line {
    let what = match &*cost.call {
        SIGACTION => "installing a handler",
        SIGNAL_SELF => "signal to oneself",
        call => call,
    };
    line(what.to_string(), "ns", cost.ns, String::new())
}

/// A switch by pipe, and of a run that ended the link with the cheapest hop.
fn of_links(record: &Record) -> Vec<Line> {
    let rings = || record.links.iter().filter_map(|link| Some((link, record.ring(link.case)?)));
    let is_quoted = |of: &CaseSummary| of.ns_per_hop.is_some_and(|hop| hop.quote_cost().is_ok());
    let ranked =
        rings().filter(|(_, of)| is_quoted(of) && unfinished(record.end.as_ref()).is_none());
    let cheapest = ranked.min_by(|(_, one), (_, other)| by_hop(one, other));
    let pipe = rings().find(|(link, _)| link.link == "pipe");
    let switch = pipe.map(|(_, of)| {
        line("switch by pipe".to_string(), "ns", of.ns_per_switch_above_solo, String::new())
    });
    let hop = cheapest.map(|(link, of)| {
        line(format!("cheapest hop: {}", link.link), "ns", of.ns_per_hop, String::new())
    });
    switch.into_iter().chain(hop).collect()
}

/// The length of the gaps by interrupts; it has no interval.
fn of_interrupts(class: &ClassFound) -> Option<Line> {
    let length = class.length_ns.filter(|_| class.class == Class::Interrupt)?;
    let [median, p99] = [length.p50, length.p99].map(|ns| us_of(Some(ns)));
    Some(["gap by an interrupt".to_string(), "us".to_string(), median, String::new(), p99])
}

fn of_wakeup(record: &Record, found: &Found) -> Line {
    // Of the policy that everything else has nothing is said.
    let what = sleeper_words(record, found.case).replace(" CPU", "").replace(", other", "");
    let p99 = us_of(found.p99_ns.map(|tail| tail.value_ns));
    line(format!("wake-up, {what}"), "us", us(found.median_ns), p99)
}

/// By the whole hop, the cheapest first: send, wake, switch and receive.
fn links(record: &Record) -> Table {
    let known = |link: &LinkCost| Some((link.link.clone(), record.ring(link.case)?));
    let mut rings: Vec<(String, &CaseSummary)> = record.links.iter().filter_map(known).collect();
    if unfinished(record.end.as_ref()).is_none() {
        rings.sort_by(|(_, one), (_, other)| by_hop(one, other));
    }
    let row = |(link, of): (String, &CaseSummary)| {
        let switch = of.ns_per_switch_above_solo.filter(|_| !of.does_not_switch);
        let cells = [value(of.ns_per_hop), interval(of.ns_per_hop), value(switch)];
        let [hop, range, switch] = cells;
        [link, hop, range, switch, switches_words(of)]
    };
    let columns = ["link", "ns/hop", "interval", "ns/switch", "switches/hop"];
    table(columns, rings.into_iter().map(row))
}

fn gaps(record: &Record) -> Table {
    let row = |of: &ClassFound| {
        let length = of.length_ns.as_ref();
        [
            of.class.to_string(),
            told_value(count(of.per_second)),
            told_value(count(of.lost_percent)),
            told_interval(count(of.lost_percent)),
            us_of(length.map(|of| of.p50)),
            us_of(length.map(|of| of.max)),
        ]
    };
    let columns = ["lost to", "gaps/s", "% of time", "interval", "p50 us", "max us"];
    table(columns, record.gaps.iter().flat_map(|of| &of.classes).map(row))
}

fn wakeups(record: &Record) -> Table {
    let row = |found: &Found| {
        let of = sleeper(record, found.case);
        let is_awake = of.is_some_and(|(wakeup, _)| wakeup.cpu_latency_us.is_some());
        // A real-time thread has none, whatever it asked for.
        let slack = of.map(|(of, policy)| if policy.is_realtime() { 0 } else { of.timer_slack_ns });
        let slack = slack.map_or(String::new(), |ns| ns.to_string());
        [
            of.map_or(String::new(), |(_, policy)| policy.to_string()),
            if is_awake { "awake".to_string() } else { found.load.to_string() },
            slack,
            value(us(found.median_ns)),
            interval(us(found.median_ns)),
            us_of(found.p99_ns.map(|tail| tail.value_ns)),
            us_of(Some(found.late_ns.max)),
        ]
    };
    let columns = ["policy", "CPU", "slack ns", "p50 us", "interval", "p99 us", "max us"];
    table(columns, record.wakeups.iter().map(row))
}
