//! Perf events of the calling thread: a page whose `lock` word moves at each switch, and the hardware
//! cycle counter (perf_event_open(2), include/uapi/linux/perf_event.h).

use crate::types::{CoreCycles, TierRefusal, TimeReadError};
use crate::{arch, sys};
use core::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering::*, compiler_fence};

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const HW_CPU_CYCLES: u64 = 0;
/// Counts nothing: it only serves to be scheduled in and out with the thread.
const SW_DUMMY: u64 = 9;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_FD_CLOEXEC: u64 = 8;

/// The first 64 bytes of `struct perf_event_attr` (PERF_ATTR_SIZE_VER0), which every kernel takes.
#[repr(C)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    /// sample_period, sample_type, read_format.
    samples: [u64; 3],
    flags: u64,
    /// wakeup_events, bp_type, config1.
    rest: [u64; 2],
}

/// The start of `struct perf_event_mmap_page`.
#[repr(C)]
pub(crate) struct EventPage {
    versions: [u32; 2],
    /// Moves by two whenever the kernel updates the page: at each switch to the thread.
    lock: AtomicU32,
    index: AtomicU32,
    offset: AtomicI64,
    times: [u64; 2],
    capabilities: AtomicU64,
    counter_width: AtomicU16,
}

/// Bit 2 of the capabilities: user space may use RDPMC.
const CAP_USER_RDPMC: u64 = 1 << 2;

impl EventPage {
    /// Returns the address of a word with `lock` and `index` in its halves: as the dummy event has
    /// no index, the word changes exactly when `lock` does.
    pub(crate) fn generation(page: *const Self) -> *const AtomicU64 {
        // SAFETY: stays inside the mapped page; `lock` lies at offset 8, aligned for 8 bytes.
        unsafe { (&raw const (*page).lock).cast() }
    }
}

/// Maps the page of a dummy event on the calling thread. Its descriptor is closed: the mapping keeps
/// the event.
pub(crate) fn switch_page() -> Result<*const EventPage, TierRefusal> {
    let (page, file) = open(TYPE_SOFTWARE, SW_DUMMY).map_err(TierRefusal::PerfRefused)?;
    sys::close(file);
    Ok(page)
}

/// Opens an event on the calling thread. Returns its page and descriptor, or errno.
fn open(kind: u32, config: u64) -> Result<(*const EventPage, i32), i32> {
    let attributes = EventAttributes {
        kind,
        size: size_of::<EventAttributes>() as u32,
        config,
        samples: [0; 3],
        // An unprivileged user may ask for this at perf_event_paranoid = 2.
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        rest: [0; 2],
    };
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the kernel reads `size` bytes of the attributes.
    let file = unsafe {
        let (call, attributes) = (libc::SYS_perf_event_open, &raw const attributes);
        libc::syscall(call, attributes, this_thread, any_cpu, no_group, FLAG_FD_CLOEXEC) as i32
    };
    if file < 0 {
        return Err(sys::errno());
    }
    let page = sys::map_file(file, sys::page_bytes()).inspect_err(|_| sys::close(file))?;
    Ok((page.cast(), file))
}

/// Counts the core cycles that the calling thread has run in user mode since this was made. Nothing
/// converts them to time: they stand still while the core does, and tick as fast as it does.
///
/// Virtual machines often have no such counter, and `kernel.perf_user_access` or
/// `/sys/bus/event_source/devices/cpu/rdpmc` may forbid it.
#[derive(Debug)]
pub struct CoreClock {
    /// A pointer, so that the clock is neither Send nor Sync.
    page: *const EventPage,
    file: i32,
    /// A word that is 1, and 0 in the child of a fork, where `page` is not mapped.
    is_mapped: *const AtomicU64,
}

impl CoreClock {
    /// Opens the counter for the calling thread.
    pub fn for_this_thread() -> Result<Self, TierRefusal> {
        if !arch::HAS_READ_COUNTER {
            return Err(TierRefusal::CountersUnreadable);
        }
        // User mode only.
        let (page, file) = open(TYPE_HARDWARE, HW_CPU_CYCLES).map_err(|errno| match errno {
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV => TierRefusal::CountersUnreadable,
            _ => TierRefusal::PerfRefused(errno),
        })?;
        let is_mapped = sys::map_pages(1).inspect_err(|_| {
            sys::close(file);
            // SAFETY: nothing points there yet.
            unsafe { sys::unmap(page.cast_mut().cast(), 1) };
        })?;
        let clock = Self { page, file, is_mapped: is_mapped.cast() };
        clock.is_mapped().store(1, Relaxed);
        match clock.page().capabilities.load(Relaxed) & CAP_USER_RDPMC {
            0 => Err(TierRefusal::CountersUnreadable),
            _ => Ok(clock),
        }
    }

    /// Returns the cycles up to now. Follows the protocol that perf_event.h gives for its page.
    pub fn now(&self) -> Result<CoreCycles, TimeReadError> {
        if self.is_mapped().load(Relaxed) == 0 {
            return Err(TimeReadError::Forked);
        }
        let page = self.page();
        loop {
            let lock = page.lock.load(Relaxed);
            compiler_fence(SeqCst);
            let index = page.index.load(Relaxed);
            let offset = page.offset.load(Relaxed);
            let width = u32::from(page.counter_width.load(Relaxed)).clamp(1, 64);
            if index == 0 {
                return self.read_file();
            }
            // SAFETY: the capability was checked, and the index is the kernel's plus one.
            let raw = unsafe { arch::read_counter(index - 1) };
            compiler_fence(SeqCst);
            if page.lock.load(Relaxed) == lock {
                let count = (raw << (64 - width)) as i64 >> (64 - width);
                return Ok(CoreCycles(offset.wrapping_add(count) as u64));
            }
        }
    }

    /// Reads the kernel's count, which is current while the event is not on a counter.
    fn read_file(&self) -> Result<CoreCycles, TimeReadError> {
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes to `count`.
        let bytes = unsafe { libc::read(self.file, (&raw mut count).cast(), size_of::<u64>()) };
        match bytes {
            8 => Ok(CoreCycles(count)),
            _ => {
                Err(TimeReadError::Os { call: "read of a perf event", id: 0, errno: sys::errno() })
            }
        }
    }

    fn page(&self) -> &EventPage {
        // SAFETY: mapped while the clock lives, and only used where `is_mapped` says so.
        unsafe { &*self.page }
    }

    fn is_mapped(&self) -> &AtomicU64 {
        // SAFETY: mapped while the clock lives, in a fork's child too.
        unsafe { &*self.is_mapped }
    }
}

impl Drop for CoreClock {
    fn drop(&mut self) {
        sys::close(self.file);
        let forked = self.is_mapped().load(Relaxed) == 0;
        // SAFETY: nothing borrows from a clock being dropped. In the child of a fork something
        // else may lie where the page was.
        unsafe {
            if !forked {
                sys::unmap(self.page.cast_mut().cast(), 1);
            }
            sys::unmap(self.is_mapped.cast_mut().cast(), 1);
        }
    }
}
