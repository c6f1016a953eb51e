//! The shared memory, found once in a process, with a slot for each thread.
//!
//! A process may outlive the program that profiles it. The path then leads nowhere, or to another
//! file: memory is used only if it belongs to this process's user, has the size and the token of the
//! run, and is the file that was found first.

use core::ffi::{CStr, c_char, c_int};
use core::mem::{MaybeUninit, offset_of};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use crate::layout::{self, SLOT_BYTES, SLOTS, SharedHeader, TOKEN_DIGITS};

/// The mapped header; null in a program that is not profiled, and before [`attach`].
static HEADER: AtomicPtr<SharedHeader> = AtomicPtr::new(null_mut());

/// Returns the header of the shared memory, if there is one.
pub(super) fn header() -> Option<&'static SharedHeader> {
    // SAFETY: null, or mapped for as long as the process lives.
    unsafe { HEADER.load(Acquire).as_ref() }
}

/// Device of the memory that was found; 0 before [`attach`].
static DEVICE: AtomicU64 = AtomicU64::new(0);
/// Inode of the memory that was found; 0 before [`attach`].
static INODE: AtomicU64 = AtomicU64::new(0);

/// Maps the header of the memory of the process that profiles this one, if there is one.
pub(super) fn attach() -> Option<&'static SharedHeader> {
    // SAFETY: maps a part of a file, whose owner keeps its length.
    let header = unsafe { map(0, size_of::<SharedHeader>()) }.cast::<SharedHeader>();
    // SAFETY: mapped, and as large as a header.
    let mapped = unsafe { header.as_ref() }?;
    // Before exec(2) this process ran another program, which has left its slots.
    // SAFETY: no memory is touched.
    let process = unsafe { libc::getpid() };
    for owner in &mapped.owners {
        let _ = owner.compare_exchange(process, 0, AcqRel, Relaxed);
    }
    HEADER.store(header, Release);
    Some(mapped)
}

/// Returns the token of the run and the path of its memory, from the environment.
fn token_and_path() -> Option<(u64, &'static CStr)> {
    const NAME: &CStr = c"SWITCHCOST_PROFILE_DATA";
    const { assert!(matches!(layout::ENVIRONMENT_VARIABLE.as_bytes(), b"SWITCHCOST_PROFILE_DATA")) };
    // SAFETY: the name is a C string; no other thread runs when this is asked for the first time.
    let value: *const c_char = unsafe { libc::getenv(NAME.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a C string of the environment.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes_with_nul();
    let (digits, rest) = value.split_at_checked(TOKEN_DIGITS)?;
    let mut token = 0;
    for digit in digits {
        token = token << 4 | u64::from((*digit as char).to_digit(16)?);
    }
    let path = CStr::from_bytes_with_nul(rest.strip_prefix(b":")?).ok()?;
    Some((token, path))
}

/// Maps a part of the shared memory; null if that fails, or if it is not that of the run. The file is
/// opened each time: a program may close descriptors that it does not know.
///
/// # Safety
/// The part lies within the file.
unsafe fn map(offset: usize, bytes: usize) -> *mut u8 {
    let Some((token, path)) = token_and_path() else { return null_mut() };
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: a C string; the mapping is new memory, and the descriptor is used here only.
    unsafe {
        let file = libc::open(path.as_ptr(), flags);
        if file < 0 {
            return null_mut();
        }
        let mut mapped = libc::MAP_FAILED;
        if is_memory_of_run(file, token) {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let offset = offset as libc::off_t;
            mapped = libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, file, offset);
        }
        libc::close(file);
        if mapped == libc::MAP_FAILED { null_mut() } else { mapped.cast() }
    }
}

/// Returns whether an open file is the memory of the run: a file of this process's user, of that size,
/// with the token, and no other than the first that was found, which it remembers.
fn is_memory_of_run(file: c_int, token: u64) -> bool {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for what the kernel writes.
    if unsafe { libc::fstat(file, status.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the kernel has filled it.
    let status = unsafe { status.assume_init() };
    let is_file = status.st_mode & libc::S_IFMT == libc::S_IFREG;
    // SAFETY: no memory is touched.
    let is_own = status.st_uid == unsafe { libc::geteuid() };
    if !is_file || !is_own || status.st_size != layout::MEMORY_BYTES as libc::off_t {
        return false;
    }
    const { assert!(offset_of!(SharedHeader, magic) == 0 && offset_of!(SharedHeader, token) == 8) };
    let mut words = [0_u64; 2];
    // SAFETY: room for two words.
    let read = unsafe { libc::pread(file, words.as_mut_ptr().cast(), size_of_val(&words), 0) };
    if read != size_of_val(&words) as isize || words != [layout::MAGIC, token] {
        return false;
    }
    let (device, inode) = (DEVICE.load(Relaxed), INODE.load(Relaxed));
    if (device, inode) == (0, 0) {
        DEVICE.store(status.st_dev, Relaxed);
        INODE.store(status.st_ino, Relaxed);
        return true;
    }
    (device, inode) == (status.st_dev, status.st_ino)
}

/// The slot of a thread, mapped.
pub(super) struct ThreadSlot {
    pub(super) number: usize,
    pub(super) cells: *const layout::CallCell,
}

impl ThreadSlot {
    /// Takes a free slot, or one whose process has ended, and maps it; not in the child of a fork.
    pub(super) fn claim(header: &SharedHeader) -> Option<Self> {
        // SAFETY: no memory is touched.
        let process: c_int = unsafe { libc::getpid() };
        let number = claim_free(header, process).or_else(|| claim_left(header, process))?;
        let offset = size_of::<SharedHeader>() + number * SLOT_BYTES;
        // SAFETY: within the file, which has all slots.
        let cells = unsafe { map(offset, SLOT_BYTES) };
        if cells.is_null() {
            header.owners[number].store(0, Release);
            return None;
        }
        // SAFETY: the mapping belongs to this thread. If it is refused, two processes would write to
        // one slot.
        if unsafe { libc::madvise(cells.cast(), SLOT_BYTES, libc::MADV_DONTFORK) } != 0 {
            Self { number, cells: cells.cast() }.release(header);
            return None;
        }
        Some(Self { number, cells: cells.cast() })
    }

    /// Unmaps the slot and leaves it to another thread.
    pub(super) fn release(self, header: &SharedHeader) {
        // SAFETY: mapped by `claim`, and no longer used.
        unsafe { libc::munmap(self.cells.cast_mut().cast(), SLOT_BYTES) };
        header.owners[self.number].store(0, Release);
    }
}

/// Takes the first slot without an owner.
fn claim_free(header: &SharedHeader, process: c_int) -> Option<usize> {
    (0..SLOTS).find(|number| {
        let owner = &header.owners[*number];
        owner.load(Relaxed) == 0 && owner.compare_exchange(0, process, AcqRel, Relaxed).is_ok()
    })
}

/// Takes the first slot whose owner has ended.
fn claim_left(header: &SharedHeader, process: c_int) -> Option<usize> {
    (0..SLOTS).find(|number| {
        let owner = &header.owners[*number];
        let before = owner.load(Relaxed);
        has_ended(before) && owner.compare_exchange(before, process, AcqRel, Relaxed).is_ok()
    })
}

/// Returns whether a process that wrote to a slot has ended; its slot is then free.
fn has_ended(process: c_int) -> bool {
    // SAFETY: signal 0 is not sent.
    process > 0 && unsafe { libc::kill(process, 0) } != 0 && errno() == libc::ESRCH
}

pub(super) fn errno() -> c_int {
    // SAFETY: the location belongs to this thread.
    unsafe { *libc::__errno_location() }
}

pub(super) fn set_errno(value: c_int) {
    // SAFETY: the location belongs to this thread.
    unsafe { *libc::__errno_location() = value };
}

/// Maps a page of zeroes, which the child of a fork gets as zeroes again; null if there is none.
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

/// Unmaps a page of [`wiped_page`].
///
/// # Safety
/// The page came from [`wiped_page`], and is not used again.
pub(super) unsafe fn unmap_page(page: *mut u8) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(page.cast(), layout::PAGE_BYTES) };
}

/// Returns the address of the next definition of a C function, after this library's; null if there is
/// none.
///
/// # Safety
/// The name is a C string.
pub(super) unsafe fn next_symbol(name: *const c_char) -> *mut core::ffi::c_void {
    // SAFETY: as the caller promises.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name) }
}
