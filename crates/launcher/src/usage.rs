//! One run of a command, as the kernel counted it.

use std::fmt;

use probe::command::ChildEnd;
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fields of getrusage(2) that Linux keeps. Of a process that has ended: of all its threads and
/// of the children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// User time in nanoseconds, in steps of a microsecond (ru_utime).
    pub user_ns: u64,
    /// System time in nanoseconds, in steps of a microsecond (ru_stime).
    pub system_ns: u64,
    /// Greatest resident memory of any one of them in bytes (ru_maxrss).
    pub max_resident_bytes: u64,
    /// Page faults served without input or output (ru_minflt).
    pub minor_faults: u64,
    /// Page faults that waited for input (ru_majflt).
    pub major_faults: u64,
    /// Input in blocks of 512 bytes (ru_inblock).
    pub input_blocks: u64,
    /// Output in blocks of 512 bytes (ru_oublock).
    pub output_blocks: u64,
    /// Voluntary switches (ru_nvcsw).
    pub voluntary: u64,
    /// Involuntary switches (ru_nivcsw).
    pub involuntary: u64,
}

impl From<&ChildEnd> for Usage {
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

impl Usage {
    /// User and system time in nanoseconds: by the scheduler's precise sum, whatever the split is.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// Both together: sums, of the resident memory the greater one.
    pub fn and(&self, other: &Self) -> Self {
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

/// How a command ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// By a signal.
    Killed {
        /// Which.
        signal: u8,
        /// Whether its memory was written to a file.
        core_dumped: bool,
    },
}

impl Ending {
    /// From a wait status (wait(2)): the exit code is in the second byte, a signal in the low seven
    /// bits, 0x80 says that there is a core file.
    pub fn of_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Exited { code: (status >> 8 & 0xff) as u8 },
            signal => Self::Killed { signal: signal as u8, core_dumped: status & 0x80 != 0 },
        }
    }

    /// The exit code; the error is the signal that killed it.
    pub fn code(self) -> Result<u8, u8> {
        match self {
            Self::Exited { code } => Ok(code),
            Self::Killed { signal, .. } => Err(signal),
        }
    }

    /// The exit code by which a shell tells of it.
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

/// What a command already had when its own program began: starting it is not free, and the
/// kernel counts it as the command's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtExec {
    /// Resident memory in bytes: `max_resident_bytes` cannot fall below it.
    pub resident_bytes: u64,
    /// Page faults.
    pub minor_faults: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
}

/// User and system time of the command's own threads as the timer tick sampled them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// User time in nanoseconds.
    pub user_ns: u64,
    /// User and system time in nanoseconds.
    pub both_ns: u64,
}

/// Time for which threads could have run and waited for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// In nanoseconds, over the threads below.
    pub run_delay_ns: u64,
    /// CPU time in nanoseconds of the threads that it covers: the first one, which is read at its
    /// end, and others as they were last seen. Less than the command's own CPU time where threads
    /// came and went unseen.
    pub covered_cpu_ns: u64,
}

/// Bytes read and written, as proc_pid_io(5) counts them: of all threads and of the children that
/// were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoBytes {
    /// By read(2) and its like, from the page cache, pipes and terminals too (rchar).
    pub read_call_bytes: u64,
    /// By write(2) and its like (wchar).
    pub write_call_bytes: u64,
    /// Fetched from storage (read_bytes).
    pub storage_read_bytes: u64,
    /// Sent towards storage (write_bytes).
    pub storage_write_bytes: u64,
    /// Of these, never written, as their pages were dropped before (cancelled_write_bytes).
    pub cancelled_write_bytes: u64,
}

/// Threads of the command itself as it was looked at from time to time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threads {
    /// Most threads seen at once: the true peak is this or more.
    pub peak_seen: u32,
    /// How often was looked.
    pub looks: u32,
}

/// Descendants that outlived their parent, so that the command did not wait for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Orphans {
    /// Those that had ended.
    pub ended: u32,
    /// What they and the children that they had waited for used; only with `--tree`.
    pub usage: Option<Usage>,
    /// Those that had ended while processes of an earlier run were still there: of which run they
    /// were is not known, and they are counted nowhere.
    #[serde(default)]
    pub of_unknown_origin: u32,
    /// Process ids of those that were still there: left as they are, and counted nowhere.
    pub left_behind: Reading<Vec<u32>>,
}

/// What one run of a command used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// Time by the clock from the start to the end, in nanoseconds.
    pub real_ns: u64,
    /// How it ended.
    pub ending: Ending,
    /// What the kernel hands to whoever waits for it (wait4(2)).
    pub usage: Usage,
    /// CPU time of its own threads alone in nanoseconds, by the scheduler's sum.
    pub own_cpu_ns: Reading<u64>,
    /// The same as the tick sampled it.
    pub sampled: Reading<Sampled>,
    /// Run delay.
    pub delay: Reading<Delay>,
    /// Moves of its first thread to another CPU.
    pub migrations: Reading<u64>,
    /// Bytes read and written.
    pub io: Reading<IoBytes>,
    /// Its threads.
    pub threads: Reading<Threads>,
    /// Descendants that it did not wait for.
    pub orphans: Orphans,
    /// What it had when its own program began.
    pub at_exec: AtExec,
    /// Whether it asked to be traced by whoever started it (PTRACE_TRACEME), and was let go.
    #[serde(default)]
    pub asked_to_be_traced: bool,
}

impl Used {
    /// All that was counted: the command's, with `--tree` its orphans' too.
    pub fn total(&self) -> Usage {
        self.orphans.usage.map_or(self.usage, |orphans| self.usage.and(&orphans))
    }
}

/// A run of one of the commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Which command, from 0.
    pub command: usize,
    /// Round, from 0: with two commands each has one run in every round.
    pub round: u32,
    /// Whether somebody asked to stop while it ran: it is printed, and left out of all statistics
    /// where there are others.
    pub interrupted: bool,
    /// The last signal by which they asked.
    #[serde(default)]
    pub signal: Option<u8>,
    /// What it used.
    #[serde(flatten)]
    pub used: Used,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_read_as_wait_2_says() {
        let code = |status| Ending::of_status(status).shell_code();
        assert_eq!((code(0), code(7 << 8), code(255 << 8)), (0, 7, 255));
        assert_eq!((code(2), code(9), code(11 | 0x80)), (130, 137, 139));
        let core = Ending::Killed { signal: 11, core_dumped: true };
        assert_eq!(Ending::of_status(11 | 0x80), core);
        assert_eq!(core.to_string(), "killed by signal 11, core dumped");
    }

    #[test]
    fn sums_add_and_the_greatest_resident_memory_stays() {
        let a = Usage { user_ns: 1, max_resident_bytes: 10, voluntary: 2, ..Usage::default() };
        let b = Usage { user_ns: 4, max_resident_bytes: 7, voluntary: 3, ..Usage::default() };
        let both = a.and(&b);
        assert_eq!((both.user_ns, both.max_resident_bytes, both.voluntary), (5, 10, 5));
    }
}
