//! `clock overhead`: what it costs to ask for the time.

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

/// The calls by name, each with what it is.
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

/// A note on each call that this machine does not have is with the plan.
pub(crate) fn plan(args: &OverheadArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let is_asked = |name: &str| args.calls.is_empty() || args.calls.iter().any(|one| one == name);
    let (calls, notices) = available(CALLS, is_asked)?;
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
    let step = found.step_ticks.map_or(String::new(), |step| {
        format!(
            "the counter advances in steps of about {step:.0} ticks: a single short call is not \
                resolved below that\n"
        )
    });
    let clock = if view.wide { CLOCK_LEGEND } else { "" };
    let then = view.history.then(|| format!("\n{}", beside_the_paper(&found.calls)));
    ReportText {
        headline: answer(record),
        table: printout![table, "\n", then],
        details: printout![single_calls(record, found), "\n\n", OVERHEAD_LEGEND, clock, step],
        ..ReportText::default()
    }
}

/// What single calls took.
fn single_calls(record: &TrialRecord, found: &OverheadFindings) -> Table {
    let row = |call: &CallCost| {
        let net = &call.net_ticks;
        let whole = [net.min, net.p50, net.p99, net.max].map(|ticks| Some(ticks as f64));
        let figures = [Some(net.mean), net.sd].into_iter().chain(whole);
        let cells = figures.map(|ticks| ticks_cell(record, ticks));
        let rounds = record.cases[call.case].rounds.to_string();
        let cells = std::iter::once(call.call.clone()).chain(cells).chain([rounds]);
        cells.collect::<Vec<String>>()
    };
    let columns = ["call", "mean ns", "SD ns", "min ns", "p50 ns", "p99 ns", "max ns", "rounds"];
    Table::new(columns, found.calls.iter().map(row))
}

/// Table 1 of the paper, and the same calls here: threadclock's, and the system call where there is
/// one.
fn beside_the_paper(calls: &[CallCost]) -> String {
    let call = |name: &str| calls.iter().find(|call| call.call == name);
    let in_a_row =
        |call: &CallCost| call.back_to_back_ticks?.quote_cost().ok().map(|ticks| ticks.value());
    let ticks = |call: &CallCost| {
        format!("{} ticks (SD {})", digits(call.net_ticks.mean), digits(call.net_ticks.sd))
    };
    let (then, theirs) = (hines2000::GETRUSAGE, hines2000::GETPINFO);
    let cycles =
        |of: &hines2000::CallCycles| format!("{} cycles (SD {})", of.mean_cycles, of.sd_cycles);
    let ratio_then = then.mean_cycles / theirs.mean_cycles;
    let way = |(name, words): (&str, &str)| {
        let (usage, info) = (call("getrusage")?, call(name)?);
        let ratio = in_a_row(usage)? / in_a_row(info)?;
        Some(format!(
            "getrusage / {words}: {} / {} alone, {} in a row; {} / {} = {ratio_then:.2} in 2000\n",
            ticks(usage),
            ticks(info),
            digits(ratio),
            cycles(&then),
            cycles(&theirs)
        ))
    };
    let ways = [
        ("getpinfo-self", "getpinfo of oneself"),
        ("getpinfo-call", "getpinfo, the system call, of oneself"),
    ];
    ways.into_iter().filter_map(way).collect()
}

/// Ways to read the CPU time of a thread: the call, and what it is called.
const READINGS: [(&str, &str); 3] = [
    ("threadclock-now", "threadclock"),
    ("thread-cputime", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)"),
    ("getrusage", "getrusage"),
];

/// What it costs to read a thread's CPU time; where that was not asked for, of the cheapest call
/// and of the dearest.
fn answer(record: &TrialRecord) -> MarkedText {
    let costs = measures::costs(record);
    let reading = |(name, words): (&str, &str)| {
        let (_, ns) = costs.iter().find(|(call, _)| call == name)?;
        let time = MarkedText::figure(ns.answer_cost().ok()?.brief_time());
        Some(marked![time, format!(" by {words}")])
    };
    let readings: Vec<MarkedText> = READINGS.into_iter().filter_map(reading).collect();
    if readings.len() > 1 {
        let readings = MarkedText::join(readings, ", ");
        return marked!["Reading a thread's CPU time takes ", readings, "."];
    }
    measures::answer(record, "call")
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
        assert_eq!(beside_the_paper(std::slice::from_ref(&usage)), "");
        let library_only = beside_the_paper(&[usage.clone(), library.clone()]);
        assert_eq!(library_only.lines().count(), 1);
        let text = beside_the_paper(&[usage, library, system_call]);
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
