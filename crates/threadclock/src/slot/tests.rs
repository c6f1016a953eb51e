//! The slot by itself, with a word of the test's as its witness.

use super::*;

/// A slot whose witness is a word of the test's.
fn slot(witness: &AtomicU64) -> Slot {
    assert!(calibrate::finish());
    let slot = Slot::bare();
    slot.set_up(kind::COUNT, witness, 0);
    slot
}

fn now(slot: &Slot) -> CpuTime {
    slot.read(arch::stamp).unwrap_or_else(|stamp| slot.resync(stamp))
}

#[test]
fn a_clock_ahead_of_the_kernel_is_held_and_not_set_back() {
    let witness = AtomicU64::new(0);
    let slot = slot(&witness);
    let ahead = CpuTime { ns: now(&slot).ns + 30_000, cycles: 0 };
    slot.base_ns.store(ahead.ns, Relaxed);
    slot.forget();
    let mut last = CpuTime::default();
    for _ in 0..10_000 {
        let time = now(&slot);
        assert!(time.ns >= ahead.ns && time >= last && time.cycles >= last.cycles);
        last = time;
    }
    // 10,000 reads take longer than 30 us: the kernel has caught up, and the clock goes on.
    assert!(last.ns > ahead.ns);
}

#[test]
fn a_handler_in_a_resync_leaves_the_slot_alone_and_is_not_overtaken() {
    let witness = AtomicU64::new(0);
    for phase in [CLOSING, WRITING] {
        let slot = slot(&witness);
        let before = now(&slot);
        slot.expected.store(NEVER, Relaxed);
        slot.floor_ns.store(before.ns, Relaxed);
        slot.floor_cycles.store(before.cycles, Relaxed);
        slot.phase.store(phase, Relaxed);
        let base = slot.base();
        let in_handler = now(&slot);
        assert!(in_handler.ns >= before.ns && in_handler.cycles >= before.cycles);
        assert_eq!(slot.base(), base);
        slot.phase.store(FREE, Relaxed);
        // What the handler was told becomes the floor, were it ahead of the kernel.
        slot.handler_ns.store(in_handler.ns + 20_000, Relaxed);
        assert!(now(&slot).ns >= in_handler.ns + 20_000);
    }
}

/// A read that was interrupted before its last store has left a stamp from before the sync.
#[test]
fn a_late_store_of_an_old_stamp_does_not_set_the_clock_back() {
    let witness = AtomicU64::new(0);
    let slot = slot(&witness);
    let old = arch::stamp();
    now(&slot);
    let read = now(&slot);
    slot.last_stamp.store(old, Relaxed);
    assert!(slot.reached().ns >= read.ns);
}

#[test]
fn a_wiped_slot_refuses() {
    // SAFETY: what a fork leaves; all fields are atomics, for which zero is a value.
    let wiped: Slot = unsafe { core::mem::zeroed() };
    assert!(wiped.read(arch::stamp).is_err());
    assert!(wiped.read(|| 0).is_err());
}
