//! x86-64: RDTSC. Intel SDM vol. 2B "RDTSC", vol. 3B 19.17; AMD APM vol. 2, 13.2.

use core::arch::asm;
use core::arch::x86_64::__cpuid;

/// Whether this processor has a counter that user space can read.
pub(crate) const HAS_COUNTER: bool = true;

/// `RSEQ_SIG` of glibc and librseq: the kernel wants it in the four bytes before `abort_ip`.
pub(crate) const RSEQ_SIG: u32 = 0x5305_3053;

/// The time stamp. Not `nomem`: the asm is the compiler barrier that keeps later loads after it.
#[inline(always)]
pub(crate) fn stamp() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: RDTSC reads a counter and touches no memory; Linux leaves CR4.TSD clear.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

/// The time stamp, neither before the loads and instructions ahead of it are done nor after those
/// behind it have begun (LFENCE: SDM vol. 2B "RDTSC"; AMD makes it so by DE_CFG[1], which Linux sets).
#[inline(always)]
pub(crate) fn stamp_ordered() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as `stamp`; LFENCE has no operands.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high,
             options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// Whether the counter's rate never changes (CPUID 8000_0007h EDX bit 8, "invariant TSC").
pub(crate) fn counter_is_invariant() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

/// The address that thread-local offsets count from.
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the thread control block's own address at fs:0.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

/// Reads hardware counter `index`.
///
/// # Safety
/// The kernel must have allowed it (`cap_user_rdpmc`), or the instruction faults.
pub(crate) unsafe fn read_counter(index: u32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the caller vouches for `cap_user_rdpmc`.
    unsafe {
        asm!("rdpmc", in("ecx") index, out("rax") low, out("rdx") high,
             options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// Whether `read_counter` exists here.
pub(crate) const HAS_READ_COUNTER: bool = true;
