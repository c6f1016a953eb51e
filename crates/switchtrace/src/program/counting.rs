//! The programs of a counter, which has none at switches.
//!
//! A record's identity for readers is that of its thread's birth, kept in the record
//! ([`crate::layout`]): execve(2) by a thread that is not its process's first gives it another id and
//! another start, and its counts go on.
//!
//! ```text
//! thread 11 of process 10 calls execve(2):     record of 10     record of 11
//!   before                                     tid 10           tid 11
//!   de_thread() in fs/exec.c: 10 ends, 11 becomes 10, with the start of 10
//!   take_over                                  ended            tid 10; still known as 11
//!   sched_process_free of the first thread, now called 11: a record of its last counts
//! ```

use super::find::{MissingRecord, find, index_word, take_record};
use super::others::publish_unswitched;
use super::{ProgramTarget, count_lost, element, offset, record, stack};
use crate::asm::{
    AluOp, Asm, Double, FP, Insn, JumpIf, KernelHelper, Label, R0, R1, R2, R6, R7, R8, R9, Word,
};
use crate::layout::LOOK_SHIFT;
use std::io;
use threadclock::table::layout::{ENDED, SEEDED, TableHeader, ThreadRecord};

/// Bit of `exit_state` of a task that is no longer in the kernel's lists (include/linux/sched.h).
const EXIT_DEAD: i32 = 0x10;

/// Place of `session_id` in `struct bpf_iter_meta` (include/linux/bpf.h). The kernel numbers all passes
/// of its iterators.
const SESSION_ID: i16 = 8;

/// The program of the task iterator: it copies the kernel's counts and CPU time of each thread, and
/// leaves the number of the look in its record.
///
/// Between two tasks the iterator holds a reference alone, and not RCU: one that is dead may have been
/// freed for [`free`], whose word is the last. While the program runs, RCU keeps those from it that die
/// meanwhile.
pub(crate) fn refresh(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    // As in `seed`.
    asm.load(Double, R6, R1, 8);
    asm.jump_if_imm(JumpIf::Equal, R6, 0, none);
    asm.load(Double, R7, R1, 0);
    asm.load(Word, R7, R7, SESSION_ID);
    asm.op_imm(AluOp::Shl, R7, LOOK_SHIFT as i32);
    asm.op_imm(AluOp::Or, R7, SEEDED as i32);
    asm.load(Word, R1, R6, target.kernel.task.exit_state);
    asm.jump_if_imm(JumpIf::AnyBit, R1, EXIT_DEAD, none);
    copy_task(&mut asm, target, none);
    asm.store(Word, R8, offset!(ThreadRecord, flags), R7);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// The program of `sched_process_free`: it copies the last counts of a thread and ends its record. The
/// thread has left its CPU for good, and [`refresh`] leaves it alone.
pub(crate) fn free(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let none = asm.label();
    asm.load(Double, R6, R1, 0);
    copy_task(&mut asm, target, none);
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), ENDED as i32);
    record::free_if_ended(&mut asm, target);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// Copies counts and CPU time of the task in r6 to its record, r8; goes to `none` if it has none.
fn copy_task(asm: &mut Asm, target: &ProgramTarget, none: Label) {
    find(asm, target, R6, MissingRecord::Take);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, none);
    record::copy_switches(asm, target, R6);
    publish_unswitched(asm, target, R6);
}

/// The program of `sched_process_exec`: if the task in r6 has taken over its first thread's id, its
/// record goes with it, and that of the first thread ends. r7 is the id that it had, r9 the one that
/// is looked up.
pub(crate) fn take_over(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let [no_first, unseen, lost, end_first, none] = asm.labels();
    asm.load(Double, R6, R1, 0);
    asm.load(Double, R7, R1, 8);
    asm.load(Word, R9, R6, target.kernel.task.pid);
    asm.jump_if(JumpIf::Equal, R9, R7, none);
    find_living(&mut asm, target, none);
    asm.copy(Double, (FP, stack::FIRST_INDEX), (FP, stack::INDEX), R1);
    asm.store_imm(Word, FP, stack::FIRST_ELEMENT, 0);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, no_first);
    asm.copy(Word, (FP, stack::FIRST_ELEMENT), (FP, stack::ELEMENT), R1);
    asm.place(no_first);
    asm.mov(R9, R7);
    find_living(&mut asm, target, none);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, unseen);
    rename(&mut asm, target);
    asm.jump(end_first);
    asm.place(unseen);
    // Without a record of either, the next look takes one.
    asm.load(Word, R1, FP, stack::FIRST_ELEMENT);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, none);
    asm.copy(Double, (FP, stack::INDEX), (FP, stack::FIRST_INDEX), R1);
    take_record(&mut asm, target, R6, lost, none);
    begin_anew(&mut asm, target);
    asm.jump(end_first);
    asm.place(lost);
    count_lost(&mut asm, target, offset!(TableHeader, threads_lost), None);
    asm.place(end_first);
    end_first_thread(&mut asm, target, none);
    asm.place(none);
    asm.exit();
    asm.finish()
}

/// r8 = the record of the living thread whose id is r9, or 0; its element number and the address of
/// its index word are left on the stack. Goes to `none` if the index has no such id.
fn find_living(asm: &mut Asm, target: &ProgramTarget, none: Label) {
    let done = asm.label();
    asm.set(R8, 0);
    asm.jump_if_imm(JumpIf::AtLeast, R9, target.tids as i32, none);
    index_word(asm, target, R9, none);
    asm.store(Double, FP, stack::INDEX, R0);
    asm.load(Word, R1, R0, 0);
    asm.store(Word, FP, stack::ELEMENT, R1);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, done);
    element(asm, target, stack::ELEMENT, done);
    asm.load(Word, R1, R0, offset!(ThreadRecord, tid));
    asm.jump_if(JumpIf::NotEqual, R1, R9, done);
    asm.load(Word, R1, R0, offset!(ThreadRecord, flags));
    asm.jump_if_imm(JumpIf::AnyBit, R1, ENDED as i32, done);
    asm.mov(R8, R0);
    asm.place(done);
}

/// Gives the record in r8 the id and start that the task in r6 has now.
fn rename(asm: &mut Asm, target: &ProgramTarget) {
    let offsets = &target.kernel.task;
    record::mark_busy(asm);
    asm.copy(Word, (R8, offset!(ThreadRecord, tid)), (R6, offsets.pid), R1);
    asm.copy(Double, (R8, offset!(ThreadRecord, start_ns)), (R6, offsets.start_time), R1);
    record::copy_switches(asm, target, R6);
    publish_unswitched(asm, target, R6);
    asm.load(Double, R1, FP, stack::FIRST_INDEX);
    asm.load(Word, R2, FP, stack::ELEMENT);
    asm.store(Word, R1, 0, R2);
}

/// Publishes the record in r8, which was just taken for the task in r6. No look has seen the thread, so
/// it was born since the last one; when, de_thread() has overwritten.
fn begin_anew(asm: &mut Asm, target: &ProgramTarget) {
    asm.call(KernelHelper::KtimeGetNs);
    asm.store(Double, R8, record::BORN_NS, R0);
    asm.store(Word, R8, record::BORN_TID, R7);
    publish_unswitched(asm, target, R6);
}

/// Ends the record of the first thread, which has counts up to the last look.
fn end_first_thread(asm: &mut Asm, target: &ProgramTarget, none: Label) {
    asm.load(Word, R1, FP, stack::FIRST_ELEMENT);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, none);
    asm.store(Word, FP, stack::ELEMENT, R1);
    element(asm, target, stack::ELEMENT, none);
    asm.mov(R8, R0);
    asm.store_imm(Word, R8, offset!(ThreadRecord, flags), ENDED as i32);
    record::free_if_ended(asm, target);
}
