//! The data TLBs of the CPU that this runs on. No file shows them: x86-64 tells them by its CPUID
//! instruction.

use std::path::Path;

use model::machine::Tlb;
use model::reading::Reading;

#[cfg(target_arch = "x86_64")]
use raw_cpuid::{CpuId, CpuIdReader, DatInfo, DatType};

#[cfg(target_arch = "x86_64")]
const SMALL: u64 = 4 << 10;
#[cfg(target_arch = "x86_64")]
const HUGE: u64 = 2 << 20;

/// Those of this machine; unknown below any other root folder.
pub(super) fn read(root: &Path) -> Reading<Vec<Tlb>> {
    if root != Path::new("/") {
        return Reading::unknown("no file lists the TLBs of a machine");
    }
    here()
}

#[cfg(target_arch = "x86_64")]
fn here() -> Reading<Vec<Tlb>> {
    of(&CpuId::new())
}

/// Of several for the same pages at one level, such as one for loads and one for stores, the
/// largest.
#[cfg(target_arch = "x86_64")]
fn of(cpuid: &CpuId<impl CpuIdReader>) -> Reading<Vec<Tlb>> {
    let mut all = [of_amd(cpuid), of_intel(cpuid)].concat();
    all.retain(|tlb| tlb.entries > 0);
    all.sort_by_key(|tlb| (tlb.page_bytes, tlb.level, std::cmp::Reverse(tlb.entries)));
    all.dedup_by_key(|tlb| (tlb.page_bytes, tlb.level));
    match all.is_empty() {
        true => Reading::unknown("CPUID leaves 0x18, 0x80000005 and 0x80000006 list no data TLB"),
        false => Reading::Known(all),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn here() -> Reading<Vec<Tlb>> {
    Reading::unknown("only x86-64 lets a program read its TLBs")
}

/// Leaves 0x80000005 and 0x80000006, which are zero on Intel.
#[cfg(target_arch = "x86_64")]
fn of_amd(cpuid: &CpuId<impl CpuIdReader>) -> Vec<Tlb> {
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
fn of_intel(cpuid: &CpuId<impl CpuIdReader>) -> Vec<Tlb> {
    use DatType::{DataTLB, LoadOnly, StoreOnly, UnifiedTLB};
    let Some(all) = cpuid.get_deterministic_address_translation_info() else { return Vec::new() };
    let of_data =
        all.filter(|info| matches!(info.cache_type(), DataTLB | UnifiedTLB | LoadOnly | StoreOnly));
    let each = |info: DatInfo| {
        let entries = u64::from(info.ways()) * u64::from(info.sets());
        let pages = [(info.has_4k_entries(), SMALL), (info.has_2mb_entries(), HUGE)];
        let level = u32::from(info.cache_level());
        let held = pages.into_iter().filter(|(holds, _)| *holds);
        held.map(move |(_, page_bytes)| Tlb { level, entries, page_bytes }).collect::<Vec<_>>()
    };
    of_data.flat_map(each).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use raw_cpuid::CpuIdResult;

    use super::*;

    /// A CPU of this vendor, with the leaves that it tells its TLBs by.
    fn cpu(vendor: [&str; 3], leaf: fn(u32, u32) -> [u32; 4]) -> Reading<Vec<Tlb>> {
        let word = |text: &str| u32::from_le_bytes(text.as_bytes().try_into().expect("4 bytes"));
        let vendor = vendor.map(word);
        let read = move |eax: u32, ecx: u32| {
            let [eax, ebx, ecx, edx] = match eax {
                0 => [0x20, vendor[0], vendor[2], vendor[1]],
                0x8000_0000 => [0x8000_0020, 0, 0, 0],
                _ => leaf(eax, ecx),
            };
            CpuIdResult { eax, ebx, ecx, edx }
        };
        of(&CpuId::with_cpuid_reader(read))
    }

    fn tlbs(all: &[(u32, u64, u64)]) -> Reading<Vec<Tlb>> {
        let of = |(level, entries, page_bytes): &(u32, u64, u64)| Tlb {
            level: *level,
            entries: *entries,
            page_bytes: *page_bytes,
        };
        Reading::Known(all.iter().map(of).collect())
    }

    #[test]
    fn amd_tells_two_levels() {
        let zen_4 = cpu(["Auth", "enti", "cAMD"], |eax, _| match eax {
            0x8000_0005 => [0xff48_ff40, 0xff48_ff40, 0, 0],
            0x8000_0006 => [0x5c00_2200, 0x6c00_4200, 0, 0],
            _ => [0; 4],
        });
        let (small, huge) = (4 << 10, 2 << 20);
        assert_eq!(
            zen_4,
            tlbs(&[(1, 72, small), (2, 3072, small), (1, 72, huge), (2, 3072, huge)])
        );
    }

    #[test]
    fn intel_tells_parts_of_which_the_largest_counts() {
        // Type 4: loads, 5: stores, 3: both and instructions. Ways in the upper half of EBX, sets
        // in ECX.
        let parts = cpu(["Genu", "ineI", "ntel"], |eax, ecx| match (eax, ecx) {
            (0x18, 0) => [3, 0, 0, 0],
            (0x18, 1) => [0, 0x0004_0001, 16, 0x24],
            (0x18, 2) => [0, 0x0010_000f, 1, 0x25],
            (0x18, 3) => [0, 0x0008_0003, 128, 0x43],
            _ => [0; 4],
        });
        let (small, huge) = (4 << 10, 2 << 20);
        assert_eq!(
            parts,
            tlbs(&[(1, 64, small), (2, 1024, small), (1, 16, huge), (2, 1024, huge)])
        );
    }

    #[test]
    fn who_tells_nothing_is_unknown_and_so_is_any_other_machine() {
        assert!(cpu(["Genu", "ineI", "ntel"], |_, _| [0; 4]).known().is_none());
        assert!(read(Path::new("/captured")).known().is_none());
    }
}
