//! The shared memory: found once a process, a slot for each thread.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use crate::layout::{self, Header, SLOT_BYTES, SLOTS};

/// The mapped header; null in a program that is not profiled, and before [`attach`].
static HEADER: AtomicPtr<Header> = AtomicPtr::new(null_mut());

pub(super) fn header() -> Option<&'static Header> {
    // SAFETY: null, or mapped for as long as the process lives.
    unsafe { HEADER.load(Acquire).as_ref() }
}

/// Finds the memory of the process that profiles this one, if there is one.
pub(super) fn attach() -> Option<&'static Header> {
    // SAFETY: maps a part of a file, whose owner keeps its length.
    let header = unsafe { map(path()?, 0, size_of::<Header>()) }.cast::<Header>();
    // SAFETY: mapped, and as large as a header.
    let found = unsafe { header.as_ref() }?;
    if found.magic.load(Relaxed) != layout::MAGIC {
        return None;
    }
    // What this process was before exec(2) has left its slots.
    // SAFETY: no memory is touched.
    let own = unsafe { libc::getpid() };
    for owner in &found.owners {
        let _ = owner.compare_exchange(own, 0, AcqRel, Relaxed);
    }
    HEADER.store(header, Release);
    Some(found)
}

fn path() -> Option<&'static CStr> {
    const NAME: &CStr = c"SWITCHCOST_PROFILE_DATA";
    const { assert!(matches!(layout::VARIABLE.as_bytes(), b"SWITCHCOST_PROFILE_DATA")) };
    // SAFETY: the name is a C string; no other thread runs when this is asked for the first time.
    let value: *const c_char = unsafe { libc::getenv(NAME.as_ptr()) };
    // SAFETY: null or a C string of the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Maps a part of the shared memory; null where that fails. Opened anew each time: a program may
/// close descriptors that it does not know.
///
/// # Safety
/// The part lies within the file.
unsafe fn map(path: &CStr, offset: usize, bytes: usize) -> *mut u8 {
    // SAFETY: a C string; the mapping is new memory, and the descriptor is this function's own.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return null_mut();
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let offset = offset as libc::off_t;
        // The program may be gone, and its process id another's: then this is some other file.
        if libc::lseek(file, 0, libc::SEEK_END) != layout::BYTES as libc::off_t {
            libc::close(file);
            return null_mut();
        }
        let mapped = libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, file, offset);
        libc::close(file);
        if mapped == libc::MAP_FAILED { null_mut() } else { mapped.cast() }
    }
}

/// A thread's slot.
pub(super) struct Slot {
    pub(super) number: usize,
    pub(super) cells: *const layout::Cell,
}

impl Slot {
    /// One that nobody writes to, mapped; not in a child of a fork.
    pub(super) fn claim(header: &Header) -> Option<Self> {
        // SAFETY: no memory is touched.
        let own: c_int = unsafe { libc::getpid() };
        let is_free = |number: &usize| {
            let owner = &header.owners[*number];
            owner.load(Relaxed) == 0 && owner.compare_exchange(0, own, AcqRel, Relaxed).is_ok()
        };
        let is_left = |number: &usize| {
            let owner = &header.owners[*number];
            let before = owner.load(Relaxed);
            has_ended(before) && owner.compare_exchange(before, own, AcqRel, Relaxed).is_ok()
        };
        let number = (0..SLOTS).find(is_free).or_else(|| (0..SLOTS).find(is_left))?;
        let offset = size_of::<Header>() + number * SLOT_BYTES;
        // SAFETY: within the file, which has all slots.
        let cells = path().map_or(null_mut(), |path| unsafe { map(path, offset, SLOT_BYTES) });
        if cells.is_null() {
            header.owners[number].store(0, Release);
            return None;
        }
        // SAFETY: the mapping is this thread's own. Where it is refused, two processes would write
        // to one slot.
        if unsafe { libc::madvise(cells.cast(), SLOT_BYTES, libc::MADV_DONTFORK) } != 0 {
            Self { number, cells: cells.cast() }.release(header);
            return None;
        }
        Some(Self { number, cells: cells.cast() })
    }

    /// Another thread goes on in it.
    pub(super) fn release(self, header: &Header) {
        // SAFETY: mapped by `claim`, and no longer used.
        unsafe { libc::munmap(self.cells.cast_mut().cast(), SLOT_BYTES) };
        header.owners[self.number].store(0, Release);
    }
}

/// Whether a process that wrote to a slot is gone: it left the slot at its exit.
fn has_ended(process: c_int) -> bool {
    // SAFETY: signal 0 is not sent.
    process > 0 && unsafe { libc::kill(process, 0) } != 0 && errno() == libc::ESRCH
}

pub(super) fn errno() -> c_int {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() }
}

pub(super) fn set_errno(value: c_int) {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = value };
}

/// A page of zeroes that a fork gives the child as zeroes again; null where there is none.
pub(super) fn wiped_page() -> *mut u8 {
    // SAFETY: new memory.
    unsafe {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let page = libc::mmap(null_mut(), layout::PAGE_BYTES, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return null_mut();
        }
        if libc::madvise(page, layout::PAGE_BYTES, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, layout::PAGE_BYTES);
            return null_mut();
        }
        page.cast()
    }
}

/// Gives such a page back.
///
/// # Safety
/// It came from [`wiped_page`], and is not used again.
pub(super) unsafe fn unmap_page(page: *mut u8) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(page.cast(), layout::PAGE_BYTES) };
}

/// The address of the next definition of a C function, after this library's; null if there is none.
///
/// # Safety
/// The name is a C string.
pub(super) unsafe fn next_symbol(name: *const c_char) -> *mut core::ffi::c_void {
    // SAFETY: as the caller promises.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name) }
}
