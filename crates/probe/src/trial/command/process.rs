//! A process that runs already: what it used, and what it has done meanwhile.

use std::path::Path;
use std::process::{self as programs, Stdio};
use std::time::Duration;
use std::{fs, thread};

use model::trial::command::Progress;

use super::super::harness::TrialError;
use super::Taken;
use crate::program::{Count, WatchError, Watched};
use crate::sys::{TaskInstructions, monotonic_raw_ns, that_ends_with_us};

/// How often a command may fail to print a number.
const MOST_TRIES: usize = 5;

/// What a process has done so far.
enum Counter {
    /// What a shell command prints.
    Printed(String),
    /// The size of a file.
    File(String),
    /// Events of all its threads.
    Instructions(Vec<TaskInstructions>),
}

impl Counter {
    fn of(process: &Watched, progress: &Progress) -> Result<Self, String> {
        Ok(match progress {
            Progress::Printed(command) => Self::Printed(command.clone()),
            Progress::File(path) => Self::File(path.clone()),
            Progress::Instructions => {
                let tids = process.tasks().map_err(|error| error.to_string())?;
                let events = tids.iter().map(|tid| TaskInstructions::open(*tid));
                Self::Instructions(events.collect::<Result<_, _>>().map_err(|errno| {
                    format!("the instructions of the process cannot be counted: perf_event_open: {errno}")
                })?)
            }
        })
    }

    fn read(&self) -> Result<i64, String> {
        match self {
            // A file that is being written may be empty for a moment.
            Self::Printed(command) => (1..MOST_TRIES)
                .find_map(|_| printed(command).ok())
                .map_or_else(|| printed(command), Ok),
            Self::File(path) => {
                let found = fs::metadata(path).map_err(|error| format!("{path}: {error}"))?;
                Ok(i64::try_from(found.len()).unwrap_or(i64::MAX))
            }
            Self::Instructions(events) => events
                .iter()
                .map(|event| event.read().map_err(|errno| format!("read of a perf event: {errno}")))
                .sum::<Result<i64, String>>(),
        }
    }
}

/// The number that a shell command prints: the first word of its output.
fn printed(command: &str) -> Result<i64, String> {
    let failed = |why: String| format!("--progress '{command}': {why}");
    let mut shell = programs::Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::null());
    that_ends_with_us(&mut shell);
    let output = shell.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("it failed: {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse().map_err(|_| {
        failed(format!("accepted is a whole number as the first word of its output, not {word:?}"))
    })
}

/// Looks at the process for a window.
pub(super) fn look(pid: i32, window_ns: u64, progress: &Progress) -> Result<Taken, TrialError> {
    let gone = |error: WatchError| TrialError(format!("process {pid}: {error}"));
    let process = Watched::find(Path::new("/"), pid).map_err(gone)?;
    let counter = Counter::of(&process, progress).map_err(TrialError)?;
    let mut count = Count::default();
    // What is asked first is asked first again: the window is the same for all.
    let done_before = counter.read().map_err(TrialError)?;
    let (start_ns, cpu_before) = (monotonic_raw_ns(), process.cpu_ns().map_err(gone)?);
    process.look(&mut count).map_err(gone)?;
    let before = count.switches();
    thread::sleep(Duration::from_nanos(window_ns));
    let done = counter.read().map_err(TrialError)?.saturating_sub(done_before);
    let (end_ns, cpu) = (monotonic_raw_ns(), process.cpu_ns().map_err(gone)?);
    process.look(&mut count).map_err(gone)?;
    let after = count.switches();
    let more =
        |after: u64, before: u64| i64::try_from(after.saturating_sub(before)).unwrap_or(i64::MAX);
    Ok(Taken {
        runs: vec![[cpu.saturating_sub(cpu_before), end_ns - start_ns]],
        done,
        preemptions: more(after.involuntary, before.involuntary),
        waits: more(after.voluntary, before.voluntary),
    })
}

/// Whether all of that can be asked.
pub(super) fn check(pid: i32, progress: &Progress) -> Result<(), String> {
    let words = |error: WatchError| error.to_string();
    let process = Watched::find(Path::new("/"), pid).map_err(words)?;
    process.cpu_ns().map_err(words)?;
    Counter::of(&process, progress)?.read().map(drop)
}
