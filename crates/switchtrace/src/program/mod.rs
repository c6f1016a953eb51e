//! The eBPF programs, written for the running kernel. They run under the run queue's lock: no
//! loops, no memory of their own.
//!
//! All writes to one record are ordered by the kernel: a thread is switched out, moved, woken and
//! switched in under the lock of its run queue, one after the other.

mod activity;
mod find;
mod others;
mod record;
mod switch;

pub(crate) use others::{exec, fork, migrate, seed, wakeup};
pub(crate) use switch::switch;

use crate::asm::{Asm, Double, FP, Helper, If, Label, Op, R0, R1, R2, Word};
use crate::kernel::Kernel;

/// What a program is written for.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) kernel: Kernel,
    /// Descriptors of the maps.
    pub(crate) maps: Maps,
    pub(crate) tids: u32,
    pub(crate) record_bytes: u32,
    pub(crate) index_at: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Maps {
    pub(crate) table: i32,
    /// Elements that are free.
    pub(crate) free: i32,
    /// Where activity is kept.
    pub(crate) pairs: Option<i32>,
    /// Where events are recorded.
    pub(crate) events: Option<i32>,
}

/// Offsets in the stack.
mod stack {
    /// An element's number, as a key.
    pub(super) const KEY: i16 = -4;
    /// The number of the element that was found.
    pub(super) const ELEMENT: i16 = -8;
    /// Whether prev was preempted, and its state.
    pub(super) const PREEMPT: i16 = -16;
    pub(super) const STATE: i16 = -24;
    /// The index's word of a thread.
    pub(super) const INDEX: i16 = -32;
    /// Kept over a call.
    pub(super) const SAVED: i16 = -40;
    /// A key and a value of the map of pairs.
    pub(super) const PAIR: i16 = -56;
    pub(super) const PAIR_COUNTS: i16 = -72;
    pub(super) const EVENT: i16 = -104;
}

/// Offsets in the table.
macro_rules! at {
    ($type:ty, $($field:tt)+) => { std::mem::offset_of!($type, $($field)+) as i16 };
}
use at;

/// r0 = address of the table's element whose number is on the stack at `key`, not null: else to
/// `none`.
fn element(asm: &mut Asm, setting: &Setting, key: i16, none: Label) {
    look_up(asm, setting.maps.table, key);
    asm.jump_if_imm(If::Equal, R0, 0, none);
}

/// r0 = address of the value of a key on the stack, or null.
fn look_up(asm: &mut Asm, map: i32, key: i16) {
    asm.map(R1, map);
    asm.mov(R2, FP);
    asm.op_imm(Op::Add, R2, i32::from(key));
    asm.call(Helper::MapLookup);
}

/// Adds what is on the stack at `amount`, or one, to a counter of the header.
fn count_lost(asm: &mut Asm, setting: &Setting, counter: i16, amount: Option<i16>) {
    let done = asm.label();
    asm.store_imm(Word, FP, stack::KEY, 0);
    element(asm, setting, stack::KEY, done);
    match amount {
        Some(amount) => asm.load(Double, R1, FP, amount),
        None => asm.set(R1, 1),
    }
    asm.atomic_add(R0, counter, R1);
    asm.place(done);
}

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;
