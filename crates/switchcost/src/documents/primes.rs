//! `classic experiment primes`: how precise and accurate clocks are.

use std::iter::once;

use analysis::estimate::Estimate;
use analysis::findings::primes::{PrecisionComparison, PrimesFindings, PrimesPoint, TimingSpread};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::published::hines2000;
use analysis::quote::NotQuotable;
use analysis::record::TrialRecord;
use anyhow::Result;
use charts::{Axis, Figure, Scale, Unit};
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
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    CLOCK_LEGEND, GHZ, ReportText, View, answer_value, answer_words, count, difference,
    figure as digits,
};

#[derive(Debug, Args)]
pub(crate) struct PrimesArgs {
    /// How many primes: a list (100,500), a range (100..5000:100) or a geometric one (64..4096:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "100..5000:100")]
    pub(crate) primes: List<u32>,

    /// Trials of each way of timing in each round (the paper had 1000 in all)
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = whole(1..=MOST_TRIALS))]
    pub(crate) trials: u32,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs,
}

pub(crate) fn plan(args: &PrimesArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    // Beyond it even a few trials would run into the worker's deadline.
    const MOST: u32 = 100_000;
    if let Some(many) = args.primes.iter().find(|count| **count > MOST) {
        return Err(usage(format!("--primes {many}: accepted are 1 to {MOST}")));
    }
    let trials = args.primes.iter().map(|primes| Trial::Primes { primes: *primes }).collect();
    let plan = TrialPlan {
        experiment: Experiment::ClockPrimes,
        trials,
        policy: Policy::Other,
        repeats: args.trials,
        notices: Vec::new(),
    };
    plan.on_cpu(&args.common, here)
}

/// Names of the ways of timing in words.
const WAYS: [(&str, &str); 3] = [
    (GETRUSAGE_NS, "getrusage(RUSAGE_SELF), user + system"),
    (GETRUSAGE_USER_NS, "getrusage(RUSAGE_SELF), user alone"),
    (GETRUSAGE_THREAD_NS, "getrusage(RUSAGE_THREAD), user + system"),
];

const PRIMES_LEGEND: &str = "mean, SD: CPU time of a trial by threadclock; self, thread: by getrusage(RUSAGE_SELF) \
     and RUSAGE_THREAD, user + system\n\
     means: less those of empty trials, medians of rounds, at any speed; mean cycles: \
     threadclock's at full speed\n\
     gain: how much larger that SD is than threadclock's, in percent\n";

pub(crate) fn text(record: &TrialRecord, found: &PrimesFindings, view: View) -> ReportText {
    let mut columns = vec!["primes", "mean us", "SD us"];
    columns.extend(["self us", "SD us", "gain %", "thread us", "SD us", "gain %"]);
    columns.extend(view.wide.then_some(["mean cycles", GHZ]).into_iter().flatten());
    let verdicts = WAYS.iter().filter_map(|(name, words)| {
        Some(format!("{words}: {}", verdict(found.overall.get(*name)?)))
    });
    let then = view.history.then(|| {
        format!(
            "\nin 2000 the gain of getpinfo over getrusage, which advanced in ticks of 10 ms, \
                was {} %\n",
            hines2000::PRECISION_GAIN_PERCENT
        )
    });
    let table = Table::new(columns, found.points.iter().map(|point| row(record, point, view)));
    ReportText {
        headline: answer(record, found),
        table: printout![table, "\n", then],
        details: printout![PRIMES_LEGEND, view.wide.then_some(CLOCK_LEGEND)],
        findings: verdicts.map(MarkedText::from).collect(),
        ..ReportText::default()
    }
}

fn row(record: &TrialRecord, point: &PrimesPoint, view: View) -> Vec<MarkedText> {
    let us = |way: &str, of: fn(&TimingSpread) -> Estimate| {
        answer_value(count(point.timed.get(way).and_then(|timed| of(timed).scaled(1e-3))))
    };
    let mut cells = cells![point.primes.to_string()].to_vec();
    for way in [THREADCLOCK_NS, GETRUSAGE_NS, GETRUSAGE_THREAD_NS] {
        cells.push(us(way, |timed| timed.mean_ns));
        cells.push(us(way, |timed| timed.sd_ns));
        cells.extend(
            point.against.get(way).map(|against| answer_value(difference(against.gain_percent))),
        );
    }
    cells.extend(clock_cells(record, point.case, view));
    cells
}

fn verdict(against: &PrecisionComparison) -> String {
    let gain = match against.gain_percent {
        None => "no scatter in its results or in threadclock's".to_string(),
        gain => format!("gain in precision by threadclock, %: {}", answer_words(difference(gain))),
    };
    let of_means = difference(against.mean_difference_percent);
    let percent = answer_words(of_means);
    let means = match of_means {
        None => "nothing to compare means by".to_string(),
        Some(Ok(_)) => format!("means differ by {percent} %"),
        Some(Err(NotQuotable::NotResolved { low, high })) => {
            format!("means agree to {} % ({percent} %)", digits(low.abs().max(high.abs())))
        }
        Some(Err(why)) => format!("means: {why}"),
    };
    format!("{gain}; {means}")
}

/// Whether getrusage scatters more than threadclock over the same work, and whether their means
/// agree.
fn answer(record: &TrialRecord, found: &PrimesFindings) -> MarkedText {
    let Some(against) = found.overall.get(GETRUSAGE_NS) else {
        return "Nothing was measured.".into();
    };
    if unfinished(record.end.as_ref()).is_some() {
        return "Whether getrusage or threadclock scatters more is unknown.".into();
    }
    let scatter = match against.gain_percent.map(|gain| gain.answer()) {
        None => "getrusage or threadclock did not scatter".into(),
        Some(Ok(gain)) => {
            let (how, size) =
                (if gain.value() < 0.0 { "less" } else { "more" }, gain.value().abs());
            let size = MarkedText::figure(format!("{}{} %", gain.mark(), digits(size)));
            let how = format!(" {how} than threadclock over the same work");
            marked!["getrusage scatters ", size, how]
        }
        Some(Err(why)) => {
            format!("How much more getrusage scatters than threadclock: {}", why.with_unit("%"))
                .into()
        }
    };
    let means = match against.mean_difference_percent.map(|of| of.quote()) {
        Some(Ok(of)) => format!("; its mean differs by {} %", digits(of.value())),
        Some(Err(NotQuotable::NotResolved { low, high })) => {
            format!("; their means agree to {} %", digits(low.abs().max(high.abs())))
        }
        _ => String::new(),
    };
    // A name stays as it is at the beginning of a sentence.
    marked![scatter, means, "."]
}

/// Which clock a tally of primes is by.
fn clock(tally: &str) -> &str {
    match tally {
        THREADCLOCK_NS => "threadclock",
        GETRUSAGE_NS => "getrusage",
        GETRUSAGE_USER_NS => "getrusage, user time",
        GETRUSAGE_THREAD_NS => "getrusage of the thread",
        other => other,
    }
}

pub(crate) fn figure(found: &PrimesFindings, index: usize) -> Option<Figure> {
    let series = |name: &str| {
        let at = |of: &PrimesPoint| (f64::from(of.primes), of.timed.get(name).map(|t| t.sd_ns));
        measured_line(clock(name).to_string(), index, found.points.iter().map(at).collect())
    };
    let gain = |name: &str| {
        let gain = found.overall.get(name)?.gain_percent?.quote_cost().ok()?;
        Some(format!("{} by {:.0} %", clock(name), gain.value()))
    };
    let gains: Vec<String> = COMPARED_CLOCKS.into_iter().filter_map(gain).collect();
    let gains = match gains.is_empty() {
        true => String::new(),
        false => format!(" threadclock is more precise than {}.", gains.join(", ")),
    };
    let in_words = format!(
        "Standard deviation of the time of the same work: a more precise clock lies lower.{gains}"
    );
    let x = Axis::new("primes found", Unit::Count, Scale::Log);
    let axes = (x, nanoseconds("standard deviation"));
    let series = once(THREADCLOCK_NS).chain(COMPARED_CLOCKS).map(series);
    lines("clock-primes", "How precise clocks are", in_words, axes, series)
}
