//! The processors: kinds, sets, topology, caches, frequency and idle states.

use model::machine::{
    Cache, CacheKind, Cpu, CpuList, CpuModel, Frequency, FrequencyPolicy, LogicalCpu,
};
use model::reading::Reading;

use super::tree::{ReadError, Result, Tree, parse, reading, value_of};

pub(super) const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn read(tree: &Tree) -> Cpu {
    let set = |name: &str| reading(tree.cpu_list(&format!("{CPUS}/{name}")));
    let online = reading(online(tree));
    Cpu {
        models: reading(models(tree)),
        online: set("online"),
        present: set("present"),
        possible: set("possible"),
        isolated: set("isolated"),
        nohz_full: set("nohz_full"),
        allowed: reading(allowed(tree)),
        smt_control: reading(tree.word(&format!("{CPUS}/smt/control"))),
        topology: online.as_ref().map(|cpus| topology(tree, cpus)),
        caches: online.and_then(|cpus| reading(caches(tree, &cpus))),
    }
}

/// CPUs with a folder, but for those known to be offline: their folders lack most files.
pub(super) fn online(tree: &Tree) -> Result<Vec<u32>> {
    let mut cpus = tree.numbered(CPUS, "cpu")?;
    if let Ok(online) = tree.cpu_list(&format!("{CPUS}/online")) {
        cpus.retain(|cpu| online.contains(*cpu));
    }
    Ok(cpus)
}

fn allowed(tree: &Tree) -> Result<CpuList> {
    let path = "/proc/self/status";
    let text = tree.text(path)?;
    let list = value_of(path, &text, "Cpus_allowed_list")?;
    list.parse().map_err(|error| ReadError::invalid(path, list, format!("a CPU list: {error}")))
}

fn topology(tree: &Tree, cpus: &[u32]) -> Vec<LogicalCpu> {
    cpus.iter().map(|&cpu| logical_cpu(tree, cpu)).collect()
}

fn logical_cpu(tree: &Tree, cpu: u32) -> LogicalCpu {
    let folder = format!("{CPUS}/cpu{cpu}");
    let file = |name: &str| format!("{folder}/topology/{name}");
    // core_cpus_list is the newer name (5.2), and the one that stays.
    let siblings = reading(tree.cpu_list(&file("core_cpus_list")))
        .or_else(|| reading(tree.cpu_list(&file("thread_siblings_list"))));
    LogicalCpu {
        cpu,
        package: reading(tree.number(&file("physical_package_id"))),
        die: reading(tree.number(&file("die_id"))),
        core: reading(tree.number(&file("core_id"))),
        smt_siblings: siblings,
        capacity: reading(tree.number(&format!("{folder}/cpu_capacity"))),
    }
}

fn caches(tree: &Tree, cpus: &[u32]) -> Result<Vec<Cache>> {
    let mut found: Vec<Cache> = Vec::new();
    let mut first_error = None;
    for &cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/cache");
        match tree.numbered(&folder, "index") {
            Ok(indexes) => {
                for index in indexes {
                    let new = cache(tree, cpu, &format!("{folder}/index{index}"));
                    if !found.iter().any(|cache| is_same(cache, &new)) {
                        found.push(new);
                    }
                }
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn cache(tree: &Tree, cpu: u32, folder: &str) -> Cache {
    let file = |name: &str| format!("{folder}/{name}");
    Cache {
        of_cpu: cpu,
        level: reading(tree.number(&file("level"))),
        kind: reading(kind(tree, &file("type"))),
        size_bytes: reading(size_bytes(tree, &file("size"))),
        line_bytes: reading(tree.number(&file("coherency_line_size"))),
        ways: reading(tree.number(&file("ways_of_associativity"))),
        shared_cpus: reading(tree.cpu_list(&file("shared_cpu_list"))),
    }
}

/// Whether a cache seen from another CPU is one seen before.
fn is_same(seen: &Cache, new: &Cache) -> bool {
    let is_known =
        |cache: &Cache| cache.shared_cpus.known().is_some() && cache.level.known().is_some();
    is_known(seen)
        && seen.of_cpu != new.of_cpu
        && seen.shared_cpus == new.shared_cpus
        && seen.level == new.level
        && seen.kind == new.kind
        && new.shared_cpus.known().is_some_and(|cpus| cpus.contains(seen.of_cpu))
}

fn kind(tree: &Tree, path: &str) -> Result<CacheKind> {
    match tree.word(path)?.as_str() {
        "Data" => Ok(CacheKind::Data),
        "Instruction" => Ok(CacheKind::Instruction),
        "Unified" => Ok(CacheKind::Unified),
        other => Err(ReadError::invalid(path, other, "a kind of cache")),
    }
}

/// `32K`; the kernel prints no other unit, but its documents allow for them.
fn size_bytes(tree: &Tree, path: &str) -> Result<u64> {
    let text = tree.word(path)?;
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) if text.ends_with('K') => (number, 1 << 10),
        Some(number) if text.ends_with('M') => (number, 1 << 20),
        Some(number) => (number, 1 << 30),
        None => (text.as_str(), 1),
    };
    let size = parse::<u64>(path, number)?.checked_mul(unit);
    size.ok_or_else(|| ReadError::invalid(path, &text, "a size in range"))
}

/// Its form differs between architectures.
pub(super) const CPUINFO: &str = "/proc/cpuinfo";

/// The kinds of CPU, by lowest CPU.
pub(super) fn models(tree: &Tree) -> Result<Vec<CpuModel>> {
    let text = tree.text(CPUINFO)?;
    let blocks = text.split("\n\n").filter_map(|block| {
        let cpu = value_of(CPUINFO, block, "processor").ok()?.parse().ok()?;
        Some((cpu, kind_of(block)))
    });
    let kinds = grouped(blocks);
    if kinds.is_empty() {
        return Err(ReadError::no_item(CPUINFO, "processor : N"));
    }
    Ok(kinds.into_iter().map(|(kind, cpus)| CpuModel { cpus, ..kind }).collect())
}

/// Each value once, with the CPUs that have it, by lowest CPU.
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

/// Whether x86 CPUID announces a hypervisor.
pub(super) fn hypervisor_flag(tree: &Tree) -> Result<bool> {
    let text = tree.text(CPUINFO)?;
    let flags = value_of(CPUINFO, &text, "flags")?;
    Ok(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn kind_of(block: &str) -> CpuModel {
    let value = |key: &str| Reading::from(value_of(CPUINFO, block, key).map(str::to_owned));
    let kind = CpuModel {
        cpus: CpuList::default(),
        vendor: value("vendor_id"),
        name: value("model name"),
        family: value("cpu family"),
        model: value("model"),
        stepping: value("stepping"),
        microcode: value("microcode"),
    };
    match value("CPU implementer") {
        Reading::Known(implementer) => arm_kind(kind, &implementer, value),
        Reading::Unknown { .. } => kind,
    }
}

fn arm_kind(
    kind: CpuModel,
    implementer: &str,
    value: impl Fn(&str) -> Reading<String>,
) -> CpuModel {
    let part = value("CPU part");
    let name = part.as_ref().map(|part| match arm_part(implementer, part) {
        Some(name) => name.to_owned(),
        None => format!("implementer {implementer} part {part}"),
    });
    let stepping = value("CPU variant").and_then(|variant| {
        let variant = variant.trim_start_matches("0x").to_owned();
        value("CPU revision").map(|revision| format!("r{variant}p{revision}"))
    });
    CpuModel {
        vendor: Reading::Known(arm_implementer(implementer).unwrap_or(implementer).to_owned()),
        name: kind.name.known().cloned().map_or(name, Reading::Known),
        family: value("CPU architecture"),
        model: part,
        stepping,
        ..kind
    }
}

/// arch/arm64/include/asm/cputype.h, ARM_CPU_IMP_*.
fn arm_implementer(code: &str) -> Option<&'static str> {
    Some(match code {
        "0x41" => "ARM",
        "0x42" => "Broadcom",
        "0x43" => "Cavium",
        "0x46" => "Fujitsu",
        "0x48" => "HiSilicon",
        "0x4e" => "NVIDIA",
        "0x50" => "Applied Micro",
        "0x51" => "Qualcomm",
        "0x61" => "Apple",
        "0x6d" => "Microsoft",
        "0xc0" => "Ampere",
        _ => return None,
    })
}

/// arch/arm64/include/asm/cputype.h, ARM_CPU_PART_*.
fn arm_part(implementer: &str, part: &str) -> Option<&'static str> {
    if implementer != "0x41" {
        return None;
    }
    Some(match part {
        "0xd03" => "Cortex-A53",
        "0xd04" => "Cortex-A35",
        "0xd05" => "Cortex-A55",
        "0xd07" => "Cortex-A57",
        "0xd08" => "Cortex-A72",
        "0xd09" => "Cortex-A73",
        "0xd0a" => "Cortex-A75",
        "0xd0b" => "Cortex-A76",
        "0xd0c" => "Neoverse-N1",
        "0xd0d" => "Cortex-A77",
        "0xd40" => "Neoverse-V1",
        "0xd41" => "Cortex-A78",
        "0xd44" => "Cortex-X1",
        "0xd46" => "Cortex-A510",
        "0xd47" => "Cortex-A710",
        "0xd48" => "Cortex-X2",
        "0xd49" => "Neoverse-N2",
        "0xd4d" => "Cortex-A715",
        "0xd4e" => "Cortex-X3",
        "0xd4f" => "Neoverse-V2",
        _ => return None,
    })
}

pub(super) fn read_frequency(tree: &Tree) -> Frequency {
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
    let (mut policies, mut first_error) = (Vec::new(), None);
    for cpu in online(tree)? {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        match tree.folder(&folder) {
            Ok(_) => policies.push((cpu, policy(tree, &folder))),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) if policies.is_empty() => Err(error),
        _ => {
            let with_cpus = |(policy, cpus)| FrequencyPolicy { cpus, ..policy };
            Ok(grouped(policies).into_iter().map(with_cpus).collect())
        }
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
