//! A thread's slot and clock, found by a thread-specific pointer (pthread_getspecific(3)):
//!
//! ```text
//! null                    before the thread's first call, which sets it up
//! UNTIMED_THREAD          while it is set up, after its end, and if it cannot be set up
//! a page of its own       its calls are timed, except those within a timed call
//! ```

use core::cell::Cell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use threadclock::{CpuTime, Elapsed, ThreadClock};

use super::shared::{self, ThreadSlot, errno, header, set_errno, unmap_page, wiped_page};
use crate::bins::bucket_index;
use crate::layout::{self, OVERHEAD_CELL};

/// The state of a thread, in a page that a fork zeroes: the child then sets itself up again.
#[repr(C)]
pub(super) struct TimedThread {
    /// True if a call may be timed: the thread is set up, and not within another timed call.
    ready: Cell<bool>,
    /// Number of calls so far.
    calls: Cell<u32>,
    /// The cells of its slot; null if it has none.
    cells: Cell<*const layout::CallCell>,
    /// The number of its slot.
    number: Cell<usize>,
    /// The process that set it up; 0 in a page that a fork has zeroed.
    process: Cell<libc::pid_t>,
    clock: Cell<MaybeUninit<ThreadClock>>,
}

const _: () = assert!(size_of::<TimedThread>() <= layout::PAGE_BYTES);

/// The key of each thread's pointer, plus one; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// A state that threads share whose calls are not timed.
struct UntimedThread(TimedThread);

// SAFETY: it is never written to: it is never ready, and `set_up` leaves it alone.
unsafe impl Sync for UntimedThread {}

static UNTIMED_THREAD: UntimedThread = UntimedThread(TimedThread {
    ready: Cell::new(false),
    calls: Cell::new(0),
    cells: Cell::new(core::ptr::null()),
    number: Cell::new(0),
    process: Cell::new(0),
    clock: Cell::new(MaybeUninit::uninit()),
});

impl TimedThread {
    /// Returns the calling thread's state if this call is to be timed; [`leave`](Self::leave) follows.
    #[inline(always)]
    pub(super) fn enter() -> Option<&'static Self> {
        let key = KEY.load(Relaxed).checked_sub(1)?;
        // SAFETY: the key was made; its value is null, the static one, or the thread's page, which
        // is mapped until its end.
        let thread = match unsafe { libc::pthread_getspecific(key).cast::<Self>().as_ref() } {
            Some(thread) if thread.ready.get() => thread,
            not_ready => Self::set_up(key, not_ready)?,
        };
        thread.ready.set(false);
        Some(thread)
    }

    /// Returns the process that it belongs to. A call that returns in the child of a fork began in
    /// another process, with a clock that is gone.
    #[inline(always)]
    pub(super) fn process(&self) -> libc::pid_t {
        self.process.get()
    }

    /// Returns whether it is the calling thread's: a call may return on another thread than it began on
    /// (fibers).
    #[inline(always)]
    pub(super) fn is_current(&self) -> bool {
        let key = KEY.load(Relaxed).wrapping_sub(1);
        // SAFETY: this thread has a pointer, so the key was made.
        let current = unsafe { libc::pthread_getspecific(key) };
        core::ptr::eq(current.cast_const().cast(), self)
    }

    /// Stops timing until [`leave`](Self::leave).
    #[inline(always)]
    pub(super) fn hold(&self) {
        self.ready.set(false);
    }

    /// Counts the overhead of counting a call, unless the thread was switched out meanwhile.
    pub(super) fn record_overhead(&self, cpu: CpuTime, switches_before: u64) {
        if self.clock().resyncs().switched == switches_before {
            self.record(OVERHEAD_CELL, &Elapsed { cpu, off_cpu_ns: 0, switched: false });
        }
    }

    /// Allows the next call to be timed.
    #[inline(always)]
    pub(super) fn leave(&self) {
        self.ready.set(true);
    }

    /// Counts a call. Returns how many came before.
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

    /// Counts a call in a cell by its CPU time.
    #[inline(always)]
    pub(super) fn record(&self, cell: usize, elapsed: &Elapsed) {
        // SAFETY: set up, as there is a reading: mapped with all its cells until the thread's end.
        let cell = unsafe { &*self.cells.get().add(cell) };
        let ns = if elapsed.switched { record_switched(cell, elapsed) } else { elapsed.cpu.ns };
        add(&cell.buckets[bucket_index(ns)], 1);
        add(&cell.sum_ns, ns);
        if ns > cell.max_ns.load(Relaxed) {
            cell.max_ns.store(ns, Relaxed);
        }
    }

    /// Sets up the calling thread's state. `None` if its calls are not to be timed.
    #[cold]
    #[inline(never)]
    fn set_up(key: u32, found: Option<&'static Self>) -> Option<&'static Self> {
        let header = header()?;
        if let Some(thread) = found {
            let is_within_timed_call = !thread.cells.get().is_null();
            if is_within_timed_call || core::ptr::eq(thread, &UNTIMED_THREAD.0) {
                return None;
            }
        }
        // Calls from here on are not timed, including the function that gives errno.
        set_pointer(key, &UNTIMED_THREAD.0);
        let saved_errno = errno();
        let thread = Self::make(found, header);
        match thread {
            Some(thread) => set_pointer(key, thread),
            None => {
                header.missed_threads.fetch_add(1, Relaxed);
            }
        }
        set_errno(saved_errno);
        thread
    }

    /// Makes a state: in a new page, or in the zeroed page of a fork's child.
    fn make(found: Option<&'static Self>, header: &layout::SharedHeader) -> Option<&'static Self> {
        let page = match found {
            Some(zeroed) => (&raw const *zeroed).cast_mut(),
            None => wiped_page().cast::<Self>(),
        };
        // SAFETY: null, or a page of zeroes, which is a TimedThread that is not ready.
        let thread = unsafe { page.as_ref() }?;
        let Some(slot) = ThreadSlot::claim(header) else {
            if found.is_none() {
                // SAFETY: nothing points to it.
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

/// Adds to a word that only this thread writes, without a locked instruction.
#[inline(always)]
fn add(word: &AtomicU64, amount: u64) {
    word.store(word.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Counts a call in which the thread was switched out. Returns its CPU time: that of the kernel's
/// clock, which is off by up to the clock's bound, but at most the time that passed by the counter.
#[cold]
fn record_switched(cell: &layout::CallCell, elapsed: &Elapsed) -> u64 {
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
fn set_pointer(key: u32, thread: &'static TimedThread) {
    // SAFETY: the key was made; its destructor takes any of these.
    unsafe { libc::pthread_setspecific(key, (&raw const *thread).cast()) };
}

/// Limits the key: the values of the first keys need no memory, setting another one may allocate
/// (glibc, nptl/pthread_setspecific.c).
const MAX_KEYS: u32 = 32;

/// Makes the key, after which calls are timed. Returns whether it could.
pub(super) fn make_key() -> bool {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: the destructor fits what is stored under the key.
    let is_made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0;
    let is_usable = is_made && key < MAX_KEYS;
    if is_usable {
        KEY.store(key + 1, Relaxed);
    }
    is_usable
}

extern "C" fn thread_ends(pointer: *mut c_void) {
    let Some(key) = KEY.load(Relaxed).checked_sub(1) else { return };
    // Other destructors may still make calls. It is set again after each round of destructors.
    set_pointer(key, &UNTIMED_THREAD.0);
    // SAFETY: one of the threads that `set_pointer` was given.
    let thread = unsafe { &*pointer.cast::<TimedThread>() };
    if core::ptr::eq(thread, &UNTIMED_THREAD.0) {
        return;
    }
    let cells = thread.cells.replace(core::ptr::null());
    // In the child of a fork that made no call since, there is nothing.
    if !cells.is_null() {
        let clock = thread.clock.replace(MaybeUninit::uninit());
        // SAFETY: set with `cells`.
        drop(unsafe { clock.assume_init() });
        if let Some(header) = shared::header() {
            ThreadSlot { number: thread.number.get(), cells }.release(header);
        }
    }
    // SAFETY: nothing points to it.
    unsafe { unmap_page(pointer.cast()) };
}
