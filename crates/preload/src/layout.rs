//! The layout of the shared memory: a header, then 1,024 slots, one for each thread that runs at the
//! same time, each with a cell for each kind of call:
//!
//! ```text
//! header   magic, token, owner of each slot
//! slot 0   cells 0 to 4      references: empty intervals, overhead, known calls
//!          cells 5 to 249    malloc by size class, calloc by size class, ..., free
//!          cells 250 to 281  functions of --calls, and the empty function
//! slot 1   ...
//! ```
//!
//! A cell is a page: sums, maxima, and calls by the bucket of their time. A slot has one writer, so
//! that counting needs no locked instruction. All words are native-endian.

use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use crate::bins::{BUCKETS, SIZE_CLASSES};

/// The first word of the header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"swcalls2");

/// The environment variable with the token of the shared memory ([`TOKEN_DIGITS`] hexadecimal
/// digits), a colon and its path.
pub const ENVIRONMENT_VARIABLE: &str = "SWITCHCOST_PROFILE_DATA";

/// Number of digits of a token.
pub const TOKEN_DIGITS: usize = 16;

/// Number of threads that are counted at the same time.
pub const SLOTS: usize = 1024;

/// Bytes of a cell, which is a page.
pub const PAGE_BYTES: usize = 4096;

/// The calls of an allocator that are counted, in the order of their cells.
pub const ALLOCATOR_CALLS: [&str; 5] = ["malloc", "calloc", "realloc", "aligned_alloc", "free"];

/// The symbols by which a program makes these calls; the library takes their place.
pub const ALLOCATOR_SYMBOLS: [&CStr; 9] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"free",
    c"memalign",
    c"aligned_alloc",
    c"posix_memalign",
    c"valloc",
    c"pvalloc",
];

/// Number of functions that may be named.
pub const MAX_NAMED: usize = 31;
/// The number after theirs: a function that does nothing, to measure what timing adds to a function.
pub const EMPTY_FUNCTION: usize = MAX_NAMED;

/// A text in the library before the code of all stubs, each at the next multiple of [`STUB_BYTES`].
pub const STUBS_MARK: &[u8] = b"switchcost stubs";
/// Bytes of the code of a stub.
pub const STUB_BYTES: usize = 16;

/// Limits the name of a function, in bytes.
pub const MAX_NAME_BYTES: usize = 127;

/// The cell of intervals with nothing in them.
pub const EMPTY_CELL: usize = 0;
/// The cell of the overhead: what counting a call takes beside the call.
pub const OVERHEAD_CELL: usize = 1;
/// The cell of a short call whose duration is known, timed like those of a program.
pub const KNOWN_CELL: usize = 2;
/// The cell of [`KNOWN_CALLS`] such calls in one interval, in which they overlap.
pub const KNOWN_IN_A_ROW_CELL: usize = 3;
/// The cell of [`KNOWN_CALLS`] such calls of which each waits for the one before: they do not
/// overlap.
pub const KNOWN_CHAINED_CELL: usize = 4;
const FIRST_ALLOCATOR_CELL: usize = 5;
const FIRST_NAMED_CELL: usize = FIRST_ALLOCATOR_CELL + ALLOCATOR_CALLS.len() * SIZE_CLASSES;
/// Number of cells of a slot.
pub const CELLS_PER_SLOT: usize = FIRST_NAMED_CELL + MAX_NAMED + 1;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = CELLS_PER_SLOT * size_of::<CallCell>();
/// Bytes of the shared memory; pages that no thread writes to take no memory.
pub const MEMORY_BYTES: usize = size_of::<SharedHeader>() + SLOTS * SLOT_BYTES;

/// Number of calls in an interval of [`KNOWN_IN_A_ROW_CELL`] and of [`KNOWN_CHAINED_CELL`].
pub const KNOWN_CALLS: u64 = 16;

/// The part that all threads share.
#[repr(C, align(4096))]
pub struct SharedHeader {
    /// Always [`MAGIC`].
    pub magic: AtomicU64,
    /// A random number of this run: memory with another token is not used.
    pub token: AtomicU64,
    /// Number of threads that found no slot, memory or clock.
    pub missed_threads: AtomicU64,
    /// The tiers by which threads read the time: bit `Tier as usize`.
    pub tiers: AtomicU32,
    /// Number of processes that were counted.
    pub processes: AtomicU32,
    /// Ids of the processes that write to the slots; 0: none.
    pub owners: [AtomicI32; SLOTS],
}

/// The calls of one kind by one thread.
#[repr(C, align(4096))]
pub struct CallCell {
    /// Sum of their CPU times.
    pub sum_ns: AtomicU64,
    /// CPU time of the longest call.
    pub max_ns: AtomicU64,
    /// Number of calls in which the thread was switched out, moved, or took a signal.
    pub switched: AtomicU64,
    /// Sum of the time that a wall clock would add to their CPU time.
    pub off_cpu_ns: AtomicU64,
    /// The longest time by the wall clock of a call in which the thread was switched.
    pub max_wall_ns: AtomicU64,
    unused: [u64; SUMMARY_WORDS - 5],
    /// Numbers of calls by CPU time ([`crate::bins::bucket_index`]).
    pub buckets: [AtomicU64; BUCKETS],
}

/// Number of words of a cell before its buckets.
const SUMMARY_WORDS: usize = PAGE_BYTES / 8 - BUCKETS;

const _: () =
    assert!(size_of::<CallCell>() == PAGE_BYTES && size_of::<SharedHeader>() % PAGE_BYTES == 0);

/// Returns the cell of a call of an allocator (position in [`ALLOCATOR_CALLS`]) with a class of size.
#[inline(always)]
pub const fn allocator_cell(function: usize, class: usize) -> usize {
    FIRST_ALLOCATOR_CELL + function * SIZE_CLASSES + class
}

/// Returns the cell of a function that was named, or of [`EMPTY_FUNCTION`].
#[inline(always)]
pub const fn named_cell(number: usize) -> usize {
    FIRST_NAMED_CELL + number
}

/// The kind of calls that a cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Intervals with nothing in them.
    Empty,
    /// The overhead of counting a call.
    Overhead,
    /// A known call.
    Known,
    /// Several known calls in a row.
    KnownInARow,
    /// Several known calls of which each waits for the one before.
    KnownChained,
    /// A call of an allocator and its class of size.
    Allocator {
        /// Position in [`ALLOCATOR_CALLS`].
        function: usize,
        /// Class of size.
        class: usize,
    },
    /// A function that was named, or [`EMPTY_FUNCTION`].
    Named(usize),
}

/// Returns the kind of calls that the cell of this number counts.
pub fn cell_kind(cell: usize) -> CellKind {
    match cell {
        EMPTY_CELL => CellKind::Empty,
        OVERHEAD_CELL => CellKind::Overhead,
        KNOWN_CELL => CellKind::Known,
        KNOWN_IN_A_ROW_CELL => CellKind::KnownInARow,
        KNOWN_CHAINED_CELL => CellKind::KnownChained,
        _ if cell < FIRST_NAMED_CELL => CellKind::Allocator {
            function: (cell - FIRST_ALLOCATOR_CELL) / SIZE_CLASSES,
            class: (cell - FIRST_ALLOCATOR_CELL) % SIZE_CLASSES,
        },
        _ => CellKind::Named(cell - FIRST_NAMED_CELL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_one_meaning() {
        for cell in 0..CELLS_PER_SLOT {
            let again = match cell_kind(cell) {
                CellKind::Empty => EMPTY_CELL,
                CellKind::Overhead => OVERHEAD_CELL,
                CellKind::Known => KNOWN_CELL,
                CellKind::KnownInARow => KNOWN_IN_A_ROW_CELL,
                CellKind::KnownChained => KNOWN_CHAINED_CELL,
                CellKind::Allocator { function, class } => allocator_cell(function, class),
                CellKind::Named(number) => named_cell(number),
            };
            assert_eq!(again, cell);
        }
        assert_eq!(cell_kind(CELLS_PER_SLOT - 1), CellKind::Named(EMPTY_FUNCTION));
    }
}
