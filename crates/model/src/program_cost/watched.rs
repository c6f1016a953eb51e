//! What was seen of a program, and what follows for its working set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Program, ProgramCost, SurfacePoint, WorkingSet};
use crate::reading::Reading;

/// Version of [`Report`].
pub const SCHEMA: u32 = 1;

/// Bytes of a cache line: of a page that was touched at least one was.
const LINE_BYTES: u64 = 64;

/// A stretch of time for which the pages that the program touched were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// How long, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the program in it.
    pub cpu_ns: u64,
    /// Its switches in it.
    pub switches: u64,
    /// Its threads.
    pub threads: u64,
    /// Bytes of the pages touched, as far as the page tables tell.
    pub referenced_bytes: u64,
    /// Bytes of the huge pages that it has, touched or not.
    #[serde(default)]
    pub huge_bytes: u64,
}

/// Sizes of pages in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSizes {
    /// Of a page.
    pub page: u64,
    /// Of a transparent huge page; absent where it is not known.
    pub huge: Option<u64>,
}

impl Window {
    /// Bytes that were surely touched: a line of each page.
    fn least_bytes(&self, sizes: PageSizes) -> u64 {
        // Which of the huge pages were touched is not told: all, if that makes fewer lines.
        let huge = self.huge_bytes.min(self.referenced_bytes);
        let huge_pages = sizes.huge.map_or(0, |size| huge / size.max(1));
        let pages = (self.referenced_bytes - huge) / sizes.page.max(1);
        (pages + huge_pages) * LINE_BYTES
    }
}

impl WorkingSet {
    /// The range that windows leave open. At least: each page touched was so in one of the stretches
    /// between switches, and one line of it. At most: all resident memory, the most that there was; the
    /// pages touched are no upper end, as one whose translation is still cached is touched without a
    /// trace. Windows without CPU time say nothing; absent where there is no other, or no upper end.
    #[must_use]
    pub fn seen_in(windows: &[Window], sizes: PageSizes, resident: Option<u64>) -> Option<Self> {
        let active = windows.iter().filter(|window| window.cpu_ns > 0);
        let least = |window: &Window| {
            window.least_bytes(sizes) / window.switches.saturating_add(window.threads).max(1)
        };
        let low_bytes = active.map(least).min()?;
        let high_bytes = resident?;
        Some(Self { low_bytes: low_bytes.min(high_bytes), high_bytes })
    }

    /// The range where touched pages could not be counted: all of the resident memory or none.
    #[must_use]
    pub fn within(resident_bytes: u64) -> Self {
        Self { low_bytes: 0, high_bytes: resident_bytes }
    }
}

/// The machine's costs, and where they are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Surface {
    /// The stored run.
    pub run: String,
    /// Its costs by array.
    pub points: Vec<SurfacePoint>,
}

/// All that `cost --pid` and `cost -- CMD` say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The command, where it was started here.
    pub command: Option<Vec<String>>,
    /// For how long it was watched, in nanoseconds.
    pub watched_ns: u64,
    /// Its threads at the last look; absent where it ended before any.
    pub threads: Option<u64>,
    /// Voluntary switches while it was watched.
    pub voluntary: Reading<u64>,
    /// Involuntary ones.
    pub involuntary: Reading<u64>,
    /// CPU time while it was watched, in nanoseconds.
    pub cpu_ns: Reading<u64>,
    /// Resident memory in bytes: the most at any look.
    pub resident_bytes: Reading<u64>,
    /// The windows in which touched pages were counted.
    pub windows: Vec<Window>,
    /// The same as rates.
    pub program: Program,
    /// The costs that the estimate rests on.
    pub surface: Reading<Surface>,
    /// The estimate.
    pub cost: ProgramCost,
    /// The estimate in words.
    pub in_words: String,
    /// What could not be had, and what was not counted.
    pub notices: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;
    const HUGE: u64 = 2 << 20;
    const SIZES: PageSizes = PageSizes { page: PAGE, huge: Some(HUGE) };

    fn window(cpu_ns: u64, switches: u64, pages: u64) -> Window {
        let referenced_bytes = pages * PAGE;
        let elapsed_ns = 1_000_000;
        Window { elapsed_ns, cpu_ns, switches, threads: 1, referenced_bytes, huge_bytes: 0 }
    }

    fn range(windows: &[Window], resident: Option<u64>) -> Option<(u64, u64)> {
        WorkingSet::seen_in(windows, SIZES, resident).map(|set| (set.low_bytes, set.high_bytes))
    }

    #[test]
    fn the_range_is_what_the_windows_leave_open() {
        // 99 switches make 100 stretches: 200 pages, a line of each, are 128 bytes a stretch.
        let windows = [window(5, 99, 200), window(5, 9, 300), window(0, 0, 0)];
        assert_eq!(range(&windows, Some(1 << 30)), Some((128, 1 << 30)));
        assert_eq!(range(&windows, Some(100)), Some((100, 100)));
    }

    /// Clearing a referenced bit flushes no TLB: 64 pages were touched, and four were seen.
    #[test]
    fn pages_that_were_seen_are_no_upper_end() {
        let truth = 64 * PAGE;
        let (_, high) = range(&[window(5, 40, 4)], Some(truth + PAGE)).unwrap();
        assert!(high >= truth, "{high}");
        assert_eq!(range(&[window(5, 40, 4)], None), None);
    }

    #[test]
    fn a_huge_page_is_one_line_at_least() {
        let with =
            |pages: u64, huge: u64| Window { huge_bytes: huge * HUGE, ..window(5, 0, pages) };
        // Ten small pages, and one of two huge ones: which of them is not told.
        let windows = [with(10 + 512, 2)];
        assert_eq!(range(&windows, Some(1 << 30)), Some((64, 1 << 30)));
        assert_eq!(range(&[with(10 + 512, 1)], Some(1 << 30)), Some((11 * 64, 1 << 30)));
        assert_eq!(range(&[with(512, 1)], Some(1 << 30)), Some((64, 1 << 30)));
        let unknown = PageSizes { huge: None, ..SIZES };
        let set = WorkingSet::seen_in(&[with(10 + 512, 1)], unknown, Some(1 << 30)).unwrap();
        assert_eq!(set.low_bytes, 10 * 64);
    }

    #[test]
    fn without_cpu_time_nothing_was_touched_by_it() {
        assert_eq!(range(&[window(0, 0, 9)], Some(1)), None);
        assert_eq!(range(&[], Some(1)), None);
    }
}
