//! From a task to its record.

use super::{Setting, at, count_lost, element, record, stack};
use crate::asm::{Asm, Double, FP, Helper, If, Label, Op, R0, R1, R2, R3, R4, R8, Reg, Word};
use threadclock::table::layout::{ENDED, TableHeader, ThreadRecord};

/// Whether a thread that has no record yet gets one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    GetsRecord,
    IsLeft,
}

/// r8 = the record of the task in `task` (r6, r7 or r9), or 0. A record that another thread had
/// under this id is not taken. The element's number is on the stack. Clobbers r0 to r5.
pub(super) fn find(asm: &mut Asm, setting: &Setting, task: Reg, unknown: Unknown) {
    let of = &setting.kernel.task;
    let [done, other, new, lost] = [(); 4].map(|()| asm.label());
    asm.set(R8, 0);
    asm.load(Word, R2, task, of.pid);
    // The idle threads, of which each CPU has one of this id.
    asm.jump_if_imm(If::Equal, R2, 0, done);
    asm.jump_if_imm(If::AtLeast, R2, setting.tids as i32, lost);
    index_word(asm, setting, R2, done);
    asm.store(Double, FP, stack::INDEX, R0);
    asm.load(Word, R1, R0, 0);
    asm.store(Word, FP, stack::ELEMENT, R1);
    asm.jump_if_imm(If::Equal, R1, 0, new);
    element(asm, setting, stack::ELEMENT, done);
    asm.load(Word, R1, R0, at!(ThreadRecord, tid));
    asm.load(Word, R2, task, of.pid);
    asm.jump_if(If::NotEqual, R1, R2, new);
    asm.load(Double, R3, task, of.start_time);
    asm.load(Double, R4, R0, at!(ThreadRecord, start_ns));
    asm.jump_if(If::NotEqual, R3, R4, other);
    asm.load(Word, R1, R0, at!(ThreadRecord, flags));
    asm.jump_if_imm(If::AnyBit, R1, ENDED as i32, new);
    asm.mov(R8, R0);
    asm.jump(done);
    asm.place(other);
    // The id was given to a younger thread while this one was ending: its rest is nobody's.
    asm.jump_if(If::Greater, R4, R3, done);
    asm.place(new);
    if unknown == Unknown::GetsRecord {
        take_record(asm, setting, task, lost, done);
    }
    asm.jump(done);
    asm.place(lost);
    count_lost(asm, setting, at!(TableHeader, threads_lost), None);
    asm.place(done);
}

/// r0 = the index's word of the thread id in `tid` (r2), else to `none`.
pub(super) fn index_word(asm: &mut Asm, setting: &Setting, tid: Reg, none: Label) {
    let words = setting.record_bytes / size_of::<u32>() as u32;
    asm.store(Double, FP, stack::INDEX, tid);
    asm.mov(R1, tid);
    asm.op_imm(Op::Shr, R1, words.trailing_zeros() as i32);
    asm.op_imm(Op::Add, R1, setting.index_at as i32);
    asm.store(Word, FP, stack::KEY, R1);
    element(asm, setting, stack::KEY, none);
    asm.load(Double, R2, FP, stack::INDEX);
    asm.op_imm(Op::And, R2, words as i32 - 1);
    asm.op_imm(Op::Shl, R2, 2);
    asm.op(Op::Add, R0, R2);
}

/// Takes a free record, the one that has been free for longest: one that has ended can be read for
/// as long as possible.
fn take_record(asm: &mut Asm, setting: &Setting, task: Reg, lost: Label, done: Label) {
    asm.map(R1, setting.maps.free);
    asm.mov(R2, FP);
    asm.op_imm(Op::Add, R2, i32::from(stack::ELEMENT));
    asm.call(Helper::MapPop);
    asm.jump_if_imm(If::NotEqual, R0, 0, lost);
    element(asm, setting, stack::ELEMENT, done);
    asm.mov(R8, R0);
    record::begin(asm, setting, task);
    asm.load(Double, R1, FP, stack::INDEX);
    asm.load(Word, R2, FP, stack::ELEMENT);
    asm.store(Word, R1, 0, R2);
}
