//! `switchcost response` on the terminal; one file a part.

mod budget;
mod csv;
mod interrupts;
mod links;
mod signals;
mod system_calls;
mod wakeup;

use std::fmt::Write;
use std::path::Path;

pub(crate) use csv::rows;
use model::company::Company;
use model::response::Record;
pub(super) use wakeup::policy;

use super::parts;

/// The whole report, ending with a newline.
pub(crate) fn report(record: &Record, path: Option<&Path>) -> String {
    let mut text = String::new();
    let cpus: Vec<String> = record.header.plan.cpus().iter().map(u32::to_string).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}, on CPU {}\n", parts::heading(&record.header), cpus.join(","));
    let sections = [
        system_calls::section(record),
        signals::section(record),
        links::section(record),
        interrupts::section(record),
        wakeup::section(record),
        budget::section(record),
    ];
    for section in sections.into_iter().flatten() {
        let _ = writeln!(text, "{section}");
    }
    for line in common(record) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", parts::place(path));
    text
}

fn common(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    for (case, summary) in record.header.plan.cases.iter().zip(&record.cases) {
        if let Some(failure) = summary.failure() {
            let further =
                if summary.rounds() > 0 { "failed in some rounds" } else { "not measured" };
            lines.push(format!("{further}: {}: {failure}", case.title()));
        }
    }
    lines.extend(record.ns_per_tick.map(parts::ticks));
    lines.push(format!("machine: {}", record.noise.in_words()));
    lines.extend(record.company.as_ref().and_then(Company::line));
    let rounds = record.cases.iter().map(model::response::Summary::rounds).max().unwrap_or(0);
    let end = record.end.as_ref();
    let stopped = parts::stop_words(&record.header, end, rounds, record.worst_precision);
    lines.push(format!("stopped: {stopped}"));
    lines.extend(record.header.notices.iter().map(|notice| format!("note: {notice}")));
    lines.extend(record.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}
