//! The small programs: seed, fork, migration, exec, wake-ups; and events for the ring buffer.

use super::find::{Unknown, find, index_word};
use super::{Setting, activity, at, count_lost, element, record, stack};
use crate::asm::{
    Asm, Double, FP, Helper, If, Insn, Op, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Reg, Word,
};
use crate::layout::{Activity, RawEvent, kind};
use std::io;
use threadclock::table::layout::{ENDED, SEEDED, TIME, TableHeader, ThreadRecord};

/// The iterator of tasks, run before anything is attached: a record for each thread that is there.
/// One that runs meanwhile is behind until its next switch.
pub(crate) fn seed(setting: &Setting) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    // struct bpf_iter__task: meta, task, which is null at the end.
    asm.load(Double, R6, R1, 8);
    asm.jump_if_imm(If::Equal, R6, 0, none);
    find(&mut asm, setting, R6, Unknown::GetsRecord);
    asm.jump_if_imm(If::Equal, R8, 0, none);
    publish_unswitched(&mut asm, setting, R6);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// Publishes the record in r8 of a thread of which no switch has been seen.
fn publish_unswitched(asm: &mut Asm, setting: &Setting, task: Reg) {
    asm.store_imm(Word, R8, at!(ThreadRecord, flags), SEEDED as i32);
    asm.load(Double, R5, task, setting.kernel.task.sum_exec_runtime);
    asm.store(Double, R8, at!(ThreadRecord, kernel_ns), R5);
    asm.set64(R2, TIME);
    asm.op(Op::And, R5, R2);
    record::publish_off(asm);
}

/// `sched_process_fork`: a record for the child before it runs. Its parent is the process that
/// forked it, which may have ended, and left it to another one, by the child's first switch.
pub(crate) fn fork(setting: &Setting) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    find(&mut asm, setting, R7, Unknown::GetsRecord);
    asm.jump_if_imm(If::Equal, R8, 0, none);
    publish_unswitched(&mut asm, setting, R7);
    if setting.maps.pairs.is_some() {
        // A thread's parent stays that of its process.
        asm.load(Word, R1, R7, setting.kernel.task.pid);
        asm.load(Word, R2, R7, setting.kernel.task.tgid);
        asm.jump_if(If::NotEqual, R1, R2, none);
        asm.copy(Word, (R8, at!(Activity, parent)), (R6, setting.kernel.task.tgid), R1);
    }
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// `sched_migrate_task`, which also comes for a thread that stays on its CPU: set_task_cpu() counts
/// it only if it does not (kernel/sched/core.c). It comes before the kernel counts.
pub(crate) fn migrate(setting: &Setting) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    let of = &setting.kernel.task;
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    asm.load(Word, R1, R6, of.cpu);
    asm.jump_if(If::Equal, R1, R7, none);
    if let Some(events) = setting.maps.events {
        asm.call(Helper::KtimeGetNs);
        asm.mov(R9, R0);
        emit(&mut asm, setting, events, &RecordedEvent::Migrate);
    }
    find(&mut asm, setting, R6, Unknown::IsLeft);
    asm.jump_if_imm(If::Equal, R8, 0, none);
    asm.load(Word, R1, R6, of.migrations);
    asm.op_imm(Op::Add, R1, 1);
    asm.store(Word, R8, at!(ThreadRecord, migrations), R1);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// `sched_process_exec`: a new name; and if a thread that was not its process's first has called
/// execve(2), it has taken over the first one's id, and its own has ended (de_thread() in
/// fs/exec.c).
pub(crate) fn exec(setting: &Setting) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let [same, none] = [(); 2].map(|()| asm.label());
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    asm.load(Word, R1, R6, setting.kernel.task.pid);
    asm.jump_if(If::Equal, R1, R7, same);
    end_of_old_id(&mut asm, setting);
    asm.place(same);
    if setting.maps.pairs.is_some() {
        find(&mut asm, setting, R6, Unknown::IsLeft);
        asm.jump_if_imm(If::Equal, R8, 0, none);
        activity::copy_name(&mut asm, setting, R6);
        asm.place(none);
    }
    asm.exit();
    asm.finish()
}

/// Ends the record of the id in r7, which no thread has any longer.
fn end_of_old_id(asm: &mut Asm, setting: &Setting) {
    let [off, done] = [(); 2].map(|()| asm.label());
    asm.jump_if_imm(If::AtLeast, R7, setting.tids as i32, done);
    asm.mov(R2, R7);
    index_word(asm, setting, R2, done);
    asm.load(Word, R1, R0, 0);
    asm.store(Word, FP, stack::ELEMENT, R1);
    asm.jump_if_imm(If::Equal, R1, 0, done);
    element(asm, setting, stack::ELEMENT, done);
    asm.mov(R8, R0);
    asm.load(Word, R1, R8, at!(ThreadRecord, tid));
    asm.jump_if(If::NotEqual, R1, R7, done);
    asm.load(Word, R1, R8, at!(ThreadRecord, flags));
    asm.jump_if_imm(If::AnyBit, R1, ENDED as i32, done);
    asm.load(Double, R5, R8, at!(ThreadRecord, word));
    record::mark_busy(asm);
    asm.store_imm(Word, R8, at!(ThreadRecord, flags), ENDED as i32);
    asm.jump_if_imm(If::SignedAtLeast, R5, 0, off);
    asm.store(Double, FP, stack::SAVED, R5);
    asm.call(Helper::KtimeGetNs);
    asm.load(Double, R5, FP, stack::SAVED);
    asm.op(Op::Add, R5, R0);
    asm.place(off);
    asm.set64(R2, TIME);
    asm.op(Op::And, R5, R2);
    record::publish_off(asm);
    record::free_if_ended(asm, setting);
    asm.place(done);
}

/// `sched_wakeup` and `sched_wakeup_new`, for recordings only: how long a thread waits is known
/// without them.
pub(crate) fn wakeup(setting: &Setting, is_new: bool) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    if let Some(events) = setting.maps.events {
        asm.load(Double, R6, R1, 0);
        asm.call(Helper::KtimeGetNs);
        asm.mov(R9, R0);
        emit(
            &mut asm,
            setting,
            events,
            if is_new { &RecordedEvent::New } else { &RecordedEvent::Wakeup },
        );
    }
    asm.exit();
    asm.finish()
}

/// An event to record. Its time is in r9.
pub(super) enum RecordedEvent {
    /// From r6 to r7.
    Switch,
    /// Of r6.
    Wakeup,
    /// Of r6.
    New,
    /// Of r6 to the CPU r7.
    Migrate,
}

/// Records it, or counts it as lost. Readers are not woken: they look at their own times.
pub(super) fn emit(asm: &mut Asm, setting: &Setting, events: i32, event: &RecordedEvent) {
    const DO_NOT_WAKE: i32 = 1;
    let (of, recorded) = (&setting.kernel.task, asm.label());
    let at = |field: usize| stack::EVENT + field as i16;
    let first_tid = at(std::mem::offset_of!(RawEvent, first_tid));
    let second_tid = at(std::mem::offset_of!(RawEvent, second_tid));
    asm.store(Double, FP, stack::EVENT, R9);
    asm.call(Helper::SmpProcessorId);
    asm.op_imm(Op::Shl, R0, 16);
    let number = match event {
        RecordedEvent::Switch => kind::SWITCH,
        RecordedEvent::Wakeup => kind::WAKEUP,
        RecordedEvent::New => kind::NEW,
        RecordedEvent::Migrate => kind::MIGRATE,
    };
    asm.op_imm(Op::Or, R0, number as i32);
    asm.store(Word, FP, at(std::mem::offset_of!(RawEvent, kind_and_cpu)), R0);
    let second = if let RecordedEvent::Switch = event {
        asm.load(Double, R1, FP, stack::PREEMPT);
        asm.op_imm(Op::Shl, R1, 31);
        asm.load(Double, R2, FP, stack::STATE);
        asm.op(Op::Or, R1, R2);
        asm.copy(Word, (FP, first_tid), (R6, of.pid), R2);
        asm.copy(Word, (FP, first_tid + 8), (R6, of.prio), R2);
        R7
    } else {
        asm.call(Helper::CurrentPidTgid);
        asm.store(Word, FP, first_tid, R0);
        asm.store_imm(Word, FP, first_tid + 8, 0);
        match event {
            RecordedEvent::Migrate => asm.mov(R1, R7),
            _ => asm.load(Word, R1, R6, of.cpu),
        }
        R6
    };
    asm.store(Word, FP, at(std::mem::offset_of!(RawEvent, state)), R1);
    asm.copy(Word, (FP, second_tid), (second, of.pid), R2);
    asm.copy(Word, (FP, second_tid + 8), (second, of.prio), R2);
    asm.map(R1, events);
    asm.mov(R2, FP);
    asm.op_imm(Op::Add, R2, i32::from(stack::EVENT));
    asm.set(R3, size_of::<RawEvent>() as i32);
    asm.set(R4, DO_NOT_WAKE);
    asm.call(Helper::RingbufOutput);
    asm.jump_if_imm(If::Equal, R0, 0, recorded);
    count_lost(asm, setting, at!(TableHeader, events_lost), None);
    asm.place(recorded);
}
