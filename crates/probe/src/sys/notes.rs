//! What a member notes of the pieces of its hops, in memory that its leader reads, and how a walk
//! is cut into them.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::MapFlags;

use super::mapping::MemoryMapping;

/// Notes that a member has room for: of eight hops of a thousand pieces. Pages that nothing is
/// noted in are never touched.
pub const MOST_NOTES: usize = 8 * 1024;

/// A quantum within a hop, and what came before it. Four of them fill a cache line, and none lies
/// in two.
#[repr(C, align(16))]
#[derive(Debug, Default)]
pub struct PieceNote {
    /// Time of the piece before it, in nanoseconds; of a hop's first quantum when it began
    /// (CLOCK_MONOTONIC_RAW).
    since_ns: AtomicU64,
    latency_ns: AtomicU32,
    throughput_ns: AtomicU32,
}

/// What a [`PieceNote`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceTimes {
    /// Time of the piece before the quantum, in nanoseconds; of a hop's first quantum when it
    /// began.
    pub since_ns: u64,
    /// Time of its latency-bound loop, in nanoseconds.
    pub latency_ns: u32,
    /// Time of its throughput-bound loop, in nanoseconds.
    pub throughput_ns: u32,
}

impl PieceNote {
    pub(super) fn set(&self, since_ns: u64, latency_ns: u64, throughput_ns: u64) {
        let kept = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
        self.since_ns.store(since_ns, Ordering::Relaxed);
        self.latency_ns.store(kept(latency_ns), Ordering::Relaxed);
        self.throughput_ns.store(kept(throughput_ns), Ordering::Release);
    }

    /// What was noted last; all zeros if nothing was.
    pub fn get(&self) -> PieceTimes {
        let throughput_ns = self.throughput_ns.load(Ordering::Acquire);
        let latency_ns = self.latency_ns.load(Ordering::Relaxed);
        PieceTimes { since_ns: self.since_ns.load(Ordering::Relaxed), latency_ns, throughput_ns }
    }
}

/// Room for the notes of some members, [`MOST_NOTES`] each, in memory that stays shared over fork.
#[derive(Clone)]
pub struct NoteBook(Arc<MemoryMapping>);

impl NoteBook {
    pub(super) fn new(members: usize) -> Result<Self, Errno> {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        MemoryMapping::new(members * MOST_NOTES * size_of::<PieceNote>(), flags)
            .map(|all| Self(all.into()))
    }

    /// Those of one member. Panics, as indexing does, where there is no such member.
    pub fn of(&self, member: usize) -> MemberNotes {
        let first = member * MOST_NOTES;
        assert!((first + MOST_NOTES) * size_of::<PieceNote>() <= self.0.bytes, "member {member}");
        let first = self.0.base.cast::<PieceNote>().wrapping_add(first);
        let Some(first) = NonNull::new(first) else { panic!("mmap gave address 0") };
        MemberNotes { first, _book: self.clone() }
    }
}

/// The notes of one member.
pub struct MemberNotes {
    first: NonNull<PieceNote>,
    _book: NoteBook,
}

// SAFETY: what it gives are shared references to atomics, in a mapping that lives as long as it
// does.
unsafe impl Send for MemberNotes {}

impl MemberNotes {
    /// All of them.
    pub fn all(&self) -> &[PieceNote] {
        // SAFETY: [`NoteBook::of`] has checked that so many lie within the mapping, which is
        // page-aligned and zeroed; zeros are a Note, and atomics may be shared.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), MOST_NOTES) }
    }
}

/// Part of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalkPiece {
    /// Of a whole walk the pass; of a sparse one the line within its first stride, as an element.
    pub(super) offset: usize,
    /// Of a chase the first element of its first line; else the first stride.
    pub(super) from: usize,
    /// Elements that it touches.
    pub(super) touches: usize,
}

/// How an array's walk is cut, and where it is noted.
#[derive(Default)]
pub(super) struct WalkCut {
    /// None: it is not cut.
    pub(super) pieces: Vec<WalkPiece>,
    pub(super) notes: Option<MemberNotes>,
    /// What is noted next, and what was left of the room for this phase.
    pub(super) next: usize,
    pub(super) room: usize,
}

impl WalkCut {
    pub(super) fn is_none(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The walk is whole again.
    pub(super) fn forget(&mut self) {
        self.pieces.clear();
    }
}
