//! A program that is watched from outside: its threads' switches, its CPU time, its memory.
//!
//! Readers take a root folder (`/` for this machine); what has no file (CPU time, the end of a child)
//! is asked of this kernel.

mod count;
mod folder;
mod memory;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::sys::{CpuClock, cpu_clock_ns};
use count::Seen;
pub use count::{Count, Switches};
use folder::Folder;
pub use memory::{Referenced, huge_page_bytes, huge_page_bytes_of_process};

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
        let stat = self.folder.text("stat")?;
        let state = stat.rfind(')').and_then(|end| stat[end + 1..].trim_start().chars().next());
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
