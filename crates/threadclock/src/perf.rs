//! perf events of the calling thread: a page whose `lock` word moves at each switch, and the
//! hardware cycle counter. perf_event_open(2), include/uapi/linux/perf_event.h.

use crate::{CoreCycles, Error, WhyNot, arch, sys};
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering::*, compiler_fence};

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

/// Core cycles that the calling thread has run in user mode since this was made. Nothing converts
/// them to time: they stand still while the core does, and tick as fast as it does.
///
/// Virtual machines often have no such counter, and `kernel.perf_user_access` or
/// `/sys/bus/event_source/devices/cpu/rdpmc` may forbid it.
#[derive(Debug)]
pub struct CoreClock {
    page: *const Page,
    file: i32,
    /// 1, and 0 in the child of a fork, where `page` is not mapped.
    here: *const AtomicU64,
    not_send: PhantomData<*mut ()>,
}

impl CoreClock {
    /// Opens the counter for the calling thread.
    pub fn for_this_thread() -> Result<Self, WhyNot> {
        if !arch::HAS_READ_COUNTER {
            return Err(WhyNot::CountersUnreadable);
        }
        let (page, file) = cycle_counter()?;
        let bytes = sys::page_bytes();
        let here = sys::map_zeroed(bytes).map_err(WhyNot::NoMemory);
        let wiped = here.and_then(|here| {
            sys::wipe_on_fork(here, bytes).map(|()| here).map_err(WhyNot::NoMemory)
        });
        let here = here.unwrap_or(core::ptr::null_mut()).cast_const().cast();
        let clock = Self { page, file, here, not_send: PhantomData };
        if !clock.here.is_null() {
            clock.here().store(1, Relaxed);
        }
        wiped?;
        if clock.page().capabilities.load(Relaxed) & Page::CAP_USER_RDPMC == 0 {
            return Err(WhyNot::CountersUnreadable);
        }
        Ok(clock)
    }

    /// The cycles until now. Follows the protocol that perf_event.h gives for its page.
    pub fn now(&self) -> Result<CoreCycles, Error> {
        if self.here().load(Relaxed) == 0 {
            return Err(Error::Forked);
        }
        let page = self.page();
        loop {
            let lock = page.lock.load(Relaxed);
            compiler_fence(SeqCst);
            let index = page.index.load(Relaxed);
            let offset = page.offset.load(Relaxed);
            let width = u32::from(page.counter_width.load(Relaxed)).clamp(1, 64);
            if index == 0 {
                return self.ask();
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

    /// The kernel's count, while the event is not on a counter.
    fn ask(&self) -> Result<CoreCycles, Error> {
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes to `count`.
        let got = unsafe { libc::read(self.file, (&raw mut count).cast(), size_of::<u64>()) };
        match got {
            8 => Ok(CoreCycles(count)),
            _ => Err(Error::Os { call: "read of a perf event", id: 0, errno: sys::errno() }),
        }
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped while the clock lives, and only used where `here` says so.
        unsafe { &*self.page }
    }

    fn here(&self) -> &AtomicU64 {
        // SAFETY: mapped while the clock lives, in a fork's child too.
        unsafe { &*self.here }
    }
}

impl Drop for CoreClock {
    fn drop(&mut self) {
        sys::close(self.file);
        let bytes = sys::page_bytes();
        let forked = !self.here.is_null() && self.here().load(Relaxed) == 0;
        // SAFETY: nothing borrows from a clock being dropped. In the child of a fork something
        // else may lie where the page was.
        unsafe {
            if !forked {
                sys::unmap(self.page.cast_mut().cast(), bytes);
            }
            if !self.here.is_null() {
                sys::unmap(self.here.cast_mut().cast(), bytes);
            }
        }
    }
}
