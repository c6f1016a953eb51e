//! Which CPUs there are for a ring, and how to get onto them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use model::machine::Machine;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::procfs::{cpu_times_ns, ids_in};

/// CPUs that the calling thread may run on, sorted.
pub fn allowed_cpus() -> Result<Vec<u32>, Errno> {
    allowed(None)
}

/// CPUs that a process's first thread may run on, sorted.
pub fn allowed_cpus_of(pid: i32) -> Result<Vec<u32>, Errno> {
    allowed(Some(Pid::from_raw(pid).ok_or(Errno::SRCH)?))
}

fn allowed(process: Option<Pid>) -> Result<Vec<u32>, Errno> {
    let set = sched_getaffinity(process)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Puts the calling thread, and what it starts from now on, onto `cpus`.
pub fn pin(cpus: &[u32]) -> Result<(), Errno> {
    sched_setaffinity(None, &set_of(cpus)?)
}

/// Puts all threads of this process there, and what the calling one starts from now on.
pub fn pin_process(cpus: &[u32]) -> Result<(), Errno> {
    let set = set_of(cpus)?;
    // Where its threads cannot be listed there is still the one that does the work.
    for id in ids_in(Path::new("/proc/self/task")) {
        match sched_setaffinity(Pid::from_raw(id), &set) {
            // It has just ended.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno),
        }
    }
    sched_setaffinity(None, &set)
}

fn set_of(cpus: &[u32]) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        // One beyond the set's size cannot exist: the kernel's own answer for that.
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

/// For so long CPUs are looked at before one is chosen: ten of the ticks by which the kernel tells
/// their time.
const LOOK: Duration = Duration::from_millis(100);
/// Shares of that time that differ by no more are alike: one tick.
const ALIKE: f64 = 0.11;

/// How much of each CPU tasks used while the CPUs were looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuShares {
    /// CPU and share, from 0 to 1; empty where nothing is known.
    shares: Vec<(u32, f64)>,
}

impl CpuShares {
    /// Looks at these CPUs for a tenth of a second. A single one is not looked at.
    pub fn measure(allowed: &[u32]) -> Self {
        if allowed.len() < 2 {
            return Self::default();
        }
        let read = || fs::read_to_string("/proc/stat").unwrap_or_default();
        let before = read();
        thread::sleep(LOOK);
        Self::between(allowed, &before, &read())
    }

    /// Builds shares that are known from elsewhere.
    pub fn known(shares: &[(u32, f64)]) -> Self {
        Self { shares: shares.to_vec() }
    }

    /// Computes the shares from two readings of /proc/stat; none if a CPU is missing in one.
    fn between(allowed: &[u32], before: &str, after: &str) -> Self {
        let busy_ns = |text, cpu| cpu_times_ns(text, &[cpu])[0];
        let share = |cpu: &u32| {
            let used_ns = busy_ns(after, *cpu)?.checked_sub(busy_ns(before, *cpu)?)?;
            Some((*cpu, used_ns as f64 / LOOK.as_nanos() as f64))
        };
        let shares = allowed.iter().map(share).collect::<Option<Vec<(u32, f64)>>>();
        Self { shares: shares.unwrap_or_default() }
    }

    /// Returns the share of one CPU, if it is known.
    pub fn of_cpu(&self, cpu: u32) -> Option<f64> {
        self.shares.iter().find(|(known, _)| *known == cpu).map(|(_, share)| share.min(1.0))
    }

    /// Returns those of `allowed` that others use least; all of them where a share is not known.
    pub fn least_used(&self, allowed: &[u32]) -> Vec<u32> {
        let share = |cpu: &u32| Some((*cpu, self.of_cpu(*cpu)?));
        let Some(shares) = allowed.iter().map(share).collect::<Option<Vec<(u32, f64)>>>() else {
            return allowed.to_vec();
        };
        let least = shares.iter().map(|(_, share)| *share).fold(f64::INFINITY, f64::min);
        let free = shares.into_iter().filter(|(_, share)| *share <= least + ALIKE);
        free.map(|(cpu, _)| cpu).collect()
    }
}

/// The CPU for a ring on one CPU: an isolated one if there is one, else the highest but 0, which
/// serves most of the kernel's own business; 0 only when there is no other.
pub fn choose_one(allowed: &[u32], machine: &Machine) -> Option<u32> {
    let rank = |cpu: &u32| (is_isolated(*cpu, machine), *cpu != 0, *cpu);
    allowed.iter().copied().max_by_key(rank)
}

/// The CPU for a ring that is to be disturbed as little as the machine allows: an isolated one if
/// there is one, else the one that served the fewest interrupts of devices so far. Without their
/// counts as [`choose_one`].
pub fn choose_quiet(allowed: &[u32], machine: &Machine) -> Option<u32> {
    let served = |cpu: u32| {
        let all = machine.interrupts.known()?;
        all.iter().find(|of| of.cpu == cpu).map(|of| of.devices)
    };
    let counted: Option<Vec<(u32, u64)>> =
        allowed.iter().map(|cpu| served(*cpu).map(|devices| (*cpu, devices))).collect();
    let Some(counted) = counted else { return choose_one(allowed, machine) };
    // Of equals the highest: the kernel's own business is mostly on the lowest.
    let rank =
        |(cpu, devices): &(u32, u64)| (!is_isolated(*cpu, machine), *devices, u32::MAX - cpu);
    counted.into_iter().min_by_key(rank).map(|(cpu, _)| cpu)
}

/// CPUs for the controller: away from those of the ring, and from their SMT siblings where enough
/// are left; all that are allowed when the ring needs every one.
pub fn choose_for_controller(allowed: &[u32], ring: &[u32], machine: &Machine) -> Vec<u32> {
    let away: Vec<u32> = allowed.iter().copied().filter(|cpu| !ring.contains(cpu)).collect();
    let is_sibling = |cpu: &u32| {
        let siblings = machine.smt_siblings_of(*cpu);
        siblings.is_ok_and(|list| list.iter().any(|sibling| ring.contains(&sibling)))
    };
    let apart: Vec<u32> = away.iter().copied().filter(|cpu| !is_sibling(cpu)).collect();
    [apart, away].into_iter().find(|cpus| !cpus.is_empty()).unwrap_or_else(|| allowed.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::machine::CpuInterrupts;
    use model::reading::Reading;

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
