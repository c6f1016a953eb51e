//! Pairs of threads that were switched from one to the other. The programs count in two places:
//!
//! ```text
//! thread 10 -> 11, 11, 11, 12            in 10's record       in the map of pairs
//! first switch to 11                     11: 1                -
//! third switch to 11                     11: 3                -
//! first switch to 12                     12: 1                (10, 11): 3
//! ```
//!
//! A thread that is switched to the same one again and again, as in a ring, changes only its own
//! record; the map is written when the partner changes. A reader adds up both.

use crate::sys;
use crate::threads::{ThreadKey, activities, key_of_record};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use threadclock::table::ThreadTable;

/// Switches from one thread to another since tracing began. `prev` is never an idle thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPair {
    /// The thread that left the CPU.
    pub prev: ThreadKey,
    /// The thread that got it; `tid` 0 if none did.
    pub next: ThreadKey,
    /// Switches because `prev` slept.
    pub voluntary: u64,
    /// Switches while `prev` could have run on: `next` preempted it, or it yielded.
    pub involuntary: u64,
}

/// Sums of voluntary and involuntary switches, by pair.
#[derive(Default)]
struct PairSums(HashMap<(ThreadKey, ThreadKey), [u64; 2]>);

impl PairSums {
    fn add(&mut self, prev: ThreadKey, next: ThreadKey, counts: [u64; 2]) {
        if counts != [0, 0] {
            let sums = self.0.entry((prev, next)).or_default();
            *sums = [sums[0] + counts[0], sums[1] + counts[1]];
        }
    }

    fn into_pairs(self) -> Vec<SwitchPair> {
        let mut pairs = Vec::new();
        for ((prev, next), [voluntary, involuntary]) in self.0 {
            pairs.push(SwitchPair { prev, next, voluntary, involuntary });
        }
        pairs
    }
}

/// Returns the pairs in the map, and those that are still in the threads' records. A thread may move
/// one to the map meanwhile: its switches, up to as many as it had in a row, are then missed or
/// counted twice.
pub(crate) fn read_pairs(map: &OwnedFd, table: &ThreadTable) -> Vec<SwitchPair> {
    let mut sums = PairSums::default();
    for activity in activities(table) {
        let next = ThreadKey::from_bits(activity.pair_next.load(Relaxed));
        let voluntary = activity.pair_voluntary.load(Relaxed).into();
        let involuntary = activity.pair_involuntary.load(Relaxed).into();
        sums.add(key_of_record(&activity.record), next, [voluntary, involuntary]);
    }
    let mut last_key: Option<[u8; 16]> = None;
    while let Some(key) = sys::next_key(map, last_key.as_ref()) {
        if let Some(value) = sys::look_up::<16, 16>(map, &key) {
            let [prev, next] = halves(key).map(ThreadKey::from_bits);
            sums.add(prev, next, halves(value));
        }
        last_key = Some(key);
    }
    sums.into_pairs()
}

/// Deletes pairs from the map.
pub(crate) fn forget(map: &OwnedFd, pairs: impl Iterator<Item = (ThreadKey, ThreadKey)>) {
    for (prev, next) in pairs {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&prev.bits().to_le_bytes());
        key[8..].copy_from_slice(&next.bits().to_le_bytes());
        sys::delete(map, &key);
    }
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}
