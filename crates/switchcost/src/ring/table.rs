//! `switchcost ring` on the terminal.

use std::fmt::Write;
use std::path::Path;

use comfy_table::Table;
use model::company::Company;
use model::noise::{NoiseLevel, NoiseVerdict};
use model::record::{CaseSummary, Record, Totals};
use model::ring::Case;

use super::comparison::{self, Comparison, not_switching};
use crate::terminal::{self, figure, interval_words};

/// Laps that Sloan's columns are scaled to: his own, so that his table can be laid beside ours.
const SLOAN_LAPS: f64 = 1e6;

/// The whole report, ending with a newline.
pub(crate) fn report(record: &Record, path: Option<&Path>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n", heading(record));
    let _ = writeln!(text, "{}\n", table(record));
    let _ = writeln!(text, "{LEGEND}");
    for line in Comparison::of(record).legend() {
        let _ = writeln!(text, "{line}");
    }
    if let Some(table) = comparison::states(record) {
        let _ = writeln!(text, "\n{table}");
    }
    let _ = writeln!(text);
    for line in findings(record) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", terminal::place(path));
    text
}

const LEGEND: &str = "real to projected: seconds for a million laps, mean of all samples; projected = CPU(2) x members / 2\n\
ns/hop, ns/switch: of clean slices, at the CPU's full speed and undisturbed (clean: their share); ns/switch: what a\n  hop costs above the ring of one / counted switches, 95 % interval with the scatter between launches\n\
! the kernel counts over 5 % more or fewer switches than there are hops";

fn heading(record: &Record) -> String {
    let mut words = terminal::heading(&record.header);
    if let Some(case) =
        record.header.plan.rings().map(|(_, case)| case).find(|case| case.members > 1)
    {
        let comparison = Comparison::of(record);
        let _ = write!(
            words,
            "\n{} members by {}, policy {}, {}",
            case.kind,
            comparison.in_words(),
            case.policy,
            comparison.placed()
        );
        match &case.work {
            None => words.push_str(", no work"),
            Some(work) => {
                let _ =
                    write!(words, ", {} of {} bytes by {}", work.op, work.bytes, work.stride_bytes);
            }
        }
    }
    words
}

fn table(record: &Record) -> Table {
    let comparison = Comparison::of(record);
    let mut columns = comparison.header();
    columns.extend(
        [
            "members",
            "real",
            "CPU",
            "user",
            "system",
            "projected",
            "ns/hop",
            "switches/hop",
            "",
            "ns/switch",
            "interval",
            "clean",
            "rounds",
        ]
        .map(String::from),
    );
    let mut table = terminal::table(columns);
    for case in comparison.in_order(record) {
        let mut cells = comparison.cells(&case.case);
        cells.extend(row(case));
        table.add_row(cells);
    }
    terminal::align(&mut table);
    table
}

fn row(case: &CaseSummary) -> Vec<String> {
    let seconds = |of: &dyn Fn(&Totals) -> Option<u64>| {
        let per_lap = case.totals.as_ref().and_then(|t| Some(of(t)? as f64 / t.laps as f64));
        figure(per_lap.map(|ns| ns * SLOAN_LAPS / 1e9))
    };
    let (cost, interval) = cost_words(case);
    let switches = case.switches_per_hop.map(|e| format!("{:.3}", e.value));
    vec![
        case.case.members.to_string(),
        seconds(&|t| Some(t.real_ns)),
        seconds(&|t| Some(t.cpu_ns)),
        seconds(&|t| t.user_ns),
        seconds(&|t| t.system_ns),
        figure(case.projected_cpu_ns_per_lap.map(|ns| ns * SLOAN_LAPS / 1e9)),
        figure(case.ns_per_hop.map(|e| e.value)),
        switches.unwrap_or_else(|| "-".to_string()),
        if case.counts_disagree { "!" } else { "" }.to_string(),
        cost,
        interval,
        case.clean_share.map_or("-".to_string(), |share| format!("{:.0} %", share * 100.0)),
        case.rounds.to_string(),
    ]
}

/// Cost of a switch and its interval, or why there is none.
pub(crate) fn cost_words(case: &CaseSummary) -> (String, String) {
    if case.case.members == 1 {
        return ("-".to_string(), "(solo)".to_string());
    }
    if case.does_not_switch {
        return ("-".to_string(), "does not switch".to_string());
    }
    let Some(estimate) = &case.ns_per_switch_above_solo else {
        let why = match &case.totals {
            None => "not measured",
            Some(totals) if totals.voluntary + totals.involuntary == 0 => "no switch counted",
            Some(_) => "no solo ring beside it",
        };
        return ("-".to_string(), why.to_string());
    };
    (figure(Some(estimate.value)), interval_words(estimate))
}

fn findings(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let comparison = Comparison::of(record);
    lines.extend(record.cases.iter().filter_map(|case| {
        let name = format!("ring of {}", comparison.ring(&case.case));
        Some(terminal::failed(&name, case.rounds, case.failure.as_ref()?))
    }));
    lines.extend(comparison.scaling(record));
    lines.extend(not_switching(&record.cases, |case| comparison.ring_and_link(case)));
    lines.extend(contended(record, |case| comparison.ring(case)));
    lines.push(format!("machine: {}", record.noise.in_words()));
    lines.extend(terminal::speed_words(&record.speed));
    lines.extend(record.company.as_ref().and_then(Company::line));
    lines.extend(by_cpu_time(record.cases.iter(), &record.noise, |case| comparison.ring(case)));
    let rounds = record.cases.iter().map(|case| case.rounds).max().unwrap_or(0);
    let widest = model::record::worst_precision(&record.cases);
    let end = record.end.as_ref();
    lines.extend(terminal::end(&record.header, end, rounds, widest, &record.warnings));
    lines
}

/// What a switch costs at whatever speed, where that was looked at.
fn contended(record: &Record, name: impl Fn(&Case) -> String) -> Option<String> {
    let one = |case: &CaseSummary| {
        let all = case.contended_ns_per_switch_above_solo?;
        let [median, low, high] =
            [all.median, all.lower_quartile, all.upper_quartile].map(|ns| figure(Some(ns)));
        Some(format!("{}: {median} ({low} to {high})", name(&case.case)))
    };
    let all: Vec<String> = record.cases.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| {
        format!(
            "ns/switch of all slices, at whatever speed, median (middle half of the rounds): {}",
            all.join("; ")
        )
    })
}

/// Where the machine was not quiet: the cost of a switch by CPU time, which other work on the CPU
/// does not enter. `name` is what a ring is called.
pub(crate) fn by_cpu_time<'a>(
    cases: impl Iterator<Item = &'a CaseSummary>,
    noise: &NoiseVerdict,
    name: impl Fn(&Case) -> String,
) -> Option<String> {
    let one = |case: &CaseSummary| {
        let estimate = case.cpu_ns_per_switch_above_solo.as_ref()?;
        let cost = figure(Some(estimate.value));
        Some(format!("{}: {cost} ({})", name(&case.case), interval_words(estimate)))
    };
    let all: Vec<String> = cases.filter_map(one).collect();
    let disturbed = matches!(noise.level, NoiseLevel::Noisy | NoiseLevel::Unusable);
    (disturbed && !all.is_empty())
        .then(|| format!("ns/switch by CPU time, without that other work: {}", all.join("; ")))
}
