//! The small programs: seed, fork, migration, exec, wake-ups. Each begins with r1, the address of its
//! tracepoint's arguments, of eight bytes each.

use super::event::{RecordedEvent, record_event};
use super::find::{MissingRecord, find, index_word};
use super::{ProgramTarget, activity, element, offset, record, stack};
use crate::asm::{
    AluOp, Asm, Double, FP, Insn, JumpIf, KernelHelper, R0, R1, R2, R5, R6, R7, R8, R9, Reg, Word,
};
use crate::layout::ThreadActivity;
use std::io;
use threadclock::table::layout::{ENDED, SEEDED, TIME, ThreadRecord};

/// The program of the task iterator, which runs before anything is attached: it makes a record for
/// each thread that exists. That of a thread which runs meanwhile is behind until its next switch.
pub(crate) fn seed(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    // struct bpf_iter__task: meta, task, which is null at the end.
    asm.load(Double, R6, R1, 8);
    asm.jump_if_imm(JumpIf::Equal, R6, 0, none);
    find(&mut asm, target, R6, MissingRecord::Take);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, none);
    publish_unswitched(&mut asm, target, R6);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// Publishes the record in r8 of a thread of which no switch has been seen.
pub(super) fn publish_unswitched(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), SEEDED as i32);
    asm.load(Double, R5, task, target.kernel.task.sum_exec_runtime);
    asm.store(Double, R8, offset!(ThreadRecord, kernel_ns), R5);
    asm.set64(R2, TIME);
    asm.op(AluOp::And, R5, R2);
    record::publish_off(asm);
}

/// The program of `sched_process_fork`: it makes a record for the child before it runs. Its parent
/// is the process that forked it; by the child's first switch that may have ended, and the kernel
/// names another one.
pub(crate) fn fork(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    find(&mut asm, target, R7, MissingRecord::Take);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, none);
    publish_unswitched(&mut asm, target, R7);
    if target.maps.pairs.is_some() {
        // A thread's parent stays that of its process.
        asm.load(Word, R1, R7, target.kernel.task.pid);
        asm.load(Word, R2, R7, target.kernel.task.tgid);
        asm.jump_if(JumpIf::NotEqual, R1, R2, none);
        asm.copy(Word, (R8, offset!(ThreadActivity, parent)), (R6, target.kernel.task.tgid), R1);
    }
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// The program of `sched_migrate_task`. The tracepoint also comes for a thread that stays on its CPU,
/// which set_task_cpu() does not count (kernel/sched/core.c), and it comes before the kernel counts.
pub(crate) fn migrate(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    let offsets = &target.kernel.task;
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    asm.load(Word, R1, R6, offsets.cpu);
    asm.jump_if(JumpIf::Equal, R1, R7, none);
    if let Some(events) = target.maps.events {
        asm.call(KernelHelper::KtimeGetNs);
        asm.mov(R9, R0);
        record_event(&mut asm, target, events, RecordedEvent::Migrate);
    }
    find(&mut asm, target, R6, MissingRecord::Skip);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, none);
    asm.load(Word, R1, R6, offsets.migrations);
    asm.op_imm(AluOp::Add, R1, 1);
    asm.store(Word, R8, offset!(ThreadRecord, migrations), R1);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// The program of `sched_process_exec`: it copies the new name. If a thread that was not its
/// process's first has called execve(2), it has taken over the first one's id, and its own old id
/// has ended (de_thread() in fs/exec.c).
pub(crate) fn exec(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let [same_id, none] = asm.labels();
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    asm.load(Word, R1, R6, target.kernel.task.pid);
    asm.jump_if(JumpIf::Equal, R1, R7, same_id);
    end_of_old_id(&mut asm, target);
    asm.place(same_id);
    if target.maps.pairs.is_some() {
        find(&mut asm, target, R6, MissingRecord::Skip);
        asm.jump_if_imm(JumpIf::Equal, R8, 0, none);
        activity::copy_name(&mut asm, target, R6);
        asm.place(none);
    }
    asm.exit();
    asm.finish()
}

/// Ends the record of the id in r7, which no thread has any more.
fn end_of_old_id(asm: &mut Asm, target: &ProgramTarget) {
    let [off, done] = asm.labels();
    asm.jump_if_imm(JumpIf::AtLeast, R7, target.tids as i32, done);
    asm.mov(R2, R7);
    index_word(asm, target, R2, done);
    asm.load(Word, R1, R0, 0);
    asm.store(Word, FP, stack::ELEMENT, R1);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, done);
    element(asm, target, stack::ELEMENT, done);
    asm.mov(R8, R0);
    asm.load(Word, R1, R8, offset!(ThreadRecord, tid));
    asm.jump_if(JumpIf::NotEqual, R1, R7, done);
    asm.load(Word, R1, R8, offset!(ThreadRecord, flags));
    asm.jump_if_imm(JumpIf::AnyBit, R1, ENDED as i32, done);
    asm.load(Double, R5, R8, offset!(ThreadRecord, word));
    record::mark_busy(asm);
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), ENDED as i32);
    asm.jump_if_imm(JumpIf::SignedAtLeast, R5, 0, off);
    asm.store(Double, FP, stack::SAVED, R5);
    asm.call(KernelHelper::KtimeGetNs);
    asm.load(Double, R5, FP, stack::SAVED);
    asm.op(AluOp::Add, R5, R0);
    asm.place(off);
    asm.set64(R2, TIME);
    asm.op(AluOp::And, R5, R2);
    record::publish_off(asm);
    record::free_if_ended(asm, target);
    asm.place(done);
}

/// The program of `sched_wakeup` and `sched_wakeup_new`, for recordings only: how long a thread
/// waits is known without them.
pub(crate) fn wakeup(target: &ProgramTarget, is_new: bool) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    if let Some(events) = target.maps.events {
        asm.load(Double, R6, R1, 0);
        asm.call(KernelHelper::KtimeGetNs);
        asm.mov(R9, R0);
        let event = if is_new { RecordedEvent::New } else { RecordedEvent::Wakeup };
        record_event(&mut asm, target, events, event);
    }
    asm.exit();
    asm.finish()
}
