//! The C library's allocator, or whichever took its place by LD_PRELOAD.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::NonNull;

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
