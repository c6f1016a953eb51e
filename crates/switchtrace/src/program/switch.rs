//! `sched_switch`: r6 is the thread that leaves (prev), r7 the one that comes (next), r9 the time.

use super::find::{Unknown, find};
use super::others::{RecordedEvent, emit};
use super::{Setting, activity, record, stack};
use crate::asm::{Asm, Double, FP, Helper, If, Insn, R0, R1, R2, R6, R7, R8, R9, Word};
use std::io;

pub(crate) fn switch(setting: &Setting) -> io::Result<Vec<Insn>> {
    let mut asm = Asm::default();
    let [clock, gone] = [(); 2].map(|()| asm.label());
    arguments(&mut asm, setting);
    find(&mut asm, setting, R6, Unknown::GetsRecord);
    asm.jump_if_imm(If::Equal, R8, 0, clock);
    record::mark_busy(&mut asm);
    asm.place(clock);
    asm.call(Helper::KtimeGetNs);
    asm.mov(R9, R0);
    asm.jump_if_imm(If::Equal, R8, 0, gone);
    leave(&mut asm, setting);
    asm.place(gone);
    if let Some(events) = setting.maps.events {
        emit(&mut asm, setting, events, &RecordedEvent::Switch);
    }
    enter(&mut asm, setting);
    asm.exit();
    asm.finish()
}

fn arguments(asm: &mut Asm, setting: &Setting) {
    let at = &setting.kernel.switch;
    asm.load(Double, R6, R1, at.prev);
    asm.load(Double, R7, R1, at.next);
    asm.copy(Double, (FP, stack::PREEMPT), (R1, at.preempt), R2);
    match at.state {
        Some(state) => asm.load(Double, R2, R1, state),
        None => asm.load(Word, R2, R6, setting.kernel.task.state),
    }
    asm.store(Double, FP, stack::STATE, R2);
}

fn leave(asm: &mut Asm, setting: &Setting) {
    if setting.maps.pairs.is_some() {
        activity::switched_out(asm, setting);
    }
    record::copy_counts(asm, setting, R6);
    record::copy_waited(asm, setting, R6);
    record::time_at_end(asm, setting, R6);
    record::mark_end(asm);
    record::publish_off(asm);
    if let Some(pairs) = setting.maps.pairs {
        activity::count_pair(asm, setting, pairs);
    }
    record::free_if_ended(asm, setting);
}

fn enter(asm: &mut Asm, setting: &Setting) {
    let none = asm.label();
    find(asm, setting, R7, Unknown::GetsRecord);
    asm.jump_if_imm(If::Equal, R8, 0, none);
    if setting.maps.pairs.is_some() {
        activity::switched_in(asm);
    }
    record::publish_on(asm, setting, R7);
    asm.place(none);
}
