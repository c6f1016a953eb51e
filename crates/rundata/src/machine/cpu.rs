//! The processors: what they are, how they are arranged, how fast they may run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuList;
use crate::reading::Reading;

/// The processors and their arrangement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuInventory {
    /// The kinds of CPU here: one on most machines, two or three on big.LITTLE.
    pub models: Reading<Vec<CpuModel>>,
    /// CPUs that run (Documentation/admin-guide/cputopology.rst, as the next two).
    pub online: Reading<CpuList>,
    /// CPUs that are in the machine.
    pub present: Reading<CpuList>,
    /// CPUs that could ever be.
    pub possible: Reading<CpuList>,
    /// CPUs outside the scheduler's balancing (`isolcpus=` or a cpuset partition).
    pub isolated: Reading<CpuList>,
    /// CPUs without a tick while one task runs (`nohz_full=`).
    pub nohz_full: Reading<CpuList>,
    /// CPUs that this process may run on (proc_pid_status(5), Cpus_allowed_list).
    pub allowed: Reading<CpuList>,
    /// `on`, `off`, `forceoff`, `notsupported` or `notimplemented` (smt/control).
    pub smt_control: Reading<String>,
    /// Every online CPU's place, rising by CPU.
    pub topology: Reading<Vec<LogicalCpu>>,
    /// Every cache of the online CPUs once, rising by CPU and level.
    pub caches: Reading<Vec<CpuCache>>,
    /// The data TLBs of one CPU, rising by the size of their pages and by level (CPUID).
    pub tlbs: Reading<Vec<DataTlb>>,
}

/// A kind of CPU and the CPUs of that kind (/proc/cpuinfo).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuModel {
    /// CPUs of this kind.
    pub cpus: CpuList,
    /// `GenuineIntel`, `AuthenticAMD`; the implementer by name on Arm.
    pub vendor: Reading<String>,
    /// `model name`; on Arm made from the implementer and part numbers.
    pub name: Reading<String>,
    /// `cpu family`; `CPU architecture` on Arm.
    pub family: Reading<String>,
    /// `model`; `CPU part` on Arm.
    pub model: Reading<String>,
    /// `stepping`; `rXpY` of variant and revision on Arm.
    pub stepping: Reading<String>,
    /// Microcode revision, as printed by the kernel.
    pub microcode: Reading<String>,
}

/// The place of one logical CPU (cpuN/topology, Documentation/admin-guide/cputopology.rst).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogicalCpu {
    /// The CPU's number.
    pub cpu: u32,
    /// Socket; -1 where the platform does not number them.
    pub package: Reading<i64>,
    /// Die within the package.
    pub die: Reading<i64>,
    /// Core within the package.
    pub core: Reading<i64>,
    /// The hardware threads of this core, this CPU among them.
    pub smt_siblings: Reading<CpuList>,
    /// Relative speed, 1024 for the fastest (arm, cpu_capacity).
    pub capacity: Reading<u64>,
}

/// A cache (cpuN/cache/indexM, Documentation/ABI/testing/sysfs-devices-system-cpu).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuCache {
    /// The CPU in whose folder this was read, the lowest of those that share it.
    pub of_cpu: u32,
    /// 1 is next to the core.
    pub level: Reading<u32>,
    /// Contents: data, instructions or both.
    pub kind: Reading<CacheKind>,
    /// Size.
    pub size_bytes: Reading<u64>,
    /// Line size.
    pub line_bytes: Reading<u64>,
    /// Ways of associativity.
    pub ways: Reading<u32>,
    /// CPUs that share it.
    pub shared_cpus: Reading<CpuList>,
}

impl CpuCache {
    /// Returns whether it holds data.
    pub fn holds_data(&self) -> bool {
        matches!(self.kind.known(), Some(CacheKind::Data | CacheKind::Unified))
    }

    /// Returns whether it serves the CPU.
    pub fn serves(&self, cpu: u32) -> bool {
        self.of_cpu == cpu || self.shared_cpus.known().is_some_and(|cpus| cpus.contains(cpu))
    }
}

/// A translation lookaside buffer for data: it keeps the addresses of a number of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataTlb {
    /// 1 is next to the core.
    pub level: u32,
    /// Pages that it keeps.
    pub entries: u64,
    /// Size of these pages.
    pub page_bytes: u64,
}

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// Frequency and idle states (Documentation/admin-guide/pm/cpufreq.rst and cpuidle.rst).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FrequencyState {
    /// The settings in force, and for which CPUs.
    pub policies: Reading<Vec<FrequencyPolicy>>,
    /// `true` where CPUs may run above their nominal frequency.
    pub boost: Reading<bool>,
    /// Idle driver.
    pub idle_driver: Reading<String>,
    /// Idle governor.
    pub idle_governor: Reading<String>,
}

/// Frequency settings that some CPUs have in common (cpuN/cpufreq).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FrequencyPolicy {
    /// CPUs with these settings.
    pub cpus: CpuList,
    /// scaling_driver.
    pub driver: Reading<String>,
    /// scaling_governor.
    pub governor: Reading<String>,
    /// scaling_min_freq.
    pub min_khz: Reading<u64>,
    /// scaling_max_freq.
    pub max_khz: Reading<u64>,
}

/// The hypervisor, as several sources describe it. Every source is kept as read: none is there on
/// all machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Virtualization {
    /// `true` where x86 CPUID says that there is a hypervisor (flags of /proc/cpuinfo).
    pub cpu_flag: Reading<bool>,
    /// /sys/hypervisor/type, `xen` for one.
    pub hypervisor_type: Reading<String>,
    /// DMI sys_vendor.
    pub dmi_vendor: Reading<String>,
    /// DMI product_name.
    pub dmi_product: Reading<String>,
    /// The board by its device tree.
    pub device_tree_model: Reading<String>,
    /// The hypervisor by its device tree.
    pub device_tree_hypervisor: Reading<String>,
}

/// The state of every CPU vulnerability by file name (Documentation/admin-guide/hw-vuln).
pub type Mitigations = BTreeMap<String, Reading<String>>;
