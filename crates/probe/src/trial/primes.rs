//! The first N primes, timed in several ways.

use std::hint::black_box;

use rundata::trial::primes::{
    GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, THREADCLOCK_NS, empty_tally_name,
};
use threadclock::ThreadClock;

use super::harness::{self, TrialError, TrialOutcome, touched_room};
use super::timing::{SlicedLoop, warm_up};
use crate::ring::{MemberClocks, SliceMeters};
use crate::sys::{ResourceUsage, UsageScope, usage};

/// Fills `found` with the first primes, by trial division by those found before.
pub fn primes(found: &mut Vec<u32>, count: usize) {
    found.clear();
    let mut candidate = 2;
    while found.len() < count {
        let small = found.iter().take_while(|prime| **prime * **prime <= candidate);
        if small.clone().all(|prime| candidate % *prime != 0) {
            found.push(candidate);
        }
        candidate += 1;
    }
}

/// Names of the figures of all ways of timing.
const NAMES: [&str; 4] = [THREADCLOCK_NS, GETRUSAGE_NS, GETRUSAGE_USER_NS, GETRUSAGE_THREAD_NS];

/// The figures of each trial, in nanoseconds, in the order of [`NAMES`].
type Figures = [Vec<i64>; 4];

/// Times one trial in the way of that number.
fn time(way: u32, clock: &ThreadClock, figures: &mut Figures, mut act: impl FnMut()) {
    match way {
        THREADCLOCK => {
            let start = clock.now_ordered();
            act();
            let end = clock.now_ordered();
            figures[0].push(end.ns as i64 - start.ns as i64);
        }
        1 => {
            let (start, end) = usage_around(UsageScope::Own, act);
            figures[1].push(end.total_ns() as i64 - start.total_ns() as i64);
            figures[2].push(end.user_ns() as i64 - start.user_ns() as i64);
        }
        _ => {
            let (start, end) = usage_around(UsageScope::Thread, act);
            figures[3].push(end.total_ns() as i64 - start.total_ns() as i64);
        }
    }
}

/// Returns the usage before and after `act`.
#[inline(always)]
fn usage_around(scope: UsageScope, mut act: impl FnMut()) -> (ResourceUsage, ResourceUsage) {
    let start = usage(scope);
    act();
    (start, usage(scope))
}

/// Number of ways of timing, each with trials of its own.
const WAYS: u32 = 3;
/// Number of the way by threadclock.
const THREADCLOCK: u32 = 0;

/// Computes the first `count` primes `trials` times in each way of timing.
pub(super) fn run(count: u32, trials: u32, round: u32) -> Result<TrialOutcome, TrialError> {
    let count = count as usize;
    let clock = harness::synchronised_clock();
    let mut found = Vec::with_capacity(count);
    let lap_ns = warm_up(1, |_| {
        primes(&mut found, count);
        Ok(())
    })?;
    let mut timed: Figures = NAMES.map(|_| touched_room(trials, 0));
    let mut empty_times: Figures = NAMES.map(|_| touched_room(trials, 0));
    let mut cut = SlicedLoop::new(trials, lap_ns);
    let mut compute = || primes(black_box(&mut found), black_box(count));
    // Each way has all its trials in a row: a call of one way would bring the kernel's figures up
    // to date for the next, and threadclock must synchronise after stolen time in its own trials.
    // Each way comes first in a third of the rounds. Slices call the kernel too: only threadclock's
    // trials are cut into slices.
    for way in (0..WAYS).map(|way| (round + way) % WAYS) {
        if way == THREADCLOCK {
            cut.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |trials| {
                for _ in 0..trials {
                    time(way, &clock, &mut timed, &mut compute);
                    time(way, &clock, &mut empty_times, do_nothing);
                }
                Ok(())
            })?;
            continue;
        }
        for _ in 0..trials {
            time(way, &clock, &mut timed, &mut compute);
        }
        for _ in 0..trials {
            time(way, &clock, &mut empty_times, do_nothing);
        }
    }
    let mut outcome = TrialOutcome::default();
    let empty_names = NAMES.map(empty_tally_name);
    // The figures of the way by threadclock, which come first, are sliced.
    cut.add_to(&mut outcome, &[(NAMES[0], &timed[0]), (&empty_names[0], &empty_times[0])]);
    for figure in 1..NAMES.len() {
        outcome.tally(NAMES[figure], timed[figure].iter().copied());
        outcome.tally(&empty_names[figure], empty_times[figure].iter().copied());
    }
    Ok(outcome)
}

/// Does nothing, hidden from the compiler.
#[inline(always)]
fn do_nothing() {
    black_box(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_first_primes() {
        let mut found = Vec::new();
        primes(&mut found, 10);
        assert_eq!(found, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        // The 5000th prime, by any table.
        primes(&mut found, 5000);
        assert_eq!(found.last(), Some(&48_611));
        primes(&mut found, 0);
        assert!(found.is_empty());
    }
}
