//! Calls that are timed. System calls go by syscall(2): nothing cached, nothing answered without the
//! kernel, and the same few instructions around each. Blocks are those of the C library's allocator, or
//! of whichever took its place by LD_PRELOAD.

use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

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

/// read(2) of one byte. Gives what the call gives: 1, or -1 with errno.
#[inline(always)]
pub fn read_byte(from: BorrowedFd) -> i64 {
    let mut byte = MaybeUninit::<u8>::uninit();
    // SAFETY: the kernel writes at most one byte to a valid address.
    unsafe { libc::syscall(libc::SYS_read, from.as_raw_fd(), byte.as_mut_ptr(), 1_usize) }
}

/// write(2) of one byte. Gives what the call gives: 1, or -1 with errno.
#[inline(always)]
pub fn write_byte(to: BorrowedFd) -> i64 {
    let byte = 0_u8;
    // SAFETY: the kernel reads one byte from a valid address.
    unsafe { libc::syscall(libc::SYS_write, to.as_raw_fd(), &raw const byte, 1_usize) }
}

/// CLOCK_MONOTONIC in nanoseconds by the real call, whatever the vDSO could answer.
#[inline(always)]
pub fn monotonic_ns_by_call() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel writes one timespec to the address given, or fails; zeroes are a valid one.
    let time = unsafe {
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// futex(2), FUTEX_WAKE of one waiter at a private word. Gives how many were woken.
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

/// A block from malloc(3), given back by [`Block::free`] and not otherwise: what is timed must not
/// be done behind one's back.
pub struct Block(NonNull<c_void>);

impl Block {
    /// malloc(3); `None` when there is no memory.
    #[inline(always)]
    pub fn new(bytes: usize) -> Option<Self> {
        // SAFETY: malloc takes any size. The black box keeps the compiler from leaving out the
        // call, which it knows.
        NonNull::new(black_box(unsafe { libc::malloc(black_box(bytes)) })).map(Self)
    }

    /// free(3).
    #[inline(always)]
    pub fn free(self) {
        // SAFETY: the block is malloc's, and nobody has it any more.
        unsafe { libc::free(black_box(self.0.as_ptr())) }
    }
}

/// The end of the heap that brk(2) grows.
pub fn heap_end() -> usize {
    // SAFETY: sbrk(0) changes nothing.
    unsafe { libc::sbrk(0) as usize }
}
