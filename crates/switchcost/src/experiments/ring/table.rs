//! `switchcost ring` on the terminal.

use std::cmp::Ordering;

use analysis::marked::MarkedText;
use analysis::measures::{
    MEASURES, Measure, NS_PER_HOP, NS_PER_SWITCH, ROUNDS, Shown, Unit, Value,
};
use analysis::noise::{NoiseLevel, NoiseVerdict};
use analysis::quote::NotQuotable;
use analysis::record::RingRecord;
use analysis::summary::{CaseSummary, NoCost, Spread};
use rundata::ring::Case;
use rundata::run::unfinished;
use rundata::words;

use super::answer::headline;
use super::comparison::{Comparison, listed, not_switching, placements, states};
use super::history;
use crate::experiments::events;
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{self, CLOCK_LEGEND, Text, View, estimate_words, figure, interval};

const LEGEND: &str = "ns/hop, ns/switch: at the CPU's full speed and undisturbed (clean slices)\n\
     ns/switch: what a hop costs above the ring of one / counted switches, 95 % interval \
     with the scatter between launches";

const WIDE_LEGEND: &str = "real to projected: seconds for a million laps (a lap has as many hops as the ring has \
     members), mean of all samples; projected = CPU(2) x members / 2\n\
     clean: share of clean slices";

const DISAGREE: &str = "! over 5 % more or fewer switches than hops: often wake-up preemption";

pub(crate) fn text(record: &RingRecord, view: View) -> Text {
    let comparison = &Comparison::of(record);
    let mut legend = vec![LEGEND];
    legend.extend(view.wide.then_some(WIDE_LEGEND));
    let disagrees = record.cases.iter().any(|case| case.counts_disagree);
    let mut details = printout![legend.join("\n"), "\n"];
    details.push(view.wide.then_some(CLOCK_LEGEND));
    details.push(placements(record).map(|line| format!("{line}\n")));
    details.push(states(record, comparison).map(|states| printout!["\n", states, "\n"]));
    let ring = |of: &CaseSummary| comparison.ring(&of.case);
    details.push(events::counted(&record.cases, ring).map(|table| printout!["\n", table, "\n"]));
    for line in further(record, comparison) {
        details.push(line + "\n");
    }
    let mark = if disagrees { format!("\n{DISAGREE}\n") } else { String::new() };
    let published = view.history.then(|| history::beside_published(record)).flatten();
    let published = published.map(|table| printout!["\n", table]);
    Text {
        headline: headline(record),
        heading: heading(record, comparison),
        table: printout![table(record, comparison, view), "\n", mark, published],
        details,
        findings: findings(record, comparison),
    }
}

fn heading(record: &RingRecord, comparison: &Comparison) -> String {
    let Some((_, case)) = record.header.plan.rings().find(|(_, case)| case.members > 1) else {
        return String::new();
    };
    let (links, placement) = comparison.links_and_placement(case);
    let work = case.work.map_or("no work".to_string(), |work| {
        format!(
            "{} of {} by {}",
            work.op,
            words::bytes(work.bytes),
            words::bytes(work.stride_bytes)
        )
    });
    let (kind, policies) = (case.kind, comparison.policies());
    format!("\n{kind} members by {links}, {policies}, placement {placement}, {work}")
}

fn table(record: &RingRecord, comparison: &Comparison, view: View) -> Table {
    if comparison.has_settings() && !view.wide {
        by_setting(record, comparison)
    } else {
        by_size(record, comparison, view)
    }
}

fn by_size(record: &RingRecord, comparison: &Comparison, view: View) -> Table {
    let cases = comparison.in_order(record);
    let columns = measure_columns(&cases, view.wide);
    let mut heads = comparison.header();
    heads.push("members".to_string());
    for measure in &columns {
        heads.extend(measure_heads(measure).into_iter().map(String::from));
    }
    let mut rows = Vec::new();
    for case in cases {
        let mut cells = texts(comparison.cells(&case.case));
        cells.push(case.case.members.to_string().into());
        for measure in &columns {
            cells.extend(measure_cells(measure, case));
        }
        rows.push(cells);
    }
    Table::new(heads, rows).first_to_go(&order_of_leaving(&columns))
}

/// Returns the measures that have columns in the table of these cases.
fn measure_columns(cases: &[&CaseSummary], is_wide: bool) -> Vec<&'static Measure> {
    let is_set =
        |measure: &Measure| cases.iter().any(|case| (measure.read)(case) == Value::Flag(true));
    let mut columns = Vec::new();
    for measure in MEASURES {
        let is_shown = match measure.shown {
            Shown::Always => true,
            Shown::Wide => is_wide,
            Shown::WhereSet => is_set(measure),
        };
        columns.extend(is_shown.then_some(measure));
    }
    columns
}

/// Returns what stands above the columns of a measure.
fn measure_heads(measure: &Measure) -> Vec<&'static str> {
    if measure.has_interval { vec![measure.title, "interval"] } else { vec![measure.title] }
}

/// Returns the heads of these measures in the order in which a narrow table loses them: the least
/// important first, of equals the last.
fn order_of_leaving(columns: &[&'static Measure]) -> Vec<&'static str> {
    let mut leaving: Vec<&Measure> = columns.iter().copied().rev().collect();
    leaving.sort_by_key(|measure| measure.priority);
    leaving.into_iter().flat_map(|measure| measure_heads(measure).into_iter().rev()).collect()
}

/// Returns what a case has of a measure: its value, and the interval where that has a column.
fn measure_cells(measure: &Measure, case: &CaseSummary) -> Vec<MarkedText> {
    let value = (measure.read)(case);
    if measure.has_interval { cost_cells(value).into() } else { vec![cell(measure.unit, value)] }
}

/// Returns a value in the digits of its unit; a dash for what is not known.
fn cell(unit: Unit, value: Value) -> MarkedText {
    let number = match value {
        Value::Number(number) => number,
        Value::Cost(estimate) => return terminal::value(Some(estimate)),
        Value::Flag(is_set) => return if is_set { "!" } else { "" }.into(),
        Value::NoCost(_) | Value::Unknown => return figure(None).into(),
    };
    let text = match unit {
        Unit::PerHop => format!("{number:.3}"),
        Unit::Gigahertz => format!("{number:.2}"),
        Unit::Share => format!("{:.0}", number * 100.0),
        Unit::Whole => format!("{number:.0}"),
        Unit::Nanoseconds | Unit::Seconds | Unit::Cycles | Unit::Flag => figure(number),
    };
    text.into()
}

/// Returns a cost and its interval, or a dash and why there is none.
fn cost_cells(value: Value) -> [MarkedText; 2] {
    match value {
        Value::Cost(cost) => cells![terminal::value(Some(cost)), interval(Some(cost))],
        Value::NoCost(why) => cells!["-", no_cost_words(why)],
        Value::Number(_) | Value::Flag(_) | Value::Unknown => cells![figure(None), figure(None)],
    }
}

/// Returns why a case has no cost of a switch, in words.
fn no_cost_words(why: NoCost) -> &'static str {
    match why {
        NoCost::Solo => "(solo)",
        NoCost::DoesNotSwitch => "does not switch",
        NoCost::NotMeasured => "not measured",
        NoCost::NoSwitchCounted => "no switch counted",
        NoCost::NoSoloRing => "no solo ring beside it",
    }
}

/// Rings that differ in more than their size, without the solo rings beside them: the cheapest hop
/// first, as that is what waking another costs in all. Each policy has a ranking of its own.
fn by_setting(record: &RingRecord, comparison: &Comparison) -> Table {
    let mut rings: Vec<&CaseSummary> =
        record.cases.iter().filter(|of| of.case.members > 1).collect();
    let is_whole = unfinished(record.end.as_ref()).is_none();
    rings.sort_by(|one, other| {
        let policy = |of: &CaseSummary| comparison.policy_rank(&of.case);
        let sizes = one.case.members.cmp(&other.case.members);
        let sizes = sizes.then(policy(one).cmp(&policy(other)));
        sizes.then(if is_whole { by_hop(one, other) } else { Ordering::Equal })
    });
    let has_sizes = rings.iter().any(|of| of.case.members != rings[0].case.members);
    let mut columns = measure_columns(&rings, false);
    columns.retain(|measure| !has_sizes || measure.id != ROUNDS.id);
    // What they are ranked by stands first, and goes last.
    columns.sort_by_key(|measure| measure.id != NS_PER_HOP.id);
    let mut leaving = order_of_leaving(&columns);
    leaving.sort_by_key(|head| *head == NS_PER_HOP.title);
    let mut heads = comparison.header();
    heads.extend(has_sizes.then(|| "members".to_string()));
    heads.extend(columns.iter().map(|measure| measure.title.to_string()));
    let mut rows = Vec::new();
    for case in rings {
        let mut cells = texts(comparison.cells(&case.case));
        cells.extend(has_sizes.then(|| case.case.members.to_string().into()));
        cells.extend(columns.iter().map(|measure| cell_with_interval(measure, case)));
        rows.push(cells);
    }
    Table::new(heads, rows).first_to_go(&leaving)
}

/// Returns what a case has of a measure in one cell, a cost with its interval.
fn cell_with_interval(measure: &Measure, case: &CaseSummary) -> MarkedText {
    match (measure.read)(case) {
        _ if measure.id == NS_PER_HOP.id => hop_words(case),
        _ if measure.id == NS_PER_SWITCH.id => switch_words(case),
        value => cell(measure.unit, value),
    }
}

/// The time of a hop with its interval, or why there is none.
fn hop_words(of: &CaseSummary) -> MarkedText {
    match of.ns_per_hop.and_then(|hop| hop.answer_cost().err()) {
        Some(NotQuotable::NotAlone) => "its CPU was shared".into(),
        _ => estimate_words(of.ns_per_hop),
    }
}

/// What the switch costs with its interval, or why that is not known where the hop's reason does
/// not say so.
fn switch_words(of: &CaseSummary) -> MarkedText {
    if of.does_not_switch {
        return "does not switch".into();
    }
    let Some(cost) = of.ns_per_switch_above_solo else {
        let [_, why] = cost_words(of);
        return why;
    };
    let of_hop = of.ns_per_hop.and_then(|hop| hop.answer_cost().err());
    match cost.answer_cost().err() {
        None => estimate_words(Some(cost)),
        why if why == of_hop => "-".into(),
        Some(NotQuotable::NotAlone) => "CPU shared".into(),
        Some(NotQuotable::NotAtFullSpeed) => "no full speed".into(),
        Some(NotQuotable::NotResolved { .. }) => "not resolved".into(),
        Some(few @ NotQuotable::TooFewRounds(_)) => few.to_string().into(),
    }
}

/// The cheaper hop first; those that may not be quoted come last.
pub(crate) fn by_hop(one: &CaseSummary, other: &CaseSummary) -> Ordering {
    let hop = |of: &CaseSummary| of.ns_per_hop.and_then(|hop| hop.quote_cost().ok());
    let hop = |of: &CaseSummary| hop(of).map_or(f64::INFINITY, |hop| hop.value());
    hop(one).total_cmp(&hop(other))
}

/// Returns cells that are words.
fn texts(cells: Vec<String>) -> Vec<MarkedText> {
    cells.into_iter().map(MarkedText::from).collect()
}

/// Switches per hop as the kernel counted them.
pub(crate) fn switches_words(case: &CaseSummary) -> String {
    case.switches_per_hop.map_or("-".to_string(), |switches| format!("{:.3}", switches.value))
}

/// Cost of a switch and its interval, or why there is none.
pub(crate) fn cost_words(case: &CaseSummary) -> [MarkedText; 2] {
    cost_cells((NS_PER_SWITCH.read)(case))
}

fn findings(record: &RingRecord, comparison: &Comparison) -> Vec<MarkedText> {
    let idle = not_switching(&record.cases, |case| comparison.ring_and_link(case));
    idle.into_iter().map(MarkedText::from).collect()
}

/// Scaling laws, and the figures of all slices.
fn further(record: &RingRecord, comparison: &Comparison) -> Vec<String> {
    let mut lines = comparison.scaling(record);
    let what = "how the cost of a switch follows the core's clock (1: bound by the core, 0: \
        bound by memory)";
    lines.extend(listed(what, &record.cases, |case| {
        let power = case.elasticity.filter(|_| case.two_parts.is_some())?;
        let words = format!(
            "{}: {:.2} +-{:.2}",
            comparison.ring(&case.case),
            power.value,
            power.standard_error
        );
        Some(words + &two_parts_words(case))
    }));
    lines.extend(by_cpu_time(&record.cases, &record.noise, |case| comparison.ring(case)));
    let what = "ns/switch of all slices, at any speed, median (middle half of the rounds)";
    lines.extend(listed(what, &record.cases, |case| {
        let all = case.contended_ns_per_switch_above_solo?;
        Some(format!("{}: {}", comparison.ring(&case.case), spread_words(&all)))
    }));
    lines
}

/// `, 1,200 cycles and 340 ns of memory`, where both are resolved.
fn two_parts_words(case: &CaseSummary) -> String {
    let both = case
        .two_parts
        .and_then(|of| Some((of.core_cycles.quote_cost().ok()?, of.memory_ns.quote_cost().ok()?)));
    both.map_or(String::new(), |(cycles, memory)| {
        let cycles = cycles.whole();
        format!(", {cycles} cycles and {} of memory", words::time(memory.value()))
    })
}

/// Median and middle half of costs at whatever speed, of which none is below zero.
fn spread_words(of: &Spread) -> String {
    let (low, high) = (of.lower_quartile, of.upper_quartile);
    match low > 0.0 {
        true => format!("{} ({} to {})", figure(of.median), figure(low), figure(high)),
        false => NotQuotable::NotResolved { low, high }.to_string(),
    }
}

/// Where the machine was not quiet: the cost of a switch by CPU time, which other work on the CPU
/// does not enter. `name` is what a ring is called.
pub(crate) fn by_cpu_time<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    noise: &NoiseVerdict,
    name: impl Fn(&Case) -> String,
) -> Option<String> {
    let is_disturbed = matches!(noise.level, NoiseLevel::Noisy | NoiseLevel::Unusable);
    let what = "ns/switch by CPU time, without other work on the CPU";
    let line = listed(what, cases, |case| {
        let cost = case.cpu_ns_per_switch_above_solo?;
        Some(format!("{}: {}", name(&case.case), estimate_words(Some(cost))))
    });
    line.filter(|_| is_disturbed)
}
