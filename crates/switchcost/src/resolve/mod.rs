//! From what was typed to a plan that this machine can run. One file an experiment.

pub(crate) mod clock;
pub(crate) mod interference;
pub(crate) mod links;
pub(crate) mod ring;

use anyhow::Result;
use model::machine::Machine;
use model::plan::Stopping;

use crate::cli::Effort;
use crate::failure::usage;

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// The stopping rule as typed.
fn stopping(effort: &Effort) -> Stopping {
    Stopping {
        precision: effort.precision,
        budget_ns: u64::try_from(effort.budget.as_nanos()).unwrap_or(u64::MAX),
        rounds: effort.rounds,
        confidence: CONFIDENCE,
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
