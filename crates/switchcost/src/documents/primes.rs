//! `classic experiment primes`: how precise and accurate getrusage and threadclock are. (Hines, Wyatt
//! and Chang 2000)
//!
//! The same work, finding the first N primes, is timed many times by each clock. The work does not
//! change, so a standard deviation is the clock's own scatter, plus what disturbed the work:
//!
//! ```text
//! threadclock   mean 20.1 us   SD 0.2 us
//! getrusage     mean 20.3 us   SD 0.3 us     gain in precision by threadclock: 50 %
//! ```

use analysis::findings::primes::{PrecisionComparison, PrimesFindings, PrimesPoint};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::published::hines2000;
use analysis::quote::NotQuotable;
use analysis::record::TrialRecord;
use anyhow::Result;
use charts::{Axis, Figure, Scale, Series, Unit};
use clap::Args;
use rundata::experiment::Experiment;
use rundata::ring::Policy;
use rundata::run::unfinished;
use rundata::trial::Trial;
use rundata::trial::primes::{
    COMPARED_CLOCKS, GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, THREADCLOCK_NS,
};

use crate::base::failure::usage;
use crate::base::values::{List, counts, whole};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::clock::{MOST_TRIALS, OneCpuArgs, TrialPlan, clock_cells, measured_line};
use crate::report::figures::{lines, nanoseconds};
use crate::report::printout::printout;
use crate::report::table::Table;
use crate::report::terminal::{
    CLOCK_LEGEND, GHZ, ReportText, View, answer_value, answer_words, count, difference,
    figure as digits,
};

#[derive(Debug, Args)]
pub(crate) struct PrimesArgs {
    /// Number of primes: a list (100,500), a range (100..5000:100) or a geometric one (64..4096:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "100..5000:100")]
    pub(crate) primes: List<u32>,

    /// Trials of each way of timing in each round (the paper had 1000 in all)
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = whole(1..=MOST_TRIALS))]
    pub(crate) trials: u32,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs,
}

/// Most primes of a trial: beyond it even a few trials would run into the worker's deadline.
const MAX_PRIMES: u32 = 100_000;

pub(crate) fn plan(args: &PrimesArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let mut trials = Vec::new();
    for primes in args.primes.iter().copied() {
        if primes > MAX_PRIMES {
            return Err(usage(format!("--primes {primes}: accepted are 1 to {MAX_PRIMES}")));
        }
        trials.push(Trial::Primes { primes });
    }
    let plan = TrialPlan {
        experiment: Experiment::ClockPrimes,
        trials,
        policy: Policy::Other,
        repeats: args.trials,
        notices: Vec::new(),
    };
    plan.on_cpu(&args.common, here)
}

/// Names of the clocks that are compared with threadclock, by their tallies.
const CLOCK_NAMES: [(&str, &str); 3] = [
    (GETRUSAGE_NS, "getrusage(RUSAGE_SELF), user + system"),
    (GETRUSAGE_USER_NS, "getrusage(RUSAGE_SELF), user alone"),
    (GETRUSAGE_THREAD_NS, "getrusage(RUSAGE_THREAD), user + system"),
];

const PRIMES_LEGEND: &str = "mean, SD: CPU time of a trial by threadclock; self, thread: by getrusage(RUSAGE_SELF) \
     and RUSAGE_THREAD, user + system\n\
     means: less those of empty trials, medians of rounds, at any speed; mean cycles: \
     threadclock's at full speed\n\
     gain: how much larger that SD is than threadclock's, in percent\n";

pub(crate) fn text(record: &TrialRecord, findings: &PrimesFindings, view: View) -> ReportText {
    let mut lines: Vec<MarkedText> = Vec::new();
    for (clock, name) in CLOCK_NAMES {
        if let Some(comparison) = findings.overall.get(clock) {
            lines.push(format!("{name}: {}", comparison_words(comparison)).into());
        }
    }
    let published = if view.history { published_gain() } else { String::new() };
    ReportText {
        headline: answer(record, findings),
        table: printout![timing_table(record, findings, view), "\n", published],
        details: printout![PRIMES_LEGEND, if view.wide { CLOCK_LEGEND } else { "" }],
        findings: lines,
        ..ReportText::default()
    }
}

fn published_gain() -> String {
    format!(
        "\nin 2000 the gain of getpinfo over getrusage, which advanced in ticks of 10 ms, \
                was {} %\n",
        hines2000::PRECISION_GAIN_PERCENT
    )
}

/// Returns mean and standard deviation by each clock, a row for each number of primes.
fn timing_table(record: &TrialRecord, findings: &PrimesFindings, view: View) -> Table {
    let mut heads = vec!["primes", "mean us", "SD us"];
    heads.extend(["self us", "SD us", "gain %", "thread us", "SD us", "gain %"]);
    if view.wide {
        heads.extend(["mean cycles", GHZ]);
    }
    let mut rows = Vec::new();
    for point in &findings.points {
        let mut row = vec![MarkedText::from(point.primes.to_string())];
        row.extend(timing_cells(point, THREADCLOCK_NS));
        for clock in [GETRUSAGE_NS, GETRUSAGE_THREAD_NS] {
            row.extend(timing_cells(point, clock));
            let comparison = point.against.get(clock);
            let gain = comparison.and_then(|comparison| comparison.gain_percent);
            row.push(answer_value(difference(gain)));
        }
        row.extend(clock_cells(record, point.case, view));
        rows.push(row);
    }
    Table::new(heads, rows)
}

/// Returns the cells of a clock: mean and standard deviation in microseconds.
fn timing_cells(point: &PrimesPoint, clock: &str) -> [MarkedText; 2] {
    let timing = point.timed.get(clock);
    let mean_ns = timing.map(|timing| timing.mean_ns);
    let sd_ns = timing.map(|timing| timing.sd_ns);
    [mean_ns, sd_ns].map(|ns| answer_value(count(ns.and_then(|ns| ns.scaled(1e-3)))))
}

/// Says how much more a clock scatters than threadclock, and how far their means differ.
fn comparison_words(comparison: &PrecisionComparison) -> String {
    let gain = match comparison.gain_percent {
        None => "no scatter in its results or in threadclock's".to_string(),
        gain => format!("gain in precision by threadclock, %: {}", answer_words(difference(gain))),
    };
    let mean_difference = difference(comparison.mean_difference_percent);
    let percent = answer_words(mean_difference);
    let means = match mean_difference {
        None => "nothing to compare means by".to_string(),
        Some(Ok(_)) => format!("means differ by {percent} %"),
        Some(Err(NotQuotable::NotResolved { low, high })) => {
            format!("means agree to {} % ({percent} %)", largest_size(low, high))
        }
        Some(Err(why)) => format!("means: {why}"),
    };
    format!("{gain}; {means}")
}

/// Writes the end of an interval that is farther from zero, without its sign.
fn largest_size(low: f64, high: f64) -> String {
    digits(low.abs().max(high.abs()))
}

/// Says whether getrusage scatters more than threadclock over the same work, and whether their means
/// agree.
fn answer(record: &TrialRecord, findings: &PrimesFindings) -> MarkedText {
    let Some(comparison) = findings.overall.get(GETRUSAGE_NS) else {
        return "Nothing was measured.".into();
    };
    if unfinished(record.end.as_ref()).is_some() {
        return "Whether getrusage or threadclock scatters more is unknown.".into();
    }
    let means = match comparison.mean_difference_percent.map(|percent| percent.quote()) {
        Some(Ok(percent)) => format!("; its mean differs by {} %", digits(percent.value())),
        Some(Err(NotQuotable::NotResolved { low, high })) => {
            format!("; their means agree to {} %", largest_size(low, high))
        }
        _ => String::new(),
    };
    marked![scatter_words(comparison), means, "."]
}

/// Says how much more or less getrusage scatters than threadclock. Begins with the name of the call,
/// which has no capital.
fn scatter_words(comparison: &PrecisionComparison) -> MarkedText {
    match comparison.gain_percent.map(|gain| gain.answer()) {
        None => "getrusage or threadclock did not scatter".into(),
        Some(Ok(gain)) => {
            let how = if gain.value() < 0.0 { "less" } else { "more" };
            let size = format!("{}{} %", gain.mark(), digits(gain.value().abs()));
            let rest = format!(" {how} than threadclock over the same work");
            marked!["getrusage scatters ", MarkedText::figure(size), rest]
        }
        Some(Err(why)) => {
            let why = why.with_unit("%");
            format!("How much more getrusage scatters than threadclock: {why}").into()
        }
    }
}

/// Names the clock of a tally in a chart.
fn chart_name(tally: &str) -> &str {
    match tally {
        THREADCLOCK_NS => "threadclock",
        GETRUSAGE_NS => "getrusage",
        GETRUSAGE_USER_NS => "getrusage, user time",
        GETRUSAGE_THREAD_NS => "getrusage of the thread",
        other => other,
    }
}

/// Draws the standard deviation by each clock against the number of primes.
pub(crate) fn figure(findings: &PrimesFindings, index: usize) -> Option<Figure> {
    let mut series = vec![deviation_line(findings, THREADCLOCK_NS, index)];
    let mut gains = Vec::new();
    for clock in COMPARED_CLOCKS {
        series.push(deviation_line(findings, clock, index));
        if let Some(percent) = quoted_gain(findings, clock) {
            gains.push(format!("{} by {percent:.0} %", chart_name(clock)));
        }
    }
    let gains = if gains.is_empty() {
        String::new()
    } else {
        format!(" threadclock is more precise than {}.", gains.join(", "))
    };
    let in_words = format!(
        "Standard deviation of the time of the same work: a more precise clock lies lower.{gains}"
    );
    let x = Axis::new("primes found", Unit::Count, Scale::Log);
    let axes = (x, nanoseconds("standard deviation"));
    lines("clock-primes", "How precise clocks are", in_words, axes, series)
}

fn deviation_line(findings: &PrimesFindings, clock: &str, index: usize) -> Series {
    let mut deviations = Vec::new();
    for point in &findings.points {
        let sd_ns = point.timed.get(clock).map(|timing| timing.sd_ns);
        deviations.push((f64::from(point.primes), sd_ns));
    }
    measured_line(chart_name(clock).to_string(), index, deviations)
}

/// Returns how much more precise threadclock is than a clock, in percent, if that is above zero.
fn quoted_gain(findings: &PrimesFindings, clock: &str) -> Option<f64> {
    let gain = findings.overall.get(clock)?.gain_percent?;
    Some(gain.quote_cost().ok()?.value())
}
