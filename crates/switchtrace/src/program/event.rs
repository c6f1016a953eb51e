//! Events for the ring buffer, if a recording was asked for.

use super::{ProgramTarget, count_lost, offset, stack};
use crate::asm::{
    AluOp, Asm, Double, FP, JumpIf, KernelHelper, R0, R1, R2, R3, R4, R6, R7, R9, Word,
};
use crate::layout::{RawEvent, kind};
use threadclock::table::layout::TableHeader;

/// An event to record. Its time is in r9.
#[derive(Clone, Copy)]
pub(super) enum RecordedEvent {
    /// A switch from the thread in r6 to that in r7.
    Switch,
    /// A wake-up of the thread in r6.
    Wakeup,
    /// The first wake-up of the thread in r6.
    New,
    /// A move of the thread in r6 to the CPU in r7.
    Migrate,
}

impl RecordedEvent {
    fn kind_number(self) -> u32 {
        match self {
            Self::Switch => kind::SWITCH,
            Self::Wakeup => kind::WAKEUP,
            Self::New => kind::NEW,
            Self::Migrate => kind::MIGRATE,
        }
    }
}

/// Flag `BPF_RB_NO_WAKEUP`: readers are not woken, they look at their own times.
const NO_WAKEUP: i32 = 1;

/// Offsets in the stack of the event's fields.
const KIND_AND_CPU: i16 = stack::EVENT + offset!(RawEvent, kind_and_cpu);
const STATE: i16 = stack::EVENT + offset!(RawEvent, state);
const FIRST_TID: i16 = stack::EVENT + offset!(RawEvent, first_tid);
const SECOND_TID: i16 = stack::EVENT + offset!(RawEvent, second_tid);
const FIRST_PRIO: i16 = stack::EVENT + offset!(RawEvent, first_prio);
const SECOND_PRIO: i16 = stack::EVENT + offset!(RawEvent, second_prio);

/// Records an event, or counts it as lost if the ring buffer is full.
pub(super) fn record_event(
    asm: &mut Asm,
    target: &ProgramTarget,
    events: i32,
    event: RecordedEvent,
) {
    let recorded = asm.label();
    let offsets = &target.kernel.task;
    asm.store(Double, FP, stack::EVENT, R9);
    asm.call(KernelHelper::SmpProcessorId);
    asm.op_imm(AluOp::Shl, R0, 16);
    asm.op_imm(AluOp::Or, R0, event.kind_number() as i32);
    asm.store(Word, FP, KIND_AND_CPU, R0);
    let second_task = if let RecordedEvent::Switch = event {
        asm.load(Double, R1, FP, stack::PREEMPT);
        asm.op_imm(AluOp::Shl, R1, 31);
        asm.load(Double, R2, FP, stack::STATE);
        asm.op(AluOp::Or, R1, R2);
        asm.copy(Word, (FP, FIRST_TID), (R6, offsets.pid), R2);
        asm.copy(Word, (FP, FIRST_PRIO), (R6, offsets.prio), R2);
        R7
    } else {
        asm.call(KernelHelper::CurrentPidTgid);
        asm.store(Word, FP, FIRST_TID, R0);
        asm.store_imm(Word, FP, FIRST_PRIO, 0);
        match event {
            RecordedEvent::Migrate => asm.mov(R1, R7),
            _ => asm.load(Word, R1, R6, offsets.cpu),
        }
        R6
    };
    asm.store(Word, FP, STATE, R1);
    asm.copy(Word, (FP, SECOND_TID), (second_task, offsets.pid), R2);
    asm.copy(Word, (FP, SECOND_PRIO), (second_task, offsets.prio), R2);
    asm.map(R1, events);
    asm.stack_address(R2, stack::EVENT);
    asm.set(R3, size_of::<RawEvent>() as i32);
    asm.set(R4, NO_WAKEUP);
    asm.call(KernelHelper::RingbufOutput);
    asm.jump_if_imm(JumpIf::Equal, R0, 0, recorded);
    count_lost(asm, target, offset!(TableHeader, events_lost), None);
    asm.place(recorded);
}
