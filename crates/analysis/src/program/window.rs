//! The pages that a program touched, and the working sets that they leave possible.

use rundata::ring::LINE_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::WorkingSet;

/// A stretch of time for which the pages that the program touched were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Length in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the program in it, in nanoseconds.
    pub cpu_ns: u64,
    /// Switches of the program in it.
    pub switches: u64,
    /// Threads of the program.
    pub threads: u64,
    /// Bytes of the pages touched, by the page tables.
    pub referenced_bytes: u64,
    /// Bytes of the huge pages that the program has, touched or not.
    #[serde(default)]
    pub huge_bytes: u64,
}

/// Sizes of pages in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSizes {
    /// A page.
    pub page: u64,
    /// A transparent huge page; absent where its size is not known.
    pub huge: Option<u64>,
}

impl WorkingSet {
    /// Returns the range of working sets that windows leave possible. Windows without CPU time say
    /// nothing; absent where there is no other, or no upper end.
    ///
    /// The lower end: each page that was touched in a window was touched between some two switches,
    /// and at least one line of it. The upper end: all resident memory, the most that there was.
    /// The pages touched are no upper end, as a page whose translation is still cached is touched
    /// without a trace.
    pub fn seen_in(windows: &[Window], sizes: PageSizes, resident: Option<u64>) -> Option<Self> {
        let mut low_ends = Vec::new();
        for window in windows {
            if window.cpu_ns > 0 {
                low_ends.push(least_bytes(window, sizes));
            }
        }
        let high_bytes = resident?;
        let low_bytes = low_ends.into_iter().min()?.min(high_bytes);
        Some(Self { low_bytes, high_bytes, sampled: None })
    }
}

/// Returns the least bytes between two switches of a window: one line of each page touched, over
/// the stretches between switches.
fn least_bytes(window: &Window, sizes: PageSizes) -> u64 {
    // Which of the huge pages were touched is not known: all of them, if that makes fewer lines.
    let huge = window.huge_bytes.min(window.referenced_bytes);
    let huge_pages = sizes.huge.map_or(0, |size| huge / size.max(1));
    let pages = (window.referenced_bytes - huge) / sizes.page.max(1) + huge_pages;
    pages * LINE_BYTES / window.switches.saturating_add(window.threads).max(1)
}
