//! Timer wake-ups on the terminal.

use std::fmt::Write;

use model::response::Record;
use model::trial::wakeup::{Found, Tail};

use crate::report::bars::bars;
use crate::report::parts::{align, estimate_words, figure, table};

const LEGEND: &str = "us from the moment asked for (clock_nanosleep, absolute) to the sleeper's first look at the clock;\n\
busy: beside a process of the normal policy that never waits; p50: median of rounds with its interval;\n\
p99, p99.9: of all wakes with their interval by ranks, - with fewer than 368 and 3688 wakes;\n\
ranks take every wake for independent of the others: disturbances that come in clumps make it less sure\n";

/// The section, ending with a newline; none where nothing of it was measured.
pub(super) fn section(record: &Record) -> Option<String> {
    if record.wakeups.is_empty() {
        return None;
    }
    let columns = ["policy", "CPU", "p50", "p99", "p99.9", "max", "wakes"];
    let mut table = table(columns);
    for found in &record.wakeups {
        table.add_row(row(record, found));
    }
    align(&mut table);
    let mut text = format!("wake-up\n\n{table}\n\n{LEGEND}");
    for found in &record.wakeups {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{}, {} CPU: late by, how many wakes, share of all lateness\n({})\n{}",
            policy(record, found),
            found.load,
            beside(found),
            bars(&found.histogram).trim_end()
        );
    }
    Some(text)
}

/// Of the sleeper.
pub(in crate::report) fn policy(record: &Record, found: &Found) -> String {
    let case = record.header.plan.trial(found.case);
    case.map_or("-".to_string(), |case| case.policy.to_string())
}

/// What was counted beside.
fn beside(found: &Found) -> String {
    let slack = found.timer_slack_ns.map_or("unknown".to_string(), |ns| format!("{ns} ns"));
    let mut words = vec![
        format!("{} switches a wake", figure(found.switches_per_wake)),
        format!("timer slack {slack}"),
    ];
    let busy = |percent| format!("its neighbour had {} % of the CPU", figure(Some(percent)));
    words.extend(found.busy_percent.map(busy));
    let stolen = |percent| format!("stolen {} % of the time", figure(Some(percent)));
    words.extend(found.steal_percent.filter(|percent| *percent > 0.0).map(stolen));
    words.join("; ")
}

fn row(record: &Record, found: &Found) -> [String; 7] {
    let us = |ns: i64| figure(Some(ns as f64 / 1e3));
    let tail = |tail: &Option<Tail>| {
        tail.map_or("-".to_string(), |of| {
            format!("{} ({} to {})", us(of.value_ns), us(of.low_ns), us(of.high_ns))
        })
    };
    let median = found.median_ns.and_then(|median| median.scaled(1e-3));
    [
        policy(record, found),
        found.load.to_string(),
        estimate_words(median.as_ref()),
        tail(&found.p99_ns),
        tail(&found.p999_ns),
        us(found.late_ns.max),
        found.late_ns.count.to_string(),
    ]
}
