//! `switchcost response` as typed.

use clap::{Args, ValueEnum};

use super::clock::Place;
use super::common::{Effort, Output};

/// What the experiment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Part {
    /// System calls: getuid, read, write, clock_gettime, futex wake, sched_yield
    SystemCalls,
    /// Signals, to oneself and between two processes, and the memorandum's formulas
    Signals,
    /// Two processes on one CPU by every link that this machine has
    Links,
}

#[derive(Debug, Args)]
pub(crate) struct ResponseArgs {
    /// Parts to measure, instead of all
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,

    #[command(flatten)]
    pub(crate) place: Place,

    #[command(flatten)]
    pub(crate) effort: Effort<30>,

    #[command(flatten)]
    pub(crate) output: Output,
}

impl ResponseArgs {
    /// The parts to measure, each once, in the order in which help lists them.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let is_asked = |part: &&Part| self.only.is_empty() || self.only.contains(part);
        Part::value_variants().iter().filter(is_asked).copied().collect()
    }
}
