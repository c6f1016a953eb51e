//! The functions of malloc(3): each calls the next definition, and times it.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::next::{self, arena_bytes, from_arena, is_in_arena};
use super::timed;
use crate::bins::size_class;
use crate::layout::allocator_cell;

const MALLOC: usize = 0;
const CALLOC: usize = 1;
const REALLOC: usize = 2;
const ALIGNED: usize = 3;
const FREE: usize = 4;

/// # Safety
/// The caller keeps the contract of malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let Some(next) = next::malloc() else { return from_arena(bytes) };
    // SAFETY: the caller's call.
    timed(allocator_cell(MALLOC, size_class(bytes)), || unsafe { next(bytes) })
}

/// # Safety
/// The caller keeps the contract of calloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let Some(next) = next::calloc() else {
        return count.checked_mul(bytes).map_or(null_mut(), from_arena);
    };
    let total_bytes = count.saturating_mul(bytes);
    // SAFETY: the caller's call.
    timed(allocator_cell(CALLOC, size_class(total_bytes)), || unsafe { next(count, bytes) })
}

/// # Safety
/// The caller keeps the contract of realloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if is_in_arena(memory) {
        // SAFETY: the caller's memory, which came from the arena.
        return unsafe { move_from_arena(memory, bytes) };
    }
    let Some(next) = next::realloc() else { return from_arena(bytes) };
    // SAFETY: the caller's call.
    timed(allocator_cell(REALLOC, size_class(bytes)), || unsafe { next(memory, bytes) })
}

/// Allocates memory and copies a piece of the arena there.
///
/// # Safety
/// The memory came from the arena.
#[cold]
unsafe fn move_from_arena(memory: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: both are as large as is copied, and one is new.
    unsafe {
        let new = malloc(bytes);
        if !new.is_null() {
            let copied = arena_bytes(memory).min(bytes);
            core::ptr::copy_nonoverlapping(memory.cast::<u8>(), new.cast::<u8>(), copied);
        }
        new
    }
}

/// # Safety
/// The caller keeps the contract of free(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    if is_in_arena(memory) {
        return;
    }
    let Some(next) = next::free() else { return };
    // The size is not known here, and asking for it would fetch the cache lines that free has to fetch.
    // SAFETY: the caller's call.
    timed(allocator_cell(FREE, 0), || unsafe { next(memory) })
}

/// # Safety
/// The caller keeps the contract of memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
    let Some(next) = next::memalign() else { return null_mut() };
    // SAFETY: the caller's call.
    timed(allocator_cell(ALIGNED, size_class(bytes)), || unsafe { next(alignment, bytes) })
}

/// # Safety
/// The caller keeps the contract of aligned_alloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    let Some(next) = next::aligned_alloc() else { return null_mut() };
    // SAFETY: the caller's call.
    timed(allocator_cell(ALIGNED, size_class(bytes)), || unsafe { next(alignment, bytes) })
}

/// # Safety
/// The caller keeps the contract of posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    memory: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    let Some(next) = next::posix_memalign() else { return libc::ENOMEM };
    // SAFETY: the caller's call.
    timed(allocator_cell(ALIGNED, size_class(bytes)), || unsafe { next(memory, alignment, bytes) })
}

/// # Safety
/// The caller keeps the contract of valloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    let Some(next) = next::valloc() else { return null_mut() };
    // SAFETY: the caller's call.
    timed(allocator_cell(ALIGNED, size_class(bytes)), || unsafe { next(bytes) })
}

/// # Safety
/// The caller keeps the contract of pvalloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    let Some(next) = next::pvalloc() else { return null_mut() };
    // SAFETY: the caller's call.
    timed(allocator_cell(ALIGNED, size_class(bytes)), || unsafe { next(bytes) })
}
