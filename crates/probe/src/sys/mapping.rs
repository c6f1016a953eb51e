//! Memory of its own, mapped for as long as it is held.

use std::ffi::c_void;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A huge page of any architecture that Linux has them on is at most this large for base pages of 4
/// KiB; the array lies in memory that begins and ends at a multiple of it, so that it can consist
/// of them.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The steps in which an array's places differ.
pub(super) const BASE_PAGE_BYTES: usize = 4096;

/// A mapping of memory or of a file; it ends when this is dropped, in this process alone.
pub(super) struct MemoryMapping {
    /// Where it begins: a multiple of the page size.
    pub(super) base: *mut c_void,
    pub(super) bytes: usize,
}

// SAFETY: the mapping's address may be used from any thread; who uses what lies there sees to the
// rest.
unsafe impl Send for MemoryMapping {}
// SAFETY: as above; nothing changes a Mapping before its drop.
unsafe impl Sync for MemoryMapping {}

impl MemoryMapping {
    /// Zeroed, readable and writable.
    pub(super) fn new(bytes: usize, flags: MapFlags) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags)? };
        Ok(Self { base, bytes })
    }

    /// The first bytes of a file: to be read, or shared with whoever else maps it, and written.
    pub(super) fn of_file(file: impl AsFd, bytes: usize, shared: bool) -> Result<Self, Errno> {
        let (protection, flags) = match shared {
            true => (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED),
            false => (ProtFlags::READ, MapFlags::PRIVATE),
        };
        // SAFETY: without MAP_FIXED the kernel chooses the place: it aliases nothing of this
        // process.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        Ok(Self { base, bytes })
    }

    /// So many bytes that begin at a huge page, private and not reserved; gives their beginning
    /// too.
    pub(super) fn of_huge_pages(bytes: usize) -> Result<(Self, *mut c_void), Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let mapping = Self::new(bytes + HUGE_PAGE_BYTES, flags)?;
        let start = mapping.base.wrapping_byte_add(mapping.base.align_offset(HUGE_PAGE_BYTES));
        Ok((mapping, start))
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which only self knows. A refusal leaves it to the process's
        // end.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}
