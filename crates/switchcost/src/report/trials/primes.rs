//! `clock primes` on the terminal.

use std::fmt::Write;

use model::published::hines2000;
use model::trial::primes::{
    Against, Found, GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, Point, THREADCLOCK_NS,
    Timed,
};

use crate::report::parts::{align, estimate_words, figure, table};

/// Names of the ways of timing in words.
const WAYS: [(&str, &str); 3] = [
    (GETRUSAGE_NS, "getrusage(RUSAGE_SELF), user + system"),
    (GETRUSAGE_USER_NS, "getrusage(RUSAGE_SELF), user alone"),
    (GETRUSAGE_THREAD_NS, "getrusage(RUSAGE_THREAD), user + system"),
];

pub(super) fn text(found: &Found) -> String {
    let mut table =
        table(["primes", "mean us", "SD", "self us", "SD", "gain %", "thread us", "SD", "gain %"]);
    for point in &found.points {
        table.add_row(row(point));
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{LEGEND}");
    for (name, words) in WAYS {
        if let Some(against) = found.overall.get(name) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{words}: {}", verdict(against));
        }
    }
    let _ = writeln!(
        text,
        "in 2000 the gain of getpinfo over getrusage was {} %, which went on in ticks of 10 ms",
        hines2000::PRECISION_GAIN_PERCENT
    );
    text
}

const LEGEND: &str = "mean us, SD: microseconds of CPU time per trial by threadclock; self, thread: by getrusage(RUSAGE_SELF) and of\n  RUSAGE_THREAD, user + system; means less those of empty trials, medians of rounds\n\
gain: how much larger that SD is than threadclock's, in percent\n";

fn row(point: &Point) -> Vec<String> {
    let us = |way: &str, of: fn(&Timed) -> f64| figure(point.timed.get(way).map(|t| of(t) / 1e3));
    let mut cells = vec![point.primes.to_string()];
    for way in [THREADCLOCK_NS, GETRUSAGE_NS, GETRUSAGE_THREAD_NS] {
        cells.push(us(way, |timed| timed.mean_ns.value));
        cells.push(us(way, |timed| timed.sd_ns.value));
        if let Some(against) = point.against.get(way) {
            cells.push(figure(against.gain_percent.map(|gain| gain.value)));
        }
    }
    cells
}

fn verdict(against: &Against) -> String {
    let gain = match &against.gain_percent {
        None => "its results never scattered, or threadclock's did not".to_string(),
        Some(gain) => format!("threadclock gains {} % in precision", estimate_words(Some(gain))),
    };
    let means = match &against.mean_difference_percent {
        None => "nothing to compare means by".to_string(),
        Some(difference) => {
            let percent = estimate_words(Some(difference));
            match difference.interval() {
                None => format!("means: {percent} %"),
                Some(_) if difference.resolved => format!("means differ by {percent} %"),
                Some(interval) => {
                    let most = interval.low.abs().max(interval.high.abs());
                    format!("means agree to {} % ({percent} %)", figure(Some(most)))
                }
            }
        }
    };
    format!("{gain}; {means}")
}
