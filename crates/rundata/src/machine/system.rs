//! The kernel, memory, the limits of this process (cgroups, resource limits, system-wide maxima)
//! and the load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuList;
use crate::reading::Reading;

/// Way in which the kernel divides CPU time into user and system time.
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
pub struct RunningKernel {
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
    /// Preemption of the kernel by itself.
    pub preemption: KernelPreemption,
    /// Clock sources, see Documentation/timers/timekeeping.rst.
    pub clock_source: ClockSource,
    /// Address space randomisation: 0 none, 1 without the heap, 2 with it (proc_sys_kernel(5),
    /// randomize_va_space).
    pub randomize_va_space: Reading<u32>,
    /// Restriction of unprivileged users: -1 nothing is forbidden, 3 everything is
    /// (Documentation/admin-guide/sysctl/kernel.rst, perf_event_paranoid).
    pub perf_event_paranoid: Reading<i64>,
    /// Time that real-time threads may use of each period; -1 for all of it (sched(7)).
    pub sched_rt_runtime_us: Reading<i64>,
    /// Changes at every start of the machine (random(4), boot_id).
    pub boot_id: Reading<String>,
}

impl RunningKernel {
    /// Returns all values of a parameter of the command line, in order, of which the last counts;
    /// an empty text for a parameter without value. The iterator is empty also if the command line
    /// is unknown.
    pub fn parameters<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let words = self.command_line.known().map_or("", String::as_str).split_whitespace();
        words
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .filter(move |(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

/// Preemption of the kernel by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KernelPreemption {
    /// The model in force.
    pub model: Reading<PreemptionModel>,
    /// The file that told the model.
    pub source: Reading<String>,
    /// `true` where the model can be chosen at boot (`CONFIG_PREEMPT_DYNAMIC`).
    pub dynamic: Reading<bool>,
    /// `true` for a real-time kernel (`CONFIG_PREEMPT_RT`).
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
    /// Like full, but normal tasks run on until the next tick.
    Lazy,
}

/// The clock source in use and those to choose from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClockSource {
    /// `tsc`, `kvm-clock`, `arch_sys_counter`, ...
    pub current: Reading<String>,
    /// Clock sources that the kernel accepts.
    pub available: Reading<Vec<String>>,
}

/// Memory (proc_meminfo(5), Documentation/admin-guide/mm).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SystemMemory {
    /// MemTotal.
    pub total_bytes: Reading<u64>,
    /// MemAvailable. Volatile.
    pub available_bytes: Reading<u64>,
    /// SwapTotal; 0 is no swap.
    pub swap_total_bytes: Reading<u64>,
    /// SwapFree. Volatile.
    pub swap_free_bytes: Reading<u64>,
    /// Hugepagesize.
    pub huge_page_bytes: Reading<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp_enabled: Reading<String>,
    /// When a fault may wait for a huge page.
    pub thp_defrag: Reading<String>,
    /// Same-page merging: 0 stopped, 1 runs, 2 stopped and unmerged (mm/ksm.rst).
    pub ksm_run: Reading<u32>,
}

/// The memory nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NumaNodes {
    /// Every node, rising.
    pub nodes: Reading<Vec<NumaNode>>,
}

/// A memory node (Documentation/ABI/stable/sysfs-devices-node).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NumaNode {
    /// The node's number.
    pub node: u32,
    /// CPUs of the node; empty for one of memory only.
    pub cpus: Reading<CpuList>,
    /// Size of its memory.
    pub memory_bytes: Reading<u64>,
    /// Distance to every node, 10 to itself (ACPI SLIT).
    pub distances: Reading<Vec<u32>>,
}

/// The tightest limit that any cgroup from this process's own up to the mount point sets. `null`
/// is no limit. (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1.)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CgroupLimits {
    /// Versions of control groups in use.
    pub layout: Reading<CgroupLayout>,
    /// Groups with the cpu controller from this process's own up, the root aside: the scheduler goes
    /// through each at a switch, except between real-time tasks. In a container those that it sees.
    pub cpu_levels: Reading<u32>,
    /// CPU bandwidth (`cpu.max`; `cpu.cfs_quota_us` and `cpu.cfs_period_us`).
    pub cpu_quota: Reading<Option<CpuQuota>>,
    /// CPUs granted (`cpuset.cpus.effective`; `cpuset.effective_cpus`).
    pub cpuset: Reading<Cpuset>,
    /// Number of tasks (`pids.max`, `pids.current`).
    pub pids_max: Reading<Option<CgroupLimit>>,
    /// Memory (`memory.max`; `memory.limit_in_bytes`).
    pub memory_max_bytes: Reading<Option<CgroupLimit>>,
}

/// The versions of cgroups that hold this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupLayout {
    /// Version 1 only.
    V1,
    /// Version 2 only.
    V2,
    /// Both.
    Hybrid,
}

/// CPU time that may be used in each period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// CPU time of a period; may exceed it on several CPUs.
    pub quota_us: u64,
    /// The period.
    pub period_us: u64,
    /// The folder that sets it.
    pub path: String,
}

impl CpuQuota {
    /// Returns the quota in CPUs: 1.5 is 150 ms in a period of 100 ms.
    pub fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }
}

/// The CPUs that a cpuset grants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpuset {
    /// The CPUs.
    pub cpus: CpuList,
    /// The folder that grants them.
    pub path: String,
}

/// A limit and its use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupLimit {
    /// The limit, in the unit that the field holding this names.
    pub max: u64,
    /// Use by all tasks of the folder that sets the limit. Volatile.
    pub current: Reading<u64>,
    /// The folder that sets it.
    pub path: String,
}

/// Limits of this process and of the system that bound a ring of processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SystemLimits {
    /// Processes of this user (getrlimit(2), RLIMIT_NPROC).
    pub processes: Reading<ResourceLimit>,
    /// Descriptors of this process (RLIMIT_NOFILE).
    pub open_files: Reading<ResourceLimit>,
    /// Highest real-time priority without CAP_SYS_NICE (RLIMIT_RTPRIO).
    pub realtime_priority: Reading<ResourceLimit>,
    /// Real-time run without a blocking call (RLIMIT_RTTIME).
    pub realtime_timeout_us: Reading<ResourceLimit>,
    /// Memory that may be locked (RLIMIT_MEMLOCK).
    pub locked_memory_bytes: Reading<ResourceLimit>,
    /// Process ids stay below this (proc_sys_kernel(5)).
    pub pid_max: Reading<u64>,
    /// Tasks of the system (proc_sys_kernel(5)).
    pub threads_max: Reading<u64>,
    /// Descriptors of the system (proc_sys_fs(5)).
    pub file_max: Reading<u64>,
    /// Largest pipe that may be asked for (pipe(7)).
    pub pipe_max_bytes: Reading<u64>,
    /// Pages in pipes of a user above which new pipes are small; 0 is no limit (pipe(7)).
    pub pipe_user_pages_soft: Reading<u64>,
    /// Pages in pipes of a user above which pipe(2) fails; 0 is no limit (pipe(7)).
    pub pipe_user_pages_hard: Reading<u64>,
}

/// A soft limit, which counts, and the hard one, up to which it may be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceLimit {
    /// The limit in force.
    pub soft: LimitValue,
    /// Value to which `soft` may be raised.
    pub hard: LimitValue,
}

/// A number, or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitValue {
    /// No limit.
    Unlimited,
    /// This much.
    #[serde(untagged)]
    At(u64),
}

/// Load of the machine when it was read (proc_loadavg(5), proc_uptime(5)). All volatile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SystemLoad {
    /// Mean number of tasks that ran or waited for the disk, over a minute.
    pub over_1_min: Reading<f64>,
    /// Over five minutes.
    pub over_5_min: Reading<f64>,
    /// Over fifteen minutes.
    pub over_15_min: Reading<f64>,
    /// Tasks that run or could.
    pub runnable_tasks: Reading<u64>,
    /// Number of all tasks.
    pub tasks: Reading<u64>,
    /// Time since the start of the machine.
    pub uptime_s: Reading<f64>,
}

/// Interrupts that one CPU served since the machine started (/proc/interrupts). Volatile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuInterrupts {
    /// The CPU.
    pub cpu: u32,
    /// Interrupts of devices, whose lines have a number. The CPU's own timer and the interrupts
    /// that CPUs send each other follow the load, not the CPU.
    pub devices: u64,
}
