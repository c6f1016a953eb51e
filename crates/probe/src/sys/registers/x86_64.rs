//! x86-64: XMM, YMM, ZMM and mask registers (Intel SDM volume 1, chapter 13; AMD APM volume 2,
//! chapter 11).

use std::arch::asm;
use std::marker::PhantomData;

use model::state::State;

use super::{RegisterKind, Registers, WithRegisters};

/// The vector registers' bits in XCR0: SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM. Not x87, which nobody
/// here uses, nor AMX, which the kernel gives on request only.
const VECTOR_COMPONENTS: u32 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7;

/// MXCSR as it is after the start of a process: all exceptions masked.
const INITIAL_MXCSR: u32 = 0x1f80;

pub(super) fn missing(state: State) -> Option<String> {
    let lacks = |feature: &str| Some(format!("this CPU has no {feature}"));
    match state {
        State::None | State::Sse => None,
        State::Avx | State::Vzeroupper if is_x86_feature_detected!("avx") => None,
        State::Avx | State::Vzeroupper => lacks("AVX"),
        State::Avx512 if is_x86_feature_detected!("avx512f") => None,
        State::Avx512 => lacks("AVX-512 (avx512f)"),
        State::Neon => lacks("Neon: it is an x86-64"),
    }
}

/// `state` is none that is missing.
pub(super) fn with<T: WithRegisters>(state: State, what: T) -> T::Output {
    match state {
        State::None | State::Neon => what.with(Registers::<super::NoRegisters>(PhantomData)),
        State::Sse => what.with(Registers::<Sse>(PhantomData)),
        State::Avx => what.with(Registers::<Avx>(PhantomData)),
        State::Vzeroupper => what.with(Registers::<Vzeroupper>(PhantomData)),
        State::Avx512 => what.with(Registers::<Avx512>(PhantomData)),
    }
}

/// `asm!` of such lines that tells the compiler that XMM0 to XMM15 are written, and what is given
/// beside them. What is wider is the same registers to it.
macro_rules! write_registers {
    ([$($line:literal),+ $(,)?] $(, $($beside:tt)+)?) => {
        asm!(
            $($line),+,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            $($($beside)+)?
        )
    };
}

// All bits set, in every kind: neither zero, which may count as initial, nor a number to compute with.

/// XMM0 to XMM15.
pub(super) struct Sse;

impl RegisterKind for Sse {
    #[inline(always)]
    unsafe fn write() {
        // SAFETY: every x86-64 has SSE2; memory and flags stay as they are.
        unsafe {
            write_registers!(
                [
                    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                    "pcmpeqd xmm\\n, xmm\\n",
                    ".endr",
                ],
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// YMM0 to YMM15.
pub(super) struct Avx;

impl RegisterKind for Avx {
    #[inline(always)]
    unsafe fn write() {
        // SAFETY: the CPU has AVX, says the caller; memory and flags stay as they are.
        unsafe {
            write_registers!(
                [
                    // AVX alone has no such comparison of 256 bits of integers.
                    "vpcmpeqd xmm0, xmm0, xmm0",
                    "vinsertf128 ymm0, ymm0, xmm0, 1",
                    ".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                    "vmovaps ymm\\n, ymm0",
                    ".endr",
                ],
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// YMM0 to YMM15, then out of use again but for their lower halves.
pub(super) struct Vzeroupper;

impl RegisterKind for Vzeroupper {
    #[inline(always)]
    unsafe fn write() {
        // SAFETY: the caller's promise is that of Avx.
        unsafe { Avx::write() };
        // SAFETY: as above.
        unsafe { write_registers!(["vzeroupper"], options(nomem, nostack, preserves_flags)) };
    }
}

/// ZMM0 to ZMM31, K1 to K7.
pub(super) struct Avx512;

impl RegisterKind for Avx512 {
    #[inline(always)]
    unsafe fn write() {
        // SAFETY: the CPU has AVX-512F, says the caller; memory and flags stay as they are.
        unsafe {
            write_registers!(
                [
                    "vpternlogd zmm0, zmm0, zmm0, 255",
                    ".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20",
                    "vmovdqa64 zmm\\n, zmm0",
                    ".endr",
                    ".irp n, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                    "vmovdqa64 zmm\\n, zmm0",
                    ".endr",
                    ".irp n, 1, 2, 3, 4, 5, 6, 7",
                    "kxnorw k\\n, k\\n, k\\n",
                    ".endr",
                ],
                out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
                out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
                out("xmm24") _, out("xmm25") _, out("xmm26") _, out("xmm27") _,
                out("xmm28") _, out("xmm29") _, out("xmm30") _, out("xmm31") _,
                out("k1") _, out("k2") _, out("k3") _, out("k4") _,
                out("k5") _, out("k6") _, out("k7") _,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// An XSAVE area whose header says that every component is in its initial configuration.
#[repr(C, align(64))]
struct InitialState {
    before_mxcsr: [u32; 6],
    mxcsr: u32,
    rest: [u32; 121],
    header: [u64; 8],
}

pub(super) fn clear() {
    if !is_x86_feature_detected!("xsave") {
        return;
    }
    let area =
        InitialState { before_mxcsr: [0; 6], mxcsr: INITIAL_MXCSR, rest: [0; 121], header: [0; 8] };
    // SAFETY: the area is aligned to 64 bytes and as long as its legacy part and its header, all that is
    // read where the header has no bit set; the compiler knows of every register that is lost.
    unsafe {
        write_registers!(
            ["xrstor64 [{area}]"],
            area = in(reg) &raw const area,
            in("eax") VECTOR_COMPONENTS,
            in("edx") 0,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            out("xmm24") _, out("xmm25") _, out("xmm26") _, out("xmm27") _,
            out("xmm28") _, out("xmm29") _, out("xmm30") _, out("xmm31") _,
            out("k1") _, out("k2") _, out("k3") _, out("k4") _,
            out("k5") _, out("k6") _, out("k7") _,
            options(readonly, nostack, preserves_flags)
        );
    }
}

/// The vector components in use (XINUSE by XGETBV with ECX = 1), as state-component bits; absent where
/// the CPU does not tell (CPUID leaf 0xD, sub-leaf 1, EAX bit 2).
#[cfg(test)]
pub fn in_use() -> Option<u32> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let tells = is_x86_feature_detected!("xsave")
        && __cpuid(0).eax >= 0xd
        && __cpuid_count(0xd, 1).eax & 1 << 2 != 0;
    let low: u32;
    if !tells {
        return None;
    }
    // SAFETY: the CPU has the instruction and the register.
    unsafe {
        asm!("xgetbv", in("ecx") 1, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    Some(low & VECTOR_COMPONENTS)
}

/// The lower half of XMM15, which compiled code hardly ever reaches.
#[cfg(test)]
pub fn last_register() -> u64 {
    let value: u64;
    // SAFETY: reads a register that every x86-64 has.
    unsafe { asm!("movq {}, xmm15", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
