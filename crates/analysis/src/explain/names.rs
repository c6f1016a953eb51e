//! Names of the parts of a switch and of burdens on it, and the settings that change them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rundata::experiment::named;
use rundata::ring::{Burden, RegisterState};

/// A part of a switch, or a burden that would be added to it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Name")]
pub enum PartName {
    /// Entry into the kernel and exit, of the two calls of a hop.
    SystemCalls,
    /// Work of the link in these calls, without a switch.
    Link,
    /// Choosing the next task and switching to it, threads of one process.
    Scheduler,
    /// Changing the address space.
    AddressSpace,
    /// Putting one member to sleep and waking the other.
    Waking,
    /// A hundred runnable threads instead of two.
    Runnable,
    /// XMM0 to XMM15 in use.
    Sse,
    /// YMM0 to YMM15 in use.
    Avx,
    /// ZMM0 to ZMM31 and the masks in use.
    Avx512,
    /// V0 to V31 in use.
    Neon,
    /// A seccomp filter.
    Seccomp,
    /// An IBPB with each switch.
    Ibpb,
    /// A single level of control groups with the cpu controller.
    Cgroup1,
    /// Four levels.
    Cgroup4,
    /// Eight levels.
    Cgroup8,
    /// An event that counts.
    PerfEvent,
    /// The other member on another CPU, which is idle.
    OtherCpu,
    /// The other member on another CPU, which polls instead of idling.
    OtherCpuAwake,
    /// The other member on another CPU, which is busy with less important work.
    OtherCpuBusy,
    /// Leaving an idle state of the sleeper's CPU.
    LeavingIdle,
    /// Timer slack of applications, on a sleeper.
    TimerSlack,
}

named!(PartName, "part of a switch", SystemCalls => "system-calls", Link => "link",
    Scheduler => "scheduler", AddressSpace => "address-space", Waking => "waking",
    Runnable => "runnable", Sse => "sse", Avx => "avx", Avx512 => "avx512", Neon => "neon",
    Seccomp => "seccomp", Ibpb => "ibpb", PerfEvent => "perf-event", Cgroup1 => "cgroup1",
    Cgroup4 => "cgroup4", Cgroup8 => "cgroup8", OtherCpu => "other-cpu",
    OtherCpuAwake => "other-cpu-awake", OtherCpuBusy => "other-cpu-busy",
    LeavingIdle => "leaving-idle", TimerSlack => "timer-slack");

impl PartName {
    /// Returns the name that is printed.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::SystemCalls => "two system calls",
            Self::Link => "pipe",
            Self::Scheduler => "scheduler",
            Self::AddressSpace => "address space",
            Self::Waking => "sleep/wake-up",
            Self::Runnable => "100 runnable",
            Self::Sse => "SSE in use",
            Self::Avx => "AVX in use",
            Self::Avx512 => "AVX-512 in use",
            Self::Neon => "NEON in use",
            Self::Seccomp => "seccomp filter",
            Self::Ibpb => "IBPB",
            Self::PerfEvent => "perf event",
            Self::Cgroup1 => "1 cgroup level",
            Self::Cgroup4 => "4 cgroup levels",
            Self::Cgroup8 => "8 cgroup levels",
            Self::OtherCpu => "other CPU, idle",
            Self::OtherCpuAwake => "other CPU, polls",
            Self::OtherCpuBusy => "other CPU, busy",
            Self::LeavingIdle => "leaving idle",
            Self::TimerSlack => "timer slack",
        }
    }

    /// Returns what makes the part cheaper or dearer: a boot parameter, a setting, a kind of link.
    pub fn changed_by(self) -> &'static str {
        match self {
            Self::SystemCalls => "pti=, mitigations= (boot)",
            Self::Link => "link: eventfd, futex",
            Self::Scheduler => "spectre_v2= (boot)",
            Self::AddressSpace => "threads; nopcid (boot)",
            Self::Waking => "link: one that polls",
            Self::Runnable => "fewer tasks on the CPU",
            Self::Sse | Self::Avx | Self::Avx512 | Self::Neon => "compiler flags",
            Self::Seccomp => "SystemCallFilter=",
            Self::Ibpb => "spectre_v2_user= (boot)",
            Self::PerfEvent => "perf stat, agents",
            Self::Cgroup1 | Self::Cgroup4 | Self::Cgroup8 => "cgroup.subtree_control",
            Self::OtherCpu | Self::OtherCpuBusy => "taskset: one CPU",
            Self::OtherCpuAwake => "idle=poll (boot)",
            Self::LeavingIdle => "/dev/cpu_dma_latency",
            Self::TimerSlack => "PR_SET_TIMERSLACK",
        }
    }

    /// Returns the part that a burden makes; absent for a burden that needs another placement.
    pub(super) fn of_burden(burden: Burden, is_elsewhere: bool) -> Option<Self> {
        Some(match (burden, is_elsewhere) {
            (Burden::Awake, true) => Self::OtherCpuAwake,
            (Burden::Busy, true) => Self::OtherCpuBusy,
            (_, true) | (Burden::Awake | Burden::Busy, false) => return None,
            (Burden::Seccomp, false) => Self::Seccomp,
            (Burden::Ibpb, false) => Self::Ibpb,
            (Burden::PerfEvent, false) => Self::PerfEvent,
            (Burden::Cgroup1, false) => Self::Cgroup1,
            (Burden::Cgroup4, false) => Self::Cgroup4,
            (Burden::Cgroup8, false) => Self::Cgroup8,
        })
    }

    /// Returns the part that a register state makes; absent for a state without extra registers.
    pub(super) fn of_state(state: RegisterState) -> Option<Self> {
        match state {
            RegisterState::Sse => Some(Self::Sse),
            RegisterState::Avx => Some(Self::Avx),
            RegisterState::Avx512 => Some(Self::Avx512),
            RegisterState::Neon => Some(Self::Neon),
            RegisterState::None | RegisterState::Vzeroupper => None,
        }
    }
}
