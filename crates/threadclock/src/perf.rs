//! perf events of the calling thread: a page whose `lock` word moves at each switch, and the
//! hardware cycle counter. perf_event_open(2), include/uapi/linux/perf_event.h.

use crate::{WhyNot, sys};
use core::ptr;
use core::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64};

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const HW_CPU_CYCLES: u64 = 0;
/// Counts nothing: it is only there to be scheduled in and out with the thread.
const SW_DUMMY: u64 = 9;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_FD_CLOEXEC: u64 = 8;

/// The first 64 bytes of `struct perf_event_attr` (PERF_ATTR_SIZE_VER0), which every kernel takes.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
}

/// The start of `struct perf_event_mmap_page`.
#[repr(C)]
pub(crate) struct Page {
    pub(crate) version: AtomicU32,
    pub(crate) compat_version: AtomicU32,
    /// Moves by two whenever the kernel updates the page: at each switch to the thread.
    pub(crate) lock: AtomicU32,
    pub(crate) index: AtomicU32,
    pub(crate) offset: AtomicI64,
    pub(crate) time_enabled: AtomicU64,
    pub(crate) time_running: AtomicU64,
    pub(crate) capabilities: AtomicU64,
    pub(crate) counter_width: AtomicU16,
}

impl Page {
    /// Bit 2 of the capabilities: user space may use RDPMC.
    pub(crate) const CAP_USER_RDPMC: u64 = 1 << 2;

    /// `lock` in the lower and `index` in the upper half (or the other way round): as the dummy
    /// event has no index, the whole changes exactly when `lock` does.
    pub(crate) fn generation(page: *const Self) -> *const AtomicU64 {
        // SAFETY: stays inside the mapped page; `lock` lies at offset 8, aligned for 8 bytes.
        unsafe { (&raw const (*page).lock).cast() }
    }
}

/// The page of a dummy event on the calling thread. Its descriptor is closed: the mapping keeps it.
pub(crate) fn switch_page() -> Result<*const Page, WhyNot> {
    let (page, file) = open(TYPE_SOFTWARE, SW_DUMMY).map_err(WhyNot::PerfRefused)?;
    sys::close(file);
    Ok(page)
}

/// The page and descriptor of the calling thread's cycle counter, user mode only.
pub(crate) fn cycle_counter() -> Result<(*const Page, i32), WhyNot> {
    open(TYPE_HARDWARE, HW_CPU_CYCLES).map_err(|errno| match errno {
        libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV => WhyNot::CountersUnreadable,
        _ => WhyNot::PerfRefused(errno),
    })
}

fn open(kind: u32, config: u64) -> Result<(*const Page, i32), i32> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period: 0,
        sample_type: 0,
        read_format: 0,
        // What an unprivileged user may ask for at perf_event_paranoid = 2.
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        wakeup_events: 0,
        breakpoint_kind: 0,
        config1: 0,
    };
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the kernel reads `size` bytes of the attributes.
    let file = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            FLAG_FD_CLOEXEC,
        ) as i32
    };
    if file < 0 {
        return Err(sys::errno());
    }
    let (read_only, shared) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping overlaps nothing.
    let page =
        unsafe { libc::mmap(ptr::null_mut(), sys::page_bytes(), read_only, shared, file, 0) };
    if page == libc::MAP_FAILED {
        let errno = sys::errno();
        sys::close(file);
        return Err(errno);
    }
    Ok((page.cast(), file))
}
