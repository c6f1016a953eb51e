//! `clock overhead`: what it costs to ask for the time.

use analysis::findings::TrialSummary;
use analysis::findings::overhead::{CallCost, OverheadFindings};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::published::hines2000;
use analysis::record::TrialRecord;
use anyhow::Result;
use charts::Figure;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use probe::trial::calls::CALLS;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::ring::Policy;
use rundata::trial::Trial;

use super::{MOST_TRIALS, OneCpuArgs, TrialPlan, available, ticks_cell};
use crate::base::failure::usage;
use crate::base::values::whole;
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::measures::{self, MeasureLabels};
use crate::report::figures::CLOCK_CALLS;
use crate::report::printout::printout;
use crate::report::table::Table;
use crate::report::terminal::{CLOCK_LEGEND, ReportText, View, figure as digits};

/// Returns the accepted names of calls, with a summary of each for help.
fn call_names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        CALLS.iter().map(|call| PossibleValue::new(call.name).help(call.summary)),
    )
}

#[derive(Debug, Args)]
pub(crate) struct OverheadArgs {
    /// Calls to measure, by name, instead of all that this machine has
    #[arg(long, value_name = "CALL,...", value_delimiter = ',', value_parser = call_names())]
    pub(crate) calls: Vec<String>,

    /// Single calls in each round
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = whole(1..=MOST_TRIALS))]
    pub(crate) trials: u32,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs,
}

/// Plans the calls that are asked for, with a note on each that this machine does not have.
pub(crate) fn plan(args: &OverheadArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let (calls, notices) = available(CALLS, |name| {
        args.calls.is_empty() || args.calls.iter().any(|asked| asked == name)
    })?;
    if calls.is_empty() {
        return Err(usage(format!("--calls: {}", notices.join("; "))));
    }
    let plan = TrialPlan {
        experiment: Experiment::ClockOverhead,
        trials: calls.into_iter().map(|call| Trial::Call { call }).collect(),
        policy: Policy::Other,
        repeats: args.trials,
        notices: Notice::from_texts(notices),
    };
    plan.on_cpu(&args.common, here)
}

const OVERHEAD_LEGEND: &str = "in a row: ns per call of a hundred calls one after the other, \
     median of rounds and 95 % interval\nalone: ns of one call less the cost of the two time \
     stamps around it, median of rounds\nmean to p99: ns of all single calls, less the time \
     stamps, with interruptions; -: less than the time stamps\n";

pub(crate) fn text(record: &TrialRecord, found: &OverheadFindings, view: View) -> ReportText {
    let table = measures::measures(record, "call", view);
    let step = match found.step_ticks {
        Some(step) => format!(
            "the counter advances in steps of about {step:.0} ticks: a single short call is not \
                resolved below that\n"
        ),
        None => String::new(),
    };
    let clock = if view.wide { CLOCK_LEGEND } else { "" };
    let history = view.history.then(|| format!("\n{}", published_calls(&found.calls)));
    ReportText {
        headline: answer(record),
        table: printout![table, "\n", history],
        details: printout![single_calls(record, found), "\n\n", OVERHEAD_LEGEND, clock, step],
        ..ReportText::default()
    }
}

/// Builds a table of what single calls took, with interruptions.
fn single_calls(record: &TrialRecord, found: &OverheadFindings) -> Table {
    let mut rows = Vec::new();
    for call in &found.calls {
        let net = &call.net_ticks;
        let mut cells = vec![call.call.clone()];
        cells.push(ticks_cell(record, Some(net.mean)));
        cells.push(ticks_cell(record, net.sd));
        for ticks in [net.min, net.p50, net.p99, net.max] {
            cells.push(ticks_cell(record, Some(ticks as f64)));
        }
        cells.push(record.cases[call.case].rounds.to_string());
        rows.push(cells);
    }
    let columns = ["call", "mean ns", "SD ns", "min ns", "p50 ns", "p99 ns", "max ns", "rounds"];
    Table::new(columns, rows)
}

/// A way to read a thread's CPU time: the call and how a sentence names it.
struct ClockReading {
    call: &'static str,
    in_words: &'static str,
}

/// Calls that are compared with the paper's getpinfo: threadclock's reading and its system call.
const GETPINFO_CALLS: [ClockReading; 2] = [
    ClockReading { call: "getpinfo-self", in_words: "getpinfo of oneself" },
    ClockReading { call: "getpinfo-call", in_words: "getpinfo, the system call, of oneself" },
];

/// Returns a line for each of [`GETPINFO_CALLS`] that was measured: its ratio to getrusage here, and
/// in table 1 of the paper.
fn published_calls(calls: &[CallCost]) -> String {
    let (rusage_then, getpinfo_then) = (hines2000::GETRUSAGE, hines2000::GETPINFO);
    let ratio_then = rusage_then.mean_cycles / getpinfo_then.mean_cycles;
    let Some(rusage) = find_call(calls, "getrusage") else { return String::new() };
    let mut lines = String::new();
    for reading in GETPINFO_CALLS {
        let Some(getpinfo) = find_call(calls, reading.call) else { continue };
        let Some(ratio) = ratio_in_a_row(rusage, getpinfo) else { continue };
        lines += &format!(
            "getrusage / {}: {} / {} alone, {} in a row; {} / {} = {ratio_then:.2} in 2000\n",
            reading.in_words,
            ticks_in_words(rusage),
            ticks_in_words(getpinfo),
            digits(ratio),
            cycles_in_words(&rusage_then),
            cycles_in_words(&getpinfo_then)
        );
    }
    lines
}

fn find_call<'a>(calls: &'a [CallCost], name: &str) -> Option<&'a CallCost> {
    calls.iter().find(|call| call.call == name)
}

/// Returns how many times the cost of `other` a call costs, both in a row; `None` where one may not
/// be quoted.
fn ratio_in_a_row(call: &CallCost, other: &CallCost) -> Option<f64> {
    let ticks = call.back_to_back_ticks?.quote_cost().ok()?;
    let other_ticks = other.back_to_back_ticks?.quote_cost().ok()?;
    Some(ticks.value() / other_ticks.value())
}

fn ticks_in_words(call: &CallCost) -> String {
    format!("{} ticks (SD {})", digits(call.net_ticks.mean), digits(call.net_ticks.sd))
}

fn cycles_in_words(call: &hines2000::CallCycles) -> String {
    format!("{} cycles (SD {})", call.mean_cycles, call.sd_cycles)
}

/// Ways to read the CPU time of a thread that the answer compares.
const READINGS: [ClockReading; 3] = [
    ClockReading { call: "threadclock-now", in_words: "threadclock" },
    ClockReading { call: "thread-cputime", in_words: "clock_gettime(CLOCK_THREAD_CPUTIME_ID)" },
    ClockReading { call: "getrusage", in_words: "getrusage" },
];

/// Returns what it costs to read a thread's CPU time; where fewer than two ways were measured, what
/// the cheapest call costs and the dearest.
fn answer(record: &TrialRecord) -> MarkedText {
    let costs = measures::costs(record);
    let mut readings = Vec::new();
    for reading in READINGS {
        let Some((_, ns)) = costs.iter().find(|(call, _)| call == reading.call) else { continue };
        let Ok(best) = ns.answer_cost() else { continue };
        let time = MarkedText::figure(best.brief_time());
        readings.push(marked![time, format!(" by {}", reading.in_words)]);
    }
    if readings.len() > 1 {
        let readings = MarkedText::join(readings, ", ");
        return marked!["Reading a thread's CPU time takes ", readings, "."];
    }
    measures::answer(record, "call")
}

/// Returns the numbers of the cases of the readings that the answer compares, in its order.
pub(crate) fn answer_cases(record: &TrialRecord) -> Vec<usize> {
    let mut cases = Vec::new();
    for reading in READINGS {
        let is_reading = |summary: &TrialSummary| summary.case.trial.to_string() == reading.call;
        cases.extend(record.cases.iter().position(is_reading));
    }
    cases
}

pub(crate) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    let chart = (CLOCK_CALLS, "What it costs to ask for the time");
    let labels = MeasureLabels { noun: "call", chart };
    measures::chart(record, &labels, "Calls made one after the other.", index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::estimate::Estimate;
    use rundata::trial::TallySummary;

    fn call(name: &str, ticks: f64, sd: f64) -> CallCost {
        let in_a_row = Estimate {
            standard_error: None,
            speed: Default::default(),
            at_most: None,
            value: ticks,
            low: Some(0.9 * ticks),
            high: Some(1.1 * ticks),
            confidence: 0.95,
            resolved: true,
            rounds: 6,
        };
        let middle = ticks as i64;
        CallCost {
            case: 0,
            call: name.to_string(),
            net_ticks: TallySummary {
                count: 100,
                mean: ticks,
                sd: Some(sd),
                min: middle,
                p50: middle,
                p99: middle,
                max: middle,
            },
            median_ticks: None,
            back_to_back_ticks: Some(in_a_row),
        }
    }

    #[test]
    fn the_paper_is_beside_the_ways_that_there_are() {
        let usage = call("getrusage", 624.0, 30.0);
        let library = call("getpinfo-self", 12.0, 1.0);
        let system_call = call("getpinfo-call", 208.0, 20.0);
        assert_eq!(published_calls(std::slice::from_ref(&usage)), "");
        let library_only = published_calls(&[usage.clone(), library.clone()]);
        assert_eq!(library_only.lines().count(), 1);
        let text = published_calls(&[usage, library, system_call]);
        assert_eq!(
            text.lines().nth(1),
            Some(
                "getrusage / getpinfo, the system call, of oneself: 624 ticks (SD 30.0) / \
                 208 ticks (SD 20.0) alone, 3.00 in a row; \
                 416 cycles (SD 161) / 213 cycles (SD 66) = 1.95 in 2000"
            )
        );
    }
}
