//! Speed of CPUs, noted by processes in memory that they share with the process that started them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::page::Shareable;
use super::quanta::QuantumTimes;

/// Most quanta that are kept; later ones are dropped.
const MAX_QUANTA: usize = 1 << 18;

/// Times of reference quanta in the order in which they were noted, and how often the processes
/// woke.
pub struct SpeedLog {
    wakes: AtomicU32,
    preempted: AtomicU32,
    noted: AtomicU32,
    /// Time of the latency-bound loop and, in the upper half, of the throughput-bound one, in
    /// nanoseconds; 0 until they are written.
    times: [AtomicU64; MAX_QUANTA],
}

// SAFETY: atomics: zero is a value of each, and they hold no address.
unsafe impl Shareable for SpeedLog {}

impl SpeedLog {
    /// Counts a wake-up.
    pub fn count_wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often all processes together have woken.
    pub fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Relaxed)
    }

    /// Counts a quantum for which the process preempted another task.
    pub fn count_preemption(&self) {
        self.preempted.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many quanta preempted another task.
    pub fn preemptions(&self) -> u32 {
        self.preempted.load(Ordering::Relaxed)
    }

    /// Stores the times of a quantum while there is room.
    pub fn note(&self, times: QuantumTimes) {
        if self.quanta() == MAX_QUANTA {
            return;
        }
        let latency_ns = times.latency_ns.min(u32::MAX.into());
        let throughput_ns = times.throughput_ns.min(u32::MAX.into());
        let index = self.noted.fetch_add(1, Ordering::Relaxed) as usize;
        if let Some(slot) = self.times.get(index) {
            slot.store(latency_ns | throughput_ns << 32, Ordering::Relaxed);
        }
    }

    /// Returns how many quanta are stored so far.
    pub fn quanta(&self) -> usize {
        self.noted.load(Ordering::Relaxed).min(MAX_QUANTA as u32) as usize
    }

    /// Returns the times of the quanta `from` up to `to` (exclusive), without those that are being
    /// written.
    pub fn between(&self, from: usize, to: usize) -> Vec<QuantumTimes> {
        let mut noted = Vec::new();
        for slot in self.times.get(from..to.min(MAX_QUANTA)).unwrap_or_default() {
            let packed = slot.load(Ordering::Relaxed);
            let times = QuantumTimes::from((packed as u32, (packed >> 32) as u32));
            if times.latency_ns > 0 {
                noted.push(times);
            }
        }
        noted
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::SharedValue;
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_more_than_there_is_room_for_is_not() {
        let log = SharedValue::<SpeedLog>::new().expect("memory");
        (1..=5_u32).for_each(|ns| log.note((ns, 2 * ns).into()));
        log.note(QuantumTimes { latency_ns: 7, throughput_ns: u64::MAX });
        assert_eq!(
            log.between(3, log.quanta()),
            [(4, 8), (5, 10), (7, u32::MAX)].map(QuantumTimes::from)
        );
        (0..MAX_QUANTA).for_each(|_| log.note((9, 9).into()));
        let kept = (log.quanta(), log.between(0, usize::MAX).len());
        assert_eq!(kept, (MAX_QUANTA, MAX_QUANTA));
    }
}
