//! The setting of a plan: CPUs, placement, policy and memory, as typed and as this machine grants them.

use std::str::FromStr;

use anyhow::{Context, Result};
use model::case::{Placement, Policy};
use model::machine::{CpuInterrupts, Machine};
use probe::{placement, policy};
use rustix::io::Errno;

use crate::failure::usage;

/// Placement as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlacementArg {
    Same,
    Free,
    Sweep,
    Cpus(Vec<u32>),
}

impl FromStr for PlacementArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let cpu = |item: &str| item.trim().parse::<u32>();
        match text {
            "same" => Ok(Self::Same),
            "free" => Ok(Self::Free),
            "sweep" => Ok(Self::Sweep),
            list => {
                list.split(',').map(cpu).collect::<Result<_, _>>().map(Self::Cpus).map_err(|_| {
                    "accepted: same, free, sweep, or CPU numbers such as 1 or 0,2".to_string()
                })
            }
        }
    }
}

/// Where members run that were told where: `same` is for the experiment to choose.
pub(crate) fn placement(
    asked: &PlacementArg,
    same: Option<u32>,
    allowed: &[u32],
    machine: &Machine,
) -> Result<Placement> {
    match asked {
        PlacementArg::Free => Ok(Placement::Free { cpus: allowed.to_vec() }),
        PlacementArg::Same => Ok(Placement::Same { cpu: same.context("no CPU is allowed")? }),
        PlacementArg::Sweep => Err(usage(
            "--placement sweep: measures rings only (accepted here: same, free, or CPU numbers; \
             see switchcost ring)",
        )),
        PlacementArg::Cpus(cpus) => {
            for cpu in cpus {
                check_cpu("--placement", *cpu, allowed, machine)?;
            }
            Ok(Placement::Pinned { cpus: cpus.clone(), relation: None })
        }
    }
}

/// All placements that were asked for: several for a sweep, which begins with `same` alone.
pub(crate) fn placements(
    asked: &PlacementArg,
    same: Option<u32>,
    allowed: &[u32],
    machine: &Machine,
) -> Result<Vec<Placement>> {
    match asked {
        PlacementArg::Sweep => {
            Ok(model::placement::sweep(machine, allowed, same.context("no CPU is allowed")?))
        }
        one => Ok(vec![placement(one, same, allowed, machine)?]),
    }
}

/// Why a CPU cannot be used, told apart: it is not there, it is off, or it is not ours.
pub(crate) fn check_cpu(flag: &str, cpu: u32, allowed: &[u32], machine: &Machine) -> Result<()> {
    if allowed.contains(&cpu) {
        return Ok(());
    }
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let have = list(allowed);
    if let Some(present) = machine.cpu.present.known().filter(|list| !list.contains(cpu)) {
        return Err(usage(format!(
            "{flag}: CPU {cpu} is not present (this machine has {present}; accepted here: {have})"
        )));
    }
    if let Some(online) = machine.cpu.online.known().filter(|list| !list.contains(cpu)) {
        return Err(usage(format!(
            "{flag}: CPU {cpu} is offline (online: {online}; accepted here: {have})"
        )));
    }
    Err(usage(format!(
        "{flag}: CPU {cpu} is not in this process's cpuset or affinity mask (accepted here: {have}; \
         see taskset -p $$ and the control group's cpuset)"
    )))
}

/// What does not fit into memory would be ended by the out-of-memory killer, or end others. `what`
/// needs so many bytes; `less` is what to ask for instead.
pub(crate) fn check_memory(what: &str, needed: u128, less: &str, machine: &Machine) -> Result<()> {
    let group = machine.cgroup.memory_max_bytes.known().and_then(|limit| limit.as_ref());
    let left = group.map(|limit| limit.max - limit.current.known().unwrap_or(&0).min(&limit.max));
    let free = machine.memory.available_bytes.known().copied().into_iter().chain(left).min();
    match free {
        Some(free) if needed > u128::from(free) * 9 / 10 => Err(usage(format!(
            "{what} needs {} MiB, {} MiB are free: ask for {less}",
            needed >> 20,
            free >> 20
        ))),
        _ => Ok(()),
    }
}

/// Where the trials of a plan run.
pub(crate) struct Here<'a> {
    /// CPUs that this process was started on.
    pub(crate) allowed: &'a [u32],
    /// This machine.
    pub(crate) machine: &'a Machine,
}

impl Here<'_> {
    /// The CPU asked for, if it can be had, or the one that suits best.
    pub(crate) fn cpu(&self, asked: Option<u32>) -> Result<u32> {
        match asked {
            Some(cpu) => check_cpu("--cpu", cpu, self.allowed, self.machine).map(|()| cpu),
            None => placement::choose_one(self.allowed, self.machine).context("no CPU is allowed"),
        }
    }
}

/// Why this CPU.
pub(crate) fn chosen_cpu(cpu: u32, machine: &Machine) -> String {
    if machine.cpu.isolated.known().is_some_and(|list| list.contains(cpu)) {
        return format!("setting: members on CPU {cpu}, which is isolated");
    }
    match machine.interrupts.known() {
        Some(all) => {
            let of = |of: &CpuInterrupts| format!("CPU {}: {}", of.cpu, of.devices);
            // Many CPUs: the busiest say enough.
            let mut busiest = all.clone();
            busiest.sort_by_key(|of| std::cmp::Reverse(of.devices));
            let rest = busiest.iter().filter(|of| of.cpu != cpu).take(3);
            let own = busiest.iter().filter(|of| of.cpu == cpu);
            let counts: Vec<String> = own.chain(rest).map(of).collect();
            format!(
                "setting: members on CPU {cpu}, by the interrupts of devices since the start of the machine ({})",
                counts.join(", ")
            )
        }
        None => format!(
            "setting: members on CPU {cpu}; which CPU serves most interrupts could not be read: {}",
            machine.interrupts.why().unwrap_or("unknown")
        ),
    }
}

/// A real-time policy that was had.
pub(crate) fn granted(policy: Policy, priority: u32) -> String {
    format!("granted: policy {policy} at priority {priority}")
}

/// A real-time policy that was refused.
pub(crate) fn not_granted(policy: Policy, errno: Errno) -> String {
    format!(
        "not granted: policy {policy} ({errno}; {}); the normal policy instead",
        policy::needs(policy)
    )
}
