//! `switchcost sensitivity`: what a preemption costs a program, measured on the program itself.
//!
//! A neighbour with a higher priority wakes some thousand times a second on the program's CPU. The
//! program runs alone and beside neighbours in the same round. An example of a program that takes 1 s
//! of CPU time:
//!
//! ```text
//!                                  CPU time
//! alone                             1.000 s
//! timer, neighbour on another CPU   1.006 s     6 ms / 12,000 interrupts  = 0.5 us
//! neighbour without memory          1.008 s     8 ms / 4,000 preemptions  =  2 us, less 0.5 us
//! neighbour of 1 MiB                1.056 s    56 ms / 4,000 preemptions  = 14 us, less 0.5 us
//! ```
//!
//! A neighbour without memory takes the direct cost of a switch from the program; one with memory
//! also replaces lines of its caches. The interrupt of the timer that wakes the neighbour is no part
//! of a switch, and is subtracted.
//!
//! This file has the arguments.

pub(crate) mod answer;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use rundata::ring::Policy;
use rundata::trial::command::{MAX_STAY_NS, MAX_WAKE_HZ};

use crate::base::values::{List, byte_sizes, duration, policy, whole};
use crate::engine::effort::Effort;
use crate::observe::processes::{ProcessName, process_names};
use crate::report::output::OutputOptions;

/// Fewest wake-ups a second: half of them are measured, too.
const MIN_RATE_HZ: u32 = 2;

/// Parses the time that a neighbour stays.
fn stay(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_nanos(MAX_STAY_NS);
    let stay = duration(text)?;
    if stay > longest {
        return Err(format!(
            "{stay:?}: a neighbour would keep the CPU (accepted: up to {longest:?})"
        ));
    }
    Ok(stay)
}

#[derive(Debug, Args)]
pub(crate) struct SensitivityArgs {
    /// Memory that the neighbour writes to whenever it wakes [default: none, and sizes about this
    /// machine's caches]
    ///
    /// 0 is a neighbour that uses nothing; it is always measured.
    #[arg(long, value_name = "BYTES,...", value_parser = byte_sizes)]
    pub(crate) neighbour: Option<List<u64>>,

    /// How often a neighbour wakes in a second, on average; this and half of it are measured
    ///
    /// Neighbours with much memory wake less often: one takes at most some 40 % of the CPU. Beside
    /// the process of --pid it takes at most 0.8 %, and what it costs that process is assumed to be
    /// as much.
    #[arg(long, value_name = "COUNT", default_value = "4000", value_parser = whole(MIN_RATE_HZ..=MAX_WAKE_HZ))]
    pub(crate) rate: u32,

    /// How long a neighbour runs each time it wakes, like other tasks that take a time slice of
    /// some milliseconds [default: once through its bytes]
    ///
    /// It goes through its bytes again and again, at least once. The longer the program is off the
    /// CPU, the more of its caches are replaced. But a neighbour that runs longer wakes less often,
    /// so that the run takes longer for the same precision. A neighbour that uses no memory and
    /// sleeps at once is always measured, too. Needs SCHED_FIFO.
    #[arg(long, value_name = "TIME", value_parser = stay, conflicts_with = "running")]
    pub(crate) stay: Option<Duration>,

    /// The CPUs that the command may run on, with a neighbour on each [default: one away from CPU 0
    /// and from this program]
    #[arg(long, aliases = ["cpu", "placement"], value_name = "CPU,...", value_delimiter = ',')]
    pub(crate) cpus: Vec<u32>,

    /// Scheduling policy of the command: other only
    ///
    /// Neighbours preempt it under SCHED_FIFO, as tasks that a program cannot keep away do. A
    /// command under a real-time policy itself would not be preempted by other programs, and what
    /// it waits for might never run; under batch it is preempted as under other.
    #[arg(long, value_parser = policy)]
    pub(crate) policy: Option<Policy>,

    /// A running program with its children, instead of a command: process ids and names (812,nginx)
    ///
    /// The program is preempted in some windows of half a second and not in others (needs
    /// --inject). It has to do the same all the time. Neither its CPUs nor its priority are
    /// changed. Its children and threads are part of it; short-lived ones count only if they live
    /// for a whole window.
    #[arg(long, short, value_name = "PID|NAME,...", value_parser = process_names, group = "running", conflicts_with = "command", requires = "inject")]
    pub(crate) pid: Option<List<ProcessName>>,

    /// Like --pid, for all processes of a control group: nginx.service
    #[arg(
        long,
        value_name = "UNIT|PATH",
        group = "running",
        conflicts_with = "command",
        requires = "inject"
    )]
    pub(crate) cgroup: Option<String>,

    /// With --pid and --cgroup: only these processes, without their children
    #[arg(long, hide_short_help = true, requires = "running")]
    pub(crate) no_children: bool,

    /// Allow slowing the program of --pid or --cgroup by 1 to 2 %
    #[arg(long, requires = "running")]
    pub(crate) inject: bool,

    /// A shell command that prints how much the running program has done so far, as a whole number
    /// that grows [default: its instructions, if the machine counts them]
    ///
    /// For a server, the requests that it has answered: of redis-server `redis-cli info stats | grep
    /// -Eo 'commands_processed:[0-9]+' | cut -d: -f2`.
    #[arg(long, value_name = "CMD", requires = "running")]
    pub(crate) progress: Option<String>,

    /// A file that grows with what the program has done; its size counts
    #[arg(long, value_name = "FILE", requires = "running", conflicts_with = "progress")]
    pub(crate) progress_file: Option<String>,

    /// The command and its arguments; it has to do the same in every run, and its streams are
    /// /dev/null
    #[arg(last = true, required_unless_present = "running", value_name = "CMD")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) effort: Effort<120>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
