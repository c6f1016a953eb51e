//! The first N primes, timed by each way of timing in turn.

use std::hint::black_box;

use model::trial::primes::{
    GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, THREADCLOCK_NS, empty,
};
use threadclock::ThreadClock;

use super::harness::{self, TrialError, TrialOutcome, room};
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

/// Names of the figures of the ways of timing.
const NAMES: [&str; 4] = [THREADCLOCK_NS, GETRUSAGE_NS, GETRUSAGE_USER_NS, GETRUSAGE_THREAD_NS];

/// The figures of each trial, in nanoseconds, in the order of [`NAMES`].
type Figures = [Vec<i64>; 4];

/// One trial by the way of that number.
fn time(way: u32, clock: &ThreadClock, figures: &mut Figures, mut act: impl FnMut()) {
    match way {
        THREADCLOCK => {
            let start = clock.now_ordered();
            act();
            let end = clock.now_ordered();
            figures[0].push(end.ns as i64 - start.ns as i64);
        }
        1 => {
            let (start, end) = by_usage(UsageScope::Own, act);
            figures[1].push(end.total_ns() as i64 - start.total_ns() as i64);
            figures[2].push(end.user_ns() as i64 - start.user_ns() as i64);
        }
        _ => {
            let (start, end) = by_usage(UsageScope::Thread, act);
            figures[3].push(end.total_ns() as i64 - start.total_ns() as i64);
        }
    }
}

#[inline(always)]
fn by_usage(whose: UsageScope, mut act: impl FnMut()) -> (ResourceUsage, ResourceUsage) {
    let start = usage(whose);
    act();
    (start, usage(whose))
}

/// Ways of timing that take trials of their own.
const WAYS: u32 = 3;
/// The first of them.
const THREADCLOCK: u32 = 0;

pub(super) fn run(count: u32, trials: u32, round: u32) -> Result<TrialOutcome, TrialError> {
    let count = count as usize;
    let clock = harness::clock();
    let mut found = Vec::with_capacity(count);
    let lap_ns = warm_up(1, |_| {
        primes(&mut found, count);
        Ok(())
    })?;
    let figures = || -> Figures { NAMES.map(|_| room(trials, 0)) };
    let (mut timed, mut nothing) = (figures(), figures());
    let mut cut = SlicedLoop::new(trials, lap_ns);
    let mut work = || primes(black_box(&mut found), black_box(count));
    let none = || {
        black_box(());
    };
    // Each way has all its trials in a row: what one way asks the kernel brings the kernel's
    // figures up to date for the next, and what threadclock owes after stolen time it must pay
    // itself. Each comes first in a third of the rounds. Slices ask the kernel, too: only
    // threadclock's are taken so.
    for way in (0..WAYS).map(|way| (round + way) % WAYS) {
        if way == THREADCLOCK {
            cut.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |trials| {
                for _ in 0..trials {
                    time(way, &clock, &mut timed, &mut work);
                    time(way, &clock, &mut nothing, none);
                }
                Ok(())
            })?;
            continue;
        }
        (0..trials).for_each(|_| time(way, &clock, &mut timed, &mut work));
        (0..trials).for_each(|_| time(way, &clock, &mut nothing, none));
    }
    let mut outcome = TrialOutcome::default();
    let empties = NAMES.map(empty);
    let mut all = NAMES.iter().zip(&empties).zip(timed.iter().zip(&nothing));
    if let Some(((name, empty), (timed, nothing))) = all.next() {
        cut.add_to(&mut outcome, &[(name, timed), (empty, nothing)]);
    }
    for ((name, empty), (timed, nothing)) in all {
        outcome.tally(name, timed.iter().copied());
        outcome.tally(empty, nothing.iter().copied());
    }
    Ok(outcome)
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
