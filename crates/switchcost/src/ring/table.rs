//! `switchcost ring` on the terminal.

use comfy_table::Table;
use model::noise::{NoiseLevel, NoiseVerdict};
use model::record::Record;
use model::ring::Case;
use model::summary::{CaseSummary, Totals};

use super::comparison::{Comparison, listed, not_switching, placements, states};
use crate::terminal::{self, Text, figure, interval, value};

/// Laps that Sloan's columns are scaled to: his own, so that his table can be laid beside ours.
const SLOAN_LAPS: f64 = 1e6;

const LEGEND: &str = "real to projected: seconds for a million laps, mean of all samples; projected = CPU(2) x members / 2\n\
ns/hop, ns/switch: of clean slices, at the CPU's full speed and undisturbed (clean: their share); ns/switch: what a\n  hop costs above the ring of one / counted switches, 95 % interval with the scatter between launches\n\
! the kernel counts over 5 % more or fewer switches than there are hops";

pub(crate) fn text(record: &Record) -> Text {
    let comparison = &Comparison::of(record);
    let mut body = format!("{}\n\n{LEGEND}\n", table(record, comparison));
    body.extend(placements(record).map(|line| format!("{line}\n")));
    body.extend(states(record, comparison).map(|states| format!("\n{states}\n")));
    body.push('\n');
    Text { heading: heading(record, comparison), body, findings: findings(record, comparison) }
}

fn heading(record: &Record, comparison: &Comparison) -> String {
    let Some((_, case)) = record.header.plan.rings().find(|(_, case)| case.members > 1) else {
        return String::new();
    };
    let (links, placement) = comparison.links_and_placement(case);
    let work = case.work.map_or("no work".to_string(), |work| {
        format!("{} of {} bytes by {}", work.op, work.bytes, work.stride_bytes)
    });
    let (kind, policy) = (case.kind, case.policy);
    format!("\n{kind} members by {links}, policy {policy}, placement {placement}, {work}")
}

fn table(record: &Record, comparison: &Comparison) -> Table {
    let times = ["members", "real", "CPU", "user", "system", "projected", "ns/hop"];
    let costs = ["switches/hop", "", "ns/switch", "interval", "clean", "rounds"];
    let mut columns = comparison.header();
    columns.extend(times.into_iter().chain(costs).map(String::from));
    let row = |case: &CaseSummary| [comparison.cells(&case.case), row(case)].concat();
    terminal::table(columns, comparison.in_order(record).into_iter().map(row))
}

fn row(case: &CaseSummary) -> Vec<String> {
    let seconds = |ns_per_lap: Option<f64>| figure(ns_per_lap.map(|ns| ns * SLOAN_LAPS / 1e9));
    let total = |of: fn(&Totals) -> Option<u64>| {
        let per_lap = |totals: &Totals| Some(of(totals)? as f64 / totals.laps as f64);
        seconds(case.totals.as_ref().and_then(per_lap))
    };
    let [cost, its_interval] = cost_words(case);
    vec![
        case.case.members.to_string(),
        total(|totals| Some(totals.real_ns)),
        total(|totals| Some(totals.cpu_ns)),
        total(|totals| totals.user_ns),
        total(|totals| totals.system_ns),
        seconds(case.projected_cpu_ns_per_lap),
        value(case.ns_per_hop),
        switches_words(case),
        if case.counts_disagree { "!" } else { "" }.to_string(),
        cost,
        its_interval,
        case.clean_share.map_or("-".to_string(), |share| format!("{:.0} %", share * 100.0)),
        case.rounds.to_string(),
    ]
}

/// Switches per hop as the kernel counted them.
pub(crate) fn switches_words(case: &CaseSummary) -> String {
    case.switches_per_hop.map_or("-".to_string(), |switches| format!("{:.3}", switches.value))
}

/// Cost of a switch and its interval, or why there is none.
pub(crate) fn cost_words(case: &CaseSummary) -> [String; 2] {
    let why = match (&case.ns_per_switch_above_solo, &case.totals) {
        _ if case.case.members == 1 => "(solo)",
        _ if case.does_not_switch => "does not switch",
        (None, None) => "not measured",
        (None, Some(totals)) if totals.voluntary + totals.involuntary == 0 => "no switch counted",
        (None, Some(_)) => "no solo ring beside it",
        (cost, _) => return [value(*cost), interval(*cost)],
    };
    ["-", why].map(String::from)
}

fn findings(record: &Record, comparison: &Comparison) -> Vec<String> {
    let mut lines = comparison.scaling(record);
    lines.extend(not_switching(&record.cases, |case| comparison.ring_and_link(case)));
    let what = "ns/switch of all slices, at whatever speed, median (middle half of the rounds)";
    lines.extend(listed(what, &record.cases, |case| {
        let all = case.contended_ns_per_switch_above_solo?;
        let (low, high) = (figure(all.lower_quartile), figure(all.upper_quartile));
        Some(format!("{}: {} ({low} to {high})", comparison.ring(&case.case), figure(all.median)))
    }));
    lines.extend(by_cpu_time(&record.cases, &record.noise, |case| comparison.ring(case)));
    lines
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
        Some(format!("{}: {} ({})", name(&case.case), value(Some(cost)), interval(Some(cost))))
    });
    line.filter(|_| is_disturbed)
}
