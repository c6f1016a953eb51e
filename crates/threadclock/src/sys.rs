//! The system calls that the crate makes, each as one plain function.

use crate::types::TierRefusal;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::ptr;
use libc::{c_int, c_void, clockid_t};

/// Returns errno of the last failed call.
pub(crate) fn errno() -> i32 {
    // SAFETY: the location is this thread's own for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

/// Sets errno, for C callers.
#[cfg(feature = "ffi")]
pub(crate) fn set_errno(errno: i32) {
    // SAFETY: as `errno`.
    unsafe { *libc::__errno_location() = errno };
}

/// Reads a clock in nanoseconds, or returns errno.
pub(crate) fn clock_ns(clock: clockid_t) -> Result<u64, i32> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel fills `time`, which outlives the call.
    let time = match unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } {
        // SAFETY: filled, as the call succeeded.
        0 => unsafe { time.assume_init() },
        _ => return Err(errno()),
    };
    Ok((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// Reads the kernel's CPU time of the calling thread in nanoseconds. It cannot fail on Linux 2.6.12 or later; 0 if it does.
#[inline]
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Reads CLOCK_MONOTONIC_RAW in nanoseconds: time at the oscillator's own rate. 0 if the kernel has no such clock.
pub(crate) fn monotonic_raw_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0)
}

/// Sleeps; a signal may cut it short.
pub(crate) fn sleep_ns(ns: i64) {
    // The fields' types differ between the C libraries.
    let time = libc::timespec { tv_sec: 0, tv_nsec: ns as _ };
    // SAFETY: reads `time`, and writes nothing (null remainder).
    unsafe { libc::nanosleep(&time, ptr::null_mut()) };
}

/// Returns the calling thread's id.
pub(crate) fn own_tid() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Returns the numbers of voluntary and involuntary switches of the calling thread.
pub(crate) fn own_switches() -> [u64; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills `usage`; zeroes are a valid rusage if it does not.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_nvcsw as u64, usage.ru_nivcsw as u64]
}

/// Maps the first bytes of a file, or returns errno.
fn map(bytes: usize, protection: c_int, flags: c_int, file: c_int) -> Result<*mut c_void, i32> {
    // SAFETY: a new mapping overlaps nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, file, 0) };
    if start == libc::MAP_FAILED { Err(errno()) } else { Ok(start) }
}

/// Maps the first bytes of a file, shared and read-only, or returns errno.
pub(crate) fn map_file(file: c_int, bytes: usize) -> Result<*const c_void, i32> {
    map(bytes, libc::PROT_READ, libc::MAP_SHARED, file).map(<*mut c_void>::cast_const)
}

/// Maps `pages` of private, zeroed memory. The child of a fork finds the last page zeroed again
/// (Linux 4.14).
pub(crate) fn map_pages(pages: usize) -> Result<*mut u8, TierRefusal> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let bytes = pages * page_bytes();
    let start = map(bytes, protection, flags, -1).map_err(TierRefusal::NoMemory)?;
    let last = start.wrapping_byte_add(bytes - page_bytes());
    // SAFETY: changes what fork does with the page, not its contents.
    if unsafe { libc::madvise(last, page_bytes(), libc::MADV_WIPEONFORK) } == 0 {
        return Ok(start.cast());
    }
    let refused = TierRefusal::NoMemory(errno());
    // SAFETY: nothing points there yet.
    unsafe { unmap(start, pages) };
    Err(refused)
}

/// Unmaps `pages` of memory.
///
/// # Safety
/// Nothing may point into the mapping any longer.
pub(crate) unsafe fn unmap(start: *mut c_void, pages: usize) {
    // SAFETY: the caller vouches that it is unused.
    unsafe { libc::munmap(start, pages * page_bytes()) };
}

/// Closes a descriptor.
pub(crate) fn close(descriptor: c_int) {
    // SAFETY: closing is safe; the callers own what they close.
    unsafe { libc::close(descriptor) };
}

/// Returns the size of a page in bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Reads the start of a file of the kernel, or returns errno.
pub(crate) fn read_start<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], i32> {
    // SAFETY: a CStr ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(errno());
    }
    // SAFETY: `buffer` is writable for its length.
    let length = unsafe { libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()) };
    let length = usize::try_from(length).map_err(|_| errno());
    close(file);
    length.map(|length| &buffer[..length.min(buffer.len())])
}
