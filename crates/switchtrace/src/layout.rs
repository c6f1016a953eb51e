//! What the programs write and user space reads. What is read without privileges is laid out in
//! `threadclock::table::layout`.

use std::sync::atomic::{AtomicU32, AtomicU64};
use threadclock::table::layout::ThreadRecord;

/// Histograms of a thread.
pub(crate) const HISTOGRAMS: usize = 7;
/// Buckets of a histogram.
pub(crate) const BUCKETS: usize = 32;
/// The first bucket ends at twice this: 2^7 ns.
pub(crate) const FIRST_SHIFT: u32 = 6;

/// What stands behind a [`ThreadRecord`] where switches are aggregated.
#[repr(C)]
pub(crate) struct Activity {
    pub(crate) record: ThreadRecord,
    /// `CLOCK_MONOTONIC` when it was last switched out; 0: not seen yet.
    pub(crate) out_ns: AtomicU64,
    /// When it was last switched to; 0: not seen yet.
    pub(crate) in_ns: AtomicU64,
    /// Why it was last switched out, a [`SwitchCause`](crate::SwitchCause).
    pub(crate) cause: AtomicU32,
    /// The process that forked it, or its parent when it was first seen.
    pub(crate) parent: AtomicU32,
    /// Switches out of sched_yield(2), since it was first seen.
    pub(crate) yields: AtomicU64,
    /// Whom it was last switched to, and how often in a row: not in the map of pairs yet.
    pub(crate) pair_next: AtomicU64,
    pub(crate) pair_voluntary: AtomicU32,
    pub(crate) pair_involuntary: AtomicU32,
    pub(crate) comm: [AtomicU64; 2],
    pub(crate) histograms: [[AtomicU32; BUCKETS]; HISTOGRAMS],
}

/// Bytes of an element of the table, without and with activity.
pub(crate) const RECORD_BYTES: u32 = size_of::<ThreadRecord>() as u32;
pub(crate) const ACTIVITY_BYTES: u32 = size_of::<Activity>() as u32;
const _: () = assert!(ACTIVITY_BYTES.is_power_of_two());

/// `TASK_DEAD` and others of include/linux/sched.h.
pub(crate) const TASK_DEAD: i32 = 0x80;
pub(crate) const TASK_INTERRUPTIBLE: i32 = 1;
pub(crate) const TASK_UNINTERRUPTIBLE: i32 = 2;
pub(crate) const TASK_NOLOAD: i32 = 0x400;

/// The kinds of recorded events.
pub(crate) mod kind {
    pub(crate) const SWITCH: u32 = 0;
    pub(crate) const WAKEUP: u32 = 1;
    pub(crate) const NEW: u32 = 2;
    pub(crate) const MIGRATE: u32 = 3;
}

/// An event in the ring buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) time_ns: u64,
    /// Kind in the lower half, CPU in the upper.
    pub(crate) kind_and_cpu: u32,
    /// Switch: state, and in bit 31 whether preempted. Wake-up, migration: the new CPU.
    pub(crate) state: u32,
    pub(crate) first_tid: u32,
    pub(crate) second_tid: u32,
    pub(crate) first_prio: u32,
    pub(crate) second_prio: u32,
}
