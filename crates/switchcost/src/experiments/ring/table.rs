//! `switchcost ring` on the terminal.

use std::cmp::Ordering;

use analysis::marked::MarkedText;
use analysis::measures::{
    ColumnUnit, ColumnVisibility, MEASURES, MeasureValue, NS_PER_HOP, NS_PER_SWITCH, ROUNDS,
    RingMeasure,
};
use analysis::noise::{NoiseLevel, NoiseVerdict};
use analysis::quote::NotQuotable;
use analysis::record::RingRecord;
use analysis::summary::{CaseSummary, NoCost, Spread};
use rundata::ring::RingCase;
use rundata::run::unfinished;
use rundata::words;

use super::answer::headline;
use super::at_once;
use super::flight;
use super::history;
use super::settings::{RingSettings, listed, not_switching, placements, states};
use crate::experiments::events;
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    self, CLOCK_LEGEND, ReportText, View, estimate_words, figure, interval,
};

const LEGEND: &str = "ns/hop, ns/switch: at the CPU's full speed and undisturbed (clean slices)\n\
     ns/switch: what a hop costs above the ring of one / counted switches, 95 % interval \
     with the scatter between launches";

const WIDE_LEGEND: &str = "real to projected: seconds for a million laps (a lap has as many hops as the ring has \
     members), mean of all samples; projected = CPU(2) x members / 2\n\
     clean: share of clean slices";

const DISAGREE: &str = "! over 5 % more or fewer switches than hops: often wake-up preemption";

pub(crate) fn text(record: &RingRecord, view: View) -> ReportText {
    let settings = &RingSettings::from_record(record);
    let mut legend = vec![LEGEND];
    if at_once::has_several_rings(record) {
        legend.extend(at_once::legend(record));
    }
    if view.wide {
        legend.push(WIDE_LEGEND);
    }
    let two_mechanisms = flight::links_with_two_mechanisms(record);
    legend.extend(two_mechanisms.iter().map(String::as_str));
    let disagrees = record.cases.iter().any(|case| case.counts_disagree);
    let mut details = printout![legend.join("\n"), "\n"];
    if view.wide {
        details.push(CLOCK_LEGEND);
    }
    if let Some(line) = placements(record) {
        details.push(line + "\n");
    }
    if let Some(states) = states(record, settings) {
        details.push(printout!["\n", states, "\n"]);
    }
    let counted = events::counted(&record.cases, |summary| settings.ring(&summary.case));
    if let Some(table) = counted {
        details.push(printout!["\n", table, "\n"]);
    }
    for line in further(record, settings) {
        details.push(line + "\n");
    }
    let mark = if disagrees { format!("\n{DISAGREE}\n") } else { String::new() };
    let mut table = printout![table(record, settings, view), "\n", mark];
    if view.history {
        if let Some(published) = history::beside_published(record) {
            table.push(printout!["\n", published]);
        }
    }
    ReportText {
        headline: headline(record),
        heading: heading(record, settings),
        table,
        details,
        findings: findings(record, settings),
    }
}

fn heading(record: &RingRecord, settings: &RingSettings) -> String {
    let Some((_, case)) = record.header.plan.rings().find(|(_, case)| case.members > 1) else {
        return String::new();
    };
    let (links, placement) = settings.links_and_placement(case);
    let work = match case.work {
        Some(work) => {
            let (bytes, stride) = (words::bytes(work.bytes), words::bytes(work.stride_bytes));
            format!("{} of {bytes} by {stride}", work.op)
        }
        None => "no work".to_string(),
    };
    let (kind, policies) = (case.kind, settings.policies());
    format!("\n{kind} members by {links}, {policies}, placement {placement}, {work}")
}

fn table(record: &RingRecord, settings: &RingSettings, view: View) -> Table {
    if at_once::has_several_rings(record) {
        at_once::table(record, settings)
    } else if settings.has_settings() && !view.wide {
        by_setting(record, settings)
    } else {
        by_size(record, settings, view)
    }
}

fn by_size(record: &RingRecord, settings: &RingSettings, view: View) -> Table {
    let cases = settings.in_order(record);
    let columns = measure_columns(&cases, view.wide);
    let mut heads = settings.header();
    heads.push("members".to_string());
    for measure in &columns {
        heads.extend(measure_heads(measure).into_iter().map(String::from));
    }
    let mut rows = Vec::new();
    for case in cases {
        let mut cells = texts(settings.cells(&case.case));
        cells.push(case.case.members.to_string().into());
        for measure in &columns {
            cells.extend(measure_cells(measure, case));
        }
        rows.push(cells);
    }
    Table::new(heads, rows).first_to_go(&order_of_leaving(&columns))
}

/// Returns the measures that have columns in the table of these cases.
fn measure_columns(cases: &[&CaseSummary], is_wide: bool) -> Vec<&'static RingMeasure> {
    let mut columns = Vec::new();
    for measure in MEASURES {
        let is_shown = match measure.shown {
            ColumnVisibility::Always => true,
            ColumnVisibility::SeveralRings | ColumnVisibility::RingsInFlight => false,
            ColumnVisibility::Wide => is_wide,
            ColumnVisibility::WhereSet => {
                cases.iter().any(|case| (measure.read)(case) == MeasureValue::Flag(true))
            }
            ColumnVisibility::WhereKnown => {
                cases.iter().any(|case| (measure.read)(case) != MeasureValue::Unknown)
            }
        };
        if is_shown {
            columns.push(measure);
        }
    }
    columns
}

/// Returns what stands above the columns of a measure.
pub(super) fn measure_heads(measure: &RingMeasure) -> Vec<&'static str> {
    if measure.has_interval { vec![measure.title, "interval"] } else { vec![measure.title] }
}

/// Returns the heads of these measures in the order in which a narrow table loses them: the least
/// important first, of equals the last.
pub(super) fn order_of_leaving(columns: &[&'static RingMeasure]) -> Vec<&'static str> {
    let mut leaving = columns.to_vec();
    leaving.reverse();
    leaving.sort_by_key(|measure| measure.priority);
    let mut heads = Vec::new();
    for measure in leaving {
        heads.extend(measure_heads(measure).into_iter().rev());
    }
    heads
}

/// Returns what a case has of a measure: its value, and the interval where that has a column.
pub(super) fn measure_cells(measure: &RingMeasure, case: &CaseSummary) -> Vec<MarkedText> {
    let value = (measure.read)(case);
    if measure.has_interval { cost_cells(value).into() } else { vec![cell(measure.unit, value)] }
}

/// Returns a value in the digits of its unit; a dash for what is not known.
fn cell(unit: ColumnUnit, value: MeasureValue) -> MarkedText {
    let number = match value {
        MeasureValue::Number(number) => number,
        MeasureValue::Count(estimate) => estimate.value,
        MeasureValue::Cost(estimate) => return terminal::value(Some(estimate)),
        MeasureValue::Flag(is_set) => return if is_set { "!" } else { "" }.into(),
        MeasureValue::NoCost(_) | MeasureValue::Unknown => return figure(None).into(),
    };
    let text = match unit {
        ColumnUnit::PerHop => format!("{number:.3}"),
        ColumnUnit::Gigahertz => format!("{number:.2}"),
        ColumnUnit::Share => format!("{:.0}", number * 100.0),
        ColumnUnit::Whole => format!("{number:.0}"),
        ColumnUnit::Nanoseconds
        | ColumnUnit::Seconds
        | ColumnUnit::Cycles
        | ColumnUnit::PerSecond
        | ColumnUnit::Flag => figure(number),
    };
    text.into()
}

/// Returns a cost and its interval, or a dash and why there is none.
fn cost_cells(value: MeasureValue) -> [MarkedText; 2] {
    match value {
        MeasureValue::Cost(cost) => cells![terminal::value(Some(cost)), interval(Some(cost))],
        MeasureValue::NoCost(why) => cells!["-", no_cost_words(why)],
        MeasureValue::Count(_)
        | MeasureValue::Number(_)
        | MeasureValue::Flag(_)
        | MeasureValue::Unknown => {
            cells![figure(None), figure(None)]
        }
    }
}

/// Returns why a case has no cost of a switch, in words.
fn no_cost_words(why: NoCost) -> &'static str {
    match why {
        NoCost::Solo => "(solo)",
        NoCost::SeveralItems => "several items",
        NoCost::DoesNotSwitch => "does not switch",
        NoCost::NotMeasured => "not measured",
        NoCost::NoSwitchCounted => "no switch counted",
        NoCost::NoSoloRing => "no solo ring beside it",
    }
}

/// Builds the table of rings that differ in more than their size, without the solo rings: the
/// cheapest hop first, as that is what waking another costs in all. Each policy has a ranking of
/// its own.
fn by_setting(record: &RingRecord, settings: &RingSettings) -> Table {
    let mut rings: Vec<&CaseSummary> = record.cases.iter().collect();
    rings.retain(|summary| summary.case.members > 1);
    let is_whole = unfinished(record.end.as_ref()).is_none();
    rings.sort_by(|one, other| {
        let [rank, other_rank] = [one, other].map(|ring| settings.policy_rank(&ring.case));
        let by_size = one.case.members.cmp(&other.case.members);
        let by_hop = if is_whole { by_hop(one, other) } else { Ordering::Equal };
        by_size.then(rank.cmp(&other_rank)).then(by_hop)
    });
    let has_sizes = rings.iter().any(|ring| ring.case.members != rings[0].case.members);
    let mut columns = measure_columns(&rings, false);
    columns.retain(|measure| !has_sizes || measure.id != ROUNDS.id);
    // What they are ranked by stands first, and goes last.
    columns.sort_by_key(|measure| measure.id != NS_PER_HOP.id);
    let mut leaving = order_of_leaving(&columns);
    leaving.sort_by_key(|head| *head == NS_PER_HOP.title);
    let mut heads = settings.header();
    if has_sizes {
        heads.push("members".to_string());
    }
    heads.extend(columns.iter().map(|measure| measure.title.to_string()));
    let mut rows = Vec::new();
    for case in rings {
        let mut cells = texts(settings.cells(&case.case));
        if has_sizes {
            cells.push(case.case.members.to_string().into());
        }
        cells.extend(columns.iter().map(|measure| cell_with_interval(measure, case)));
        rows.push(cells);
    }
    Table::new(heads, rows).first_to_go(&leaving)
}

/// Returns what a case has of a measure in one cell, a cost with its interval.
fn cell_with_interval(measure: &RingMeasure, case: &CaseSummary) -> MarkedText {
    match (measure.read)(case) {
        _ if measure.id == NS_PER_HOP.id => hop_words(case),
        _ if measure.id == NS_PER_SWITCH.id => switch_words(case),
        value => cell(measure.unit, value),
    }
}

/// Returns the time of a hop with its interval, or why there is none.
fn hop_words(summary: &CaseSummary) -> MarkedText {
    match why_no_hop(summary) {
        Some(NotQuotable::NotAlone) => "its CPU was shared".into(),
        _ => estimate_words(summary.ns_per_hop),
    }
}

/// Returns why the time of a hop has no answer; `None` if it has, or was not measured.
fn why_no_hop(summary: &CaseSummary) -> Option<NotQuotable> {
    summary.ns_per_hop?.answer_cost().err()
}

/// Returns the cost of a switch with its interval, or why that is not known where the hop's reason
/// does not say so.
fn switch_words(summary: &CaseSummary) -> MarkedText {
    if summary.does_not_switch {
        return "does not switch".into();
    }
    let Some(cost) = summary.ns_per_switch_above_solo else {
        let [_, why] = cost_words(summary);
        return why;
    };
    match cost.answer_cost().err() {
        None => estimate_words(Some(cost)),
        why if why == why_no_hop(summary) => "-".into(),
        Some(NotQuotable::NotAlone) => "CPU shared".into(),
        Some(NotQuotable::NotAtFullSpeed) => "no full speed".into(),
        Some(NotQuotable::NotResolved { .. }) => "not resolved".into(),
        Some(few @ NotQuotable::TooFewRounds(_)) => few.to_string().into(),
    }
}

/// Orders cases by the time of a hop; those that may not be quoted come last.
pub(crate) fn by_hop(one: &CaseSummary, other: &CaseSummary) -> Ordering {
    rank_hop(one).total_cmp(&rank_hop(other))
}

/// Returns the time of a hop in nanoseconds; infinity where it may not be quoted.
fn rank_hop(summary: &CaseSummary) -> f64 {
    let Some(hop) = summary.ns_per_hop else { return f64::INFINITY };
    match hop.quote_cost() {
        Ok(quoted) => quoted.value(),
        Err(_) => f64::INFINITY,
    }
}

/// Returns cells that are words.
pub(super) fn texts(cells: Vec<String>) -> Vec<MarkedText> {
    cells.into_iter().map(MarkedText::from).collect()
}

/// Returns the switches per hop as the kernel counted them.
pub(crate) fn switches_words(case: &CaseSummary) -> String {
    match case.switches_per_hop {
        Some(switches) => format!("{:.3}", switches.value),
        None => "-".to_string(),
    }
}

/// Returns the cost of a switch and its interval, or why there is none.
pub(crate) fn cost_words(case: &CaseSummary) -> [MarkedText; 2] {
    cost_cells((NS_PER_SWITCH.read)(case))
}

fn findings(record: &RingRecord, settings: &RingSettings) -> Vec<MarkedText> {
    let idle = not_switching(&record.cases, |case| settings.ring_and_link(case));
    let mut findings: Vec<MarkedText> = idle.into_iter().map(MarkedText::from).collect();
    findings.extend(at_once::findings(record, settings).into_iter().map(MarkedText::from));
    findings
}

/// Returns lines on scaling laws, and on the figures of all slices.
fn further(record: &RingRecord, settings: &RingSettings) -> Vec<String> {
    let mut lines = settings.scaling(record);
    lines.extend(at_once::laws(record, settings));
    let what = "how the cost of a switch follows the core's clock (1: bound by the core, 0: \
        bound by memory)";
    lines.extend(listed(what, &record.cases, |case| {
        case.two_parts.as_ref()?;
        let power = case.elasticity?;
        let words = format!(
            "{}: {:.2} +-{:.2}",
            settings.ring(&case.case),
            power.value,
            power.standard_error
        );
        Some(words + &two_parts_words(case))
    }));
    lines.extend(by_cpu_time(&record.cases, &record.noise, |case| settings.ring(case)));
    let what = "ns/switch of all slices, at any speed, median (middle half of the rounds)";
    lines.extend(listed(what, &record.cases, |case| {
        let all = case.contended_ns_per_switch_above_solo?;
        Some(format!("{}: {}", settings.ring(&case.case), spread_words(&all)))
    }));
    lines
}

/// Returns `, 1,200 cycles and 340 ns of memory`; empty unless both are resolved.
fn two_parts_words(summary: &CaseSummary) -> String {
    let Some(parts) = summary.two_parts else { return String::new() };
    match (parts.core_cycles.quote_cost(), parts.memory_ns.quote_cost()) {
        (Ok(cycles), Ok(memory)) => {
            let memory = words::time(memory.value());
            format!(", {} cycles and {memory} of memory", cycles.whole())
        }
        _ => String::new(),
    }
}

/// Returns median and middle half of costs at whatever speed, if none is below zero.
fn spread_words(spread: &Spread) -> String {
    let (low, high) = (spread.lower_quartile, spread.upper_quartile);
    if low > 0.0 {
        format!("{} ({} to {})", figure(spread.median), figure(low), figure(high))
    } else {
        NotQuotable::NotResolved { low, high }.to_string()
    }
}

/// Returns a line on the cost of a switch by CPU time, which other work on the CPU does not enter;
/// `None` where the machine was quiet. `name` is what a ring is called.
pub(crate) fn by_cpu_time<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    noise: &NoiseVerdict,
    name: impl Fn(&RingCase) -> String,
) -> Option<String> {
    if !matches!(noise.level, NoiseLevel::Noisy | NoiseLevel::Unusable) {
        return None;
    }
    let what = "ns/switch by CPU time, without other work on the CPU";
    listed(what, cases, |case| {
        let cost = case.cpu_ns_per_switch_above_solo?;
        Some(format!("{}: {}", name(&case.case), estimate_words(Some(cost))))
    })
}
