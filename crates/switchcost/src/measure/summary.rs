//! The summary of `switchcost measure`: one screen that leads with what matters.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use model::record::Record;
use model::run::{End, Header};
use model::trial::loops::{GETUID, SIGNAL_SELF};
use model::trial::{self, Findings, wakeup};
use model::words::time;
use model::{glance, response};

use crate::report::headline::estimate;
use crate::terminal;

/// Calls that stand for the others: what a program pays to know how long it has run.
const CLOCKS: [&str; 4] = ["time-stamp", "threadclock-now", "thread-cputime", "getrusage"];

/// Calls and signals of the memorandum.
const LOOPS: [&str; 2] = [GETUID, SIGNAL_SELF];

/// What was measured; what was not is missing.
pub(crate) struct Summary {
    pub(crate) ring: Option<Record>,
    pub(crate) cost: Option<Record>,
    pub(crate) response: Option<response::Record>,
    pub(crate) clock: Option<trial::Record>,
    /// Where the runs are stored.
    pub(crate) runs: Vec<PathBuf>,
    /// Where the report is, if it is a file.
    pub(crate) report: Option<PathBuf>,
}

/// What matters.
pub(crate) fn sentence(summary: &Summary) -> String {
    glance::in_words(summary.ring.as_ref(), summary.cost.as_ref(), &noise(summary))
}

/// All of it, ending with a newline.
pub(crate) fn text(summary: &Summary) -> String {
    let mut text = String::new();
    let headings = [
        summary.ring.as_ref().map(|record| heading(&record.header)),
        summary.cost.as_ref().map(|record| heading(&record.header)),
        summary.response.as_ref().map(|record| heading(&record.header)),
        summary.clock.as_ref().map(|record| heading(&record.header)),
    ];
    // Writing to a String cannot fail.
    if let Some(heading) = headings.into_iter().flatten().next() {
        let _ = writeln!(text, "{heading}\n");
    }
    let _ = writeln!(text, "{}\n", sentence(summary));
    for (name, line) in lines(summary) {
        let _ = writeln!(text, "{name:<9} {line}");
    }
    let _ = writeln!(text);
    for path in &summary.runs {
        let _ = writeln!(text, "run file: {}", path.display());
    }
    if let Some(report) = &summary.report {
        let _ = writeln!(text, "report: {}", report.display());
    }
    text
}

/// Which machine: the experiment's own name says nothing of several.
fn heading(header: &Header) -> String {
    let heading = terminal::heading(header);
    heading.replacen(header.plan.experiment.name(), "measured", 1)
}

fn noise(summary: &Summary) -> Vec<(&'static str, &model::noise::NoiseVerdict)> {
    let all = [
        summary.ring.as_ref().map(|record| ("ring", &record.noise)),
        summary.cost.as_ref().map(|record| ("cost", &record.noise)),
        summary.response.as_ref().map(|record| ("response", &record.noise)),
        summary.clock.as_ref().map(|record| ("clock", &record.noise)),
    ];
    all.into_iter().flatten().collect()
}

/// What each experiment found, a line or two each.
fn lines(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let series = summary.ring.iter().flat_map(|record| &record.scaling);
    lines.extend(series.map(|series| ("ring", series.in_words.clone())));
    let curves = summary.cost.iter().flat_map(|record| &record.cost).flat_map(|cost| &cost.curves);
    lines.extend(curves.map(|curve| ("cost", format!("{}: {}", walk(curve), curve.in_words))));
    lines.extend(summary.response.iter().flat_map(of_response).map(|line| ("response", line)));
    lines.extend(summary.clock.iter().filter_map(of_clock).map(|line| ("clock", line)));
    let noisy = noise(summary).into_iter().filter(|(_, verdict)| !verdict.reasons.is_empty());
    lines.extend(
        noisy.map(|(name, verdict)| ("machine", format!("{name}: {}", verdict.in_words()))),
    );
    lines.extend(ends(summary));
    lines
}

fn walk(curve: &model::cost::Curve) -> String {
    crate::cost::table::walk_words(&curve.work)
}

fn of_response(record: &response::Record) -> Vec<String> {
    let loops = record.loops.iter().filter(|of| LOOPS.contains(&&*of.call));
    let loops = loops.filter_map(|of| Some(format!("{} {}", of.call, estimate(of.ns.as_ref()?))));
    let late = |found: &wakeup::Found| {
        let median = estimate(found.median_ns.as_ref()?);
        let tail = found
            .p99_ns
            .map_or(String::new(), |tail| format!(", 99 % within {}", time(tail.value_ns as f64)));
        let policy = crate::response::delays::policy(record, found);
        Some(format!("woken on a CPU that is {}, policy {policy}: {median} late{tail}", found.load))
    };
    let lines = [loops.collect::<Vec<_>>().join(", ")];
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.chain(record.wakeups.iter().filter_map(late)).collect()
}

fn of_clock(record: &trial::Record) -> Option<String> {
    let Findings::Overhead(found) = &record.findings else { return None };
    let of = |name: &&str| {
        let call = found.calls.iter().find(|call| call.call == **name)?;
        let ns = call.back_to_back_ticks?.scaled(record.ns_per_tick?)?;
        Some(format!("{name} {}", estimate(&ns)))
    };
    let calls: Vec<String> = CLOCKS.iter().filter_map(of).collect();
    (!calls.is_empty()).then(|| calls.join(", "))
}

/// Why each run ended, and what could not be had.
fn ends(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut stopped = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut add = |name, header: (&[String], &[String]), end: Option<&End>| {
        if let Some(end) = end {
            let spent = Duration::from_nanos(end.spent_ns).as_secs_f64();
            stopped.push(format!("{name} {} ({spent:.1} s)", terminal::reason_words(end.reason)));
        }
        for note in header.0.iter().chain(header.1) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    };
    for (name, record) in [("ring", &summary.ring), ("cost", &summary.cost)] {
        if let Some(of) = record {
            add(name, (&of.header.notices, &of.warnings), of.end.as_ref());
        }
    }
    if let Some(of) = &summary.response {
        add("response", (&of.header.notices, &of.warnings), of.end.as_ref());
    }
    if let Some(of) = &summary.clock {
        add("clock", (&of.header.notices, &of.warnings), of.end.as_ref());
    }
    let stopped = (!stopped.is_empty()).then(|| ("stopped", stopped.join("; ")));
    stopped.into_iter().chain(notes.into_iter().map(|note| ("note", note))).collect()
}
