//! Facts about this host, read from /proc and /sys below a root folder. Each file has one subject.
//!
//! Reading never fails as a whole: each value that could not be read says why. Facts that the
//! kernel shows to root only (/sys/kernel/debug) are unknown to others.

mod cgroup;
mod cpu;
mod kernel;
mod scheduler;
mod system;
mod tlb;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rundata::competing::InterruptSource;
use rundata::machine::{CpuAccounting, CpuInventory, Machine, RunningKernel};
use rundata::reading::Reading;

pub(crate) use self::cgroup::{HaltCounter, HaltCounters};
use self::kernel::KernelConfig;
use self::system::{INTERRUPTS, devices_by_cpu};
use self::tree::{MachineTree, reading};

/// Count of each source of interrupts, by its name in the first column and by its description.
pub(crate) type InterruptCounts = BTreeMap<(String, String), u64>;

/// Reads the interrupts of several CPUs together since the start of the machine, if they can be
/// read below `root`.
pub(crate) fn interrupt_counts(root: &Path, cpus: &[u32]) -> Option<InterruptCounts> {
    system::interrupts_of_cpus(&MachineTree::new(root).word(INTERRUPTS).ok()?, cpus).ok()
}

/// Finds the counters of the time for which this process's control groups were throttled or frozen,
/// below a root folder.
pub(crate) fn halt_counters(root: &Path) -> HaltCounters {
    cgroup::halt_counters(&MachineTree::new(root))
}

/// Place where a group with the cpu controller can be created.
pub(crate) struct CpuGroup {
    /// Folder of the group of this process.
    pub(crate) own: PathBuf,
    /// Folder of the group within which groups have the controller: the own one, or one above.
    pub(crate) parent: PathBuf,
    /// Whether it is version 2, where each group lists the controllers of the groups within it.
    pub(crate) is_v2: bool,
}

/// Finds the group with the cpu controller that is nearest to this process, below a root folder.
/// The error says why there is none, and what helps.
pub(crate) fn cpu_group(root: &Path) -> std::result::Result<CpuGroup, String> {
    cgroup::cpu_group(&MachineTree::new(root)).map_err(|error| error.to_string())
}

/// Returns the sources that interrupted since `then`, and how often.
pub(crate) fn interrupts_since(
    now: InterruptCounts,
    then: &InterruptCounts,
) -> Vec<InterruptSource> {
    let mut interrupts = Vec::new();
    for (key, count) in now {
        let count = count.saturating_sub(then.get(&key).copied().unwrap_or(0));
        if count > 0 {
            let (source, name) = key;
            interrupts.push(InterruptSource { source, name, count });
        }
    }
    interrupts
}

/// Reads the machine below a root folder: `/` for this one, or a captured tree. No file outside
/// of the root is read, even if a symbolic link leads there.
pub fn read(root: &Path) -> Machine {
    read_with_accounting(root).0
}

/// Reads the machine, and how its kernel separates user from system time.
pub fn read_with_accounting(root: &Path) -> (Machine, Reading<CpuAccounting>) {
    let tree = &MachineTree::new(root);
    let config = &KernelConfig::read(tree);
    let machine = Machine {
        kernel: kernel::read(tree, config),
        scheduler: scheduler::read(tree),
        cpu: CpuInventory { tlbs: tlb::read(root), ..cpu::read(tree) },
        frequency: cpu::read_frequency(tree),
        mitigations: reading(system::mitigations(tree)),
        virtualization: system::virtualization(tree),
        numa: system::numa(tree),
        memory: system::memory(tree),
        cgroup: cgroup::read(tree),
        limits: system::limits(tree),
        load: system::load(tree),
        interrupts: reading(tree.word(INTERRUPTS).and_then(|text| devices_by_cpu(&text))),
    };
    (machine, kernel::accounting(tree, config))
}

/// Reads only the settings that may change while a run goes on ([`Machine::changed_settings`]): some
/// 30 small files, and five for each CPU whose frequency can be set. What else a machine has is
/// unknown.
pub fn read_changeable_settings(root: &Path) -> Machine {
    let tree = &MachineTree::new(root);
    let mut machine = Machine {
        scheduler: scheduler::read(tree),
        frequency: cpu::read_frequency(tree),
        ..Machine::default()
    };
    machine.kernel.preemption.model = kernel::current_preemption(tree);
    machine.kernel.sched_rt_runtime_us = kernel::real_time_limit(tree);
    machine.cpu.online = cpu::online_list(tree);
    machine.cpu.smt_control = cpu::smt_control(tree);
    machine.memory.thp_enabled = system::huge_pages_enabled(tree);
    machine
}

/// Reads how the kernel below a root folder separates user from system time, and of the machine
/// only the rate of its ticks, which goes with it.
pub fn accounting(root: &Path) -> (Machine, Reading<CpuAccounting>) {
    let tree = &MachineTree::new(root);
    let config = &KernelConfig::read(tree);
    let kernel = RunningKernel { hz: reading(kernel::hz(config)), ..RunningKernel::default() };
    (Machine { kernel, ..Machine::default() }, kernel::accounting(tree, config))
}
