//! `trace`: the switches of a program or of the machine, added up over parts of a second or more.
//!
//! A part is a sample, its round the number of the part. Lengths of time are tallies by bins: 300
//! waits from 2,048 to 2,303 ns are `[2048, 300]` in `wait_ns`, and `bins_ns` of the case says where
//! the next bin begins. So tallies and counts of parts, and of traces, add up.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MeasureUnit, TrialMeasure};
use crate::bounds::{MAX_DURATION_NS, check_within};
use crate::experiment::named;

/// The tasks whose switches are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TracedTasks {
    /// All tasks of the machine.
    Machine,
    /// Processes that ran already.
    Processes,
    /// A command that was started for it, with all that it starts.
    Command,
}

named!(TracedTasks, "set of traced tasks", Machine => "machine", Processes => "processes",
    Command => "command");

/// A trace of switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchTrace {
    /// The tasks whose switches are counted.
    pub tasks: TracedTasks,
    /// Words of the command as they are stored; empty for other tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Lower ends of the bins of `wait_ns` in nanoseconds, ascending; the last has no upper end. Those
    /// of `run_ns` are among them, one an octave.
    pub bins_ns: Vec<u64>,
}

/// Most bins of a tally.
const MAX_BINS: usize = 4096;
/// Most words of a stored command.
const MAX_COMMAND_WORDS: usize = 1 << 16;

impl SwitchTrace {
    pub(super) fn check(&self) -> Result<(), String> {
        check_within("words of the command", self.command.len(), 0..=MAX_COMMAND_WORDS)?;
        check_within("bins of a tally", self.bins_ns.len(), 1..=MAX_BINS)?;
        for pair in self.bins_ns.windows(2) {
            check_within(
                "lower end of a bin",
                pair[1],
                pair[0].saturating_add(1)..=MAX_DURATION_NS,
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for SwitchTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = match self.tasks {
            TracedTasks::Machine => "the machine",
            TracedTasks::Processes => "processes",
            TracedTasks::Command => "a command",
        };
        write!(f, "switches of {tasks}")
    }
}

/// Tally: time in the run queue before each burst on a CPU.
pub const WAIT_NS: &str = "wait_ns";
/// Tally: time on a CPU between two switches.
pub const RUN_NS: &str = "run_ns";
/// Count: switches because the task slept.
pub const VOLUNTARY: &str = "voluntary";
/// Count: switches because another task was to run.
pub const PREEMPTED: &str = "preempted";
/// Count: switches by sched_yield(2).
pub const YIELDED: &str = "yielded";
/// Count: moves to another CPU.
pub const MIGRATIONS: &str = "migrations";
/// Count: CPU time in nanoseconds.
pub const CPU_NS: &str = "cpu_ns";
/// Count: switches to a traced task, away from one that could have run on. Absent for the machine.
pub const PREEMPTED_BY_OWN: &str = "preempted_by_own";
/// Count: switches to any other task, away from a traced one that could have run on.
pub const PREEMPTED_BY_OTHERS: &str = "preempted_by_others";
/// Count: switches to the tracer, away from a traced task that could have run on.
pub const PREEMPTED_BY_TRACER: &str = "preempted_by_tracer";

/// Beginning of the name of a count of preemptions by tasks of one name.
const PREEMPTED_BY: &str = "preempted_by:";

/// Most letters of the name of a task: `TASK_COMM_LEN` of Linux.
const MAX_NAME: usize = 16;

/// Returns the name of the count of preemptions by tasks of this name. Of the name it has the first 16
/// letters, and a question mark for each that would not stay on its line: a task may call itself
/// anything (prctl(2), `PR_SET_NAME`).
pub fn preempted_by(name: &str) -> String {
    let mut count = PREEMPTED_BY.to_string();
    for letter in name.chars().take(MAX_NAME) {
        count.push(if moves_text(letter) { '?' } else { letter });
    }
    count
}

/// Returns whether a letter ends a line or changes the direction of writing.
fn moves_text(letter: char) -> bool {
    let is_direction = matches!(letter, '\u{200e}'..='\u{200f}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || is_direction || matches!(letter, '\u{2028}'..='\u{202e}')
}

/// Returns the name of the tasks that a count of preemptions is of; `None` for other counts.
pub fn preempter_of(count: &str) -> Option<&str> {
    count.strip_prefix(PREEMPTED_BY)
}

/// Returns the name of the count of nanoseconds in which a CPU was not idle.
pub fn busy_ns(cpu: u32) -> String {
    format!("cpu_{cpu}_busy_ns")
}

/// Returns whether a count is the busy time of a CPU ([`busy_ns`]).
pub fn is_busy_ns(count: &str) -> bool {
    let number = count.strip_prefix("cpu_").and_then(|rest| rest.strip_suffix("_busy_ns"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Share of the switches that were preemptions.
pub(super) const MEASURES: [TrialMeasure; 1] =
    [TrialMeasure::new("preempted_share", "preempted", "", MeasureUnit::Share, |sample| {
        let preempted = sample.count(PREEMPTED)? as f64;
        let others = sample.count(VOLUNTARY)?.saturating_add(sample.count(YIELDED)?);
        let switches = preempted + others as f64;
        if switches > 0.0 { Some(preempted / switches) } else { None }
    })];
