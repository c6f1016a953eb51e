//! The experiments on one CPU that only the paper by Hines et al. asks for: `classic experiment NAME`.

use anyhow::Result;
use clap::{Command, Subcommand};

use super::{malloc, primes, sampling};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::clock::OneCpuArgs;

/// Experiments by name, with their options.
#[derive(Debug, Subcommand)]
pub(crate) enum PaperCommand {
    /// Compare how precise and accurate getrusage and threadclock time the same work
    ///
    /// The first N primes are computed many times, timed in turn by each way of timing; the less
    /// the results scatter, the more precise the way.
    #[command(
        mut_arg("budget", |arg| arg.default_value("60s+")),
        after_long_help = "Example:\n  switchcost classic experiment primes --primes 100,1000"
    )]
    Primes(primes::PrimesArgs),
    /// Measure malloc and free by size of the block, and what made the slow ones slow
    #[command(after_long_help = "Example:\n  switchcost classic experiment malloc --budget 10s")]
    Malloc(malloc::MallocArgs),
    /// Show what accounting by the timer tick misses of a process that sleeps at each tick
    // It has a duration of its own.
    #[command(
        mut_arg("budget", |arg| arg.alias(None).alias("seconds")),
        after_long_help = "Example:\n  switchcost classic experiment sampling"
    )]
    Sampling(sampling::SamplingArgs),
}

/// Hides these experiments in the help of `clock`, below which they were before.
pub(super) fn hide_old_names(mut clock: Command) -> Command {
    for paper in PaperCommand::augment_subcommands(Command::new("paper")).get_subcommands() {
        clock = clock.mut_subcommand(paper.get_name(), |command| command.hide(true));
    }
    clock
}

impl PaperCommand {
    /// Returns the options that all experiments on one CPU share.
    pub(crate) fn common(&self) -> &OneCpuArgs {
        match self {
            Self::Primes(args) => &args.common,
            Self::Malloc(args) => &args.common,
            Self::Sampling(args) => &args.common,
        }
    }

    /// Returns the name below `classic experiment`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Primes(_) => "primes",
            Self::Malloc(_) => "malloc",
            Self::Sampling(_) => "sampling",
        }
    }

    /// Makes the plan for this host, with notices on what is not available.
    pub(crate) fn plan(&self, here: &LocalHost) -> Result<PlanWithNotices> {
        match self {
            Self::Primes(args) => primes::plan(args, here),
            Self::Malloc(args) => malloc::plan(args, here),
            Self::Sampling(args) => sampling::plan(args, here),
        }
    }
}
