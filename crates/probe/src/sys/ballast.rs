//! Other physical pages for each worker.

use rustix::mm::{Advice, MapFlags, madvise};

use super::page::Mapping;
use super::walk::{BASE_PAGE_BYTES, HUGE_PAGE_BYTES};
use crate::random::Random;

/// Huge pages that are held at most: 62 MiB.
const MOST_PAGES: u64 = 31;
/// Base pages that are held at most, where the arrays refuse huge ones: 4 MiB.
const MOST_BASE_PAGES: u64 = 1024;

/// Memory that is held while the members take theirs. The kernel hands out the pages first that were given
/// back last, so that all workers of a launch would work in the same few pages, and which lines meet in a cache
/// would be the luck of the launch. With a number of pages held that is another in each worker it is the luck
/// of a worker, of which there are many (as Curtsinger and Berger 2013 do with a program's own layout).
pub struct Ballast {
    _mapping: Mapping,
}

impl Ballast {
    /// Holds a number of pages that the seed decides. None where the memory is not available: then the members take
    /// what comes.
    pub fn hold(huge_pages: bool, seed: u64) -> Option<Self> {
        let (page, most, advice) = match huge_pages {
            true => (HUGE_PAGE_BYTES, MOST_PAGES, Advice::LinuxHugepage),
            false => (BASE_PAGE_BYTES, MOST_BASE_PAGES, Advice::LinuxNoHugepage),
        };
        // Room to begin at a huge page, as the arrays do.
        let held = page * Random::new(seed).below(most + 1) as usize;
        let bytes = held + HUGE_PAGE_BYTES;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let mapping = Mapping::new(bytes, flags).ok()?;
        let start = mapping.base().wrapping_byte_add(mapping.base().align_offset(HUGE_PAGE_BYTES));
        for advice in [advice, Advice::LinuxDontFork] {
            // SAFETY: advice changes no content; these pages are in the mapping. Members that are forked do not
            // get it.
            let _ = unsafe { madvise(start, held, advice) };
        }
        for at in (0..held).step_by(page) {
            // SAFETY: within the mapping, which is writable and nobody else's.
            unsafe { start.wrapping_byte_add(at).cast::<u8>().write_volatile(1) };
        }
        Some(Self { _mapping: mapping })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident bytes of what members do not inherit (`dc`) in the mappings that a ballast is in
    /// (proc_pid_smaps(5)).
    fn held(ballast: &Ballast) -> u64 {
        let base = ballast._mapping.base() as usize;
        let ends = (base, base + ballast._mapping.bytes());
        let (mut bytes, mut of_one, mut within) = (0, 0, false);
        for line in std::fs::read_to_string("/proc/self/smaps").expect("smaps").lines() {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            if let Some((from, to)) = first.split_once('-') {
                let hex = |text| usize::from_str_radix(text, 16).unwrap_or(0);
                within = hex(from) < ends.1 && hex(to) > ends.0;
            } else if first == "Rss:" {
                let kilobytes = rest.trim().trim_end_matches(" kB").parse::<u64>();
                of_one = 1024 * kilobytes.expect("kilobytes");
            } else if within && first == "VmFlags:" && rest.split(' ').any(|flag| flag == "dc") {
                bytes += of_one;
            }
        }
        bytes
    }

    #[test]
    fn how_much_is_held_goes_by_the_seed_and_members_do_not_inherit_it() {
        for (huge, page, most) in
            [(true, HUGE_PAGE_BYTES, MOST_PAGES), (false, BASE_PAGE_BYTES, MOST_BASE_PAGES)]
        {
            let mut all = Vec::new();
            for seed in 0..8 {
                let ballast = Ballast::hold(huge, seed).expect("memory");
                let pages = Random::new(seed).below(most + 1);
                let bytes = held(&ballast);
                // A kernel without huge pages gives a base page for each.
                let least = pages * BASE_PAGE_BYTES as u64;
                assert!((least..=pages * page as u64).contains(&bytes), "{bytes} of {pages} pages");
                all.push(pages);
            }
            assert!(all.iter().any(|pages| *pages != all[0]), "{all:?}");
        }
    }
}
