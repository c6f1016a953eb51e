//! What is aggregated of each thread: why and how long it was off the CPU, how long on it, how long
//! it waited, whom it was switched to. r8 is its [`Activity`], r9 the time, throughout.

use super::{Setting, at, count_lost, look_up, stack};
use crate::asm::{
    Asm, Double, FP, Helper, If, Label, Op, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Reg, Word,
};
use crate::cause::{SwitchCause, histogram};
use crate::layout::{
    ACTIVITY_BYTES, Activity, FIRST_SHIFT, TASK_DEAD, TASK_INTERRUPTIBLE, TASK_NOLOAD,
    TASK_UNINTERRUPTIBLE,
};
use threadclock::table::layout::{TableHeader, ThreadRecord};

/// Clears what another thread has left.
pub(super) fn begin(asm: &mut Asm, setting: &Setting, task: Reg) {
    for offset in (at!(Activity, out_ns)..ACTIVITY_BYTES as i16).step_by(8) {
        asm.store_imm(Double, R8, offset, 0);
    }
    copy_name(asm, setting, task);
    asm.load(Double, R2, task, setting.kernel.task.parent);
    asm.copy(Word, (R8, at!(Activity, parent)), (R2, setting.kernel.task.tgid), R1);
}

/// The thread's name (comm).
pub(super) fn copy_name(asm: &mut Asm, setting: &Setting, task: Reg) {
    for half in [0, 8] {
        let (to, from) = (at!(Activity, comm) + half, setting.kernel.task.comm + half);
        asm.copy(Double, (R8, to), (task, from), R1);
    }
}

/// The thread in r6 is switched out. Before the record's counts are renewed.
pub(super) fn switched_out(asm: &mut Asm, setting: &Setting) {
    let unseen = asm.label();
    cause_of_switch(asm, setting);
    asm.store(Double, R8, at!(Activity, out_ns), R9);
    // Threads are named after they have begun to run (pthread_setname_np(3)).
    copy_name(asm, setting, R6);
    asm.load(Double, R1, R8, at!(Activity, in_ns));
    asm.jump_if_imm(If::Equal, R1, 0, unseen);
    asm.store_imm(Double, R8, at!(Activity, in_ns), 0);
    asm.mov(R2, R9);
    asm.op(Op::Sub, R2, R1);
    add_to_histogram(asm, Some(histogram::BURST));
    if let Some(run_delay) = setting.kernel.task.run_delay {
        asm.load(Double, R2, R6, run_delay);
        asm.load(Double, R1, R8, at!(ThreadRecord, waited_ns));
        asm.op(Op::Sub, R2, R1);
        add_to_histogram(asm, Some(histogram::WAIT));
    }
    asm.place(unseen);
}

/// The thread in r7 is switched in.
pub(super) fn switched_in(asm: &mut Asm) {
    let unseen = asm.label();
    asm.store(Double, R8, at!(Activity, in_ns), R9);
    asm.load(Double, R1, R8, at!(Activity, out_ns));
    asm.jump_if_imm(If::Equal, R1, 0, unseen);
    asm.mov(R2, R9);
    asm.op(Op::Sub, R2, R1);
    add_to_histogram(asm, None);
    asm.place(unseen);
}

/// Stores why the thread in r6 leaves its CPU. Voluntary is what the kernel counts so; a switch
/// that was not seen before in a seeded record may be taken for the other kind if a signal came
/// with it.
fn cause_of_switch(asm: &mut Asm, setting: &Setting) {
    let [asleep, off_by_itself, known] = [(); 3].map(|()| asm.label());
    asm.set(R5, SwitchCause::Preempted as i32);
    asm.load(Double, R1, FP, stack::PREEMPT);
    asm.jump_if_imm(If::NotEqual, R1, 0, known);
    asm.load(Double, R1, FP, stack::STATE);
    asm.jump_if_imm(If::NotEqual, R1, 0, off_by_itself);
    // It went to sleep, and a signal was there first: the kernel counts it as voluntary.
    asm.load(Double, R1, R6, setting.kernel.task.nvcsw);
    asm.load(Double, R2, R8, at!(ThreadRecord, voluntary));
    asm.jump_if(If::NotEqual, R1, R2, asleep);
    cause_of_yield(asm, setting, known);
    asm.jump(known);
    asm.place(off_by_itself);
    cause_of_sleep(asm, asleep, known);
    asm.place(asleep);
    asm.set(R5, SwitchCause::Sleep as i32);
    asm.place(known);
    asm.store(Word, R8, at!(Activity, cause), R5);
}

/// r5 = the cause of a thread that sleeps in the state in r1; ends at one of the labels.
fn cause_of_sleep(asm: &mut Asm, asleep: Label, known: Label) {
    asm.mov(R2, R1);
    asm.op_imm(Op::And, R2, TASK_UNINTERRUPTIBLE | TASK_NOLOAD);
    asm.set(R5, SwitchCause::Uninterruptible as i32);
    asm.jump_if_imm(If::Equal, R2, TASK_UNINTERRUPTIBLE, known);
    asm.jump_if_imm(If::AnyBit, R1, TASK_INTERRUPTIBLE | TASK_NOLOAD, asleep);
    asm.set(R5, SwitchCause::Other as i32);
    asm.jump(known);
}

/// r5 = [`SwitchCause::Yielded`] if the thread in r6 is in sched_yield(2), which counts as involuntary.
fn cause_of_yield(asm: &mut Asm, setting: &Setting, known: Label) {
    let Some(sign) = &setting.kernel.yields else { return };
    let width = if sign.is_64_bit { Double } else { Word };
    asm.mov(R1, R6);
    asm.call(Helper::TaskPtRegs);
    asm.load(width, R1, R0, sign.offset);
    asm.set(R5, SwitchCause::Preempted as i32);
    asm.jump_if_imm(If::NotEqual, R1, sign.number, known);
    asm.increment(Double, R8, at!(Activity, yields), R1);
    asm.set(R5, SwitchCause::Yielded as i32);
}

/// Counts r2 nanoseconds in a histogram; without one, in that of the cause of the thread's last
/// switch. Clobbers r1 to r4.
fn add_to_histogram(asm: &mut Asm, which: Option<usize>) {
    let at_histogram = |number: usize| at!(Activity, histograms) + (number * 128) as i16;
    // r3 = 4 * floor(log2(r2 / 64)), at most 4 * 31.
    let in_range = asm.label();
    asm.op_imm(Op::Shr, R2, FIRST_SHIFT as i32);
    asm.set(R3, 0);
    asm.set64(R1, 1 << 32);
    asm.jump_if(If::Less, R2, R1, in_range);
    asm.set64(R2, u64::from(u32::MAX));
    asm.place(in_range);
    for bits in [16, 8, 4, 2, 1] {
        let less = asm.label();
        asm.mov(R1, R2);
        asm.op_imm(Op::Shr, R1, bits);
        asm.jump_if_imm(If::Equal, R1, 0, less);
        asm.mov(R2, R1);
        asm.op_imm(Op::Add, R3, 4 * bits);
        asm.place(less);
    }
    let base = match which {
        Some(number) => at_histogram(number),
        None => {
            let known = asm.label();
            asm.load(Word, R1, R8, at!(Activity, cause));
            // For the verifier.
            asm.jump_if_imm(If::Less, R1, SwitchCause::ALL.len() as i32, known);
            asm.set(R1, SwitchCause::Other as i32);
            asm.place(known);
            asm.op_imm(Op::Shl, R1, 7);
            asm.op(Op::Add, R3, R1);
            at_histogram(histogram::OFF)
        }
    };
    asm.mov(R4, R8);
    asm.op(Op::Add, R4, R3);
    asm.increment(Word, R4, base, R1);
}

/// `to` = the name of the thread in `task`: its id, and above it its start in units of 1,024 ns. 0
/// for the idle threads. Clobbers r1.
pub(super) fn thread_name(asm: &mut Asm, setting: &Setting, task: Reg, to: Reg) {
    let done = asm.label();
    asm.load(Word, to, task, setting.kernel.task.pid);
    asm.jump_if_imm(If::Equal, to, 0, done);
    asm.load(Double, R1, task, setting.kernel.task.start_time);
    asm.op_imm(Op::Shr, R1, 10);
    asm.op_imm(Op::Shl, R1, 32);
    asm.op(Op::Or, to, R1);
    asm.place(done);
}

/// Counts the switch from the thread in r6, whose activity r8 is, to that in r7. The last pair is
/// counted in the thread's own activity, and goes to the map when another follows, or at its end.
pub(super) fn count_pair(asm: &mut Asm, setting: &Setting, pairs: i32) {
    let [same, voluntary, counted, done] = [(); 4].map(|()| asm.label());
    thread_name(asm, setting, R7, R2);
    asm.load(Double, R1, R8, at!(Activity, pair_next));
    asm.jump_if(If::Equal, R1, R2, same);
    asm.store(Double, FP, stack::SAVED, R2);
    flush_pair(asm, setting, pairs);
    asm.copy(Double, (R8, at!(Activity, pair_next)), (FP, stack::SAVED), R1);
    asm.place(same);
    asm.load(Word, R1, R8, at!(Activity, cause));
    asm.jump_if_imm(If::Greater, R1, SwitchCause::Yielded as i32, voluntary);
    asm.increment(Word, R8, at!(Activity, pair_involuntary), R1);
    asm.jump(counted);
    asm.place(voluntary);
    asm.increment(Word, R8, at!(Activity, pair_voluntary), R1);
    asm.place(counted);
    asm.load(Double, R1, FP, stack::STATE);
    asm.op_imm(Op::And, R1, TASK_DEAD);
    asm.jump_if_imm(If::Equal, R1, 0, done);
    flush_pair(asm, setting, pairs);
    asm.place(done);
}

/// Moves the pair in the activity to the map. Nobody else writes this thread's pairs meanwhile.
fn flush_pair(asm: &mut Asm, setting: &Setting, pairs: i32) {
    let [new, done] = [(); 2].map(|()| asm.label());
    let counts = [at!(Activity, pair_voluntary), at!(Activity, pair_involuntary)];
    asm.load(Double, R3, R8, counts[0]);
    asm.jump_if_imm(If::Equal, R3, 0, done);
    thread_name(asm, setting, R6, R2);
    asm.store(Double, FP, stack::PAIR, R2);
    asm.copy(Double, (FP, stack::PAIR + 8), (R8, at!(Activity, pair_next)), R1);
    look_up(asm, pairs, stack::PAIR);
    asm.jump_if_imm(If::Equal, R0, 0, new);
    for (number, count) in counts.into_iter().enumerate() {
        let sum = 8 * number as i16;
        asm.load(Word, R1, R8, count);
        asm.load(Double, R2, R0, sum);
        asm.op(Op::Add, R2, R1);
        asm.store(Double, R0, sum, R2);
    }
    asm.store_imm(Double, R8, counts[0], 0);
    asm.jump(done);
    asm.place(new);
    insert_pair(asm, setting, pairs, counts);
    asm.store_imm(Double, R8, counts[0], 0);
    asm.place(done);
}

fn insert_pair(asm: &mut Asm, setting: &Setting, pairs: i32, counts: [i16; 2]) {
    let inserted = asm.label();
    for (number, count) in counts.into_iter().enumerate() {
        asm.load(Word, R1, R8, count);
        asm.store(Double, FP, stack::PAIR_COUNTS + 8 * number as i16, R1);
    }
    asm.map(R1, pairs);
    asm.mov(R2, FP);
    asm.op_imm(Op::Add, R2, i32::from(stack::PAIR));
    asm.mov(R3, FP);
    asm.op_imm(Op::Add, R3, i32::from(stack::PAIR_COUNTS));
    asm.set(R4, 0);
    asm.call(Helper::MapUpdate);
    asm.jump_if_imm(If::Equal, R0, 0, inserted);
    asm.load(Double, R3, FP, stack::PAIR_COUNTS);
    asm.load(Double, R4, FP, stack::PAIR_COUNTS + 8);
    asm.op(Op::Add, R4, R3);
    asm.store(Double, FP, stack::PAIR_COUNTS, R4);
    count_lost(asm, setting, at!(TableHeader, pairs_lost), Some(stack::PAIR_COUNTS));
    asm.place(inserted);
}
