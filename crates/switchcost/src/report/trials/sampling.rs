//! `clock sampling` on the terminal.

use std::fmt::Write;

use model::case::Policy;
use model::trial::Record;
use model::trial::sampling::{ACCOUNTS, Point};

use crate::report::parts::{align, estimate_words, figure, table};

pub(super) fn text(record: &Record, points: &[Point]) -> String {
    let mut table = table(["sleeping", "process", "account", "ms per s", "error %"]);
    for point in points {
        for process in &point.processes {
            for account in &ACCOUNTS {
                let told = process.accounts.get(account.name);
                let error = told.map(|told| match &told.error_percent {
                    Some(error) => estimate_words(Some(error)),
                    None => "(the truth)".to_string(),
                });
                table.add_row([
                    point.phase.to_string(),
                    process.process.clone(),
                    account.in_words.to_string(),
                    figure(told.map(|told| told.ms_per_s.value)),
                    error.unwrap_or_else(|| "-".to_string()),
                ]);
            }
        }
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{LEGEND}");
    let ticks: Vec<f64> = points.iter().filter_map(|p| p.tick_ns).map(|e| e.value).collect();
    if let Some(tick) = stats::median(&ticks) {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "a tick every {} ms, by the kernel's word", figure(Some(tick / 1e6)));
    }
    let policy = record.cases.first().map_or(Policy::Other, |case| case.case.policy);
    let _ = writeln!(text, "the sleeper runs for half of its period, under policy {policy}");
    text.push_str("the precision below is that of the sleeper's share of the CPU; errors have intervals of their own\n");
    text
}

const LEGEND: &str = "the whole against the scheduler's sum (CLOCK_PROCESS_CPUTIME_ID, schedstat), user time against threadclock around the\n  system calls; ticks: utime + stime as the kernel samples them\n\
precise on today's Linux: the scheduler's sum, and user + system of a process, which is scaled to it\n\
sampled by ticks: how that sum is split into user and system (getrusage, times, /proc/PID/stat, time(1), top)\n";
