//! What is tried, where and under which policy.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interference::Execution;
use super::wakeup::Wakeup;
use crate::case::Policy;

/// When a process that sleeps and wakes does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It sleeps whenever the timer tick comes: the worst case of sampled accounting.
    AcrossTicks,
    /// It sleeps as long, but moves over all phases of the tick: the sampling error averages out.
    Anywhere,
}

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Trial {
    /// One call that reads a clock or a count.
    Call {
        /// Its name in the registry of calls.
        call: String,
    },
    /// The first so many primes, by trial division.
    Primes {
        /// How many.
        primes: u32,
    },
    /// Blocks of one size, all allocated, then all freed.
    Malloc {
        /// Size of a block in bytes.
        bytes: u64,
        /// The library that provides malloc, as LD_PRELOAD has it; the C library's when absent.
        preload: Option<String>,
    },
    /// Two processes on one CPU, of which one sleeps and wakes.
    Sampling {
        /// When it sleeps.
        phase: Phase,
        /// How long they are watched, in nanoseconds.
        duration_ns: u64,
    },
    /// A ring of two runs for a fixed number of laps.
    Execution(Execution),
    /// One call or short sequence, many times in a row, above the empty loop.
    Loop {
        /// Its name in the registry of system calls or of signal loops.
        call: String,
    },
    /// Two processes send each other a signal; the handler installs itself again and answers.
    TwoProcesses,
    /// A loop that reads the time stamp and nothing else, and the gaps in it.
    Gaps {
        /// For how long, in nanoseconds.
        duration_ns: u64,
    },
    /// A process sleeps until a moment, many times.
    Wakeup(Wakeup),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AcrossTicks => "across ticks",
            Self::Anywhere => "anywhere",
        })
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { call } | Self::Loop { call } => f.write_str(call),
            Self::TwoProcesses => f.write_str("signals between two processes"),
            Self::Primes { primes } => write!(f, "{primes} primes"),
            Self::Malloc { bytes, preload: None } => write!(f, "malloc of {bytes} bytes"),
            Self::Malloc { bytes, preload: Some(library) } => {
                write!(f, "malloc of {bytes} bytes by {library}")
            }
            Self::Sampling { phase, .. } => write!(f, "sleeping {phase}"),
            Self::Execution(execution) => execution.fmt(f),
            Self::Gaps { .. } => f.write_str("gaps in a busy loop"),
            Self::Wakeup(wakeup) => wakeup.fmt(f),
        }
    }
}

/// One point of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// What is tried.
    pub trial: Trial,
    /// On which CPU.
    pub cpu: u32,
    /// Under which scheduling policy.
    pub policy: Policy,
}

/// How a worker makes a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Trials in a sample, of each thing that is compared in it.
    pub trials: u32,
}
