//! A running process that is watched from outside: its threads' switches, its CPU time, its memory.
//!
//! Readers take a root folder (`/` for this machine). CPU time, which has no file, is read from
//! this kernel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags, open, openat};
use rustix::io::Errno;

use crate::procfs::{self, FileText, UnreadableFile, one_line};
use crate::sys::{CpuClock, cpu_clock_ns};

/// Reason why a program cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// No process has this id.
    #[error(
        "no process has this id: it has ended, or is hidden from this user (hidepid); see ps -e"
    )]
    Gone,
    /// It has ended and its parent has not waited for it; has its name.
    #[error("'{0}' has ended and waits to be reaped (zombie): there is nothing to watch")]
    Ended(String),
    /// The kernel refused to show it: the file, why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// Another error: the file or call, why, and what to do.
    #[error("{0}")]
    Other(String),
}

impl From<UnreadableFile> for WatchError {
    fn from(error: UnreadableFile) -> Self {
        Self::Other(error.0)
    }
}

impl WatchError {
    /// Returns whether the program has ended.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Gone | Self::Ended(_))
    }

    /// Returns whether a privilege is missing.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Builds the error of a file that cannot be read.
    fn from_io(path: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let text = format!("cannot read {path}: {error}: run as root or as the program's user");
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // ESRCH: it ended while its file was open.
            Some(Errno::NOENT | Errno::SRCH) => Self::Gone,
            Some(Errno::ACCESS | Errno::PERM) => Self::Refused(text),
            _ => Self::Other(text),
        }
    }
}

/// Items of huge pages in a process's page tables, one for each kind of memory that may have them.
const HUGE_PAGE_ITEMS: [&str; 3] = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"];

/// Pages that were touched, as the page tables show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferencedPages {
    /// Bytes of the pages touched. A huge page counts as a whole, however little of it was touched.
    pub bytes: u64,
    /// Bytes of all huge pages; how many of them were touched is not known.
    pub huge_bytes: u64,
}

/// A running process. Its folder in /proc is held open: after its end, files of another process
/// with the same id are never read or written.
#[derive(Clone, Debug)]
pub struct WatchedProcess {
    folder: Arc<OwnedFd>,
    pid: i32,
    /// Name of the process (comm).
    pub name: String,
}

impl WatchedProcess {
    /// Finds the process below `root`.
    pub fn find(root: &Path, pid: i32) -> Result<Self, WatchError> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(root.join(format!("proc/{pid}")), how, Mode::empty())
            .map_err(|errno| WatchError::from_io(&format!("/proc/{pid}"), errno))?;
        let mut watched = Self { folder: Arc::new(folder), pid, name: String::new() };
        let status = watched.text("status")?;
        watched.name = one_line(status.value("Name")?);
        let process: i32 = status.number("Tgid")?;
        if process != pid {
            return Err(WatchError::Other(format!(
                "it is a thread of process {process}: watch that (all its threads are)"
            )));
        }
        if watched.text("stat")?.stat_field("flags", |stat| stat.is_kernel_thread())? {
            return Err(WatchError::Other(format!(
                "'{}' is a thread of the kernel: it has no memory of its own and no program; \
                 name a program's process",
                watched.name
            )));
        }
        watched.check_alive()?;
        Ok(watched)
    }

    /// Returns the process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn path(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }

    fn file(&self, name: &str, how: OFlags) -> Result<OwnedFd, WatchError> {
        openat(&self.folder, name, how | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| WatchError::from_io(&self.path(name), errno))
    }

    fn text(&self, name: &str) -> Result<FileText, WatchError> {
        let (path, mut bytes) = (self.path(name), Vec::new());
        let mut file = File::from(self.file(name, OFlags::RDONLY)?);
        file.read_to_end(&mut bytes).map_err(|error| WatchError::from_io(&path, error))?;
        // A name may be any bytes.
        Ok(FileText { path, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Lists the ids of its threads.
    pub(crate) fn tasks(&self) -> Result<Vec<i32>, WatchError> {
        let folder = self.file("task", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let path = self.path("task");
        let entries = Dir::new(folder).map_err(|errno| WatchError::from_io(&path, errno))?;
        let mut tasks = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|errno| WatchError::from_io(&path, errno))?;
            if let Ok(Ok(tid)) = entry.file_name().to_str().map(str::parse) {
                tasks.push(tid);
            }
        }
        Ok(tasks)
    }

    /// Checks that the process has not ended.
    fn check_alive(&self) -> Result<(), WatchError> {
        let state = self.text("stat")?.stat_field("state", |stat| stat.number(3))?;
        if !matches!(state, 'Z' | 'X') {
            return Ok(());
        }
        // The first thread may end before the others do.
        let threads = self.tasks().map_or(0, |tasks| tasks.len());
        if threads > 1 { Ok(()) } else { Err(WatchError::Ended(self.name.clone())) }
    }

    /// Reads the switches of all threads again.
    pub fn look(&self, count: &mut SwitchCounter) -> Result<(), WatchError> {
        self.check_alive()?;
        let mut now = BTreeMap::new();
        for tid in self.tasks()? {
            match self.thread(tid) {
                Ok((start, seen)) => {
                    now.insert((tid, start), seen);
                }
                // The thread ended meanwhile.
                Err(WatchError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        count.add_reading(now);
        Ok(())
    }

    /// Reads the start and the counts of a thread.
    fn thread(&self, tid: i32) -> Result<(u64, ThreadReading), WatchError> {
        let start = self.text(&format!("task/{tid}/stat"))?;
        let start = start.stat_field("starttime", |stat| stat.number(22))?;
        let status = self.text(&format!("task/{tid}/status"))?;
        let cpu_ns = self.thread_cpu_ns(tid);
        let switches = SwitchCounts {
            voluntary: status.number("voluntary_ctxt_switches")?,
            involuntary: status.number("nonvoluntary_ctxt_switches")?,
        };
        Ok((start, ThreadReading { switches, cpu_ns }))
    }

    /// Reads the CPU time of a thread in nanoseconds, if the kernel has it (CONFIG_SCHED_INFO).
    fn thread_cpu_ns(&self, tid: i32) -> Option<u64> {
        let file = self.text(&format!("task/{tid}/schedstat")).ok()?;
        file.text.split_whitespace().next()?.parse().ok()
    }

    /// Reads the CPU time of all its threads so far in nanoseconds, including threads that have
    /// ended, by the scheduler's sum.
    pub fn cpu_ns(&self) -> Result<u64, WatchError> {
        let cpu_ns = cpu_clock_ns(self.pid, false, CpuClock::Precise);
        // The clock is found by the id alone. As the process is still alive, it was its clock.
        self.check_alive()?;
        cpu_ns.map_err(|errno| {
            WatchError::Other(format!("cannot read its CPU clock (clock_getcpuclockid): {errno}"))
        })
    }

    /// Reads the resident memory in bytes (VmRSS).
    pub fn resident_bytes(&self) -> Result<u64, WatchError> {
        Ok(self.text("status")?.bytes("VmRSS")?)
    }

    /// Forgets which pages were touched (proc_pid_clear_refs(5)), under the lock of the program's
    /// memory map. The kernel flushes no TLB for it: a page whose translation is still cached may
    /// be touched again without a trace.
    pub fn clear_referenced(&self) -> Result<(), WatchError> {
        self.explain_missing("clear_refs", self.write_clear_refs())
    }

    fn write_clear_refs(&self) -> Result<(), WatchError> {
        let mut file = File::from(self.file("clear_refs", OFlags::WRONLY)?);
        let written = file.write_all(b"1");
        written.map_err(|error| WatchError::from_io(&self.path("clear_refs"), error))
    }

    /// Reads which pages were touched since (proc_pid_smaps(5)).
    pub fn referenced(&self) -> Result<ReferencedPages, WatchError> {
        let file = self.explain_missing("smaps_rollup", self.text("smaps_rollup"))?;
        let mut huge_bytes = 0;
        for item in HUGE_PAGE_ITEMS {
            // A kernel that does not have the item has no huge pages of that kind.
            if file.value(item).is_ok() {
                huge_bytes += file.bytes(item)?;
            }
        }
        Ok(ReferencedPages { bytes: file.bytes("Referenced")?, huge_bytes })
    }

    /// Replaces the error of a missing file, if the process is alive: then the kernel has no such
    /// file.
    fn explain_missing<T>(
        &self,
        file: &str,
        result: Result<T, WatchError>,
    ) -> Result<T, WatchError> {
        if !matches!(result, Err(WatchError::Gone)) {
            return result;
        }
        self.check_alive()?;
        let path = self.path(file);
        let why =
            format!("there is no {path} in this kernel (CONFIG_PROC_PAGE_MONITOR, Linux 4.14)");
        Err(WatchError::Other(why))
    }
}

/// Reads the bytes of transparent huge pages in a process's own memory, if the kernel reports them.
pub fn huge_page_bytes_of_process(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    procfs::kilobytes(procfs::value(&text, "AnonHugePages")?)
}

/// Reads the bytes of a transparent huge page below `root`, if the kernel has them and reports it.
pub fn huge_page_bytes(root: &Path) -> Option<u64> {
    let file = root.join("sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    fs::read_to_string(file).ok()?.trim().parse().ok().filter(|bytes| *bytes > 0)
}

/// Id of a thread, and its start in the kernel's ticks, which distinguishes it from a later thread
/// with the same id.
type ThreadKey = (i32, u64);

/// Numbers of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounts {
    /// Voluntary switches.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
}

impl SwitchCounts {
    /// Returns the sum of both kinds.
    pub fn all(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// Counts of a thread in one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadReading {
    switches: SwitchCounts,
    /// CPU time so far in nanoseconds, if the kernel reports it.
    cpu_ns: Option<u64>,
}

/// Switches of a program's threads, counted from the first reading on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounter {
    is_from_start: bool,
    before: BTreeMap<ThreadKey, ThreadReading>,
    last: BTreeMap<ThreadKey, ThreadReading>,
    /// Threads at the last reading.
    pub threads: usize,
    /// Threads that ended between two readings: what they did after the last reading is not
    /// counted.
    pub ended: usize,
}

impl SwitchCounter {
    /// Counts from the start of the process instead of from the first reading.
    pub fn from_start() -> Self {
        Self { is_from_start: true, ..Self::default() }
    }

    fn add_reading(&mut self, now: BTreeMap<ThreadKey, ThreadReading>) {
        if self.last.is_empty() && !self.is_from_start {
            self.before.clone_from(&now);
        }
        // `last` keeps threads that have ended.
        self.ended = self.last.keys().filter(|thread| !now.contains_key(thread)).count();
        self.threads = now.len();
        self.last.extend(now);
    }

    /// Returns the switches since the first reading. A thread that came later is counted from its
    /// start.
    pub fn switches(&self) -> SwitchCounts {
        let mut sum = SwitchCounts::default();
        for (thread, ThreadReading { switches: now, .. }) in &self.last {
            let before =
                self.before.get(thread).map(|reading| reading.switches).unwrap_or_default();
            sum.voluntary += now.voluntary.saturating_sub(before.voluntary);
            sum.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        sum
    }

    /// Returns the CPU time of all threads that were read, since the first reading, in nanoseconds.
    /// The process's clock has more if threads came and ended between two readings. `None` if the
    /// kernel does not report it for a thread.
    pub fn cpu_ns(&self) -> Option<u64> {
        let mut sum_ns = 0;
        for (thread, now) in &self.last {
            let before_ns = match self.before.get(thread) {
                Some(before) => before.cpu_ns?,
                None => 0,
            };
            sum_ns += now.cpu_ns?.checked_sub(before_ns)?;
        }
        Some(sum_ns)
    }
}
