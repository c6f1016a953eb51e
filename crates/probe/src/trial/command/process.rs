//! A program that runs already, of one or several processes: what it uses, and what it does
//! meanwhile.

use std::path::Path;
use std::process::{self as programs, Stdio};
use std::time::Duration;
use std::{fs, thread};

use rundata::trial::command::ProgressSource;
use rustix::io::Errno;

use super::super::harness::TrialError;
use super::{CommandRuns, RunTimes, to_i64};
use crate::processes::descendants;
use crate::program::{SwitchCounter, SwitchCounts, WatchError, WatchedProcess};
use crate::sys::{TaskInstructions, end_with_this_process, monotonic_raw_ns};

/// Number of times that a command may fail to print a number.
const MAX_TRIES: usize = 5;

/// A process of the program, watched from the beginning of a window on.
struct ProgramProcess {
    process: WatchedProcess,
    /// Instruction counters of all its threads; empty if progress is known by other means.
    events: Vec<TaskInstructions>,
    count: SwitchCounter,
    before: ProcessReading,
}

/// Counts of a process so far.
#[derive(Clone, Copy, Default)]
struct ProcessReading {
    instructions: i64,
    cpu_ns: u64,
    switches: SwitchCounts,
}

impl ProgramProcess {
    /// Opens the instruction counters of a process, if they show its progress.
    fn find(process: WatchedProcess, progress: &ProgressSource) -> Result<Self, String> {
        let tids = match progress {
            ProgressSource::Instructions => process.tasks().map_err(|error| error.to_string())?,
            ProgressSource::Printed(_) | ProgressSource::File(_) => Vec::new(),
        };
        let mut events = Vec::new();
        for tid in tids {
            match TaskInstructions::open(tid) {
                Ok(event) => events.push(event),
                // A thread may end at any time.
                Err(Errno::SRCH) => {}
                Err(errno) => {
                    return Err(format!(
                        "the instructions of the process cannot be counted: perf_event_open: \
                         {errno}"
                    ));
                }
            }
        }
        Ok(Self {
            process,
            events,
            count: SwitchCounter::default(),
            before: ProcessReading::default(),
        })
    }

    /// Reads the counts of the process so far.
    fn read(&mut self) -> Result<ProcessReading, WatchError> {
        let mut instructions = 0;
        for event in &self.events {
            instructions += event
                .read()
                .map_err(|errno| WatchError::Other(format!("read of a perf event: {errno}")))?;
        }
        let cpu_ns = self.process.cpu_ns()?;
        self.process.look(&mut self.count)?;
        Ok(ProcessReading { instructions, cpu_ns, switches: self.count.switches() })
    }
}

/// Finds the processes of a program that live now, without this program: the one that started it
/// may be measured.
///
/// # Errors
/// If none of the processes in `subject` lives, or one of them cannot be watched.
fn find_processes(
    subject: &[i32],
    has_children: bool,
    progress: &ProgressSource,
) -> Result<Vec<ProgramProcess>, String> {
    let root = Path::new("/");
    let mut found = Vec::new();
    let mut ended = None;
    for pid in subject {
        match WatchedProcess::find(root, *pid) {
            Ok(process) => found.push(process),
            Err(error) if error.is_end() => ended = Some(format!("process {pid}: {error}")),
            Err(error) => return Err(format!("process {pid}: {error}")),
        }
    }
    if found.is_empty() {
        if let Some(why) = ended {
            return Err(why);
        }
    }
    if has_children {
        for pid in descendants(root, subject) {
            if !runs_this_program(pid) {
                found.extend(WatchedProcess::find(root, pid).ok());
            }
        }
    }
    let mut processes = Vec::new();
    for process in found {
        let pid = process.pid();
        match ProgramProcess::find(process, progress) {
            Ok(program_process) => processes.push(program_process),
            // A process may end at any time.
            Err(_) if WatchedProcess::find(root, pid).is_err_and(|error| error.is_end()) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(processes)
}

/// Reads the counts of a process; `None` if it has ended.
fn read_if_alive(process: &mut ProgramProcess) -> Result<Option<ProcessReading>, String> {
    match process.read() {
        Ok(reading) => Ok(Some(reading)),
        Err(error) if error.is_end() => Ok(None),
        Err(error) => Err(format!("process {}: {error}", process.process.pid())),
    }
}

/// Returns whether a process runs the same file as this one.
fn runs_this_program(pid: i32) -> bool {
    let own_file = fs::read_link("/proc/self/exe").ok();
    own_file.is_some() && fs::read_link(format!("/proc/{pid}/exe")).ok() == own_file
}

/// Reads the progress of the whole program, if its user has said how; else 0.
fn read_progress(progress: &ProgressSource) -> Result<i64, String> {
    match progress {
        ProgressSource::Instructions => Ok(0),
        ProgressSource::Printed(command) => {
            for _ in 1..MAX_TRIES {
                // A file that is being written may be empty for a moment.
                if let Ok(number) = printed_number(command) {
                    return Ok(number);
                }
            }
            printed_number(command)
        }
        ProgressSource::File(path) => {
            let found = fs::metadata(path).map_err(|error| format!("{path}: {error}"))?;
            Ok(i64::try_from(found.len()).unwrap_or(i64::MAX))
        }
    }
}

/// Runs a shell command; returns the number that it prints as the first word of its output.
fn printed_number(command: &str) -> Result<i64, String> {
    first_number(command).map_err(|why| format!("--progress '{command}': {why}"))
}

/// Runs a shell command and parses the first word of its output.
fn first_number(command: &str) -> Result<i64, String> {
    let mut shell = programs::Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::null());
    end_with_this_process(&mut shell);
    let output = shell.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("it failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse().map_err(|_| {
        format!("accepted is a whole number as the first word of its output, not {word:?}")
    })
}

/// Watches the program for a window: its processes that live from the beginning to the end.
pub(super) fn watch(
    subject: &[i32],
    has_children: bool,
    window_ns: u64,
    progress: &ProgressSource,
) -> Result<CommandRuns, TrialError> {
    let found = find_processes(subject, has_children, progress).map_err(TrialError)?;
    // Everything is read in the same order before and after: the window is the same for all.
    let progress_before = read_progress(progress).map_err(TrialError)?;
    let start_ns = monotonic_raw_ns();
    let mut processes = Vec::new();
    for mut process in found {
        if let Some(reading) = read_if_alive(&mut process).map_err(TrialError)? {
            process.before = reading;
            processes.push(process);
        }
    }
    thread::sleep(Duration::from_nanos(window_ns));
    let progress_after = read_progress(progress).map_err(TrialError)?;
    let mut done = progress_after.saturating_sub(progress_before);
    let end_ns = monotonic_raw_ns();
    let mut cpu_ns = 0;
    let mut switches = SwitchCounts::default();
    let mut living = 0;
    for process in &mut processes {
        let Some(after) = read_if_alive(process).map_err(TrialError)? else { continue };
        let before = process.before;
        living += 1;
        done += after.instructions.saturating_sub(before.instructions);
        cpu_ns += after.cpu_ns.saturating_sub(before.cpu_ns);
        switches.voluntary += after.switches.voluntary.saturating_sub(before.switches.voluntary);
        switches.involuntary +=
            after.switches.involuntary.saturating_sub(before.switches.involuntary);
    }
    if living == 0 {
        return Err(TrialError(format!("process {}: it has ended", subject[0])));
    }
    Ok(CommandRuns {
        runs: vec![RunTimes { cpu_ns, real_ns: end_ns - start_ns }],
        done,
        preemptions: to_i64(switches.involuntary),
        waits: to_i64(switches.voluntary),
    })
}

/// Checks that everything which [`watch`] reads can be read.
pub(super) fn check(
    subject: &[i32],
    has_children: bool,
    progress: &ProgressSource,
) -> Result<(), String> {
    let mut processes = find_processes(subject, has_children, progress)?;
    read_progress(progress)?;
    for process in &mut processes {
        read_if_alive(process)?;
    }
    Ok(())
}
