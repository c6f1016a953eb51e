//! A command that brings the machine into a state, from its start to its end: one that goes on, as a
//! scheduler does, or one that ends by itself, as `sysctl -w` does.
//!
//! It runs in a session of its own. The guard is the subreaper of all that it starts, so that nothing
//! of it can stay without being a descendant of the guard.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use probe::{THREAD_BYTES, in_own_session, one_line, room_for_thread};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process,
    test_kill_process_group, waitpid,
};

use crate::base::secrets::masked;

/// Time between two looks at a command that is waited for.
const PAUSE: Duration = Duration::from_millis(5);

/// The signals that end a command, each with the time that it is given for that.
const ENDING_SIGNALS: [(Signal, Duration); 3] = [
    (Signal::INT, Duration::from_secs(3)),
    (Signal::TERM, Duration::from_secs(1)),
    (Signal::KILL, Duration::from_secs(2)),
];

/// Longest time to end a command.
pub(super) const END_PATIENCE: Duration = Duration::from_secs(8);

/// Time for what a command has left running to end by SIGTERM.
const STAYING_PATIENCE: Duration = Duration::from_millis(500);

/// Bytes of standard error that are kept: the last ones.
const KEPT_BYTES: usize = 2048;

/// Lines of it that are told: a hint may stand behind what is wrong.
const TOLD_LINES: usize = 3;

/// Characters of it that are told.
const TOLD_CHARS: usize = 200;

/// Time for the last of standard error to arrive.
const ERROR_PATIENCE: Duration = Duration::from_millis(100);

/// Why a process of another user stays.
const NO_PERMISSION: &str = "EPERM: it belongs to another user";

/// Most processes that are named.
const MAX_NAMED: usize = 3;

/// A command that was started and not waited for.
pub(super) struct RunningCommand {
    line: String,
    child: Child,
    errors: ErrorTail,
}

impl RunningCommand {
    /// Starts a command line by `sh -c`, in a session of its own. Its process is killed with the
    /// calling thread.
    pub(super) fn start(line: &str) -> Result<Self, String> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        in_own_session(&mut command);
        let mut child = command.spawn().map_err(|error| cannot_start(line, &error))?;
        let errors = match child.stderr.take() {
            Some(stream) => ErrorTail::read(stream),
            None => Err(io::Error::other("it has no standard error")),
        };
        match errors {
            Ok(errors) => Ok(Self { line: line.to_string(), child, errors }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(cannot_start(line, &error))
            }
        }
    }

    /// Waits until the command has ended, but no longer than this; `None` if it goes on.
    pub(super) fn wait(&mut self, longest: Duration) -> Result<Option<ExitStatus>, String> {
        let until = Instant::now() + longest;
        loop {
            let status = self.child.try_wait().map_err(|error| format!("wait: {error}"))?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            sleep(PAUSE);
        }
    }

    /// Returns the command line as it is shown.
    pub(super) fn line_in_words(&self) -> String {
        shown(&self.line)
    }

    /// Says how the command ended, with what it wrote to standard error last.
    pub(super) fn end_in_words(&mut self, status: ExitStatus) -> String {
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => status.to_string(),
        };
        let line = shown(&self.line);
        match self.errors.last_words() {
            Some(words) => format!("{line} ended with {how}: {words}"),
            None => format!("{line} ended with {how}, and wrote nothing to standard error"),
        }
    }

    /// Says that the command has not ended in time, with what it wrote to standard error last.
    pub(super) fn hang_in_words(&mut self, patience: Duration) -> String {
        let said = match self.errors.last_words() {
            Some(words) => format!(" (standard error: {words})"),
            None => String::new(),
        };
        format!("{} did not end within {} s{said}", shown(&self.line), patience.as_secs())
    }

    /// Fails if this program may not end the command or something that it has started.
    pub(super) fn check_permission(&self) -> Result<(), String> {
        for descendant in Descendant::find_all() {
            if test_kill_process(descendant.pid) == Err(Errno::PERM) {
                return Err(format!(
                    "{} runs as another user (sudo?): run switchcost itself as root",
                    shown(&self.line)
                ));
            }
        }
        Ok(())
    }

    /// Ends the command with all that it has started: SIGINT, then SIGTERM, then SIGKILL.
    pub(super) fn end(mut self) -> Result<(), String> {
        let group = Pid::from_child(&self.child);
        let mut why = String::new();
        for (signal, patience) in ENDING_SIGNALS {
            if kill_process_group(group, signal) == Err(Errno::PERM) {
                why = format!(": {NO_PERMISSION}");
                break;
            }
            // A stopped process ends by SIGKILL only.
            let _ = kill_process_group(group, Signal::CONT);
            if self.wait(patience)?.is_some() {
                wait_for_group(group, STAYING_PATIENCE);
                return end_descendants().map(|_| ());
            }
        }
        let _ = end_descendants();
        Err(format!("{} cannot be ended (process {}){why}", shown(&self.line), self.child.id()))
    }
}

fn cannot_start(line: &str, error: &io::Error) -> String {
    format!("{} cannot be started: {error}", shown(line))
}

/// Waits until no process of a group is left, but no longer than this.
fn wait_for_group(group: Pid, longest: Duration) {
    let until = Instant::now() + longest;
    while test_kill_process_group(group).is_ok() && Instant::now() < until {
        reap_orphans();
        sleep(PAUSE);
    }
}

/// Returns a command line as it is shown, between quotation marks.
pub(super) fn shown(line: &str) -> String {
    format!("'{}'", masked(&[line.to_string()]).concat())
}

/// The last bytes of a standard error, which a thread reads so that the pipe is never full.
struct ErrorTail {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl ErrorTail {
    fn read(mut stream: ChildStderr) -> io::Result<Self> {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = bytes.clone();
        room_for_thread(THREAD_BYTES)?;
        let builder = thread::Builder::new().stack_size(THREAD_BYTES);
        let reader = builder.spawn(move || {
            let mut buffer = [0; 1024];
            loop {
                let count = match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..count]);
                let excess = kept.len().saturating_sub(KEPT_BYTES);
                kept.drain(..excess);
            }
        })?;
        Ok(Self { bytes, reader })
    }

    /// Returns the last lines that are not empty in one, of at most [`TOLD_CHARS`] characters.
    fn last_words(&self) -> Option<String> {
        let until = Instant::now() + ERROR_PATIENCE;
        while !self.reader.is_finished() && Instant::now() < until {
            sleep(PAUSE);
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.retain(|line| !line.is_empty());
        let last = &lines[lines.len().saturating_sub(TOLD_LINES)..];
        if last.is_empty() {
            return None;
        }
        let line = masked(&[one_line(&last.join("; "))]).concat();
        let count = line.chars().count();
        let end: String = line.chars().skip(count.saturating_sub(TOLD_CHARS)).collect();
        Some(end)
    }
}

/// Ends all that descends from this process, of which it is the subreaper; returns the names of what
/// was there. A command that was waited for has left it.
pub(super) fn end_descendants() -> Result<Vec<String>, String> {
    let (mut names, mut is_permitted) = (Vec::new(), true);
    for (signal, patience) in [(Signal::TERM, STAYING_PATIENCE), (Signal::KILL, END_PATIENCE)] {
        let until = Instant::now() + patience;
        loop {
            reap_orphans();
            let descendants = Descendant::find_all();
            if descendants.is_empty() {
                return Ok(names);
            }
            is_permitted = false;
            for descendant in &descendants {
                is_permitted |= kill_process(descendant.pid, signal) != Err(Errno::PERM);
                let _ = kill_process(descendant.pid, Signal::CONT);
                let name = descendant.in_words();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let is_hopeless = !is_permitted && signal == Signal::KILL;
            if is_hopeless || Instant::now() >= until {
                break;
            }
            sleep(PAUSE);
        }
    }
    let why = if is_permitted { String::new() } else { format!(" ({NO_PERMISSION})") };
    Err(format!("what a command left running cannot be ended: {}{why}", named(&names)))
}

/// Returns the names of processes in words, the first ones of many.
pub(super) fn named(names: &[String]) -> String {
    let mut text = names[..names.len().min(MAX_NAMED)].join(", ");
    if names.len() > MAX_NAMED {
        text += ", ...";
    }
    text
}

/// Waits for all children that have ended: orphans that this process has adopted.
fn reap_orphans() {
    while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
}

/// A process that descends from this one.
struct Descendant {
    pid: Pid,
    name: String,
}

impl Descendant {
    /// Finds all descendants of this process that have not ended.
    fn find_all() -> Vec<Self> {
        let mut children: BTreeMap<i32, Vec<ProcessEntry>> = BTreeMap::new();
        for process in ProcessEntry::read_all() {
            children.entry(process.parent).or_default().push(process);
        }
        let mut found = Vec::new();
        let mut parents = vec![rustix::process::getpid().as_raw_pid()];
        while let Some(parent) = parents.pop() {
            for process in children.remove(&parent).unwrap_or_default() {
                parents.push(process.pid);
                if process.has_ended {
                    continue;
                }
                if let Some(pid) = Pid::from_raw(process.pid) {
                    found.push(Self { pid, name: process.name });
                }
            }
        }
        found
    }

    fn in_words(&self) -> String {
        format!("{} (process {})", self.name, self.pid.as_raw_pid())
    }
}

/// A process as /proc has it.
struct ProcessEntry {
    pid: i32,
    parent: i32,
    name: String,
    has_ended: bool,
}

impl ProcessEntry {
    fn read_all() -> Vec<Self> {
        let mut entries = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // It may have ended meanwhile.
            let Ok(bytes) = fs::read(entry.path().join("stat")) else { continue };
            entries.extend(Self::parse(pid, &String::from_utf8_lossy(&bytes)));
        }
        entries
    }

    /// Parses `4711 (name) S 4710 ...` (proc_pid_stat(5)); a name may have any characters.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (start, end) = (stat.find('(')?, stat.rfind(')')?);
        let name = one_line(stat.get(start + 1..end)?);
        let mut fields = stat.get(end + 1..)?.split_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, name, has_ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_end_is_told_with_the_last_words_of_the_command() {
        let mut command = RunningCommand::start("echo first >&2; echo no such thing >&2; exit 3")
            .expect("it starts");
        let status = command.wait(LONG).expect("it is waited for").expect("it ends");
        let told = command.end_in_words(status);
        assert!(told.ends_with("ended with exit code 3: first; no such thing"), "{told}");
        let mut silent = RunningCommand::start("kill -9 $$").expect("it starts");
        let status = silent.wait(LONG).expect("it is waited for").expect("it ends");
        let told = silent.end_in_words(status);
        assert!(told.ends_with("signal 9, and wrote nothing to standard error"), "{told}");
    }

    #[test]
    fn a_full_pipe_of_errors_stops_nobody() {
        let mut loud = RunningCommand::start("head -c 300000 /dev/zero | tr '\\0' x >&2; exit 0")
            .expect("it starts");
        let status = loud.wait(LONG).expect("it is waited for");
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
        let words = loud.errors.last_words().expect("what it wrote");
        assert_eq!(words.len(), TOLD_CHARS);
    }

    #[test]
    fn secrets_of_a_command_are_masked() {
        assert_eq!(shown("TOKEN=abc run"), "'TOKEN=*** run'");
    }

    #[test]
    fn a_process_may_be_named_like_the_file_that_tells_of_it() {
        let entry = ProcessEntry::parse(7, "7 (a) S 1 (b) R 3 4").expect("a process");
        assert_eq!((entry.name.as_str(), entry.parent, entry.has_ended), ("a) S 1 (b", 3, false));
        assert!(ProcessEntry::parse(7, "7 (a) Z 2").expect("a process").has_ended);
        assert!(ProcessEntry::parse(7, "").is_none() && ProcessEntry::parse(7, "7 )a(").is_none());
    }
}
