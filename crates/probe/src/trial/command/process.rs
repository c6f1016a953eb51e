//! A program that runs already, of one process or several: what it used, and what it has done
//! meanwhile.

use std::path::Path;
use std::process::{self as programs, Stdio};
use std::time::Duration;
use std::{fs, thread};

use model::trial::command::Progress;
use rustix::io::Errno;

use super::super::harness::TrialError;
use super::CommandRuns;
use crate::processes::descendants;
use crate::program::{SwitchCounter, SwitchCounts, WatchError, WatchedProcess};
use crate::sys::{TaskInstructions, monotonic_raw_ns, that_ends_with_us};

/// How often a command may fail to print a number.
const MOST_TRIES: usize = 5;

/// A process of the program, from the beginning of a window on.
struct ProgramProcess {
    process: WatchedProcess,
    /// Instructions of all its threads; empty where another counter tells what was done.
    events: Vec<TaskInstructions>,
    count: SwitchCounter,
    before: ProcessReading,
}

/// What a process has done so far.
#[derive(Clone, Copy, Default)]
struct ProcessReading {
    instructions: i64,
    cpu_ns: u64,
    switches: SwitchCounts,
}

impl ProgramProcess {
    fn find(process: WatchedProcess, progress: &Progress) -> Result<Self, String> {
        let tids = match progress {
            Progress::Instructions => process.tasks().map_err(|error| error.to_string())?,
            Progress::Printed(_) | Progress::File(_) => Vec::new(),
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

    fn see(&mut self) -> Result<ProcessReading, WatchError> {
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

/// The processes of a program that live now, without this program: whoever started it may be
/// measured.
///
/// # Errors
/// Where none of those lives that were asked for, or one of them cannot be watched.
fn members(
    subject: &[i32],
    has_children: bool,
    progress: &Progress,
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
    if let (true, Some(why)) = (found.is_empty(), ended) {
        return Err(why);
    }
    if has_children {
        let children = descendants(root, subject).into_iter();
        let children = children.filter(|pid| !runs_this_program(*pid));
        found.extend(children.filter_map(|pid| WatchedProcess::find(root, pid).ok()));
    }
    let mut members = Vec::new();
    for process in found {
        let pid = process.pid();
        match ProgramProcess::find(process, progress) {
            Ok(member) => members.push(member),
            // A process may end at any time.
            Err(_) if WatchedProcess::find(root, pid).is_err_and(|error| error.is_end()) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(members)
}

/// What a process has done so far; absent where it has ended.
fn see_if_alive(member: &mut ProgramProcess) -> Result<Option<ProcessReading>, String> {
    match member.see() {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if error.is_end() => Ok(None),
        Err(error) => Err(format!("process {}: {error}", member.process.pid())),
    }
}

fn runs_this_program(pid: i32) -> bool {
    let own = fs::read_link("/proc/self/exe").ok();
    own.is_some() && fs::read_link(format!("/proc/{pid}/exe")).ok() == own
}

/// What the whole program has done, where its user tells that.
fn told(progress: &Progress) -> Result<i64, String> {
    match progress {
        Progress::Instructions => Ok(0),
        // A file that is being written may be empty for a moment.
        Progress::Printed(command) => {
            (1..MOST_TRIES).find_map(|_| printed(command).ok()).map_or_else(|| printed(command), Ok)
        }
        Progress::File(path) => {
            let found = fs::metadata(path).map_err(|error| format!("{path}: {error}"))?;
            Ok(i64::try_from(found.len()).unwrap_or(i64::MAX))
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

/// Looks for a window at the program's processes: those that live from its beginning to its end.
pub(super) fn look(
    subject: &[i32],
    has_children: bool,
    window_ns: u64,
    progress: &Progress,
) -> Result<CommandRuns, TrialError> {
    let found = members(subject, has_children, progress).map_err(TrialError)?;
    // What is asked first is asked first again: the window is the same for all.
    let told_before = told(progress).map_err(TrialError)?;
    let start_ns = monotonic_raw_ns();
    let mut members = Vec::new();
    for mut member in found {
        if let Some(seen) = see_if_alive(&mut member).map_err(TrialError)? {
            member.before = seen;
            members.push(member);
        }
    }
    thread::sleep(Duration::from_nanos(window_ns));
    let mut done = told(progress).map_err(TrialError)?.saturating_sub(told_before);
    let end_ns = monotonic_raw_ns();
    let (mut cpu_ns, mut more, mut living) = (0, SwitchCounts::default(), 0);
    for member in &mut members {
        let Some(after) = see_if_alive(member).map_err(TrialError)? else { continue };
        let before = member.before;
        living += 1;
        done += after.instructions.saturating_sub(before.instructions);
        cpu_ns += after.cpu_ns.saturating_sub(before.cpu_ns);
        more.voluntary += after.switches.voluntary.saturating_sub(before.switches.voluntary);
        more.involuntary += after.switches.involuntary.saturating_sub(before.switches.involuntary);
    }
    if living == 0 {
        return Err(TrialError(format!("process {}: it has ended", subject[0])));
    }
    let count = |of: u64| i64::try_from(of).unwrap_or(i64::MAX);
    Ok(CommandRuns {
        runs: vec![[cpu_ns, end_ns - start_ns]],
        done,
        preemptions: count(more.involuntary),
        waits: count(more.voluntary),
    })
}

/// Whether all of that can be asked.
pub(super) fn check(
    subject: &[i32],
    has_children: bool,
    progress: &Progress,
) -> Result<(), String> {
    let mut members = members(subject, has_children, progress)?;
    told(progress)?;
    for member in &mut members {
        see_if_alive(member)?;
    }
    Ok(())
}
