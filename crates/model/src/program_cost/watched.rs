//! What was seen of a program, and what follows for its working set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Program, ProgramCost, SurfacePoint, WorkingSet};
use crate::reading::Reading;

/// Version of [`Report`].
pub const SCHEMA: u32 = 1;

/// Bytes of a cache line: of a page that was touched at least one was.
const LINE_BYTES: u64 = 64;

/// Switches after which a stretch of time surely holds a whole one between two switches.
const WHOLE: u64 = 2;

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
    /// Bytes of the pages touched.
    pub referenced_bytes: u64,
}

impl WorkingSet {
    /// The range that windows leave open. At least: each page touched was so in one of the stretches
    /// between switches, and one line of it. At most: all pages touched in a window that holds a
    /// whole such stretch; where none does, all resident memory. Windows without CPU time say
    /// nothing; absent where there is no other, or no upper end.
    #[must_use]
    pub fn seen_in(windows: &[Window], page_bytes: u64, resident: Option<u64>) -> Option<Self> {
        let active = || windows.iter().filter(|window| window.cpu_ns > 0);
        let least = |window: &Window| {
            let lines = window.referenced_bytes / page_bytes.max(1) * LINE_BYTES;
            lines / (window.switches + window.threads).max(1)
        };
        let low_bytes = active().map(least).min()?;
        let whole = active().filter(|window| window.switches >= WHOLE * window.threads.max(1));
        let high_bytes = whole.map(|window| window.referenced_bytes).max().or(resident)?;
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
    /// Resident memory in bytes, at the last look.
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

    fn window(cpu_ns: u64, switches: u64, pages: u64) -> Window {
        let referenced_bytes = pages * PAGE;
        Window { elapsed_ns: 1_000_000, cpu_ns, switches, threads: 1, referenced_bytes }
    }

    #[test]
    fn the_range_is_what_the_windows_leave_open() {
        // 99 switches make 100 stretches: 200 pages, a line of each, are 128 bytes a stretch.
        let windows = [window(5, 99, 200), window(5, 9, 300), window(0, 0, 0)];
        let set = WorkingSet::seen_in(&windows, PAGE, None).unwrap();
        assert_eq!((set.low_bytes, set.high_bytes), (128, 300 * PAGE));
    }

    #[test]
    fn a_window_without_a_whole_stretch_is_no_upper_end() {
        let windows = [window(5, 1, 200)];
        assert_eq!(WorkingSet::seen_in(&windows, PAGE, None), None);
        let set = WorkingSet::seen_in(&windows, PAGE, Some(1 << 30)).unwrap();
        assert_eq!((set.low_bytes, set.high_bytes), (6400, 1 << 30));
    }

    #[test]
    fn without_cpu_time_nothing_was_touched_by_it() {
        assert_eq!(WorkingSet::seen_in(&[window(0, 0, 9)], PAGE, Some(1)), None);
        assert_eq!(WorkingSet::seen_in(&[], PAGE, Some(1)), None);
    }
}
