//! Memory that stays shared over fork: the area that the members of a ring share with their leader,
//! values that links without a kernel object share, stacks of helper processes; and ballast pages,
//! which change where members' memory lies.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use rundata::ring::MAX_FLIGHT;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, madvise, mprotect};
use rustix::param::page_size;
use rustix::thread::futex;

use super::mapping::{BASE_PAGE_BYTES, HUGE_PAGE_BYTES, MemoryMapping};
use super::notes::{MemberNotes, NoteBook};
use super::quanta::QuantumTimes;
use crate::end::{CallContext, CallError, LinkEnd, LinkError};
use crate::random::RandomSource;

/// Marks types that may lie in memory shared between processes.
///
/// # Safety
/// All zeros are a valid value, any thread may use it through a shared reference, and it means the
/// same in every process: it holds no address.
pub unsafe trait Shareable: Sync {}

/// One `T`, all zeros at first, shared by all clones, also by those in forked processes.
pub struct SharedValue<T: Shareable> {
    value: NonNull<T>,
    mapping: Arc<MemoryMapping>,
}

/// A stack for a process that shares the caller's memory. Its lowest page is a guard page.
pub(super) struct GuardedStack(MemoryMapping);

impl GuardedStack {
    /// Maps a stack of `bytes` bytes, a multiple of the page size, of which the lowest page is the
    /// guard.
    pub(super) fn new(bytes: usize) -> Result<Self, Errno> {
        let mapping = MemoryMapping::new(bytes, MapFlags::PRIVATE)?;
        // SAFETY: the lowest page of the new mapping, which is not in use.
        unsafe { mprotect(mapping.base, page_size(), MprotectFlags::empty())? };
        Ok(Self(mapping))
    }

    /// Returns the aligned end of the stack, from which it grows down.
    pub(super) fn top(&self) -> *mut c_void {
        self.0.base.wrapping_byte_add(self.0.bytes)
    }
}

// SAFETY: a Shared gives shared references to a T that is Sync, and nothing else.
unsafe impl<T: Shareable> Send for SharedValue<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for SharedValue<T> {}

impl<T: Shareable> SharedValue<T> {
    /// Maps a new value of zeros.
    pub fn new() -> Result<Self, Errno> {
        let mapping = Arc::new(MemoryMapping::new(size_of::<T>(), MapFlags::SHARED)?);
        let value = NonNull::new(mapping.base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { value, mapping })
    }
}

impl<T: Shareable> Clone for SharedValue<T> {
    fn clone(&self) -> Self {
        Self { value: self.value, mapping: Arc::clone(&self.mapping) }
    }
}

impl<T: Shareable> Deref for SharedValue<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: page-aligned, valid when zero, and mapped as long as self holds the mapping.
        unsafe { self.value.as_ref() }
    }
}

/// Room for one token.
#[derive(Default)]
pub struct TokenSlot(AtomicU32);

// SAFETY: an atomic: zero is a value, and it holds no address.
unsafe impl Shareable for TokenSlot {}

// SAFETY: an atomic: zero is a value, and it holds no address.
unsafe impl Shareable for AtomicU32 {}

impl TokenSlot {
    /// Value of an empty slot.
    pub const EMPTY: u32 = 0;

    /// Puts a token into the slot.
    #[inline(always)]
    pub fn put(&self, token: u8) {
        self.0.store(u32::from(token) + 1, Ordering::Release);
    }

    /// Takes the token out, if there is one. There is only one receiver, so that no atomic exchange
    /// is needed.
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

    /// Returns the word to wait on.
    #[inline(always)]
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

/// Slots for tokens that one member puts in and another takes out, in order. Who waits for a token is
/// told by a counter beside it.
#[repr(C)]
pub struct TokenQueue([AtomicU16; TokenQueue::SLOTS]);

// SAFETY: atomics: zeros are a value, and they hold no address.
unsafe impl Shareable for TokenQueue {}

impl TokenQueue {
    /// Number of slots.
    pub const SLOTS: usize = MAX_FLIGHT as usize;
    /// Value of an empty slot.
    const EMPTY: u16 = 0;

    /// Puts a token into a slot.
    #[inline(always)]
    pub fn put(&self, slot: u16, token: u8) {
        self.0[usize::from(slot)].store(u16::from(token) + 1, Ordering::Release);
    }

    /// Takes the token out of a slot, if there is one.
    #[inline(always)]
    pub fn take(&self, slot: u16) -> Option<u8> {
        let slot = &self.0[usize::from(slot)];
        match slot.load(Ordering::Acquire) {
            Self::EMPTY => None,
            full => {
                slot.store(Self::EMPTY, Ordering::Relaxed);
                Some((full - 1) as u8)
            }
        }
    }
}

/// One end of a [`TokenQueue`], which knows where the next token is.
#[derive(Clone)]
pub struct TokenQueueEnd {
    slots: SharedValue<TokenQueue>,
    /// Number of the next token at this end, modulo the slots in use.
    next: u16,
    /// Slots in use, a power of two, less one: few lines of memory for few tokens.
    mask: u16,
}

impl TokenQueueEnd {
    /// Maps a queue that holds `room` tokens, at most [`TokenQueue::SLOTS`]; returns an end of it, as
    /// its clones are before a token was passed.
    pub fn new(room: u32) -> Result<Self, Errno> {
        let mask = (room.next_power_of_two() - 1).min(u16::MAX.into()) as u16;
        Ok(Self { slots: SharedValue::new()?, next: 0, mask })
    }

    /// Puts a token into the next slot. Again, with [`Self::advance`] not yet called, it puts it into
    /// the same one.
    #[inline(always)]
    pub fn put(&self, token: u8) {
        self.slots.put(self.next & self.mask, token);
    }

    /// Goes on to the slot behind, as the token was counted.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Takes the next token, if there is one, and goes on to the slot behind.
    #[inline(always)]
    pub fn take(&mut self) -> Option<u8> {
        let token = self.slots.take(self.next & self.mask);
        self.advance();
        token
    }
}

/// State that a member publishes, in a cache line of its own: members share no line.
#[repr(C, align(64))]
#[derive(Default)]
pub struct MemberCell {
    /// Thread id; 0 until the member has started.
    pub tid: AtomicU32,
    /// Errno of the call that ended the member; 0 while all is well.
    pub errno: AtomicU32,
    /// Hops that the member has made, without those of control laps.
    pub hops: AtomicU64,
    /// The member's last solo ([`SoloTimes`]): time of its laps, its CPU time in them, then both
    /// loops of the quantum before and of the one after it, in nanoseconds.
    pub solo_ns: [AtomicU64; 6],
}

/// Times of a member's solo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoloTimes {
    /// Time of its laps, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the member in its laps, in nanoseconds.
    pub cpu_ns: u64,
    /// Quantum before the laps.
    pub quantum_before: QuantumTimes,
    /// Quantum after the laps.
    pub quantum_after: QuantumTimes,
}

impl MemberCell {
    /// Publishes the times of a solo.
    pub fn set_solo(&self, times: &SoloTimes) {
        let times_ns = [
            times.elapsed_ns,
            times.cpu_ns,
            times.quantum_before.latency_ns,
            times.quantum_before.throughput_ns,
            times.quantum_after.latency_ns,
            times.quantum_after.throughput_ns,
        ];
        for (slot, time_ns) in self.solo_ns.iter().zip(times_ns) {
            slot.store(time_ns, Ordering::Release);
        }
    }

    /// Returns the times of the last solo.
    pub fn solo(&self) -> SoloTimes {
        let times_ns = self.solo_ns.each_ref().map(|slot| slot.load(Ordering::Acquire));
        let [
            elapsed_ns,
            cpu_ns,
            latency_before,
            throughput_before,
            latency_after,
            throughput_after,
        ] = times_ns;
        SoloTimes {
            elapsed_ns,
            cpu_ns,
            quantum_before: QuantumTimes {
                latency_ns: latency_before,
                throughput_ns: throughput_before,
            },
            quantum_after: QuantumTimes {
                latency_ns: latency_after,
                throughput_ns: throughput_after,
            },
        }
    }
}

/// State that the leader publishes. Each number is set before the token that announces it is sent.
#[repr(C, align(64))]
#[derive(Default)]
pub struct AreaHeader {
    /// Laps of the coming batch; 0 asks the members to end.
    pub laps: AtomicU64,
    /// Laps of each member's solo in the coming phase; 0 if that is a batch of the ring.
    pub solo_laps: AtomicU64,
    /// Number of the place at which members' memory lies from the coming phase on.
    pub place: AtomicU64,
    /// Pieces into which members' walks are cut from the coming phase on; 0 if they are not cut.
    pub pieces: AtomicU64,
    /// Hops of the coming phase whose pieces each member notes.
    pub noted_hops: AtomicU64,
    /// Items of a stream after which its reader answers; 0 if tokens go round.
    pub answer_laps: AtomicU64,
    /// Phases (control laps and batches) that the leader has begun, for members that poll.
    phases: AtomicU32,
}

/// An [`AreaHeader`] and a [`MemberCell`] for each member, in memory that stays shared over fork.
pub struct SharedArea {
    mapping: MemoryMapping,
    members: usize,
    notes: Option<NoteBook>,
}

impl SharedArea {
    /// Maps an area for `members` members, all cells zero. If `has_notes`, it has room for the
    /// notes that each member takes of the pieces of its walk.
    pub fn new(members: usize, has_notes: bool) -> Result<Self, Errno> {
        let bytes = size_of::<AreaHeader>() + members * size_of::<MemberCell>();
        let mapping = MemoryMapping::new(bytes, MapFlags::SHARED)?;
        let notes = has_notes.then(|| NoteBook::new(members)).transpose()?;
        Ok(Self { mapping, members, notes })
    }

    /// Returns the notes of one member, if the area has room for notes.
    pub fn notes_of(&self, member: usize) -> Option<MemberNotes> {
        self.notes.as_ref().map(|notes| notes.member(member))
    }

    /// Returns all cells, the leader's first.
    pub fn cells(&self) -> &[MemberCell] {
        // SAFETY: `members` cells follow the header within the mapping; both are 64-byte aligned
        // and valid when zero.
        unsafe {
            let first = self.mapping.base.cast::<AreaHeader>().add(1).cast();
            std::slice::from_raw_parts(first, self.members)
        }
    }

    /// Lets the members into the next phase.
    pub fn open_gate(&self) {
        let phases = &self.phases;
        phases.fetch_add(1, Ordering::Release);
        // No waiter is no failure, and nothing else can fail here.
        let _ = futex::wake(phases, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Waits, asleep, until more than `passed` phases have begun.
    pub fn wait_at_gate(&self, passed: u32) {
        let phases = &self.phases;
        // A phase takes every member to come to its end: no member can be two behind.
        while phases.load(Ordering::Acquire) == passed {
            // Whatever ended the wait, the count decides.
            let _ = futex::wait(phases, futex::Flags::empty(), passed, None);
        }
    }
}

impl Deref for SharedArea {
    type Target = AreaHeader;
    fn deref(&self) -> &AreaHeader {
        // SAFETY: the mapping starts with a Header, page-aligned and zeroed, and lives as long as
        // self; atomics may be shared.
        unsafe { &*self.mapping.base.cast() }
    }
}

/// A token under a mutex, and a condition variable to wait for it.
#[repr(C)]
pub struct TokenCondvar {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    arrived: UnsafeCell<libc::pthread_cond_t>,
    /// Read and written under the mutex only.
    token: UnsafeCell<Option<u8>>,
}

// SAFETY: the mutex orders all access to the token; mutex and condition may be used from any
// thread.
unsafe impl Sync for TokenCondvar {}
// SAFETY: zeros are a valid TokenCondvar: PTHREAD_MUTEX_INITIALIZER and its like are zeros in glibc
// and musl, and both are initialised before use all the same; None is read only after a store.
unsafe impl Shareable for TokenCondvar {}

fn check_status(status: c_int) -> Result<(), Errno> {
    match status {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

impl TokenCondvar {
    /// Creates one for threads of one process, or also for processes. Returns the call that failed.
    pub fn new(between_processes: bool) -> Result<SharedValue<Self>, CallError> {
        let condvar = SharedValue::<Self>::new().in_call("mmap")?;
        let shared = if between_processes {
            libc::PTHREAD_PROCESS_SHARED
        } else {
            libc::PTHREAD_PROCESS_PRIVATE
        };
        let mut mutex_attributes = MaybeUninit::uninit();
        let mut condition_attributes = MaybeUninit::uninit();
        // SAFETY: each attribute is initialised before it is used; no other thread has the condvar
        // yet, so that writing to it is exclusive.
        let statuses = unsafe {
            *condvar.token.get() = None;
            [
                libc::pthread_mutexattr_init(mutex_attributes.as_mut_ptr()),
                libc::pthread_mutexattr_setpshared(mutex_attributes.as_mut_ptr(), shared),
                libc::pthread_mutex_init(condvar.mutex.get(), mutex_attributes.as_ptr()),
                libc::pthread_condattr_init(condition_attributes.as_mut_ptr()),
                libc::pthread_condattr_setpshared(condition_attributes.as_mut_ptr(), shared),
                libc::pthread_cond_init(condvar.arrived.get(), condition_attributes.as_ptr()),
            ]
        };
        statuses.into_iter().try_for_each(check_status).in_call("pthread_cond_init")?;
        Ok(condvar)
    }
}

impl LinkEnd for SharedValue<TokenCondvar> {
    const INTERRUPTIBLE: bool = false;

    /// Leaves the token and signals. The signal comes after the unlock: sent before it, a receiver
    /// that preempts the sender would only run into the mutex, and switch back.
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        // SAFETY: mutex and condition are initialised; the token is written under the mutex.
        unsafe {
            check_status(libc::pthread_mutex_lock(self.mutex.get()))?;
            *self.token.get() = Some(token);
            check_status(libc::pthread_mutex_unlock(self.mutex.get()))?;
            Ok(check_status(libc::pthread_cond_signal(self.arrived.get()))?)
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
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

// Ballast: each worker gets other physical pages.

/// Largest number of huge pages held: 62 MiB.
const MAX_HUGE_PAGES: u64 = 31;
/// Largest number of base pages held, for working sets without huge pages: 4 MiB.
const MAX_BASE_PAGES: u64 = 1024;

/// Memory that is held while the members allocate theirs. The kernel hands out first the pages that
/// were given back last. All workers of a launch would therefore get the same few pages, and which
/// lines share a cache set would be constant within a launch. Another number of held pages in each
/// worker makes it vary between workers, of which there are many (as Curtsinger and Berger 2013 do
/// with a program's layout).
pub struct PageBallast(#[allow(dead_code, reason = "held")] MemoryMapping);

impl PageBallast {
    /// Holds a number of pages that the seed decides. Returns `None` if the memory is not
    /// available: then the members allocate without ballast.
    pub fn hold(huge_pages: bool, seed: u64) -> Option<Self> {
        let (page_bytes, max_pages, advice) = if huge_pages {
            (HUGE_PAGE_BYTES, MAX_HUGE_PAGES, Advice::LinuxHugepage)
        } else {
            (BASE_PAGE_BYTES, MAX_BASE_PAGES, Advice::LinuxNoHugepage)
        };
        let bytes = page_bytes * RandomSource::new(seed).below(max_pages + 1) as usize;
        let (mapping, start) = MemoryMapping::at_huge_page(bytes).ok()?;
        for advice in [advice, Advice::LinuxDontFork] {
            // SAFETY: advice changes no content; these pages are in the mapping. Members that are
            // forked do not get it.
            let _ = unsafe { madvise(start, bytes, advice) };
        }
        for offset in (0..bytes).step_by(page_bytes) {
            // SAFETY: within the mapping, which is writable and not shared.
            unsafe { start.wrapping_byte_add(offset).cast::<u8>().write_volatile(1) };
        }
        Some(Self(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_a_stack_nothing_may_be_touched() {
        let stack = GuardedStack::new(1 << 17).unwrap();
        let guard = format!("{:x}-", stack.top() as usize - (1 << 17));
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let lowest = maps.lines().find(|line| line.starts_with(&guard)).expect("the guard");
        assert!(lowest.contains(" ---p "), "{lowest}");
    }

    #[test]
    fn a_slot_gives_each_token_once() {
        let slot = SharedValue::<TokenSlot>::new().unwrap();
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
        let area = SharedArea::new(1000, false).unwrap();
        assert_eq!(area.cells().len(), 1000);
        assert!(area.cells().iter().all(|cell| cell.hops.load(Ordering::Relaxed) == 0));
        area.cells()[999].hops.store(7, Ordering::Relaxed);
        area.laps.store(3, Ordering::Release);
        assert_eq!(
            (area.laps.load(Ordering::Acquire), area.cells()[999].hops.load(Ordering::Relaxed)),
            (3, 7)
        );
        assert_eq!(size_of::<MemberCell>(), 64);
    }

    /// Resident bytes of what members do not inherit (`dc`) in the mappings that a ballast is in
    /// (proc_pid_smaps(5)).
    fn held(ballast: &PageBallast) -> u64 {
        let base = ballast.0.base as usize;
        let ends = (base, base + ballast.0.bytes);
        let (mut bytes, mut of_one, mut within) = (0, 0, false);
        for line in std::fs::read_to_string("/proc/self/smaps").expect("smaps").lines() {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            if let Some((from, to)) = first.split_once('-') {
                let hex = |text| usize::from_str_radix(text, 16).unwrap_or(0);
                within = hex(from) < ends.1 && hex(to) > ends.0;
            } else if first == "Rss:" {
                let kilobytes = rest.trim().trim_end_matches(" kB").parse::<u64>();
                of_one = 1024 * kilobytes.expect("kilobytes");
            } else if within && first == "VmFlags:" && rest.split(' ').any(|flag| flag == "dc") {
                bytes += of_one;
            }
        }
        bytes
    }

    #[test]
    fn how_much_is_held_goes_by_the_seed_and_members_do_not_inherit_it() {
        for (huge, page, most) in
            [(true, HUGE_PAGE_BYTES, MAX_HUGE_PAGES), (false, BASE_PAGE_BYTES, MAX_BASE_PAGES)]
        {
            let mut all = Vec::new();
            for seed in 0..8 {
                let ballast = PageBallast::hold(huge, seed).expect("memory");
                let pages = RandomSource::new(seed).below(most + 1);
                let bytes = held(&ballast);
                // A kernel without huge pages gives a base page for each.
                let least = pages * BASE_PAGE_BYTES as u64;
                assert!((least..=pages * page as u64).contains(&bytes), "{bytes} of {pages} pages");
                all.push(pages);
            }
            assert!(all.iter().any(|pages| *pages != all[0]), "{all:?}");
        }
    }
}
