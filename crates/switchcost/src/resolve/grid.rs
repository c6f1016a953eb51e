//! Arrays to measure where none are asked for, from the machine's caches.

use model::case::ELEMENT_BYTES;
use model::machine::Machine;

/// The smallest array.
const SMALLEST: u64 = 1 << 10;

/// The private cache that is assumed where the machine does not say.
const COMMON_PRIVATE: u64 = 512 << 10;

/// Pages of a TLB grid: past the second-level TLB of any processor on sale.
const MOST_PAGES: u64 = 4096;

/// Arrays from 1 KiB to four times the last private cache of `cpu`, in doublings, denser where costs
/// are likely to break: there another size tells more than another round. `deep`: to twice the largest
/// cache.
pub(crate) fn arrays(machine: &Machine, cpu: Option<u32>, deep: bool) -> Vec<u64> {
    let private = cpu.and_then(|cpu| {
        machine.last_private_cache(cpu).known().and_then(|cache| cache.size_bytes.known().copied())
    });
    let private = private.filter(|size| *size >= SMALLEST).unwrap_or(COMMON_PRIVATE);
    let largest =
        machine.largest_cache().known().and_then(|cache| cache.size_bytes.known().copied());
    let end = match largest.filter(|_| deep) {
        Some(largest) => (4 * private).max(2 * largest),
        None => 4 * private,
    };
    let doublings = |first: u64, last: u64| {
        std::iter::successors(Some(first), |size| size.checked_mul(2))
            .take_while(move |size| *size <= last)
    };
    let between = |size: u64| {
        let size = (size as f64 * std::f64::consts::SQRT_2) as u64;
        size - size % ELEMENT_BYTES
    };
    // Parts of the cache itself, whatever its size: a half and a whole of it are among them.
    let mut all: Vec<u64> =
        doublings(SMALLEST, private / 8).chain(doublings(private / 4, end)).collect();
    all.extend(doublings(private / 4, private).map(between));
    all.iter_mut().for_each(|size| *size -= *size % ELEMENT_BYTES);
    all.sort_unstable();
    all.dedup();
    all
}

/// Numbers of pages for the TLB, in steps of the root of two.
pub(crate) fn pages() -> Vec<u64> {
    let doublings = (2..).map(|power| 1_u64 << power).take_while(|pages| *pages <= MOST_PAGES);
    let mut all: Vec<u64> = doublings.flat_map(|pages| [pages, pages * 181 / 128]).collect();
    all.retain(|pages| *pages <= MOST_PAGES);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::machine::{Cache, CacheKind, LogicalCpu};
    use model::reading::Reading;

    fn machine(private_kib: u64) -> Machine {
        let cache = |level: u32, kib: u64, cpus: &str| Cache {
            level: Reading::Known(level),
            kind: Reading::Known(CacheKind::Unified),
            size_bytes: Reading::Known(kib << 10),
            shared_cpus: cpus.parse().map_or(Reading::unknown("bad"), Reading::Known),
            ..Cache::default()
        };
        let mut machine = Machine::default();
        let own = Reading::Known("0".parse().expect("a list"));
        machine.cpu.topology =
            Reading::Known(vec![LogicalCpu { smt_siblings: own, ..LogicalCpu::default() }]);
        machine.cpu.caches =
            Reading::Known(vec![cache(2, private_kib, "0"), cache(3, 32 << 10, "0-1")]);
        machine
    }

    #[test]
    fn arrays_are_denser_around_the_private_cache() {
        let kib = |bytes: &u64| bytes >> 10;
        let sizes: Vec<u64> = arrays(&machine(512), Some(0), false).iter().map(kib).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 181, 256, 362, 512, 724, 1024, 2048]);
        let deep = arrays(&machine(512), Some(0), true);
        assert_eq!(deep.last(), Some(&(64 << 20)));
    }

    #[test]
    fn arrays_are_of_whole_elements_whatever_the_cache() {
        for private in [48, 1280, 1536, 2048] {
            let sizes = arrays(&machine(private), Some(0), true);
            assert!(sizes.iter().all(|size| size.is_multiple_of(ELEMENT_BYTES)), "{sizes:?}");
            assert!(sizes.is_sorted() && sizes.contains(&(private << 9)), "{sizes:?}");
        }
        assert_eq!(arrays(&Machine::default(), Some(0), true).last(), Some(&(2 << 20)));
    }

    #[test]
    fn pages_go_past_any_tlb() {
        let pages = pages();
        assert_eq!(pages[..5], [4, 5, 8, 11, 16]);
        assert_eq!(pages.last(), Some(&MOST_PAGES));
    }
}
