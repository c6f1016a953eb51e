//! How much this process may have: cgroups, resource limits, system-wide maxima.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuList;
use crate::reading::Reading;

/// The tightest limit that any cgroup from this process's own up to the mount point sets. `null`
/// is no limit. (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1.)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cgroup {
    /// Which versions are in use.
    pub layout: Reading<CgroupLayout>,
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
    /// The quota in CPUs.
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

/// A limit and what is used of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupLimit {
    /// The limit, in the unit that the field holding this names.
    pub max: u64,
    /// What is used, by all of the folder that sets the limit. Volatile.
    pub current: Reading<u64>,
    /// The folder that sets it.
    pub path: String,
}

/// Limits of this process and of the system that bound a ring of processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
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
    /// What counts.
    pub soft: Bound,
    /// What `soft` may be raised to.
    pub hard: Bound,
}

/// A number, or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// No limit.
    Unlimited,
    /// This much.
    #[serde(untagged)]
    At(u64),
}
