//! Putting vector registers in use, or out of use, so that a switch has to save them or not.

use rundata::ring::RegisterState;

#[cfg(all(test, target_arch = "x86_64"))]
pub use arch::seen::in_use;
#[cfg(test)]
pub use arch::seen::last_register;

/// A kind of vector registers. A value exists only if CPU and kernel have them
/// ([`with_registers`]).
pub trait RegisterKind: Copy + Send + Sync + 'static {
    /// Writes to each of these registers.
    fn write(self);

    /// Puts all vector registers into their initial state, if the architecture has one.
    fn clear(self) {
        #[cfg(target_arch = "x86_64")]
        arch::clear();
    }
}

/// No registers.
#[derive(Clone, Copy)]
pub struct NoRegisters;

impl RegisterKind for NoRegisters {
    #[inline(always)]
    fn write(self) {}
}

/// An action on the registers of a state. Their kind is a type, so that the code is compiled for
/// each.
pub trait WithRegisters {
    /// Result of the action.
    type Output;
    /// Runs the action.
    fn with<K: RegisterKind>(self, registers: K) -> Self::Output;
}

/// Runs `action` with the registers of `state`. The error names the feature that this CPU lacks.
pub fn with_registers<T: WithRegisters>(
    state: RegisterState,
    action: T,
) -> Result<T::Output, String> {
    arch::with(state, action)
}

/// Checks that this CPU has the registers of a state. The error names the feature that it lacks.
pub fn has_registers(state: RegisterState) -> Result<(), String> {
    struct NoAction;
    impl WithRegisters for NoAction {
        type Output = ();
        fn with<K: RegisterKind>(self, _: K) {}
    }
    with_registers(state, NoAction)
}

/// x86-64: XMM, YMM, ZMM and mask registers (Intel SDM volume 1, chapter 13; AMD APM volume 2,
/// chapter 11).
#[cfg(target_arch = "x86_64")]
mod arch {
    use super::*;
    use std::arch::asm;

    /// The vector registers' bits in XCR0: SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM. Not x87, which is
    /// not used here, nor AMX, which the kernel gives on request only.
    const VECTOR_COMPONENTS: u32 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7;

    /// MXCSR as it is after the start of a process: all exceptions masked.
    const INITIAL_MXCSR: u32 = 0x1f80;

    pub(super) fn with<T: WithRegisters>(
        state: RegisterState,
        what: T,
    ) -> Result<T::Output, String> {
        let has_avx = is_x86_feature_detected!("avx");
        match state {
            RegisterState::None => Ok(what.with(NoRegisters)),
            RegisterState::Sse => Ok(what.with(SseRegisters)),
            RegisterState::Avx if has_avx => Ok(what.with(AvxRegisters)),
            RegisterState::Vzeroupper if has_avx => Ok(what.with(ZeroedUpperRegisters)),
            RegisterState::Avx | RegisterState::Vzeroupper => Err(lacks("AVX")),
            RegisterState::Avx512 if is_x86_feature_detected!("avx512f") => {
                Ok(what.with(Avx512Registers))
            }
            RegisterState::Avx512 => Err(lacks("AVX-512 (avx512f)")),
            RegisterState::Neon => Err(lacks("Neon: it is an x86-64")),
        }
    }

    /// Builds the error that the CPU lacks a feature.
    fn lacks(feature: &str) -> String {
        format!("this CPU has no {feature}")
    }

    /// `asm!` of such lines that declares to the compiler that XMM0 to XMM15 are written, and what
    /// is given beside them. What is wider is the same registers to it.
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

    // Every kind sets all bits: not zero, which may count as the initial state.

    /// XMM0 to XMM15.
    #[derive(Clone, Copy)]
    pub(super) struct SseRegisters;

    impl RegisterKind for SseRegisters {
        #[inline(always)]
        fn write(self) {
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
    #[derive(Clone, Copy)]
    pub(super) struct AvxRegisters;

    impl RegisterKind for AvxRegisters {
        #[inline(always)]
        fn write(self) {
            // SAFETY: the CPU has AVX where there is a value of this type; memory and flags stay as
            // they are.
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

    /// YMM0 to YMM15, whose upper halves are then out of use again.
    #[derive(Clone, Copy)]
    pub(super) struct ZeroedUpperRegisters;

    impl RegisterKind for ZeroedUpperRegisters {
        #[inline(always)]
        fn write(self) {
            AvxRegisters.write();
            // SAFETY: as above.
            unsafe { write_registers!(["vzeroupper"], options(nomem, nostack, preserves_flags)) };
        }
    }

    /// ZMM0 to ZMM31, K1 to K7.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512Registers;

    impl RegisterKind for Avx512Registers {
        #[inline(always)]
        fn write(self) {
            // SAFETY: the CPU has AVX-512F where there is a value of this type; memory and flags
            // stay as they are.
            unsafe {
                write_registers!(
                    [
                        "vpternlogd zmm0, zmm0, zmm0, 255",
                        ".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, \
                         19, 20",
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

    /// An XSAVE area whose header says that every component is in its initial state.
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
        let area = InitialState {
            before_mxcsr: [0; 6],
            mxcsr: INITIAL_MXCSR,
            rest: [0; 121],
            header: [0; 8],
        };
        // SAFETY: the area is aligned to 64 bytes and as long as its legacy part and its header,
        // all that is read where the header has no bit set; a call may change every register that
        // is lost.
        unsafe {
            asm!(
                "xrstor64 [{area}]",
                area = in(reg) &raw const area,
                in("eax") VECTOR_COMPONENTS,
                in("edx") 0,
                clobber_abi("C"),
                options(readonly, nostack, preserves_flags)
            );
        }
    }

    #[cfg(test)]
    pub mod seen {
        use super::*;

        /// The vector components in use (XINUSE by XGETBV with ECX = 1), as state-component bits;
        /// absent where the CPU does not report it (CPUID leaf 0xD, sub-leaf 1, EAX bit 2).
        pub fn in_use() -> Option<u32> {
            use std::arch::x86_64::{__cpuid, __cpuid_count};
            let reports = is_x86_feature_detected!("xsave")
                && __cpuid(0).eax >= 0xd
                && __cpuid_count(0xd, 1).eax & 1 << 2 != 0;
            let low: u32;
            if !reports {
                return None;
            }
            // SAFETY: the CPU has the instruction and the register.
            unsafe {
                asm!("xgetbv", in("ecx") 1, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
            }
            Some(low & VECTOR_COMPONENTS)
        }

        /// The lower half of XMM15, which compiled code hardly ever reaches.
        pub fn last_register() -> u64 {
            let value: u64;
            // SAFETY: reads a register that every x86-64 has.
            unsafe {
                asm!("movq {}, xmm15", out(reg) value, options(nomem, nostack, preserves_flags))
            };
            value
        }
    }
}

/// aarch64: V0 to V31. There is no initial state that the kernel need not save.
#[cfg(target_arch = "aarch64")]
mod arch {
    use super::*;
    use std::arch::asm;

    pub(super) fn with<T: WithRegisters>(
        state: RegisterState,
        what: T,
    ) -> Result<T::Output, String> {
        match state {
            RegisterState::None => Ok(what.with(NoRegisters)),
            RegisterState::Neon => Ok(what.with(NeonRegisters)),
            other => Err(format!("this CPU has no {other}: it is an aarch64")),
        }
    }

    /// V0 to V31.
    #[derive(Clone, Copy)]
    pub(super) struct NeonRegisters;

    impl RegisterKind for NeonRegisters {
        #[inline(always)]
        fn write(self) {
            // SAFETY: every aarch64 that Linux runs programs of this target on has them; memory and
            // flags stay as they are.
            unsafe {
                asm!(
                    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                    "movi v\\n\\().16b, #255",
                    ".endr",
                    ".irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                    "movi v\\n\\().16b, #255",
                    ".endr",
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                    out("v4") _, out("v5") _, out("v6") _, out("v7") _,
                    out("v8") _, out("v9") _, out("v10") _, out("v11") _,
                    out("v12") _, out("v13") _, out("v14") _, out("v15") _,
                    out("v16") _, out("v17") _, out("v18") _, out("v19") _,
                    out("v20") _, out("v21") _, out("v22") _, out("v23") _,
                    out("v24") _, out("v25") _, out("v26") _, out("v27") _,
                    out("v28") _, out("v29") _, out("v30") _, out("v31") _,
                    options(nomem, nostack, preserves_flags)
                );
            }
        }
    }

    #[cfg(test)]
    pub mod seen {
        use super::*;

        /// The lower half of V31, which compiled code hardly ever reaches.
        pub fn last_register() -> u64 {
            let value: u64;
            // SAFETY: reads a register that every such CPU has.
            unsafe {
                asm!("fmov {}, d31", out(reg) value, options(nomem, nostack, preserves_flags))
            };
            value
        }
    }
}

/// Architectures without an implementation.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use super::*;

    pub(super) fn with<T: WithRegisters>(
        state: RegisterState,
        what: T,
    ) -> Result<T::Output, String> {
        match state {
            RegisterState::None => Ok(what.with(NoRegisters)),
            other => Err(format!("{other} is not known on {}", std::env::consts::ARCH)),
        }
    }

    #[cfg(test)]
    pub mod seen {
        /// Not read here.
        pub fn last_register() -> u64 {
            0
        }
    }
}

/// Not readable on these architectures.
#[cfg(all(test, not(target_arch = "x86_64")))]
pub fn in_use() -> Option<u32> {
    None
}
