//! Which CPUs there are for a ring, and how to get onto them.

use model::machine::Machine;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that the calling thread may run on, sorted.
pub fn allowed_cpus() -> Result<Vec<u32>, Errno> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Puts the calling thread, and what it starts from now on, onto `cpus`.
pub fn pin(cpus: &[u32]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        // One beyond the set's size cannot exist: the kernel's own answer for that.
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL);
        }
        set.set(*cpu as usize);
    }
    sched_setaffinity(None, &set)
}

/// The CPU for a ring on one CPU: an isolated one if there is one, else the highest but 0, which
/// serves most of the kernel's own business; 0 only when there is no other.
pub fn choose_one(allowed: &[u32], machine: &Machine) -> Option<u32> {
    let isolated = machine.cpu.isolated.known().map(|list| list.as_slice().to_vec());
    let isolated = isolated.unwrap_or_default();
    let rank = |cpu: &u32| (isolated.contains(cpu), *cpu != 0, *cpu);
    allowed.iter().copied().max_by_key(|cpu| rank(cpu))
}

/// CPUs for the controller: away from those of the ring, and from their SMT siblings where enough
/// are left; all that are allowed when the ring needs every one.
pub fn for_controller(allowed: &[u32], ring: &[u32], machine: &Machine) -> Vec<u32> {
    let away: Vec<u32> = allowed.iter().copied().filter(|cpu| !ring.contains(cpu)).collect();
    let is_sibling = |cpu: &u32| {
        machine
            .smt_siblings_of(*cpu)
            .known()
            .is_some_and(|list| list.iter().any(|sibling| ring.contains(&sibling)))
    };
    let apart: Vec<u32> = away.iter().copied().filter(|cpu| !is_sibling(cpu)).collect();
    [apart, away].into_iter().find(|cpus| !cpus.is_empty()).unwrap_or_else(|| allowed.to_vec())
}
