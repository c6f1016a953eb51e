//! From what was typed to a plan that this machine can run. One file an experiment.

pub(crate) mod clock;
pub(crate) mod cost;
pub(crate) mod grid;
pub(crate) mod interference;
pub(crate) mod links;
pub(crate) mod measure;
pub(crate) mod response;
pub(crate) mod ring;
mod setting;
pub(crate) mod states;

use anyhow::{Context, Result};
use model::case::Placement;
use model::machine::Machine;
use model::plan::Stopping;

use crate::cli::{Effort, PlacementArg};
use crate::failure::usage;

/// Confidence of all intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The stopping rule as typed.
fn stopping<const BUDGET: u64>(effort: &Effort<BUDGET>) -> Stopping {
    Stopping {
        precision: effort.precision,
        budget_ns: u64::try_from(effort.budget.as_nanos()).unwrap_or(u64::MAX),
        rounds: effort.rounds,
        confidence: CONFIDENCE,
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
fn check_memory(what: &str, needed: u128, less: &str, machine: &Machine) -> Result<()> {
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
