//! Counts and memory of a program while it was watched, each with the reason where it could not be
//! read.

use analysis::program::{Window, WorkingSet};
use rundata::reading::Reading;
use rundata::trial::command::Executable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source of the counts of a program's switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CountSource {
    /// /proc, read now and then: the kernel's counts of each thread, without the last switches of
    /// threads that ended, and without threads that came and ended in between.
    #[default]
    Proc,
    /// wait4(2) at the command's end: the command and all children that were waited for.
    Wait4,
    /// Tracepoints by eBPF: every switch of every thread, for as long as it lived.
    Tracepoints,
}

impl CountSource {
    /// Returns the words that follow the counts: `read from /proc`.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Proc => "read from /proc",
            Self::Wait4 => "from wait4",
            Self::Tracepoints => "counted by kernel tracepoints",
        }
    }

    /// Returns the participle that the answer uses: `traced` only where every switch was seen.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Proc | Self::Wait4 => "counted",
            Self::Tracepoints => "traced",
        }
    }
}

/// Children of a program that are not in its figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OmittedChildren {
    /// Number of children.
    pub(crate) children: usize,
    /// Their switches a second.
    pub(crate) switches_per_s: f64,
}

/// Everything that was read of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProgramObservation {
    /// Process id; the first of several.
    pub(crate) pid: u32,
    /// Name of the program.
    pub(crate) name: String,
    /// Processes that were asked for; empty for a command.
    #[serde(default)]
    pub(crate) pids: Vec<u32>,
    /// Further processes of the program, including those that have ended.
    #[serde(default)]
    pub(crate) children: usize,
    /// Children that are not in the figures, because of `--no-children`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<OmittedChildren>,
    /// Options that ask for the program: `--pid 812`.
    #[serde(skip)]
    pub(crate) typed: Option<String>,
    /// File that it runs, as far as that was found.
    #[serde(default)]
    pub(crate) executable: Option<Executable>,
    /// Words that it was started with.
    #[serde(skip)]
    pub(crate) words: Option<Vec<String>>,
    /// Words of the command, if it was started here.
    pub(crate) command: Option<Vec<String>>,
    /// Time for which it was watched, in nanoseconds.
    pub(crate) watched_ns: u64,
    /// Threads at the last look, absent if it ended before any; of a traced program those of the
    /// process whose memory is watched.
    pub(crate) threads: Option<u64>,
    /// Voluntary switches while it was watched.
    pub(crate) voluntary: Reading<u64>,
    /// Involuntary switches while it was watched.
    pub(crate) involuntary: Reading<u64>,
    /// Switches by sched_yield(2), which are counted above as well.
    #[serde(default)]
    pub(crate) yields: Reading<u64>,
    /// Moves of its threads to another CPU.
    #[serde(default)]
    pub(crate) migrations: Reading<u64>,
    /// Source of the counts.
    #[serde(default)]
    pub(crate) counted_by: CountSource,
    /// CPU time while it was watched, in nanoseconds.
    pub(crate) cpu_ns: Reading<u64>,
    /// Resident memory in bytes: the most at any look.
    pub(crate) resident_bytes: Reading<u64>,
    /// Windows in which touched pages were counted.
    pub(crate) windows: Vec<Window>,
    /// Notes on how it was observed.
    #[serde(default)]
    pub(crate) method: Vec<String>,
    /// Notes on what was not available, and what was not counted.
    pub(crate) notices: Vec<String>,
}

/// Share of the CPU time from which on the working set of one process stands for its program's.
pub(super) const MIN_WATCHED_SHARE: f64 = 0.9;

/// A working set, and the reason if it is only a bound by resident memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkingSetReading {
    pub(super) set: Reading<WorkingSet>,
    pub(super) unread: Option<UnreadReason>,
}

impl WorkingSetReading {
    /// Returns a working set that was read.
    pub(super) fn read(set: WorkingSet) -> Self {
        Self { set: Reading::Known(set), unread: None }
    }

    /// Returns the range from nothing to `max_bytes`, for a set that was not read.
    pub(super) fn at_most(max_bytes: u64, unread: UnreadReason) -> Self {
        Self { set: Reading::Known(WorkingSet::within(max_bytes)), unread: Some(unread) }
    }

    /// Returns the upper end of the range in bytes; 0 if none is known.
    pub(super) fn high_bytes(&self) -> u64 {
        self.set.known().map_or(0, |set| set.high_bytes)
    }
}

/// Reason why a working set was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadReason {
    pub(super) why: String,
    pub(super) remedy: Option<UnreadRemedy>,
}

impl UnreadReason {
    pub(super) fn new(why: impl Into<String>, remedy: Option<UnreadRemedy>) -> Self {
        Self { why: why.into(), remedy }
    }
}

/// A way to read a working set that was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnreadRemedy {
    /// Run as root.
    Privilege,
    /// Watch for longer.
    Longer,
    /// Watch the process that does the work, by its id if that is known.
    Child(Option<u32>),
}
