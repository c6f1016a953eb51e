//! `switchcost clock`: what reading clocks costs. Here is what it shares with the other experiments
//! of Hines, Wyatt and Chang (2000) in `documents`.

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
use crate::report::terminal::{View, at_clock, figure as digits};

/// Most trials in a round: each is kept, and more rounds say more than more trials.
pub(crate) const MOST_TRIALS: u32 = 1_000_000;

/// What experiments on one CPU take; `BUDGET` as that of [`Effort`].
#[derive(Debug, Args)]
pub(crate) struct Common<const BUDGET: u64 = 20> {
    /// The CPU to measure on, instead of one away from CPU 0 and from this program
    #[arg(long, aliases = ["cpus", "placement"], value_name = "CPU")]
    pub(crate) cpu: Option<u32>,

    #[command(flatten)]
    pub(crate) effort: Effort<BUDGET>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Calls that stand for the others: what a program pays to know how long it has run.
pub(crate) const FIRST: [&str; 4] =
    ["time-stamp", "threadclock-now", "thread-cputime", "getrusage"];

pub(crate) fn planned(
    experiment: Experiment,
    trials: Vec<Trial>,
    (policy, repeats): (Policy, u32),
    notices: Vec<Notice>,
    (common, here): (&Common, &LocalHost),
) -> Result<PlanWithNotices> {
    let cpu = here.cpu(common.cpu, &here.current_load())?;
    let cases = trials.into_iter().map(|trial| TrialCase { trial, cpu, policy });
    let batching = Batching::of_trials(TrialBatching { trials: repeats });
    Ok((common.effort.plan(experiment, cases, batching), notices))
}

/// The names of those of these calls that are asked for and available here, and a note on each
/// other one that is asked for.
pub(crate) fn available(
    of: &'static [RegisteredCall],
    is_asked: impl Fn(&str) -> bool,
) -> Result<(Vec<String>, Vec<String>)> {
    let all = calls::available(of).context("cannot find out which calls are available")?;
    let (mut names, mut notices) = (Vec::new(), Vec::new());
    for (call, why_not) in all.into_iter().filter(|(call, _)| is_asked(call.name)) {
        match why_not {
            None => names.push(call.name.to_string()),
            Some(why) => notices.push(format!("{} is not available here: {why}", call.name)),
        }
    }
    Ok((names, notices))
}

/// Ticks of the time-stamp counter in nanoseconds.
pub(crate) fn ns(record: &TrialRecord, ticks: Option<Estimate>) -> Option<Estimate> {
    ticks?.scaled(record.found.ns_per_tick?)
}

/// What calls took, in ticks, in nanoseconds; a dash where it came out as less than the time stamps
/// around them.
pub(crate) fn ns_of(record: &TrialRecord, ticks: Option<f64>) -> String {
    let ticks = ticks.filter(|ticks| *ticks >= 0.0);
    digits(record.found.ns_per_tick.zip(ticks).map(|(ns, ticks)| ns * ticks))
}

/// Cycles and GHz of a case, where they are asked for.
pub(crate) fn clock_of(
    record: &TrialRecord,
    case: usize,
    view: View,
) -> impl Iterator<Item = MarkedText> {
    let case = &record.cases[case];
    view.wide.then(|| at_clock(case.cycles, case.clock_ghz)).into_iter().flatten()
}

/// A line of estimates, by ascending places.
pub(crate) fn line(name: String, index: usize, mut at: Vec<(f64, Option<Estimate>)>) -> Series {
    at.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Series::new(name, index, Role::Measured, cost_points(at))
}
