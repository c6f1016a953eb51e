//! `switchcost response`: what a kernel's response time is made of. Here is what may be typed.

pub(crate) mod answer;
mod details;
pub(crate) mod figures;
mod load;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use analysis::estimate::Estimate;
use clap::{Args, ValueEnum};
use rundata::ring::Policy;

use self::load::LoadArgs;
use crate::experiments::clock::OneCpuArgs;
use crate::report::terminal::figure;

/// Part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Part {
    /// System calls: getuid, read, write, clock_gettime, futex wake, sched_yield
    #[value(alias = "calls")]
    SystemCalls,
    /// Signals, to oneself and between two processes, and the memorandum's formulas
    Signals,
    /// Two processes on one CPU by every link that this machine has
    Links,
    /// What interrupts a busy thread: gaps in its time, the timer tick, the CPU lost
    Interrupts,
    /// How late a sleeper is woken, on an idle and on a busy CPU
    Wakeup,
    /// How long woken workers and their requests wait under load; only where it is named
    Load,
}

impl Part {
    /// Returns whether the part is measured under `--policy`; the others have policies of their own.
    pub(crate) fn takes_policy(self) -> bool {
        !matches!(self, Self::Interrupts | Self::Wakeup | Self::Load)
    }

    /// Returns what is measured, in a sentence.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::SystemCalls => "system calls",
            Self::Signals => "signals",
            Self::Links => "links",
            Self::Interrupts => "interrupts",
            Self::Wakeup => "wake-ups",
            Self::Load => "wake-ups under load",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ResponseArgs {
    /// Parts to measure, instead of all but load
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,

    /// Scheduling policy of system calls, signals and links: other, fifo, rr or batch [default:
    /// other, or fifo where other tasks use the CPU]
    ///
    /// Under fifo other tasks wait. fifo and rr need CAP_SYS_NICE or an RLIMIT_RTPRIO of 1 or more,
    /// and a second CPU for everything else. Wake-ups are measured under fifo and other, interrupts
    /// by --busy-policy.
    #[arg(long, value_parser = crate::base::values::policy)]
    pub(crate) policy: Option<Policy>,

    /// Scheduling policy of the busy thread whose gaps are measured: other or fifo
    ///
    /// Under fifo other tasks do not take its CPU, so that only interrupts are seen. It needs
    /// CAP_SYS_NICE or an RLIMIT_RTPRIO of 1 or more, and a second CPU for everything else.
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Other, value_parser = crate::base::values::policy)]
    pub(crate) busy_policy: Policy,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs<25>,
}

impl ResponseArgs {
    /// Returns the parts to measure, each once, in the order in which help lists them.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts = Part::value_variants().to_vec();
        if self.only.is_empty() {
            parts.retain(|part| *part != Part::Load);
        } else {
            parts.retain(|part| self.only.contains(part));
        }
        parts
    }
}

/// Converts nanoseconds into microseconds.
fn us(ns: Option<Estimate>) -> Option<Estimate> {
    ns?.scaled(1e-3)
}

/// Returns a time in microseconds; a dash without one.
fn us_cell(ns: Option<i64>) -> String {
    figure(ns.map(|ns| ns as f64 / 1e3))
}
