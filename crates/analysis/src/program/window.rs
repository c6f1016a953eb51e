//! Which pages a program touched, and what they leave open of its working set.

use rundata::ring::LINE_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::WorkingSet;

/// A stretch of time for which the pages that the program touched were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// How long, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the program in it, in nanoseconds.
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

impl WorkingSet {
    /// The range that windows leave open. At least: each page touched was so in one of the
    /// stretches between switches, and one line of it. At most: all resident memory, the most that
    /// there was; the pages touched are no upper end, as one whose translation is still cached is
    /// touched without a trace. Windows without CPU time say nothing; absent where there is no
    /// other, or no upper end.
    pub fn seen_in(windows: &[Window], sizes: PageSizes, resident: Option<u64>) -> Option<Self> {
        let active = windows.iter().filter(|window| window.cpu_ns > 0);
        let least = |window: &Window| {
            // Which of the huge pages were touched is not told: all, if that makes fewer lines.
            let huge = window.huge_bytes.min(window.referenced_bytes);
            let huge_pages = sizes.huge.map_or(0, |size| huge / size.max(1));
            let pages = (window.referenced_bytes - huge) / sizes.page.max(1) + huge_pages;
            pages * LINE_BYTES / window.switches.saturating_add(window.threads).max(1)
        };
        let low_bytes = active.map(least).min()?;
        let high_bytes = resident?;
        Some(Self { low_bytes: low_bytes.min(high_bytes), high_bytes, sampled: None })
    }
}
