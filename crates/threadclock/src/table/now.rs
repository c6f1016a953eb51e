//! `CLOCK_MONOTONIC` for the price of a time stamp: the line through two pairs of stamp and kernel
//! clock, the later one at most a millisecond old.

use crate::calibrate::{PLAUSIBLE_RATES, narrowest_pair};
use crate::{arch, sys, witness};
use core::cell::Cell;

/// Limits the age of a pair. A rate taken over as long is wrong by some 20 ppm: 20 ns at its
/// end.
const MAX_PAIR_AGE_NS: u64 = 1_000_000;

/// A clock for one thread: its pair changes as it is read.
#[derive(Debug, Default)]
pub(crate) struct MonotonicClock {
    stamp: Cell<u64>,
    ns: Cell<u64>,
    /// Nanoseconds a tick, times 2^32. 0: the counter is not used.
    rate: Cell<u64>,
    /// Ticks for which the pair may be used.
    max_ticks: Cell<u64>,
}

impl MonotonicClock {
    /// Makes a clock. Takes a millisecond, to know the rate.
    pub(crate) fn new() -> Self {
        let (stamp, ns) = take_pair();
        let clock = Self { stamp: stamp.into(), ns: ns.into(), ..Self::default() };
        if arch::HAS_COUNTER && witness::counter_is_good().is_ok() {
            sys::sleep_ns(MAX_PAIR_AGE_NS as i64);
            clock.renew();
        }
        clock
    }

    /// Returns nanoseconds of `CLOCK_MONOTONIC`; `None` if the pair must be renewed first.
    #[inline(always)]
    pub(crate) fn now(&self) -> Option<u64> {
        let age = arch::stamp().wrapping_sub(self.stamp.get());
        // At most 2^24 ticks of at most 2^42: no overflow that matters.
        (age < self.max_ticks.get())
            .then(|| self.ns.get().wrapping_add(age.wrapping_mul(self.rate.get()) >> 32))
    }

    /// Takes a new pair, and the rate if the last pair is old enough. Returns the time.
    pub(crate) fn renew(&self) -> u64 {
        let (stamp, ns) = take_pair();
        let ticks = stamp.wrapping_sub(self.stamp.get());
        let elapsed_ns = ns.wrapping_sub(self.ns.get());
        if (MAX_PAIR_AGE_NS / 2..1 << 40).contains(&elapsed_ns) {
            let rate = (u128::from(elapsed_ns) << 32).checked_div(u128::from(ticks)).unwrap_or(0);
            let rate = u64::try_from(rate).unwrap_or(0);
            if PLAUSIBLE_RATES.contains(&rate) && ticks < 1 << 62 {
                self.rate.set(rate);
                self.max_ticks.set((MAX_PAIR_AGE_NS << 32) / rate);
            } else {
                // Suspended, or moved to another machine: the kernel's clock until the next pair.
                self.max_ticks.set(0);
            }
        } else if elapsed_ns >= 1 << 40 {
            self.max_ticks.set(0);
        }
        self.stamp.set(stamp);
        self.ns.set(ns);
        ns
    }
}

/// Takes a stamp with `CLOCK_MONOTONIC`, the narrowest of three pairs.
fn take_pair() -> (u64, u64) {
    narrowest_pair(3, arch::stamp_ordered, || sys::clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0))
}
