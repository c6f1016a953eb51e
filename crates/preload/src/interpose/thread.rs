//! A thread's slot and clock, found by a thread-specific pointer (pthread_getspecific(3)).

use core::cell::Cell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use threadclock::{CpuTime, Elapsed, ThreadClock};

use super::shared::{self, Slot, errno, header, set_errno, unmap_page, wiped_page};
use crate::bins::bucket_index;
use crate::layout::{self, OVERHEAD_CELL};

/// In a page that a fork wipes: the child then sets itself up anew.
#[repr(C)]
pub(super) struct Thread {
    /// Whether a call may be timed: set up, and not within another one that is.
    ready: Cell<bool>,
    calls: Cell<u32>,
    cells: Cell<*const layout::CallCell>,
    number: Cell<usize>,
    /// The process that set it up; 0 in a page that a fork has wiped.
    process: Cell<libc::pid_t>,
    clock: Cell<MaybeUninit<ThreadClock>>,
}

const _: () = assert!(size_of::<Thread>() <= layout::PAGE_BYTES);

/// The key of each thread's pointer, plus one; 0 before there is one. The pointer is null before
/// the thread's first call, and [`PASSED`] while it is set up, after its end, and where it cannot
/// be.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Of threads whose calls are not timed.
struct Passed(Thread);

// SAFETY: nobody writes to it: it is never ready, and `set_up` leaves it alone.
unsafe impl Sync for Passed {}

static PASSED: Passed = Passed(Thread {
    ready: Cell::new(false),
    calls: Cell::new(0),
    cells: Cell::new(core::ptr::null()),
    number: Cell::new(0),
    process: Cell::new(0),
    clock: Cell::new(MaybeUninit::uninit()),
});

impl Thread {
    /// The calling thread's, if this call is to be timed; [`leave`](Self::leave) follows.
    #[inline(always)]
    pub(super) fn enter() -> Option<&'static Self> {
        let key = KEY.load(Relaxed).checked_sub(1)?;
        // SAFETY: the key was made; its value is null, the static one, or the thread's page, which
        // is mapped until its end.
        let thread = match unsafe { libc::pthread_getspecific(key).cast::<Self>().as_ref() } {
            Some(thread) if thread.ready.get() => thread,
            other => Self::set_up(key, other)?,
        };
        thread.ready.set(false);
        Some(thread)
    }

    /// Whose it is. A call that a fork returns from in the child began in another process, with a
    /// clock that is gone.
    #[inline(always)]
    pub(super) fn process(&self) -> libc::pid_t {
        self.process.get()
    }

    /// Whether it is the calling thread's: a call may return on another thread than it began on
    /// (fibers).
    #[inline(always)]
    pub(super) fn is_current(&self) -> bool {
        let key = KEY.load(Relaxed).wrapping_sub(1);
        // SAFETY: this thread has a pointer, so the key was made.
        let current = unsafe { libc::pthread_getspecific(key) };
        core::ptr::eq(current.cast_const().cast(), self)
    }

    /// From here on nothing is timed until [`leave`](Self::leave).
    #[inline(always)]
    pub(super) fn hold(&self) {
        self.ready.set(false);
    }

    /// Counts what counting a call took, unless it was switched out meanwhile: that tells of the
    /// machine.
    pub(super) fn note_own(&self, cpu: CpuTime, switched_before: u64) {
        if self.clock().resyncs().switched == switched_before {
            self.record(OVERHEAD_CELL, &Elapsed { cpu, off_cpu_ns: 0, switched: false });
        }
    }

    /// From here on the next call is timed.
    #[inline(always)]
    pub(super) fn leave(&self) {
        self.ready.set(true);
    }

    /// How many calls came before.
    #[inline(always)]
    pub(super) fn next_call(&self) -> u32 {
        let calls = self.calls.get();
        self.calls.set(calls.wrapping_add(1));
        calls
    }

    #[inline(always)]
    pub(super) fn clock(&self) -> &ThreadClock {
        // SAFETY: written by `set_up` before it was ready, and dropped at the thread's end.
        unsafe { (*self.clock.as_ptr()).assume_init_ref() }
    }

    /// Counts a call.
    #[inline(always)]
    pub(super) fn record(&self, cell: usize, elapsed: &Elapsed) {
        // SAFETY: set up, as there is a reading: mapped with all its cells until the thread's end.
        let cell = unsafe { &*self.cells.get().add(cell) };
        let ns = if elapsed.switched { off_cpu(cell, elapsed) } else { elapsed.cpu.ns };
        add(&cell.buckets[bucket_index(ns)], 1);
        add(&cell.sum_ns, ns);
        if ns > cell.max_ns.load(Relaxed) {
            cell.max_ns.store(ns, Relaxed);
        }
    }

    /// The thread's, set up if it can be.
    #[cold]
    #[inline(never)]
    fn set_up(key: u32, found: Option<&'static Self>) -> Option<&'static Self> {
        let header = header()?;
        // Within a timed call, or one whose calls are passed.
        if found.is_some_and(|of| !of.cells.get().is_null() || core::ptr::eq(of, &PASSED.0)) {
            return None;
        }
        // What is called from here on is not timed, errno's function among it.
        point(key, &PASSED.0);
        let before = errno();
        let thread = Self::make(found, header);
        match thread {
            Some(thread) => point(key, thread),
            None => {
                header.missed_threads.fetch_add(1, Relaxed);
            }
        }
        set_errno(before);
        thread
    }

    fn make(found: Option<&'static Self>, header: &layout::SharedHeader) -> Option<&'static Self> {
        let page = match found {
            // The child of a fork goes on in the page that was wiped.
            Some(wiped) => (&raw const *wiped).cast_mut(),
            None => wiped_page().cast::<Self>(),
        };
        // SAFETY: null, or a page of zeroes, which is a Thread that is not ready.
        let thread = unsafe { page.as_ref() }?;
        let Some(slot) = Slot::claim(header) else {
            if found.is_none() {
                // SAFETY: nobody knows of it.
                unsafe { unmap_page(page.cast()) };
            }
            return None;
        };
        let clock = ThreadClock::for_this_thread();
        header.tiers.fetch_or(1 << clock.tier() as u32, Relaxed);
        thread.clock.set(MaybeUninit::new(clock));
        thread.number.set(slot.number);
        thread.cells.set(slot.cells);
        // SAFETY: no memory is touched.
        thread.process.set(unsafe { libc::getpid() });
        thread.ready.set(true);
        Some(thread)
    }
}

/// The one writer is this thread: no locked instruction.
#[inline(always)]
fn add(to: &AtomicU64, more: u64) {
    to.store(to.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Counts a call in which the thread was switched out; its CPU time. By the kernel's clock that is
/// off by up to the clock's bound, but no more than what passed by the counter.
#[cold]
fn off_cpu(cell: &layout::CallCell, elapsed: &Elapsed) -> u64 {
    let wall_ns = elapsed.cpu.ns.saturating_add_signed(elapsed.off_cpu_ns);
    let ns = elapsed.cpu.ns.min(wall_ns);
    add(&cell.switched, 1);
    add(&cell.off_cpu_ns, wall_ns - ns);
    if wall_ns > cell.max_wall_ns.load(Relaxed) {
        cell.max_wall_ns.store(wall_ns, Relaxed);
    }
    ns
}

/// Sets the calling thread's pointer.
fn point(key: u32, to: &'static Thread) {
    // SAFETY: the key was made; its destructor takes any of these.
    unsafe { libc::pthread_setspecific(key, (&raw const *to).cast()) };
}

/// Keys whose values need no memory: setting another one may allocate (glibc,
/// nptl/pthread_setspecific.c).
const FIRST_KEYS: u32 = 32;

/// Makes the key; from then on calls are timed. Whether that went well.
pub(super) fn make_key() -> bool {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: the destructor fits what is stored under the key.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0;
    if made && key < FIRST_KEYS {
        KEY.store(key + 1, Relaxed);
    }
    made && key < FIRST_KEYS
}

extern "C" fn thread_ends(pointer: *mut c_void) {
    let Some(key) = KEY.load(Relaxed).checked_sub(1) else { return };
    // For what other destructors still call. It is set again after each round of destructors.
    point(key, &PASSED.0);
    // SAFETY: one of the threads that `point` was given.
    let thread = unsafe { &*pointer.cast::<Thread>() };
    if core::ptr::eq(thread, &PASSED.0) {
        return;
    }
    let cells = thread.cells.replace(core::ptr::null());
    // In the child of a fork that made no call since, there is nothing.
    if !cells.is_null() {
        let clock = thread.clock.replace(MaybeUninit::uninit());
        // SAFETY: set with `cells`.
        drop(unsafe { clock.assume_init() });
        if let Some(header) = shared::header() {
            Slot { number: thread.number.get(), cells }.release(header);
        }
    }
    // SAFETY: nothing points to it.
    unsafe { unmap_page(pointer.cast()) };
}
