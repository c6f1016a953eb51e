//! What was read of a program, and why not where it was not.

use model::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::WorkingSet;

/// Who counted a program's switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// The kernel's counts of each thread, read from /proc now and then: without the last ones of
    /// threads that ended, and without threads that came and ended in between.
    #[default]
    Proc,
    /// The kernel, told at the command's end by wait4(2): of the command and all children that were
    /// waited for.
    Wait4,
    /// The kernel's counts at each switch, by eBPF: of every thread, for as long as it lived.
    Tracepoints,
}

impl Source {
    /// Behind the counts: `read from /proc`.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Proc => "read from /proc",
            Self::Wait4 => "told by wait4",
            Self::Tracepoints => "counted by kernel tracepoints",
        }
    }
}

/// Bytes of a cache line: of a page that was touched at least one was.
const LINE_BYTES: u64 = 64;

/// A stretch of time for which the pages that the program touched were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Window {
    /// How long, in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// CPU time of the program in it, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Its switches in it.
    pub(crate) switches: u64,
    /// Its threads.
    pub(crate) threads: u64,
    /// Bytes of the pages touched, as far as the page tables tell.
    pub(crate) referenced_bytes: u64,
    /// Bytes of the huge pages that it has, touched or not.
    #[serde(default)]
    pub(crate) huge_bytes: u64,
}

/// Sizes of pages in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageSizes {
    pub(crate) page: u64,
    /// Of a transparent huge page; absent where it is not known.
    pub(crate) huge: Option<u64>,
}

impl WorkingSet {
    /// The range that windows leave open. At least: each page touched was so in one of the
    /// stretches between switches, and one line of it. At most: all resident memory, the most that
    /// there was; the pages touched are no upper end, as one whose translation is still cached is
    /// touched without a trace. Windows without CPU time say nothing; absent where there is no
    /// other, or no upper end.
    pub(crate) fn seen_in(
        windows: &[Window],
        sizes: PageSizes,
        resident: Option<u64>,
    ) -> Option<Self> {
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

/// All that was read of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Seen {
    /// The process.
    pub(crate) pid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The command, where it was started here.
    pub(crate) command: Option<Vec<String>>,
    /// For how long it was watched, in nanoseconds.
    pub(crate) watched_ns: u64,
    /// Its threads at the last look; absent where it ended before any.
    pub(crate) threads: Option<u64>,
    /// Voluntary switches while it was watched.
    pub(crate) voluntary: Reading<u64>,
    /// Involuntary ones.
    pub(crate) involuntary: Reading<u64>,
    /// Of those, by sched_yield(2).
    #[serde(default)]
    pub(crate) yields: Reading<u64>,
    /// Moves of its threads to another CPU.
    #[serde(default)]
    pub(crate) migrations: Reading<u64>,
    /// Who counted them.
    #[serde(default)]
    pub(crate) counted_by: Source,
    /// CPU time while it was watched, in nanoseconds.
    pub(crate) cpu_ns: Reading<u64>,
    /// Resident memory in bytes: the most at any look.
    pub(crate) resident_bytes: Reading<u64>,
    /// The windows in which touched pages were counted.
    pub(crate) windows: Vec<Window>,
    /// How it was looked at.
    #[serde(default)]
    pub(crate) method: Vec<String>,
    /// What was not available, and what was not counted.
    pub(crate) notices: Vec<String>,
}

/// Why the working set was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotRead {
    pub(super) why: String,
    pub(super) remedy: Option<Remedy>,
}

impl NotRead {
    pub(super) fn new(why: impl Into<String>, remedy: Option<Remedy>) -> Self {
        Self { why: why.into(), remedy }
    }
}

/// What would let it be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Root's privilege.
    Privilege,
    /// To be watched for longer.
    Longer,
    /// To watch the child that does the work.
    Child,
}
