//! The state of a thread: two pages, mapped at its first clock and freed at its end.
//!
//! ```text
//! first page, copied by a fork              second page, zeroed by a fork
//! rseq descriptor and area, count of        the slots of four tiers (see `slot`),
//! clocks, best slot, refusals               the address of the perf page
//! ```
//!
//! The child's kernel state still points to the rseq descriptor and area, so they must stay. The
//! slots hold the parent's CPU time, so they must not: zeroed, a slot refuses every stamp, and the
//! child's first read sets it up again.

use crate::perf::{self, CoreClock};
use crate::slot::{self, ClockSlot, kind};
use crate::types::{Tier, TierRefusal};
use crate::{arch, calibrate, sys, witness};
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

/// The page of a thread that a fork copies.
#[repr(C)]
pub(crate) struct ThreadState {
    descriptor: witness::RseqDescriptor,
    area: witness::RseqArea,
    /// The registered `rseq_cs` word; null until there is one.
    rseq_cs: Cell<*const AtomicU64>,
    /// Number of clocks that point here.
    clocks: Cell<usize>,
    ended: Cell<bool>,
    best: Cell<*const ClockSlot>,
    /// The reasons why the tiers above the kernel's were not taken, in their order.
    refused: [Cell<Option<TierRefusal>>; Tier::ALL.len() - 1],
}

/// The tiers that have a slot, best first. The last asks the kernel.
const SLOT_TIERS: [Tier; 4] = [Tier::Rseq, Tier::PerfPage, Tier::SystemCall, Tier::Kernel];

/// The page of a thread that a fork zeroes.
#[repr(C)]
struct WipedPage {
    slots: [ClockSlot; SLOT_TIERS.len()],
    perf_page: AtomicPtr<perf::EventPage>,
}

/// The key that finds a thread's pages, plus one. 0: not made yet.
static KEY: AtomicU32 = AtomicU32::new(0);

impl ThreadState {
    /// Returns the calling thread's state, mapped if it is the first time.
    #[inline]
    pub(crate) fn current() -> Result<&'static Self, TierRefusal> {
        let key = KEY.load(Acquire);
        if key != 0 {
            // SAFETY: the key was made and is never deleted.
            let thread = unsafe { libc::pthread_getspecific(key - 1) }.cast::<Self>();
            // SAFETY: the value is null or this thread's page, mapped until the thread ends.
            if let Some(thread) = unsafe { thread.as_ref() } {
                return Ok(thread);
            }
        }
        Self::new()
    }

    #[cold]
    fn new() -> Result<&'static Self, TierRefusal> {
        calibrate::start();
        let key = make_key().map_err(TierRefusal::NoMemory)?;
        let bytes = sys::page_bytes();
        debug_assert!(size_of::<Self>() <= bytes && size_of::<WipedPage>() <= bytes);
        let start = sys::map_pages(2)?;
        let thread = start.cast::<Self>();
        // SAFETY: the page is mapped, zeroed, aligned and large enough, and not shared yet.
        let thread = unsafe {
            (*thread).descriptor.place();
            // A signal handler finds this one until the choice is made.
            ptr::write(&raw mut (*thread).best, Cell::new(bare()));
            ptr::write(&raw mut (*thread).refused, Default::default());
            &*thread
        };
        // SAFETY: the key exists; its destructor takes exactly this pointer.
        let status = unsafe { libc::pthread_setspecific(key, start.cast()) };
        if status != 0 {
            // SAFETY: `thread` is not used again.
            unsafe { sys::unmap(start.cast(), 2) };
            return Err(TierRefusal::NoMemory(status));
        }
        thread.best.set(thread.choose());
        Ok(thread)
    }

    /// Returns the slot of the best tier.
    #[inline]
    pub(crate) fn best(&self) -> &ClockSlot {
        // SAFETY: set at creation to a slot in the second page.
        unsafe { &*self.best.get() }
    }

    /// Sets up the best tier that is available, and notes why the better ones are not.
    fn choose(&self) -> &ClockSlot {
        for (tier, refusal) in Tier::ALL.into_iter().zip(&self.refused) {
            match self.slot(tier) {
                Ok(slot) => return slot,
                Err(why) => refusal.set(Some(why)),
            }
        }
        self.slot(Tier::Kernel).unwrap_or(bare())
    }

    /// Returns the reason why a tier was not taken for this thread, if it was not.
    pub(crate) fn refused(&self, tier: Tier) -> Option<TierRefusal> {
        self.refused.get(tier as usize - 1).and_then(Cell::get)
    }

    fn wiped_page(&self) -> &WipedPage {
        let second_page = (&raw const *self).cast::<u8>().wrapping_add(sys::page_bytes());
        // SAFETY: the second page is mapped with the first; all-zero is a valid WipedPage.
        unsafe { &*second_page.cast() }
    }

    /// Returns the slot of a tier, set up if it is not (or no longer, in the child of a fork).
    pub(crate) fn slot(&self, tier: Tier) -> Result<&ClockSlot, TierRefusal> {
        let Some(index) = SLOT_TIERS.iter().position(|slot_tier| *slot_tier == tier) else {
            return Err(CoreClock::for_this_thread().err().unwrap_or(TierRefusal::OtherUnit));
        };
        let slot = &self.wiped_page().slots[index];
        if slot.kind.load(Relaxed) != kind::WIPED {
            return Ok(slot);
        }
        if tier != Tier::Kernel {
            witness::counter_is_good()?;
        }
        match tier {
            Tier::Rseq => self.set_up_rseq(slot)?,
            Tier::PerfPage => self.set_up_perf(slot)?,
            Tier::SystemCall => {
                witness::pinfo_shows_switches()?;
                slot.set_up(kind::CALL, &raw const slot.swapins, 0);
            }
            _ => slot.set_up_asking(),
        }
        Ok(slot)
    }

    /// Sets a slot up again in the child of a fork. A tier that is not available there asks.
    pub(crate) fn revive(&self, slot: &ClockSlot) {
        let slots = &self.wiped_page().slots;
        let index = slots.iter().position(|candidate| ptr::eq(slot, candidate));
        if index.is_none_or(|index| self.slot(SLOT_TIERS[index]).is_err()) {
            slot.set_up_asking();
        }
    }

    /// Returns the value that is stored in `rseq_cs`: the address of the descriptor.
    fn token(&self) -> u64 {
        &raw const self.descriptor as u64
    }

    fn own_area(&self) -> *mut witness::RseqArea {
        (&raw const self.area).cast_mut()
    }

    fn set_up_rseq(&self, slot: &ClockSlot) -> Result<(), TierRefusal> {
        if self.rseq_cs.get().is_null() {
            self.rseq_cs.set(witness::find_or_register(self.own_area())?);
        }
        witness::rseq_shows_switches(self.rseq_cs.get(), self.token())?;
        slot.set_up(kind::STORE, self.rseq_cs.get(), self.token());
        Ok(())
    }

    fn set_up_perf(&self, slot: &ClockSlot) -> Result<(), TierRefusal> {
        let page = perf::switch_page()?;
        let generation = perf::EventPage::generation(page);
        if let Err(why) = witness::perf_shows_switches(generation) {
            // SAFETY: the slot does not point there yet.
            unsafe { sys::unmap(page.cast_mut().cast(), 1) };
            return Err(why);
        }
        self.wiped_page().perf_page.store(page.cast_mut(), Relaxed);
        slot.set_up(kind::COUNT, generation, 0);
        Ok(())
    }

    /// Counts a clock that points here.
    pub(crate) fn hold(&self) {
        self.clocks.set(self.clocks.get() + 1);
    }

    /// Counts off a clock, which may be the last: a clock in a thread-local may outlive our
    /// destructor.
    pub(crate) fn release(&self) {
        self.clocks.set(self.clocks.get() - 1);
        self.free_if_unused();
    }

    /// Unmaps the pages if the thread has ended and no clock points here.
    fn free_if_unused(&self) {
        if !self.ended.get() || self.clocks.get() != 0 {
            return;
        }
        // SAFETY: null, or in the thread's rseq area, which is mapped until the thread is gone.
        if let Some(word) = unsafe { self.rseq_cs.get().as_ref() } {
            if word.load(Relaxed) == self.token() {
                word.store(0, Relaxed);
            }
            // If the kernel does not let the area go, it goes on writing there: it stays mapped.
            let is_own = ptr::eq(word, witness::rseq_cs(self.own_area() as usize));
            if is_own && witness::unregister(self.own_area()).is_err() {
                return;
            }
        }
        let page = self.wiped_page().perf_page.load(Relaxed);
        // SAFETY: no clock points here, the key is cleared, and the kernel has been told.
        unsafe {
            if !page.is_null() {
                sys::unmap(page.cast(), 1);
            }
            sys::unmap((&raw const *self).cast_mut().cast(), 2);
        }
    }
}

extern "C" fn thread_ends(thread: *mut libc::c_void) {
    // SAFETY: the key holds this thread's page and nothing else.
    let thread = unsafe { &*thread.cast::<ThreadState>() };
    thread.ended.set(true);
    thread.free_if_unused();
}

/// Returns the key, made by whichever thread comes first.
fn make_key() -> Result<libc::pthread_key_t, i32> {
    let known = KEY.load(Acquire);
    if known != 0 {
        return Ok(known - 1);
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: the destructor fits what is stored under the key.
    let status = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
    if status != 0 {
        return Err(status);
    }
    match KEY.compare_exchange(0, key + 1, AcqRel, Acquire) {
        Ok(_) => Ok(key),
        Err(winner) => {
            // SAFETY: nothing was stored under our key.
            unsafe { libc::pthread_key_delete(key) };
            Ok(winner - 1)
        }
    }
}

/// Returns the slot that threads share which could get no pages.
pub(crate) fn bare() -> &'static ClockSlot {
    static BARE: ClockSlot = ClockSlot::bare();
    &BARE
}

const _: () = assert!(arch::RSEQ_SIG != 0 || !arch::HAS_COUNTER);
const _: () = assert!(slot::DEFAULT_BOUND_NS > slot::PAIR_ERROR_NS);
