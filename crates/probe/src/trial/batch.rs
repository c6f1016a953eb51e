//! Calls one after the other between two time stamps: the loop that all of them share.

use std::hint::black_box;

use model::trial::overhead::BATCH_CALLS;

use super::call::Call;

/// Calls that are made before any is timed.
pub(super) const WARM_UP: u32 = 100;

/// The time-stamp counter, ordered. Who times has looked before whether there is one.
#[inline(always)]
pub(super) fn stamp() -> u64 {
    threadclock::time_stamp_ordered().unwrap_or(0)
}

/// Ticks of a batch. Measured code. The length is hidden from the compiler: it would unroll the loop
/// of one call and not that of another.
#[inline(never)]
pub(super) fn batch<C: Call>(call: &mut C) -> i64 {
    let start = stamp();
    for _ in 0..black_box(BATCH_CALLS) {
        call.make();
    }
    stamp().wrapping_sub(start) as i64
}
