//! The layout of what the programs write and this crate reads. The part of a record that is read
//! without privileges is defined in `threadclock::table::layout`.
//!
//! The table is one array of elements of 64 bytes, or of 2,048 with activity:
//!
//! ```text
//! element 0     header: magic, version, sizes, counts of what was lost
//! elements 1..  index: for each thread id the element of its record (4 bytes), or 0
//! the rest      records: ThreadRecord (64 bytes), then the fields of ThreadActivity
//! ```
//!
//! A reader finds a thread without a search. With 32,768 thread ids and elements of 64 bytes the
//! index is elements 1 to 2,048; if its word 4,000 is 2,060, then element 2,060 is the record of
//! thread 4,000.
//!
//! A counter's records ([`SwitchCounter`](crate::SwitchCounter)) have the start and the id that their
//! thread was born with in place of `waited_ns` and `migrations`: execve(2) may change both. Their
//! `flags` have the number of the last look that has seen the thread, above the two bits.

use std::sync::atomic::{AtomicU32, AtomicU64};
use threadclock::table::layout::ThreadRecord;

/// In the flags of a counter's record: where the number of the last look begins, modulo 2^30. It is 0
/// until the first one.
pub(crate) const LOOK_SHIFT: u32 = 2;

/// Number of histograms of a thread by octaves.
pub(crate) const HISTOGRAMS: usize = 6;
/// Number of buckets of a histogram by octaves.
pub const BUCKETS: usize = 32;
/// Number of buckets of a histogram of waits: eight parts an octave.
pub const WAIT_BUCKETS: usize = 8 * BUCKETS;
/// End of the first octave in nanoseconds: 2^([`FIRST_SHIFT`] + 1).
pub(crate) const FIRST_END_NS: u64 = 2 << FIRST_SHIFT;
/// Logarithm of half of the end of the first octave.
pub(crate) const FIRST_SHIFT: u32 = 6;

/// A record with activity: a [`ThreadRecord`] and what is aggregated of the thread.
#[repr(C)]
pub(crate) struct ThreadActivity {
    pub(crate) record: ThreadRecord,
    /// `CLOCK_MONOTONIC` when the thread was last switched out; 0: not seen yet.
    pub(crate) out_ns: AtomicU64,
    /// `CLOCK_MONOTONIC` when it was switched in; 0: it is off the CPU, or that was not seen.
    pub(crate) in_ns: AtomicU64,
    /// The [`SwitchCause`](crate::SwitchCause) of its last switch.
    pub(crate) cause: AtomicU32,
    /// The process that forked it, or its parent when it was first seen.
    pub(crate) parent: AtomicU32,
    /// Switches out of sched_yield(2), since it was first seen.
    pub(crate) yields: AtomicU64,
    /// The thread that it was last switched to, and how often in a row: not in the map of pairs
    /// yet.
    pub(crate) pair_next: AtomicU64,
    pub(crate) pair_voluntary: AtomicU32,
    pub(crate) pair_involuntary: AtomicU32,
    pub(crate) comm: [AtomicU64; 2],
    /// Time in the run queue before each burst.
    pub(crate) waits: [AtomicU32; WAIT_BUCKETS],
    pub(crate) histograms: [[AtomicU32; BUCKETS]; HISTOGRAMS],
    /// Fills the record up to a power of two.
    pub(crate) reserved: [AtomicU64; 16],
}

/// Bytes of an element of the table without activity.
pub(crate) const RECORD_BYTES: u32 = size_of::<ThreadRecord>() as u32;
/// Bytes of an element of the table with activity.
pub(crate) const ACTIVITY_BYTES: u32 = size_of::<ThreadActivity>() as u32;
const _: () = assert!(ACTIVITY_BYTES.is_power_of_two());

/// Bits of a task's state (include/linux/sched.h).
pub(crate) const TASK_DEAD: i32 = 0x80;
pub(crate) const TASK_INTERRUPTIBLE: i32 = 1;
pub(crate) const TASK_UNINTERRUPTIBLE: i32 = 2;
pub(crate) const TASK_NOLOAD: i32 = 0x400;

/// Kinds of recorded events.
pub(crate) mod kind {
    pub(crate) const SWITCH: u32 = 0;
    pub(crate) const WAKEUP: u32 = 1;
    pub(crate) const NEW: u32 = 2;
    pub(crate) const MIGRATE: u32 = 3;
}

/// An event as the programs write it to the ring buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) time_ns: u64,
    /// Kind in the lower half, CPU in the upper.
    pub(crate) kind_and_cpu: u32,
    /// In a switch the state of the thread that left, and in bit 31 whether it was preempted; in a
    /// wake-up or migration the new CPU.
    pub(crate) state: u32,
    pub(crate) first_tid: u32,
    pub(crate) second_tid: u32,
    pub(crate) first_prio: u32,
    pub(crate) second_prio: u32,
}
