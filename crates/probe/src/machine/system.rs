//! Limits, load, memory and its nodes, vulnerabilities, what runs below the kernel, interrupts.

use std::collections::BTreeMap;

use model::machine::{
    Bound, CpuInterrupts, Limits, Load, Memory, Mitigations, Numa, NumaNode, ResourceLimit,
    Virtualization,
};
use model::reading::Reading;

use super::Sources;
use super::cpu::{CPUS, hypervisor_flag};
use super::tree::{MachineTree, ReadError, Result, bytes_of, parse, reading};

const LIMITS: &str = "/proc/self/limits";

pub(super) fn limits(tree: &MachineTree) -> Limits {
    let text = reading(tree.text(LIMITS));
    let limit = |name: &str| text.as_ref().and_then(|text| reading(limit_named(text, name)));
    let number = |path: &str| -> Reading<u64> { reading(tree.number(path)) };
    Limits {
        processes: limit("Max processes"),
        open_files: limit("Max open files"),
        realtime_priority: limit("Max realtime priority"),
        realtime_timeout_us: limit("Max realtime timeout"),
        locked_memory_bytes: limit("Max locked memory"),
        pid_max: number("/proc/sys/kernel/pid_max"),
        threads_max: number("/proc/sys/kernel/threads-max"),
        file_max: number("/proc/sys/fs/file-max"),
        pipe_max_bytes: number("/proc/sys/fs/pipe-max-size"),
        pipe_user_pages_soft: number("/proc/sys/fs/pipe-user-pages-soft"),
        pipe_user_pages_hard: number("/proc/sys/fs/pipe-user-pages-hard"),
    }
}

fn limit_named(text: &str, name: &str) -> Result<ResourceLimit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| ReadError::no_item(LIMITS, name))?;
    let mut bounds = line.split_whitespace().map(bound);
    let mut next =
        || bounds.next().unwrap_or_else(|| Err(ReadError::invalid(LIMITS, line, "a limit")));
    Ok(ResourceLimit { soft: next()?, hard: next()? })
}

fn bound(item: &str) -> Result<Bound> {
    match item {
        "unlimited" => Ok(Bound::Unlimited),
        number => parse(LIMITS, number).map(Bound::At),
    }
}

const UPTIME: &str = "/proc/uptime";

pub(super) fn load(tree: &MachineTree) -> Load {
    let path = "/proc/loadavg";
    let text = reading(tree.text(path));
    let field = |index: usize| {
        text.as_ref().and_then(|text| {
            let field = text.split_whitespace().nth(index);
            reading(field.ok_or_else(|| ReadError::no_item(path, &format!("field {index}"))))
        })
    };
    let mean = |index| field(index).and_then(|item| reading(hundredths(path, item)));
    let tasks = field(3).and_then(|item| reading(pair(path, item)));
    Load {
        over_1_min: mean(0),
        over_5_min: mean(1),
        over_15_min: mean(2),
        runnable_tasks: tasks.as_ref().map(|(runnable, _)| *runnable),
        tasks: tasks.map(|(_, all)| all),
        uptime_s: reading(tree.word(UPTIME).and_then(|text| {
            let first = text.split(' ').next().unwrap_or_default();
            hundredths(UPTIME, first)
        })),
    }
}

/// `12.34`. `inf` and `nan`, which `f64` takes too, have no form in JSON.
fn hundredths(path: &str, item: &str) -> Result<f64> {
    let number = item.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| ReadError::invalid(path, item, "a number with two decimals"))
}

/// `3/123`.
fn pair(path: &str, item: &str) -> Result<(u64, u64)> {
    let parts = item.split_once('/');
    let (a, b) = parts.ok_or_else(|| ReadError::invalid(path, item, "two numbers with '/'"))?;
    Ok((parse(path, a)?, parse(path, b)?))
}

const NODES: &str = "/sys/devices/system/node";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn memory(tree: &MachineTree) -> Memory {
    let path = "/proc/meminfo";
    let text = reading(tree.text(path));
    let bytes = |key| text.as_ref().and_then(|text| reading(bytes_of(path, text, key)));
    Memory {
        total_bytes: bytes("MemTotal"),
        available_bytes: bytes("MemAvailable"),
        swap_total_bytes: bytes("SwapTotal"),
        swap_free_bytes: bytes("SwapFree"),
        huge_page_bytes: bytes("Hugepagesize"),
        thp_enabled: reading(tree.chosen(&format!("{HUGE_PAGES}/enabled"))),
        thp_defrag: reading(tree.chosen(&format!("{HUGE_PAGES}/defrag"))),
        ksm_run: reading(tree.number("/sys/kernel/mm/ksm/run")),
    }
}

pub(super) fn numa(tree: &MachineTree) -> Numa {
    let nodes = reading(tree.numbered(NODES, "node"));
    Numa { nodes: nodes.map(|nodes| nodes.into_iter().map(|n| node(tree, n)).collect()) }
}

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

pub(super) fn virtualization(tree: &MachineTree) -> Virtualization {
    let device_tree = |name: &str| reading(tree.word(&format!("{DEVICE_TREE}/{name}")));
    Virtualization {
        cpu_flag: reading(hypervisor_flag(tree)),
        hypervisor_type: reading(tree.word("/sys/hypervisor/type")),
        dmi_vendor: reading(tree.word("/sys/class/dmi/id/sys_vendor")),
        dmi_product: reading(tree.word("/sys/class/dmi/id/product_name")),
        device_tree_model: device_tree("model"),
        // A list of names with NULs between them, the most exact first.
        device_tree_hypervisor: device_tree("hypervisor/compatible")
            .map(|names| names.split('\0').next().unwrap_or_default().to_owned()),
    }
}

pub(super) fn mitigations(tree: &MachineTree) -> Result<Mitigations> {
    let folder = format!("{CPUS}/vulnerabilities");
    // A lone file of this name would make the map look like an unknown reading.
    let names = tree.folder(&folder)?.into_iter().filter(|name| name != "unknown");
    let state = |name: &String| reading(tree.word(&format!("{folder}/{name}")));
    Ok(names.map(|name| (name.clone(), state(&name))).collect())
}

// Which CPU serves which interrupts (proc_interrupts(5)).

pub(super) const INTERRUPTS: &str = "/proc/interrupts";

/// The header names the online CPUs, whose numbers may have gaps.
fn columns(text: &str) -> Result<Vec<u32>> {
    let cpu = |name: &str| match name.strip_prefix("CPU") {
        Some(cpu) => parse(INTERRUPTS, cpu),
        None => Err(ReadError::invalid(INTERRUPTS, name, "the name of a CPU")),
    };
    text.lines().next().unwrap_or_default().split_whitespace().map(cpu).collect()
}

/// Then there is a line for each source.
fn rows(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let rows = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    rows.map(|(source, fields)| (source.trim(), fields.split_whitespace().collect()))
}

/// Every source's count over some CPUs.
pub(super) fn of_cpus(text: &str, cpus: &[u32]) -> Result<Sources> {
    let all = columns(text)?;
    let column = |cpu: &u32| {
        let column = all.iter().position(|of| of == cpu);
        column.ok_or_else(|| ReadError::no_item(INTERRUPTS, &format!("CPU{cpu}")))
    };
    let columns = cpus.iter().map(column).collect::<Result<Vec<usize>>>()?;
    let mut counts = BTreeMap::new();
    // ERR and MIS have one sum for all CPUs.
    for (source, fields) in rows(text).filter(|(_, fields)| fields.len() >= all.len()) {
        let of_column = |column: &usize| fields.get(*column)?.parse::<u64>().ok();
        let counts_here: Option<Vec<u64>> = columns.iter().map(of_column).collect();
        if let Some(here) = counts_here {
            let count = here.into_iter().fold(0, u64::saturating_add);
            counts.insert((source.to_string(), called(source, &fields[all.len()..])), count);
        }
    }
    Ok(counts)
}

/// What a source is called: of a device the names of its handlers, which come after chip, number
/// and trigger; of the CPU's own the words of the kernel.
fn called(source: &str, words: &[&str]) -> String {
    let triggers = ["edge", "level", "fasteoi"];
    let is_trigger = |word: &&str| {
        let word = word.to_ascii_lowercase();
        triggers.iter().any(|trigger| word.ends_with(trigger))
    };
    let is_device = source.parse::<u32>().is_ok();
    let handlers = match words.iter().position(is_trigger) {
        Some(trigger) if is_device => &words[trigger + 1..],
        None if is_device => &words[words.len().saturating_sub(1)..],
        _ => words,
    };
    handlers.join(" ")
}

/// The counts of devices, by CPU.
pub(super) fn devices_by_cpu(text: &str) -> Result<Vec<CpuInterrupts>> {
    let cpus = columns(text)?.into_iter();
    let mut cpus: Vec<_> = cpus.map(|cpu| CpuInterrupts { cpu, devices: 0 }).collect();
    if cpus.is_empty() {
        return Err(ReadError::no_item(INTERRUPTS, "CPU0"));
    }
    // Letters: the CPU's own (LOC, RES, ...), or one sum for all (ERR, MIS).
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
            of_cpus(FIRECRACKER, &[cpu]).map(|all| {
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
            let counts = of_cpus(text, cpus).unwrap().into_iter();
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
        assert!(of_cpus(FIRECRACKER, &[0, 2]).is_err());
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
