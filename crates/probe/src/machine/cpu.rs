//! The processors: kinds, sets, topology, caches.

use model::machine::{Cache, CacheKind, Cpu, CpuList, LogicalCpu};

use super::cpuinfo;
use super::tree::{ReadError, Result, Tree, parse, reading, value_of};

pub(super) const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn read(tree: &Tree) -> Cpu {
    let set = |name: &str| reading(tree.cpu_list(&format!("{CPUS}/{name}")));
    let online = reading(online(tree));
    Cpu {
        models: reading(cpuinfo::models(tree)),
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
