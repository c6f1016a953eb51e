//! The report of `measure`: the answer in a sentence, a row a figure, a line on the machine; with
//! --verbose what each experiment found.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::parts::part_runs;
use analysis::quote::cost;
use analysis::record::{ResponseRecord, RingRecord, TrialRecord};
use analysis::summary_line;
use rundata::ring::Policy;
use rundata::run::Run;
use rundata::trial::loops;
use rundata::words;

use super::{MeasureRecord, part_name};
use crate::base::values::each_once;
use crate::experiments::response::answer::{measured_policy, sleeper_words};
use crate::experiments::{clock, measures};
use crate::registry::{NamedRecord, Record, joint_answer};
use crate::report::machine_line::{self, machine_line};
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{self, ROUGH_LEGEND, View};

/// A row of the table: what was measured, and its figure.
struct FigureRow {
    what: String,
    figure: Estimate,
    /// Words behind the figure: `, 99 % in 64 us`.
    suffix: String,
}

impl FigureRow {
    fn new(what: String, figure: Estimate) -> Self {
        Self { what, figure, suffix: String::new() }
    }

    fn in_words(&self) -> String {
        cost(&self.figure) + &self.suffix
    }

    fn has_figure(&self) -> bool {
        self.figure.answer_cost().is_ok()
    }

    fn is_rough(&self) -> bool {
        self.figure.answer_cost().is_ok_and(|answer| answer.is_rough())
    }
}

/// Returns the answer in one sentence, without its full stop.
pub(crate) fn answer(record: &MeasureRecord) -> MarkedText {
    let unfinished = rundata::run::unfinished(record.end.as_ref());
    let mut parts = Vec::new();
    for part in &record.parts {
        parts.push(NamedRecord { name: part_name(part), record: part, unfinished });
    }
    joint_answer(&parts)
}

/// Returns the rows of a run that is going on which have a figure by now.
pub(crate) fn rows_so_far(run: &Run) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in part_runs(run) {
        for row in rows(&Record::from_run(&part)) {
            if row.has_figure() {
                let words = row.in_words();
                found.push((row.what, words));
            }
        }
    }
    found
}

/// Returns the whole report, ending with a newline; `path` is where the run is stored.
pub(crate) fn text(record: &MeasureRecord, path: Option<&Path>, view: View) -> Printout {
    let mut parts: Vec<Printout> = vec![(answer(record) + ".").into()];
    let rows: Vec<FigureRow> = record.parts.iter().flat_map(rows).collect();
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or_default();
    let mut table = String::new();
    for row in &rows {
        table += &format!("{:<width$}  {}\n", row.what, row.in_words());
    }
    parts.push(table.into());
    if rows.iter().any(FigureRow::is_rough) {
        parts.push(ROUGH_LEGEND.into());
    }
    if !view.verbose {
        let (header, tasks) = (&record.header, record.competing_tasks.as_ref());
        let line = machine_line(&header.plan, &header.machine, tasks, &record.noise);
        parts.push(line.into());
        return Printout::paragraphs(parts);
    }
    // The plan's name is that of no single experiment.
    parts.push(
        format!("measured on {}", machine_line::cpu_and_kernel(&record.header.machine)).into(),
    );
    let mut details = Printout::default();
    for (name, line) in detail_lines(record) {
        details.push(printout![format!("{name:<9} "), line, "\n"]);
    }
    parts.push(details);
    parts.extend(path.map(|path| format!("run file: {}\n", path.display()).into()));
    Printout::paragraphs(parts)
}

/// Returns the rows of a part.
fn rows(part: &Record) -> Vec<FigureRow> {
    let mut rows = Vec::new();
    match part {
        Record::Rings(record) if record.found.cost.is_none() => {
            rows.extend(switch_rows(record, Policy::Other));
            rows.extend(switch_rows(record, Policy::Fifo));
        }
        Record::Rings(record) => {
            if let Some((_, array_bytes, cost)) = summary_line::with_work(record) {
                let what = format!("switch, working sets of {}", words::bytes(array_bytes));
                rows.push(FigureRow::new(what, cost));
            }
        }
        Record::Response(record) => {
            let policy = policy_suffix(measured_policy(record));
            for (name, cost) in calls(record) {
                rows.push(FigureRow::new(format!("{name}{policy}"), cost));
            }
            for wakeup in wakeup_delays(record) {
                let suffix = wakeup.tail_words("in");
                let what = format!("wake-up, {}", wakeup.sleeper);
                rows.push(FigureRow { what, figure: wakeup.median_ns, suffix });
            }
        }
        Record::Trials(record) => {
            for (name, cost) in clocks(record) {
                rows.push(FigureRow::new(format!("reading {name}"), cost));
            }
        }
        // No part of `measure` is of these.
        Record::Explain(_) | Record::Measure(_) => {}
    }
    rows
}

/// Returns `, fifo`; nothing for the normal policy.
fn policy_suffix(policy: Policy) -> String {
    if policy == Policy::Other { String::new() } else { format!(", {policy}") }
}

/// Returns rows of the smallest and the largest ring of a policy. Where the CPU was busy, rings were
/// measured under fifo, too.
fn switch_rows(record: &RingRecord, policy: Policy) -> Vec<FigureRow> {
    let mut costs: BTreeMap<u32, Estimate> = BTreeMap::new();
    for summary in record.cases.iter().filter(|summary| summary.case.policy == policy) {
        if let Some(cost) = summary.ns_per_switch_above_solo {
            costs.insert(summary.case.members, cost);
        }
    }
    let ends = [costs.first_key_value(), costs.last_key_value()];
    let mut rows = Vec::new();
    for (members, cost) in each_once(ends.into_iter().flatten()) {
        let what = format!("switch, {members} processes{}", policy_suffix(policy));
        rows.push(FigureRow::new(what, *cost));
    }
    rows
}

/// Returns the lines of `--verbose`: what each experiment found, the machine's noise, why the run
/// ended, and what was not available. Each has a name before it.
fn detail_lines(record: &MeasureRecord) -> Vec<(&'static str, MarkedText)> {
    let mut lines = Vec::new();
    for part in &record.parts {
        for line in finding_lines(part) {
            lines.push((part_name(part), line.into()));
        }
    }
    for part in &record.parts {
        let noise = part.common().noise;
        if !noise.reasons.is_empty() {
            lines.push(("machine", marked![part_name(part), ": ", noise.in_words()]));
        }
    }
    if let Some(end) = &record.end {
        let spent = Duration::from_nanos(end.spent_ns).as_secs_f64();
        let reason = terminal::stop_reason_words(end.reason);
        lines.push(("stopped", format!("{reason} ({spent:.1} s)").into()));
    }
    let mut notes: Vec<&String> = Vec::new();
    notes.extend(record.header.notices.iter().map(|notice| &notice.text));
    notes.extend(&record.warnings);
    for note in each_once(notes) {
        lines.push(("note", note.clone().into()));
    }
    lines
}

/// Returns the findings of a part, a line each.
fn finding_lines(part: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    match part {
        Record::Rings(record) => {
            lines.extend(record.found.scaling.iter().map(|series| series.in_words.clone()));
            for curve in record.found.cost.iter().flat_map(|cost| &cost.curves) {
                lines.push(format!("{}: {}", curve.work.walk_in_words(), curve.in_words));
            }
        }
        Record::Response(record) => {
            lines.extend(costs_line(&calls(record)));
            for wakeup in wakeup_delays(record) {
                let (median, tail) = (cost(&wakeup.median_ns), wakeup.tail_words("within"));
                lines.push(format!("late by, {}: {median}{tail}", wakeup.sleeper));
            }
        }
        Record::Trials(record) => lines.extend(costs_line(&clocks(record))),
        Record::Explain(_) | Record::Measure(_) => {}
    }
    lines
}

/// The calls of the VENIX memorandum of 1984: a system call, and a signal to oneself.
const SHOWN_CALLS: [&str; 2] = [loops::GETUID, loops::SIGNAL_SELF];

/// Returns the names and costs of the calls that have a row.
fn calls(record: &ResponseRecord) -> Vec<(String, Estimate)> {
    let mut calls = Vec::new();
    for found in &record.found.loops {
        if let Some(ns) = found.ns {
            if SHOWN_CALLS.contains(&&*found.call) {
                calls.push((found.call.clone(), ns));
            }
        }
    }
    calls
}

/// Delay with which a sleeper is woken.
struct WakeupDelay {
    /// The sleeper in words: `idle CPU, fifo`.
    sleeper: String,
    median_ns: Estimate,
    /// Delay that 99 % of the wake-ups do not exceed.
    p99_ns: Option<f64>,
}

impl WakeupDelay {
    /// Returns `, 99 % within 64 us`; nothing where the tail is not known.
    fn tail_words(&self, within: &str) -> String {
        match self.p99_ns {
            Some(ns) => format!(", 99 % {within} {}", words::time(ns)),
            None => String::new(),
        }
    }
}

fn wakeup_delays(record: &ResponseRecord) -> Vec<WakeupDelay> {
    let mut delays = Vec::new();
    for found in &record.found.wakeups {
        let Some(median_ns) = found.median_ns else { continue };
        let sleeper = sleeper_words(record, found.case);
        let p99_ns = found.p99_ns.map(|tail| tail.value_ns as f64);
        delays.push(WakeupDelay { sleeper, median_ns, p99_ns });
    }
    delays
}

/// Returns the names and costs of the clocks that have a row.
fn clocks(record: &TrialRecord) -> Vec<(String, Estimate)> {
    let mut costs = measures::costs(record);
    costs.retain(|(name, _)| clock::HEADLINE_CALLS.contains(&&**name));
    costs
}

/// Writes costs on one line; `None` without any.
fn costs_line(costs: &[(String, Estimate)]) -> Option<String> {
    if costs.is_empty() {
        return None;
    }
    let words: Vec<String> =
        costs.iter().map(|(name, figure)| format!("{name}: {}", cost(figure))).collect();
    Some(words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run::parse(include_str!("../../../tests/fixtures/measure.jsonl")).unwrap()
    }

    #[test]
    fn the_answer_comes_first_and_each_experiment_has_its_rows() {
        let run = run();
        let text = Record::from_run(&run).text(&run, None, View::default());
        assert!(
            text.to_string().starts_with("A switch costs 2.25 us (2.20 to 2.30) here"),
            "{text}"
        );
        for what in [
            "switch, 2 processes ",
            "switch, working sets of 64 KiB  ",
            "getuid ",
            "wake-up, idle CPU, fifo ",
            "reading time-stamp ",
        ] {
            assert!(text.to_string().contains(&format!("\n{what}")), "{what}: {text}");
        }
        let verbose = Record::from_run(&run).text(&run, None, View::ALL);
        for name in ["ring ", "cost ", "response ", "clock ", "stopped "] {
            assert!(verbose.to_string().contains(&format!("\n{name}")), "{name}: {verbose}");
        }
        assert!(verbose.to_string().contains("\nmeasured on "), "{verbose}");
    }

    #[test]
    fn rows_come_as_soon_as_something_is_known_of_them() {
        let mut run = run();
        let rows = rows_so_far(&run);
        let rows: BTreeMap<&str, &str> =
            rows.iter().map(|(what, words)| (&**what, &**words)).collect();
        assert_eq!(rows["switch, working sets of 64 KiB"], "2.79 us (2.49 to 3.08)");
        assert!(rows["switch, 2 processes"].starts_with(['~', '2']), "{rows:?}");
        let late = rows["wake-up, idle CPU, fifo"];
        assert!(late.starts_with('~') && late.contains(" round"), "{late}");
        run.samples.clear();
        assert_eq!(rows_so_far(&run), []);
    }
}
