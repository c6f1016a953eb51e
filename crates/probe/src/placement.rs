//! The choice of CPUs for a ring and its controller, and moving tasks to them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rundata::machine::Machine;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::procfs::{cpu_times_ns, ids_in};

/// Returns the CPUs that the calling thread may run on, sorted.
pub fn allowed_cpus() -> Result<Vec<u32>, Errno> {
    allowed(None)
}

/// Returns the CPUs that a process's first thread may run on, sorted.
pub fn allowed_cpus_of(pid: i32) -> Result<Vec<u32>, Errno> {
    allowed(Some(Pid::from_raw(pid).ok_or(Errno::SRCH)?))
}

fn allowed(process: Option<Pid>) -> Result<Vec<u32>, Errno> {
    let set = sched_getaffinity(process)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Moves the calling thread, and all that it starts from now on, to `cpus`.
pub fn pin(cpus: &[u32]) -> Result<(), Errno> {
    sched_setaffinity(None, &set_of(cpus)?)
}

/// Moves all threads of this process to `cpus`, and all that the calling one starts from now on.
pub fn pin_process(cpus: &[u32]) -> Result<(), Errno> {
    let set = set_of(cpus)?;
    // If the threads cannot be listed, the calling one is moved all the same.
    for id in ids_in(Path::new("/proc/self/task")) {
        match sched_setaffinity(Pid::from_raw(id), &set) {
            // The thread has just ended.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno),
        }
    }
    sched_setaffinity(None, &set)
}

/// Builds the kernel's set of these CPUs.
fn set_of(cpus: &[u32]) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        // No CPU beyond the set's size exists: the kernel would return the same errno.
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL);
        }
        set.set(*cpu as usize);
    }
    Ok(set)
}

fn is_isolated(cpu: u32, machine: &Machine) -> bool {
    machine.cpu.isolated.known().is_some_and(|isolated| isolated.contains(cpu))
}

/// Time for which CPUs are observed before one is chosen: ten of the ticks in which the kernel
/// counts their time.
const OBSERVATION: Duration = Duration::from_millis(100);
/// Largest difference of two shares that count as equal: one tick.
const SHARE_TOLERANCE: f64 = 0.11;

/// Share of each CPU that tasks used while the CPUs were observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuShares {
    /// CPUs and their shares, from 0 to 1; empty if nothing is known.
    shares: Vec<(u32, f64)>,
}

impl CpuShares {
    /// Observes these CPUs for a tenth of a second. A single one is not observed.
    pub fn measure(allowed: &[u32]) -> Self {
        if allowed.len() < 2 {
            return Self::default();
        }
        let before = fs::read_to_string("/proc/stat").unwrap_or_default();
        thread::sleep(OBSERVATION);
        let after = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::between(allowed, &before, &after)
    }

    /// Builds shares that are known from elsewhere.
    pub fn known(shares: &[(u32, f64)]) -> Self {
        Self { shares: shares.to_vec() }
    }

    /// Computes the shares from two readings of /proc/stat; none if a CPU is missing in one.
    fn between(allowed: &[u32], before: &str, after: &str) -> Self {
        let mut shares = Vec::new();
        for cpu in allowed {
            let Some(share) = used_share(*cpu, before, after) else { return Self::default() };
            shares.push((*cpu, share));
        }
        Self { shares }
    }

    /// Returns the share of one CPU, if it is known.
    pub fn of_cpu(&self, cpu: u32) -> Option<f64> {
        self.shares.iter().find(|(known, _)| *known == cpu).map(|(_, share)| share.min(1.0))
    }

    /// Returns those of `allowed` that others use least; all of them where a share is not known.
    pub fn least_used(&self, allowed: &[u32]) -> Vec<u32> {
        let mut shares = Vec::new();
        let mut least = f64::INFINITY;
        for cpu in allowed {
            let Some(share) = self.of_cpu(*cpu) else { return allowed.to_vec() };
            shares.push((*cpu, share));
            least = least.min(share);
        }
        shares.retain(|(_, share)| *share <= least + SHARE_TOLERANCE);
        shares.into_iter().map(|(cpu, _)| cpu).collect()
    }
}

/// Returns the share of a CPU that tasks used between two readings of /proc/stat.
fn used_share(cpu: u32, before: &str, after: &str) -> Option<f64> {
    let [before_ns, ..] = cpu_times_ns(before, &[cpu]);
    let [after_ns, ..] = cpu_times_ns(after, &[cpu]);
    let used_ns = after_ns?.checked_sub(before_ns?)?;
    Some(used_ns as f64 / OBSERVATION.as_nanos() as f64)
}

/// Chooses the CPU for a ring on one CPU: an isolated one if there is one, else the highest but 0,
/// on which most of the kernel's work runs; 0 only if there is no other.
pub fn choose_one(allowed: &[u32], machine: &Machine) -> Option<u32> {
    allowed.iter().copied().max_by_key(|cpu| (is_isolated(*cpu, machine), *cpu != 0, *cpu))
}

/// Chooses the CPU for a ring that is to be disturbed as little as possible: an isolated one if
/// there is one, else the one that served the fewest interrupts of devices so far. Without their
/// counts it chooses like [`choose_one`].
pub fn choose_quiet(allowed: &[u32], machine: &Machine) -> Option<u32> {
    let mut quietest = None;
    for cpu in allowed {
        let Some(served) = device_interrupts(*cpu, machine) else {
            return choose_one(allowed, machine);
        };
        // Of equals the highest: most of the kernel's work runs on the lowest.
        let rank = (!is_isolated(*cpu, machine), served, u32::MAX - cpu);
        if quietest.is_none_or(|(least, _)| rank < least) {
            quietest = Some((rank, *cpu));
        }
    }
    quietest.map(|(_, cpu)| cpu)
}

/// Returns how many interrupts of devices a CPU has served, if that is known.
fn device_interrupts(cpu: u32, machine: &Machine) -> Option<u64> {
    let by_cpu = machine.interrupts.known()?;
    Some(by_cpu.iter().find(|interrupts| interrupts.cpu == cpu)?.devices)
}

/// Chooses the CPUs for the controller: none of the ring's, and none of their SMT siblings if
/// others are left; all allowed ones if the ring needs every CPU.
pub fn choose_for_controller(allowed: &[u32], ring: &[u32], machine: &Machine) -> Vec<u32> {
    let away: Vec<u32> = allowed.iter().copied().filter(|cpu| !ring.contains(cpu)).collect();
    let mut apart = away.clone();
    apart.retain(|cpu| !is_sibling_of(*cpu, ring, machine));
    if !apart.is_empty() {
        apart
    } else if !away.is_empty() {
        away
    } else {
        allowed.to_vec()
    }
}

/// Returns whether a CPU shares its core with one of the ring's.
fn is_sibling_of(cpu: u32, ring: &[u32], machine: &Machine) -> bool {
    let siblings = machine.smt_siblings_of(cpu);
    siblings.is_ok_and(|list| list.iter().any(|sibling| ring.contains(&sibling)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rundata::machine::CpuInterrupts;
    use rundata::reading::Reading;

    fn machine(devices: &[u64], isolated: &str) -> Machine {
        let of =
            |(cpu, devices): (usize, &u64)| CpuInterrupts { cpu: cpu as u32, devices: *devices };
        let mut machine = Machine {
            interrupts: Reading::Known(devices.iter().enumerate().map(of).collect()),
            ..Machine::default()
        };
        machine.cpu.isolated = Reading::Known(isolated.parse().unwrap());
        machine
    }

    #[test]
    fn a_cpu_that_others_use_is_left_to_them() {
        let text = |busy: [u64; 3]| {
            let line =
                |(cpu, ticks): (usize, &u64)| format!("cpu{cpu} {ticks} 0 5 900 0 0 0 0 0 0\n");
            busy.iter().enumerate().map(line).collect::<String>()
        };
        let shares = |allowed: &[u32], after| {
            CpuShares::between(allowed, &text([100, 200, 300]), &text(after))
        };
        let free = |after| shares(&[0, 1, 2], after).least_used(&[0, 1, 2]);
        assert_eq!(free([100, 210, 300]), [0, 2]);
        // One tick may have met anybody.
        assert_eq!(free([100, 201, 303]), [0, 1]);
        // All are busy: the least of them.
        assert_eq!(free([110, 205, 310]), [1]);
        // What cannot be read leaves all.
        assert_eq!(free([0, 0, 0]), [0, 1, 2]);
        assert_eq!(shares(&[0, 7], [0, 10, 10]).least_used(&[0, 7]), [0, 7]);
    }

    #[test]
    fn how_busy_a_cpu_is_goes_by_its_ticks() {
        let text = |ticks: u64| format!("cpu0 {ticks} 0 5 900 0 0 0 0 0 0\ncpu1 7 0 0 9 0 0 0\n");
        let share = |ticks| CpuShares::between(&[0, 1], &text(100), &text(ticks));
        assert_eq!(share(104).of_cpu(0), Some(0.4));
        assert_eq!(share(104).of_cpu(1), Some(0.0));
        // The look may have lasted a little longer.
        assert_eq!(share(111).of_cpu(0), Some(1.0));
        assert_eq!(share(104).of_cpu(2), None);
        assert_eq!(CpuShares::measure(&[0]), CpuShares::default());
    }

    #[test]
    fn the_quiet_cpu_is_the_one_with_the_fewest_interrupts_of_those_allowed() {
        assert_eq!(choose_quiet(&[0, 1], &machine(&[5, 900], "")), Some(0));
        assert_eq!(choose_quiet(&[0, 1], &machine(&[900, 5], "")), Some(1));
        assert_eq!(choose_quiet(&[1, 2, 3], &machine(&[0, 9, 7, 7], "")), Some(3));
        assert_eq!(choose_quiet(&[], &machine(&[1], "")), None);
    }

    #[test]
    fn an_isolated_cpu_is_quieter_than_its_count() {
        assert_eq!(choose_quiet(&[0, 1, 2], &machine(&[5, 6, 900], "2")), Some(2));
    }

    #[test]
    fn without_counts_for_all_the_choice_is_that_of_any_ring() {
        assert_eq!(choose_quiet(&[0, 1], &Machine::default()), Some(1));
        assert_eq!(choose_quiet(&[0, 3], &machine(&[5, 6], "")), Some(3));
    }
}
