//! The aggregation of a thread's activity: why and how long it was off the CPU, how long on it, how
//! long it waited, which threads it was switched to. r8 is its [`ThreadActivity`], r9 the time,
//! throughout.
//!
//! ```text
//!          woken      in          out: sleeps         woken      in
//! --sleep----|--wait--|---burst---|--------sleep--------|--wait--|---
//!                                 |<----- off, by the cause ---->|
//! ```

use super::{ProgramTarget, count_lost, look_up, offset, stack};
use crate::asm::{
    AluOp, Asm, Double, FP, JumpIf, KernelHelper, Label, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9,
    Reg, Word,
};
use crate::cause::{SwitchCause, histogram};
use crate::layout::{
    ACTIVITY_BYTES, BUCKETS, FIRST_SHIFT, TASK_DEAD, TASK_INTERRUPTIBLE, TASK_NOLOAD,
    TASK_UNINTERRUPTIBLE, ThreadActivity,
};
use threadclock::table::layout::{TableHeader, ThreadRecord};

/// Clears the activity of the thread that had the record before.
pub(super) fn begin(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    for offset in (offset!(ThreadActivity, out_ns)..ACTIVITY_BYTES as i16).step_by(8) {
        asm.store_imm(Double, R8, offset, 0);
    }
    copy_name(asm, target, task);
    asm.load(Double, R2, task, target.kernel.task.parent);
    asm.copy(Word, (R8, offset!(ThreadActivity, parent)), (R2, target.kernel.task.tgid), R1);
}

/// Copies the thread's name (comm).
pub(super) fn copy_name(asm: &mut Asm, target: &ProgramTarget, task: Reg) {
    for half in [0, 8] {
        let (to, from) = (offset!(ThreadActivity, comm) + half, target.kernel.task.comm + half);
        asm.copy(Double, (R8, to), (task, from), R1);
    }
}

/// Accounts for the thread in r6 being switched out. Comes before the record's counts are renewed,
/// as it compares with them.
pub(super) fn switched_out(asm: &mut Asm, target: &ProgramTarget) {
    let unseen = asm.label();
    cause_of_switch(asm, target);
    asm.store(Double, R8, offset!(ThreadActivity, out_ns), R9);
    // Programs name their threads once these run (pthread_setname_np(3)).
    copy_name(asm, target, R6);
    asm.load(Double, R1, R8, offset!(ThreadActivity, in_ns));
    asm.jump_if_imm(JumpIf::Equal, R1, 0, unseen);
    asm.store_imm(Double, R8, offset!(ThreadActivity, in_ns), 0);
    asm.mov(R2, R9);
    asm.op(AluOp::Sub, R2, R1);
    add_to_histogram(asm, Some(histogram::BURST));
    if let Some(run_delay) = target.kernel.task.run_delay {
        asm.load(Double, R2, R6, run_delay);
        asm.load(Double, R1, R8, offset!(ThreadRecord, waited_ns));
        asm.op(AluOp::Sub, R2, R1);
        add_to_waits(asm);
    }
    asm.place(unseen);
}

/// Accounts for the thread in r7 being switched in.
pub(super) fn switched_in(asm: &mut Asm) {
    let unseen = asm.label();
    asm.store(Double, R8, offset!(ThreadActivity, in_ns), R9);
    asm.load(Double, R1, R8, offset!(ThreadActivity, out_ns));
    asm.jump_if_imm(JumpIf::Equal, R1, 0, unseen);
    asm.mov(R2, R9);
    asm.op(AluOp::Sub, R2, R1);
    add_to_histogram(asm, None);
    asm.place(unseen);
}

/// Stores why the thread in r6 leaves its CPU. A switch is voluntary if the kernel counts it so; the
/// first one that is seen of a seeded record may be taken for the other kind if a signal came with
/// it.
fn cause_of_switch(asm: &mut Asm, target: &ProgramTarget) {
    let [asleep, not_runnable, known] = asm.labels();
    asm.set(R5, SwitchCause::Preempted as i32);
    asm.load(Double, R1, FP, stack::PREEMPT);
    asm.jump_if_imm(JumpIf::NotEqual, R1, 0, known);
    asm.load(Double, R1, FP, stack::STATE);
    asm.jump_if_imm(JumpIf::NotEqual, R1, 0, not_runnable);
    // A thread that was about to sleep when a signal came is runnable, and counts as voluntary.
    asm.load(Double, R1, R6, target.kernel.task.nvcsw);
    asm.load(Double, R2, R8, offset!(ThreadRecord, voluntary));
    asm.jump_if(JumpIf::NotEqual, R1, R2, asleep);
    cause_of_yield(asm, target, known);
    asm.jump(known);
    asm.place(not_runnable);
    cause_of_sleep(asm, asleep, known);
    asm.place(asleep);
    asm.set(R5, SwitchCause::Sleep as i32);
    asm.place(known);
    asm.store(Word, R8, offset!(ThreadActivity, cause), R5);
}

/// r5 = the cause of a thread that sleeps in the state in r1; goes to one of the labels.
fn cause_of_sleep(asm: &mut Asm, asleep: Label, known: Label) {
    asm.mov(R2, R1);
    asm.op_imm(AluOp::And, R2, TASK_UNINTERRUPTIBLE | TASK_NOLOAD);
    asm.set(R5, SwitchCause::Uninterruptible as i32);
    asm.jump_if_imm(JumpIf::Equal, R2, TASK_UNINTERRUPTIBLE, known);
    asm.jump_if_imm(JumpIf::AnyBit, R1, TASK_INTERRUPTIBLE | TASK_NOLOAD, asleep);
    asm.set(R5, SwitchCause::Other as i32);
    asm.jump(known);
}

/// r5 = [`SwitchCause::Yielded`] if the thread in r6 is in sched_yield(2), which counts as involuntary.
fn cause_of_yield(asm: &mut Asm, target: &ProgramTarget, known: Label) {
    let Some(sign) = &target.kernel.yields else { return };
    let width = if sign.is_64_bit { Double } else { Word };
    asm.mov(R1, R6);
    asm.call(KernelHelper::TaskPtRegs);
    asm.load(width, R1, R0, sign.offset);
    asm.set(R5, SwitchCause::Preempted as i32);
    asm.jump_if_imm(JumpIf::NotEqual, R1, sign.number, known);
    asm.increment(Double, R8, offset!(ThreadActivity, yields), R1);
    asm.set(R5, SwitchCause::Yielded as i32);
}

/// Bytes of a histogram: 2^7.
const HISTOGRAM_BYTES: usize = size_of::<u32>() * BUCKETS;

fn histogram_offset(number: usize) -> i16 {
    offset!(ThreadActivity, histograms) + (number * HISTOGRAM_BYTES) as i16
}

/// Limits a register to so many bits. Clobbers r1.
fn limit(asm: &mut Asm, register: Reg, bits: u32) {
    let in_range = asm.label();
    asm.set64(R1, 1 << bits);
    asm.jump_if(JumpIf::Less, register, R1, in_range);
    asm.set64(register, (1 << bits) - 1);
    asm.place(in_range);
}

/// r3 = `unit` times the position of the highest bit of r2, 0 for 0; r2 has 32 bits at most.
/// Clobbers r1 and r2.
fn add_logarithm(asm: &mut Asm, unit: i32) {
    asm.set(R3, 0);
    for bits in [16, 8, 4, 2, 1] {
        let is_zero = asm.label();
        asm.mov(R1, R2);
        asm.op_imm(AluOp::Shr, R1, bits);
        asm.jump_if_imm(JumpIf::Equal, R1, 0, is_zero);
        asm.mov(R2, R1);
        asm.op_imm(AluOp::Add, R3, unit * bits);
        asm.place(is_zero);
    }
}

/// Counts r2 nanoseconds in the histogram of waits, in eight parts an octave. Clobbers r1 to r4.
///
/// Of v = r2 / 16, at most 34 bits, with the highest bit at e, the bucket is v below 8, else
/// 8 (e - 3) + v / 2^(e - 3): 3,000 ns are 187 = 0b10111011, e is 7, so that it is 32 + 11 = 43.
fn add_to_waits(asm: &mut Asm) {
    asm.op_imm(AluOp::Shr, R2, FIRST_SHIFT as i32 - 2);
    limit(asm, R2, 34);
    asm.mov(R4, R2);
    asm.op_imm(AluOp::Shr, R2, 3);
    add_logarithm(asm, 1);
    asm.op(AluOp::Shr, R4, R3);
    // The verifier must see that the offset stays within the record.
    asm.op_imm(AluOp::And, R4, 15);
    asm.op_imm(AluOp::Shl, R4, 2);
    asm.op_imm(AluOp::Shl, R3, 5);
    asm.op(AluOp::Add, R4, R3);
    asm.op(AluOp::Add, R4, R8);
    asm.increment(Word, R4, offset!(ThreadActivity, waits), R1);
}

/// Counts r2 nanoseconds in a histogram; without a number, in that of the cause of the thread's last
/// switch. Clobbers r1 to r4.
///
/// The bucket is the position of the highest bit of r2 / 64, found by five tests without a loop. For
/// 3,000 ns that is 46 = 0b101110, bit 5: 46 >> 4 is not 0, so add 4 and go on with 2; 2 >> 1 is not
/// 0, so add 1.
fn add_to_histogram(asm: &mut Asm, number: Option<usize>) {
    // r3 = 4 * floor(log2(r2 / 64)), at most 4 * 31: the offset of the bucket in bytes.
    asm.op_imm(AluOp::Shr, R2, FIRST_SHIFT as i32);
    limit(asm, R2, 32);
    add_logarithm(asm, 4);
    let base = match number {
        Some(number) => histogram_offset(number),
        None => {
            let known = asm.label();
            asm.load(Word, R1, R8, offset!(ThreadActivity, cause));
            // The verifier must see that the offset stays within the record.
            asm.jump_if_imm(JumpIf::Less, R1, SwitchCause::ALL.len() as i32, known);
            asm.set(R1, SwitchCause::Other as i32);
            asm.place(known);
            asm.op_imm(AluOp::Shl, R1, 7);
            asm.op(AluOp::Add, R3, R1);
            histogram_offset(histogram::OFF)
        }
    };
    asm.mov(R4, R8);
    asm.op(AluOp::Add, R4, R3);
    asm.increment(Word, R4, base, R1);
}

/// `to` = the [`ThreadKey`](crate::ThreadKey) of the thread in `task`: its id, and above it its start
/// in units of 1,024 ns. 0 for the idle threads. Clobbers r1.
fn thread_key(asm: &mut Asm, target: &ProgramTarget, task: Reg, to: Reg) {
    let done = asm.label();
    asm.load(Word, to, task, target.kernel.task.pid);
    asm.jump_if_imm(JumpIf::Equal, to, 0, done);
    asm.load(Double, R1, task, target.kernel.task.start_time);
    asm.op_imm(AluOp::Shr, R1, 10);
    asm.op_imm(AluOp::Shl, R1, 32);
    asm.op(AluOp::Or, to, R1);
    asm.place(done);
}

/// Counts the switch from the thread in r6, whose activity r8 is, to that in r7. Switches to one
/// thread in a row are counted in the activity; they are moved to the map when another thread
/// follows, or at the end.
pub(super) fn count_pair(asm: &mut Asm, target: &ProgramTarget, pairs: i32) {
    let [same_pair, voluntary, counted, done] = asm.labels();
    thread_key(asm, target, R7, R2);
    asm.load(Double, R1, R8, offset!(ThreadActivity, pair_next));
    asm.jump_if(JumpIf::Equal, R1, R2, same_pair);
    asm.store(Double, FP, stack::SAVED, R2);
    flush_pair(asm, target, pairs);
    asm.copy(Double, (R8, offset!(ThreadActivity, pair_next)), (FP, stack::SAVED), R1);
    asm.place(same_pair);
    asm.load(Word, R1, R8, offset!(ThreadActivity, cause));
    asm.jump_if_imm(JumpIf::Greater, R1, SwitchCause::Yielded as i32, voluntary);
    asm.increment(Word, R8, offset!(ThreadActivity, pair_involuntary), R1);
    asm.jump(counted);
    asm.place(voluntary);
    asm.increment(Word, R8, offset!(ThreadActivity, pair_voluntary), R1);
    asm.place(counted);
    asm.load(Double, R1, FP, stack::STATE);
    asm.op_imm(AluOp::And, R1, TASK_DEAD);
    asm.jump_if_imm(JumpIf::Equal, R1, 0, done);
    flush_pair(asm, target, pairs);
    asm.place(done);
}

/// Moves the pair in the activity to the map. No other CPU writes this thread's pairs meanwhile.
fn flush_pair(asm: &mut Asm, target: &ProgramTarget, pairs: i32) {
    let [new, done] = asm.labels();
    let counts =
        [offset!(ThreadActivity, pair_voluntary), offset!(ThreadActivity, pair_involuntary)];
    asm.load(Double, R3, R8, counts[0]);
    asm.jump_if_imm(JumpIf::Equal, R3, 0, done);
    thread_key(asm, target, R6, R2);
    asm.store(Double, FP, stack::PAIR, R2);
    asm.copy(Double, (FP, stack::PAIR + 8), (R8, offset!(ThreadActivity, pair_next)), R1);
    look_up(asm, pairs, stack::PAIR);
    asm.jump_if_imm(JumpIf::Equal, R0, 0, new);
    for (number, count) in counts.into_iter().enumerate() {
        let sum = 8 * number as i16;
        asm.load(Word, R1, R8, count);
        asm.load(Double, R2, R0, sum);
        asm.op(AluOp::Add, R2, R1);
        asm.store(Double, R0, sum, R2);
    }
    asm.store_imm(Double, R8, counts[0], 0);
    asm.jump(done);
    asm.place(new);
    insert_pair(asm, target, pairs, counts);
    asm.store_imm(Double, R8, counts[0], 0);
    asm.place(done);
}

/// Inserts the pair, whose key is on the stack, or counts its switches as lost if the map is full.
fn insert_pair(asm: &mut Asm, target: &ProgramTarget, pairs: i32, counts: [i16; 2]) {
    let inserted = asm.label();
    for (number, count) in counts.into_iter().enumerate() {
        asm.load(Word, R1, R8, count);
        asm.store(Double, FP, stack::PAIR_COUNTS + 8 * number as i16, R1);
    }
    asm.map(R1, pairs);
    asm.stack_address(R2, stack::PAIR);
    asm.stack_address(R3, stack::PAIR_COUNTS);
    asm.set(R4, 0);
    asm.call(KernelHelper::MapUpdate);
    asm.jump_if_imm(JumpIf::Equal, R0, 0, inserted);
    asm.load(Double, R3, FP, stack::PAIR_COUNTS);
    asm.load(Double, R4, FP, stack::PAIR_COUNTS + 8);
    asm.op(AluOp::Add, R4, R3);
    asm.store(Double, FP, stack::PAIR_COUNTS, R4);
    count_lost(asm, target, offset!(TableHeader, pairs_lost), Some(stack::PAIR_COUNTS));
    asm.place(inserted);
}
