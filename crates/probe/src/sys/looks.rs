//! What processes note of their CPUs' speed in memory that they share with who started them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::page::Shareable;

/// Most looks that are kept; later ones are not.
const MOST: usize = 1 << 18;

/// The times of reference quanta, one after another, and how often the processes woke.
pub struct SpeedLog {
    wakes: AtomicU32,
    preempted: AtomicU32,
    taken: AtomicU32,
    /// Latency quantum and, in the upper half, throughput quantum, in nanoseconds; 0 while it is
    /// not written.
    times: [AtomicU64; MOST],
}

// SAFETY: atomics: zero is a value of each, and they hold no address.
unsafe impl Shareable for SpeedLog {}

impl SpeedLog {
    /// One wake-up more.
    pub fn woke(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    /// How often they have woken, all together.
    pub fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Relaxed)
    }

    /// One look more that preempted whoever was on the CPU for it.
    pub fn preempted(&self) {
        self.preempted.fetch_add(1, Ordering::Relaxed);
    }

    /// How many of these there were.
    pub fn preemptions(&self) -> u32 {
        self.preempted.load(Ordering::Relaxed)
    }

    /// Keeps what a quantum took, while there is room.
    pub fn note(&self, (latency_ns, throughput_ns): (u64, u64)) {
        let kept = |ns: u64| ns.min(u32::MAX.into());
        if self.taken() == MOST {
            return;
        }
        let place = self.taken.fetch_add(1, Ordering::Relaxed) as usize;
        if let Some(time) = self.times.get(place) {
            time.store(kept(latency_ns) | kept(throughput_ns) << 32, Ordering::Relaxed);
        }
    }

    /// How many are kept so far.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed).min(MOST as u32) as usize
    }

    /// The times of those from one on, up to another: latency, throughput. What is being written is
    /// left out.
    pub fn between(&self, from: usize, to: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let times = self.times.get(from..to.min(MOST)).unwrap_or_default();
        let all = times.iter().map(|both| both.load(Ordering::Relaxed));
        all.map(|both| (both as u32, (both >> 32) as u32)).filter(|(latency, _)| *latency > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::SharedValue;
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_more_than_there_is_room_for_is_not() {
        let looks = SharedValue::<SpeedLog>::new().expect("memory");
        (1..=5).for_each(|ns| looks.note((ns, 2 * ns)));
        looks.note((7, u64::MAX));
        assert_eq!(
            looks.between(3, looks.taken()).collect::<Vec<_>>(),
            [(4, 8), (5, 10), (7, u32::MAX)]
        );
        (0..MOST).for_each(|_| looks.note((9, 9)));
        assert_eq!((looks.taken(), looks.between(0, usize::MAX).count()), (MOST, MOST));
    }
}
