//! The setting of a plan: CPUs, placement, policy and memory, as typed and as this machine grants
//! them.

use std::env;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result};
use probe::placement::{self, CpuShares};
use probe::policy;
use rundata::machine::Machine;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan::Plan;
use rundata::ring::{Policy, RingCase};
use rundata::words;
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
pub(crate) type PlanWithNotices = (Plan, Vec<Notice>);

/// Two processes that pass a token by the pipe, without work, under SCHED_OTHER: rings differ from
/// it.
pub(crate) fn pair(placement: Placement) -> RingCase {
    RingCase::of_processes(2, placement)
}

/// Where a plan is to run.
#[derive(Clone)]
pub(crate) struct LocalHost {
    /// CPUs that this process was started on.
    pub(crate) allowed: Vec<u32>,
    pub(crate) machine: Machine,
    /// How busy the CPUs are and whether SCHED_FIFO is granted, where that is known beforehand;
    /// otherwise it is found out for each plan.
    pub(crate) load: Option<CurrentLoad>,
}

/// The environment variable that keeps plans the same however busy the CPUs are.
const IGNORE_BUSY: &str = "SWITCHCOST_IGNORE_BUSY";

/// How busy the CPUs are when a plan is made, and what keeps others away.
#[derive(Clone, Debug)]
pub(crate) struct CurrentLoad {
    pub(crate) shares: CpuShares,
    /// Whether SCHED_FIFO is granted; absent where something else says what the policy is.
    pub(crate) fifo: Option<Result<(), Errno>>,
}

impl CurrentLoad {
    /// Chooses the CPU that suits a ring best, of those that others use least.
    pub(crate) fn choose_one(&self, here: &LocalHost) -> Option<u32> {
        placement::choose_one(&self.shares.least_used(&here.allowed), &here.machine)
    }
}

impl LocalHost {
    /// This machine and process.
    pub(crate) fn detect() -> Result<Self> {
        let allowed = placement::allowed_cpus().context("cannot read the affinity mask")?;
        Ok(Self { allowed, machine: probe::machine::read(Path::new("/")), load: None })
    }

    /// Returns how busy the CPUs are now; takes a tenth of a second.
    pub(crate) fn current_load(&self) -> CurrentLoad {
        if let Some(load) = &self.load {
            return load.clone();
        }
        let is_ignored = env::var_os(IGNORE_BUSY).is_some_and(|value| !value.is_empty());
        CurrentLoad {
            shares: CpuShares::measure(&self.allowed),
            fifo: if is_ignored { None } else { Some(policy::check(Policy::Fifo)) },
        }
    }

    /// The CPU asked for, if it is available, or the one that suits best.
    pub(crate) fn cpu(&self, asked: Option<u32>, load: &CurrentLoad) -> Result<u32> {
        match asked {
            Some(cpu) => self.check_cpu("--cpu", cpu).map(|()| cpu),
            None => load.choose_one(self).context("no CPU is allowed"),
        }
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
        Ok(rundata::placement::placements_for_sweep(&self.machine, &self.allowed, same))
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
    format!("fifo: {errno}; {}", policy::describe_needs(Policy::Fifo, errno))
}

/// A real-time policy that was refused.
pub(crate) fn not_granted(policy: Policy, errno: Errno) -> String {
    format!(
        "policy {policy} was refused ({errno}; {}); SCHED_OTHER instead",
        policy::describe_needs(policy, errno)
    )
}
