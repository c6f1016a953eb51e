//! The allocator that the program would have without this library: the next definitions of its
//! functions.
//!
//! Finding them may allocate (dlsym(3) does in some C libraries). Until they are found, such memory
//! comes from a small arena that is never given back.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

use super::shared::next_symbol;
use crate::layout::ALLOCATOR_SYMBOLS;

/// Addresses of the next definitions, in the order of [`ALLOCATOR_SYMBOLS`]; null until found.
static NEXT_FUNCTIONS: [AtomicPtr<c_void>; ALLOCATOR_SYMBOLS.len()] =
    [const { AtomicPtr::new(null_mut()) }; ALLOCATOR_SYMBOLS.len()];

/// Finds the next definitions of all functions.
#[cold]
pub(super) fn find_all() {
    static SEARCHING: AtomicBool = AtomicBool::new(false);
    // A call that comes meanwhile is made by dlsym(3), or by another thread: the arena serves it.
    if SEARCHING.swap(true, AcqRel) {
        return;
    }
    for (name, function) in ALLOCATOR_SYMBOLS.iter().zip(&NEXT_FUNCTIONS) {
        // SAFETY: a C string.
        function.store(unsafe { next_symbol(name.as_ptr()) }, Release);
    }
    SEARCHING.store(false, Release);
}

/// Returns the next definition of a function of `ALLOCATOR_SYMBOLS`; null while they are looked for,
/// and where there is none.
#[inline(always)]
fn next_function(number: usize) -> *mut c_void {
    match NEXT_FUNCTIONS[number].load(Relaxed) {
        function if function.is_null() => find_late(number),
        function => function,
    }
}

#[cold]
fn find_late(number: usize) -> *mut c_void {
    find_all();
    NEXT_FUNCTIONS[number].load(Acquire)
}

type AllocateFn = unsafe extern "C" fn(usize) -> *mut c_void;
type AllocateTwoFn = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type ResizeFn = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type FreeFn = unsafe extern "C" fn(*mut c_void);
type AllocateIntoFn = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;

macro_rules! next {
    ($name:ident, $number:literal, $function:ty) => {
        #[inline(always)]
        pub(super) fn $name() -> Option<$function> {
            // SAFETY: null is None, else the C function of this name, which has this type.
            unsafe {
                core::mem::transmute::<*mut c_void, Option<$function>>(next_function($number))
            }
        }
    };
}

next!(malloc, 0, AllocateFn);
next!(calloc, 1, AllocateTwoFn);
next!(realloc, 2, ResizeFn);
next!(free, 3, FreeFn);
next!(memalign, 4, AllocateTwoFn);
next!(aligned_alloc, 5, AllocateTwoFn);
next!(posix_memalign, 6, AllocateIntoFn);
next!(valloc, 7, AllocateFn);
next!(pvalloc, 8, AllocateFn);

const ARENA_BYTES: usize = 64 << 10;
const ALIGNMENT: usize = 16;

/// Memory for calls before the next functions are found.
#[repr(C, align(16))]
struct StartupArena(core::cell::UnsafeCell<[u8; ARENA_BYTES]>);

// SAFETY: parts of it are handed out once each.
unsafe impl Sync for StartupArena {}

static ARENA: StartupArena = StartupArena(core::cell::UnsafeCell::new([0; ARENA_BYTES]));
/// Bytes of the arena that are handed out.
static TAKEN_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Allocates zeroed memory of the arena; null once it is used up. Each piece has its length before it.
#[cold]
pub(super) fn from_arena(bytes: usize) -> *mut c_void {
    let Some(padded) = bytes.checked_next_multiple_of(ALIGNMENT) else { return null_mut() };
    let Some(piece_bytes) = padded.checked_add(ALIGNMENT) else { return null_mut() };
    if piece_bytes > ARENA_BYTES {
        return null_mut();
    }
    let start = TAKEN_BYTES.fetch_add(piece_bytes, Relaxed);
    if start.saturating_add(piece_bytes) > ARENA_BYTES {
        return null_mut();
    }
    // SAFETY: within the arena, and handed out once.
    unsafe {
        let piece = ARENA.0.get().cast::<u8>().add(start);
        piece.cast::<usize>().write(bytes);
        piece.add(ALIGNMENT).cast()
    }
}

/// Returns whether memory came from the arena.
#[inline(always)]
pub(super) fn is_in_arena(memory: *const c_void) -> bool {
    (memory as usize).wrapping_sub(ARENA.0.get() as usize) < ARENA_BYTES
}

/// Returns the length of a piece of the arena in bytes.
///
/// # Safety
/// It came from [`from_arena`].
#[cold]
pub(super) unsafe fn arena_bytes(memory: *const c_void) -> usize {
    // SAFETY: `from_arena` wrote it before the piece.
    unsafe { memory.cast::<u8>().sub(ALIGNMENT).cast::<usize>().read() }
}
