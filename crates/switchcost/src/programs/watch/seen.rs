//! What was read of a program, and why not where it was not.

use analysis::program::Window;
use rundata::reading::Reading;
use rundata::trial::command::Executable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who counted a program's switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CountSource {
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

impl CountSource {
    /// Behind the counts: `read from /proc`.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Proc => "read from /proc",
            Self::Wait4 => "from wait4",
            Self::Tracepoints => "counted by kernel tracepoints",
        }
    }

    /// In the answer: all were traced, or they were counted.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Proc | Self::Wait4 => "counted",
            Self::Tracepoints => "traced",
        }
    }
}

/// Children of a program that are not in its figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LeftOut {
    /// How many there are.
    pub(crate) children: usize,
    /// Their switches a second.
    pub(crate) switches_per_s: f64,
}

/// All that was read of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProgramObservation {
    /// The process, or the first of several.
    pub(crate) pid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The processes that were asked for; empty for a command.
    #[serde(default)]
    pub(crate) pids: Vec<u32>,
    /// Processes that belong to the program beside them, those that have ended among them.
    #[serde(default)]
    pub(crate) children: usize,
    /// Children that are not in the figures, as `--no-children` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<LeftOut>,
    /// The options that ask for them.
    #[serde(skip)]
    pub(crate) typed: Option<String>,
    /// The file that it runs, as far as that was found.
    #[serde(default)]
    pub(crate) executable: Option<Executable>,
    /// The words that it was started with.
    #[serde(skip)]
    pub(crate) words: Option<Vec<String>>,
    /// The command, where it was started here.
    pub(crate) command: Option<Vec<String>>,
    /// For how long it was watched, in nanoseconds.
    pub(crate) watched_ns: u64,
    /// Its threads at the last look, of a program that is traced those of the process whose memory
    /// is watched; absent where it ended before any.
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
    pub(crate) counted_by: CountSource,
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

/// Share of the CPU time from which on a process's working set is taken for that of all of a program.
pub(super) const MOSTLY_OWN: f64 = 0.9;

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
    /// To watch the process that does the work, where it is known which that is.
    Child(Option<u32>),
}
