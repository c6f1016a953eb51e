//! /proc/cpuinfo: what kinds of CPU there are. Its form differs between architectures.

use model::machine::{CpuList, CpuModel};
use model::reading::Reading;

use super::tree::{ReadError, Result, Tree, value_of};

pub(super) const PATH: &str = "/proc/cpuinfo";

/// The kinds of CPU, by lowest CPU.
pub(super) fn models(tree: &Tree) -> Result<Vec<CpuModel>> {
    let text = tree.text(PATH)?;
    let mut kinds: Vec<(CpuModel, Vec<u32>)> = Vec::new();
    for block in text.split("\n\n") {
        let Some(cpu) = value_of(PATH, block, "processor").ok().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let kind = kind_of(block);
        match kinds.iter_mut().find(|(seen, _)| *seen == kind) {
            Some((_, cpus)) => cpus.push(cpu),
            None => kinds.push((kind, vec![cpu])),
        }
    }
    if kinds.is_empty() {
        return Err(ReadError::no_item(PATH, "processor : N"));
    }
    let with_cpus = |(kind, cpus): (CpuModel, Vec<u32>)| CpuModel {
        cpus: cpus.into_iter().collect::<CpuList>(),
        ..kind
    };
    Ok(kinds.into_iter().map(with_cpus).collect())
}

/// Whether x86 CPUID announces a hypervisor.
pub(super) fn hypervisor_flag(tree: &Tree) -> Result<bool> {
    let text = tree.text(PATH)?;
    let flags = value_of(PATH, &text, "flags")?;
    Ok(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn kind_of(block: &str) -> CpuModel {
    let value = |key: &str| Reading::from(value_of(PATH, block, key).map(str::to_owned));
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
