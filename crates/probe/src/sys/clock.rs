//! Clocks.

use std::mem::MaybeUninit;

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_getres};

#[inline(always)]
fn gettime(clock: libc::clockid_t) -> Result<u64, Errno> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel writes one timespec to the address given, or fails.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    // SAFETY: the call succeeded, so the timespec was written.
    let time = unsafe { time.assume_init() };
    Ok((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// CLOCK_MONOTONIC_RAW in nanoseconds: not slewed by time synchronisation, read without entering
/// the kernel where the clock source allows.
pub fn monotonic_raw_ns() -> u64 {
    gettime(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0)
}

/// CLOCK_MONOTONIC in nanoseconds: the clock that the kernel's timers and its tick run by.
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    gettime(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// From one timer tick to the next in nanoseconds: what the kernel tells as the resolution of its
/// coarse clock.
pub fn tick_period_ns() -> u64 {
    let period = clock_getres(ClockId::MonotonicCoarse);
    period.tv_sec as u64 * 1_000_000_000 + period.tv_nsec as u64
}

/// Sleeps until a moment of CLOCK_MONOTONIC (clock_nanosleep(2), TIMER_ABSTIME).
pub fn sleep_until(moment_ns: u64) {
    let moment = Timespec {
        tv_sec: (moment_ns / 1_000_000_000) as i64,
        tv_nsec: (moment_ns % 1_000_000_000) as _,
    };
    while let Err(Errno::INTR) = clock_nanosleep_absolute(ClockId::Monotonic, &moment) {}
}

/// CLOCK_THREAD_CPUTIME_ID in nanoseconds.
#[inline(always)]
pub fn own_thread_cpu_ns() -> u64 {
    gettime(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CLOCK_PROCESS_CPUTIME_ID in nanoseconds.
#[inline(always)]
pub fn own_process_cpu_ns() -> u64 {
    gettime(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// Which CPU clock of a thread or process (`kernel/time/posix-cpu-timers.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// User and system time as the tick sampled them (CPUCLOCK_PROF).
    TicksUserSystem = 0,
    /// User time as the tick sampled it (CPUCLOCK_VIRT).
    TicksUser = 1,
    /// The scheduler's precise sum (CPUCLOCK_SCHED).
    Precise = 2,
}

/// A CPU clock in nanoseconds, of the process `id` (any process) or of the thread `id` (of the
/// calling process only). The encoding of the clock's number is the kernel's: the complement of the
/// id, shifted by three, with bit 2 for a thread.
pub fn cpu_clock_ns(id: i32, thread: bool, which: CpuClock) -> Result<u64, Errno> {
    let per_thread = if thread { 4 } else { 0 };
    gettime(((!id) << 3) | per_thread | which as libc::clockid_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_clocks_move_and_a_missing_process_is_an_error() {
        let pid = std::process::id() as i32;
        let before = cpu_clock_ns(pid, false, CpuClock::Precise).unwrap();
        let mut x = 0_u64;
        for i in 0..2_000_000_u64 {
            x = std::hint::black_box(x ^ i);
        }
        assert!(cpu_clock_ns(pid, false, CpuClock::Precise).unwrap() > before);
        assert!(cpu_clock_ns(i32::MAX - 1, false, CpuClock::Precise).is_err());
        assert!(monotonic_raw_ns() > 0);
    }
}
