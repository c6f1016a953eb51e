//! The layout of the table that `switchtrace` keeps of all threads (docs/switchtrace.md). It is the
//! interface between the two: any change raises [`VERSION`].
//!
//! The table is one BPF array of `record_bytes` an element. Element 0 is the [`TableHeader`]. From
//! `index_at` on lies a word for each thread id: the element that has its [`ThreadRecord`], or 0.
//!
//! A record's first word is enough for the CPU time. Off a CPU it is the CPU time; on one it is the
//! CPU time less the clock, so that a reader adds the clock. A thread that has used 500 ns and comes
//! to a CPU at 1,000 ns has [`ON`] and -500; at 3,000 ns a reader gets 2,500 ns.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"swtrace1");
/// The version of this layout.
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

/// The first element: the shape of the table, and counts of what was lost.
#[repr(C, align(64))]
pub struct TableHeader {
    /// Always [`MAGIC`].
    pub magic: u64,
    /// The layout's [`VERSION`].
    pub version: u32,
    /// Bytes of an element, a power of two, at least 64.
    pub record_bytes: u32,
    /// Number of thread ids in the index: `/proc/sys/kernel/pid_max` when the table was made.
    pub tids: u32,
    /// First element of the index.
    pub index_at: u32,
    /// First element that is a record.
    pub records_at: u32,
    /// Number of records.
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

/// The record of a thread. Counts are the kernel's own, over the thread's life, as of its last switch.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ThreadRecord {
    /// The bits [`ON`] and [`BUSY`], and the time in those of [`TIME`].
    pub word: AtomicU64,
    /// `start_time`: `CLOCK_MONOTONIC` at its creation.
    pub start_ns: AtomicU64,
    /// The thread's id in the initial pid namespace.
    pub tid: AtomicU32,
    /// The id of its process.
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
    /// A set of [`ENDED`] and [`SEEDED`].
    pub flags: AtomicU32,
}

const _: () = assert!(size_of::<TableHeader>() == 64 && size_of::<ThreadRecord>() == 64);
