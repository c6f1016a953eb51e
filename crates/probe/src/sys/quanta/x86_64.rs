//! The loops in machine instructions of x86-64.

use std::arch::asm;

use model::speed::{ADD_TURNS, ADDS_PER_TURN, MULTIPLIES_PER_TURN, MULTIPLY_TURNS};

// The repeated lines below are this many.
const _: () = assert!(MULTIPLIES_PER_TURN == 16 && ADDS_PER_TURN == 64);

/// Each multiplication waits for the one before.
#[inline(never)]
pub fn latency_bound() {
    // SAFETY: registers only; no memory, no stack, nothing else is changed.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            ".rept 16",
            "imul {value}, {factor}",
            ".endr",
            "dec {turns:e}",
            "jnz 2b",
            value = inout(reg) 12_345_u64 => _,
            factor = in(reg) 3_u64,
            turns = inout(reg) MULTIPLY_TURNS => _,
            options(nomem, nostack),
        );
    }
}

/// Eight sums that do not wait for each other. By a register, not by a constant: some cores add
/// small constants while they rename registers (Golden Cove), which no sibling thread shares.
#[inline(never)]
pub fn throughput_bound() {
    // SAFETY: registers only; no memory, no stack, nothing else is changed.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            ".rept 8",
            "add {a}, {step}",
            "add {b}, {step}",
            "add {c}, {step}",
            "add {d}, {step}",
            "add {e}, {step}",
            "add {f}, {step}",
            "add {g}, {step}",
            "add {h}, {step}",
            ".endr",
            "dec {turns:e}",
            "jnz 2b",
            a = inout(reg) 1_u64 => _,
            b = inout(reg) 2_u64 => _,
            c = inout(reg) 3_u64 => _,
            d = inout(reg) 4_u64 => _,
            e = inout(reg) 5_u64 => _,
            f = inout(reg) 6_u64 => _,
            g = inout(reg) 7_u64 => _,
            h = inout(reg) 8_u64 => _,
            step = in(reg) 3_u64,
            turns = inout(reg) ADD_TURNS => _,
            options(nomem, nostack),
        );
    }
}
