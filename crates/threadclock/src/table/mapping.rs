//! The table as a read-only mapping. Its header is checked once, so that a damaged or hostile table
//! gives wrong figures and nothing worse.

use super::layout::{MAGIC, TableHeader, ThreadRecord, VERSION};
use super::types::ThreadTimeError;
use crate::sys;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering::*};
use libc::{c_int, c_void};

/// `BPF_OBJ_GET`, `BPF_OBJ_GET_INFO_BY_FD` and the type of arrays, of include/uapi/linux/bpf.h.
const OBJ_GET: c_int = 7;
const OBJ_GET_INFO: c_int = 15;
const ARRAY: u32 = 2;

/// A mapped table of threads.
#[derive(Debug)]
pub struct ThreadTable {
    start: *const u8,
    bytes: usize,
    record_bytes: usize,
    tids: u32,
    /// Byte offset of the index.
    index_at: usize,
    /// Byte offset of the first record.
    records_at: usize,
    records: usize,
}

// SAFETY: the mapping is read only and lives as long as this; what changes in it is atomic.
unsafe impl Send for ThreadTable {}
// SAFETY: as above.
unsafe impl Sync for ThreadTable {}

/// The start of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// Attributes of `BPF_OBJ_GET`.
#[repr(C)]
#[derive(Default)]
struct ObjectGet {
    path: u64,
    descriptor: u32,
    flags: u32,
}

/// Attributes of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InfoGet {
    descriptor: u32,
    bytes: u32,
    info: u64,
}

impl ThreadTable {
    /// Opens the table that was pinned at `path` in a BPF file system. Needs no privilege
    /// but access to the file (Linux 5.18; before, `kernel.unprivileged_bpf_disabled` must be 0).
    ///
    /// # Errors
    /// [`ThreadTimeError::Os`], or [`ThreadTimeError::NoTable`] if something else is pinned there.
    pub fn open(path: &CStr) -> Result<Self, ThreadTimeError> {
        // Not read-only: such a descriptor of a map cannot be mapped. The map is frozen instead.
        let get = ObjectGet { path: path.as_ptr() as u64, ..Default::default() };
        // SAFETY: `path` ends in NUL and outlives the call.
        let descriptor =
            unsafe { bpf(OBJ_GET, &get) }.map_err(|errno| os_error("BPF_OBJ_GET", errno))?;
        let table = Self::map(descriptor);
        sys::close(descriptor);
        table
    }

    /// Maps the table of this descriptor of a BPF map, which may be closed afterwards.
    ///
    /// # Errors
    /// [`ThreadTimeError::Os`], or [`ThreadTimeError::NoTable`] if the map is something else.
    pub fn map(descriptor: c_int) -> Result<Self, ThreadTimeError> {
        let mut info = MapInfo::default();
        let get = InfoGet {
            descriptor: descriptor.try_into().map_err(|_| os_error("map", libc::EBADF))?,
            bytes: size_of::<MapInfo>() as u32,
            info: (&raw mut info) as u64,
        };
        // SAFETY: the kernel writes at most `bytes` to `info`, which outlives the call.
        unsafe { bpf(OBJ_GET_INFO, &get) }
            .map_err(|errno| os_error("BPF_OBJ_GET_INFO_BY_FD", errno))?;
        if info.kind != ARRAY {
            return Err(ThreadTimeError::NoTable);
        }
        let record_bytes = info.value_bytes as usize;
        Self::from_file(
            descriptor,
            record_bytes.saturating_mul(info.entries as usize),
            record_bytes,
        )
    }

    /// Maps the table in the first `bytes` of a file.
    pub(super) fn from_file(
        descriptor: c_int,
        bytes: usize,
        record_bytes: usize,
    ) -> Result<Self, ThreadTimeError> {
        if bytes < size_of::<TableHeader>() {
            return Err(ThreadTimeError::NoTable);
        }
        let start = sys::map_file(descriptor, bytes).map_err(|errno| os_error("mmap", errno))?;
        let start = start.cast();
        let mut table =
            Self { start, bytes, record_bytes, tids: 0, index_at: 0, records_at: 0, records: 0 };
        table.check_header()?;
        Ok(table)
    }

    /// Takes over the header's offsets if they lie in the mapping and do not overlap.
    fn check_header(&mut self) -> Result<(), ThreadTimeError> {
        let header = self.header();
        let is_known = header.magic == MAGIC && header.version == VERSION;
        let size = self.record_bytes;
        let index_at = header.index_at as usize * size;
        let records_at = header.records_at as usize * size;
        let (tids, records) = (header.tids, header.records as usize);
        let fits = size.is_power_of_two()
            && size >= size_of::<ThreadRecord>()
            && header.record_bytes as usize == size
            && index_at >= size
            && index_at + tids as usize * size_of::<u32>() <= records_at
            && records_at + records * size <= self.bytes;
        if !is_known || !fits {
            return Err(ThreadTimeError::NoTable);
        }
        (self.tids, self.index_at) = (tids, index_at);
        (self.records_at, self.records) = (records_at, records);
        Ok(())
    }

    /// Returns the header.
    pub fn header(&self) -> &TableHeader {
        // SAFETY: the mapping is at least that long, page-aligned, and its plain fields never
        // change.
        unsafe { &*self.start.cast() }
    }

    /// Returns the record of this thread id. It may have been given to another thread meanwhile,
    /// which its field `tid` shows.
    #[inline]
    pub fn record(&self, tid: u32) -> Option<&ThreadRecord> {
        if tid >= self.tids {
            return None;
        }
        let entry = self.index_at + tid as usize * size_of::<u32>();
        // SAFETY: `tid` is in the index, which lies in the mapping; aligned, as elements are.
        let element = unsafe { &*self.start.add(entry).cast::<AtomicU32>() }.load(Acquire);
        let offset = (element as usize).wrapping_mul(self.record_bytes);
        if offset.wrapping_sub(self.records_at) >= self.records * self.record_bytes {
            return None;
        }
        // SAFETY: an element among the records, which lie in the mapping.
        Some(unsafe { &*self.start.add(offset).cast() })
    }

    /// Returns the address of record number `number`, for readers that know what follows the
    /// [`ThreadRecord`].
    #[inline]
    pub fn element(&self, number: usize) -> Option<*const u8> {
        // SAFETY: in the mapping.
        (number < self.records)
            .then(|| unsafe { self.start.add(self.records_at + number * self.record_bytes) })
    }
}

impl Drop for ThreadTable {
    fn drop(&mut self) {
        // SAFETY: references into it cannot outlive `self`.
        unsafe { libc::munmap(self.start.cast_mut().cast::<c_void>(), self.bytes) };
    }
}

fn os_error(call: &'static str, errno: c_int) -> ThreadTimeError {
    ThreadTimeError::Os { call, errno }
}

/// Calls bpf(2).
///
/// # Safety
/// The addresses in `attributes` must be what `command` expects.
unsafe fn bpf<T>(command: c_int, attributes: &T) -> Result<c_int, c_int> {
    // SAFETY: the struct outlives the call, and its size is given; the rest is the caller's.
    let status =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    if status < 0 { Err(sys::errno()) } else { Ok(status as c_int) }
}
