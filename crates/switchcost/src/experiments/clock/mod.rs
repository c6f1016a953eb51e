//! `switchcost clock`: the experiments of Hines, Wyatt and Chang (2000), a file each: what may be
//! typed, the plan from it, what is shown. Here is what they share.

mod malloc;
pub(crate) mod overhead;
mod primes;
mod sampling;
#[cfg(test)]
mod tests;

use analysis::estimate::Estimate;
use analysis::findings::Findings;
use analysis::record::TrialRecord;
use anyhow::{Context, Result};
use charts::{Figure, Role, Series};
use clap::{Args, Command, Subcommand};
use probe::trial::calls::{self, Registered};
use rundata::experiment::Experiment;
use rundata::plan::Batching;
use rundata::ring::Policy;
use rundata::trial::{Case, Repeats, Trial};

use crate::engine::effort::Effort;
use crate::engine::setting::{Here, Planned};
use crate::experiments::measures;
use crate::present::figures::points;
use crate::present::output::Output;
use crate::present::terminal::{Text, View, at_clock, figure as digits};

/// Most trials in a round: each is kept, and more rounds say more than more trials.
const MOST_TRIALS: u32 = 1_000_000;

#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// What it costs to ask for the time, by every way to ask
    ///
    /// Each call is timed alone between two time stamps, whose own cost is subtracted, and in
    /// batches of calls in a row.
    #[command(after_long_help = "Example:\n  switchcost clock overhead --calls \
             threadclock-now,getrusage")]
    Overhead(overhead::OverheadArgs),
    #[command(flatten)]
    Paper(PaperCommand),
}

/// The experiments that only the paper asks for: typed as `classic experiment NAME`.
#[derive(Debug, Subcommand)]
pub(crate) enum PaperCommand {
    /// How precise and accurate getrusage and threadclock are, timing the same work
    ///
    /// The first N primes are computed many times, timed in turn by each way of timing; the less
    /// the results scatter, the more precise the way.
    #[command(
        mut_arg("budget", |arg| arg.default_value("60s+")),
        after_long_help = "Example:\n  switchcost classic experiment primes --primes 100,1000"
    )]
    Primes(primes::PrimesArgs),
    /// What malloc and free cost, by size of the block, and what made the slow ones slow
    #[command(after_long_help = "Example:\n  switchcost classic experiment malloc --budget 10s")]
    Malloc(malloc::MallocArgs),
    /// What accounting by the timer tick makes of a process that sleeps whenever the tick comes
    // It has a duration of its own.
    #[command(
        mut_arg("budget", |arg| arg.alias(None).alias("seconds")),
        after_long_help = "Example:\n  switchcost classic experiment sampling"
    )]
    Sampling(sampling::SamplingArgs),
}

impl ClockCommand {
    pub(crate) fn common(&self) -> &Common {
        match self {
            Self::Overhead(args) => &args.common,
            Self::Paper(PaperCommand::Primes(args)) => &args.common,
            Self::Paper(PaperCommand::Malloc(args)) => &args.common,
            Self::Paper(PaperCommand::Sampling(args)) => &args.common,
        }
    }

    /// Returns the name by which an experiment of the paper is called below `classic experiment`.
    pub(crate) fn paper_name(&self) -> Option<&'static str> {
        match self {
            Self::Overhead(_) => None,
            Self::Paper(PaperCommand::Primes(_)) => Some("primes"),
            Self::Paper(PaperCommand::Malloc(_)) => Some("malloc"),
            Self::Paper(PaperCommand::Sampling(_)) => Some("sampling"),
        }
    }
}

/// `clock` with the experiments of the paper out of its help.
pub(crate) fn hide_old(command: Command) -> Command {
    PaperCommand::augment_subcommands(Command::new("paper"))
        .get_subcommands()
        .fold(command, |command, paper| {
            command.mut_subcommand(paper.get_name(), |old| old.hide(true))
        })
}

/// What experiments on one CPU take; `BUDGET` as that of [`Effort`].
#[derive(Debug, Args)]
pub(crate) struct Common<const BUDGET: u64 = 20> {
    /// The CPU to measure on, instead of one away from CPU 0 and from this program
    #[arg(long, aliases = ["cpus", "placement"], value_name = "CPU")]
    pub(crate) cpu: Option<u32>,

    #[command(flatten)]
    pub(crate) effort: Effort<BUDGET>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// Calls that stand for the others: what a program pays to know how long it has run.
pub(crate) const FIRST: [&str; 4] =
    ["time-stamp", "threadclock-now", "thread-cputime", "getrusage"];

/// The plan of a command, and a note on what is not available here.
pub(crate) fn plan(command: &ClockCommand, here: &Here) -> Result<Planned> {
    match command {
        ClockCommand::Overhead(args) => overhead::plan(args, here),
        ClockCommand::Paper(PaperCommand::Primes(args)) => primes::plan(args, here),
        ClockCommand::Paper(PaperCommand::Malloc(args)) => malloc::plan(args, here),
        ClockCommand::Paper(PaperCommand::Sampling(args)) => sampling::plan(args, here),
    }
}

/// What is printed of a run.
pub(crate) fn text(record: &TrialRecord, view: View) -> Text {
    match &record.found.findings {
        Some(Findings::Overhead(found)) => overhead::text(record, found, view),
        Some(Findings::Primes(found)) => primes::text(record, found, view),
        Some(Findings::Malloc(found)) => malloc::text(record, found, view),
        Some(Findings::Sampling(points)) => sampling::text(record, points),
        Some(Findings::Interference(_) | Findings::Sensitivity(_)) | None => {
            measures::text(record, view)
        }
    }
}

/// Its chart.
pub(crate) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    match &record.found.findings {
        Some(Findings::Overhead(_)) => overhead::figure(record, index),
        Some(Findings::Primes(found)) => primes::figure(found, index),
        Some(Findings::Malloc(found)) => malloc::figure(record, found, index),
        Some(Findings::Sampling(points)) => sampling::figure(points, index),
        Some(Findings::Interference(_) | Findings::Sensitivity(_)) | None => {
            measures::figure(record, index)
        }
    }
}

fn planned(
    experiment: Experiment,
    trials: Vec<Trial>,
    (policy, repeats): (Policy, u32),
    notices: Vec<String>,
    (common, here): (&Common, &Here),
) -> Result<Planned> {
    let cpu = here.cpu(common.cpu, &here.current_load())?;
    let cases = trials.into_iter().map(|trial| Case { trial, cpu, policy });
    let batching = Batching::of_trials(Repeats { trials: repeats });
    Ok((common.effort.plan(experiment, cases, batching), notices))
}

/// The names of those of these calls that are asked for and available here, and a note on each
/// other one that is asked for.
pub(crate) fn available(
    of: &'static [Registered],
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
fn ns(record: &TrialRecord, ticks: Option<Estimate>) -> Option<Estimate> {
    ticks?.scaled(record.found.ns_per_tick?)
}

/// What calls took, in ticks, in nanoseconds; a dash where it came out as less than the time stamps
/// around them.
fn ns_of(record: &TrialRecord, ticks: Option<f64>) -> String {
    let ticks = ticks.filter(|ticks| *ticks >= 0.0);
    digits(record.found.ns_per_tick.zip(ticks).map(|(ns, ticks)| ns * ticks))
}

/// Cycles and GHz of a case, where they are asked for.
fn clock_of(record: &TrialRecord, case: usize, view: View) -> impl Iterator<Item = String> {
    let case = &record.cases[case];
    view.wide.then(|| at_clock(case.cycles, case.clock_ghz)).into_iter().flatten()
}

/// A line of estimates, by ascending places.
fn line(name: String, index: usize, mut at: Vec<(f64, Option<Estimate>)>) -> Series {
    at.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Series::new(name, index, Role::Measured, points(at))
}
