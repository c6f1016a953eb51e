//! Arrays to measure where none are asked for, from the machine's caches.

use model::case::LINE_BYTES;
use model::machine::Machine;

/// The smallest array.
const SMALLEST: u64 = 1 << 10;

/// The private cache that is assumed where the machine does not say.
const COMMON_PRIVATE: u64 = 512 << 10;

/// Sizes a doubling where the grid is dense: more of them than the default budget can resolve would each be known
/// the worse.
const STEPS_A_DOUBLING: u32 = 2;

/// Pages of a TLB grid: past the second-level TLB of any processor on sale.
const MOST_PAGES: u64 = 4096;

/// The private cache of `cpu`, and where its grid ends: at four times that cache, or `deep` at twice the
/// largest.
fn span(machine: &Machine, cpu: Option<u32>, deep: bool) -> (u64, u64) {
    let private = cpu.and_then(|cpu| {
        machine.last_private_cache(cpu).known().and_then(|cache| cache.size_bytes.known().copied())
    });
    let private = private.filter(|size| *size >= SMALLEST).unwrap_or(COMMON_PRIVATE);
    let largest =
        machine.largest_cache().known().and_then(|cache| cache.size_bytes.known().copied());
    match largest.filter(|_| deep) {
        Some(largest) => (private, (4 * private).max(2 * largest)),
        None => (private, 4 * private),
    }
}

/// Arrays from 1 KiB to the end of the span, in doublings.
pub(crate) fn arrays(machine: &Machine, cpu: Option<u32>, deep: bool) -> Vec<u64> {
    let (private, end) = span(machine, cpu, deep);
    // Parts of the cache itself, whatever its size: a half and a whole of it are among them.
    let small = steps(SMALLEST, private / 8, 1);
    tidy(small.into_iter().chain(steps(private / 4, end, 1)))
}

/// Arrays that are dense from a sixteenth of the private cache on: there costs are likely to break.
pub(crate) fn dense(machine: &Machine, cpu: Option<u32>, deep: bool) -> Vec<u64> {
    let (private, end) = span(machine, cpu, deep);
    let first = (private / 16).max(SMALLEST);
    tidy([SMALLEST, 4 * SMALLEST].into_iter().chain(steps(first, end, STEPS_A_DOUBLING)))
}

/// From `first` to `last`, so many a doubling.
fn steps(first: u64, last: u64, a_doubling: u32) -> Vec<u64> {
    let size = |step: u32| first as f64 * (f64::from(step) / f64::from(a_doubling)).exp2();
    (0..).map(|step| size(step).round() as u64).take_while(|size| *size <= last).collect()
}

/// Whole lines, ascending, each once.
fn tidy(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all: Vec<u64> = sizes.map(|size| size - size % LINE_BYTES).collect();
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
    fn arrays_are_doublings_and_dense_ones_halves_of_them_around_the_private_cache() {
        let kib = |bytes: &u64| bytes >> 10;
        let sizes: Vec<u64> = arrays(&machine(512), Some(0), false).iter().map(kib).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]);
        let near: Vec<u64> = dense(&machine(512), Some(0), false).iter().map(kib).collect();
        assert_eq!(near[..7], [1, 4, 32, 45, 64, 90, 128]);
        assert!(near.contains(&256) && near.contains(&512) && near.last() == Some(&2048));
        assert_eq!(near.len(), 15);
        let deep = arrays(&machine(512), Some(0), true);
        assert_eq!(deep.last(), Some(&(64 << 20)));
    }

    #[test]
    fn arrays_are_of_whole_lines_whatever_the_cache() {
        for private in [48, 1280, 1536, 2048] {
            for sizes in [arrays, dense].map(|grid| grid(&machine(private), Some(0), true)) {
                assert!(sizes.iter().all(|size| size.is_multiple_of(LINE_BYTES)), "{sizes:?}");
                assert!(sizes.is_sorted() && sizes.contains(&(private << 9)), "{sizes:?}");
            }
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
