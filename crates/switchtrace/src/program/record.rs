//! A thread's record: its beginning, its switches, its end. r8 is the record throughout.

use super::{Setting, activity, at, count_lost, stack};
use crate::asm::{Asm, Double, FP, Helper, If, Op, R1, R2, R3, R4, R5, R8, R9, Reg, Word};
use crate::layout::TASK_DEAD;
use threadclock::table::layout::{BUSY, ENDED, ON, SEEDED, TIME, TableHeader, ThreadRecord};

/// A record for a thread that had none: busy until its first switch is told.
pub(super) fn begin(asm: &mut Asm, setting: &Setting, task: Reg) {
    let of = &setting.kernel.task;
    asm.load(Double, R2, task, of.sum_exec_runtime);
    asm.set64(R1, TIME);
    asm.op(Op::And, R2, R1);
    asm.set64(R1, BUSY);
    asm.op(Op::Or, R1, R2);
    asm.store_in_order(R8, at!(ThreadRecord, word), R1);
    asm.copy(Double, (R8, at!(ThreadRecord, start_ns)), (task, of.start_time), R1);
    asm.copy(Word, (R8, at!(ThreadRecord, tid)), (task, of.pid), R1);
    asm.copy(Word, (R8, at!(ThreadRecord, tgid)), (task, of.tgid), R1);
    asm.store_imm(Word, R8, at!(ThreadRecord, flags), SEEDED as i32);
    copy_counts(asm, setting, task);
    copy_waited(asm, setting, task);
    if setting.maps.pairs.is_some() {
        activity::begin(asm, setting, task);
    }
}

/// Before the clock is read: whoever reads between now and the end of the switch waits.
pub(super) fn mark_busy(asm: &mut Asm) {
    asm.load(Double, R1, R8, at!(ThreadRecord, word));
    asm.set64(R2, BUSY);
    asm.op(Op::Or, R1, R2);
    asm.store_in_order(R8, at!(ThreadRecord, word), R1);
}

/// By how much a thread's time may be ahead of the kernel's figure when it is switched out. The
/// kernel takes it from the run queue's clock, which was read up to 17 us before (measured).
pub(crate) const MOST_AHEAD_NS: i32 = 20_000;

/// r5 = CPU time of a thread that is switched out at r9: the kernel's own figure, if it was not
/// seen being switched in, and never further from it than the kernel's clock is late. So what the
/// kernel takes out, time stolen by the host, does not add up.
pub(super) fn time_at_end(asm: &mut Asm, setting: &Setting, task: Reg) {
    let [known, unseen, ahead, near] = [(); 4].map(|()| asm.label());
    asm.set64(R2, TIME);
    asm.load(Double, R5, task, setting.kernel.task.sum_exec_runtime);
    asm.store(Double, R8, at!(ThreadRecord, kernel_ns), R5);
    asm.op(Op::And, R5, R2);
    asm.load(Double, R1, R8, at!(ThreadRecord, word));
    asm.jump_if_imm(If::SignedAtLeast, R1, 0, unseen);
    asm.op(Op::Add, R1, R9);
    asm.op(Op::And, R1, R2);
    // r3 = how far ours is ahead; behind, it is none.
    asm.mov(R3, R1);
    asm.op(Op::Sub, R3, R5);
    asm.jump_if_imm(If::SignedAtLeast, R3, 0, ahead);
    asm.set(R3, 0);
    asm.place(ahead);
    asm.jump_if_imm(If::Less, R3, MOST_AHEAD_NS, near);
    asm.set(R3, MOST_AHEAD_NS);
    asm.place(near);
    asm.op(Op::Add, R5, R3);
    asm.jump(known);
    asm.place(unseen);
    asm.load(Word, R1, R8, at!(ThreadRecord, flags));
    asm.jump_if_imm(If::AnyBit, R1, SEEDED as i32, known);
    count_missed(asm, setting, R5);
    asm.place(known);
}

/// A switch for which the programs were not run. Keeps `kept` over it.
fn count_missed(asm: &mut Asm, setting: &Setting, kept: Reg) {
    asm.store(Double, FP, stack::SAVED, kept);
    count_lost(asm, setting, at!(TableHeader, switches_missed), None);
    asm.load(Double, kept, FP, stack::SAVED);
}

/// The kernel's counts.
pub(super) fn copy_counts(asm: &mut Asm, setting: &Setting, task: Reg) {
    let of = &setting.kernel.task;
    asm.copy(Double, (R8, at!(ThreadRecord, voluntary)), (task, of.nvcsw), R1);
    asm.copy(Double, (R8, at!(ThreadRecord, involuntary)), (task, of.nivcsw), R1);
    asm.copy(Word, (R8, at!(ThreadRecord, migrations)), (task, of.migrations), R1);
}

pub(super) fn copy_waited(asm: &mut Asm, setting: &Setting, task: Reg) {
    if let Some(run_delay) = setting.kernel.task.run_delay {
        asm.copy(Double, (R8, at!(ThreadRecord, waited_ns)), (task, run_delay), R1);
    }
}

/// The thread is off the CPU, with r5 of CPU time. `flags` is what is known of it now.
pub(super) fn publish_off(asm: &mut Asm) {
    asm.store_in_order(R8, at!(ThreadRecord, word), R5);
}

/// The thread runs since r9. Its CPU time so far is in the record; where it was seeded, and may
/// have run since, in the task.
pub(super) fn publish_on(asm: &mut Asm, setting: &Setting, task: Reg) {
    let (kernel, known) = (asm.label(), asm.label());
    asm.load(Double, R4, R8, at!(ThreadRecord, word));
    asm.load(Word, R1, R8, at!(ThreadRecord, flags));
    asm.jump_if_imm(If::AnyBit, R1, SEEDED as i32, kernel);
    asm.jump_if_imm(If::SignedAtLeast, R4, 0, known);
    // Marked as running already: its last end was missed.
    count_missed(asm, setting, R4);
    asm.place(kernel);
    asm.load(Double, R4, task, setting.kernel.task.sum_exec_runtime);
    asm.store_imm(Word, R8, at!(ThreadRecord, flags), 0);
    copy_counts(asm, setting, task);
    copy_waited(asm, setting, task);
    asm.place(known);
    asm.op(Op::Sub, R4, R9);
    asm.set64(R2, TIME);
    asm.op(Op::And, R4, R2);
    asm.set64(R3, ON);
    asm.op(Op::Or, R4, R3);
    asm.store_in_order(R8, at!(ThreadRecord, word), R4);
}

/// A thread in its last switch: its record stays readable until it is taken for another.
pub(super) fn mark_end(asm: &mut Asm) {
    let lives = asm.label();
    asm.store_imm(Word, R8, at!(ThreadRecord, flags), 0);
    asm.load(Double, R1, FP, stack::STATE);
    asm.op_imm(Op::And, R1, TASK_DEAD);
    asm.jump_if_imm(If::Equal, R1, 0, lives);
    asm.store_imm(Word, R8, at!(ThreadRecord, flags), ENDED as i32);
    asm.place(lives);
}

/// Gives back the element on the stack if its thread has ended. After its last word was published.
pub(super) fn free_if_ended(asm: &mut Asm, setting: &Setting) {
    let lives = asm.label();
    asm.load(Word, R1, R8, at!(ThreadRecord, flags));
    asm.op_imm(Op::And, R1, ENDED as i32);
    asm.jump_if_imm(If::Equal, R1, 0, lives);
    asm.map(R1, setting.maps.free);
    asm.mov(R2, FP);
    asm.op_imm(Op::Add, R2, i32::from(stack::ELEMENT));
    asm.set(R3, 0);
    asm.call(Helper::MapPush);
    asm.place(lives);
}
