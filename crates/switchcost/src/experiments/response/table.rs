//! `switchcost response` on the terminal.

use analysis::estimate::Estimate;
use analysis::findings::TrialSummary;
use analysis::findings::gaps::GapClassFindings;
use analysis::findings::wakeup::WakeupFindings;
use analysis::marked::MarkedText;
use analysis::record::ResponseRecord;
use analysis::response::{LinkCost, LoopCost, SignalCosts};
use analysis::summary::CaseSummary;
use rundata::run::unfinished;
use rundata::trial::Trial;
use rundata::trial::gaps::GapClass;
use rundata::trial::loops::{SIGACTION, SIGNAL_SELF};

use super::answer::{brief_sleeper_words, findings, headline, measured_policy, sleeper};
use super::details::details;
use super::us;
use crate::experiments::ring::settings::under_policy;
use crate::experiments::ring::table::{by_hop, switches_words};
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    CLOCK_LEGEND, GHZ, Text, View, at_clock, count, cpu_list, figure, interval, told_interval,
    told_value, value,
};

pub(crate) fn text(record: &ResponseRecord, view: View) -> Text {
    let has_clock = !record.found.loops.is_empty()
        || !record.found.links.is_empty()
        || record.found.signals.is_some();
    let legend = if view.wide && has_clock { CLOCK_LEGEND } else { "" };
    Text {
        headline: headline(record),
        heading: format!(
            ", on CPU {}{}",
            cpu_list(&record.header.plan.cpus()),
            under_policy(measured_policy(record))
        ),
        table: printout![shown(record, view.wide), "\n"],
        details: printout![legend, "\n", details(record, view.history)],
        findings: findings(record).into_iter().map(MarkedText::from).collect(),
    }
}

/// The table of a part that was measured alone; of several the figure that stands for each case.
fn shown(record: &ResponseRecord, is_wide: bool) -> Table {
    let has = [
        !record.found.loops.is_empty() || record.found.signals.is_some(),
        !record.found.links.is_empty(),
        !record.found.gaps.is_empty(),
        !record.found.wakeups.is_empty(),
    ];
    match has {
        [false, true, false, false] => links(record, is_wide),
        [false, false, true, false] => gaps(record),
        [false, false, false, true] => wakeups(record),
        _ => all(record, is_wide),
    }
}

fn us_of(ns: Option<i64>) -> String {
    figure(ns.map(|ns| ns as f64 / 1e3))
}

/// A line of the table of several parts.
struct Line {
    what: String,
    unit: &'static str,
    median: MarkedText,
    interval: String,
    /// In cycles, and the clock.
    clock: [MarkedText; 2],
    /// The 99th percentile.
    p99: String,
}

impl Line {
    fn cells(self, is_wide: bool, has_tails: bool) -> Vec<MarkedText> {
        let mut cells = cells![self.what, self.unit, self.median, self.interval].to_vec();
        cells.extend(is_wide.then_some(self.clock).into_iter().flatten());
        cells.extend(has_tails.then_some(self.p99.into()));
        cells
    }
}

/// One without a clock and a 99th percentile.
fn line(what: impl Into<String>, unit: &'static str, median: Option<Estimate>) -> Line {
    Line {
        what: what.into(),
        unit,
        median: value(median),
        interval: interval(median),
        clock: at_clock(None, None),
        p99: String::new(),
    }
}

fn all(record: &ResponseRecord, is_wide: bool) -> Table {
    let mut lines: Vec<Line> = record.found.loops.iter().map(|of| of_loop(record, of)).collect();
    lines.extend(record.found.signals.as_ref().map(|of| of_signals(record, of)));
    lines.extend(of_links(record));
    lines.extend(record.found.gaps.iter().flat_map(|of| &of.classes).filter_map(of_interrupts));
    lines.extend(record.found.wakeups.iter().map(|of| of_wakeup(record, of)));
    let has_tails = lines.iter().any(|of| !of.p99.is_empty());
    let mut columns = vec!["", "unit", "median", "interval"];
    columns.extend(is_wide.then_some(["cycles", GHZ]).into_iter().flatten());
    columns.extend(has_tails.then_some("99 %"));
    Table::new(columns, lines.into_iter().map(|of| of.cells(is_wide, has_tails)))
}

fn of_loop(record: &ResponseRecord, cost: &LoopCost) -> Line {
    let what = match &*cost.call {
        SIGACTION => "installing a handler",
        SIGNAL_SELF => "signal to oneself",
        call => call,
    };
    Line { clock: clock_of(record.trial(cost.case)), ..line(what, "ns", cost.ns) }
}

fn of_signals(record: &ResponseRecord, of: &SignalCosts) -> Line {
    let mut trials = record.cases.iter().filter_map(|of| of.trial());
    let clock = clock_of(trials.find(|of| of.case.trial == Trial::TwoProcesses));
    Line { clock, ..line("signal there and back", "ns", of.two_process_loop_ns) }
}

/// What stands for a trial in cycles, and the clock; dashes without one.
fn clock_of(trial: Option<&TrialSummary>) -> [MarkedText; 2] {
    trial.map_or(at_clock(None, None), |of| at_clock(of.cycles, of.clock_ghz))
}

/// A switch by pipe, and of a run that ended the link with the cheapest hop.
fn of_links(record: &ResponseRecord) -> Vec<Line> {
    let rings =
        || record.found.links.iter().filter_map(|link| Some((link, record.ring(link.case)?)));
    let is_quoted = |of: &CaseSummary| of.ns_per_hop.is_some_and(|hop| hop.quote_cost().is_ok());
    let ranked =
        rings().filter(|(_, of)| is_quoted(of) && unfinished(record.end.as_ref()).is_none());
    let cheapest = ranked.min_by(|(_, one), (_, other)| by_hop(one, other));
    let pipe = rings().find(|(link, _)| link.link == "pipe");
    let clock =
        |of: &CaseSummary, cycles: Option<Estimate>| at_clock(cycles, cycles.and(of.clock_ghz));
    let switch = pipe.map(|(_, of)| Line {
        clock: clock(of, of.cycles_per_switch),
        ..line("switch by pipe", "ns", of.ns_per_switch_above_solo)
    });
    let hop = cheapest.map(|(link, of)| Line {
        clock: clock(of, of.cycles_per_hop()),
        ..line(format!("cheapest hop: {}", link.link), "ns", of.ns_per_hop)
    });
    switch.into_iter().chain(hop).collect()
}

/// The length of the gaps by interrupts; it has no interval.
fn of_interrupts(class: &GapClassFindings) -> Option<Line> {
    let length = class.length_ns.filter(|_| class.class == GapClass::Interrupt)?;
    let [median, p99] = [length.p50, length.p99].map(|ns| us_of(Some(ns)));
    let line = line("gap by an interrupt", "us", None);
    Some(Line { median: median.into(), interval: String::new(), p99, ..line })
}

fn of_wakeup(record: &ResponseRecord, found: &WakeupFindings) -> Line {
    let what = brief_sleeper_words(record, found.case);
    let p99 = us_of(found.p99_ns.map(|tail| tail.value_ns));
    Line { p99, ..line(format!("wake-up, {what}"), "us", us(found.median_ns)) }
}

/// By the whole hop, the cheapest first: send, wake, switch and receive.
fn links(record: &ResponseRecord, is_wide: bool) -> Table {
    let known = |link: &LinkCost| Some((link.link.clone(), record.ring(link.case)?));
    let mut rings: Vec<(String, &CaseSummary)> =
        record.found.links.iter().filter_map(known).collect();
    if unfinished(record.end.as_ref()).is_none() {
        rings.sort_by(|(_, one), (_, other)| by_hop(one, other));
    }
    let row = |(link, of): (String, &CaseSummary)| {
        let switch = of.ns_per_switch_above_solo.filter(|_| !of.does_not_switch);
        let hop = of.ns_per_hop;
        let mut cells = cells![link, value(hop), interval(hop), value(switch)].to_vec();
        let clock = is_wide.then(|| at_clock(of.cycles_per_switch, of.clock_ghz));
        cells.extend(clock.into_iter().flatten());
        cells.push(switches_words(of).into());
        cells
    };
    let mut columns = vec!["link", "ns/hop", "interval", "ns/switch"];
    columns.extend(is_wide.then_some(["cycles/switch", GHZ]).into_iter().flatten());
    columns.push("switches/hop");
    Table::new(columns, rings.into_iter().map(row))
}

fn gaps(record: &ResponseRecord) -> Table {
    let row = |of: &GapClassFindings| {
        let length = of.length_ns.as_ref();
        cells![
            of.class.to_string(),
            told_value(count(of.per_second)),
            told_value(count(of.lost_percent)),
            told_interval(count(of.lost_percent)),
            us_of(length.map(|of| of.p50)),
            us_of(length.map(|of| of.max)),
        ]
    };
    let columns = ["lost to", "gaps/s", "% of time", "interval", "p50 us", "max us"];
    Table::new(columns, record.found.gaps.iter().flat_map(|of| &of.classes).map(row))
}

fn wakeups(record: &ResponseRecord) -> Table {
    let row = |found: &WakeupFindings| {
        let of = sleeper(record, found.case);
        let is_awake = of.is_some_and(|(wakeup, _)| wakeup.cpu_latency_us.is_some());
        // A real-time thread has none, whatever it asked for.
        let slack = of.map(|(of, policy)| if policy.is_realtime() { 0 } else { of.timer_slack_ns });
        let slack = slack.map_or(String::new(), |ns| ns.to_string());
        cells![
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
    Table::new(columns, record.found.wakeups.iter().map(row))
}
