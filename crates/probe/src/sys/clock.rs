//! Clocks, resource usage (getrusage(2), times(2)), local time, and other calls that are timed.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_getres};

use super::last_errno;

#[inline(always)]
fn gettime(clock: libc::clockid_t) -> Result<u64, Errno> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel writes one timespec to the address given, or fails.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return Err(last_errno());
    }
    // SAFETY: the call succeeded, so the timespec was written.
    let time = unsafe { time.assume_init() };
    Ok((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// Reads CLOCK_MONOTONIC_RAW in nanoseconds. It is not slewed by time synchronisation, and is read
/// without entering the kernel if the clock source allows it.
pub fn monotonic_raw_ns() -> u64 {
    gettime(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0)
}

/// Reads CLOCK_MONOTONIC in nanoseconds, the clock of the kernel's timers and its tick.
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    gettime(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Returns the time between two ticks of the kernel in nanoseconds: the resolution of its coarse
/// clock.
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

/// Reads CLOCK_THREAD_CPUTIME_ID in nanoseconds.
#[inline(always)]
pub fn own_thread_cpu_ns() -> u64 {
    gettime(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Reads CLOCK_PROCESS_CPUTIME_ID in nanoseconds.
#[inline(always)]
pub fn own_process_cpu_ns() -> u64 {
    gettime(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// CPU clocks of a thread or process (`kernel/time/posix-cpu-timers.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// User and system time as the tick sampled them (CPUCLOCK_PROF).
    TicksUserSystem = 0,
    /// User time as the tick sampled it (CPUCLOCK_VIRT).
    TicksUser = 1,
    /// The scheduler's precise sum (CPUCLOCK_SCHED).
    Precise = 2,
}

/// Reads a CPU clock in nanoseconds, of the process `id` (any process) or of the thread `id` (of
/// the calling process only). The kernel encodes the clock's number as the complement of the id,
/// shifted by three, with bit 2 for a thread.
pub fn cpu_clock_ns(id: i32, thread: bool, which: CpuClock) -> Result<u64, Errno> {
    let per_thread = if thread { 4 } else { 0 };
    gettime(((!id) << 3) | per_thread | which as libc::clockid_t)
}

/// Reads all three clocks of a process or thread in nanoseconds: precise, user time by ticks, user
/// and system time by ticks.
pub fn cpu_clocks_ns(id: i32, thread: bool) -> Result<[u64; 3], Errno> {
    Ok([
        cpu_clock_ns(id, thread, CpuClock::Precise)?,
        cpu_clock_ns(id, thread, CpuClock::TicksUser)?,
        cpu_clock_ns(id, thread, CpuClock::TicksUserSystem)?,
    ])
}

/// Processes or threads whose usage is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageScope {
    /// All threads of the calling process.
    Own = libc::RUSAGE_SELF as isize,
    /// The calling thread.
    Thread = libc::RUSAGE_THREAD as isize,
    /// All children that were waited for.
    Children = libc::RUSAGE_CHILDREN as isize,
}

/// Result of getrusage(2). Its figures are converted when they are asked for, so that only the call
/// is timed.
#[derive(Clone, Copy, Debug)]
pub struct ResourceUsage(pub libc::rusage);

/// Reads the usage by getrusage(2).
#[inline(always)]
pub fn usage(scope: UsageScope) -> ResourceUsage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills one rusage. With a valid address and `who` it cannot fail, and
    // zeroes are a valid rusage.
    unsafe {
        libc::getrusage(scope as c_int, usage.as_mut_ptr());
        ResourceUsage(usage.assume_init())
    }
}

fn time_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

impl ResourceUsage {
    /// Returns the user time in nanoseconds, in steps of a microsecond.
    pub fn user_ns(&self) -> u64 {
        time_ns(self.0.ru_utime)
    }

    /// Returns the system time in nanoseconds, in steps of a microsecond.
    pub fn system_ns(&self) -> u64 {
        time_ns(self.0.ru_stime)
    }

    /// Returns the user and system time in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.user_ns() + self.system_ns()
    }

    /// Returns the page faults that needed no input or output.
    pub fn minor_faults(&self) -> u64 {
        self.0.ru_minflt as u64
    }

    /// Returns the voluntary and involuntary switches.
    pub fn switches(&self) -> u64 {
        (self.0.ru_nvcsw + self.0.ru_nivcsw) as u64
    }

    /// Returns the largest resident memory in bytes (ru_maxrss).
    pub fn max_resident_bytes(&self) -> u64 {
        self.0.ru_maxrss as u64 * 1024
    }
}

/// Calls times(2); returns its result and the times.
#[inline(always)]
fn tms() -> (c_long, libc::tms) {
    let mut times = MaybeUninit::<libc::tms>::zeroed();
    // SAFETY: the kernel fills one tms; zeroes are a valid one. With a valid address it cannot
    // fail: -1 is a moment like others (times(2), BUGS).
    unsafe { (libc::times(times.as_mut_ptr()), times.assume_init()) }
}

/// Reads the user and system time of the process by times(2), in ticks of sysconf(_SC_CLK_TCK).
#[inline(always)]
pub fn times() -> u64 {
    let (_, times) = tms();
    (times.tms_utime + times.tms_stime) as u64
}

/// Times of all children that were waited for, by times(2), in ticks of sysconf(_SC_CLK_TCK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildTicks {
    /// User time.
    pub user: c_long,
    /// System time.
    pub system: c_long,
    /// Time since a fixed moment that the kernel has chosen.
    pub since: c_long,
}

/// Reads the times of children by times(2).
pub fn child_ticks() -> ChildTicks {
    let (since, times) = tms();
    ChildTicks { user: times.tms_cutime, system: times.tms_cstime, since }
}

/// Formats seconds since 1970 like ctime(3), in local time, without the newline. Returns `None` for
/// years beyond its range.
pub fn local_time(seconds: i64) -> Option<String> {
    // ctime_r(3) asks for 26 bytes; years of more than four digits take more.
    let mut text = [0; 64];
    // SAFETY: the buffer is larger than any year of a 32-bit number of years needs.
    let written = unsafe { libc::ctime_r(&seconds, text.as_mut_ptr()) };
    if written.is_null() {
        return None;
    }
    // SAFETY: it has written a string that ends with a zero.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    Some(text.to_string_lossy().trim_end().to_string())
}

// Calls that are timed. System calls are made by syscall(2): nothing is cached or answered without
// the kernel, and the same few instructions are around each. Blocks are those of the C library's
// allocator or of the one that replaces it by LD_PRELOAD.

/// getuid(2).
#[inline(always)]
pub fn getuid() -> i64 {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::syscall(libc::SYS_getuid) }
}

/// getppid(2).
#[inline(always)]
pub fn getppid() -> i64 {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::syscall(libc::SYS_getppid) }
}

/// Reads one byte by read(2). Returns the result of the call: 1, or -1 with errno.
#[inline(always)]
pub fn read_byte(from: BorrowedFd) -> i64 {
    let mut byte = MaybeUninit::<u8>::uninit();
    // SAFETY: the kernel writes at most one byte to a valid address.
    unsafe { libc::syscall(libc::SYS_read, from.as_raw_fd(), byte.as_mut_ptr(), 1_usize) }
}

/// Writes one byte by write(2). Returns the result of the call: 1, or -1 with errno.
#[inline(always)]
pub fn write_byte(to: BorrowedFd) -> i64 {
    let byte = 0_u8;
    // SAFETY: the kernel reads one byte from a valid address.
    unsafe { libc::syscall(libc::SYS_write, to.as_raw_fd(), &raw const byte, 1_usize) }
}

/// Reads CLOCK_MONOTONIC in nanoseconds by the system call, not by the vDSO.
#[inline(always)]
pub fn monotonic_ns_by_call() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel writes one timespec to the address given, or fails; zeroes are a valid
    // one.
    let time = unsafe {
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Wakes one waiter at a private word (futex(2), FUTEX_WAKE). Returns how many were woken.
#[inline(always)]
pub fn futex_wake(word: &AtomicU32) -> i64 {
    let how = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is valid; FUTEX_WAKE uses its address only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), how, 1) }
}

/// sched_yield(2).
#[inline(always)]
pub fn sched_yield() -> i64 {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::syscall(libc::SYS_sched_yield) }
}

/// A block from malloc(3), released by [`HeapBlock::free`] only: a timed call must not happen
/// implicitly.
pub struct HeapBlock(NonNull<c_void>);

impl HeapBlock {
    /// Allocates a block by malloc(3); `None` if there is no memory.
    #[inline(always)]
    pub fn new(bytes: usize) -> Option<Self> {
        // SAFETY: malloc takes any size. The black box keeps the compiler from leaving out the
        // call, which it knows.
        NonNull::new(black_box(unsafe { libc::malloc(black_box(bytes)) })).map(Self)
    }

    /// Releases the block by free(3).
    #[inline(always)]
    pub fn free(self) {
        // SAFETY: the block is malloc's, and no other reference to it exists.
        unsafe { libc::free(black_box(self.0.as_ptr())) }
    }
}

/// Returns the end of the heap that brk(2) grows.
pub fn heap_end() -> usize {
    // SAFETY: sbrk(0) changes nothing.
    unsafe { libc::sbrk(0) as usize }
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

    #[test]
    fn a_moment_reads_as_ctime_writes_it() {
        // Whatever the time zone, it is one of two days.
        let text = local_time(0).unwrap();
        let parts: Vec<&str> = text.split_whitespace().collect();
        assert_eq!((text.len(), parts.len()), (24, 5), "{text}");
        assert!(matches!(parts[4], "1969" | "1970"), "{text}");
        assert_eq!(local_time(i64::MAX), None);
    }
}
