//! `sensitivity`: a program does its work, alone or beside a neighbour that preempts it again and
//! again.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MeasureUnit, TrialMeasure};
use crate::bounds::{MAX_DURATION_NS, check_within};
use crate::experiment::named;
use crate::machine::MAX_CPUS;
use crate::words;

/// Neighbour of the program.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NeighbourKind {
    /// No neighbour: the program is alone.
    Nobody,
    /// Everything that a preemption brings with it, without the preemption: a timer that interrupts
    /// the program's CPU, and a process that wakes as often on another CPU.
    Elsewhere,
    /// A process that preempts the program.
    Preempts,
}

named!(NeighbourKind, "neighbour", Nobody => "nobody", Elsewhere => "elsewhere",
    Preempts => "preempts");

/// Source of a running process's progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressSource {
    /// The number that a shell command prints, which grows.
    Printed(String),
    /// The bytes of a file that grows.
    File(String),
    /// The instructions that it has run in user space, where the machine counts them.
    Instructions,
}

/// Program that is preempted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandSubject {
    /// A command, from its start to its end; its words, the program first.
    Command(Vec<String>),
    /// A program that runs already, for a while: a process, or several.
    Process {
        /// Process id, or that of the first process.
        pid: i32,
        /// Process ids of the others that were asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<i32>,
        /// Tells whether their descendants are part of the program.
        #[serde(default, skip_serializing_if = "is_false")]
        has_children: bool,
        /// Time for which it is watched for a sample, in nanoseconds.
        window_ns: u64,
        /// Source of its progress meanwhile.
        progress: ProgressSource,
    },
}

impl CommandSubject {
    /// Returns the processes of a running program that were asked for; none of a command.
    pub fn pids(&self) -> Vec<i32> {
        match self {
            Self::Command(_) => Vec::new(),
            Self::Process { pid, others, .. } => {
                let mut pids = vec![*pid];
                pids.extend(others);
                pids
            }
        }
    }
}

/// An executable file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executable {
    /// Path, with links resolved.
    pub path: String,
    /// The identity that its linker gave it (NT_GNU_BUILD_ID), in hexadecimal digits.
    pub build_id: Option<String>,
}

/// A program beside a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CommandTrial")]
pub struct CommandTrial {
    /// Program that is preempted.
    pub subject: CommandSubject,
    /// Executable file of the program, as far as it was found.
    pub executable: Option<Executable>,
    /// CPUs on which it may run. A neighbour that preempts is on each of them.
    pub cpus: Vec<u32>,
    /// Neighbour of the program.
    pub neighbour: NeighbourKind,
    /// Wake-ups of the neighbour a second, on average; 0 without a neighbour.
    pub rate_hz: u32,
    /// Bytes that the neighbour writes to whenever it wakes, a cache line at a time.
    pub bytes: u64,
    /// Time for which the neighbour stays whenever it wakes, in nanoseconds, going through its
    /// bytes again and again; 0 where it goes through them once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stays_ns: u64,
    /// The CPU of a neighbour elsewhere; absent where the program may use no other.
    pub away: Option<u32>,
    /// Tells whether a timer interrupts the program's CPUs where the neighbour is elsewhere.
    pub timer: bool,
}

/// Most wake-ups a second: more would leave the program hardly any time.
pub const MAX_WAKE_HZ: u32 = 20_000;
/// Longest time that a neighbour may stay, in nanoseconds: the slice of SCHED_RR, which is longer
/// than others.
pub const MAX_STAY_NS: u64 = 100_000_000;
/// Most time of a second that neighbours which stay may take of a CPU, in nanoseconds.
const MAX_STAY_NS_PER_S: u64 = 900_000_000;
/// Most processes of a program that are named one by one.
const MAX_PROCESSES: usize = 1 << 16;
/// Most words of a command.
const MAX_COMMAND_WORDS: usize = 1 << 16;
/// Measurements of the program alone in a round: all others are compared with them.
pub const REPEATS_ALONE: u32 = 3;
/// Least wake-ups a second with which the program is measured once a round: one run beside a
/// neighbour that wakes less often has few preemptions.
const MAX_SELDOM_HZ: u32 = 1000;
const REPEATS_SELDOM: u32 = 2;

impl CommandTrial {
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.subject {
            CommandSubject::Command(words) => {
                check_within("words of the command", words.len(), 1..=MAX_COMMAND_WORDS)?;
            }
            CommandSubject::Process { pid, others, window_ns, .. } => {
                check_within("processes", others.len(), 0..=MAX_PROCESSES)?;
                for pid in others {
                    check_within("pid", *pid, 1..=i32::MAX)?;
                }
                check_within("pid", *pid, 1..=i32::MAX)?;
                check_within("window_ns", *window_ns, 1..=MAX_DURATION_NS)?;
            }
        }
        check_within("CPUs of the command", self.cpus.len(), 1..=MAX_CPUS as usize)?;
        for cpu in self.cpus.iter().chain(&self.away) {
            check_within("CPU", *cpu, 0..=MAX_CPUS - 1)?;
        }
        check_within("stays_ns", self.stays_ns, 0..=MAX_STAY_NS)?;
        let stayed_ns = self.stays_ns * u64::from(self.rate_hz.min(MAX_WAKE_HZ));
        check_within("stays_ns in a second", stayed_ns, 0..=MAX_STAY_NS_PER_S)?;
        check_within("rate_hz", self.rate_hz, 0..=MAX_WAKE_HZ)
    }

    /// Returns how often a second the CPU's speed is looked at.
    pub fn looks_hz(&self) -> u32 {
        match self.subject {
            CommandSubject::Command(_) => LOOKS_HZ,
            CommandSubject::Process { .. } => PROCESS_LOOKS_HZ,
        }
    }

    /// Returns how many times the case is measured in a round.
    pub fn times(&self) -> u32 {
        match self.neighbour {
            NeighbourKind::Nobody => REPEATS_ALONE,
            NeighbourKind::Preempts if self.rate_hz < MAX_SELDOM_HZ => REPEATS_SELDOM,
            NeighbourKind::Preempts | NeighbourKind::Elsewhere => 1,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

/// Describes a neighbour: `a neighbour of 1 MiB that stays for 4 ms`, where `whose` is `a
/// neighbour`.
pub fn neighbour_words(whose: &str, bytes: u64, stays_ns: u64) -> String {
    let neighbour = match bytes {
        0 => format!("{whose} without memory"),
        bytes => format!("{whose} of {}", words::bytes(bytes)),
    };
    match stays_ns {
        0 => neighbour,
        ns => format!("{neighbour} that stays for {}", words::time(ns as f64)),
    }
}

impl fmt::Display for CommandTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate_hz;
        match self.neighbour {
            NeighbourKind::Nobody => f.write_str("alone"),
            NeighbourKind::Elsewhere => write!(f, "timer and neighbour elsewhere, {rate} a second"),
            NeighbourKind::Preempts => {
                write!(
                    f,
                    "{}, {rate} a second",
                    neighbour_words("neighbour", self.bytes, self.stays_ns)
                )
            }
        }
    }
}

/// Tally: CPU time of each run of the command, with the children that it waited for (getrusage(2),
/// user and system); of a process that of a window. In nanoseconds.
pub const CPU_NS: &str = "cpu_ns";
/// Tally: time of each run from its start to its end, or of the window, in nanoseconds.
pub const REAL_NS: &str = "real_ns";
/// Count: what was done: runs of a command, or what a process's progress is counted in.
pub const DONE: &str = "done";
/// Count: involuntary switches of the program.
pub const PREEMPTIONS: &str = "preemptions";
/// Count: voluntary ones.
pub const WAITS: &str = "waits";
/// Count: how often the neighbours woke.
pub const WAKES: &str = "wakes";
/// Looks a second at the speed of the program's CPU: by its neighbour, and where none wakes as
/// often by a process that does nothing else, and preempts the program for it.
pub const LOOKS_HZ: u32 = 500;
/// Like [`LOOKS_HZ`], for a running process that others may rely on.
pub const PROCESS_LOOKS_HZ: u32 = 50;
/// Count: how often the program was preempted for such a look alone.
pub const LOOKS: &str = "looks";
/// Tally: the latency quantum at each look, in nanoseconds.
pub const LATENCY_QUANTUM_NS: &str = "latency_quantum_ns";
/// Tally: the throughput quantum over the latency quantum at each look, in thousandths: more on a
/// core that is shared.
pub const QUANTUM_RATIO: &str = "quantum_ratio_thousandths";
/// Count: how often the timer has interrupted the program: its CPU time over the timer's period.
pub const TIMER_INTERRUPTS: &str = "timer_interrupts";

/// CPU time and elapsed time of the program.
pub(super) const MEASURES: [TrialMeasure; 2] = [
    TrialMeasure::new(CPU_NS, "CPU ns", CPU_NS, MeasureUnit::Ns, |sample| sample.median(CPU_NS))
        .that_waits(),
    TrialMeasure::new(REAL_NS, "real ns", REAL_NS, MeasureUnit::Ns, |sample| {
        sample.median(REAL_NS)
    })
    .that_waits(),
];
