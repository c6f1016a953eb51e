//! The setting of a plan: CPUs, placement, policy and memory, as typed and as this machine grants
//! them.

use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use model::machine::Machine;
use model::placement::Placement;
use model::plan::Plan;
use model::ring::{Case, Policy};
use model::words;
use probe::{placement, policy};
use rustix::io::Errno;

use crate::base::failure::usage;

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
        Ok(match text {
            "same" => Self::Same,
            "free" => Self::Free,
            "sweep" => Self::Sweep,
            list => {
                let cpus = list.split(',').map(|item| item.trim().parse());
                let accepted = "accepted: same, free, sweep, or CPU numbers such as 1 or 0,2";
                Self::Cpus(cpus.collect::<Result<_, _>>().map_err(|_| accepted)?)
            }
        })
    }
}

/// A plan, and what was not available for it.
pub(crate) type Planned = (Plan, Vec<String>);

/// Two processes that pass a token by the pipe, without work, under SCHED_OTHER: rings differ from
/// it.
pub(crate) fn pair(placement: Placement) -> Case {
    Case::of_processes(2, placement)
}

/// Where a plan is to run.
#[derive(Clone)]
pub(crate) struct Here {
    /// CPUs that this process was started on.
    pub(crate) allowed: Vec<u32>,
    pub(crate) machine: Machine,
    /// The CPUs that others left free when somebody asked for them first: it takes a moment, and
    /// all plans of one run are to be on the same.
    pub(crate) free: OnceLock<Vec<u32>>,
}

impl Here {
    /// This machine and process.
    pub(crate) fn detect() -> Result<Self> {
        let allowed = placement::allowed_cpus().context("cannot read the affinity mask")?;
        let machine = probe::machine::read(Path::new("/"));
        Ok(Self { allowed, machine, free: OnceLock::new() })
    }

    /// The CPU asked for, if it is available, or the one that suits best.
    pub(crate) fn cpu(&self, asked: Option<u32>) -> Result<u32> {
        if let Some(cpu) = asked {
            return self.check_cpu("--cpu", cpu).map(|()| cpu);
        }
        placement::choose_one(&self.free(), &self.machine).context("no CPU is allowed")
    }

    /// The CPUs that others leave free: one of these is chosen where nobody asked for one.
    pub(crate) fn free(&self) -> Vec<u32> {
        self.free.get_or_init(|| placement::free_of(&self.allowed)).clone()
    }

    /// Where members run that were told where: `same` is for the experiment to choose.
    pub(crate) fn placement(&self, asked: &PlacementArg, same: Option<u32>) -> Result<Placement> {
        match asked {
            PlacementArg::Free => Ok(Placement::Free { cpus: self.allowed.clone() }),
            PlacementArg::Same => Ok(Placement::Same { cpu: same.context("no CPU is allowed")? }),
            PlacementArg::Sweep => Err(usage(
                "--placement sweep: measures rings only (accepted here: same, free, or CPU \
                 numbers; see switchcost ring)",
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
        if *asked != PlacementArg::Sweep {
            return Ok(vec![self.placement(asked, same)?]);
        }
        let same = same.context("no CPU is allowed")?;
        Ok(model::placement::sweep(&self.machine, &self.allowed, same))
    }

    /// Why a CPU cannot be used: it is not present, it is offline, or it is not allowed.
    pub(crate) fn check_cpu(&self, flag: &str, cpu: u32) -> Result<()> {
        if self.allowed.contains(&cpu) {
            return Ok(());
        }
        let have = words::list(&self.allowed);
        let of = &self.machine.cpu;
        let present = of.present.known().filter(|list| !list.contains(cpu));
        let online = of.online.known().filter(|list| !list.contains(cpu));
        Err(usage(match (present, online) {
            (Some(present), _) => format!(
                "{flag}: CPU {cpu} is not present (this machine has {present}; accepted here: \
                 {have})"
            ),
            (None, Some(online)) => {
                format!("{flag}: CPU {cpu} is offline (online: {online}; accepted here: {have})")
            }
            (None, None) => format!(
                "{flag}: CPU {cpu} is not in this process's cpuset or affinity mask (accepted \
                 here: {have}; see taskset -p $$ and the control group's cpuset)"
            ),
        }))
    }

    /// What does not fit into memory would be ended by the out-of-memory killer, or end others.
    /// `what` needs so many bytes; `less` is what to ask for instead.
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
    let Some(all) = machine.interrupts.known() else {
        return format!(
            "setting: members on CPU {cpu}; which CPU serves most interrupts could not be read: {}",
            machine.interrupts.why().unwrap_or("unknown")
        );
    };
    let mut counts = all.clone();
    counts.sort_by_key(|of| (of.cpu != cpu, std::cmp::Reverse(of.devices)));
    // Many CPUs: the busiest beside it say enough.
    counts.truncate(4);
    let counts: Vec<String> =
        counts.iter().map(|of| format!("CPU {}: {}", of.cpu, of.devices)).collect();
    format!(
        "setting: members on CPU {cpu}, chosen by its interrupts from devices since the start of \
            the machine ({})",
        counts.join(", ")
    )
}

/// A real-time policy that was had.
pub(crate) fn granted(policy: Policy, priority: u32) -> String {
    format!("policy {policy} at priority {priority} was granted")
}

/// Why a thread cannot have the policy fifo.
pub(crate) fn no_fifo(errno: Errno) -> String {
    format!("fifo: {errno}; {}", policy::needs(Policy::Fifo, errno))
}

/// A real-time policy that was refused.
pub(crate) fn not_granted(policy: Policy, errno: Errno) -> String {
    format!(
        "policy {policy} was refused ({errno}; {}); SCHED_OTHER instead",
        policy::needs(policy, errno)
    )
}
