//! The first N primes, timed by each way of timing in turn.

use std::hint::black_box;

use model::trial::primes::{
    GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, THREADCLOCK_NS, empty,
};
use model::trial::{Case, Tally, Trial};
use threadclock::ThreadClock;

use super::{Outcome, TrialError};
use crate::sys::{Whose, usage};

/// Fills `found` with the first primes, by trial division by those found before.
pub fn primes(found: &mut Vec<u32>, count: usize) {
    found.clear();
    let mut candidate = 2;
    while found.len() < count {
        let small = found.iter().take_while(|prime| **prime * **prime <= candidate);
        if small.clone().all(|prime| !candidate.is_multiple_of(*prime)) {
            found.push(candidate);
        }
        candidate += 1;
    }
}

/// What the ways of timing said of each trial, in nanoseconds.
#[derive(Default)]
struct Said {
    threadclock: Vec<i64>,
    getrusage: Vec<i64>,
    getrusage_user: Vec<i64>,
    getrusage_thread: Vec<i64>,
}

impl Said {
    fn with_room(trials: usize) -> Self {
        let room = || Vec::with_capacity(trials);
        Self {
            threadclock: room(),
            getrusage: room(),
            getrusage_user: room(),
            getrusage_thread: room(),
        }
    }

    /// One trial by the way of that number.
    fn time(&mut self, way: u32, clock: &ThreadClock, mut act: impl FnMut()) {
        match way {
            0 => {
                let start = clock.now_ordered();
                act();
                let end = clock.now_ordered();
                self.threadclock.push(end.ns as i64 - start.ns as i64);
            }
            1 => {
                let start = usage(Whose::Own);
                act();
                let (start, end) = (start.read(), usage(Whose::Own).read());
                self.getrusage.push(end.total_ns() as i64 - start.total_ns() as i64);
                self.getrusage_user.push(end.user_ns as i64 - start.user_ns as i64);
            }
            _ => {
                let start = usage(Whose::Thread);
                act();
                let (start, end) = (start.read(), usage(Whose::Thread).read());
                self.getrusage_thread.push(end.total_ns() as i64 - start.total_ns() as i64);
            }
        }
    }

    fn into_tallies(self) -> [(&'static str, Tally); 4] {
        [
            (THREADCLOCK_NS, Tally::from_iter(self.threadclock)),
            (GETRUSAGE_NS, Tally::from_iter(self.getrusage)),
            (GETRUSAGE_USER_NS, Tally::from_iter(self.getrusage_user)),
            (GETRUSAGE_THREAD_NS, Tally::from_iter(self.getrusage_thread)),
        ]
    }
}

/// Ways of timing that take trials of their own.
const WAYS: u32 = 3;

pub(super) fn run(case: &Case, trials: u32, round: u32) -> Result<Outcome, TrialError> {
    let Trial::Primes { primes: count } = case.trial else { return Err(TrialError::WrongTrial) };
    let count = count as usize;
    let clock = super::clock();
    let mut found = Vec::with_capacity(count);
    primes(&mut found, count);
    let mut timed = Said::with_room(trials as usize);
    let mut nothing = Said::with_room(trials as usize);
    // Each way has all its trials in a row: what one way asks the kernel brings the kernel's figures
    // up to date for the next, and what threadclock owes after stolen time it must pay itself. Each
    // comes first in a third of the rounds.
    for way in (0..WAYS).map(|way| (round + way) % WAYS) {
        for _ in 0..trials {
            timed.time(way, &clock, || primes(black_box(&mut found), black_box(count)));
        }
        for _ in 0..trials {
            nothing.time(way, &clock, || {
                black_box(&mut found);
            });
        }
    }
    let mut outcome = Outcome::default();
    for (name, tally) in timed.into_tallies() {
        outcome = outcome.with(name, tally);
    }
    for (name, tally) in nothing.into_tallies() {
        outcome = outcome.with(&empty(name), tally);
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
