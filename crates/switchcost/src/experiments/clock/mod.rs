//! `switchcost clock`: what reading clocks costs. Here is what it shares with the other experiments
//! on one CPU, among them those of Hines, Wyatt and Chang (2000) in `documents`.

pub(crate) mod overhead;

use analysis::estimate::Estimate;
use analysis::marked::MarkedText;
use analysis::record::TrialRecord;
use anyhow::{Context, Result};
use charts::{Role, Series};
use clap::Args;
use probe::trial::calls::{self, RegisteredCall};
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::plan::Batching;
use rundata::ring::Policy;
use rundata::trial::{Trial, TrialBatching, TrialCase};

use crate::engine::effort::Effort;
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::report::figures::cost_points;
use crate::report::output::OutputOptions;
use crate::report::terminal::{View, at_clock, figure};

/// Most trials in a round: each is kept, and more rounds say more than more trials.
pub(crate) const MOST_TRIALS: u32 = 1_000_000;

/// Options of an experiment on one CPU; `BUDGET` is its default budget in seconds.
#[derive(Debug, Args)]
pub(crate) struct OneCpuArgs<const BUDGET: u64 = 20> {
    /// The CPU to measure on, instead of one away from CPU 0 and from this program
    #[arg(long, aliases = ["cpus", "placement"], value_name = "CPU")]
    pub(crate) cpu: Option<u32>,

    #[command(flatten)]
    pub(crate) effort: Effort<BUDGET>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Calls that stand for the others: what a program pays to know how long it has run.
pub(crate) const HEADLINE_CALLS: [&str; 4] =
    ["time-stamp", "threadclock-now", "thread-cputime", "getrusage"];

/// Trials that are measured on one CPU under one policy.
pub(crate) struct TrialPlan {
    pub(crate) experiment: Experiment,
    pub(crate) trials: Vec<Trial>,
    pub(crate) policy: Policy,
    /// Number of times that a trial is done in each round.
    pub(crate) repeats: u32,
    pub(crate) notices: Vec<Notice>,
}

impl TrialPlan {
    /// Plans the trials on the CPU that was asked for, or on a quiet one.
    pub(crate) fn on_cpu(self, args: &OneCpuArgs, here: &LocalHost) -> Result<PlanWithNotices> {
        let cpu = here.cpu(args.cpu, &here.current_load())?;
        let mut cases = Vec::new();
        for trial in self.trials {
            cases.push(TrialCase { trial, cpu, policy: self.policy });
        }
        let batching = Batching::of_trials(TrialBatching { trials: self.repeats });
        Ok((args.effort.plan(self.experiment, cases, batching), self.notices))
    }
}

/// Returns the names of the calls that are asked for and available here, and a note on each other
/// call that is asked for.
pub(crate) fn available(
    registered: &'static [RegisteredCall],
    is_asked: impl Fn(&str) -> bool,
) -> Result<(Vec<String>, Vec<String>)> {
    let found =
        calls::available(registered).context("cannot find out which calls are available")?;
    let (mut names, mut notices) = (Vec::new(), Vec::new());
    for (call, why_not) in found {
        if !is_asked(call.name) {
            continue;
        }
        match why_not {
            None => names.push(call.name.to_string()),
            Some(why) => notices.push(format!("{} is not available here: {why}", call.name)),
        }
    }
    Ok((names, notices))
}

/// Converts ticks of the time-stamp counter into nanoseconds; `None` where its rate is not known.
pub(crate) fn ticks_to_ns(record: &TrialRecord, ticks: Option<Estimate>) -> Option<Estimate> {
    ticks?.scaled(record.found.ns_per_tick?)
}

/// Returns a cell with ticks as nanoseconds; a dash where the call came out as less than the time
/// stamps around it.
pub(crate) fn ticks_cell(record: &TrialRecord, ticks: Option<f64>) -> String {
    match (record.found.ns_per_tick, ticks) {
        (Some(ns_per_tick), Some(ticks)) if ticks >= 0.0 => figure(ns_per_tick * ticks),
        _ => figure(None),
    }
}

/// Returns the cells with cycles and GHz of a case; none unless the table is wide.
pub(crate) fn clock_cells(record: &TrialRecord, case: usize, view: View) -> Vec<MarkedText> {
    let case = &record.cases[case];
    if view.wide { at_clock(case.cycles, case.clock_ghz).to_vec() } else { Vec::new() }
}

/// Builds a line of estimates, ordered by their places.
pub(crate) fn measured_line(
    name: String,
    index: usize,
    mut estimates: Vec<(f64, Option<Estimate>)>,
) -> Series {
    estimates.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Series::new(name, index, Role::Measured, cost_points(estimates))
}
