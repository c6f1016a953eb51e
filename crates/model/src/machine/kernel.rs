//! The kernel: what it is, how it was started, how it preempts and keeps time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// How the kernel tells user from system time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuAccounting {
    /// Each timer tick is charged to the mode that it interrupts (CONFIG_TICK_CPU_ACCOUNTING, or
    /// CONFIG_VIRT_CPU_ACCOUNTING_GEN without nohz_full CPUs).
    Tick,
    /// Some CPUs (nohz_full) read the clock whenever the mode changes, the others are sampled.
    Mixed,
    /// The clock is read whenever the mode changes (CONFIG_VIRT_CPU_ACCOUNTING_NATIVE).
    Precise,
}

/// The running kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Kernel {
    /// `uname -r` (/proc/sys/kernel/osrelease).
    pub release: Reading<String>,
    /// `uname -v`: build number, SMP and preemption words, date (/proc/sys/kernel/version).
    pub version: Reading<String>,
    /// The whole of /proc/version, which also names the compiler.
    pub banner: Reading<String>,
    /// /proc/cmdline up to `--`: what follows is for init, changes nothing in the kernel, and may
    /// hold secrets.
    pub command_line: Reading<String>,
    /// Timer interrupts per second (`CONFIG_HZ`).
    pub hz: Reading<u32>,
    /// How the kernel preempts itself.
    pub preemption: Preemption,
    /// Clock sources, see Documentation/timers/timekeeping.rst.
    pub clock_source: ClockSource,
    /// Address space randomisation: 0 none, 1 without the heap, 2 with it (proc_sys_kernel(5),
    /// randomize_va_space).
    pub randomize_va_space: Reading<u32>,
    /// What an unprivileged user may not measure: -1 nothing is forbidden, 3 all of it is
    /// (Documentation/admin-guide/sysctl/kernel.rst, perf_event_paranoid).
    pub perf_event_paranoid: Reading<i64>,
    /// Time that real-time threads may use of each period; -1 for all of it (sched(7)).
    pub sched_rt_runtime_us: Reading<i64>,
    /// Changes at every start of the machine (random(4), boot_id).
    pub boot_id: Reading<String>,
}

impl Kernel {
    /// The value of a parameter of the command line, the last one if it stands there more than
    /// once; empty for a parameter without value. `None` also if the command line is unknown.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters(name).last()
    }

    /// All values of a parameter of the command line, in order.
    pub fn parameters<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let words = self.command_line.known().map_or("", String::as_str).split_whitespace();
        words
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .filter(move |(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

/// How the kernel preempts itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Preemption {
    /// The model in force.
    pub model: Reading<PreemptionModel>,
    /// The file that told the model.
    pub source: Reading<String>,
    /// Whether the model can be chosen at start (`CONFIG_PREEMPT_DYNAMIC`).
    pub dynamic: Reading<bool>,
    /// Whether this is a real-time kernel (`CONFIG_PREEMPT_RT`).
    pub realtime: Reading<bool>,
}

/// The preemption models of kernel/Kconfig.preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreemptionModel {
    /// Kernel code runs until it sleeps or returns.
    None,
    /// Kernel code also yields at points marked for it.
    Voluntary,
    /// Kernel code is preempted anywhere outside critical sections.
    Full,
    /// As full, but normal tasks are given until the next tick.
    Lazy,
}

/// The clock source in use and those to choose from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClockSource {
    /// `tsc`, `kvm-clock`, `arch_sys_counter`, ...
    pub current: Reading<String>,
    /// All that the kernel would take.
    pub available: Reading<Vec<String>>,
}
