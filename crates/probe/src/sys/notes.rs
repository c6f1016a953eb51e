//! Notes that a member takes of the pieces of its hops, in memory that its leader reads, and the
//! description of a walk that is cut into pieces.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::MapFlags;

use super::mapping::MemoryMapping;
use super::quanta::QuantumTimes;

/// Notes that a member has room for: eight hops of a thousand pieces. Pages of the room that are
/// not used are never touched.
pub const MAX_NOTES: usize = 8 * 1024;

/// Note of a quantum within a hop and of the piece before it. Four notes fill a cache line, and
/// none lies in two.
#[repr(C, align(16))]
#[derive(Debug, Default)]
pub struct PieceNote {
    /// Time of the piece before the quantum, in nanoseconds; for the first quantum of a hop the
    /// moment at which it began (CLOCK_MONOTONIC_RAW).
    since_ns: AtomicU64,
    latency_ns: AtomicU32,
    throughput_ns: AtomicU32,
}

/// Values of a [`PieceNote`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceTimes {
    /// Time of the piece before the quantum, in nanoseconds; for the first quantum of a hop the
    /// moment at which it began.
    pub since_ns: u64,
    /// Time of the quantum's latency-bound loop, in nanoseconds.
    pub latency_ns: u32,
    /// Time of the quantum's throughput-bound loop, in nanoseconds.
    pub throughput_ns: u32,
}

impl PieceNote {
    /// Stores the time of a piece and the times of the quantum after it.
    pub(super) fn set(&self, since_ns: u64, quantum: QuantumTimes) {
        self.since_ns.store(since_ns, Ordering::Relaxed);
        let latency_ns = u32::try_from(quantum.latency_ns).unwrap_or(u32::MAX);
        self.latency_ns.store(latency_ns, Ordering::Relaxed);
        let throughput_ns = u32::try_from(quantum.throughput_ns).unwrap_or(u32::MAX);
        self.throughput_ns.store(throughput_ns, Ordering::Release);
    }

    /// Stores zeros. Touches the note's page, so that [`Self::set`] faults none.
    pub(super) fn clear(&self) {
        self.set(0, QuantumTimes { latency_ns: 0, throughput_ns: 0 });
    }

    /// Returns what was noted last; zeros if nothing was.
    pub fn get(&self) -> PieceTimes {
        let throughput_ns = self.throughput_ns.load(Ordering::Acquire);
        let latency_ns = self.latency_ns.load(Ordering::Relaxed);
        PieceTimes { since_ns: self.since_ns.load(Ordering::Relaxed), latency_ns, throughput_ns }
    }
}

/// Room for [`MAX_NOTES`] notes of each member, in memory that stays shared over fork.
#[derive(Clone)]
pub struct NoteBook(Arc<MemoryMapping>);

impl NoteBook {
    pub(super) fn new(members: usize) -> Result<Self, Errno> {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        MemoryMapping::new(members * MAX_NOTES * size_of::<PieceNote>(), flags)
            .map(|all| Self(all.into()))
    }

    /// Returns the notes of one member. Panics, as indexing does, if there is no such member.
    pub fn member(&self, member: usize) -> MemberNotes {
        let first = member * MAX_NOTES;
        assert!((first + MAX_NOTES) * size_of::<PieceNote>() <= self.0.bytes, "member {member}");
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
    /// Returns all notes of the member.
    pub fn all(&self) -> &[PieceNote] {
        // SAFETY: [`NoteBook::member`] has checked that so many lie within the mapping, which is
        // page-aligned and zeroed; zeros are a Note, and atomics may be shared.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), MAX_NOTES) }
    }
}

/// Part of a walk: the touches between two quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalkPiece {
    /// In a whole walk the number of the pass; in a sparse one the first element's index within
    /// its stride.
    pub(super) offset: usize,
    /// In a chase the index of the first line's first element; else the number of the first stride.
    pub(super) from: usize,
    /// Number of elements that are touched.
    pub(super) touches: usize,
}

/// How a walk is cut, and where its pieces are noted.
#[derive(Default)]
pub(super) struct WalkCut {
    /// The pieces; empty if the walk is not cut.
    pub(super) pieces: Vec<WalkPiece>,
    pub(super) notes: Option<MemberNotes>,
    /// Number of the next note.
    pub(super) next: usize,
    /// Notes that may still be taken in this phase.
    pub(super) room: usize,
}

impl WalkCut {
    pub(super) fn is_whole(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Makes the walk whole again.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }
}
