//! Memory that the members of a ring share with their leader: one header, one cell a member.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::thread::futex;

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
}

// SAFETY: the area holds atomics only, which any thread may use through a shared reference.
unsafe impl Send for SharedArea {}
// SAFETY: as above.
unsafe impl Sync for SharedArea {}

fn size_bytes(members: usize) -> usize {
    size_of::<Header>() + members * size_of::<Cell>()
}

impl SharedArea {
    /// An area for `members` members, all cells zero.
    pub fn new(members: usize) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size_bytes(members), protection, MapFlags::SHARED)?
        };
        let base = NonNull::new(base.cast::<Header>()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, members })
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

impl Drop for SharedArea {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives self. A failure leaves
        // the mapping to the end of the process.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), size_bytes(self.members)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
