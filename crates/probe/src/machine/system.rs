//! Limits, load, memory and its nodes, vulnerabilities, hypervisor, interrupts.

use std::collections::BTreeMap;

use rundata::machine::{
    CpuInterrupts, LimitValue, Mitigations, NumaNode, NumaNodes, ResourceLimit, SystemLimits,
    SystemLoad, SystemMemory, Virtualization,
};
use rundata::reading::Reading;

use super::InterruptCounts;
use super::cpu::{CPUS, hypervisor_flag};
use super::tree::{MachineTree, ReadError, Result, bytes_of, parse, reading};

const LIMITS: &str = "/proc/self/limits";

/// Reads the limits of this process and of the machine.
pub(super) fn limits(tree: &MachineTree) -> SystemLimits {
    let text = reading(tree.text(LIMITS));
    SystemLimits {
        processes: process_limit(&text, "Max processes"),
        open_files: process_limit(&text, "Max open files"),
        realtime_priority: process_limit(&text, "Max realtime priority"),
        realtime_timeout_us: process_limit(&text, "Max realtime timeout"),
        locked_memory_bytes: process_limit(&text, "Max locked memory"),
        pid_max: reading(tree.number("/proc/sys/kernel/pid_max")),
        threads_max: reading(tree.number("/proc/sys/kernel/threads-max")),
        file_max: reading(tree.number("/proc/sys/fs/file-max")),
        pipe_max_bytes: reading(tree.number("/proc/sys/fs/pipe-max-size")),
        pipe_user_pages_soft: reading(tree.number("/proc/sys/fs/pipe-user-pages-soft")),
        pipe_user_pages_hard: reading(tree.number("/proc/sys/fs/pipe-user-pages-hard")),
    }
}

/// Reads a limit of this process from the text of its file.
fn process_limit(text: &Reading<String>, name: &str) -> Reading<ResourceLimit> {
    text.as_ref().and_then(|text| reading(parse_limit(text, name)))
}

fn parse_limit(text: &str, name: &str) -> Result<ResourceLimit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| ReadError::no_item(LIMITS, name))?;
    let mut bounds = line.split_whitespace();
    Ok(ResourceLimit { soft: bound(bounds.next(), line)?, hard: bound(bounds.next(), line)? })
}

fn bound(item: Option<&str>, line: &str) -> Result<LimitValue> {
    match item {
        Some("unlimited") => Ok(LimitValue::Unlimited),
        Some(number) => parse(LIMITS, number).map(LimitValue::At),
        None => Err(ReadError::invalid(LIMITS, line, "a limit")),
    }
}

const UPTIME: &str = "/proc/uptime";
const LOAD: &str = "/proc/loadavg";

/// Reads the load averages, the number of tasks and the uptime.
pub(super) fn load(tree: &MachineTree) -> SystemLoad {
    let text = reading(tree.text(LOAD));
    let tasks = text.as_ref().and_then(|text| reading(load_tasks(text)));
    SystemLoad {
        over_1_min: text.as_ref().and_then(|text| reading(load_average(text, 0))),
        over_5_min: text.as_ref().and_then(|text| reading(load_average(text, 1))),
        over_15_min: text.as_ref().and_then(|text| reading(load_average(text, 2))),
        runnable_tasks: tasks.as_ref().map(|(runnable, _)| *runnable),
        tasks: tasks.map(|(_, all)| all),
        uptime_s: reading(tree.word(UPTIME).and_then(|text| {
            let first = text.split(' ').next().unwrap_or_default();
            hundredths(UPTIME, first)
        })),
    }
}

fn load_field(text: &str, index: usize) -> Result<&str> {
    let field = text.split_whitespace().nth(index);
    field.ok_or_else(|| ReadError::no_item(LOAD, &format!("field {index}")))
}

fn load_average(text: &str, index: usize) -> Result<f64> {
    hundredths(LOAD, load_field(text, index)?)
}

/// Parses the numbers of runnable and of all tasks.
fn load_tasks(text: &str) -> Result<(u64, u64)> {
    pair(LOAD, load_field(text, 3)?)
}

/// Parses a number like `12.34`. `inf` and `nan`, which `f64` accepts too, have no form in JSON.
fn hundredths(path: &str, item: &str) -> Result<f64> {
    let number = item.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| ReadError::invalid(path, item, "a number with two decimals"))
}

/// Parses two numbers like `3/123`.
fn pair(path: &str, item: &str) -> Result<(u64, u64)> {
    let parts = item.split_once('/');
    let (a, b) = parts.ok_or_else(|| ReadError::invalid(path, item, "two numbers with '/'"))?;
    Ok((parse(path, a)?, parse(path, b)?))
}

const MEMORY: &str = "/proc/meminfo";
const NODES: &str = "/sys/devices/system/node";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

/// Reads when memory gets huge pages without asking for them.
pub(super) fn huge_pages_enabled(tree: &MachineTree) -> Reading<String> {
    reading(tree.chosen(&format!("{HUGE_PAGES}/enabled")))
}

/// Reads the sizes of memory and the settings of huge pages.
pub(super) fn memory(tree: &MachineTree) -> SystemMemory {
    let text = reading(tree.text(MEMORY));
    SystemMemory {
        total_bytes: memory_bytes(&text, "MemTotal"),
        available_bytes: memory_bytes(&text, "MemAvailable"),
        swap_total_bytes: memory_bytes(&text, "SwapTotal"),
        swap_free_bytes: memory_bytes(&text, "SwapFree"),
        huge_page_bytes: memory_bytes(&text, "Hugepagesize"),
        thp_enabled: huge_pages_enabled(tree),
        thp_defrag: reading(tree.chosen(&format!("{HUGE_PAGES}/defrag"))),
        ksm_run: reading(tree.number("/sys/kernel/mm/ksm/run")),
    }
}

/// Reads a size from the text of /proc/meminfo.
fn memory_bytes(text: &Reading<String>, key: &str) -> Reading<u64> {
    text.as_ref().and_then(|text| reading(bytes_of(MEMORY, text, key)))
}

pub(super) fn numa(tree: &MachineTree) -> NumaNodes {
    let nodes = reading(tree.numbered(NODES, "node"));
    NumaNodes { nodes: nodes.map(|nodes| nodes.into_iter().map(|n| node(tree, n)).collect()) }
}

/// Reads a NUMA node.
fn node(tree: &MachineTree, node: u32) -> NumaNode {
    let folder = format!("{NODES}/node{node}");
    let memory = format!("{folder}/meminfo");
    let memory_bytes = tree
        .text(&memory)
        .and_then(|text| bytes_of(&memory, &text, &format!("Node {node} MemTotal")));
    NumaNode {
        node,
        cpus: reading(tree.cpu_list(&format!("{folder}/cpulist"))),
        memory_bytes: reading(memory_bytes),
        distances: reading(numbers(tree, &format!("{folder}/distance"))),
    }
}

fn numbers(tree: &MachineTree, path: &str) -> Result<Vec<u32>> {
    tree.word(path)?.split_whitespace().map(|item| parse(path, item)).collect()
}

const DEVICE_TREE: &str = "/proc/device-tree";

/// Reads the signs of a hypervisor.
pub(super) fn virtualization(tree: &MachineTree) -> Virtualization {
    Virtualization {
        cpu_flag: reading(hypervisor_flag(tree)),
        hypervisor_type: reading(tree.word("/sys/hypervisor/type")),
        dmi_vendor: reading(tree.word("/sys/class/dmi/id/sys_vendor")),
        dmi_product: reading(tree.word("/sys/class/dmi/id/product_name")),
        device_tree_model: reading(tree.word(&format!("{DEVICE_TREE}/model"))),
        // A list of names with NULs between them, the most exact first.
        device_tree_hypervisor: reading(tree.word(&format!("{DEVICE_TREE}/hypervisor/compatible")))
            .map(|names| names.split('\0').next().unwrap_or_default().to_owned()),
    }
}

/// Reads the state of each known CPU vulnerability.
pub(super) fn mitigations(tree: &MachineTree) -> Result<Mitigations> {
    let folder = format!("{CPUS}/vulnerabilities");
    let mut mitigations = Mitigations::new();
    for name in tree.folder(&folder)? {
        // A lone file of this name would make the map look like an unknown reading.
        if name != "unknown" {
            let state = reading(tree.word(&format!("{folder}/{name}")));
            mitigations.insert(name, state);
        }
    }
    Ok(mitigations)
}

// Interrupts (proc_interrupts(5)).

pub(super) const INTERRUPTS: &str = "/proc/interrupts";

/// Reads the online CPUs, whose numbers may have gaps, from the header.
fn columns(text: &str) -> Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for name in text.lines().next().unwrap_or_default().split_whitespace() {
        let Some(number) = name.strip_prefix("CPU") else {
            return Err(ReadError::invalid(INTERRUPTS, name, "the name of a CPU"));
        };
        cpus.push(parse(INTERRUPTS, number)?);
    }
    Ok(cpus)
}

/// Reads the lines after the header: each has a source and its fields.
fn rows(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let rows = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    rows.map(|(source, fields)| (source.trim(), fields.split_whitespace().collect()))
}

/// Sums the counts of each source over some CPUs.
pub(super) fn interrupts_of_cpus(text: &str, cpus: &[u32]) -> Result<InterruptCounts> {
    let online = columns(text)?;
    let mut wanted_columns = Vec::new();
    for cpu in cpus {
        let column = online.iter().position(|online_cpu| online_cpu == cpu);
        let column = column.ok_or_else(|| ReadError::no_item(INTERRUPTS, &format!("CPU{cpu}")))?;
        wanted_columns.push(column);
    }
    let mut counts = BTreeMap::new();
    for (source, fields) in rows(text) {
        // ERR and MIS have one sum for all CPUs.
        if fields.len() < online.len() {
            continue;
        }
        if let Some(count) = sum_of(&fields, &wanted_columns) {
            let name = source_name(source, &fields[online.len()..]);
            counts.insert((source.to_string(), name), count);
        }
    }
    Ok(counts)
}

/// Sums the numbers in some columns; `None` if one is no number.
fn sum_of(fields: &[&str], columns: &[usize]) -> Option<u64> {
    let mut sum: u64 = 0;
    for column in columns {
        sum = sum.saturating_add(fields.get(*column)?.parse().ok()?);
    }
    Some(sum)
}

/// Returns the name of a source. Of a device these are the names of its handlers, which follow
/// chip, number and trigger; of the CPU itself the kernel's words.
fn source_name(source: &str, words: &[&str]) -> String {
    let is_device = source.parse::<u32>().is_ok();
    let handlers = match words.iter().position(|word| is_trigger(word)) {
        Some(trigger) if is_device => &words[trigger + 1..],
        None if is_device => &words[words.len().saturating_sub(1)..],
        _ => words,
    };
    handlers.join(" ")
}

fn is_trigger(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["edge", "level", "fasteoi"].iter().any(|trigger| word.ends_with(trigger))
}

/// Sums the counts of devices for each CPU.
pub(super) fn devices_by_cpu(text: &str) -> Result<Vec<CpuInterrupts>> {
    let cpus = columns(text)?.into_iter();
    let mut cpus: Vec<_> = cpus.map(|cpu| CpuInterrupts { cpu, devices: 0 }).collect();
    if cpus.is_empty() {
        return Err(ReadError::no_item(INTERRUPTS, "CPU0"));
    }
    // Names of letters are the CPU's own (LOC, RES, ...), or have one sum for all CPUs (ERR, MIS).
    for (source, fields) in rows(text).filter(|(source, _)| source.parse::<u32>().is_ok()) {
        for (column, cpu) in cpus.iter_mut().enumerate() {
            let field = fields.get(column).ok_or_else(|| ReadError::no_item(INTERRUPTS, source))?;
            cpu.devices = cpu.devices.saturating_add(parse(INTERRUPTS, field)?);
        }
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured on the 2-CPU test machine, shortened.
    const FIRECRACKER: &str = "\
           CPU0       CPU1       
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 32:       1587          0 PCI-MSIX-0000:00:01.0   4-edge      virtio0-reporting_vq
 36:          0     777745 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 41:       4887          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx
NMI:          0          0   Non-maskable interrupts
LOC:   13736366    3601589   Local timer interrupts
ERR:          0
";

    fn devices(text: &str) -> Vec<(u32, u64)> {
        devices_by_cpu(text).unwrap().iter().map(|cpu| (cpu.cpu, cpu.devices)).collect()
    }

    #[test]
    fn devices_are_counted_by_cpu_and_timers_are_not() {
        assert_eq!(devices(FIRECRACKER), [(0, 6475), (1, 777_745)]);
    }

    #[test]
    fn one_cpu_is_told_by_name() {
        let of_cpu = |cpu| {
            interrupts_of_cpus(FIRECRACKER, &[cpu]).map(|all| {
                all.into_iter()
                    .map(|((source, _), count)| (source, count))
                    .collect::<BTreeMap<_, _>>()
            })
        };
        let counts = of_cpu(1).unwrap();
        assert_eq!((counts.get("LOC"), counts.get("36")), (Some(&3_601_589), Some(&777_745)));
        assert_eq!(counts.get("ERR"), None, "a sum over all CPUs is not this one's");
        assert_eq!(of_cpu(0).unwrap().get("ERR"), None);
        assert!(of_cpu(2).unwrap_err().to_string().contains("CPU2"));
    }

    #[test]
    fn sources_have_names_and_are_summed_over_cpus() {
        let named = |text: &str, cpus: &[u32]| {
            let counts = interrupts_of_cpus(text, cpus).unwrap().into_iter();
            let words = counts.map(|((source, name), count)| format!("{source} {name}: {count}"));
            words.collect::<Vec<_>>()
        };
        let both = [
            "24 ACPI:Ged: 1",
            "32 virtio0-reporting_vq: 1587",
            "36 virtio1-req.0: 777745",
            "41 virtio3-rx: 4887",
            "LOC Local timer interrupts: 17337955",
            "NMI Non-maskable interrupts: 0",
        ];
        assert_eq!(named(FIRECRACKER, &[0, 1]), both);
        assert_eq!(named(FIRECRACKER, &[1])[4], "LOC Local timer interrupts: 3601589");
        let shared = "  CPU0\n 16: 7 IR-IO-APIC 16-fasteoi i801_smbus, uhci_hcd:usb1\n 9: 1 odd\n";
        assert_eq!(named(shared, &[0]), ["16 i801_smbus, uhci_hcd:usb1: 7", "9 odd: 1"]);
        let arm = "  CPU0 CPU4\n 13: 1 20 GICv3 30 Level arch_timer\n 14: 3 4\n";
        assert_eq!(named(arm, &[4]), ["13 arch_timer: 20", "14 : 4"]);
        assert!(interrupts_of_cpus(FIRECRACKER, &[0, 2]).is_err());
    }

    #[test]
    fn cpus_that_are_off_leave_gaps() {
        let arm = "           CPU0       CPU4       CPU5\n 13:  1  20 300  GICv3  30 Level  \
             arch_timer\nIPI0: 9 9 9  Rescheduling interrupts\n";
        assert_eq!(devices(arm), [(0, 1), (4, 20), (5, 300)]);
    }

    #[test]
    fn what_is_not_understood_is_told_by_path_and_item() {
        for (text, item) in [
            ("  CPU0 CPU1\n 1: 5\n", "'1'"),
            ("  CPU0\n 1: x\n", "\"x\""),
            ("  CPU0 core1\n", "core1"),
            ("  CPU0\n 1: 99999999999999999999\n", "9999"),
        ] {
            let error = devices_by_cpu(text).unwrap_err().to_string();
            assert!(error.contains(INTERRUPTS) && error.contains(item), "{error}");
        }
        assert!(devices_by_cpu("").is_err());
        assert_eq!(devices("  CPU0\n 1: 18446744073709551615\n 2: 1\n"), [(0, u64::MAX)]);
    }
}
