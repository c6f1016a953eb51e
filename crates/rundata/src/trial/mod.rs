//! Trials: something is done many times in a fresh worker, and the outcome of each time is kept.
//!
//! Reading a clock 100 times may take 25 ns in 80 trials, 26 ns in 19 and 900 ns in one that an
//! interrupt hit: the sample keeps the tally `[[25,80],[26,19],[900,1]]`, in its unit. There is a
//! file for each kind of trial: its settings, the names of its outcomes, and its measures.

pub mod command;
pub mod gaps;
pub mod interference;
pub mod load;
pub mod loops;
pub mod malloc;
mod measure;
pub mod overhead;
pub mod primes;
mod sample;
pub mod sampling;
pub mod switches;
pub mod wakeup;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_COUNT, MAX_DURATION_NS, check_within};
use crate::machine::MAX_CPUS;
use crate::ring::Policy;

use command::CommandTrial;
use interference::Execution;
use load::WakeLoad;
pub use measure::{MeasureUnit, TrialMeasure};
pub use sample::{Gap, SlicedTallies, Tally, TallySummary, TrialSample};
use sampling::SleepPhase;
use switches::SwitchTrace;
use wakeup::Wakeup;

/// Kind of a trial and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Trial {
    /// A call that reads a clock or a count.
    Call {
        /// Name in the registry of calls.
        call: String,
    },
    /// The first so many primes, by trial division.
    Primes {
        /// Number of primes.
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
        /// Phase of its sleeps.
        phase: SleepPhase,
        /// Time for which they are watched, in nanoseconds.
        duration_ns: u64,
    },
    /// A ring of two runs for a fixed number of laps.
    Execution(Execution),
    /// A call or short sequence, many times in a row, above the empty loop.
    Loop {
        /// Name in the registry of system calls or of signal loops.
        call: String,
    },
    /// Two processes send each other a signal; the handler installs itself again and answers.
    TwoProcesses,
    /// A loop that reads the time stamp and nothing else, and the gaps in it.
    Gaps {
        /// Duration, in nanoseconds.
        duration_ns: u64,
    },
    /// A process sleeps until a moment, many times.
    Wakeup(Wakeup),
    /// Messengers wake workers, which work on a request each.
    Load(Box<WakeLoad>),
    /// A command runs once, alone or beside a neighbour.
    Command(CommandTrial),
    /// The switches of a program or of the machine, as a tracer counted them.
    Switches(SwitchTrace),
}

impl Trial {
    /// Returns the measures of its samples; the first stands for the trial.
    pub fn measures(&self) -> &'static [TrialMeasure] {
        match self {
            Self::Call { .. } => &overhead::MEASURES,
            Self::Primes { .. } => &primes::MEASURES,
            Self::Malloc { .. } => &malloc::MEASURES,
            Self::Sampling { .. } => &sampling::MEASURES,
            Self::Execution(_) => &interference::MEASURES,
            Self::Loop { .. } => &loops::MEASURES,
            Self::TwoProcesses => &loops::TWO_PROCESS_MEASURES,
            Self::Gaps { .. } => &gaps::MEASURES,
            Self::Wakeup(_) => &wakeup::MEASURES,
            Self::Load(_) => &load::MEASURES,
            Self::Command(_) => &command::MEASURES,
            Self::Switches(_) => &switches::MEASURES,
        }
    }

    /// Returns the measure that stands for the trial.
    pub fn headline(&self) -> &'static TrialMeasure {
        &self.measures()[0]
    }

    /// Returns the laps of an execution; 1 for other trials.
    pub fn laps(&self) -> u64 {
        if let Self::Execution(execution) = self { execution.laps } else { 1 }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { call } | Self::Loop { call } => f.write_str(call),
            Self::TwoProcesses => f.write_str("signals between two processes"),
            Self::Primes { primes } => write!(f, "{primes} primes"),
            Self::Malloc { bytes, preload } => {
                let by = preload.as_ref().map(|library| format!(" by {library}"));
                write!(f, "malloc of {bytes} bytes{}", by.unwrap_or_default())
            }
            Self::Sampling { phase, .. } => write!(f, "sleeping {phase}"),
            Self::Execution(execution) => execution.fmt(f),
            Self::Gaps { .. } => f.write_str("gaps in a busy loop"),
            Self::Wakeup(wakeup) => wakeup.fmt(f),
            Self::Load(load) => load.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Switches(trace) => trace.fmt(f),
        }
    }
}

/// A trial of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialCase {
    /// Kind and settings.
    pub trial: Trial,
    /// CPU of the trial; 0 for a trace, which is of all.
    pub cpu: u32,
    /// Scheduling policy of the trial.
    pub policy: Policy,
}

impl TrialCase {
    /// Returns the CPU that is measured; `None` for a trace, which is of all.
    pub fn measured_cpu(&self) -> Option<u32> {
        match self.trial {
            Trial::Switches(_) => None,
            _ => Some(self.cpu),
        }
    }

    /// Checks that all numbers are in range.
    pub fn check(&self) -> Result<(), String> {
        check_within("CPU", self.cpu, 0..=MAX_CPUS - 1)?;
        match &self.trial {
            Trial::Primes { primes } => check_within("primes", *primes, 1..=MAX_COUNT),
            Trial::Malloc { bytes, .. } => check_within("bytes", *bytes, 0..=MAX_COUNT.into()),
            Trial::Sampling { duration_ns, .. } | Trial::Gaps { duration_ns } => {
                check_within("duration_ns", *duration_ns, 1..=MAX_DURATION_NS)
            }
            Trial::Execution(execution) => execution.check(),
            Trial::Command(command) => command.check(),
            Trial::Switches(trace) => trace.check(),
            Trial::Wakeup(wakeup) => {
                check_within("wakes", wakeup.wakes, 1..=MAX_COUNT)?;
                check_within("period_ns", wakeup.period_ns, 1..=MAX_DURATION_NS)
            }
            Trial::Load(load) => load.check(),
            Trial::Call { .. } | Trial::Loop { .. } | Trial::TwoProcesses => Ok(()),
        }
    }

    /// Returns the CPUs that are measured on, sorted, each once; none for a trace.
    pub fn cpus(&self) -> Vec<u32> {
        match &self.trial {
            Trial::Load(load) => load.cpus(),
            _ => self.measured_cpu().into_iter().collect(),
        }
    }
}

/// Rules by which a worker makes a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialBatching {
    /// Trials in a sample, for each thing that is compared in it.
    pub trials: u32,
}

impl TrialBatching {
    /// Checks that the number of trials is in range.
    pub fn check(&self) -> Result<(), String> {
        check_within("trials", self.trials, 1..=MAX_COUNT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_have_names_of_their_own_that_end_in_their_unit() {
        let all: [&[TrialMeasure]; 12] = [
            &overhead::MEASURES,
            &primes::MEASURES,
            &malloc::MEASURES,
            &sampling::MEASURES,
            &interference::MEASURES,
            &loops::MEASURES,
            &loops::TWO_PROCESS_MEASURES,
            &gaps::MEASURES,
            &wakeup::MEASURES,
            &load::MEASURES,
            &command::MEASURES,
            &switches::MEASURES,
        ];
        for measures in all {
            let mut names: Vec<&str> = measures.iter().map(|of| of.name).collect();
            for of in measures {
                let unit = if of.unit == MeasureUnit::Share { "_share" } else { "ns" };
                assert!(of.name.ends_with(unit), "{}", of.name);
                // What is counted is of no tally.
                assert_eq!(of.tally.is_empty(), of.unit == MeasureUnit::Share, "{}", of.name);
            }
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), measures.len());
        }
    }
}
