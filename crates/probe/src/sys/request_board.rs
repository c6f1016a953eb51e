//! What a messenger and a worker share: the requests on their way, and what the worker counted. And
//! the gate at which all of them wait for the beginning.

use std::sync::atomic::{AtomicU32, AtomicU64};

use rundata::trial::load::TIME_PARTS;

use super::page::Shareable;

/// Most requests that a worker gets, the warm-up included: each has a slot of its own, so that the
/// schedule never waits for room.
pub const MAX_WORKER_REQUESTS: usize = 1 << 16;

/// Moments of a request, in nanoseconds of CLOCK_MONOTONIC.
#[repr(C)]
pub struct RequestSlot {
    /// Arrival that the schedule intended.
    pub intended_ns: AtomicU64,
    /// The messenger's reading of the clock right before the wake.
    pub sent_ns: AtomicU64,
}

/// Requests of one worker, and its counts when it has ended.
#[repr(C, align(64))]
pub struct RequestBoard {
    /// Requests sent so far: the word on which the worker waits.
    pub sent: AtomicU32,
    /// Requests in the order in which they are sent.
    pub slots: [RequestSlot; MAX_WORKER_REQUESTS],
    /// When the worker began with each of them, written when all are done.
    pub begin_ns: [AtomicU64; MAX_WORKER_REQUESTS],
    /// When each was done, written when all are.
    pub done_ns: [AtomicU64; MAX_WORKER_REQUESTS],
    /// Wake-ups by the parts of [`TIME_SCALE`](rundata::trial::load::TIME_SCALE).
    pub wakes: [AtomicU32; TIME_PARTS],
    /// Times from the intended arrival to the end, by the same parts.
    pub requests: [AtomicU32; TIME_PARTS],
    /// Requests that the worker received, without the warm-up.
    pub received: AtomicU64,
    /// Waits of the worker that a wake ended, by the kernel's word.
    pub kernel_wakes: AtomicU64,
    /// CPU time of the worker, in nanoseconds.
    pub cpu_ns: AtomicU64,
    /// Voluntary switches of the worker.
    pub voluntary: AtomicU64,
    /// Involuntary switches of the worker.
    pub involuntary: AtomicU64,
}

/// Counts of a messenger when it has ended.
#[repr(C, align(64))]
pub struct MessengerBoard {
    /// Requests that it sent, without the warm-up.
    pub sent: AtomicU64,
    /// Wakes of which the kernel told that they woke a worker.
    pub kernel_wakes: AtomicU64,
    /// Sum of the times from the intended arrivals to its readings of the clock, in nanoseconds.
    pub late_total_ns: AtomicU64,
    /// Intended arrival of its last request after the beginning, in nanoseconds.
    pub schedule_ns: AtomicU64,
    /// Time in which it did not sleep, in nanoseconds.
    pub busy_ns: AtomicU64,
}

/// The gate at which workers and messengers wait for the beginning.
#[repr(C, align(64))]
pub struct StartGate {
    /// Workers and messengers that are ready.
    pub ready: AtomicU32,
    /// 1 when the gate is open.
    pub open: AtomicU32,
    /// Beginning of the schedule, in nanoseconds of CLOCK_MONOTONIC.
    pub start_ns: AtomicU64,
}

// SAFETY: atomics only: zero is a value, and they hold no address.
unsafe impl Shareable for RequestBoard {}
// SAFETY: as above.
unsafe impl Shareable for MessengerBoard {}
// SAFETY: as above.
unsafe impl Shareable for StartGate {}
