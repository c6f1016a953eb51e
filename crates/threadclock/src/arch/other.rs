//! Any other processor: no counter, so every tier but the kernel clock is refused.

/// Whether this processor has a counter that user space can read.
pub(crate) const HAS_COUNTER: bool = false;

/// Never registered here.
pub(crate) const RSEQ_SIG: u32 = 0;

/// No counter: always 0, which every fast path reads as "not synchronised".
#[inline(always)]
pub(crate) fn stamp() -> u64 {
    0
}

/// As `stamp`.
#[inline(always)]
pub(crate) fn stamp_ordered() -> u64 {
    0
}

/// There is none.
pub(crate) fn counter_is_invariant() -> bool {
    false
}

/// Unused: rseq is refused before it is asked for.
pub(crate) fn thread_pointer() -> usize {
    0
}

/// Not offered.
///
/// # Safety
/// None needed: it reads nothing.
pub(crate) unsafe fn read_counter(_index: u32) -> u64 {
    0
}

/// Whether `read_counter` exists here.
pub(crate) const HAS_READ_COUNTER: bool = false;
