//! A program that is watched from outside: its threads' switches, its CPU time, its memory.
//!
//! Readers take a root folder (`/` for this machine); what has no file (CPU time, the end of a child)
//! is asked of this kernel.

mod folder;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::procfs::{self, KERNEL_THREAD, Stat};
use crate::sys::{CpuClock, cpu_clock_ns};
use folder::Folder;

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
    /// A file that this kernel does not have.
    #[error("there is no {path} in this kernel ({needs})")]
    NotInKernel {
        /// Which.
        path: String,
        /// What the kernel has to be built with.
        needs: &'static str,
    },
    /// Its CPU clock.
    #[error("cannot read its CPU clock (clock_getcpuclockid): {0}")]
    Clock(Errno),
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

/// A program by its id.
#[derive(Clone, Debug)]
pub struct Watched {
    folder: Folder,
    pid: i32,
    /// Its name (comm).
    pub name: String,
}

impl Watched {
    /// Finds the process below `root`.
    pub fn find(root: &Path, pid: i32) -> Result<Self, WatchError> {
        let folder = Folder::open(root, pid)?;
        let mut watched = Self { folder, pid, name: String::new() };
        let status = watched.folder.text("status")?;
        watched.name = watched.folder.value(&status, "status", "Name")?.to_string();
        let process: i32 = watched.folder.number(&status, "status", "Tgid")?;
        if process != pid {
            return Err(WatchError::AThread { process });
        }
        let stat = watched.folder.text("stat")?;
        let flags: u64 = watched.folder.field(&stat, 9, "flags")?;
        if flags & KERNEL_THREAD != 0 {
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
        let stat = self.folder.text("stat")?;
        let state = Stat::parse(&stat).and_then(|stat| stat.state());
        let others = || self.folder.numbers_in("task").map_or(0, |tasks| tasks.len()) > 1;
        match state {
            // The first thread may end before the others do.
            Some('Z' | 'X') if !others() => Err(WatchError::Ended { name: self.name.clone() }),
            Some(_) => Ok(()),
            None => Err(self.folder.no_item("stat", "state")),
        }
    }

    /// Looks at all threads once more.
    pub fn look(&self, count: &mut Count) -> Result<(), WatchError> {
        self.check_alive()?;
        let mut now = BTreeMap::new();
        for tid in self.folder.numbers_in("task")? {
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

    fn thread(&self, tid: i32) -> Result<(u64, Seen), WatchError> {
        let folder = &self.folder;
        let file = |name: &str| format!("task/{tid}/{name}");
        let start = folder.field(&folder.text(&file("stat"))?, 22, "starttime")?;
        let status = file("status");
        let text = folder.text(&status)?;
        // Not every kernel has it (CONFIG_SCHED_INFO).
        let cpu_ns = folder.text(&file("schedstat")).ok();
        let cpu_ns = cpu_ns.and_then(|text| text.split_whitespace().next()?.parse().ok());
        let switches = Switches {
            voluntary: folder.number(&text, &status, "voluntary_ctxt_switches")?,
            involuntary: folder.number(&text, &status, "nonvoluntary_ctxt_switches")?,
        };
        Ok((start, Seen { switches, cpu_ns }))
    }

    /// CPU time of all its threads so far, those that have ended among them, in nanoseconds, by the
    /// scheduler's sum.
    pub fn cpu_ns(&self) -> Result<u64, WatchError> {
        let read = cpu_clock_ns(self.pid, false, CpuClock::Precise);
        // The clock goes by the number alone: still alive, it was this process's.
        self.check_alive()?;
        read.map_err(WatchError::Clock)
    }
}

/// What has the files that tell of touched pages.
const NEEDS: &str = "CONFIG_PROC_PAGE_MONITOR";

/// Huge pages in a process's page tables, of each kind of memory that may have them.
const HUGE: [&str; 3] = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"];

/// Pages that were touched, as far as the page tables tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Referenced {
    /// Bytes of the pages touched: of a huge one all, however little of it was.
    pub bytes: u64,
    /// Bytes of all huge pages there are; how many of them were touched is not told.
    pub huge_bytes: u64,
}

impl Watched {
    /// Resident memory in bytes (VmRSS).
    pub fn resident_bytes(&self) -> Result<u64, WatchError> {
        let status = self.folder.text("status")?;
        self.folder.kilobytes(&status, "status", "VmRSS")
    }

    /// Forgets which pages were touched (proc_pid_clear_refs(5)), under the lock of the program's memory
    /// map. The kernel flushes no TLB for it: a page whose translation is still cached may be touched
    /// again without a trace.
    pub fn clear_referenced(&self) -> Result<(), WatchError> {
        self.or_not_in_kernel("clear_refs", self.folder.write("clear_refs", "1"))
    }

    /// The pages touched since (proc_pid_smaps(5)).
    pub fn referenced(&self) -> Result<Referenced, WatchError> {
        match self.folder.text("smaps_rollup") {
            Ok(text) => self.sum(&text, "smaps_rollup"),
            // Linux before 4.14 has it for each mapping alone.
            Err(WatchError::Gone) => {
                let text = self.or_not_in_kernel("smaps", self.folder.text("smaps"))?;
                self.sum(&text, "smaps")
            }
            Err(error) => Err(error),
        }
    }

    fn sum(&self, text: &str, file: &str) -> Result<Referenced, WatchError> {
        let of = |item: &'static str| {
            let lines = text.lines().filter(|line| line.split(':').next() == Some(item));
            lines.map(|line| self.folder.kilobytes(line, file, item)).sum::<Result<u64, _>>()
        };
        if !text.lines().any(|line| line.starts_with("Referenced:")) {
            return Err(self.folder.no_item(file, "Referenced"));
        }
        // A kernel that does not name a kind of huge pages has none of it.
        let huge_bytes = HUGE.into_iter().map(of).sum::<Result<u64, _>>()?;
        Ok(Referenced { bytes: of("Referenced")?, huge_bytes })
    }

    /// A file that is not there, of a process that is.
    fn or_not_in_kernel<T>(&self, file: &str, had: Result<T, WatchError>) -> Result<T, WatchError> {
        match had {
            Err(WatchError::Gone) => {
                self.check_alive()?;
                Err(WatchError::NotInKernel { path: self.folder.path(file), needs: NEEDS })
            }
            had => had,
        }
    }
}

/// Bytes of transparent huge pages that a process has in its own memory; absent where the kernel does not tell.
pub fn huge_page_bytes_of_process(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    procfs::kilobytes(procfs::value(&text, "AnonHugePages")?)
}

/// Bytes of a transparent huge page below `root`; absent where the kernel has none, or does not tell.
pub fn huge_page_bytes(root: &Path) -> Option<u64> {
    let file = root.join("sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    std::fs::read_to_string(file).ok()?.trim().parse().ok().filter(|bytes| *bytes > 0)
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

/// What a look found of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    switches: Switches,
    /// CPU time so far in nanoseconds; absent where the kernel does not tell.
    cpu_ns: Option<u64>,
}

/// The switches of a program's threads, counted from the first look at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    before: BTreeMap<Thread, Seen>,
    last: BTreeMap<Thread, Seen>,
    /// Threads at the last look.
    pub threads: usize,
    /// Threads that ended between two looks: what they did after the last one is not counted.
    pub ended: usize,
}

impl Count {
    fn see(&mut self, now: BTreeMap<Thread, Seen>) {
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
            let before = self.before.get(thread).map(|seen| seen.switches).unwrap_or_default();
            let now = now.switches;
            sum.voluntary += now.voluntary.saturating_sub(before.voluntary);
            sum.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        sum
    }

    /// CPU time of the threads that were seen, since the first look, in nanoseconds: what is missing to
    /// the process's clock was used by threads that came and ended between two looks. Absent where the
    /// kernel does not tell of one.
    pub fn cpu_ns(&self) -> Option<u64> {
        let since = |(thread, now): (&Thread, &Seen)| {
            let before = match self.before.get(thread) {
                Some(seen) => seen.cpu_ns?,
                None => 0,
            };
            now.cpu_ns?.checked_sub(before)
        };
        self.last.iter().map(since).sum()
    }
}
