//! Differences of two readings.

use crate::{CpuTime, ThreadClock};
use core::cell::Cell;

/// CPU time since it was started. Each end is a reading with the clock's error.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch<'a> {
    clock: &'a ThreadClock,
    started: CpuTime,
}

impl<'a> Stopwatch<'a> {
    /// Starts now.
    #[inline]
    pub fn start(clock: &'a ThreadClock) -> Self {
        Self { clock, started: clock.now() }
    }

    /// The thread's CPU time since the start.
    #[inline]
    pub fn elapsed(&self) -> CpuTime {
        self.clock.now() - self.started
    }

    /// As `elapsed`, and starts again at the same reading: laps add up to the whole.
    #[inline]
    pub fn lap(&mut self) -> CpuTime {
        let now = self.clock.now();
        let lap = now - self.started;
        self.started = now;
        lap
    }

    /// Adds the time until the guard is dropped to `total`.
    ///
    /// ```
    /// let clock = threadclock::ThreadClock::for_this_thread();
    /// let total = std::cell::Cell::default();
    /// {
    ///     let _timed = clock.stopwatch().until_dropped(&total);
    ///     std::hint::black_box((0..1_000u64).sum::<u64>());
    /// }
    /// assert!(total.get().ns > 0);
    /// ```
    #[must_use = "the time stops when the guard is dropped"]
    pub fn until_dropped(self, total: &'a Cell<CpuTime>) -> Scope<'a> {
        Scope { stopwatch: self, total }
    }
}

/// Adds its life's CPU time to a total: see [`Stopwatch::until_dropped`].
#[derive(Debug)]
pub struct Scope<'a> {
    stopwatch: Stopwatch<'a>,
    total: &'a Cell<CpuTime>,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.total.set(self.total.get() + self.stopwatch.elapsed());
    }
}
