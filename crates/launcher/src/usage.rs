//! The resources that one run of a command used, as the kernel counted them.

use std::fmt;

use probe::command::ChildEnd;
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fields of getrusage(2) that Linux keeps, for a process that has ended: all its threads and the
/// children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUsage {
    /// User time in nanoseconds, in steps of a microsecond (ru_utime).
    pub user_ns: u64,
    /// System time in nanoseconds, in steps of a microsecond (ru_stime).
    pub system_ns: u64,
    /// Greatest resident memory of any one of these processes in bytes (ru_maxrss).
    pub max_resident_bytes: u64,
    /// Number of page faults served without input or output (ru_minflt).
    pub minor_faults: u64,
    /// Number of page faults that waited for input (ru_majflt).
    pub major_faults: u64,
    /// Input in blocks of 512 bytes (ru_inblock).
    pub input_blocks: u64,
    /// Output in blocks of 512 bytes (ru_oublock).
    pub output_blocks: u64,
    /// Number of voluntary switches (ru_nvcsw).
    pub voluntary: u64,
    /// Number of involuntary switches (ru_nivcsw).
    pub involuntary: u64,
}

impl From<&ChildEnd> for ProcessUsage {
    fn from(end: &ChildEnd) -> Self {
        let (used, raw) = (&end.usage, &end.usage.0);
        Self {
            user_ns: used.user_ns(),
            system_ns: used.system_ns(),
            max_resident_bytes: used.max_resident_bytes(),
            minor_faults: used.minor_faults(),
            major_faults: raw.ru_majflt as u64,
            input_blocks: raw.ru_inblock as u64,
            output_blocks: raw.ru_oublock as u64,
            voluntary: raw.ru_nvcsw as u64,
            involuntary: raw.ru_nivcsw as u64,
        }
    }
}

impl ProcessUsage {
    /// Returns user and system time in nanoseconds. Their sum is the scheduler's, which is precise, unlike
    /// the split.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// Adds two usages; takes the greater resident memory.
    pub fn add(&self, other: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
            max_resident_bytes: self.max_resident_bytes.max(other.max_resident_bytes),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            input_blocks: self.input_blocks.saturating_add(other.input_blocks),
            output_blocks: self.output_blocks.saturating_add(other.output_blocks),
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
        }
    }
}

/// The way in which a command ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited.
    Exited {
        /// The exit code.
        code: u8,
    },
    /// A signal killed it.
    Killed {
        /// The number of the signal.
        signal: u8,
        /// Whether its memory was written to a file.
        core_dumped: bool,
    },
}

impl Ending {
    /// Decodes a wait status (wait(2)): the exit code is in the second byte, a signal in the low seven
    /// bits, 0x80 means a core file.
    pub fn from_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Exited { code: (status >> 8 & 0xff) as u8 },
            signal => Self::Killed { signal: signal as u8, core_dumped: status & 0x80 != 0 },
        }
    }

    /// Returns the exit code; the error is the signal that killed it.
    pub fn code(self) -> Result<u8, u8> {
        match self {
            Self::Exited { code } => Ok(code),
            Self::Killed { signal, .. } => Err(signal),
        }
    }

    /// Returns the exit code that a shell reports: 128 + the signal for a killed command.
    pub fn shell_code(self) -> u8 {
        self.code().unwrap_or_else(|signal| 128 + signal)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Killed { signal, core_dumped } => {
                let core = if *core_dumped { ", core dumped" } else { "" };
                write!(f, "killed by signal {signal}{core}")
            }
        }
    }
}

/// The usage of a command's process when its own program began (execve): the kernel counts the start
/// as the command's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecBaseline {
    /// Resident memory in bytes: `max_resident_bytes` cannot fall below it.
    pub resident_bytes: u64,
    /// Number of page faults.
    pub minor_faults: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
}

/// User and system time of the command's own threads as the timer tick sampled them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledTimes {
    /// User time in nanoseconds.
    pub user_ns: u64,
    /// User and system time in nanoseconds.
    pub both_ns: u64,
}

/// Time for which threads could have run and waited for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunDelay {
    /// Nanoseconds of waiting, over the threads below.
    pub run_delay_ns: u64,
    /// CPU time in nanoseconds of the threads that the delay covers: the first one, which is read at
    /// its end, and others as they were last seen. It is less than the command's own CPU time if
    /// threads came and went unseen.
    pub covered_cpu_ns: u64,
}

/// Bytes read and written, as proc_pid_io(5) counts them for all threads and for the children that
/// were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoBytes {
    /// Bytes read by read(2) and similar calls, also from the page cache, pipes and terminals (rchar).
    pub read_call_bytes: u64,
    /// Bytes written by write(2) and similar calls (wchar).
    pub write_call_bytes: u64,
    /// Bytes fetched from storage (read_bytes).
    pub storage_read_bytes: u64,
    /// Bytes sent to storage (write_bytes).
    pub storage_write_bytes: u64,
    /// Bytes of these that were not written, as their pages were dropped first
    /// (cancelled_write_bytes).
    pub cancelled_write_bytes: u64,
}

/// The number of threads of the command itself, which is sampled from time to time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadPeak {
    /// Greatest number of threads seen at once: the true peak is this or more.
    pub peak_seen: u32,
    /// Number of samples.
    pub looks: u32,
}

/// Counts of descendants that outlived their parent, so that the command did not wait for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrphanCounts {
    /// Number of those that had ended.
    pub ended: u32,
    /// Usage of these and of the children that they had waited for; only with `--tree`.
    pub usage: Option<ProcessUsage>,
    /// Number of those that had ended while processes of an earlier run still existed: they may belong
    /// to either run, and are counted in neither.
    #[serde(default)]
    pub of_unknown_origin: u32,
    /// Process ids of those that still existed: they go on, and are not counted.
    pub left_behind: Reading<Vec<u32>>,
}

/// The usage of one run of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Time by the clock from the start to the end, in nanoseconds.
    pub real_ns: u64,
    /// The way in which it ended.
    pub ending: Ending,
    /// The usage that the kernel reports to its parent (wait4(2)).
    pub usage: ProcessUsage,
    /// CPU time of its own threads alone in nanoseconds, by the scheduler's sum.
    pub own_cpu_ns: Reading<u64>,
    /// CPU time of its own threads as the timer tick sampled it.
    pub sampled: Reading<SampledTimes>,
    /// Time that its threads waited for a CPU.
    pub delay: Reading<RunDelay>,
    /// Number of moves of its first thread to another CPU.
    pub migrations: Reading<u64>,
    /// Bytes read and written.
    pub io: Reading<IoBytes>,
    /// Peak of its number of threads.
    pub threads: Reading<ThreadPeak>,
    /// Descendants that it did not wait for.
    pub orphans: OrphanCounts,
    /// Usage of its process when its own program began.
    pub at_exec: ExecBaseline,
    /// Whether it asked its parent to trace it (PTRACE_TRACEME), and was released.
    #[serde(default)]
    pub asked_to_be_traced: bool,
}

impl RunUsage {
    /// Returns the usage of the command, with `--tree` including its orphans.
    pub fn total(&self) -> ProcessUsage {
        match &self.orphans.usage {
            Some(orphans) => self.usage.add(orphans),
            None => self.usage,
        }
    }
}

/// A run of one of the commands of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Number of the command, from 0.
    pub command: usize,
    /// Number of the round, from 0: each command has one run in every round.
    pub round: u32,
    /// Whether a signal asked to stop while it ran: it is printed, and left out of all statistics if
    /// there are other runs.
    pub interrupted: bool,
    /// The last signal that asked to stop.
    #[serde(default)]
    pub signal: Option<u8>,
    /// The usage of the run.
    #[serde(flatten)]
    pub used: RunUsage,
}

/// A run of the warm-up that failed; its figures are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedWarmup {
    /// Number of the command, from 0.
    pub command: usize,
    /// Number of the round in the warm-up, from 0.
    pub round: u32,
    /// How it ended.
    pub ending: Ending,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_read_as_wait_2_says() {
        let code = |status| Ending::from_status(status).shell_code();
        assert_eq!((code(0), code(7 << 8), code(255 << 8)), (0, 7, 255));
        assert_eq!((code(2), code(9), code(11 | 0x80)), (130, 137, 139));
        let core = Ending::Killed { signal: 11, core_dumped: true };
        assert_eq!(Ending::from_status(11 | 0x80), core);
        assert_eq!(core.to_string(), "killed by signal 11, core dumped");
    }

    #[test]
    fn sums_add_and_the_greatest_resident_memory_stays() {
        let a = ProcessUsage {
            user_ns: 1,
            max_resident_bytes: 10,
            voluntary: 2,
            ..ProcessUsage::default()
        };
        let b = ProcessUsage {
            user_ns: 4,
            max_resident_bytes: 7,
            voluntary: 3,
            ..ProcessUsage::default()
        };
        let both = a.add(&b);
        assert_eq!((both.user_ns, both.max_resident_bytes, both.voluntary), (5, 10, 5));
    }
}
