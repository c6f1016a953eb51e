//! The counter's rate, process-wide: known after 100 us, refined for as long as the process lives.
//!
//! An anchor (stamp, CLOCK_MONOTONIC_RAW) is taken at first use. The rate is the slope from it to a
//! later such pair, taken again each time the anchor's age has doubled. A pair is wrong by some 40 ns:
//!
//! ```text
//! age of the anchor        100 us      1 ms      100 ms     10 s
//! error of the rate        800 ppm     80 ppm    0.8 ppm    0.008 ppm
//! ```
//!
//! No thread ever waits for another except during the first 100 us. A small correction is added: the
//! rate of the kernel's scheduler clock, by which CLOCK_THREAD_CPUTIME_ID ticks, differs a little from
//! that of CLOCK_MONOTONIC_RAW ([`agree_with_kernel`]).

use crate::{arch, sys};
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*, fence};

/// Even: the anchor is valid (0: none yet). Odd: being written.
static SEQUENCE: AtomicU32 = AtomicU32::new(0);
static ANCHOR_STAMP: AtomicU64 = AtomicU64::new(0);
static ANCHOR_RAW_NS: AtomicU64 = AtomicU64::new(0);
/// The age of the anchor, in ticks, when the rate was last taken.
static TAKEN_AT_AGE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per tick times 2^32, by CLOCK_MONOTONIC_RAW since the anchor. 0: not known yet.
static NS_PER_TICK: AtomicU64 = AtomicU64::new(0);
/// Parts in 10^9 by which the scheduler clock is faster.
static KERNEL_EXCESS_PPB: AtomicI64 = AtomicI64::new(0);

/// Limits how young an anchor gives a rate: 40 ns at both ends of this make 800 ppm, which is 40 ns
/// over the default period of 48 us.
const MIN_ANCHOR_AGE_NS: u64 = 100_000;
/// Limits the error of two pairs together where the core is shared and each call takes long.
const MAX_PAIRS_ERROR_NS: u64 = 4_000;
/// The range of nanoseconds per tick, times 2^32, from 10 GHz to 1 MHz. Beyond it a clock is broken.
pub(crate) const PLAUSIBLE_RATES: core::ops::Range<u64> = (1 << 32) / 10..1000 << 32;

/// Nanoseconds per tick, times 2^32, with the correction: what readers use. 0: not known yet.
static RATE: AtomicU64 = AtomicU64::new(0);
/// The inverse of [`RATE`]: ticks per nanosecond, times 2^32.
static INVERSE: AtomicU64 = AtomicU64::new(0);

/// Returns nanoseconds per tick, times 2^32, or 0 if not known yet.
#[inline]
pub(crate) fn ns_per_tick() -> u64 {
    RATE.load(Relaxed)
}

/// Converts nanoseconds to ticks; 0 if the rate is not known yet.
#[inline]
pub(crate) fn ticks_of(ns: u64) -> u64 {
    ((u128::from(ns) * u128::from(INVERSE.load(Relaxed))) >> 32) as u64
}

/// Converts ticks to nanoseconds; 0 if the rate is not known yet.
pub(crate) fn ns_of(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(ns_per_tick())) >> 32) as u64
}

/// Makes the rate and its inverse with the correction known to readers.
fn publish() {
    let raw = i128::from(NS_PER_TICK.load(Relaxed));
    let excess = i128::from(KERNEL_EXCESS_PPB.load(Relaxed));
    let rate = (raw + raw * excess / 1_000_000_000) as u128;
    INVERSE.store((1u128 << 64).checked_div(rate).unwrap_or(0) as u64, Relaxed);
    RATE.store(rate as u64, Relaxed);
}

/// Takes the anchor, if there is none yet.
pub(crate) fn start() {
    if SEQUENCE.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
        write_anchor();
        SEQUENCE.store(2, Release);
    }
}

/// Makes the rate known, waiting for the end of the first 100 us if need be. Returns false if it
/// cannot be known.
pub(crate) fn finish() -> bool {
    start();
    // Bounded: if the thread that took the anchor died in a fork, the answer is "no".
    for _ in 0..1_000 {
        if ns_per_tick() != 0 {
            return true;
        }
        refine(arch::stamp());
        sys::sleep_ns(10_000);
    }
    false
}

/// Takes the rate again if the anchor has doubled its age. Called at each re-sync; cheap if not due.
#[inline]
pub(crate) fn refine(now: u64) {
    let age = now.wrapping_sub(ANCHOR_STAMP.load(Relaxed));
    if age >= TAKEN_AT_AGE.load(Relaxed).saturating_mul(2) {
        take_rate();
    }
}

#[cold]
fn take_rate() {
    let before = SEQUENCE.load(Acquire);
    if before == 0 || before % 2 == 1 {
        return;
    }
    let (anchor_stamp, anchor_ns) = (ANCHOR_STAMP.load(Relaxed), ANCHOR_RAW_NS.load(Relaxed));
    let (stamp, raw_ns) = take_pair();
    let age = stamp.wrapping_sub(anchor_stamp);
    let elapsed_ns = raw_ns.wrapping_sub(anchor_ns);
    if elapsed_ns < MIN_ANCHOR_AGE_NS {
        return;
    }
    let rate = (u128::from(elapsed_ns) << 32).checked_div(u128::from(age)).unwrap_or(0);
    let known = NS_PER_TICK.load(Relaxed);
    // The counter of a machine that was suspended or moved may have jumped: start again.
    let has_jumped =
        known != 0 && (rate as u64).abs_diff(known) > max_rate_difference(known, taken_at_ns());
    if !PLAUSIBLE_RATES.contains(&(rate as u64)) || age > i64::MAX as u64 || has_jumped {
        if SEQUENCE.compare_exchange(before, before.wrapping_add(1), Acquire, Relaxed).is_ok() {
            write_anchor();
            SEQUENCE.store(before.wrapping_add(2).max(2), Release);
        }
        return;
    }
    // The anchor was loaded before the sequence is read again.
    fence(Acquire);
    if SEQUENCE.load(Relaxed) == before {
        NS_PER_TICK.store(rate as u64, Relaxed);
        TAKEN_AT_AGE.store(age, Relaxed);
        publish();
    }
}

/// Returns the age of the anchor when the rate was last taken, in nanoseconds.
fn taken_at_ns() -> u64 {
    ns_of(TAKEN_AT_AGE.load(Relaxed))
}

/// Returns the largest difference of two rates that the errors of their pairs explain; `known` was
/// taken when the anchor had the age `age_ns`.
fn max_rate_difference(known: u64, age_ns: u64) -> u64 {
    let age_ns = age_ns.max(MIN_ANCHOR_AGE_NS);
    let by_pairs = u128::from(known) * u128::from(MAX_PAIRS_ERROR_NS) / u128::from(age_ns);
    known / 500 + by_pairs as u64
}

/// Takes a new anchor. Readers keep the rate that they have until there is another.
fn write_anchor() {
    let (stamp, raw_ns) = take_pair();
    // The odd sequence is seen before the anchor changes.
    fence(Release);
    ANCHOR_STAMP.store(stamp, Relaxed);
    ANCHOR_RAW_NS.store(raw_ns, Relaxed);
    TAKEN_AT_AGE.store(0, Relaxed);
    NS_PER_TICK.store(0, Relaxed);
}

/// Takes a stamp with CLOCK_MONOTONIC_RAW, the narrowest of five pairs.
fn take_pair() -> (u64, u64) {
    narrowest_pair(5, arch::stamp, sys::monotonic_raw_ns)
}

/// Takes pairs of a stamp and a clock of the kernel, and returns the one that took the shortest time:
/// the middle of its two stamps, and the clock in nanoseconds.
pub(crate) fn narrowest_pair(
    pairs: u32,
    stamp: impl Fn() -> u64,
    clock_ns: impl Fn() -> u64,
) -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..pairs {
        let first = stamp();
        let ns = clock_ns();
        let width = stamp().wrapping_sub(first);
        if width < best.0 {
            best = (width, first.wrapping_add(width / 2), ns);
        }
    }
    (best.1, best.2)
}

/// Corrects the rate by a stretch without a switch: by the scheduler clock it took `kernel_ns`, by
/// the counter `ticks`.
pub(crate) fn agree_with_kernel(kernel_ns: u64, ticks: u64) {
    let raw = NS_PER_TICK.load(Relaxed);
    if raw == 0 {
        return;
    }
    let by_raw_ns = (u128::from(ticks) * u128::from(raw)) >> 32;
    let excess = KERNEL_EXCESS_PPB.load(Relaxed);
    KERNEL_EXCESS_PPB.store(next_excess_ppb(excess, kernel_ns, by_raw_ns as u64), Relaxed);
    publish();
}

/// Makes one step of a running median, 0.5 ppm up if this stretch was faster than the estimate, down
/// if slower. A mean would not do: steal makes some stretches slower by any amount.
fn next_excess_ppb(estimate: i64, kernel_ns: u64, by_raw_ns: u64) -> i64 {
    const STEP_PPB: i64 = 500;
    const MAX_PPB: i64 = 1_000_000;
    let (kernel, raw) = (i128::from(kernel_ns), i128::from(by_raw_ns));
    let faster = (kernel - raw) * 1_000_000_000 > i128::from(estimate) * raw;
    let step = if faster { STEP_PPB } else { -STEP_PPB };
    (estimate + step).clamp(-MAX_PPB, MAX_PPB)
}

#[cfg(test)]
mod tests {
    use super::{max_rate_difference, next_excess_ppb};

    #[test]
    fn a_young_rate_may_be_off_by_more_than_an_old_one() {
        // 4 us of 100 us are 4 %, and of a second next to nothing; 0.2 % is always allowed.
        assert_eq!(max_rate_difference(1_000_000, 100_000), 42_000);
        assert_eq!(max_rate_difference(1_000_000, 0), 42_000);
        assert_eq!(max_rate_difference(1_000_000, 1_000_000_000), 2_004);
    }

    #[test]
    fn the_median_finds_the_rate_through_steal() {
        for truth_ppb in [-300_000i64, 0, 42_000, 300_000] {
            let mut estimate = 0;
            for round in 0..4_000u64 {
                let raw_ns = 10_000_000;
                let steal_ns = if round % 3 == 0 { 1_000_000 } else { 0 };
                let noise_ns = (round * 7919 % 201) as i64 - 100;
                let kernel_ns = raw_ns as i64 + truth_ppb / 100 + noise_ns - steal_ns;
                estimate = next_excess_ppb(estimate, kernel_ns as u64, raw_ns);
            }
            // A third of the stretches pull down: the noise's lower quarter, 50 ns in 10 ms.
            assert!((estimate - truth_ppb).abs() < 10_000, "{estimate} for {truth_ppb}");
        }
    }

    #[test]
    fn the_correction_is_bounded() {
        let mut estimate = 0;
        for _ in 0..10_000 {
            estimate = next_excess_ppb(estimate, 9_000_000, 10_000_000);
        }
        assert_eq!(estimate, -1_000_000);
    }

    #[test]
    fn the_rate_is_known_at_once_and_plausible() {
        if crate::arch::HAS_COUNTER {
            assert!(super::finish());
            assert!(super::PLAUSIBLE_RATES.contains(&super::ns_per_tick()));
        }
    }
}
