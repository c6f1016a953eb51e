//! aarch64: V0 to V31. There is no initial configuration that the kernel need not save.

use std::arch::asm;
use std::marker::PhantomData;

use model::state::State;

use super::{NoRegisters, RegisterKind, Registers, WithRegisters};

pub(super) fn missing(state: State) -> Option<String> {
    match state {
        State::None | State::Neon => None,
        other => Some(format!("this CPU has no {other}: it is an aarch64")),
    }
}

/// `state` is none that is missing.
pub(super) fn with<T: WithRegisters>(state: State, what: T) -> T::Output {
    match state {
        State::Neon => what.with(Registers::<Neon>(PhantomData)),
        _ => what.with(Registers::<NoRegisters>(PhantomData)),
    }
}

/// V0 to V31.
pub(super) struct Neon;

impl RegisterKind for Neon {
    #[inline(always)]
    unsafe fn write() {
        // SAFETY: every aarch64 that Linux runs programs of this target on has them; memory and flags stay
        // as they are.
        unsafe {
            asm!(
                "movi v0.16b, #255", "movi v1.16b, #255", "movi v2.16b, #255", "movi v3.16b, #255",
                "movi v4.16b, #255", "movi v5.16b, #255", "movi v6.16b, #255", "movi v7.16b, #255",
                "movi v8.16b, #255", "movi v9.16b, #255", "movi v10.16b, #255", "movi v11.16b, #255",
                "movi v12.16b, #255", "movi v13.16b, #255", "movi v14.16b, #255", "movi v15.16b, #255",
                "movi v16.16b, #255", "movi v17.16b, #255", "movi v18.16b, #255", "movi v19.16b, #255",
                "movi v20.16b, #255", "movi v21.16b, #255", "movi v22.16b, #255", "movi v23.16b, #255",
                "movi v24.16b, #255", "movi v25.16b, #255", "movi v26.16b, #255", "movi v27.16b, #255",
                "movi v28.16b, #255", "movi v29.16b, #255", "movi v30.16b, #255", "movi v31.16b, #255",
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

pub(super) fn clear() {}

/// Not told by this architecture.
#[cfg(test)]
pub fn in_use() -> Option<u32> {
    None
}

/// The lower half of V31, which compiled code hardly ever reaches.
#[cfg(test)]
pub fn last_register() -> u64 {
    let value: u64;
    // SAFETY: reads a register that every such CPU has.
    unsafe { asm!("fmov {}, d31", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
