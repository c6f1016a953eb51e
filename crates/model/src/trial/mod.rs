//! Trials, which stand beside the ring. Something is done many times in a fresh worker, and the
//! outcome of each time is kept. What is tried, what came back, and the names of the outcomes;
//! `findings` reads them.

mod names;
mod sample;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{LONGEST_NS, MOST_COUNTS, MOST_LAPS, MOST_PRIORITY, known_within, within};
use crate::experiment::named;
use crate::machine::MAX_CPUS;
use crate::ring::{Policy, Work};
use crate::words;

pub use names::{gaps, interference, loops, malloc, overhead, primes, sampling, wakeup};
pub use sample::{Gap, Quantity, Sample, Sliced, Tally};

/// When a process that sleeps and wakes does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It sleeps whenever the timer tick comes: the worst case of sampled accounting.
    AcrossTicks,
    /// It sleeps as long, but moves over all phases of the tick: the sampling error averages out.
    Anywhere,
}

/// How the program was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Away from interrupts and other work, under a real-time policy: the paper's dual-processor.
    Augmented,
    /// Everything on one CPU under SCHED_OTHER: the paper's single-processor.
    Plain,
}

/// What else the machine did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// Nothing.
    Quiet,
    /// The disturbance was on.
    Disturbed,
}

named!(Phase, "phase", AcrossTicks => "across ticks", Anywhere => "anywhere");
named!(Setting, "setting", Augmented => "augmented", Plain => "plain");
named!(Environment, "environment", Quiet => "quiet", Disturbed => "disturbed");

/// What disturbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Noise {
    /// Bursts of work at random moments.
    Cpu,
    /// Random short timers, one after the other.
    Timer,
    /// Datagrams at random gaps, as the paper's pings.
    Net,
}

impl Noise {
    /// What one event of it is, for several.
    pub fn events(self) -> &'static str {
        match self {
            Self::Cpu => "bursts",
            Self::Timer => "timers",
            Self::Net => "packets",
        }
    }
}

named!(Noise, "noise", Cpu => "cpu", Timer => "timer", Net => "net");

/// What packets go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// The loopback, by UDP.
    #[default]
    Loopback,
    /// A pair of virtual Ethernet devices, as frames.
    Veth,
}

named!(Wire, "wire", Loopback => "loopback", Veth => "veth");

/// One run of the two-process program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// How it is placed.
    pub setting: Setting,
    /// What else the machine does.
    pub environment: Environment,
    /// What disturbs, where something does.
    pub noise: Noise,
    /// The CPU that the noise runs on.
    pub noise_cpu: u32,
    /// What each member touches in every hop.
    pub work: Work,
    /// Laps: the same in all conditions, so that execution times compare.
    pub laps: u64,
    /// Seed of the noise's gaps: with the round and the array it says what they are, in every
    /// condition.
    pub seed: u64,
    /// Real-time priority of the ring, where the policy is one; absent in older runs, which had the
    /// policy's lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// What packets go through, where the noise is packets; older runs had the loopback.
    #[serde(default)]
    pub wire: Wire,
}

impl Execution {
    fn check(&self) -> Result<(), String> {
        within("noise_cpu", self.noise_cpu, 0..=MAX_CPUS - 1)?;
        within("laps", self.laps, 1..=MOST_LAPS)?;
        known_within("priority", self.priority, 0..=MOST_PRIORITY)?;
        self.work.check()
    }
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, environment, noise, .. } = self;
        write!(f, "two of {}, {setting}, {environment}", words::bytes(self.work.bytes))?;
        if *environment == Environment::Disturbed { write!(f, " by {noise}") } else { Ok(()) }
    }
}

/// What else runs on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Nothing of ours: the CPU sleeps when the sleeper does.
    Idle,
    /// A process under SCHED_OTHER that never waits.
    Busy,
}

named!(Load, "load", Idle => "idle", Busy => "busy");

/// Sleeps until a moment, many times (clock_nanosleep(2), TIMER_ABSTIME, CLOCK_MONOTONIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wakeup {
    /// What else runs on the CPU.
    pub load: Load,
    /// How many times.
    pub wakes: u32,
    /// From one wake to the next moment asked for: evenly from half of this to three halves, so
    /// that no phase of the tick is preferred.
    pub period_ns: u64,
    /// The timer slack to set (PR_SET_TIMERSLACK); it holds under SCHED_OTHER only.
    pub timer_slack_ns: u64,
    /// Of the random choice; the round is added.
    pub seed: u64,
    /// What leaving an idle state may take at most, in microseconds, held by /dev/cpu_dma_latency
    /// (Documentation/power/pm_qos_interface.rst): 0 keeps CPUs out of idle states. Absent where
    /// the kernel has its choice, as in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
}

/// The least timer slack that there is: what is late is then the kernel's doing.
pub const LEAST_SLACK_NS: u64 = 1;
/// The timer slack of a thread that did not ask for another (PR_SET_TIMERSLACK(2const)).
pub const DEFAULT_SLACK_NS: u64 = 50_000;

impl Wakeup {
    /// The slack as a person writes it: `50 us`, `1 ns`.
    pub fn slack_words(&self) -> String {
        match self.timer_slack_ns {
            ns if ns > 0 && ns % 1000 == 0 => format!("{} us", ns / 1000),
            ns => format!("{ns} ns"),
        }
    }
}

impl fmt::Display for Wakeup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "wake-up on {}",
            if self.load == Load::Idle { "an idle CPU" } else { "a busy CPU" }
        )?;
        if self.timer_slack_ns != LEAST_SLACK_NS {
            write!(f, ", timer slack {}", self.slack_words())?;
        }
        self.cpu_latency_us.map_or(Ok(()), |us| write!(f, ", idle latency {us} us"))
    }
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
        }
    }
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialCase")]
pub struct Case {
    /// What is tried.
    pub trial: Trial,
    /// On which CPU.
    pub cpu: u32,
    /// Under which scheduling policy.
    pub policy: Policy,
}

impl Case {
    /// Or which number cannot be meant.
    pub(crate) fn check(&self) -> Result<(), String> {
        within("CPU", self.cpu, 0..=MAX_CPUS - 1)?;
        match &self.trial {
            Trial::Primes { primes } => within("primes", *primes, 1..=MOST_COUNTS),
            Trial::Malloc { bytes, .. } => within("bytes", *bytes, 0..=MOST_COUNTS.into()),
            Trial::Sampling { duration_ns, .. } | Trial::Gaps { duration_ns } => {
                within("duration_ns", *duration_ns, 1..=LONGEST_NS)
            }
            Trial::Execution(of) => of.check(),
            Trial::Wakeup(of) => {
                within("wakes", of.wakes, 1..=MOST_COUNTS)?;
                within("period_ns", of.period_ns, 1..=LONGEST_NS)
            }
            Trial::Call { .. } | Trial::Loop { .. } | Trial::TwoProcesses => Ok(()),
        }
    }
}

/// How a worker makes a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Trials in a sample, of each thing that is compared in it.
    pub trials: u32,
}

impl Repeats {
    /// Or why nothing can be tried so often.
    pub(crate) fn check(&self) -> Result<(), String> {
        within("trials", self.trials, 1..=MOST_COUNTS)
    }
}
