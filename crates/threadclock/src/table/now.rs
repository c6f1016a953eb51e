//! `CLOCK_MONOTONIC` for the price of a time stamp: the line through two pairs of stamp and kernel
//! clock, the later one at most a millisecond old.

use crate::calibrate::{PLAUSIBLE, tightest};
use crate::{arch, sys, witness};
use core::cell::Cell;

/// Age at which a pair is renewed. A rate taken over as long is wrong by some 20 ppm: 20 ns at its
/// end.
const RENEW_NS: u64 = 1_000_000;

/// Not shared between threads: its pair changes.
#[derive(Debug, Default)]
pub(crate) struct Monotonic {
    stamp: Cell<u64>,
    ns: Cell<u64>,
    /// Nanoseconds a tick, times 2^32. 0: the counter is not used.
    rate: Cell<u64>,
    /// Ticks for which the pair is good.
    good_ticks: Cell<u64>,
}

impl Monotonic {
    /// Takes a millisecond, to know the rate.
    pub(crate) fn new() -> Self {
        let (stamp, ns) = pair();
        let clock = Self { stamp: stamp.into(), ns: ns.into(), ..Self::default() };
        if arch::HAS_COUNTER && witness::counter_is_good().is_ok() {
            sys::sleep_ns(RENEW_NS as i64);
            clock.renew();
        }
        clock
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`; `None` if the pair must be renewed first.
    #[inline(always)]
    pub(crate) fn now(&self) -> Option<u64> {
        let age = arch::stamp().wrapping_sub(self.stamp.get());
        // At most 2^24 ticks of at most 2^42: no overflow that matters.
        (age < self.good_ticks.get())
            .then(|| self.ns.get().wrapping_add(age.wrapping_mul(self.rate.get()) >> 32))
    }

    /// Takes a new pair, and the rate if the last one is long enough ago. Says what time it is.
    pub(crate) fn renew(&self) -> u64 {
        let (stamp, ns) = pair();
        let ticks = stamp.wrapping_sub(self.stamp.get());
        let elapsed_ns = ns.wrapping_sub(self.ns.get());
        if (RENEW_NS / 2..1 << 40).contains(&elapsed_ns) {
            let rate = (u128::from(elapsed_ns) << 32).checked_div(u128::from(ticks)).unwrap_or(0);
            let rate = u64::try_from(rate).unwrap_or(0);
            if PLAUSIBLE.contains(&rate) && ticks < 1 << 62 {
                self.rate.set(rate);
                self.good_ticks.set((RENEW_NS << 32) / rate);
            } else {
                // Suspended, or moved to another machine: the kernel's clock until the next pair.
                self.good_ticks.set(0);
            }
        } else if elapsed_ns >= 1 << 40 {
            self.good_ticks.set(0);
        }
        self.stamp.set(stamp);
        self.ns.set(ns);
        ns
    }
}

/// A stamp and `CLOCK_MONOTONIC`.
fn pair() -> (u64, u64) {
    tightest(3, arch::stamp_ordered, || sys::clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0))
}
