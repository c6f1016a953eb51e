//! The eBPF programs, written for the running kernel. The kernel calls each at its tracepoint, on
//! the CPU where the event happens; they share maps with each other and with user space:
//!
//! ```text
//! sched_process_fork ---+              +-- table   array, mapped: header, index, records
//! sched_migrate_task ---+              +-- free    queue: numbers of records without a thread
//! sched_process_exec ---+-- programs --+-- pairs   hash: (prev, next) -> switches (activity only)
//! sched_switch ---------+              +-- events  ring buffer: every event (recording only)
//! ```
//!
//! An example: thread 10 came to its CPU at 1,000 ns with 500 ns of CPU time; at 4,000 ns thread 11
//! gets the CPU. The program of `sched_switch` does this:
//!
//! ```text
//! find 10        index word 10 is 7: the record is element 7 of the table
//! mark busy      its word gets bit 62: a reader waits
//! clock          r9 = 4,000
//! leave          word = 500 + (4,000 - 1,000) = 3,500: the CPU time of a thread that is off the CPU
//! find 11        like 10; a thread without a record gets the first one of `free`
//! enter          word = CPU time - 4,000, with bit 63: a reader adds the clock
//! ```
//!
//! A counter ([`SwitchCounter`](crate::SwitchCounter)) has no program at switches: `refresh` of the
//! task iterator copies the kernel's counts at each look, `free` those of threads that have ended. Their
//! records are in a second queue until they are read, and then in `free` again.
//!
//! The programs run under the run queue's lock, so they have no loops and no memory but the maps
//! and their stack. The kernel orders all writes to one record: a thread is switched out, moved,
//! woken and switched in under the lock of its run queue, one after the other.

mod activity;
mod counting;
mod event;
mod find;
mod others;
mod record;
mod switch;

pub(crate) use counting::{free, refresh, take_over};
pub(crate) use others::{exec, fork, migrate, seed, wakeup};
pub(crate) use switch::switch;

use crate::asm::{Asm, Double, FP, JumpIf, KernelHelper, Label, R0, R1, R2, Word};
use crate::kernel::KernelLayout;

/// The kernel, maps and table that a program is written for.
#[derive(Clone, Debug)]
pub(crate) struct ProgramTarget {
    pub(crate) kernel: KernelLayout,
    pub(crate) maps: MapDescriptors,
    /// Number of thread ids in the index.
    pub(crate) tids: u32,
    pub(crate) record_bytes: u32,
    /// The table's element at which the index begins.
    pub(crate) index_at: u32,
}

/// Descriptors of the maps.
#[derive(Clone, Debug)]
pub(crate) struct MapDescriptors {
    pub(crate) table: i32,
    /// The queue of elements that are free.
    pub(crate) free: i32,
    /// `Some` for a counter: the queue of elements whose threads have ended, until they are read.
    pub(crate) ended: Option<i32>,
    /// `Some` if activity is kept.
    pub(crate) pairs: Option<i32>,
    /// `Some` if events are recorded.
    pub(crate) events: Option<i32>,
}

/// Offsets in the stack.
mod stack {
    /// An element's number, as a key.
    pub(super) const KEY: i16 = -4;
    /// The number of the element that was found.
    pub(super) const ELEMENT: i16 = -8;
    /// Whether prev was preempted.
    pub(super) const PREEMPT: i16 = -16;
    /// The state of prev.
    pub(super) const STATE: i16 = -24;
    /// The address of a thread's word in the index.
    pub(super) const INDEX: i16 = -32;
    /// A register's value that is kept over a call.
    pub(super) const SAVED: i16 = -40;
    /// The address in the index of the word of a process's first thread (counters only).
    pub(super) const FIRST_INDEX: i16 = -48;
    /// The number of the element of that thread (counters only).
    pub(super) const FIRST_ELEMENT: i16 = -52;
    /// A key of the map of pairs.
    pub(super) const PAIR: i16 = -56;
    /// A value of the map of pairs.
    pub(super) const PAIR_COUNTS: i16 = -72;
    /// An event for the ring buffer.
    pub(super) const EVENT: i16 = -104;
}

/// The offset of a field, as instructions have it.
macro_rules! offset {
    ($type:ty, $($field:tt)+) => { std::mem::offset_of!($type, $($field)+) as i16 };
}
use offset;

/// r0 = address of the table's element whose number is on the stack at `key`; goes to `none` if
/// there is no such element.
fn element(asm: &mut Asm, target: &ProgramTarget, key: i16, none: Label) {
    look_up(asm, target.maps.table, key);
    asm.jump_if_imm(JumpIf::Equal, R0, 0, none);
}

/// r0 = address of the value of a key on the stack, or null.
fn look_up(asm: &mut Asm, map: i32, key: i16) {
    asm.map(R1, map);
    asm.stack_address(R2, key);
    asm.call(KernelHelper::MapLookup);
}

/// Adds what is on the stack at `amount`, or one, to a counter of the header.
fn count_lost(asm: &mut Asm, target: &ProgramTarget, counter: i16, amount: Option<i16>) {
    let done = asm.label();
    asm.store_imm(Word, FP, stack::KEY, 0);
    element(asm, target, stack::KEY, done);
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
