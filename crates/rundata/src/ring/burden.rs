//! Burdens: loads that are put on the switches of a ring on purpose, so that their cost can be
//! seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::named;

/// A load that members carry, or that is put on their CPUs, while they are measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Burden {
    /// A seccomp filter of one instruction that allows all (seccomp(2)).
    Seccomp,
    /// Indirect branch speculation is disabled for each member, so that the kernel issues an IBPB
    /// with each switch to and from it (PR_SET_SPECULATION_CTRL(2const)).
    Ibpb,
    /// A software event that counts switches is attached to each member, as `perf stat` does
    /// (perf_event_open(2)).
    PerfEvent,
    /// The members are in a control group with the cpu controller, a level below where this program
    /// is.
    Cgroup1,
    /// Four levels below.
    Cgroup4,
    /// Eight levels below.
    Cgroup8,
    /// No CPU enters an idle state (/dev/cpu_dma_latency is held at 0).
    Awake,
    /// A process under SCHED_IDLE keeps each CPU of the ring busy.
    Busy,
}

named!(Burden, "burden", Seccomp => "seccomp", Ibpb => "ibpb", PerfEvent => "perf-event",
    Cgroup1 => "cgroup1", Cgroup4 => "cgroup4", Cgroup8 => "cgroup8", Awake => "awake",
    Busy => "busy");

impl Burden {
    /// Returns the levels of control groups that it makes; `None` for another burden.
    pub fn levels(self) -> Option<u32> {
        match self {
            Self::Cgroup1 => Some(1),
            Self::Cgroup4 => Some(4),
            Self::Cgroup8 => Some(8),
            _ => None,
        }
    }
}
