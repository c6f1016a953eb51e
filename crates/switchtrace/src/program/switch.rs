//! The program of `sched_switch`. r6 is the thread that leaves (prev), r7 the one that comes (next),
//! r8 the record of one of them (or 0), r9 the time.

use super::event::{RecordedEvent, record_event};
use super::find::{MissingRecord, find};
use super::{ProgramTarget, activity, record, stack};
use crate::asm::{Asm, Double, FP, Insn, JumpIf, KernelHelper, R0, R1, R2, R6, R7, R8, R9, Word};
use std::io;

pub(crate) fn switch(target: &ProgramTarget) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let [read_clock, left] = asm.labels();
    load_arguments(&mut asm, target);
    find(&mut asm, target, R6, MissingRecord::Take);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, read_clock);
    record::mark_busy(&mut asm);
    asm.place(read_clock);
    asm.call(KernelHelper::KtimeGetNs);
    asm.mov(R9, R0);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, left);
    leave(&mut asm, target);
    asm.place(left);
    if let Some(events) = target.maps.events {
        record_event(&mut asm, target, events, RecordedEvent::Switch);
    }
    enter(&mut asm, target);
    asm.exit();
    asm.finish()
}

/// Loads the arguments of the tracepoint, to which r1 points at first.
fn load_arguments(asm: &mut Asm, target: &ProgramTarget) {
    let arguments = &target.kernel.switch;
    asm.load(Double, R6, R1, arguments.prev);
    asm.load(Double, R7, R1, arguments.next);
    asm.copy(Double, (FP, stack::PREEMPT), (R1, arguments.preempt), R2);
    match arguments.state {
        Some(state) => asm.load(Double, R2, R1, state),
        None => asm.load(Word, R2, R6, target.kernel.task.state),
    }
    asm.store(Double, FP, stack::STATE, R2);
}

/// Updates the record in r8 of the thread in r6, which leaves.
fn leave(asm: &mut Asm, target: &ProgramTarget) {
    if target.maps.pairs.is_some() {
        activity::switched_out(asm, target);
    }
    record::copy_counts(asm, target, R6);
    record::copy_waited(asm, target, R6);
    record::time_at_end(asm, target, R6);
    record::mark_ended(asm);
    record::publish_off(asm);
    if let Some(pairs) = target.maps.pairs {
        activity::count_pair(asm, target, pairs);
    }
    record::free_if_ended(asm, target);
}

/// Updates the record of the thread in r7, which comes.
fn enter(asm: &mut Asm, target: &ProgramTarget) {
    let done = asm.label();
    find(asm, target, R7, MissingRecord::Take);
    asm.jump_if_imm(JumpIf::Equal, R8, 0, done);
    if target.maps.pairs.is_some() {
        activity::switched_in(asm);
    }
    record::publish_on(asm, target, R7);
    asm.place(done);
}
