//! AArch64: CNTVCT_EL0, the virtual counter. Arm ARM D12; Linux enables it for EL0.

use core::arch::asm;

/// Whether this processor has a counter that user space can read.
pub(crate) const HAS_COUNTER: bool = true;

/// `RSEQ_SIG` of glibc and librseq (a BRK instruction): the four bytes before `abort_ip`.
pub(crate) const RSEQ_SIG: u32 = 0xd428_bc00;

/// The time stamp. Not `nomem`: the asm is the compiler barrier that keeps later loads after it.
#[inline(always)]
pub(crate) fn stamp() -> u64 {
    let value: u64;
    // SAFETY: reads a counter that Linux lets EL0 read.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) value, options(nostack, preserves_flags)) };
    value
}

/// The time stamp, in program order (ISB on both sides; Arm ARM D12.2.2).
#[inline(always)]
pub(crate) fn stamp_ordered() -> u64 {
    let value: u64;
    // SAFETY: as `stamp`; ISB has no operands.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) value, options(nostack, preserves_flags));
    }
    value
}

/// The architecture fixes the system counter's rate.
pub(crate) fn counter_is_invariant() -> bool {
    true
}

/// The address that thread-local offsets count from.
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: TPIDR_EL0 is the ABI's thread pointer and readable at EL0.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}

/// Not offered: the event counters need another register per counter.
///
/// # Safety
/// None needed: it reads nothing.
pub(crate) unsafe fn read_counter(_index: u32) -> u64 {
    0
}

/// Whether `read_counter` exists here.
pub(crate) const HAS_READ_COUNTER: bool = false;
