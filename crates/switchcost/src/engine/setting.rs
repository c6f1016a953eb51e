//! The setting of a plan: CPUs, placement, policy and memory, as typed and as this machine grants
//! them.

use std::cmp::Reverse;
use std::env;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result};
use probe::placement::{self, CpuShares};
use probe::policy;
use rundata::machine::Machine;
use rundata::notice::Notice;
use rundata::placement::{Placement, cpus_for_spread, placements_for_pairs};
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
    /// Each of several rings on a CPU of its own.
    Spread,
    /// Each of several rings on a pair of CPUs, for each relation.
    Pairs,
    Cpus(Vec<u32>),
}

impl FromStr for PlacementArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "same" => return Ok(Self::Same),
            "free" => return Ok(Self::Free),
            "sweep" => return Ok(Self::Sweep),
            "spread" => return Ok(Self::Spread),
            "pairs" => return Ok(Self::Pairs),
            _ => {}
        }
        let mut cpus = Vec::new();
        for number in text.split(',') {
            let cpu = number.trim().parse();
            let accepted = "accepted: same, free, sweep, or CPU numbers such as 1 or 0,2";
            cpus.push(cpu.map_err(|_| accepted)?);
        }
        Ok(Self::Cpus(cpus))
    }
}

/// A plan, and notes on what this machine does not grant for it.
pub(crate) type PlanWithNotices = (Plan, Vec<Notice>);

/// Returns the simplest ring: two processes that pass a token by the pipe, without work, under
/// SCHED_OTHER.
pub(crate) fn pair(placement: Placement) -> RingCase {
    RingCase::of_processes(2, placement)
}

/// The machine and process for which a plan is made.
#[derive(Clone)]
pub(crate) struct LocalHost {
    /// CPUs that this process was started on.
    pub(crate) allowed: Vec<u32>,
    pub(crate) machine: Machine,
    /// The load, where it is known beforehand; otherwise it is measured for each plan.
    pub(crate) load: Option<CurrentLoad>,
}

/// The environment variable under which plans are made as if all CPUs were idle.
const IGNORE_BUSY: &str = "SWITCHCOST_IGNORE_BUSY";

/// CPU time that competing tasks use when a plan is made, and whether SCHED_FIFO would make them
/// wait.
#[derive(Clone, Debug)]
pub(crate) struct CurrentLoad {
    pub(crate) shares: CpuShares,
    /// Tells if SCHED_FIFO is granted; absent where the policy is decided elsewhere.
    pub(crate) fifo: Option<Result<(), Errno>>,
}

impl CurrentLoad {
    /// Chooses the CPU that suits a ring best, of those that competing tasks use least.
    pub(crate) fn choose_one(&self, host: &LocalHost) -> Option<u32> {
        placement::choose_one(&self.shares.least_used(&host.allowed), &host.machine)
    }
}

impl LocalHost {
    /// Reads the facts of this machine and process.
    pub(crate) fn detect() -> Result<Self> {
        let allowed = placement::allowed_cpus().context("cannot read the affinity mask")?;
        Ok(Self { allowed, machine: probe::machine::read(Path::new("/")), load: None })
    }

    /// Returns the load of the CPUs now; measuring it takes a tenth of a second.
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

    /// Returns the CPU that was asked for, if it is available, or chooses the one that suits best.
    pub(crate) fn cpu(&self, asked: Option<u32>, load: &CurrentLoad) -> Result<u32> {
        match asked {
            Some(cpu) => {
                self.check_cpu("--cpu", cpu)?;
                Ok(cpu)
            }
            None => load.choose_one(self).context("no CPU is allowed"),
        }
    }

    /// Returns the placement that was asked for. The CPU of `same` is chosen by the experiment.
    pub(crate) fn placement(&self, asked: &PlacementArg, same: Option<u32>) -> Result<Placement> {
        match asked {
            PlacementArg::Free => Ok(Placement::Free { cpus: self.allowed.clone() }),
            PlacementArg::Same => Ok(Placement::Same { cpu: same.context("no CPU is allowed")? }),
            PlacementArg::Sweep => Err(usage(
                "--placement sweep: measures rings only (accepted here: same, free, or CPU \
                 numbers; see switchcost ring)",
            )),
            PlacementArg::Spread | PlacementArg::Pairs => Err(usage(
                "--placement spread and pairs: for several rings only (switchcost ring --rings; \
                 accepted here: same, free, or CPU numbers)",
            )),
            PlacementArg::Cpus(cpus) => {
                for cpu in cpus {
                    self.check_cpu("--placement", *cpu)?;
                }
                Ok(Placement::Pinned { cpus: cpus.clone(), relation: None })
            }
        }
    }

    /// Returns all placements that were asked for: one, or those of a sweep, which begins with one
    /// CPU.
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

    /// Returns the placements that several rings have in turn, the first ring the first one: one
    /// list, or one for each relation of the pairs that were asked for. The first CPU is `same`.
    pub(crate) fn placements_of_rings(
        &self,
        asked: &PlacementArg,
        same: Option<u32>,
    ) -> Result<Vec<Vec<Placement>>> {
        let first = same.context("no CPU is allowed");
        match asked {
            PlacementArg::Spread => {
                let mut placements = Vec::new();
                for cpu in cpus_for_spread(&self.machine, &self.allowed, first?) {
                    placements.push(Placement::Same { cpu });
                }
                Ok(vec![placements])
            }
            PlacementArg::Pairs => {
                let pairs = placements_for_pairs(&self.machine, &self.allowed, first?);
                if pairs.is_empty() {
                    return Err(usage(
                        "--placement pairs: this program may use one CPU only (see taskset -p $$ \
                         and the control group's cpuset; accepted here: same, spread, free)",
                    ));
                }
                Ok(pairs)
            }
            PlacementArg::Sweep => Err(usage(
                "--placement sweep: measures one ring at a time (of several rings: pairs)",
            )),
            _ => Ok(vec![vec![self.placement(asked, same)?]]),
        }
    }

    /// Checks that a CPU may be used.
    ///
    /// # Errors
    /// Refuses a CPU that is not present, is offline, or is not allowed to this process.
    pub(crate) fn check_cpu(&self, flag: &str, cpu: u32) -> Result<()> {
        if self.allowed.contains(&cpu) {
            return Ok(());
        }
        let allowed = words::list(&self.allowed);
        if let Some(present) = self.machine.cpu.present.known() {
            if !present.contains(cpu) {
                return Err(usage(format!(
                    "{flag}: CPU {cpu} is not present (this machine has {present}; accepted here: \
                     {allowed})"
                )));
            }
        }
        if let Some(online) = self.machine.cpu.online.known() {
            if !online.contains(cpu) {
                return Err(usage(format!(
                    "{flag}: CPU {cpu} is offline (online: {online}; accepted here: {allowed})"
                )));
            }
        }
        Err(usage(format!(
            "{flag}: CPU {cpu} is not in this process's cpuset or affinity mask (accepted \
             here: {allowed}; see taskset -p $$ and the control group's cpuset)"
        )))
    }

    /// Refuses to measure `what`, which needs so many bytes, if they exceed 90 % of the free
    /// memory: the out-of-memory killer would end it, or other processes. `less` names what to ask
    /// for instead.
    pub(crate) fn check_memory(&self, what: &str, needed: u128, less: &str) -> Result<()> {
        let Some(free) = self.free_bytes() else { return Ok(()) };
        if needed <= u128::from(free) * 9 / 10 {
            return Ok(());
        }
        Err(usage(format!(
            "{what} needs {} MiB, {} MiB are free: ask for {less}",
            needed >> 20,
            free >> 20
        )))
    }

    /// Returns the bytes that are free in the machine and in this process's control group,
    /// whichever are fewer.
    fn free_bytes(&self) -> Option<u64> {
        let in_machine = self.machine.memory.available_bytes.known().copied();
        let Some(Some(limit)) = self.machine.cgroup.memory_max_bytes.known() else {
            return in_machine;
        };
        let used = limit.current.known().copied().unwrap_or(0);
        let in_group = limit.max.saturating_sub(used);
        Some(in_machine.unwrap_or(u64::MAX).min(in_group))
    }
}

/// CPUs whose interrupts are told beside those of the chosen one: the busiest.
const MAX_TOLD_CPUS: usize = 4;

/// Returns a note that says why members run on this CPU.
pub(crate) fn describe_chosen_cpu(cpu: u32, machine: &Machine) -> String {
    if machine.cpu.isolated.known().is_some_and(|list| list.contains(cpu)) {
        return format!("setting: members on CPU {cpu}, which is isolated");
    }
    let Some(interrupts) = machine.interrupts.known() else {
        return format!(
            "setting: members on CPU {cpu}; which CPU serves most interrupts could not be read: {}",
            machine.interrupts.why().unwrap_or("unknown")
        );
    };
    let mut by_cpu = interrupts.clone();
    by_cpu.sort_by_key(|count| (count.cpu != cpu, Reverse(count.devices)));
    by_cpu.truncate(MAX_TOLD_CPUS);
    let mut counts = Vec::new();
    for count in &by_cpu {
        counts.push(format!("CPU {}: {}", count.cpu, count.devices));
    }
    format!(
        "setting: members on CPU {cpu}, chosen by its interrupts from devices since the start of \
            the machine ({})",
        counts.join(", ")
    )
}

/// Returns a note on a real-time policy that was granted.
pub(crate) fn describe_granted(policy: Policy, priority: u32) -> String {
    format!("policy {policy} at priority {priority} was granted")
}

/// Returns the reason why a thread cannot have the policy fifo.
pub(crate) fn describe_no_fifo(errno: Errno) -> String {
    format!("fifo: {errno}; {}", policy::describe_needs(Policy::Fifo, errno))
}

/// Returns a note on a real-time policy that was refused.
pub(crate) fn describe_refused(policy: Policy, errno: Errno) -> String {
    format!(
        "policy {policy} was refused ({errno}; {}); SCHED_OTHER instead",
        policy::describe_needs(policy, errno)
    )
}
