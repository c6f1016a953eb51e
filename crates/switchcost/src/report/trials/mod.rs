//! Reports of trials: what they have in common; one file an experiment.

mod csv;
mod interference;
mod malloc;
mod overhead;
mod primes;
mod sampling;

use std::fmt::Write;
use std::path::Path;

pub(crate) use csv::rows;
use model::company::Company;
use model::trial::{Findings, Record};

use super::parts;

/// The whole report, ending with a newline.
pub(crate) fn report(record: &Record, path: Option<&Path>) -> String {
    let mut text = String::new();
    let cpu = record.cases.first().map(|case| case.case.cpu);
    let cpu = cpu.map_or(String::new(), |cpu| format!(", on CPU {cpu}"));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}{cpu}\n", parts::heading(&record.header));
    text.push_str(&match &record.findings {
        Findings::Overhead(found) => overhead::text(record, found),
        Findings::Primes(found) => primes::text(found),
        Findings::Malloc(found) => malloc::text(record, found),
        Findings::Interference(found) => interference::text(record, found),
        Findings::Sampling(points) => sampling::text(record, points),
    });
    for line in common(record) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", parts::place(path));
    text
}

fn common(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    for case in &record.cases {
        if let Some(failure) = &case.failure {
            let further = if case.rounds > 0 { "failed in some rounds" } else { "not measured" };
            lines.push(format!("{further}: {}: {failure}", case.case.trial));
        }
    }
    lines.extend(record.ns_per_tick.map(parts::ticks));
    lines.push(format!("machine: {}", record.noise.in_words()));
    lines.extend(record.company.as_ref().and_then(Company::line));
    let rounds = record.cases.iter().map(|case| case.rounds).max().unwrap_or(0);
    let end = record.end.as_ref();
    let stopped = parts::stop_words(&record.header, end, rounds, record.worst_precision);
    lines.push(format!("stopped: {stopped}"));
    lines.extend(record.header.notices.iter().map(|notice| format!("note: {notice}")));
    lines.extend(record.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}
