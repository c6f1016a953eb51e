//! A program that is watched from outside: its threads' switches, its CPU time, its memory.
//!
//! Readers take a root folder (`/` for this machine); what has no file (CPU time, the end of a
//! child) is asked of this kernel.

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

/// Why a program cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is none.
    #[error(
        "no process has this id: it has ended, or is hidden from this user (hidepid); see ps -e"
    )]
    Gone,
    /// It has ended and its parent has not waited for it. With its name.
    #[error("'{0}' has ended and waits to be reaped (zombie): there is nothing to watch")]
    Ended(String),
    /// The kernel refused it: the file, why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// Anything else: the file or call, why, and what to do.
    #[error("{0}")]
    Other(String),
}

impl From<UnreadableFile> for WatchError {
    fn from(error: UnreadableFile) -> Self {
        Self::Other(error.0)
    }
}

impl WatchError {
    /// Whether the program is simply not there any more.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Gone | Self::Ended(_))
    }

    /// Whether a privilege is missing.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    fn of(path: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let words = || format!("cannot read {path}: {error}: run as root or as the program's user");
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // ESRCH: it ended while its file was open.
            Some(Errno::NOENT | Errno::SRCH) => Self::Gone,
            Some(Errno::ACCESS | Errno::PERM) => Self::Refused(words()),
            _ => Self::Other(words()),
        }
    }
}

/// Huge pages in a process's page tables, of each kind of memory that may have them.
const HUGE: [&str; 3] = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"];

/// Pages that were touched, as far as the page tables show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferencedPages {
    /// Bytes of the pages touched: of a huge one all, however little of it was.
    pub bytes: u64,
    /// Bytes of all huge pages there are; how many of them were touched is not known.
    pub huge_bytes: u64,
}

/// A program by its id. Its folder in /proc is held open: after its end the files of no other
/// process with the same id are read or written.
#[derive(Clone, Debug)]
pub struct WatchedProcess {
    folder: Arc<OwnedFd>,
    pid: i32,
    /// Its name (comm).
    pub name: String,
}

impl WatchedProcess {
    /// Finds the process below `root`.
    pub fn find(root: &Path, pid: i32) -> Result<Self, WatchError> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(root.join(format!("proc/{pid}")), how, Mode::empty())
            .map_err(|errno| WatchError::of(&format!("/proc/{pid}"), errno))?;
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

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn path(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }

    fn file(&self, name: &str, how: OFlags) -> Result<OwnedFd, WatchError> {
        openat(&self.folder, name, how | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| WatchError::of(&self.path(name), errno))
    }

    fn text(&self, name: &str) -> Result<FileText, WatchError> {
        let (path, mut bytes) = (self.path(name), Vec::new());
        let read = File::from(self.file(name, OFlags::RDONLY)?).read_to_end(&mut bytes);
        read.map_err(|error| WatchError::of(&path, error))?;
        // A name may be any bytes.
        Ok(FileText { path, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Its threads.
    pub(crate) fn tasks(&self) -> Result<Vec<i32>, WatchError> {
        let folder = self.file("task", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let refused = |errno: Errno| WatchError::of(&self.path("task"), errno);
        let mut tasks = Vec::new();
        for entry in Dir::new(folder).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            tasks.extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(tasks)
    }

    fn check_alive(&self) -> Result<(), WatchError> {
        let state = self.text("stat")?.stat_field("state", |stat| stat.number(3))?;
        let others = || self.tasks().map_or(0, |tasks| tasks.len()) > 1;
        match state {
            // The first thread may end before the others do.
            'Z' | 'X' if !others() => Err(WatchError::Ended(self.name.clone())),
            _ => Ok(()),
        }
    }

    /// Looks at all threads again.
    pub fn look(&self, count: &mut SwitchCounter) -> Result<(), WatchError> {
        self.check_alive()?;
        let mut now = BTreeMap::new();
        for tid in self.tasks()? {
            match self.thread(tid) {
                Ok((start, seen)) => {
                    now.insert((tid, start), seen);
                }
                // It ended while it was looked at.
                Err(WatchError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        count.see(now);
        Ok(())
    }

    fn thread(&self, tid: i32) -> Result<(u64, ThreadReading), WatchError> {
        let start = self.text(&format!("task/{tid}/stat"))?;
        let start = start.stat_field("starttime", |stat| stat.number(22))?;
        let status = self.text(&format!("task/{tid}/status"))?;
        // Not every kernel has it (CONFIG_SCHED_INFO).
        let cpu_ns = self.text(&format!("task/{tid}/schedstat")).ok();
        let cpu_ns = cpu_ns.and_then(|file| file.text.split_whitespace().next()?.parse().ok());
        let switches = SwitchCounts {
            voluntary: status.number("voluntary_ctxt_switches")?,
            involuntary: status.number("nonvoluntary_ctxt_switches")?,
        };
        Ok((start, ThreadReading { switches, cpu_ns }))
    }

    /// CPU time of all its threads so far, those that have ended among them, in nanoseconds, by the
    /// scheduler's sum.
    pub fn cpu_ns(&self) -> Result<u64, WatchError> {
        let read = cpu_clock_ns(self.pid, false, CpuClock::Precise);
        // The clock goes by the number alone: still alive, it was this process's.
        self.check_alive()?;
        read.map_err(|errno| {
            WatchError::Other(format!("cannot read its CPU clock (clock_getcpuclockid): {errno}"))
        })
    }

    /// Resident memory in bytes (VmRSS).
    pub fn resident_bytes(&self) -> Result<u64, WatchError> {
        Ok(self.text("status")?.bytes("VmRSS")?)
    }

    /// Forgets which pages were touched (proc_pid_clear_refs(5)), under the lock of the program's
    /// memory map. The kernel flushes no TLB for it: a page whose translation is still cached may
    /// be touched again without a trace.
    pub fn clear_referenced(&self) -> Result<(), WatchError> {
        let write = || {
            let mut file = File::from(self.file("clear_refs", OFlags::WRONLY)?);
            file.write_all(b"1").map_err(|error| WatchError::of(&self.path("clear_refs"), error))
        };
        self.or_not_in_kernel("clear_refs", write())
    }

    /// The pages touched since (proc_pid_smaps(5)).
    pub fn referenced(&self) -> Result<ReferencedPages, WatchError> {
        let file = self.or_not_in_kernel("smaps_rollup", self.text("smaps_rollup"))?;
        // A kernel that does not name a kind of huge pages has none of it.
        let huge = HUGE.into_iter().filter(|item| file.value(item).is_ok());
        let huge_bytes = huge.map(|item| file.bytes(item)).sum::<Result<u64, _>>()?;
        Ok(ReferencedPages { bytes: file.bytes("Referenced")?, huge_bytes })
    }

    /// A file that is not there, of a process that is.
    fn or_not_in_kernel<T>(&self, file: &str, had: Result<T, WatchError>) -> Result<T, WatchError> {
        if !matches!(had, Err(WatchError::Gone)) {
            return had;
        }
        self.check_alive()?;
        let path = self.path(file);
        let why =
            format!("there is no {path} in this kernel (CONFIG_PROC_PAGE_MONITOR, Linux 4.14)");
        Err(WatchError::Other(why))
    }
}

/// Bytes of transparent huge pages that a process has in its own memory; absent where the kernel
/// does not report it.
pub fn huge_page_bytes_of_process(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    procfs::kilobytes(procfs::value(&text, "AnonHugePages")?)
}

/// Bytes of a transparent huge page below `root`; absent where the kernel has none, or does not
/// report it.
pub fn huge_page_bytes(root: &Path) -> Option<u64> {
    let file = root.join("sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    fs::read_to_string(file).ok()?.trim().parse().ok().filter(|bytes| *bytes > 0)
}

/// A thread: its id, and its start in the kernel's ticks, which distinguishes it from a later one
/// with the same id.
type Thread = (i32, u64);

/// Voluntary and involuntary switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounts {
    /// Voluntary ones.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
}

impl SwitchCounts {
    /// Both kinds.
    pub fn all(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// What a look found of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadReading {
    switches: SwitchCounts,
    /// CPU time so far in nanoseconds; absent where the kernel does not report it.
    cpu_ns: Option<u64>,
}

/// The switches of a program's threads, counted from the first look at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounter {
    is_from_start: bool,
    before: BTreeMap<Thread, ThreadReading>,
    last: BTreeMap<Thread, ThreadReading>,
    /// Threads at the last look.
    pub threads: usize,
    /// Threads that ended between two looks: what they did after the last one is not counted.
    pub ended: usize,
}

impl SwitchCounter {
    /// Counts all that a process has done since it was started, and not only what it does from the
    /// first look on.
    pub fn from_start() -> Self {
        Self { is_from_start: true, ..Self::default() }
    }

    fn see(&mut self, now: BTreeMap<Thread, ThreadReading>) {
        if self.last.is_empty() && !self.is_from_start {
            self.before.clone_from(&now);
        }
        // `last` keeps those that have ended.
        self.ended = self.last.keys().filter(|thread| !now.contains_key(thread)).count();
        self.threads = now.len();
        self.last.extend(now);
    }

    /// SwitchCounts since the first look. A thread that came later is counted from its start.
    pub fn switches(&self) -> SwitchCounts {
        let mut sum = SwitchCounts::default();
        for (thread, ThreadReading { switches: now, .. }) in &self.last {
            let before = self.before.get(thread).map(|seen| seen.switches).unwrap_or_default();
            sum.voluntary += now.voluntary.saturating_sub(before.voluntary);
            sum.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        sum
    }

    /// CPU time of the threads that were seen, since the first look, in nanoseconds: what is
    /// missing to the process's clock was used by threads that came and ended between two looks.
    /// Absent where the kernel does not report that of one.
    pub fn cpu_ns(&self) -> Option<u64> {
        let since = |(thread, now): (&Thread, &ThreadReading)| {
            let before = self.before.get(thread).map_or(Some(0), |seen| seen.cpu_ns)?;
            now.cpu_ns?.checked_sub(before)
        };
        self.last.iter().map(since).sum()
    }
}
