//! The CPU time of any thread of the system, without a system call: read from the table that a
//! `switchtrace` keeps, its own or one that it has pinned for readers without privileges.

pub mod layout;
mod mapping;
mod now;
mod types;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use mapping::ThreadTable;
pub use types::{ThreadTime, ThreadTimeError};

use crate::sys;
use core::ffi::CStr;
use core::hint;
use core::sync::atomic::{Ordering::*, fence};
use layout::{BUSY, ENDED, ON, TIME, ThreadRecord};
use now::Monotonic;

/// Looks at a record before it is given up. A switch keeps one busy for a fraction of a
/// microsecond, some more if the host takes the CPU away.
const MOST_LOOKS: u32 = 1 << 24;

/// Reads other threads. One for each thread that reads.
///
/// Thread ids are those of the initial pid namespace. A reading of a thread that runs is up to date
/// to some 100 ns. It never changes anything, and nobody waits for it.
#[derive(Debug)]
pub struct ThreadTimeReader {
    table: ThreadTable,
    clock: Monotonic,
}

impl ThreadTimeReader {
    /// Reads the table that was pinned at `path` (`Tracer::pin` of switchtrace).
    ///
    /// # Errors
    /// As [`ThreadTable::open`]; [`ThreadTimeError::NotTraced`] if nobody keeps it up to date.
    pub fn open(path: &CStr) -> Result<Self, ThreadTimeError> {
        Self::new(ThreadTable::open(path)?)
    }

    /// Reads this table. Sleeps for a millisecond to calibrate its clock.
    ///
    /// # Errors
    /// [`ThreadTimeError::NotTraced`], as [`open`](Self::open).
    pub fn new(table: ThreadTable) -> Result<Self, ThreadTimeError> {
        let others = Self { table, clock: Monotonic::new() };
        // A switch of the caller's own, which the tracer must have seen.
        sys::sleep_ns(100_000);
        others.check_traced()?;
        Ok(others)
    }

    /// The CPU time of this thread in nanoseconds; the final one if it has ended.
    ///
    /// # Errors
    /// [`ThreadTimeError::NoSuchThread`]; [`ThreadTimeError::NotTraced`] once the tracer has ended, which is
    /// found out within a millisecond of reading.
    #[inline]
    pub fn cpu_ns(&self, tid: u32) -> Result<u64, ThreadTimeError> {
        self.cpu_ns_by(tid, || self.clock.now())
    }

    #[inline(always)]
    fn cpu_ns_by(&self, tid: u32, now: impl Fn() -> Option<u64>) -> Result<u64, ThreadTimeError> {
        let unknown = ThreadTimeError::NoSuchThread(tid);
        let record = self.table.record(tid).ok_or(unknown)?;
        let word = record.word.load(Acquire);
        // Acquire: else the word could be loaded again before the thread's id.
        if word & BUSY == 0 && record.tid.load(Acquire) == tid {
            // The clock also says when the tracer must be checked, so it is read for all.
            if let Some(now) = now() {
                if record.word.load(Acquire) == word {
                    return Ok(if word & ON == 0 { word } else { word.wrapping_add(now) & TIME });
                }
            }
        }
        self.read_slowly(record, tid).map(|time| time.cpu_ns)
    }

    /// All that is known of this thread.
    ///
    /// # Errors
    /// As [`cpu_ns`](Self::cpu_ns).
    pub fn read(&self, tid: u32) -> Result<ThreadTime, ThreadTimeError> {
        let unknown = ThreadTimeError::NoSuchThread(tid);
        let record = self.table.record(tid).ok_or(unknown)?;
        self.read_slowly(record, tid)
    }

    /// The table.
    pub fn table(&self) -> &ThreadTable {
        &self.table
    }

    /// Renews the clock if it must, and looks until nothing changes meanwhile.
    #[cold]
    fn read_slowly(&self, record: &ThreadRecord, tid: u32) -> Result<ThreadTime, ThreadTimeError> {
        for _ in 0..MOST_LOOKS {
            let word = record.word.load(Acquire);
            if word & BUSY != 0 {
                hint::spin_loop();
                continue;
            }
            if record.tid.load(Relaxed) != tid {
                return Err(ThreadTimeError::NoSuchThread(tid));
            }
            let now = match self.clock.now() {
                Some(now) => now,
                None => {
                    self.check_traced()?;
                    self.clock.renew()
                }
            };
            let time = copy(record, word, now);
            fence(Acquire);
            if record.word.load(Relaxed) == word {
                return Ok(time);
            }
        }
        Err(ThreadTimeError::NotTraced)
    }

    /// The kernel's count of this thread's own switches is in the table, or nobody writes there.
    #[cold]
    fn check_traced(&self) -> Result<(), ThreadTimeError> {
        let tid = sys::own_tid();
        let switches: u64 = sys::own_switches().into_iter().sum();
        let record = self.table.record(tid).ok_or(ThreadTimeError::NotTraced)?;
        let known = record.voluntary.load(Relaxed).wrapping_add(record.involuntary.load(Relaxed));
        let is_own = record.tid.load(Relaxed) == tid;
        if is_own && known >= switches { Ok(()) } else { Err(ThreadTimeError::NotTraced) }
    }
}

fn copy(record: &ThreadRecord, word: u64, now_ns: u64) -> ThreadTime {
    let running = word & ON != 0;
    ThreadTime {
        cpu_ns: if running { word.wrapping_add(now_ns) & TIME } else { word },
        kernel_ns: record.kernel_ns.load(Relaxed),
        waited_ns: record.waited_ns.load(Relaxed),
        start_ns: record.start_ns.load(Relaxed),
        voluntary: record.voluntary.load(Relaxed),
        involuntary: record.involuntary.load(Relaxed),
        migrations: record.migrations.load(Relaxed),
        tgid: record.tgid.load(Relaxed),
        running,
        ended: record.flags.load(Relaxed) & ENDED != 0,
    }
}
