//! A program that is watched from outside: its threads' switches, its CPU time, its memory.
//!
//! Readers take a root folder (`/` for this machine); what has no file (CPU time, the end of a child)
//! is asked of this kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::sys::{self, CpuClock, cpu_clock_ns};

/// Why a program cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is none.
    #[error(
        "no process has this id: it has ended, or is hidden from this user (hidepid); see ps -e"
    )]
    Gone,
    /// It is a thread of another process.
    #[error("it is a thread of process {process}: watch that (all its threads are)")]
    AThread {
        /// The process.
        process: i32,
    },
    /// It has ended and nobody has waited for it.
    #[error("'{name}' has ended and waits to be reaped (zombie): there is nothing to watch")]
    Ended {
        /// Its name.
        name: String,
    },
    /// It is the kernel's.
    #[error(
        "'{name}' is a thread of the kernel: it has no memory of its own and no program; name a program's process"
    )]
    Kernel {
        /// Its name.
        name: String,
    },
    /// A file that may not be read.
    #[error("cannot read {path}: {error}: run as root or as the program's user")]
    Refused {
        /// Which.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// A file that is not what it should be.
    #[error("{path} has no readable '{item}'")]
    Item {
        /// Which.
        path: String,
        /// What was looked for.
        item: &'static str,
    },
}

impl WatchError {
    /// Whether the program is simply not there any more.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Gone | Self::Ended { .. })
    }
}

/// A thread: its id, and its start in the kernel's ticks, which tells it from a later one with the
/// same id.
type Thread = (i32, u64);

/// Voluntary and involuntary switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Voluntary ones.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
}

impl Switches {
    /// Both kinds.
    pub fn all(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// A program by its id.
#[derive(Clone, Debug)]
pub struct Watched {
    folder: PathBuf,
    shown: String,
    pid: i32,
    /// Its name (comm).
    pub name: String,
}

/// The switches of a program's threads, counted from the first look at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    before: BTreeMap<Thread, Switches>,
    last: BTreeMap<Thread, Switches>,
    /// Threads at the last look.
    pub threads: usize,
    /// Threads that ended between two looks: what they did after the last one is not counted.
    pub ended: usize,
}

impl Count {
    fn see(&mut self, now: BTreeMap<Thread, Switches>) {
        if self.last.is_empty() {
            self.before.clone_from(&now);
        }
        let left = self.last.keys().filter(|thread| !now.contains_key(thread)).count();
        // `last` keeps those that have ended: each is gone only once.
        self.ended = left;
        self.threads = now.len();
        self.last.extend(now);
    }

    /// Since the first look. A thread that came later is counted from its start.
    pub fn switches(&self) -> Switches {
        let mut sum = Switches::default();
        for (thread, now) in &self.last {
            let before = self.before.get(thread).copied().unwrap_or_default();
            sum.voluntary += now.voluntary.saturating_sub(before.voluntary);
            sum.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        sum
    }
}

impl Watched {
    /// Finds the process below `root`.
    pub fn find(root: &Path, pid: i32) -> Result<Self, WatchError> {
        let shown = format!("/proc/{pid}");
        let folder = root.join(format!("proc/{pid}"));
        let mut watched = Self { folder, shown, pid, name: String::new() };
        let status = watched.text("status")?;
        watched.name = watched.value(&status, "status", "Name")?.to_string();
        let process: i32 = watched.number(&status, "status", "Tgid")?;
        if process != pid {
            return Err(WatchError::AThread { process });
        }
        let stat = watched.text("stat")?;
        let flags: u64 = watched.field(&stat, 9, "flags")?;
        // PF_KTHREAD of include/linux/sched.h.
        if flags & 0x0020_0000 != 0 {
            return Err(WatchError::Kernel { name: watched.name });
        }
        watched.check_alive()?;
        Ok(watched)
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn check_alive(&self) -> Result<(), WatchError> {
        let stat = self.text("stat")?;
        let state = stat.rfind(')').and_then(|end| stat[end + 1..].trim_start().chars().next());
        let others = || fs::read_dir(self.folder.join("task")).map_or(0, Iterator::count) > 1;
        match state {
            // The first thread may end before the others do.
            Some('Z' | 'X') if !others() => Err(WatchError::Ended { name: self.name.clone() }),
            Some(_) => Ok(()),
            None => Err(WatchError::Item { path: format!("{}/stat", self.shown), item: "state" }),
        }
    }

    /// Looks at all threads once more.
    pub fn look(&self, count: &mut Count) -> Result<(), WatchError> {
        self.check_alive()?;
        let entries =
            fs::read_dir(self.folder.join("task")).map_err(|error| self.refused("task", error))?;
        let mut now = BTreeMap::new();
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            let Ok(tid) = name.parse::<i32>() else { continue };
            match self.thread(tid) {
                Ok((start, switches)) => {
                    now.insert((tid, start), switches);
                }
                // It ended while it was looked at.
                Err(WatchError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        count.see(now);
        Ok(())
    }

    fn thread(&self, tid: i32) -> Result<(u64, Switches), WatchError> {
        let (stat, status) = (format!("task/{tid}/stat"), format!("task/{tid}/status"));
        let start = self.field(&self.text(&stat)?, 22, "starttime")?;
        let text = self.text(&status)?;
        Ok((
            start,
            Switches {
                voluntary: self.number(&text, &status, "voluntary_ctxt_switches")?,
                involuntary: self.number(&text, &status, "nonvoluntary_ctxt_switches")?,
            },
        ))
    }

    /// CPU time of all its threads so far, those that have ended among them, in nanoseconds, by the
    /// scheduler's sum.
    pub fn cpu_ns(&self) -> Result<u64, Errno> {
        cpu_clock_ns(self.pid, false, CpuClock::Precise)
    }

    /// Resident memory in bytes (VmRSS).
    pub fn resident_bytes(&self) -> Result<u64, WatchError> {
        let status = self.text("status")?;
        self.kilobytes(&status, "status", "VmRSS")
    }

    /// Forgets which pages were touched (proc_pid_clear_refs(5)).
    pub fn clear_referenced(&self) -> Result<(), WatchError> {
        fs::write(self.folder.join("clear_refs"), "1")
            .map_err(|error| self.refused("clear_refs", error))
    }

    /// Bytes of the pages touched since (proc_pid_smaps(5)).
    pub fn referenced_bytes(&self) -> Result<u64, WatchError> {
        match self.text("smaps_rollup") {
            Ok(text) => self.kilobytes(&text, "smaps_rollup", "Referenced"),
            // Linux before 4.14 has it for each mapping alone.
            Err(WatchError::Gone) => {
                let text = self.text("smaps")?;
                let lines = text.lines().filter(|line| line.starts_with("Referenced:"));
                lines.map(|line| self.kilobytes(line, "smaps", "Referenced")).sum()
            }
            Err(error) => Err(error),
        }
    }

    fn text(&self, file: &str) -> Result<String, WatchError> {
        let bytes = fs::read(self.folder.join(file)).map_err(|error| self.refused(file, error))?;
        // A name may be any bytes.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn refused(&self, file: &str, error: io::Error) -> WatchError {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // ESRCH: it ended while its file was open.
            Some(Errno::NOENT | Errno::SRCH) => WatchError::Gone,
            _ => WatchError::Refused { path: format!("{}/{file}", self.shown), error },
        }
    }

    fn value<'a>(
        &self,
        text: &'a str,
        file: &str,
        item: &'static str,
    ) -> Result<&'a str, WatchError> {
        let mut values = text.lines().filter_map(|line| line.split_once(':'));
        let value = values.find(|(key, _)| *key == item).map(|(_, value)| value.trim());
        value.ok_or_else(|| WatchError::Item { path: format!("{}/{file}", self.shown), item })
    }

    fn number<T: std::str::FromStr>(
        &self,
        text: &str,
        file: &str,
        item: &'static str,
    ) -> Result<T, WatchError> {
        let parsed = self.value(text, file, item)?.parse();
        parsed.map_err(|_| WatchError::Item { path: format!("{}/{file}", self.shown), item })
    }

    fn kilobytes(&self, text: &str, file: &str, item: &'static str) -> Result<u64, WatchError> {
        let number = self.value(text, file, item)?.strip_suffix("kB").map(str::trim);
        let bytes = number.and_then(|number| number.parse::<u64>().ok()?.checked_mul(1024));
        bytes.ok_or_else(|| WatchError::Item { path: format!("{}/{file}", self.shown), item })
    }

    /// Field of a `stat` file, numbered as in proc_pid_stat(5): the name before may hold anything.
    fn field(&self, stat: &str, number: usize, item: &'static str) -> Result<u64, WatchError> {
        let after_name = stat.rfind(')').map(|end| &stat[end + 1..]);
        let field =
            after_name.and_then(|text| text.split_whitespace().nth(number - 3)?.parse().ok());
        field.ok_or_else(|| WatchError::Item { path: format!("{}/stat", self.shown), item })
    }
}

/// Hands a signal on to a process; one that is gone needs none.
pub fn hand_on(pid: u32, signal: i32) {
    // Above all 0, which would mean this process's whole group.
    if let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) {
        sys::send_signal(pid, signal);
    }
}
