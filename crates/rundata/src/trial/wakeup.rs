//! Wake-ups.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MeasureUnit, TrialMeasure};
use crate::experiment::named;

/// Other work on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WakeupLoad {
    /// No process of this program: the CPU sleeps when the sleeper does.
    Idle,
    /// A process under SCHED_OTHER that never waits.
    Busy,
}

named!(WakeupLoad, "load", Idle => "idle", Busy => "busy");

/// Sleeps until a moment, many times (clock_nanosleep(2), TIMER_ABSTIME, CLOCK_MONOTONIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wakeup {
    /// Other work on the CPU.
    pub load: WakeupLoad,
    /// Number of wake-ups.
    pub wakes: u32,
    /// From one wake to the next moment asked for: evenly from half of this to three halves, so
    /// that no phase of the tick is preferred.
    pub period_ns: u64,
    /// The timer slack to set (PR_SET_TIMERSLACK); it holds under SCHED_OTHER only.
    pub timer_slack_ns: u64,
    /// Seed of the random choice; the round is added.
    pub seed: u64,
    /// Longest time that leaving an idle state may take, in microseconds, held by
    /// /dev/cpu_dma_latency (Documentation/power/pm_qos_interface.rst): 0 keeps CPUs out of idle
    /// states. Absent where the kernel has its choice, as in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
}

/// The least timer slack that there is: what is late is then the kernel's doing.
pub const MIN_SLACK_NS: u64 = 1;
/// The timer slack of a thread that did not ask for another (PR_SET_TIMERSLACK(2const)).
pub const DEFAULT_SLACK_NS: u64 = 50_000;

impl Wakeup {
    /// Builds wake-ups on an idle CPU with every idle state and the least slack.
    pub fn plain(wakes: u32, period_ns: u64, seed: u64) -> Self {
        let (load, timer_slack_ns, cpu_latency_us) = (WakeupLoad::Idle, MIN_SLACK_NS, None);
        Self { load, wakes, period_ns, timer_slack_ns, seed, cpu_latency_us }
    }

    /// Describes the slack: `50 us`, `1 ns`.
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
            if self.load == WakeupLoad::Idle { "an idle CPU" } else { "a busy CPU" }
        )?;
        if self.timer_slack_ns != MIN_SLACK_NS {
            write!(f, ", timer slack {}", self.slack_words())?;
        }
        if let Some(us) = self.cpu_latency_us {
            write!(f, ", idle latency {us} us")?;
        }
        Ok(())
    }
}

/// Tally: nanoseconds from the moment asked for to the sleeper's first reading of the clock.
pub const LATE_NS: &str = "late_ns";
/// Count: the timer slack in force, in nanoseconds.
pub const SLACK_NS: &str = "timer_slack_ns";
/// Count: voluntary and involuntary switches of the sleeper: each sleep is one.
pub const SWITCHES: &str = "switches";
/// Count: longest time that leaving an idle state might take, in microseconds, as
/// /dev/cpu_dma_latency said while it was held; absent where it was not held.
pub const CPU_LATENCY_US: &str = "cpu_latency_us";
/// Count: CPU time of the companion that keeps the CPU busy, in nanoseconds.
pub const COMPANION_NS: &str = "companion_cpu_ns";

/// Lateness of the sleeper.
pub(super) const MEASURES: [TrialMeasure; 1] =
    [TrialMeasure::new("lateness_ns", "ns late", LATE_NS, MeasureUnit::Ns, |sample| {
        sample.median(LATE_NS)
    })
    .that_waits()];
