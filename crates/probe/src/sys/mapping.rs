//! Mappings of memory and of files that end when they are dropped.

use std::ffi::c_void;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Size of a huge page, for base pages of 4 KiB, on all architectures where Linux has them. Working
/// sets lie in memory that begins and ends at a multiple of it, so that it can consist of huge
/// pages.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Distance between two places of a working set.
pub(super) const BASE_PAGE_BYTES: usize = 4096;

/// A mapping of memory or of a file; it ends when this is dropped, in this process alone.
pub(super) struct MemoryMapping {
    /// Address of the first byte, a multiple of the page size.
    pub(super) base: *mut c_void,
    pub(super) bytes: usize,
}

// SAFETY: the mapping's address may be used from any thread; who uses what lies there sees to the
// rest.
unsafe impl Send for MemoryMapping {}
// SAFETY: as above; nothing changes a Mapping before its drop.
unsafe impl Sync for MemoryMapping {}

impl MemoryMapping {
    /// Maps zeroed memory, readable and writable.
    pub(super) fn new(bytes: usize, flags: MapFlags) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags)? };
        Ok(Self { base, bytes })
    }

    /// Maps the first `bytes` bytes of a file: read-only, or, if `shared`, writable and shared with
    /// all who map it.
    pub(super) fn of_file(file: impl AsFd, bytes: usize, shared: bool) -> Result<Self, Errno> {
        let (protection, flags) = if shared {
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
        } else {
            (ProtFlags::READ, MapFlags::PRIVATE)
        };
        // SAFETY: without MAP_FIXED the kernel chooses the place: it aliases nothing of this
        // process.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        Ok(Self { base, bytes })
    }

    /// Maps private, not reserved memory with `bytes` bytes that begin at a multiple of
    /// [`HUGE_PAGE_BYTES`]. Returns the mapping and the address of these bytes.
    pub(super) fn at_huge_page(bytes: usize) -> Result<(Self, *mut c_void), Errno> {
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
