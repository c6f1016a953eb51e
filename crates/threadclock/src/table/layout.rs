//! The layout of the table that `switchtrace` keeps of all threads (docs/switchtrace.md). It is the
//! interface between the two: any change raises [`VERSION`].
//!
//! The table is one BPF array of `record_bytes` an element. Element 0 is the [`TableHeader`]. From
//! `index_at` on lies a word for each thread id: the element that has its [`ThreadRecord`], or 0.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"swtrace1");
/// Of this layout.
pub const VERSION: u32 = 1;
/// In a record's word: the thread is on a CPU; the rest is its CPU time less `CLOCK_MONOTONIC`.
pub const ON: u64 = 1 << 63;
/// In a record's word: the record is being changed.
pub const BUSY: u64 = 1 << 62;
/// The rest of a record's word: nanoseconds, modulo 2^62.
pub const TIME: u64 = BUSY - 1;
/// Flag of a record: the thread was switched out for the last time.
pub const ENDED: u32 = 1;
/// Flag of a record: no switch of its thread has been seen yet.
pub const SEEDED: u32 = 2;

/// Element 0.
#[repr(C, align(64))]
pub struct TableHeader {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Bytes of an element, a power of two, at least 64.
    pub record_bytes: u32,
    /// Thread ids in the index: `/proc/sys/kernel/pid_max` when the table was made.
    pub tids: u32,
    /// First element of the index.
    pub index_at: u32,
    /// First element that is a record.
    pub records_at: u32,
    /// How many are.
    pub records: u32,
    /// Times that a thread was forked or switched for which there was no record left.
    pub threads_lost: AtomicU64,
    /// Switches of pairs for which the map of pairs had no room.
    pub pairs_lost: AtomicU64,
    /// Events for which the ring buffer had no room.
    pub events_lost: AtomicU64,
    /// Switches of which a thread's record shows that the programs were not run.
    pub switches_missed: AtomicU64,
}

/// One thread. All counts are the kernel's own, over the thread's life, as of its last switch.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ThreadRecord {
    /// [`ON`], [`BUSY`] and [`TIME`].
    pub word: AtomicU64,
    /// `start_time`: `CLOCK_MONOTONIC` at its creation.
    pub start_ns: AtomicU64,
    /// Its id in the initial pid namespace.
    pub tid: AtomicU32,
    /// Its process's.
    pub tgid: AtomicU32,
    /// `nvcsw`.
    pub voluntary: AtomicU64,
    /// `nivcsw`.
    pub involuntary: AtomicU64,
    /// `sched_info.run_delay`: nanoseconds in the run queue without running.
    pub waited_ns: AtomicU64,
    /// `sum_exec_runtime` when it was last switched out.
    pub kernel_ns: AtomicU64,
    /// `nr_migrations`.
    pub migrations: AtomicU32,
    /// [`ENDED`], [`SEEDED`].
    pub flags: AtomicU32,
}

const _: () = assert!(size_of::<TableHeader>() == 64 && size_of::<ThreadRecord>() == 64);
