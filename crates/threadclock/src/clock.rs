//! The clock and the stopwatch that users see.

use crate::slot::{self, ClockSlot, ResyncCounts, kind};
use crate::thread::{self, ThreadState};
use crate::types::{CpuTime, Tier, TierRefusal};
use crate::{arch, calibrate, sys};
use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

/// The CPU time of the thread that made it.
///
/// Clocks of one thread and tier are one clock: they share its base, its bound and its count of
/// re-syncs. A clock can neither be sent to nor shared with another thread:
///
/// ```compile_fail
/// let clock = threadclock::ThreadClock::for_this_thread();
/// std::thread::spawn(move || clock.now());
/// ```
///
/// It may be read in a signal handler (make it before), and goes on in the child of a fork, where
/// it gives the child's time.
pub struct ThreadClock {
    /// A pointer, so that the clock is neither Send nor Sync.
    slot: *const ClockSlot,
    /// An error if no memory could be mapped.
    thread: Result<&'static ThreadState, TierRefusal>,
    /// Whether the caller asked for this tier.
    asked: bool,
}

impl ThreadClock {
    /// Returns the best clock that is available here; at worst the kernel's. The first in a process
    /// takes some 300 us (it lets itself be switched out, to test that it notices), the first in a
    /// thread some 10.
    pub fn for_this_thread() -> Self {
        let thread = ThreadState::current();
        Self::with_slot(thread, thread.map_or_else(|_| thread::bare(), ThreadState::best), false)
    }

    /// Returns a clock of this tier.
    ///
    /// # Errors
    /// [`TierRefusal`] if the tier is not available here.
    pub fn with_tier(tier: Tier) -> Result<Self, TierRefusal> {
        let thread = ThreadState::current()?;
        Ok(Self::with_slot(Ok(thread), thread.slot(tier)?, true))
    }

    fn with_slot(
        thread: Result<&'static ThreadState, TierRefusal>,
        slot: &ClockSlot,
        asked: bool,
    ) -> Self {
        if let Ok(thread) = thread {
            thread.hold();
        }
        Self { slot, thread, asked }
    }

    #[inline(always)]
    fn slot(&self) -> &ClockSlot {
        // SAFETY: lies in the thread's pages, which `hold` keeps, or is the static one.
        unsafe { &*self.slot }
    }

    /// Returns the thread's CPU time. It is out of order by as much as the processor's time stamp
    /// is: some tens of instructions around the call may be counted or not.
    #[inline(always)]
    pub fn now(&self) -> CpuTime {
        self.now_with(arch::stamp)
    }

    /// Returns the thread's CPU time after everything before the call is done and before anything after it
    /// has begun.
    #[inline(always)]
    pub fn now_ordered(&self) -> CpuTime {
        self.now_with(arch::stamp_ordered)
    }

    /// Returns the CPU time at the stamp of `take_stamp`: tests do things between the parts of a
    /// read.
    #[inline(always)]
    fn now_with(&self, take_stamp: impl FnOnce() -> u64) -> CpuTime {
        match self.slot().read(take_stamp) {
            Ok(time) => time,
            Err(stamp) => self.read_slowly(stamp),
        }
    }

    #[cold]
    #[inline(never)]
    fn read_slowly(&self, stamp: u64) -> CpuTime {
        slow_read(self.thread.ok(), self.slot(), stamp)
    }

    /// Starts a stopwatch.
    ///
    /// A base in the second half of its period is renewed before: asking the kernel would otherwise
    /// fall into short intervals, at their end.
    #[inline(always)]
    pub fn stopwatch(&self) -> Stopwatch<'_> {
        self.stopwatch_with(arch::stamp)
    }

    /// Starts a stopwatch in order, as [`now_ordered`](Self::now_ordered): for intervals of a few
    /// nanoseconds.
    #[inline(always)]
    pub fn stopwatch_ordered(&self) -> Stopwatch<'_> {
        self.stopwatch_with(arch::stamp_ordered)
    }

    #[inline(always)]
    fn stopwatch_with(&self, take_stamp: fn() -> u64) -> Stopwatch<'_> {
        let (started, stamp) = match self.slot().read_within::<1>(take_stamp) {
            Ok(reading) => reading,
            Err(stamp) => self.renew(stamp, take_stamp),
        };
        Stopwatch { clock: self, started, stamp }
    }

    /// Asks the kernel, then reads once more, so that the asking is not part of the interval.
    #[cold]
    #[inline(never)]
    fn renew(&self, stamp: u64, take_stamp: fn() -> u64) -> (CpuTime, u64) {
        slow_read(self.thread.ok(), self.slot(), stamp);
        let again = self.slot().read_within::<0>(take_stamp);
        again.unwrap_or_else(|stamp| (self.read_slowly(stamp), stamp))
    }

    /// Returns the tier by which this clock reads the time.
    pub fn tier(&self) -> Tier {
        match self.slot().kind.load(Relaxed) {
            kind::STORE => Tier::Rseq,
            kind::COUNT => Tier::PerfPage,
            kind::CALL => Tier::SystemCall,
            kind::WIPED => {
                self.now();
                self.tier()
            }
            _ => Tier::Kernel,
        }
    }

    /// Returns the tiers better than this clock's, each with the reason why it was not taken.
    pub fn not_taken(&self) -> impl Iterator<Item = (Tier, TierRefusal)> {
        let clock_tier = self.tier();
        let (thread, not_asked) = (self.thread, self.asked.then_some(TierRefusal::NotAsked));
        let better_tiers = Tier::ALL.into_iter().filter(move |tier| *tier < clock_tier);
        better_tiers.filter_map(move |tier| {
            let refusal = match thread {
                Ok(thread) => thread.refused(tier),
                Err(no_memory) => Some(no_memory),
            };
            Some((tier, refusal.or(not_asked)?))
        })
    }

    /// Measures the cost of one [`now`](Self::now): the least of 16 batches of 64 reads. Re-syncs
    /// come on top: one reading of the kernel's clock per [`error_bound_ns`](Self::error_bound_ns)
    /// and per switch.
    pub fn read_cost(&self) -> CpuTime {
        const BATCHES: usize = 16;
        (0..BATCHES).map(|_| self.batch_cost()).min().unwrap_or_default()
    }

    fn batch_cost(&self) -> CpuTime {
        const READS: u64 = 64;
        let (first_ns, first) = (sys::monotonic_raw_ns(), arch::stamp_ordered());
        for _ in 0..READS {
            core::hint::black_box(self.now());
        }
        let cycles = arch::stamp_ordered().wrapping_sub(first);
        let ns = sys::monotonic_raw_ns().wrapping_sub(first_ns);
        CpuTime { ns: ns.div_ceil(READS), cycles: cycles.div_ceil(READS) }
    }

    /// Returns the upper bound, in ns, of the difference between a reading and
    /// `CLOCK_THREAD_CPUTIME_ID` read around it. 0 on the kernel tier, which reads that clock.
    ///
    /// It is the error of pairing the two (at most 2.2 us, on a quiet machine 0.3) plus the time for
    /// which a pair is used. Only time that the hypervisor stole, or that the kernel books as
    /// interrupt time, brings a reading beyond the first part: the counter goes on meanwhile and the
    /// thread's clock does not.
    pub fn error_bound_ns(&self) -> u64 {
        match self.tier() {
            Tier::Kernel => 0,
            _ => self.slot().bound_ns.load(Relaxed),
        }
    }

    /// Sets the bound for this thread and tier, between 5 us and 4 s, and returns the bound that it
    /// became. A smaller one asks the kernel more often: once per bound of running time, if read that
    /// often. The child of a fork has the default again.
    pub fn set_error_bound_ns(&self, bound_ns: u64) -> u64 {
        if self.tier() == Tier::Kernel {
            return 0;
        }
        let bound_ns = bound_ns.clamp(slot::MIN_BOUND_NS, slot::MAX_BOUND_NS);
        self.slot().bound_ns.store(bound_ns, Relaxed);
        self.slot().forget();
        bound_ns
    }

    /// Returns how often this thread and tier had to ask the kernel, by cause.
    pub fn resyncs(&self) -> ResyncCounts {
        self.slot().resyncs()
    }
}

impl fmt::Debug for ThreadClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadClock")
            .field("tier", &self.tier())
            .field("error_bound_ns", &self.error_bound_ns())
            .finish_non_exhaustive()
    }
}

impl Drop for ThreadClock {
    fn drop(&mut self) {
        if let Ok(thread) = self.thread {
            thread.release();
        }
    }
}

/// Reads when the base is not valid; sets the slot up first if a fork has zeroed it.
fn slow_read(thread: Option<&ThreadState>, slot: &ClockSlot, stamp: u64) -> CpuTime {
    if slot.kind.load(Relaxed) == kind::WIPED {
        if let Some(thread) = thread {
            thread.revive(slot);
        }
    }
    slot.resync(stamp)
}

/// Returns the calling thread's CPU time by its best clock. Without a handle it is slower by one
/// look-up.
#[inline]
pub fn now() -> CpuTime {
    let Ok(thread) = ThreadState::current() else {
        return thread::bare().resync(0);
    };
    match thread.best().read(arch::stamp) {
        Ok(time) => time,
        Err(stamp) => slow_read(Some(thread), thread.best(), stamp),
    }
}

/// Measures CPU time since it was started. Each end is a reading with the clock's error.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch<'a> {
    clock: &'a ThreadClock,
    started: CpuTime,
    stamp: u64,
}

/// The time since a stopwatch was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    /// The thread's CPU time.
    pub cpu: CpuTime,
    /// Nanoseconds that a wall clock would add to that: the thread waited, or something else ran in
    /// its place. Signed, as both clocks have errors. 0 if `cpu` was known without asking the
    /// kernel, and on the kernel tier, which has no counter to trust.
    pub off_cpu_ns: i64,
    /// Whether the thread was switched out, moved or took a signal.
    pub switched: bool,
}

impl Stopwatch<'_> {
    /// Returns the thread's CPU time since the start.
    #[inline]
    pub fn elapsed(&self) -> CpuTime {
        self.clock.now() - self.started
    }

    /// Returns the CPU time since the start, read in order, and what a wall clock would add.
    #[inline(always)]
    pub fn elapsed_by_both(&self) -> Elapsed {
        match self.clock.slot().read_within::<0>(arch::stamp_ordered) {
            Ok((now, stamp)) => {
                let cpu = now - self.started;
                if stamp.wrapping_sub(self.stamp) == cpu.cycles {
                    Elapsed { cpu, off_cpu_ns: 0, switched: false }
                } else {
                    // A signal handler has re-synced meanwhile.
                    self.with_wall_clock(cpu, stamp, true)
                }
            }
            Err(stamp) => self.resync_both(stamp),
        }
    }

    #[cold]
    #[inline(never)]
    fn resync_both(&self, stamp: u64) -> Elapsed {
        let switches_before = self.clock.resyncs().switched;
        let cpu = self.clock.read_slowly(stamp) - self.started;
        self.with_wall_clock(cpu, stamp, self.clock.resyncs().switched != switches_before)
    }

    /// Adds the time that a wall clock shows beyond the CPU time.
    #[cold]
    fn with_wall_clock(&self, cpu: CpuTime, stamp: u64, switched: bool) -> Elapsed {
        let wall_ns = calibrate::ns_of(stamp.wrapping_sub(self.stamp));
        let is_trusted = self.clock.tier() != Tier::Kernel;
        let off_cpu_ns = if is_trusted { wall_ns.wrapping_sub(cpu.ns) as i64 } else { 0 };
        Elapsed { cpu, off_cpu_ns, switched }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    const OFF_CPU: Duration = Duration::from_millis(5);

    /// Both fast tiers, with a bound so wide that only the witness can refuse a base.
    fn on_fast_tiers(attack: impl Fn(&ThreadClock)) {
        for clock in [Tier::Rseq, Tier::PerfPage].into_iter().flat_map(ThreadClock::with_tier) {
            clock.set_error_bound_ns(u64::MAX);
            clock.now();
            attack(&clock);
        }
    }

    #[test]
    fn a_switch_between_call_and_stamp_is_seen() {
        on_fast_tiers(|clock| {
            let seen = clock.resyncs().switched;
            clock.now_with(|| {
                sleep(OFF_CPU);
                arch::stamp()
            });
            assert!(clock.resyncs().switched > seen, "{}", clock.tier());
        });
    }

    #[test]
    fn a_switch_between_stamp_and_check_is_seen() {
        on_fast_tiers(|clock| {
            let seen = clock.resyncs().switched;
            clock.now_with(|| {
                let stamp = arch::stamp();
                sleep(OFF_CPU);
                stamp
            });
            assert!(clock.resyncs().switched > seen, "{}", clock.tier());
        });
    }

    /// Does as a signal handler would: it is switched out, then reads, so that the witness is armed
    /// anew.
    #[test]
    fn a_base_taken_within_a_read_refuses_the_older_stamp() {
        on_fast_tiers(|clock| {
            let mut inner = CpuTime::default();
            // So that the old base's stamp with the new base's time would be 5 ms off.
            let until_ns = sys::thread_cpu_ns() + 5_000_000;
            while sys::thread_cpu_ns() < until_ns {}
            let outer = clock.now_with(|| {
                let stamp = arch::stamp();
                sleep(OFF_CPU);
                inner = clock.now();
                stamp
            });
            assert!(outer >= inner, "{}: {outer:?} after {inner:?}", clock.tier());
            let kernel_ns = sys::thread_cpu_ns();
            assert!(outer.ns < kernel_ns + 2_000_000, "{outer:?}, kernel {kernel_ns}");
        });
    }

    #[test]
    fn another_user_of_rseq_costs_a_resync_and_no_more() {
        let Ok(clock) = ThreadClock::with_tier(Tier::Rseq) else {
            return;
        };
        let before = clock.now();
        let seen = clock.resyncs().switched;
        clock.slot().overwrite_witness(0);
        assert!(clock.now() >= before);
        assert!(clock.resyncs().switched > seen);
    }

    #[test]
    fn a_stopwatch_starts_on_a_base_that_lasts() {
        for clock in [Tier::Rseq, Tier::PerfPage].into_iter().flat_map(ThreadClock::with_tier) {
            clock.set_error_bound_ns(1_000_000);
            let mut renewed = 0;
            for _ in 0..300_000 {
                let before = clock.resyncs();
                let watch = clock.stopwatch();
                let (age, limit) = clock.slot().age(watch.stamp);
                let after = clock.resyncs();
                // A base from the future: the clock is held.
                let lasts = (age as i64) < (limit / 2) as i64;
                assert!(after != before || lasts, "{}: {age} of {limit}", clock.tier());
                renewed += after.expired - before.expired;
            }
            assert!(renewed > 0, "{}", clock.tier());
        }
    }

    #[test]
    fn a_wall_clock_would_add_the_time_off_the_cpu() {
        for clock in [Tier::Rseq, Tier::PerfPage].into_iter().flat_map(ThreadClock::with_tier) {
            let watch = clock.stopwatch();
            sleep(OFF_CPU);
            let elapsed = watch.elapsed_by_both();
            let both = elapsed.cpu.ns as i64 + elapsed.off_cpu_ns;
            assert!(elapsed.switched && both >= OFF_CPU.as_nanos() as i64, "{elapsed:?}");
        }
        // Stretches without a switch come soon, and in one nothing is added.
        let clock = ThreadClock::for_this_thread();
        let quiet = (0..10_000).map(|_| clock.stopwatch().elapsed_by_both());
        let mut quiet = quiet.filter(|elapsed| !elapsed.switched);
        assert!(quiet.any(|elapsed| elapsed.off_cpu_ns == 0));
    }

    #[test]
    fn a_refusal_is_told() {
        let clock = ThreadClock::with_tier(Tier::Kernel).unwrap();
        let not_taken: std::vec::Vec<_> = clock.not_taken().collect();
        assert_eq!(not_taken.len(), 4, "{not_taken:?}");
        assert!(ThreadClock::with_tier(Tier::CoreCycles).is_err());
        assert_eq!(clock.error_bound_ns(), 0);
        assert_eq!(clock.set_error_bound_ns(7), 0);
    }
}
