//! The data TLBs of the CPU that this runs on. No file shows them: x86-64 tells them by its CPUID instruction.

use std::path::Path;

use model::machine::Tlb;
use model::reading::Reading;

const SMALL: u64 = 4 << 10;
const HUGE: u64 = 2 << 20;

/// Those of this machine; unknown below any other root folder.
pub(super) fn read(root: &Path) -> Reading<Vec<Tlb>> {
    if root != Path::new("/") {
        return Reading::unknown("no file tells the TLBs of a machine");
    }
    here()
}

#[cfg(target_arch = "x86_64")]
fn here() -> Reading<Vec<Tlb>> {
    let cpuid = raw_cpuid::CpuId::new();
    let mut all = [of_amd(&cpuid), of_intel(&cpuid)].concat();
    all.retain(|tlb| tlb.entries > 0);
    all.sort_by_key(|tlb| (tlb.page_bytes, tlb.level, tlb.entries));
    all.dedup_by_key(|tlb| (tlb.page_bytes, tlb.level));
    match all.is_empty() {
        true => Reading::unknown("CPUID leaves 0x18, 0x80000005 and 0x80000006 tell no data TLB"),
        false => Reading::Known(all),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn here() -> Reading<Vec<Tlb>> {
    Reading::unknown("only x86-64 tells a program its TLBs")
}

/// Leaves 0x80000005 and 0x80000006, which are zero on Intel.
#[cfg(target_arch = "x86_64")]
fn of_amd(cpuid: &raw_cpuid::CpuId<raw_cpuid::CpuIdReaderNative>) -> Vec<Tlb> {
    let is_amd = cpuid.get_vendor_info().is_some_and(|of| of.as_str() == "AuthenticAMD");
    if !is_amd {
        return Vec::new();
    }
    let of = |level, entries: u16, page_bytes| Tlb { level, entries: entries.into(), page_bytes };
    let first = cpuid.get_l1_cache_and_tlb_info().map(|info| {
        let small = of(1, info.dtlb_4k_size().into(), SMALL);
        [small, of(1, info.dtlb_2m_4m_size().into(), HUGE)]
    });
    let second = cpuid
        .get_l2_l3_cache_and_tlb_info()
        .map(|info| [of(2, info.dtlb_4k_size(), SMALL), of(2, info.dtlb_2m_4m_size(), HUGE)]);
    first.into_iter().chain(second).flatten().collect()
}

/// Leaf 0x18, which hypervisors may leave empty.
#[cfg(target_arch = "x86_64")]
fn of_intel(cpuid: &raw_cpuid::CpuId<raw_cpuid::CpuIdReaderNative>) -> Vec<Tlb> {
    use raw_cpuid::DatType::{DataTLB, UnifiedTLB};
    let Some(all) = cpuid.get_deterministic_address_translation_info() else { return Vec::new() };
    let of_data = all.filter(|info| matches!(info.cache_type(), DataTLB | UnifiedTLB));
    let each = |info: raw_cpuid::DatInfo| {
        let entries = u64::from(info.ways()) * u64::from(info.sets());
        let pages = [(info.has_4k_entries(), SMALL), (info.has_2mb_entries(), HUGE)];
        let level = u32::from(info.cache_level());
        let held = pages.into_iter().filter(|(holds, _)| *holds);
        held.map(move |(_, page_bytes)| Tlb { level, entries, page_bytes }).collect::<Vec<_>>()
    };
    of_data.flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cpu_has_is_possible_or_is_unknown_with_a_reason() {
        match read(Path::new("/")) {
            Reading::Known(all) => {
                assert!(!all.is_empty());
                for tlb in &all {
                    assert!((1..=4).contains(&tlb.level), "{tlb:?}");
                    assert!((4..=1 << 20).contains(&tlb.entries), "{tlb:?}");
                    assert!([SMALL, HUGE].contains(&tlb.page_bytes), "{tlb:?}");
                }
                let of = |page_bytes| all.iter().filter(move |tlb| tlb.page_bytes == page_bytes);
                let levels: Vec<u32> = of(SMALL).map(|tlb| tlb.level).collect();
                assert!(levels.is_sorted_by(|a, b| a < b), "each once: {all:?}");
            }
            Reading::Unknown { why } => assert!(!why.is_empty()),
        }
        assert!(read(Path::new("/captured")).known().is_none());
    }
}
