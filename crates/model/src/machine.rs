//! What the measured machine is. Plain data; `probe::machine` fills it from /proc and /sys.

mod cpu;
mod cpu_list;
mod difference;
mod interrupts;
mod kernel;
mod limits;
mod load;
mod memory;
mod relation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cpu::{
    Cache, CacheKind, Cpu, CpuModel, Frequency, FrequencyPolicy, LogicalCpu, Mitigations,
    Virtualization,
};
pub use cpu_list::{CpuList, CpuListError, MAX_CPUS};
pub use difference::Difference;
pub use interrupts::CpuInterrupts;
pub use kernel::{ClockSource, CpuAccounting, Kernel, Preemption, PreemptionModel};
pub use limits::{
    Bound, Cgroup, CgroupLayout, CgroupLimit, CpuQuota, Cpuset, Limits, ResourceLimit,
};
pub use load::Load;
pub use memory::{Memory, Numa, NumaNode};
pub use relation::{Relation, Surroundings};

use crate::reading::Reading;

/// A machine as it was when a run began. Fields that an older record lacks read as unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// The running kernel.
    pub kernel: Kernel,
    /// The processors and their arrangement.
    pub cpu: Cpu,
    /// Frequency and idle states.
    pub frequency: Frequency,
    /// CPU vulnerabilities and what is done about them.
    pub mitigations: Reading<Mitigations>,
    /// What runs below the kernel.
    pub virtualization: Virtualization,
    /// Memory nodes.
    pub numa: Numa,
    /// Memory.
    pub memory: Memory,
    /// Control group limits.
    pub cgroup: Cgroup,
    /// Resource limits and system-wide maxima.
    pub limits: Limits,
    /// How busy the machine was.
    pub load: Load,
    /// Which CPUs served the devices, rising by CPU.
    pub interrupts: Reading<Vec<CpuInterrupts>>,
}

impl Machine {
    /// The hardware threads of the CPU's core, the CPU among them.
    pub fn smt_siblings_of(&self, cpu: u32) -> Reading<CpuList> {
        let place = self.cpu.topology.as_ref().and_then(|topology| {
            let place = topology.iter().find(|place| place.cpu == cpu);
            place.ok_or_else(|| format!("CPU {cpu} is not online")).into()
        });
        place.and_then(|place| place.smt_siblings.clone())
    }

    /// The CPUs that share the CPU's data (or unified) cache of the level, the CPU among them.
    pub fn cpus_sharing_cache(&self, cpu: u32, level: u32) -> Reading<CpuList> {
        let cache = self.data_caches_of(cpu).and_then(|caches| {
            let cache = caches.into_iter().find(|cache| cache.level.known() == Some(&level));
            cache.ok_or_else(|| format!("CPU {cpu} has no data cache of level {level}")).into()
        });
        cache.and_then(|cache| cache.shared_cpus.clone())
    }

    /// The last data (or unified) cache on the CPU's way to memory that no other core shares.
    /// Hardware threads of one core count as one.
    pub fn last_private_cache(&self, cpu: u32) -> Reading<&Cache> {
        let own = match self.smt_siblings_of(cpu) {
            Reading::Known(own) => own,
            Reading::Unknown { why } => return Reading::Unknown { why },
        };
        let is_private = |cache: &Cache| cache.shared_cpus.known().map(|cpus| cpus.is_subset(&own));
        self.data_caches_of(cpu).and_then(|caches| {
            let unclear = caches.iter().find_map(|cache| cache.shared_cpus.why());
            let private = caches.iter().filter(|cache| is_private(cache) == Some(true));
            match (unclear, private.max_by_key(|cache| cache.level.known())) {
                (Some(why), _) => Reading::unknown(why),
                (None, Some(cache)) => Reading::Known(*cache),
                (None, None) => Reading::unknown(format!("CPU {cpu} has no private data cache")),
            }
        })
    }

    /// The largest data (or unified) cache of the machine.
    pub fn largest_cache(&self) -> Reading<&Cache> {
        self.cpu.caches.as_ref().and_then(|caches| {
            let sized = caches.iter().filter(|cache| cache.holds_data());
            // The first of equals, so that the answer does not hang on the number of CPUs.
            let largest = sized
                .filter(|cache| cache.size_bytes.known().is_some())
                .rev()
                .max_by_key(|cache| cache.size_bytes.known());
            largest.ok_or("no data cache of known size").into()
        })
    }

    fn data_caches_of(&self, cpu: u32) -> Reading<Vec<&Cache>> {
        self.cpu.caches.as_ref().and_then(|caches| {
            let serving = caches.iter().filter(|cache| cache.holds_data() && cache.serves(cpu));
            match serving.collect::<Vec<_>>() {
                none if none.is_empty() => {
                    Reading::unknown(format!("CPU {cpu} has no data cache listed"))
                }
                serving => Reading::Known(serving),
            }
        })
    }
}

#[cfg(test)]
mod tests;
