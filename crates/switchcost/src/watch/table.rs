//! `switchcost cost --pid` and `-- CMD` on the terminal.

use std::fmt::Write;

use model::reading::Reading;

use super::findings::{ProgramCost, Report};
use crate::terminal::figure;

/// The whole report, ending with a newline.
pub(crate) fn text(report: &Report) -> String {
    let seconds = report.seen.watched_ns as f64 / 1e9;
    let threads = match report.seen.threads {
        Some(1) => ", 1 thread".to_string(),
        Some(threads) => format!(", {threads} threads"),
        None => String::new(),
    };
    let program = &report.program;
    let rate = |reading: &Reading<f64>| figure(reading.known().copied());
    let rows = [
        (
            "switches",
            format!(
                "{} voluntary and {} involuntary a second",
                rate(&program.voluntary_per_s),
                rate(&program.involuntary_per_s)
            ),
        ),
        (
            "CPU time",
            known(&program.cpu_share, |share| {
                format!("{} % of a CPU", figure(Some(100.0 * share)))
            }),
        ),
        (
            "working set",
            known(&program.working_set, |set| {
                let windows = report.seen.windows.len();
                let from =
                    if windows > 0 { format!(" ({windows} windows)") } else { String::new() };
                format!(
                    "{} to {} KiB between two switches{from}",
                    kib(set.low_bytes),
                    kib(set.high_bytes)
                )
            }),
        ),
        (
            "cost profile",
            known(&report.profile, |profile| {
                format!("{} costs of {}", profile.points.len(), profile.run)
            }),
        ),
    ];
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{} (process {}): watched for {} s{threads}\n",
        report.seen.name,
        report.seen.pid,
        figure(Some(seconds))
    );
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<13} {value}");
    }
    let _ = writeln!(text, "\n{}", report.in_words);
    if let ProgramCost::Estimated { assumptions, .. } = &report.cost {
        let _ = writeln!(text, "assumed: {}", assumptions.join("; "));
    }
    for notice in &report.seen.notices {
        let _ = writeln!(text, "note: {notice}");
    }
    text
}

fn known<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    match reading {
        Reading::Known(value) => words(value),
        Reading::Unknown { why } => format!("not known: {why}"),
    }
}

fn kib(bytes: u64) -> String {
    figure(Some(bytes as f64 / 1024.0))
}
