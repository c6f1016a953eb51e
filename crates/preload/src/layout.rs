//! The shared memory: a header, then a slot for each thread at a time, each with a cell for each
//! kind of call.
//!
//! A slot has one writer, so that counting needs no locked instruction. All words are
//! native-endian.

use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use crate::bins::{BUCKETS, CLASSES};

/// The first word of the header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"swcalls2");

/// The environment variable with the token of the shared memory, [`TOKEN_DIGITS`] hexadecimal
/// digits, a colon and its path.
pub const VARIABLE: &str = "SWITCHCOST_PROFILE_DATA";

/// Digits of a token.
pub const TOKEN_DIGITS: usize = 16;

/// Threads that are counted at the same time.
pub const SLOTS: usize = 1024;

/// Bytes of a page, as far as this layout is concerned: cells are that large.
pub const PAGE_BYTES: usize = 4096;

/// The calls of an allocator that are counted, in the order of their cells.
pub const ALLOCATOR: [&str; 5] = ["malloc", "calloc", "realloc", "aligned_alloc", "free"];

/// The symbols by which a program calls them, whose place the library takes.
pub const SYMBOLS: [&CStr; 9] = [
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

/// Functions that may be named.
pub const NAMED: usize = 31;
/// The place after them: a function that does nothing, to know what timing one adds to it.
pub const NOTHING: usize = NAMED;

/// Stands in the library, then the code of all places, each at the next multiple of
/// [`PLACE_CODE_BYTES`].
pub const PLACES_MARK: &[u8] = b"switchcost places";
/// Bytes of the code of a place.
pub const PLACE_CODE_BYTES: usize = 16;

/// Longest name of a function in bytes.
pub const NAME_BYTES: usize = 127;

/// The cell of intervals with nothing in them.
pub const EMPTY: usize = 0;
/// The cell of what counting a call takes beside the call.
pub const OWN: usize = 1;
/// The cell of a short call that is known, timed as those of a program are.
pub const KNOWN: usize = 2;
/// The cell of [`KNOWN_CALLS`] such calls in one interval, in which they overlap.
pub const KNOWN_IN_A_ROW: usize = 3;
/// The same, where each waits for the one before: they do not overlap.
pub const KNOWN_CHAINED: usize = 4;
const FIRST: usize = 5;
const FIRST_NAMED: usize = FIRST + ALLOCATOR.len() * CLASSES;
/// Cells of a slot.
pub const CELLS: usize = FIRST_NAMED + NAMED + 1;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = CELLS * size_of::<Cell>();
/// Bytes of all of it; pages that nobody writes to take no memory.
pub const BYTES: usize = size_of::<Header>() + SLOTS * SLOT_BYTES;

/// Calls of [`KNOWN_IN_A_ROW`] and of [`KNOWN_CHAINED`].
pub const KNOWN_CALLS: u64 = 16;

/// What all threads share.
#[repr(C, align(4096))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// A number that nobody can foresee: memory with another is not that of this run.
    pub token: AtomicU64,
    /// Threads that found no slot, memory or clock.
    pub missed_threads: AtomicU64,
    /// The tiers by which threads read the time: bit `Tier as usize`.
    pub tiers: AtomicU32,
    /// Processes that were counted.
    pub processes: AtomicU32,
    /// The process that writes to a slot; 0: none.
    pub owners: [AtomicI32; SLOTS],
}

/// The calls of one kind by one thread.
#[repr(C, align(4096))]
pub struct Cell {
    /// Their CPU time.
    pub sum_ns: AtomicU64,
    /// The longest by CPU time.
    pub max_ns: AtomicU64,
    /// Calls in which the thread was switched out, moved, or took a signal.
    pub switched: AtomicU64,
    /// What a wall clock would add to their CPU time.
    pub off_cpu_ns: AtomicU64,
    /// The longest by the wall clock, of those that were switched.
    pub max_wall_ns: AtomicU64,
    unused: [u64; WORDS - 5],
    /// Calls by CPU time ([`crate::bins::bucket`]).
    pub buckets: [AtomicU64; BUCKETS],
}

/// Words of a cell before its buckets.
const WORDS: usize = PAGE_BYTES / 8 - BUCKETS;

const _: () = assert!(size_of::<Cell>() == PAGE_BYTES && size_of::<Header>() % PAGE_BYTES == 0);

/// The cell of a call of an allocator (place in [`ALLOCATOR`]) with a class of size.
#[inline(always)]
pub const fn allocator_cell(function: usize, class: usize) -> usize {
    FIRST + function * CLASSES + class
}

/// The cell of a function that was named, or of [`NOTHING`].
#[inline(always)]
pub const fn named_cell(number: usize) -> usize {
    FIRST_NAMED + number
}

/// What a cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Intervals with nothing in them.
    Empty,
    /// What counting takes.
    Own,
    /// A known call.
    Known,
    /// Several of them in a row.
    KnownInARow,
    /// Several of which each waits for the one before.
    KnownChained,
    /// A call of an allocator and its class of size.
    Allocator {
        /// Place in [`ALLOCATOR`].
        function: usize,
        /// Class of size.
        class: usize,
    },
    /// A function that was named, or [`NOTHING`].
    Named(usize),
}

/// What the cell of this number counts.
pub fn kind(cell: usize) -> Kind {
    match cell {
        EMPTY => Kind::Empty,
        OWN => Kind::Own,
        KNOWN => Kind::Known,
        KNOWN_IN_A_ROW => Kind::KnownInARow,
        KNOWN_CHAINED => Kind::KnownChained,
        _ if cell < FIRST_NAMED => {
            Kind::Allocator { function: (cell - FIRST) / CLASSES, class: (cell - FIRST) % CLASSES }
        }
        _ => Kind::Named(cell - FIRST_NAMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_one_meaning() {
        for cell in 0..CELLS {
            let again = match kind(cell) {
                Kind::Empty => EMPTY,
                Kind::Own => OWN,
                Kind::Known => KNOWN,
                Kind::KnownInARow => KNOWN_IN_A_ROW,
                Kind::KnownChained => KNOWN_CHAINED,
                Kind::Allocator { function, class } => allocator_cell(function, class),
                Kind::Named(number) => named_cell(number),
            };
            assert_eq!(again, cell);
        }
        assert_eq!(kind(CELLS - 1), Kind::Named(NOTHING));
    }
}
