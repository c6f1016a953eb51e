//! The allocator that the program would have had: the next definitions of its functions.
//!
//! Finding them may allocate (dlsym(3) does in some C libraries). Until they are found, that comes
//! from a small arena that is never given back.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

use super::shared::next_symbol;
use crate::layout::ALLOCATOR_SYMBOLS;

/// Those of [`ALLOCATOR_SYMBOLS`].
static FOUND: [AtomicPtr<c_void>; ALLOCATOR_SYMBOLS.len()] =
    [const { AtomicPtr::new(null_mut()) }; ALLOCATOR_SYMBOLS.len()];

/// Looks for all of them.
#[cold]
pub(super) fn find_all() {
    static SEARCHING: AtomicBool = AtomicBool::new(false);
    // Whoever comes meanwhile is within dlsym(3), or beside it and served by the arena.
    if SEARCHING.swap(true, AcqRel) {
        return;
    }
    for (name, found) in ALLOCATOR_SYMBOLS.iter().zip(&FOUND) {
        // SAFETY: a C string.
        found.store(unsafe { next_symbol(name.as_ptr()) }, Release);
    }
    SEARCHING.store(false, Release);
}

/// The next function of a place in `ALLOCATOR_SYMBOLS`; null while they are looked for, and where there is
/// none.
#[inline(always)]
fn found(place: usize) -> *mut c_void {
    match FOUND[place].load(Relaxed) {
        found if found.is_null() => found_late(place),
        found => found,
    }
}

#[cold]
fn found_late(place: usize) -> *mut c_void {
    find_all();
    FOUND[place].load(Acquire)
}

type Sized = unsafe extern "C" fn(usize) -> *mut c_void;
type Two = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Resize = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Give = unsafe extern "C" fn(*mut c_void);
type Place = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;

macro_rules! next {
    ($name:ident, $place:literal, $kind:ty) => {
        #[inline(always)]
        pub(super) fn $name() -> Option<$kind> {
            // SAFETY: null is None, else the C function of this name, which has this type.
            unsafe { core::mem::transmute::<*mut c_void, Option<$kind>>(found($place)) }
        }
    };
}

next!(malloc, 0, Sized);
next!(calloc, 1, Two);
next!(realloc, 2, Resize);
next!(free, 3, Give);
next!(memalign, 4, Two);
next!(aligned_alloc, 5, Two);
next!(posix_memalign, 6, Place);
next!(valloc, 7, Sized);
next!(pvalloc, 8, Sized);

const ARENA_BYTES: usize = 64 << 10;
const ALIGNMENT: usize = 16;

#[repr(C, align(16))]
struct Arena(core::cell::UnsafeCell<[u8; ARENA_BYTES]>);

// SAFETY: parts of it are handed out once each.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(core::cell::UnsafeCell::new([0; ARENA_BYTES]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory of the arena; null once it is used up. Each piece has its length before it.
#[cold]
pub(super) fn from_arena(bytes: usize) -> *mut c_void {
    let Some(all) = bytes.checked_next_multiple_of(ALIGNMENT) else { return null_mut() };
    let Some(all) = all.checked_add(ALIGNMENT).filter(|all| *all <= ARENA_BYTES) else {
        return null_mut();
    };
    let start = TAKEN.fetch_add(all, Relaxed);
    if start.saturating_add(all) > ARENA_BYTES {
        return null_mut();
    }
    // SAFETY: within the arena, and nobody else's.
    unsafe {
        let piece = ARENA.0.get().cast::<u8>().add(start);
        piece.cast::<usize>().write(bytes);
        piece.add(ALIGNMENT).cast()
    }
}

/// Whether memory came from the arena.
#[inline(always)]
pub(super) fn is_of_arena(memory: *const c_void) -> bool {
    (memory as usize).wrapping_sub(ARENA.0.get() as usize) < ARENA_BYTES
}

/// The length of a piece of the arena.
///
/// # Safety
/// It came from [`from_arena`].
#[cold]
pub(super) unsafe fn arena_bytes(memory: *const c_void) -> usize {
    // SAFETY: `from_arena` wrote it before the piece.
    unsafe { memory.cast::<u8>().sub(ALIGNMENT).cast::<usize>().read() }
}
