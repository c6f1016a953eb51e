//! Processors: models, sets of CPUs, topology, caches, frequency and idle states.

use rundata::machine::{
    CacheKind, CpuCache, CpuInventory, CpuList, CpuModel, FrequencyPolicy, FrequencyState,
    LogicalCpu,
};
use rundata::reading::Reading;

use super::tree::{MachineTree, ReadError, Result, cpu_list, reading, value_of};

pub(super) const CPUS: &str = "/sys/devices/system/cpu";

/// Reads the facts of all CPUs.
pub(super) fn read(tree: &MachineTree) -> CpuInventory {
    CpuInventory {
        models: reading(models(tree)),
        online: online_list(tree),
        present: cpu_set(tree, "present"),
        possible: cpu_set(tree, "possible"),
        isolated: cpu_set(tree, "isolated"),
        nohz_full: cpu_set(tree, "nohz_full"),
        allowed: reading(allowed(tree)),
        smt_control: smt_control(tree),
        topology: reading(online(tree))
            .map(|cpus| cpus.into_iter().map(|cpu| logical_cpu(tree, cpu)).collect()),
        caches: reading(caches(tree)),
        ..CpuInventory::default()
    }
}

/// Reads a set of CPUs by its file.
/// Reads the CPUs that run.
pub(super) fn online_list(tree: &MachineTree) -> Reading<CpuList> {
    cpu_set(tree, "online")
}

/// Reads whether hardware threads share cores: `on`, `off`, `notsupported`, ...
pub(super) fn smt_control(tree: &MachineTree) -> Reading<String> {
    reading(tree.word(&format!("{CPUS}/smt/control")))
}

fn cpu_set(tree: &MachineTree, name: &str) -> Reading<CpuList> {
    reading(tree.cpu_list(&format!("{CPUS}/{name}")))
}

/// Returns the CPUs with a folder, without those known to be offline: their folders lack most
/// files.
pub(super) fn online(tree: &MachineTree) -> Result<Vec<u32>> {
    let mut cpus = tree.numbered(CPUS, "cpu")?;
    if let Ok(online) = tree.cpu_list(&format!("{CPUS}/online")) {
        cpus.retain(|cpu| online.contains(*cpu));
    }
    Ok(cpus)
}

/// Reads a value of each online CPU, leaving out those without it. Returns the first error if no
/// CPU has it.
fn read_each<T>(tree: &MachineTree, read: impl Fn(u32) -> Result<T>) -> Result<Vec<(u32, T)>> {
    let (mut found, mut missing) = (Vec::new(), None);
    for cpu in online(tree)? {
        match read(cpu) {
            Ok(value) => found.push((cpu, value)),
            Err(error) => missing = missing.or(Some(error)),
        }
    }
    match missing {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn allowed(tree: &MachineTree) -> Result<CpuList> {
    let path = "/proc/self/status";
    cpu_list(path, value_of(path, &tree.text(path)?, "Cpus_allowed_list")?)
}

/// Reads the place of a CPU in the topology.
fn logical_cpu(tree: &MachineTree, cpu: u32) -> LogicalCpu {
    let folder = format!("{CPUS}/cpu{cpu}");
    let topology = format!("{folder}/topology");
    // core_cpus_list is the newer name (5.2), and the one that will stay.
    let siblings = reading(tree.cpu_list(&format!("{topology}/core_cpus_list")))
        .or_else(|| reading(tree.cpu_list(&format!("{topology}/thread_siblings_list"))));
    LogicalCpu {
        cpu,
        package: reading(tree.number(&format!("{topology}/physical_package_id"))),
        die: reading(tree.number(&format!("{topology}/die_id"))),
        core: reading(tree.number(&format!("{topology}/core_id"))),
        smt_siblings: siblings,
        capacity: reading(tree.number(&format!("{folder}/cpu_capacity"))),
    }
}

/// Reads all caches, each once, although several CPUs may share it.
fn caches(tree: &MachineTree) -> Result<Vec<CpuCache>> {
    let mut distinct: Vec<CpuCache> = Vec::new();
    for (_, caches) in read_each(tree, |cpu| caches_of(tree, cpu))? {
        for cache in caches {
            if !distinct.iter().any(|seen| is_same(seen, &cache)) {
                distinct.push(cache);
            }
        }
    }
    Ok(distinct)
}

/// Reads the caches of one CPU.
fn caches_of(tree: &MachineTree, cpu: u32) -> Result<Vec<CpuCache>> {
    let folder = format!("{CPUS}/cpu{cpu}/cache");
    let mut caches = Vec::new();
    for index in tree.numbered(&folder, "index")? {
        caches.push(cache(tree, cpu, &format!("{folder}/index{index}")));
    }
    Ok(caches)
}

/// Reads a cache of a CPU from its folder.
fn cache(tree: &MachineTree, cpu: u32, folder: &str) -> CpuCache {
    CpuCache {
        of_cpu: cpu,
        level: reading(tree.number(&format!("{folder}/level"))),
        kind: reading(kind(tree, &format!("{folder}/type"))),
        size_bytes: reading(size_bytes(tree, &format!("{folder}/size"))),
        line_bytes: reading(tree.number(&format!("{folder}/coherency_line_size"))),
        ways: reading(tree.number(&format!("{folder}/ways_of_associativity"))),
        shared_cpus: reading(tree.cpu_list(&format!("{folder}/shared_cpu_list"))),
    }
}

/// Returns whether a cache seen from another CPU is one seen before.
fn is_same(seen: &CpuCache, new: &CpuCache) -> bool {
    seen.of_cpu != new.of_cpu
        && seen.level.known().is_some()
        && (&seen.shared_cpus, &seen.level, &seen.kind) == (&new.shared_cpus, &new.level, &new.kind)
        && new.shared_cpus.known().is_some_and(|cpus| cpus.contains(seen.of_cpu))
}

fn kind(tree: &MachineTree, path: &str) -> Result<CacheKind> {
    match tree.word(path)?.as_str() {
        "Data" => Ok(CacheKind::Data),
        "Instruction" => Ok(CacheKind::Instruction),
        "Unified" => Ok(CacheKind::Unified),
        other => Err(ReadError::invalid(path, other, "a kind of cache")),
    }
}

/// Reads a size like `32K`: the kernel prints no other unit (drivers/base/cacheinfo.c, size_show).
fn size_bytes(tree: &MachineTree, path: &str) -> Result<u64> {
    let text = tree.word(path)?;
    let kib = text.strip_suffix('K').and_then(|number| number.parse::<u64>().ok());
    kib.and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| ReadError::invalid(path, &text, "a size in range"))
}

/// A file whose form differs between architectures.
pub(super) const CPUINFO: &str = "/proc/cpuinfo";

/// Reads the models of CPU, ordered by their lowest CPU.
pub(super) fn models(tree: &MachineTree) -> Result<Vec<CpuModel>> {
    let text = tree.text(CPUINFO)?;
    let mut by_cpu = Vec::new();
    for block in text.split("\n\n") {
        let Ok(number) = value_of(CPUINFO, block, "processor") else { continue };
        if let Ok(cpu) = number.parse() {
            by_cpu.push((cpu, model_of(block)));
        }
    }
    let kinds = grouped(by_cpu);
    if kinds.is_empty() {
        return Err(ReadError::no_item(CPUINFO, "processor : N"));
    }
    Ok(kinds.into_iter().map(|(kind, cpus)| CpuModel { cpus, ..kind }).collect())
}

/// Returns each value once with the CPUs that have it, ordered by their lowest CPU.
fn grouped<T: PartialEq>(by_cpu: impl IntoIterator<Item = (u32, T)>) -> Vec<(T, CpuList)> {
    let mut groups: Vec<(T, Vec<u32>)> = Vec::new();
    for (cpu, value) in by_cpu {
        match groups.iter_mut().find(|(seen, _)| *seen == value) {
            Some((_, cpus)) => cpus.push(cpu),
            None => groups.push((value, vec![cpu])),
        }
    }
    groups.into_iter().map(|(value, cpus)| (value, cpus.into_iter().collect())).collect()
}

/// Reads whether x86 CPUID announces a hypervisor.
pub(super) fn hypervisor_flag(tree: &MachineTree) -> Result<bool> {
    let text = tree.text(CPUINFO)?;
    let flags = value_of(CPUINFO, &text, "flags")?;
    Ok(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Reads a value of a block of /proc/cpuinfo.
fn cpuinfo_value(block: &str, key: &str) -> Reading<String> {
    Reading::from(value_of(CPUINFO, block, key).map(str::to_owned))
}

/// Reads the model of a block of /proc/cpuinfo, which is one CPU.
fn model_of(block: &str) -> CpuModel {
    let model = CpuModel {
        cpus: CpuList::default(),
        vendor: cpuinfo_value(block, "vendor_id"),
        name: cpuinfo_value(block, "model name"),
        family: cpuinfo_value(block, "cpu family"),
        model: cpuinfo_value(block, "model"),
        stepping: cpuinfo_value(block, "stepping"),
        microcode: cpuinfo_value(block, "microcode"),
    };
    match cpuinfo_value(block, "CPU implementer") {
        Reading::Known(implementer) => arm_model(block, &implementer, model),
        Reading::Unknown { .. } => model,
    }
}

/// Completes the model of an Arm CPU, whose block has numbers instead of names.
fn arm_model(block: &str, implementer: &str, model: CpuModel) -> CpuModel {
    let part = cpuinfo_value(block, "CPU part");
    let name = part.as_ref().map(|part| match arm_name(&format!("{implementer} {part}")) {
        Some(name) => name.to_owned(),
        None => format!("implementer {implementer} part {part}"),
    });
    let stepping = cpuinfo_value(block, "CPU variant").and_then(|variant| {
        let variant = variant.trim_start_matches("0x").to_owned();
        cpuinfo_value(block, "CPU revision").map(|revision| format!("r{variant}p{revision}"))
    });
    CpuModel {
        vendor: Reading::Known(arm_name(implementer).unwrap_or(implementer).to_owned()),
        name: model.name.known().cloned().map_or(name, Reading::Known),
        family: cpuinfo_value(block, "CPU architecture"),
        model: part,
        stepping,
        ..model
    }
}

/// Returns the name of an implementer of Arm CPUs, or of a part (implementer and part with a blank
/// between).
fn arm_name(code: &str) -> Option<&'static str> {
    // arch/arm64/include/asm/cputype.h, ARM_CPU_IMP_* and ARM_CPU_PART_*.
    let mut names = include_str!("arm_cpus.csv").lines().filter_map(|line| line.split_once(','));
    names.find(|(known, _)| *known == code).map(|(_, name)| name)
}

/// Reads the drivers and settings of frequency and idle states.
pub(super) fn read_frequency(tree: &MachineTree) -> FrequencyState {
    FrequencyState {
        policies: reading(policies(tree)),
        // intel_pstate has another file, with the opposite meaning.
        boost: reading(flag(tree, &format!("{CPUS}/intel_pstate/no_turbo")))
            .map(|no_turbo| !no_turbo)
            .or_else(|| reading(flag(tree, &format!("{CPUS}/cpufreq/boost")))),
        idle_driver: reading(tree.word(&format!("{CPUS}/cpuidle/current_driver"))),
        idle_governor: reading(tree.word(&format!("{CPUS}/cpuidle/current_governor"))).or_else(
            // The name on kernels before 5.8, unless started with cpuidle_sysfs_switch.
            || reading(tree.word(&format!("{CPUS}/cpuidle/current_governor_ro"))),
        ),
    }
}

/// Reads the frequency policies, each once with its CPUs.
fn policies(tree: &MachineTree) -> Result<Vec<FrequencyPolicy>> {
    let by_cpu = read_each(tree, |cpu| {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        tree.folder(&folder)?;
        Ok(FrequencyPolicy {
            cpus: CpuList::default(),
            driver: reading(tree.word(&format!("{folder}/scaling_driver"))),
            governor: reading(tree.word(&format!("{folder}/scaling_governor"))),
            min_khz: reading(tree.number(&format!("{folder}/scaling_min_freq"))),
            max_khz: reading(tree.number(&format!("{folder}/scaling_max_freq"))),
        })
    })?;
    Ok(grouped(by_cpu)
        .into_iter()
        .map(|(policy, cpus)| FrequencyPolicy { cpus, ..policy })
        .collect())
}

fn flag(tree: &MachineTree, path: &str) -> Result<bool> {
    match tree.word(path)?.as_str() {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(ReadError::invalid(path, other, "0 or 1")),
    }
}
