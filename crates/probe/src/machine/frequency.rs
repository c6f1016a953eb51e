//! Frequency and idle states.

use model::machine::{CpuList, Frequency, FrequencyPolicy};

use super::cpu::{CPUS, online};
use super::tree::{ReadError, Result, Tree, reading};

pub(super) fn read(tree: &Tree) -> Frequency {
    Frequency {
        policies: reading(policies(tree)),
        boost: reading(boost(tree)),
        idle_driver: reading(tree.word(&format!("{CPUS}/cpuidle/current_driver"))),
        idle_governor: reading(tree.word(&format!("{CPUS}/cpuidle/current_governor"))).or_else(
            // The name on kernels before 5.8, unless started with cpuidle_sysfs_switch.
            || reading(tree.word(&format!("{CPUS}/cpuidle/current_governor_ro"))),
        ),
    }
}

fn policies(tree: &Tree) -> Result<Vec<FrequencyPolicy>> {
    let mut kinds: Vec<(FrequencyPolicy, Vec<u32>)> = Vec::new();
    let mut first_error = None;
    for cpu in online(tree)? {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        if let Err(error) = tree.folder(&folder) {
            first_error = first_error.or(Some(error));
            continue;
        }
        let policy = policy(tree, &folder);
        match kinds.iter_mut().find(|(seen, _)| *seen == policy) {
            Some((_, cpus)) => cpus.push(cpu),
            None => kinds.push((policy, vec![cpu])),
        }
    }
    match first_error {
        Some(error) if kinds.is_empty() => Err(error),
        _ => Ok(kinds.into_iter().map(|(policy, cpus)| with_cpus(policy, cpus)).collect()),
    }
}

fn policy(tree: &Tree, folder: &str) -> FrequencyPolicy {
    let file = |name: &str| format!("{folder}/{name}");
    FrequencyPolicy {
        cpus: CpuList::default(),
        driver: reading(tree.word(&file("scaling_driver"))),
        governor: reading(tree.word(&file("scaling_governor"))),
        min_khz: reading(tree.number(&file("scaling_min_freq"))),
        max_khz: reading(tree.number(&file("scaling_max_freq"))),
    }
}

fn with_cpus(policy: FrequencyPolicy, cpus: Vec<u32>) -> FrequencyPolicy {
    FrequencyPolicy { cpus: cpus.into_iter().collect(), ..policy }
}

/// `cpufreq/boost`, or the reverse in intel_pstate, which has a file of its own.
fn boost(tree: &Tree) -> Result<bool> {
    let no_turbo = flag(tree, &format!("{CPUS}/intel_pstate/no_turbo"));
    match (no_turbo, flag(tree, &format!("{CPUS}/cpufreq/boost"))) {
        (Ok(no_turbo), _) => Ok(!no_turbo),
        (Err(_), Ok(boost)) => Ok(boost),
        (Err(a), Err(b)) => Err(ReadError::Several { all: format!("{a}; {b}") }),
    }
}

fn flag(tree: &Tree, path: &str) -> Result<bool> {
    match tree.word(path)?.as_str() {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(ReadError::invalid(path, other, "0 or 1")),
    }
}
