//! The setting of a plan: CPUs, placement, policy and memory, as typed and as this machine grants them.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result};
use model::case::{Kind, Placement, Policy};
use model::machine::{CpuInterrupts, Machine};
use model::plan::Plan;
use model::ring::Case;
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

/// A plan, and what was not available for it.
pub(crate) type Planned = (Plan, Vec<String>);

/// Two processes that pass a token by the pipe, without work, under the normal policy: rings differ from it.
pub(crate) fn pair(placement: Placement) -> Case {
    let (kind, policy) = (Kind::Process, Policy::Other);
    let (work, priority, state) = (None, None, None);
    Case { members: 2, kind, link: "pipe".to_string(), work, placement, policy, priority, state }
}

/// Where a plan is to run.
#[derive(Clone)]
pub(crate) struct Here {
    /// CPUs that this process was started on.
    pub(crate) allowed: Vec<u32>,
    pub(crate) machine: Machine,
}

impl Here {
    /// This machine and process.
    pub(crate) fn detect() -> Result<Self> {
        let allowed = placement::allowed_cpus().context("cannot read the affinity mask")?;
        Ok(Self { allowed, machine: probe::machine::read(Path::new("/")) })
    }

    /// The CPU asked for, if it can be had, or the one that suits best.
    pub(crate) fn cpu(&self, asked: Option<u32>) -> Result<u32> {
        match asked {
            Some(cpu) => self.check_cpu("--cpu", cpu).map(|()| cpu),
            None => {
                let cpu = placement::choose_one(&self.allowed, &self.machine);
                cpu.context("no CPU is allowed")
            }
        }
    }

    /// Where members run that were told where: `same` is for the experiment to choose.
    pub(crate) fn placement(&self, asked: &PlacementArg, same: Option<u32>) -> Result<Placement> {
        match asked {
            PlacementArg::Free => Ok(Placement::Free { cpus: self.allowed.clone() }),
            PlacementArg::Same => Ok(Placement::Same { cpu: same.context("no CPU is allowed")? }),
            PlacementArg::Sweep => Err(usage(
                "--placement sweep: measures rings only (accepted here: same, free, or CPU numbers; \
                 see switchcost ring)",
            )),
            PlacementArg::Cpus(cpus) => {
                cpus.iter().try_for_each(|cpu| self.check_cpu("--placement", *cpu))?;
                Ok(Placement::Pinned { cpus: cpus.clone(), relation: None })
            }
        }
    }

    /// All placements that were asked for: several for a sweep, which begins with `same` alone.
    pub(crate) fn placements(
        &self,
        asked: &PlacementArg,
        same: Option<u32>,
    ) -> Result<Vec<Placement>> {
        match asked {
            PlacementArg::Sweep => {
                let same = same.context("no CPU is allowed")?;
                Ok(model::placement::sweep(&self.machine, &self.allowed, same))
            }
            one => Ok(vec![self.placement(one, same)?]),
        }
    }

    /// Why a CPU cannot be used, told apart: it is not there, it is off, or it is not ours.
    pub(crate) fn check_cpu(&self, flag: &str, cpu: u32) -> Result<()> {
        if self.allowed.contains(&cpu) {
            return Ok(());
        }
        let have = self.allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let of = &self.machine.cpu;
        if let Some(present) = of.present.known().filter(|list| !list.contains(cpu)) {
            return Err(usage(format!(
                "{flag}: CPU {cpu} is not present (this machine has {present}; accepted here: {have})"
            )));
        }
        if let Some(online) = of.online.known().filter(|list| !list.contains(cpu)) {
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
    pub(crate) fn check_memory(&self, what: &str, needed: u128, less: &str) -> Result<()> {
        let machine = &self.machine;
        let group = machine.cgroup.memory_max_bytes.known().and_then(|limit| limit.as_ref());
        let left =
            group.map(|limit| limit.max - limit.current.known().unwrap_or(&0).min(&limit.max));
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
