//! What this host is, read from /proc and /sys below a root folder. One file a subject.
//!
//! Reading never fails as a whole: each value that could not be read says why. What the kernel
//! shows only to root (/sys/kernel/debug) is unknown to others.

mod cgroup;
mod cpu;
mod kernel;
mod system;
mod tlb;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::competing::Interrupts;
use model::machine::{Cpu, CpuAccounting, Kernel, Machine};
use model::reading::Reading;

pub(crate) use self::cgroup::HaltCounter;
use self::kernel::KernelConfig;
use self::system::{INTERRUPTS, devices_by_cpu};
use self::tree::{MachineTree, reading};

/// How often each source has interrupted, by its name in the first column and what it is called.
pub(crate) type Sources = BTreeMap<(String, String), u64>;

/// All sources over several CPUs since the start of the machine, below a root folder; absent where
/// they cannot be read.
pub(crate) fn interrupt_sources(root: &Path, cpus: &[u32]) -> Option<Sources> {
    system::of_cpus(&MachineTree::new(root).word(INTERRUPTS).ok()?, cpus).ok()
}

/// Where the kernel counts how long this process's control groups were throttled, and for how long
/// frozen, below a root folder.
pub(crate) fn halts(root: &Path) -> (Vec<HaltCounter>, Option<HaltCounter>) {
    cgroup::halts(&MachineTree::new(root))
}

/// Where a group with the cpu controller may be made.
pub(crate) struct CpuGroup {
    /// The group of this process.
    pub(crate) own: PathBuf,
    /// The group below which groups have the controller: its own, or one above.
    pub(crate) parent: PathBuf,
    /// Version 2, in which each group says which controllers those in it have.
    pub(crate) is_v2: bool,
}

/// The group with the cpu controller that is nearest to this process, below a root folder; or why
/// there is none, and what helps.
pub(crate) fn cpu_group(root: &Path) -> std::result::Result<CpuGroup, String> {
    let (own, parent, is_v2) =
        cgroup::with_cpu(&MachineTree::new(root)).map_err(|why| why.to_string())?;
    let [own, parent] = [own, parent].map(PathBuf::from);
    Ok(CpuGroup { own, parent, is_v2 })
}

/// What came of each source since `then`, if anything did.
pub(crate) fn since(now: Sources, then: &Sources) -> Vec<Interrupts> {
    let grown = now.into_iter().map(|(key, count)| {
        let count = count.saturating_sub(then.get(&key).copied().unwrap_or(0));
        Interrupts { source: key.0, name: key.1, count }
    });
    grown.filter(|of| of.count > 0).collect()
}

/// Reads the machine below a root folder: `/` for this one, or a captured tree. No file outside
/// of the root is read, even if a symbolic link leads there.
pub fn read(root: &Path) -> Machine {
    read_with_accounting(root).0
}

/// The same, and how the kernel separates user from system time.
pub fn read_with_accounting(root: &Path) -> (Machine, Reading<CpuAccounting>) {
    let tree = &MachineTree::new(root);
    let config = &KernelConfig::of(tree);
    let machine = Machine {
        kernel: kernel::read(tree, config),
        cpu: Cpu { tlbs: tlb::read(root), ..cpu::read(tree) },
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

/// How the kernel below a root folder separates user from system time, and of the machine no more
/// than what goes with it, the rate of its ticks.
pub fn accounting(root: &Path) -> (Machine, Reading<CpuAccounting>) {
    let tree = &MachineTree::new(root);
    let config = &KernelConfig::of(tree);
    let kernel = Kernel { hz: reading(kernel::hz(config)), ..Kernel::default() };
    (Machine { kernel, ..Machine::default() }, kernel::accounting(tree, config))
}
