//! Memory that stays shared over fork: what the members of a ring share with their leader, and where links
//! that have no object of the kernel keep what two neighbours share.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::thread::futex;

/// What may lie in memory shared between processes.
///
/// # Safety
/// All zeros are a value, any thread may use it through a shared reference, and it means the same
/// in every process (no address of its own).
pub unsafe trait Shareable: Sync {}

/// One `T`, all zeros at first, that its holders share also when a fork has parted them.
pub struct Shared<T: Shareable> {
    value: NonNull<T>,
    mapping: Arc<Mapping>,
}

/// An anonymous mapping; it ends when this is dropped, in this process alone.
pub(super) struct Mapping {
    base: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping's address may be used from any thread; who uses what lies there sees to the rest.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing changes a Mapping before its drop.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed, readable and writable.
    pub(super) fn new(bytes: usize, flags: MapFlags) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags)? };
        Ok(Self { base, bytes })
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it begins: a multiple of the page size.
    pub(super) fn base(&self) -> *mut c_void {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which only self knows. A refusal leaves it to the process's end.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

// SAFETY: a Shared gives shared references to a T that is Sync, and nothing else.
unsafe impl<T: Shareable> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for Shared<T> {}

impl<T: Shareable> Shared<T> {
    /// A new one.
    pub fn new() -> Result<Self, Errno> {
        let mapping = Arc::new(Mapping::new(size_of::<T>(), MapFlags::SHARED)?);
        let value = NonNull::new(mapping.base().cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { value, mapping })
    }
}

impl<T: Shareable> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { value: self.value, mapping: Arc::clone(&self.mapping) }
    }
}

impl<T: Shareable> Deref for Shared<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: page-aligned, valid when zero, and mapped as long as self holds the mapping.
        unsafe { self.value.as_ref() }
    }
}

/// Room for one token.
#[derive(Default)]
pub struct Slot(AtomicU32);

// SAFETY: an atomic: zero is a value, and it holds no address.
unsafe impl Shareable for Slot {}

/// A count that several processes share.
#[derive(Default)]
pub struct EventCount(pub AtomicU32);

// SAFETY: an atomic: zero is a value, and it holds no address.
unsafe impl Shareable for EventCount {}

impl Slot {
    /// What an empty slot holds.
    pub const EMPTY: u32 = 0;

    /// Puts the token in.
    #[inline(always)]
    pub fn put(&self, token: u8) {
        self.0.store(u32::from(token) + 1, Ordering::Release);
    }

    /// Takes the token out, if there is one. Only one receiver looks, so that no exchange is needed.
    #[inline(always)]
    pub fn take(&self) -> Option<u8> {
        match self.0.load(Ordering::Acquire) {
            Self::EMPTY => None,
            full => {
                self.0.store(Self::EMPTY, Ordering::Relaxed);
                Some((full - 1) as u8)
            }
        }
    }

    /// The word itself, to wait on.
    #[inline(always)]
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

/// What a member tells of itself. A cache line of its own: members must not disturb each other.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Cell {
    /// Thread id; 0 until the member has started.
    pub tid: AtomicU32,
    /// Errno of the call that ended the member; 0 while all is well.
    pub errno: AtomicU32,
    /// Timed and warm-up hops that the member has made, control laps aside.
    pub hops: AtomicU64,
    /// The member's last solo: time of its laps, then both loops of the quantum before and of the one behind
    /// it, in nanoseconds.
    pub solo_ns: [AtomicU64; 5],
}

impl Cell {
    /// The times of the member's last solo, see [`Self::solo_ns`].
    pub fn solo_times_ns(&self) -> [u64; 5] {
        self.solo_ns.each_ref().map(|ns| ns.load(Ordering::Acquire))
    }
}

/// What the leader tells the members.
#[repr(C, align(64))]
#[derive(Default)]
struct Header {
    laps: AtomicU64,
    /// Laps of each member's solo in the coming phase; 0 where that is a batch of the ring.
    solo_laps: AtomicU64,
    /// Which of its places a member's memory lies at from the coming phase on.
    place: AtomicU32,
    /// Phases (control laps and batches) that the leader has begun, for links that wait awake.
    phases: AtomicU32,
}

/// A header and one [`Cell`] a member in memory that stays shared over fork.
pub struct SharedArea {
    base: NonNull<Header>,
    members: usize,
    _mapping: Mapping,
}

// SAFETY: the area holds atomics only, which any thread may use through a shared reference.
unsafe impl Send for SharedArea {}
// SAFETY: as above.
unsafe impl Sync for SharedArea {}

impl SharedArea {
    /// An area for `members` members, all cells zero.
    pub fn new(members: usize) -> Result<Self, Errno> {
        let bytes = size_of::<Header>() + members * size_of::<Cell>();
        let mapping = Mapping::new(bytes, MapFlags::SHARED)?;
        let base = NonNull::new(mapping.base().cast::<Header>()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, members, _mapping: mapping })
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping starts with a Header, page-aligned and zeroed, and lives as long as
        // self; atomics may be shared.
        unsafe { self.base.as_ref() }
    }

    /// All cells, the leader's first.
    pub fn cells(&self) -> &[Cell] {
        // SAFETY: `members` cells follow the header within the mapping; both are 64-byte aligned
        // and valid when zero.
        unsafe {
            let first = self.base.as_ptr().add(1).cast::<Cell>();
            std::slice::from_raw_parts(first, self.members)
        }
    }

    /// Laps of the coming batch; 0 asks the members to end.
    pub fn laps(&self) -> u64 {
        self.header().laps.load(Ordering::Acquire)
    }

    /// Sets the laps of the coming batch, before the token that announces it is sent.
    pub fn set_laps(&self, laps: u64) {
        self.header().laps.store(laps, Ordering::Release);
    }

    /// Laps of each member's solo in the coming phase; 0 where that is a batch of the ring.
    pub fn solo_laps(&self) -> u64 {
        self.header().solo_laps.load(Ordering::Acquire)
    }

    /// Sets them, before the token that announces the phase is sent.
    pub fn set_solo_laps(&self, laps: u64) {
        self.header().solo_laps.store(laps, Ordering::Release);
    }

    /// Which of its places a member's memory lies at from the coming phase on.
    pub fn place(&self) -> u32 {
        self.header().place.load(Ordering::Acquire)
    }

    /// Sets it, before the token that announces the phase is sent.
    pub fn set_place(&self, place: u32) {
        self.header().place.store(place, Ordering::Release);
    }

    /// Lets the members into the next phase.
    pub fn open_gate(&self) {
        let phases = &self.header().phases;
        phases.fetch_add(1, Ordering::Release);
        // Waking nobody is no failure, and nothing else can fail here.
        let _ = futex::wake(phases, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Waits, asleep, until more than `passed` phases have begun.
    pub fn wait_at_gate(&self, passed: u32) {
        let phases = &self.header().phases;
        // A phase takes every member to come to its end: no member can be two behind.
        while phases.load(Ordering::Acquire) == passed {
            // Whatever ended the wait, the count decides.
            let _ = futex::wait(phases, futex::Flags::empty(), passed, None);
        }
    }
}

/// Where a token is left under a mutex and waited for by a condition.
#[repr(C)]
pub struct TokenCondvar {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    arrived: UnsafeCell<libc::pthread_cond_t>,
    /// Under the mutex.
    token: UnsafeCell<Option<u8>>,
}

// SAFETY: the mutex orders all access to the token; mutex and condition may be used from any
// thread.
unsafe impl Sync for TokenCondvar {}
// SAFETY: zeros are a valid TokenCondvar: PTHREAD_MUTEX_INITIALIZER and its like are zeros in glibc and
// musl, and both are initialised before use all the same; None is read only after a store.
unsafe impl Shareable for TokenCondvar {}

fn check_status(status: c_int) -> Result<(), Errno> {
    match status {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

impl TokenCondvar {
    /// A new one, for threads of one process or also for processes; else the call that failed.
    pub fn new(between_processes: bool) -> Result<Shared<Self>, (&'static str, Errno)> {
        let condvar = Shared::<Self>::new().map_err(|errno| ("mmap", errno))?;
        condvar.prepare(between_processes).map_err(|errno| ("pthread_cond_init", errno))?;
        Ok(condvar)
    }

    /// Of a condvar that nobody else knows yet.
    fn prepare(&self, between_processes: bool) -> Result<(), Errno> {
        let shared = match between_processes {
            true => libc::PTHREAD_PROCESS_SHARED,
            false => libc::PTHREAD_PROCESS_PRIVATE,
        };
        let mut of_mutex = MaybeUninit::uninit();
        let mut of_condition = MaybeUninit::uninit();
        // SAFETY: each attribute is initialised before it is used; nobody else knows the condvar
        // yet, so that writing to it is exclusive.
        unsafe {
            check_status(libc::pthread_mutexattr_init(of_mutex.as_mut_ptr()))?;
            check_status(libc::pthread_mutexattr_setpshared(of_mutex.as_mut_ptr(), shared))?;
            check_status(libc::pthread_mutex_init(self.mutex.get(), of_mutex.as_ptr()))?;
            check_status(libc::pthread_condattr_init(of_condition.as_mut_ptr()))?;
            check_status(libc::pthread_condattr_setpshared(of_condition.as_mut_ptr(), shared))?;
            check_status(libc::pthread_cond_init(self.arrived.get(), of_condition.as_ptr()))?;
            *self.token.get() = None;
        }
        Ok(())
    }

    /// Leaves the token and signals. The signal comes after the unlock: sent before it, a receiver
    /// that preempts the sender would only run into the mutex, and switch back.
    #[inline(always)]
    pub fn put(&self, token: u8) -> Result<(), Errno> {
        // SAFETY: mutex and condition are initialised; the token is written under the mutex.
        unsafe {
            check_status(libc::pthread_mutex_lock(self.mutex.get()))?;
            *self.token.get() = Some(token);
            check_status(libc::pthread_mutex_unlock(self.mutex.get()))?;
            check_status(libc::pthread_cond_signal(self.arrived.get()))
        }
    }

    /// Waits until there is a token and takes it.
    #[inline(always)]
    pub fn take(&self) -> Result<u8, Errno> {
        // SAFETY: as above; the wait holds the mutex when it returns.
        unsafe {
            check_status(libc::pthread_mutex_lock(self.mutex.get()))?;
            let token = loop {
                if let Some(token) = (*self.token.get()).take() {
                    break token;
                }
                check_status(libc::pthread_cond_wait(self.arrived.get(), self.mutex.get()))?;
            };
            check_status(libc::pthread_mutex_unlock(self.mutex.get()))?;
            Ok(token)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_each_token_once() {
        let slot = Shared::<Slot>::new().unwrap();
        let other = slot.clone();
        for token in [0, 1, 255] {
            assert_eq!(other.take(), None);
            slot.put(token);
            assert_eq!(other.take(), Some(token));
        }
        drop(slot);
        assert_eq!(other.take(), None, "the mapping lives with its last holder");
    }

    #[test]
    fn cells_are_apart_and_start_at_zero() {
        let area = SharedArea::new(1000).unwrap();
        assert_eq!(area.cells().len(), 1000);
        assert!(area.cells().iter().all(|cell| cell.hops.load(Ordering::Relaxed) == 0));
        area.cells()[999].hops.store(7, Ordering::Relaxed);
        area.set_laps(3);
        assert_eq!((area.laps(), area.cells()[999].hops.load(Ordering::Relaxed)), (3, 7));
        assert_eq!(size_of::<Cell>(), 64);
    }
}
