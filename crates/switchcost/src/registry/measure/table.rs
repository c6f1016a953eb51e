//! What `measure` prints: the answer, a row a figure, and lines on the machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use analysis::estimate::Estimate;
use analysis::findings::wakeup;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::cost;
use analysis::record;
use analysis::summary_line;
use rundata::ring::Policy;
use rundata::run::Run;
use rundata::trial::loops;
use rundata::words;

use super::{MeasureRecord, part_name};
use crate::base::values::each_once;
use crate::experiments::response::answer::{measured_policy, sleeper_words};
use crate::experiments::{clock, measures};
use crate::registry::{self, Record};
use crate::report::machine_line::{self, machine_line};
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{self, ROUGH_LEGEND, View};

/// A figure of the table.
struct TableRow {
    /// What was measured.
    what: String,
    /// What it costs or takes.
    figure: Estimate,
    /// What is told behind it.
    behind: String,
}

impl TableRow {
    fn new(what: String, figure: Estimate) -> Self {
        Self { what, figure, behind: String::new() }
    }

    fn in_words(&self) -> String {
        cost(&self.figure) + &self.behind
    }

    /// Whether it is a figure that no comparison uses.
    fn is_marked(&self) -> bool {
        self.figure.answer_cost().is_ok_and(|answer| answer.is_rough())
    }

    /// What is known of it while the run goes on; absent as long as nothing is.
    fn so_far(&self) -> Option<String> {
        self.figure.answer_cost().ok().map(|_| self.in_words())
    }
}

/// What matters.
pub(crate) fn sentence(record: &MeasureRecord) -> MarkedText {
    let unfinished = rundata::run::unfinished(record.end.as_ref());
    let parts = record.parts.iter();
    let parts: Vec<_> = parts.map(|part| (part_name(part), part, unfinished)).collect();
    registry::sentence(&parts)
}

/// The rows of a run that is going on: those that have a figure by now.
pub(crate) fn rows_so_far(run: &Run) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for part in analysis::parts::part_runs(run) {
        for row in rows(&Record::from_run(&part)) {
            all.extend(row.so_far().map(|words| (row.what, words)));
        }
    }
    all
}

/// All of it, ending with a newline; `path` is where the run is stored.
pub(crate) fn text(record: &MeasureRecord, path: Option<&Path>, view: View) -> Printout {
    let mut parts: Vec<Printout> = vec![(sentence(record) + ".").into()];
    let rows: Vec<TableRow> = record.parts.iter().flat_map(rows).collect();
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or_default();
    let line = |row: &TableRow| format!("{:<width$}  {}\n", row.what, row.in_words());
    parts.push(rows.iter().map(line).collect::<String>().into());
    if rows.iter().any(TableRow::is_marked) {
        parts.push(ROUGH_LEGEND.into());
    }
    if !view.verbose {
        let (header, company) = (&record.header, record.company.as_ref());
        let line = machine_line(&header.plan, &header.machine, company, &record.noise);
        parts.push(line.into());
        return Printout::paragraphs(parts);
    }
    let lines = lines(record);
    // The plan's name says nothing of several experiments.
    parts.push(
        format!("measured on {}", machine_line::cpu_and_kernel(&record.header.machine)).into(),
    );
    let mut all = Printout::default();
    for (name, line) in lines {
        all.push(printout![format!("{name:<9} "), line, "\n"]);
    }
    parts.push(all);
    parts.extend(path.map(|path| format!("run file: {}\n", path.display()).into()));
    Printout::paragraphs(parts)
}

/// What was measured, and what it costs or takes.
fn rows(part: &Record) -> Vec<TableRow> {
    let row = TableRow::new;
    match part {
        Record::Rings(record) if record.found.cost.is_none() => [Policy::Other, Policy::Fifo]
            .into_iter()
            .flat_map(|of| switch_rows(record, of))
            .collect(),
        Record::Rings(record) => {
            let found = summary_line::with_work(record).into_iter();
            let what = |set| format!("switch, working sets of {}", words::bytes(set));
            found.map(|(_, set, cost)| row(what(set), cost)).collect()
        }
        Record::Response(record) => {
            let policy = measured_policy(record);
            let under = if policy == Policy::Other { String::new() } else { format!(", {policy}") };
            let calls = calls(record).into_iter();
            let calls = calls.map(|(name, cost)| row(format!("{name}{under}"), cost));
            let late = lateness(record, "in").map(|(who, figure, behind)| {
                let what = format!("wake-up, {who}");
                TableRow { what, figure, behind }
            });
            calls.chain(late).collect()
        }
        // They are none of its experiments.
        Record::Explain(_) | Record::Measure(_) => Vec::new(),
        Record::Trials(record) => {
            let clocks = clocks(record).into_iter();
            clocks.map(|(name, cost)| row(format!("reading {name}"), cost)).collect()
        }
    }
}

/// The smallest and the largest ring of a policy; under fifo they were measured, too, where the CPU
/// was busy.
fn switch_rows(record: &record::RingRecord, policy: Policy) -> Vec<TableRow> {
    let mut sizes: BTreeMap<u32, Estimate> = BTreeMap::new();
    for of in record.cases.iter().filter(|of| of.case.policy == policy) {
        sizes.extend(of.ns_per_switch_above_solo.map(|cost| (of.case.members, cost)));
    }
    let under = if policy == Policy::Other { String::new() } else { format!(", {policy}") };
    let ends = each_once([sizes.first_key_value(), sizes.last_key_value()].into_iter().flatten());
    let row = |(members, cost): (&u32, &Estimate)| {
        TableRow::new(format!("switch, {members} processes{under}"), *cost)
    };
    ends.into_iter().map(row).collect()
}

/// What each experiment found, a line or two each, why the run ended, and what was not available.
fn lines(record: &MeasureRecord) -> Vec<(&'static str, MarkedText)> {
    let mut lines = Vec::new();
    for part in &record.parts {
        let found = match part {
            Record::Rings(record) => of_rings(record),
            Record::Response(record) => of_response(record),
            Record::Explain(_) | Record::Measure(_) => Vec::new(),
            Record::Trials(record) => costs(&clocks(record)).into_iter().collect(),
        };
        lines.extend(found.into_iter().map(|line| (part_name(part), line.into())));
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
    let notices = record.header.notices.iter().map(|notice| &notice.text);
    let notes = notices.chain(&record.warnings);
    lines.extend(each_once(notes.map(|note| ("note", note.clone().into()))));
    lines
}

fn of_rings(record: &record::RingRecord) -> Vec<String> {
    let series = record.found.scaling.iter().map(|series| series.in_words.clone());
    let curves = record.found.cost.iter().flat_map(|cost| &cost.curves);
    let curves = curves.map(|curve| format!("{}: {}", curve.work.walk_in_words(), curve.in_words));
    series.chain(curves).collect()
}

/// Calls and signals of the memorandum.
const LOOPS: [&str; 2] = [loops::GETUID, loops::SIGNAL_SELF];

/// What a signal and a system call cost, how late a sleeper is woken.
fn of_response(record: &record::ResponseRecord) -> Vec<String> {
    let late = lateness(record, "within")
        .map(|(who, median, far)| format!("late by, {who}: {}{far}", cost(&median)));
    costs(&calls(record)).into_iter().chain(late).collect()
}

fn calls(record: &record::ResponseRecord) -> Vec<(String, Estimate)> {
    let named = record.found.loops.iter().filter(|of| LOOPS.contains(&&*of.call));
    named.filter_map(|of| Some((of.call.clone(), of.ns?))).collect()
}

/// How late each sleeper is woken: who, the median, and below what nearly all are.
fn lateness<'a>(
    record: &'a record::ResponseRecord,
    within: &'static str,
) -> impl Iterator<Item = (String, Estimate, String)> + 'a {
    let late = move |found: &wakeup::WakeupFindings| {
        let far = found.p99_ns.map(|tail| words::time(tail.value_ns as f64));
        let far = far.map_or(String::new(), |far| format!(", 99 % {within} {far}"));
        Some((sleeper_words(record, found.case), found.median_ns?, far))
    };
    record.found.wakeups.iter().filter_map(late)
}

fn clocks(record: &record::TrialRecord) -> Vec<(String, Estimate)> {
    let all = measures::costs(record).into_iter();
    all.filter(|(name, _)| clock::HEADLINE_CALLS.contains(&&**name)).collect()
}

/// What these cost, in one line.
fn costs(all: &[(String, Estimate)]) -> Option<String> {
    let words = all.iter().map(|(name, of)| format!("{name}: {}", cost(of))).collect::<Vec<_>>();
    (!words.is_empty()).then(|| words.join(", "))
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
        let of = |what: &str| rows.iter().find(|(row, _)| row == what).map(|(_, words)| &**words);
        assert_eq!(of("switch, working sets of 64 KiB"), Some("2.79 us (2.49 to 3.08)"));
        assert!(of("switch, 2 processes").is_some_and(|words| words.starts_with(['~', '2'])));
        let late = of("wake-up, idle CPU, fifo").unwrap();
        assert!(late.starts_with('~') && late.contains(" round"), "{late}");
        run.samples.clear();
        assert_eq!(rows_so_far(&run), []);
    }
}
