//! Memory and its nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuList;
use crate::reading::Reading;

/// Memory (proc_meminfo(5), Documentation/admin-guide/mm).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memory {
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
pub struct Numa {
    /// Every node, rising.
    pub nodes: Reading<Vec<NumaNode>>,
}

/// One memory node (Documentation/ABI/stable/sysfs-devices-node).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NumaNode {
    /// The node's number.
    pub node: u32,
    /// Its CPUs; none in a node of memory only.
    pub cpus: Reading<CpuList>,
    /// Its memory.
    pub memory_bytes: Reading<u64>,
    /// Distance to every node, 10 to itself (ACPI SLIT).
    pub distances: Reading<Vec<u32>>,
}
