//! Reads the CPU time of any thread of the system without a system call, from the table that a
//! `switchtrace` keeps: one of this process, or one that was pinned for readers without privileges.
//!
//! A reading loads the record's word, the thread's id, the clock, and the word again. If both words are
//! the same and not busy, no switch came between, and the time is right ([`layout`] has an example).

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
use now::MonotonicClock;

/// Limits how often a record is read again. A switch keeps one busy for a fraction of a microsecond,
/// longer if the host takes the CPU away.
const MAX_READS: u32 = 1 << 24;

/// Reads other threads' CPU time. Make one for each thread that reads.
///
/// Thread ids are those of the initial pid namespace. A reading of a thread that runs is up to date
/// to some 100 ns. It changes nothing, and no other thread waits for it.
#[derive(Debug)]
pub struct ThreadTimeReader {
    table: ThreadTable,
    clock: MonotonicClock,
}

impl ThreadTimeReader {
    /// Opens the table that was pinned at `path` (`Tracer::pin` of switchtrace).
    ///
    /// # Errors
    /// Those of [`ThreadTable::open`]; [`ThreadTimeError::NotTraced`] if no tracer keeps it up to date.
    pub fn open(path: &CStr) -> Result<Self, ThreadTimeError> {
        Self::new(ThreadTable::open(path)?)
    }

    /// Reads this table. Sleeps for a millisecond to calibrate its clock.
    ///
    /// # Errors
    /// [`ThreadTimeError::NotTraced`] if no tracer keeps the table up to date.
    pub fn new(table: ThreadTable) -> Result<Self, ThreadTimeError> {
        let reader = Self { table, clock: MonotonicClock::new() };
        // Makes a switch of the calling thread, which the tracer must have seen.
        sys::sleep_ns(100_000);
        reader.check_traced()?;
        Ok(reader)
    }

    /// Returns the CPU time of this thread in nanoseconds; the final one if it has ended.
    ///
    /// # Errors
    /// [`ThreadTimeError::NoSuchThread`]; [`ThreadTimeError::NotTraced`] once the tracer has ended, which is
    /// noticed within a millisecond of reading.
    #[inline]
    pub fn cpu_ns(&self, tid: u32) -> Result<u64, ThreadTimeError> {
        self.cpu_ns_with(tid, || self.clock.now())
    }

    #[inline(always)]
    fn cpu_ns_with(&self, tid: u32, now: impl Fn() -> Option<u64>) -> Result<u64, ThreadTimeError> {
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

    /// Returns everything that the table has of this thread.
    ///
    /// # Errors
    /// [`ThreadTimeError::NoSuchThread`]; [`ThreadTimeError::NotTraced`], as [`cpu_ns`](Self::cpu_ns).
    pub fn read(&self, tid: u32) -> Result<ThreadTime, ThreadTimeError> {
        let unknown = ThreadTimeError::NoSuchThread(tid);
        let record = self.table.record(tid).ok_or(unknown)?;
        self.read_slowly(record, tid)
    }

    /// Returns the table.
    pub fn table(&self) -> &ThreadTable {
        &self.table
    }

    /// Reads a record again until no switch changes it meanwhile; renews the clock if that is due.
    #[cold]
    fn read_slowly(&self, record: &ThreadRecord, tid: u32) -> Result<ThreadTime, ThreadTimeError> {
        for _ in 0..MAX_READS {
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

    /// Checks that a tracer still writes: the table must have the kernel's count of the calling
    /// thread's switches.
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
