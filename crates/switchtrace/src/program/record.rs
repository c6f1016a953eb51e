//! A thread's record: its beginning, its switches, its end. r8 is the record throughout.
//!
//! The record's first word is all that a reader needs for the CPU time. With a thread that comes at
//! 1,000 ns with 500 ns of CPU time, and leaves at 4,000 ns:
//!
//! ```text
//!               bit 63 (ON)   bit 62 (BUSY)   the rest               a reader at 3,000 ns
//! off the CPU   0             0               500                    500
//! comes         1             0               500 - 1,000 = -500     -500 + 3,000 = 2,500
//! leaves        1             1               (being changed)        reads again
//! off the CPU   0             0               3,500                  3,500
//! ```

use super::{ProgramTarget, activity, count_lost, offset, stack};
use crate::asm::{
    AluOp, Asm, Double, FP, JumpIf, KernelHelper, R1, R2, R3, R4, R5, R8, R9, Reg, Word,
};
use crate::layout::TASK_DEAD;
use threadclock::table::layout::{BUSY, ENDED, ON, SEEDED, TIME, TableHeader, ThreadRecord};

/// Begins a record for a thread that had none: busy until its first word is published.
pub(super) fn begin(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    let offsets = &target.kernel.task;
    asm.load(Double, R2, task, offsets.sum_exec_runtime);
    asm.set64(R1, TIME);
    asm.op(AluOp::And, R2, R1);
    asm.set64(R1, BUSY);
    asm.op(AluOp::Or, R1, R2);
    asm.store_in_order(R8, offset!(ThreadRecord, word), R1);
    asm.copy(Double, (R8, offset!(ThreadRecord, start_ns)), (task, offsets.start_time), R1);
    asm.copy(Word, (R8, offset!(ThreadRecord, tid)), (task, offsets.pid), R1);
    asm.copy(Word, (R8, offset!(ThreadRecord, tgid)), (task, offsets.tgid), R1);
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), SEEDED as i32);
    if target.maps.ended.is_some() {
        copy_switches(asm, target, task);
        asm.copy(Double, (R8, BORN_NS), (task, offsets.start_time), R1);
        asm.copy(Word, (R8, BORN_TID), (task, offsets.pid), R1);
        return;
    }
    copy_counts(asm, target, task);
    copy_waited(asm, target, task);
    if target.maps.pairs.is_some() {
        activity::begin(asm, target, task);
    }
}

/// In a counter's record: the start of its thread when it was born, in place of `waited_ns`.
pub(super) const BORN_NS: i16 = offset!(ThreadRecord, waited_ns);
/// In a counter's record: the id of its thread when it was born, in place of `migrations`.
pub(super) const BORN_TID: i16 = offset!(ThreadRecord, migrations);

/// Marks the word busy, before the clock is read: a reader waits until the switch has ended.
pub(super) fn mark_busy(asm: &mut Asm) {
    asm.load(Double, R1, R8, offset!(ThreadRecord, word));
    asm.set64(R2, BUSY);
    asm.op(AluOp::Or, R1, R2);
    asm.store_in_order(R8, offset!(ThreadRecord, word), R1);
}

/// Limits how far a thread's time may be ahead of the kernel's figure when it is switched out. The
/// kernel takes its figure from the run queue's clock, which was read up to 17 us before (measured).
pub(crate) const MAX_AHEAD_NS: i32 = 20_000;

/// r5 = CPU time of a thread that is switched out at r9: the sum by our clock, but never less than
/// the kernel's own figure, nor more than [`MAX_AHEAD_NS`] above it. So what the kernel leaves out,
/// time stolen by the host, does not add up. If the switch in was not seen, it is the kernel's.
pub(super) fn time_at_end(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    let [known, unseen, ahead, within_limit] = asm.labels();
    asm.set64(R2, TIME);
    asm.load(Double, R5, task, target.kernel.task.sum_exec_runtime);
    asm.store(Double, R8, offset!(ThreadRecord, kernel_ns), R5);
    asm.op(AluOp::And, R5, R2);
    asm.load(Double, R1, R8, offset!(ThreadRecord, word));
    asm.jump_if_imm(JumpIf::SignedAtLeast, R1, 0, unseen);
    asm.op(AluOp::Add, R1, R9);
    asm.op(AluOp::And, R1, R2);
    // r3 = how far our sum is ahead of the kernel's; 0 if it is behind.
    asm.mov(R3, R1);
    asm.op(AluOp::Sub, R3, R5);
    asm.jump_if_imm(JumpIf::SignedAtLeast, R3, 0, ahead);
    asm.set(R3, 0);
    asm.place(ahead);
    asm.jump_if_imm(JumpIf::Less, R3, MAX_AHEAD_NS, within_limit);
    asm.set(R3, MAX_AHEAD_NS);
    asm.place(within_limit);
    asm.op(AluOp::Add, R5, R3);
    asm.jump(known);
    asm.place(unseen);
    asm.load(Word, R1, R8, offset!(ThreadRecord, flags));
    asm.jump_if_imm(JumpIf::AnyBit, R1, SEEDED as i32, known);
    count_missed(asm, target, R5);
    asm.place(known);
}

/// Counts a switch for which the programs were not run. Preserves the register `kept`.
fn count_missed(asm: &mut Asm, target: &ProgramTarget, kept: Reg) {
    asm.store(Double, FP, stack::SAVED, kept);
    count_lost(asm, target, offset!(TableHeader, switches_missed), None);
    asm.load(Double, kept, FP, stack::SAVED);
}

/// Copies the kernel's counts of switches and migrations.
pub(super) fn copy_counts(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    copy_switches(asm, target, task);
    let migrations = target.kernel.task.migrations;
    asm.copy(Word, (R8, offset!(ThreadRecord, migrations)), (task, migrations), R1);
}

/// Copies the kernel's counts of switches.
pub(super) fn copy_switches(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    let offsets = &target.kernel.task;
    asm.copy(Double, (R8, offset!(ThreadRecord, voluntary)), (task, offsets.nvcsw), R1);
    asm.copy(Double, (R8, offset!(ThreadRecord, involuntary)), (task, offsets.nivcsw), R1);
}

/// Copies the time that the thread has waited in run queues, if this kernel counts it.
pub(super) fn copy_waited(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    if let Some(run_delay) = target.kernel.task.run_delay {
        asm.copy(Double, (R8, offset!(ThreadRecord, waited_ns)), (task, run_delay), R1);
    }
}

/// Publishes that the thread is off the CPU, with r5 of CPU time.
pub(super) fn publish_off(asm: &mut Asm) {
    asm.store_in_order(R8, offset!(ThreadRecord, word), R5);
}

/// Publishes that the thread runs since r9. Its CPU time so far is in the record; if it was seeded,
/// and may have run since, it is in the task.
pub(super) fn publish_on(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    let [from_task, known] = asm.labels();
    asm.load(Double, R4, R8, offset!(ThreadRecord, word));
    asm.load(Word, R1, R8, offset!(ThreadRecord, flags));
    asm.jump_if_imm(JumpIf::AnyBit, R1, SEEDED as i32, from_task);
    asm.jump_if_imm(JumpIf::SignedAtLeast, R4, 0, known);
    // Marked as running already: its last end was missed.
    count_missed(asm, target, R4);
    asm.place(from_task);
    asm.load(Double, R4, task, target.kernel.task.sum_exec_runtime);
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), 0);
    copy_counts(asm, target, task);
    copy_waited(asm, target, task);
    asm.place(known);
    asm.op(AluOp::Sub, R4, R9);
    asm.set64(R2, TIME);
    asm.op(AluOp::And, R4, R2);
    asm.set64(R3, ON);
    asm.op(AluOp::Or, R4, R3);
    asm.store_in_order(R8, offset!(ThreadRecord, word), R4);
}

/// Marks a thread in its last switch as ended. Its record stays readable until it is taken again.
pub(super) fn mark_ended(asm: &mut Asm) {
    let lives = asm.label();
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), 0);
    asm.load(Double, R1, FP, stack::STATE);
    asm.op_imm(AluOp::And, R1, TASK_DEAD);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, lives);
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), ENDED as i32);
    asm.place(lives);
}

/// Gives back the element on the stack if its thread has ended: to be taken again, or by a counter to
/// be read first. Comes after its last word was published.
pub(super) fn free_if_ended(asm: &mut Asm, target: &ProgramTarget) {
    let lives = asm.label();
    asm.load(Word, R1, R8, offset!(ThreadRecord, flags));
    asm.op_imm(AluOp::And, R1, ENDED as i32);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, lives);
    asm.map(R1, target.maps.ended.unwrap_or(target.maps.free));
    asm.stack_address(R2, stack::ELEMENT);
    asm.set(R3, 0);
    asm.call(KernelHelper::MapPush);
    asm.place(lives);
}
