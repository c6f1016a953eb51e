//! `switchcost response` on the terminal.

use analysis::estimate::Estimate;
use analysis::findings::TrialSummary;
use analysis::findings::gaps::GapClassFindings;
use analysis::findings::load::LoadFindings;
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
use super::load;
use super::{us, us_cell};
use crate::experiments::ring::settings::under_policy;
use crate::experiments::ring::table::{by_hop, switches_words};
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    CLOCK_LEGEND, GHZ, ReportText, View, answer_interval, answer_value, at_clock, count, cpu_list,
    interval, value,
};

pub(crate) fn text(record: &ResponseRecord, view: View) -> ReportText {
    let has_clock = !record.found.loops.is_empty()
        || !record.found.links.is_empty()
        || record.found.signals.is_some();
    let legend = if view.wide && has_clock { CLOCK_LEGEND } else { "" };
    ReportText {
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

/// Returns the table of a part that was measured alone; of several parts the figure that stands for
/// each case.
fn shown(record: &ResponseRecord, is_wide: bool) -> Table {
    let has_calls = !record.found.loops.is_empty() || record.found.signals.is_some();
    let has_links = !record.found.links.is_empty();
    let has_gaps = !record.found.gaps.is_empty();
    let has_wakeups = !record.found.wakeups.is_empty();
    let has_loads = !record.found.loads.is_empty();
    match [has_calls, has_links, has_gaps, has_wakeups, has_loads] {
        [false, true, false, false, false] => links(record, is_wide),
        [false, false, true, false, false] => gaps(record),
        [false, false, false, true, false] => wakeups(record),
        [false, false, false, false, true] => load::report::table(record),
        _ => all_parts(record, is_wide),
    }
}

/// A line of the table of several parts.
struct PartLine {
    what: String,
    unit: &'static str,
    median: MarkedText,
    interval: String,
    /// In cycles, and the clock.
    clock: [MarkedText; 2],
    /// The 99th percentile.
    p99: String,
}

impl PartLine {
    /// Builds a line without a clock and a 99th percentile.
    fn new(what: impl Into<String>, unit: &'static str, median: Option<Estimate>) -> Self {
        Self {
            what: what.into(),
            unit,
            median: value(median),
            interval: interval(median),
            clock: at_clock(None, None),
            p99: String::new(),
        }
    }

    fn cells(self, is_wide: bool, has_tails: bool) -> Vec<MarkedText> {
        let mut cells = cells![self.what, self.unit, self.median, self.interval].to_vec();
        if is_wide {
            cells.extend(self.clock);
        }
        if has_tails {
            cells.push(self.p99.into());
        }
        cells
    }
}

fn all_parts(record: &ResponseRecord, is_wide: bool) -> Table {
    let mut lines: Vec<PartLine> = Vec::new();
    for cost in &record.found.loops {
        lines.push(loop_line(record, cost));
    }
    if let Some(signals) = &record.found.signals {
        lines.push(signals_line(record, signals));
    }
    lines.extend(link_lines(record));
    for watched in &record.found.gaps {
        lines.extend(watched.classes.iter().filter_map(interrupts_line));
    }
    for wakeup in &record.found.wakeups {
        lines.push(wakeup_line(record, wakeup));
    }
    for found in &record.found.loads {
        lines.push(load_line(record, found));
    }
    let has_tails = lines.iter().any(|line| !line.p99.is_empty());
    let mut columns = vec!["", "unit", "median", "interval"];
    if is_wide {
        columns.extend(["cycles", GHZ]);
    }
    if has_tails {
        columns.push("99 %");
    }
    Table::new(columns, lines.into_iter().map(|line| line.cells(is_wide, has_tails)))
}

fn loop_line(record: &ResponseRecord, cost: &LoopCost) -> PartLine {
    let what = match &*cost.call {
        SIGACTION => "installing a handler",
        SIGNAL_SELF => "signal to oneself",
        call => call,
    };
    let clock = trial_clock(record.trial(cost.case));
    PartLine { clock, ..PartLine::new(what, "ns", cost.ns) }
}

fn signals_line(record: &ResponseRecord, signals: &SignalCosts) -> PartLine {
    let mut trials = record.cases.iter().filter_map(|summary| summary.trial());
    let clock = trial_clock(trials.find(|trial| trial.case.trial == Trial::TwoProcesses));
    PartLine { clock, ..PartLine::new("signal there and back", "ns", signals.two_process_loop_ns) }
}

/// Returns what stands for a trial in cycles, and the clock; dashes without one.
fn trial_clock(trial: Option<&TrialSummary>) -> [MarkedText; 2] {
    match trial {
        Some(trial) => at_clock(trial.cycles, trial.clock_ghz),
        None => at_clock(None, None),
    }
}

/// Returns the measured links with the summaries of their rings.
fn linked_rings(record: &ResponseRecord) -> Vec<(&LinkCost, &CaseSummary)> {
    let mut rings = Vec::new();
    for link in &record.found.links {
        if let Some(ring) = record.ring(link.case) {
            rings.push((link, ring));
        }
    }
    rings
}

/// Returns the lines of a switch by pipe, and, of a run that ended, of the link with the cheapest
/// hop.
fn link_lines(record: &ResponseRecord) -> Vec<PartLine> {
    let rings = linked_rings(record);
    let mut lines = Vec::new();
    if let Some((_, pipe)) = rings.iter().find(|(link, _)| link.link == "pipe") {
        let line = PartLine::new("switch by pipe", "ns", pipe.ns_per_switch_above_solo);
        let clock = at_clock(pipe.cycles_per_switch, pipe.cycles_per_switch.and(pipe.clock_ghz));
        lines.push(PartLine { clock, ..line });
    }
    if unfinished(record.end.as_ref()).is_some() {
        return lines;
    }
    let ranked = rings.into_iter().filter(|(_, ring)| has_quotable_hop(ring));
    if let Some((link, ring)) = ranked.min_by(|(_, one), (_, other)| by_hop(one, other)) {
        let line = PartLine::new(format!("cheapest hop: {}", link.link), "ns", ring.ns_per_hop);
        let cycles = ring.cycles_per_hop();
        lines.push(PartLine { clock: at_clock(cycles, cycles.and(ring.clock_ghz)), ..line });
    }
    lines
}

fn has_quotable_hop(ring: &CaseSummary) -> bool {
    match ring.ns_per_hop {
        Some(hop) => hop.quote_cost().is_ok(),
        None => false,
    }
}

/// Returns the line of the length of the gaps by interrupts; it has no interval. `None` of another
/// class.
fn interrupts_line(class: &GapClassFindings) -> Option<PartLine> {
    if class.class != GapClass::Interrupt {
        return None;
    }
    let length = class.length_ns?;
    let [median, p99] = [length.p50, length.p99].map(|ns| us_cell(Some(ns)));
    let line = PartLine::new("gap by an interrupt", "us", None);
    Some(PartLine { median: median.into(), interval: String::new(), p99, ..line })
}

fn wakeup_line(record: &ResponseRecord, found: &WakeupFindings) -> PartLine {
    let what = brief_sleeper_words(record, found.case);
    let p99 = us_cell(found.p99_ns.map(|tail| tail.value_ns));
    PartLine { p99, ..PartLine::new(format!("wake-up, {what}"), "us", us(found.median_ns)) }
}

fn load_line(record: &ResponseRecord, found: &LoadFindings) -> PartLine {
    let what = format!("wake-up, {}", load::report::load_words(record, found.case));
    let Some(wake) = &found.wake else { return PartLine::new(what, "us", None) };
    let rounds = record.trial(found.case).map_or(0, |trial| trial.rounds);
    let median = wake.p50_ns.and_then(|tail| tail.estimate(rounds));
    let p99 = us_cell(wake.p99_ns.map(|tail| tail.value_ns));
    PartLine { p99, ..PartLine::new(what, "us", us(median)) }
}

/// Builds the table of links by the whole hop, the cheapest first: send, wake, switch and receive.
fn links(record: &ResponseRecord, is_wide: bool) -> Table {
    let mut rings = linked_rings(record);
    if unfinished(record.end.as_ref()).is_none() {
        rings.sort_by(|(_, one), (_, other)| by_hop(one, other));
    }
    let mut rows = Vec::new();
    for (link, ring) in rings {
        let switch = if ring.does_not_switch { None } else { ring.ns_per_switch_above_solo };
        let hop = ring.ns_per_hop;
        let mut row = cells![link.link.clone(), value(hop), interval(hop), value(switch)].to_vec();
        if is_wide {
            row.extend(at_clock(ring.cycles_per_switch, ring.clock_ghz));
        }
        row.push(switches_words(ring).into());
        rows.push(row);
    }
    let mut columns = vec!["link", "ns/hop", "interval", "ns/switch"];
    if is_wide {
        columns.extend(["cycles/switch", GHZ]);
    }
    columns.push("switches/hop");
    Table::new(columns, rows)
}

/// Builds the table of what a busy loop lost, a row a class of gaps.
fn gaps(record: &ResponseRecord) -> Table {
    let mut rows = Vec::new();
    for watched in &record.found.gaps {
        rows.extend(watched.classes.iter().map(gap_cells));
    }
    let columns = ["lost to", "gaps/s", "% of time", "interval", "p50 us", "max us"];
    Table::new(columns, rows)
}

fn gap_cells(class: &GapClassFindings) -> [MarkedText; 6] {
    let length = class.length_ns.as_ref();
    cells![
        class.class.to_string(),
        answer_value(count(class.per_second)),
        answer_value(count(class.lost_percent)),
        answer_interval(count(class.lost_percent)),
        us_cell(length.map(|length| length.p50)),
        us_cell(length.map(|length| length.max)),
    ]
}

/// Builds the table of how late sleepers are woken.
fn wakeups(record: &ResponseRecord) -> Table {
    let mut rows = Vec::new();
    for found in &record.found.wakeups {
        let (mut policy_name, mut slack_ns, mut is_awake) = (String::new(), String::new(), false);
        if let Some((wakeup, policy)) = sleeper(record, found.case) {
            policy_name = policy.to_string();
            // A real-time thread has none, whatever it asked for.
            let slack = if policy.is_realtime() { 0 } else { wakeup.timer_slack_ns };
            slack_ns = slack.to_string();
            is_awake = wakeup.cpu_latency_us.is_some();
        }
        rows.push(cells![
            policy_name,
            if is_awake { "awake".to_string() } else { found.load.to_string() },
            slack_ns,
            value(us(found.median_ns)),
            interval(us(found.median_ns)),
            us_cell(found.p99_ns.map(|tail| tail.value_ns)),
            us_cell(Some(found.late_ns.max)),
        ]);
    }
    let columns = ["policy", "CPU", "slack ns", "p50 us", "interval", "p99 us", "max us"];
    Table::new(columns, rows)
}
