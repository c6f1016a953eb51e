//! `switchcost clock`: the experiments of Hines, Wyatt and Chang (2000). Here is what may be typed.

mod answer;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use probe::trial::CALLS;

use crate::base::values::{List, counts, duration, whole};
use crate::engine::effort::Effort;
use crate::present::output::Output;
use model::estimate::Estimate;
use model::record::Trials;

/// Most trials in a round: each is kept, and more rounds say more than more trials.
const MOST_TRIALS: u32 = 1_000_000;

#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// What it costs to ask for the time, by every way to ask
    ///
    /// Each call is timed alone between two time stamps, whose own cost is taken off, and in
    /// batches, one call after the other.
    Overhead(OverheadArgs),
    /// How precise and accurate getrusage and threadclock are, timing the same work
    ///
    /// The first N primes are computed many times, timed in turn by each way of timing; the less
    /// the results scatter, the more precise the way.
    #[command(mut_arg("budget", |arg| arg.default_value("60s")))]
    Primes(PrimesArgs),
    /// What malloc and free cost, by size of the block, and what made the slow ones slow
    Malloc(MallocArgs),
    /// What accounting by the timer tick makes of a process that sleeps whenever the tick comes
    // It has a duration of its own.
    #[command(mut_arg("other_duration", |arg| arg.long("seconds")))]
    Sampling(SamplingArgs),
}

impl ClockCommand {
    pub(crate) fn common(&self) -> &Common {
        match self {
            Self::Overhead(args) => &args.common,
            Self::Primes(args) => &args.common,
            Self::Malloc(args) => &args.common,
            Self::Sampling(args) => &args.common,
        }
    }
}

/// What experiments on one CPU take; `BUDGET` as that of [`Effort`].
#[derive(Debug, Args)]
pub(crate) struct Common<const BUDGET: u64 = 20> {
    /// The CPU to measure on, instead of one away from CPU 0 and from this program
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<u32>,

    #[command(flatten)]
    pub(crate) effort: Effort<BUDGET>,

    #[command(flatten)]
    pub(crate) output: Output,
}

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
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct PrimesArgs {
    /// How many primes: a list (100,500), a range (100..5000:100) or a geometric one (64..4096:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "100..5000:100")]
    pub(crate) primes: List<u32>,

    /// Trials of each way of timing in each round (the paper had 1000 in all)
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = whole(1..=MOST_TRIALS))]
    pub(crate) trials: u32,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct MallocArgs {
    /// Sizes of a block in bytes: a list, a range (100..5000:100) or a geometric one (16..65536:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "100..5000:100")]
    pub(crate) sizes: List<u32>,

    /// Blocks in each round: all are allocated, then all are freed
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = whole(1..=MOST_TRIALS))]
    pub(crate) trials: u32,

    /// Another allocator beside the C library's, as LD_PRELOAD takes it: libjemalloc.so.2
    #[arg(long, value_name = "LIBRARY")]
    pub(crate) preload: Vec<String>,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// How long the two processes are watched in each round
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) duration: Duration,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Ticks of the time-stamp counter in nanoseconds.
fn ns(record: &Trials, ticks: Option<Estimate>) -> Option<Estimate> {
    ticks?.scaled(record.found.ns_per_tick?)
}
