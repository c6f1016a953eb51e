//! The parts that differ between processors: the time stamp, the thread pointer, the rseq signature.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;

pub(crate) use processor::*;

/// True if this processor has a counter that user space can read.
pub(crate) const HAS_COUNTER: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// True if [`read_counter`] reads a hardware counter. On AArch64 the event counters need another register per
/// counter.
pub(crate) const HAS_READ_COUNTER: bool = cfg!(target_arch = "x86_64");

/// Returns 0: hardware counters are read on x86-64 only.
///
/// # Safety
/// None needed: it reads nothing.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn read_counter(_index: u32) -> u64 {
    0
}

/// Chooses the assembly text for this processor.
#[cfg(target_arch = "x86_64")]
macro_rules! either {
    ($x86_64:literal, $aarch64:literal) => {
        $x86_64
    };
}
/// Chooses the assembly text for this processor.
#[cfg(target_arch = "aarch64")]
macro_rules! either {
    ($x86_64:literal, $aarch64:literal) => {
        $aarch64
    };
}

/// Returns the address from which thread-local offsets count.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the thread control block's own address at fs:0; TPIDR_EL0 is
    // that of AArch64 and readable at EL0.
    unsafe {
        asm!(either!("mov {}, fs:0", "mrs {}, tpidr_el0"), out(reg) pointer,
             options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// Returns the addresses of `__rseq_offset` and `__rseq_size` in a static C library; null where it
/// has none.
#[cfg(all(target_feature = "crt-static", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn rseq_symbols() -> (*const isize, *const u32) {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: takes two addresses from the table that the linker made.
    unsafe {
        asm!(".weak __rseq_offset", ".weak __rseq_size",
             either!("mov {0}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                     "adrp {0}, :got:__rseq_offset\nldr {0}, [{0}, :got_lo12:__rseq_offset]"),
             either!("mov {1}, qword ptr [rip + __rseq_size@GOTPCREL]",
                     "adrp {1}, :got:__rseq_size\nldr {1}, [{1}, :got_lo12:__rseq_size]"),
             out(reg) offset, out(reg) size, options(nostack, readonly, preserves_flags));
    }
    (offset, size)
}

/// Unused: rseq is refused before the pointer is needed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn thread_pointer() -> usize {
    0
}

/// Unused, like `thread_pointer`.
#[cfg(all(
    target_feature = "crt-static",
    not(any(target_arch = "x86_64", target_arch = "aarch64"))
))]
pub(crate) fn rseq_symbols() -> (*const isize, *const u32) {
    (core::ptr::null(), core::ptr::null())
}

/// x86-64: RDTSC. Intel SDM vol. 2B "RDTSC", vol. 3B 19.17; AMD APM vol. 2, 13.2.
#[cfg(target_arch = "x86_64")]
mod processor {
    use super::asm;
    use core::arch::x86_64::{__cpuid, CpuidResult};

    /// `RSEQ_SIG` of glibc and librseq: the kernel wants it in the four bytes before `abort_ip`.
    pub(crate) const RSEQ_SIG: u32 = 0x5305_3053;

    /// Returns the time stamp. Not `nomem`: the asm is the compiler barrier that keeps later loads after
    /// it.
    #[inline(always)]
    pub(crate) fn stamp() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: RDTSC reads a counter and touches no memory; Linux leaves CR4.TSD clear.
        unsafe {
            asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags))
        };
        high << 32 | low
    }

    /// Returns the time stamp, taken neither before the loads and instructions ahead of it are done nor after
    /// those behind it have begun (LFENCE: SDM vol. 2B "RDTSC"; AMD makes it so by DE_CFG[1], which
    /// Linux sets).
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

    /// Returns whether the counter's rate never changes (CPUID 8000_0007h EDX bit 8, "invariant TSC").
    pub(crate) fn counter_is_invariant() -> bool {
        cpuid(0x8000_0000).eax >= 0x8000_0007 && cpuid(0x8000_0007).edx & 1 << 8 != 0
    }

    // Rust 1.94 and later know that CPUID is safe.
    #[allow(unused_unsafe)]
    fn cpuid(leaf: u32) -> CpuidResult {
        // SAFETY: every x86-64 has CPUID.
        unsafe { __cpuid(leaf) }
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
}

/// AArch64: CNTVCT_EL0, the virtual counter. Arm ARM D12; Linux enables it for EL0.
#[cfg(target_arch = "aarch64")]
mod processor {
    use super::asm;

    /// `RSEQ_SIG` of glibc and librseq (a BRK instruction): the four bytes before `abort_ip`.
    pub(crate) const RSEQ_SIG: u32 = 0xd428_bc00;

    /// Returns the time stamp. Not `nomem`: the asm is the compiler barrier that keeps later loads after
    /// it.
    #[inline(always)]
    pub(crate) fn stamp() -> u64 {
        let value: u64;
        // SAFETY: reads a counter that Linux lets EL0 read.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) value, options(nostack, preserves_flags)) };
        value
    }

    /// Returns the time stamp, taken neither before the loads and instructions ahead of it are done nor after
    /// those behind it have begun (DSB waits for the loads, ISB for the rest; Arm ARM B2.3, D12.2).
    #[inline(always)]
    pub(crate) fn stamp_ordered() -> u64 {
        let value: u64;
        // SAFETY: as `stamp`; DSB and ISB touch no memory.
        unsafe {
            asm!("dsb ishld", "isb", "mrs {}, cntvct_el0", "isb", out(reg) value, options(nostack, preserves_flags));
        }
        value
    }

    /// Returns true: the architecture fixes the system counter's rate.
    pub(crate) fn counter_is_invariant() -> bool {
        true
    }
}

/// Any other processor: no counter, so every tier but the kernel clock is refused.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod processor {
    /// Unused: no rseq area is registered here.
    pub(crate) const RSEQ_SIG: u32 = 0;

    /// Returns 0, as there is no counter; every fast path takes that as "not synchronised".
    #[inline(always)]
    pub(crate) fn stamp() -> u64 {
        0
    }

    /// Returns 0, like `stamp`.
    #[inline(always)]
    pub(crate) fn stamp_ordered() -> u64 {
        0
    }

    /// Returns false: there is no counter.
    pub(crate) fn counter_is_invariant() -> bool {
        false
    }
}
