//! Data TLBs of the CPU that this runs on. No file lists them; x86-64 reports them by its CPUID
//! instruction.

use std::path::Path;

use rundata::machine::DataTlb;
use rundata::reading::Reading;

#[cfg(target_arch = "x86_64")]
use raw_cpuid::{CpuId, CpuIdReader, DatType};

#[cfg(target_arch = "x86_64")]
const BASE_PAGE_BYTES: u64 = 4 << 10;
#[cfg(target_arch = "x86_64")]
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Reads the TLBs of this machine. They are unknown below any other root folder than `/`.
pub(super) fn read(root: &Path) -> Reading<Vec<DataTlb>> {
    if root != Path::new("/") {
        return Reading::unknown("no file lists the TLBs of a machine");
    }
    read_own()
}

#[cfg(target_arch = "x86_64")]
fn read_own() -> Reading<Vec<DataTlb>> {
    read_from(&CpuId::new())
}

/// Reads the TLBs by CPUID. Of several for the same pages at one level, such as one for loads and
/// one for stores, the largest counts.
#[cfg(target_arch = "x86_64")]
fn read_from(cpuid: &CpuId<impl CpuIdReader>) -> Reading<Vec<DataTlb>> {
    let mut tlbs = read_amd(cpuid);
    tlbs.extend(read_intel(cpuid));
    tlbs.retain(|tlb| tlb.entries > 0);
    tlbs.sort_by_key(|tlb| (tlb.page_bytes, tlb.level, std::cmp::Reverse(tlb.entries)));
    tlbs.dedup_by_key(|tlb| (tlb.page_bytes, tlb.level));
    if tlbs.is_empty() {
        return Reading::unknown("CPUID leaves 0x18, 0x80000005 and 0x80000006 list no data TLB");
    }
    Reading::Known(tlbs)
}

#[cfg(not(target_arch = "x86_64"))]
fn read_own() -> Reading<Vec<DataTlb>> {
    Reading::unknown("only x86-64 lets a program read its TLBs")
}

/// Reads leaves 0x80000005 and 0x80000006, which are zero on Intel.
#[cfg(target_arch = "x86_64")]
fn read_amd(cpuid: &CpuId<impl CpuIdReader>) -> Vec<DataTlb> {
    let vendor = cpuid.get_vendor_info();
    if vendor.is_none_or(|vendor| vendor.as_str() != "AuthenticAMD") {
        return Vec::new();
    }
    let mut tlbs = Vec::new();
    if let Some(info) = cpuid.get_l1_cache_and_tlb_info() {
        tlbs.push(tlb(1, info.dtlb_4k_size().into(), BASE_PAGE_BYTES));
        tlbs.push(tlb(1, info.dtlb_2m_4m_size().into(), HUGE_PAGE_BYTES));
    }
    if let Some(info) = cpuid.get_l2_l3_cache_and_tlb_info() {
        tlbs.push(tlb(2, info.dtlb_4k_size().into(), BASE_PAGE_BYTES));
        tlbs.push(tlb(2, info.dtlb_2m_4m_size().into(), HUGE_PAGE_BYTES));
    }
    tlbs
}

#[cfg(target_arch = "x86_64")]
fn tlb(level: u32, entries: u64, page_bytes: u64) -> DataTlb {
    DataTlb { level, entries, page_bytes }
}

/// Reads leaf 0x18, which hypervisors may leave empty.
#[cfg(target_arch = "x86_64")]
fn read_intel(cpuid: &CpuId<impl CpuIdReader>) -> Vec<DataTlb> {
    use DatType::{DataTLB, LoadOnly, StoreOnly, UnifiedTLB};
    let Some(infos) = cpuid.get_deterministic_address_translation_info() else {
        return Vec::new();
    };
    let mut tlbs = Vec::new();
    for info in infos {
        if !matches!(info.cache_type(), DataTLB | UnifiedTLB | LoadOnly | StoreOnly) {
            continue;
        }
        let level = u32::from(info.cache_level());
        let entries = u64::from(info.ways()) * u64::from(info.sets());
        if info.has_4k_entries() {
            tlbs.push(tlb(level, entries, BASE_PAGE_BYTES));
        }
        if info.has_2mb_entries() {
            tlbs.push(tlb(level, entries, HUGE_PAGE_BYTES));
        }
    }
    tlbs
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use raw_cpuid::CpuIdResult;

    use super::*;

    /// A CPU of this vendor, with the leaves that it tells its TLBs by.
    fn cpu(vendor: [&str; 3], leaf: fn(u32, u32) -> [u32; 4]) -> Reading<Vec<DataTlb>> {
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
        read_from(&CpuId::with_cpuid_reader(read))
    }

    fn tlbs(all: &[(u32, u64, u64)]) -> Reading<Vec<DataTlb>> {
        let mut tlbs = Vec::new();
        for (level, entries, page_bytes) in all.iter().copied() {
            tlbs.push(DataTlb { level, entries, page_bytes });
        }
        Reading::Known(tlbs)
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
