//! The way from a task to its record, by the index:
//!
//! ```text
//! index word of the id     record there                       what is done
//! 0                        -                                  take a free record
//! element 7                another id (it was given away)     take a free record
//! element 7                same id, same start, not ended     found
//! element 7                same id, same start, ended         take a free record
//! element 7                same id, younger than the task     none: the task is ending
//! element 7                same id, older than the task       take a free record
//! ```

use super::{ProgramTarget, count_lost, element, offset, record, stack};
use crate::asm::{
    AluOp, Asm, Double, FP, JumpIf, KernelHelper, Label, R0, R1, R2, R3, R4, R8, Reg, Word,
};
use threadclock::table::layout::{ENDED, TableHeader, ThreadRecord};

/// The treatment of a thread that has no record yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingRecord {
    /// It gets a free one.
    Take,
    /// It stays without.
    Skip,
}

/// r8 = the record of the task in `task` (r6, r7 or r9), or 0. The record's element number is left
/// on the stack. Clobbers r0 to r5.
pub(super) fn find(asm: &mut Asm, target: &ProgramTarget, task: Reg, missing: MissingRecord) {
    let offsets = &target.kernel.task;
    let [done, other_thread, no_record, lost] = asm.labels();
    asm.set(R8, 0);
    asm.load(Word, R2, task, offsets.pid);
    // Each CPU has an idle thread with id 0; they have no records.
    asm.jump_if_imm(JumpIf::Equal, R2, 0, done);
    asm.jump_if_imm(JumpIf::AtLeast, R2, target.tids as i32, lost);
    index_word(asm, target, R2, done);
    asm.store(Double, FP, stack::INDEX, R0);
    asm.load(Word, R1, R0, 0);
    asm.store(Word, FP, stack::ELEMENT, R1);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, no_record);
    element(asm, target, stack::ELEMENT, done);
    asm.load(Word, R1, R0, offset!(ThreadRecord, tid));
    asm.load(Word, R2, task, offsets.pid);
    asm.jump_if(JumpIf::NotEqual, R1, R2, no_record);
    asm.load(Double, R3, task, offsets.start_time);
    asm.load(Double, R4, R0, offset!(ThreadRecord, start_ns));
    asm.jump_if(JumpIf::NotEqual, R3, R4, other_thread);
    asm.load(Word, R1, R0, offset!(ThreadRecord, flags));
    asm.jump_if_imm(JumpIf::AnyBit, R1, ENDED as i32, no_record);
    asm.mov(R8, R0);
    asm.jump(done);
    asm.place(other_thread);
    // The id was given to a younger thread while this one was ending: its last time is not kept.
    asm.jump_if(JumpIf::Greater, R4, R3, done);
    asm.place(no_record);
    if missing == MissingRecord::Take {
        take_record(asm, target, task, lost, done);
    }
    asm.jump(done);
    asm.place(lost);
    count_lost(asm, target, offset!(TableHeader, threads_lost), None);
    asm.place(done);
}

/// r0 = address of the index's word of the thread id in `tid` (r2); goes to `none` if there is none.
pub(super) fn index_word(asm: &mut Asm, target: &ProgramTarget, tid: Reg, none: Label) {
    let words_per_element = target.record_bytes / size_of::<u32>() as u32;
    asm.store(Double, FP, stack::INDEX, tid);
    asm.mov(R1, tid);
    asm.op_imm(AluOp::Shr, R1, words_per_element.trailing_zeros() as i32);
    asm.op_imm(AluOp::Add, R1, target.index_at as i32);
    asm.store(Word, FP, stack::KEY, R1);
    element(asm, target, stack::KEY, none);
    asm.load(Double, R2, FP, stack::INDEX);
    asm.op_imm(AluOp::And, R2, words_per_element as i32 - 1);
    asm.op_imm(AluOp::Shl, R2, 2);
    asm.op(AluOp::Add, R0, R2);
}

/// Takes the record that has been free for longest, so that threads that have ended can be read for
/// as long as possible. Goes to `lost` if none is free.
pub(super) fn take_record(
    asm: &mut Asm,
    target: &ProgramTarget,
    task: Reg,
    lost: Label,
    done: Label,
) {
    asm.map(R1, target.maps.free);
    asm.stack_address(R2, stack::ELEMENT);
    asm.call(KernelHelper::MapPop);
    asm.jump_if_imm(JumpIf::NotEqual, R0, 0, lost);
    element(asm, target, stack::ELEMENT, done);
    asm.mov(R8, R0);
    record::begin(asm, target, task);
    asm.load(Double, R1, FP, stack::INDEX);
    asm.load(Word, R2, FP, stack::ELEMENT);
    asm.store(Word, R1, 0, R2);
}
