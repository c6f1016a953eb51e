//! The hardware cycle counter, where the kernel lets user space read it.

use crate::{CoreCycles, Error, WhyNot, arch, perf, sys};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering::*, compiler_fence};

/// Core cycles that the calling thread has run in user mode since this was made. Nothing converts
/// them to time: they stand still while the core does, and tick as fast as it does.
///
/// Virtual machines often have no such counter, and `kernel.perf_user_access` or
/// `/sys/bus/event_source/devices/cpu/rdpmc` may forbid it.
#[derive(Debug)]
pub struct CoreClock {
    page: *const perf::Page,
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
        let (page, file) = perf::cycle_counter()?;
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
        if clock.page().capabilities.load(Relaxed) & perf::Page::CAP_USER_RDPMC == 0 {
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

    fn page(&self) -> &perf::Page {
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
