//! `classic experiment interference`: runs of the two-process program.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MeasureUnit, TrialMeasure};
use crate::bounds::{MAX_LAPS, MAX_PRIORITY, check_known_within, check_within};
use crate::experiment::named;
use crate::machine::MAX_CPUS;
use crate::ring::Work;
use crate::words;

/// Placement of the two-process program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramSetting {
    /// Away from interrupts and other work, under a real-time policy: the paper's dual-processor.
    Augmented,
    /// Everything on one CPU under SCHED_OTHER: the paper's single-processor.
    Plain,
}

/// Other work of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// The machine did nothing else.
    Quiet,
    /// The disturbance was on.
    Disturbed,
}

named!(ProgramSetting, "setting", Augmented => "augmented", Plain => "plain");
named!(Environment, "environment", Quiet => "quiet", Disturbed => "disturbed");

/// Kind of the disturbance.
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
    /// Returns the plural of its events.
    pub fn events(self) -> &'static str {
        match self {
            Self::Cpu => "bursts",
            Self::Timer => "timers",
            Self::Net => "packets",
        }
    }
}

named!(Noise, "noise", Cpu => "cpu", Timer => "timer", Net => "net");

/// Path of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PacketWire {
    /// The loopback, by UDP.
    #[default]
    Loopback,
    /// A pair of virtual Ethernet devices, as frames.
    Veth,
}

named!(PacketWire, "wire", Loopback => "loopback", Veth => "veth");

/// A run of the two-process program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Placement of the program.
    pub setting: ProgramSetting,
    /// Other work of the machine.
    pub environment: Environment,
    /// Kind of the disturbance, where there is one.
    pub noise: Noise,
    /// CPU of the disturbance.
    pub noise_cpu: u32,
    /// Memory that each member touches in every hop.
    pub work: Work,
    /// Number of laps, the same in all conditions, so that execution times compare.
    pub laps: u64,
    /// Seed of the noise's gaps: with the round and the array it determines them, in every
    /// condition.
    pub seed: u64,
    /// Real-time priority of the ring, where the policy is one; absent in older runs, which had the
    /// policy's lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Path of the packets, where the noise is packets.
    #[schemars(default)]
    pub wire: PacketWire,
}

impl Execution {
    pub(super) fn check(&self) -> Result<(), String> {
        check_within("noise_cpu", self.noise_cpu, 0..=MAX_CPUS - 1)?;
        check_within("laps", self.laps, 1..=MAX_LAPS)?;
        check_known_within("priority", self.priority, 0..=MAX_PRIORITY)?;
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

/// Tally: time of the laps of a run, in nanoseconds.
pub const EXECUTION_NS: &str = "execution_ns";
/// Count: packets received, bursts or timers of the disturbance between the two readings of the
/// clock. Absent in quiet runs.
pub const NOISE_EVENTS: &str = "noise_events";
/// Count: voluntary switches of both members.
pub const VOLUNTARY: &str = "voluntary_switches";
/// Count: involuntary ones.
pub const INVOLUNTARY: &str = "involuntary_switches";

/// Longest run that a real-time ring should have, in nanoseconds: the kernel lets real-time work
/// run for 950 ms of each second (sched_rt_runtime_us), and holds it back for the rest.
pub const MAX_REALTIME_NS: u64 = 800_000_000;

/// Time of a run.
pub(super) const MEASURES: [TrialMeasure; 1] =
    [TrialMeasure::new("run_ns", "ns of a run", EXECUTION_NS, MeasureUnit::Ns, |sample| {
        sample.median(EXECUTION_NS)
    })
    .that_waits()];
