//! Which CPU serves the devices' interrupts (proc_interrupts(5)).

use std::collections::BTreeMap;

use model::machine::CpuInterrupts;

use super::Sources;
use super::tree::{ReadError, Result, Tree, parse};

const PATH: &str = "/proc/interrupts";

pub(super) fn read(tree: &Tree) -> Result<Vec<CpuInterrupts>> {
    of(&tree.word(PATH)?)
}

/// Every source's count on one CPU, by its name in the first column.
pub(super) fn by_name(tree: &Tree, cpu: u32) -> Result<BTreeMap<String, u64>> {
    of_cpu(&tree.word(PATH)?, cpu)
}

/// Every source's count over some CPUs.
pub(super) fn by_source(tree: &Tree, cpus: &[u32]) -> Result<Sources> {
    of_cpus(&tree.word(PATH)?, cpus)
}

fn of_cpus(text: &str, cpus: &[u32]) -> Result<Sources> {
    let header = text.lines().next().unwrap_or_default();
    let width = header.split_whitespace().count();
    let columns = cpus.iter().map(|cpu| column_of(header, *cpu)).collect::<Result<Vec<usize>>>()?;
    let mut counts = BTreeMap::new();
    for (source, fields) in text.lines().skip(1).filter_map(|line| line.split_once(':')) {
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // ERR and MIS have one sum for all CPUs.
        if fields.len() < width {
            continue;
        }
        let of_column = |column: &usize| fields.get(*column)?.parse::<u64>().ok();
        let count = columns
            .iter()
            .map(of_column)
            .try_fold(0, |sum: u64, count| count.map(|count| sum.saturating_add(count)));
        if let Some(count) = count {
            counts.insert((source.trim().to_string(), called(source, &fields[width..])), count);
        }
    }
    Ok(counts)
}

/// What a source is called: of a device the names of its handlers, which come after chip, number and
/// trigger; of the CPU's own the words of the kernel.
fn called(source: &str, words: &[&str]) -> String {
    let triggers = ["edge", "level", "fasteoi"];
    let is_trigger = |word: &&str| {
        let word = word.to_ascii_lowercase();
        triggers.iter().any(|trigger| word.ends_with(trigger))
    };
    let is_device = source.trim().parse::<u32>().is_ok();
    let handlers = match words.iter().position(is_trigger) {
        Some(trigger) if is_device => &words[trigger + 1..],
        None if is_device => &words[words.len().saturating_sub(1)..],
        _ => words,
    };
    handlers.join(" ")
}

fn column_of(header: &str, cpu: u32) -> Result<usize> {
    let name = format!("CPU{cpu}");
    let column = header.split_whitespace().position(|word| word == name);
    column.ok_or_else(|| ReadError::no_item(PATH, &name))
}

fn of_cpu(text: &str, cpu: u32) -> Result<BTreeMap<String, u64>> {
    let counts = of_cpus(text, &[cpu])?.into_iter();
    Ok(counts.map(|((source, _), count)| (source, count)).collect())
}

/// The header names the online CPUs, whose numbers may have gaps; then a line for each source.
fn of(text: &str) -> Result<Vec<CpuInterrupts>> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let column = |name: &str| match name.strip_prefix("CPU") {
        Some(cpu) => Ok(CpuInterrupts { cpu: parse(PATH, cpu)?, devices: 0 }),
        None => Err(ReadError::invalid(PATH, name, "the name of a CPU")),
    };
    let mut cpus = header.split_whitespace().map(column).collect::<Result<Vec<_>>>()?;
    if cpus.is_empty() {
        return Err(ReadError::no_item(PATH, "CPU0"));
    }
    for line in lines {
        let Some((name, counts)) = line.split_once(':') else { continue };
        // Letters: the CPU's own (LOC, RES, ...), or one sum for all (ERR, MIS).
        if name.trim().parse::<u32>().is_err() {
            continue;
        }
        let mut fields = counts.split_whitespace();
        for cpu in &mut cpus {
            let field = fields.next().ok_or_else(|| ReadError::no_item(PATH, name.trim()))?;
            cpu.devices = cpu.devices.saturating_add(parse(PATH, field)?);
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
        of(text).unwrap().iter().map(|cpu| (cpu.cpu, cpu.devices)).collect()
    }

    #[test]
    fn devices_are_counted_by_cpu_and_timers_are_not() {
        assert_eq!(devices(FIRECRACKER), [(0, 6475), (1, 777_745)]);
    }

    #[test]
    fn one_cpu_is_told_by_name() {
        let counts = of_cpu(FIRECRACKER, 1).unwrap();
        assert_eq!((counts.get("LOC"), counts.get("36")), (Some(&3_601_589), Some(&777_745)));
        assert_eq!(counts.get("ERR"), None, "a sum over all CPUs is not this one's");
        assert_eq!(of_cpu(FIRECRACKER, 0).unwrap().get("ERR"), None);
        assert!(of_cpu(FIRECRACKER, 2).unwrap_err().to_string().contains("CPU2"));
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
        let arm = "           CPU0       CPU4       CPU5\n 13:  1  20 300  GICv3  30 Level  arch_timer\nIPI0: 9 9 9  Rescheduling interrupts\n";
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
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(PATH) && error.contains(item), "{error}");
        }
        assert!(of("").is_err());
        assert_eq!(devices("  CPU0\n 1: 18446744073709551615\n 2: 1\n"), [(0, u64::MAX)]);
    }
}
