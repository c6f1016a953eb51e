//! Who was switched to whom, and how often.

use crate::sys;
use crate::threads::{ThreadKey, activities, name_of};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use threadclock::table::ThreadTable;

/// Switches from one thread to another since tracing began. `prev` is never an idle thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPair {
    /// Who left the CPU.
    pub prev: ThreadKey,
    /// Who got it; `tid` 0 if nobody did.
    pub next: ThreadKey,
    /// How often because `prev` slept.
    pub voluntary: u64,
    /// How often while `prev` could have run on: `next` preempted it, or it yielded.
    pub involuntary: u64,
}

/// The pairs in the map, and those that threads have not brought there yet. A thread may bring one
/// there meanwhile: its switches, up to as many as it had in a row, are then missed or counted
/// twice.
pub(crate) fn all(map: &OwnedFd, table: &ThreadTable) -> Vec<SwitchPair> {
    let mut pairs: HashMap<(ThreadKey, ThreadKey), [u64; 2]> = HashMap::new();
    let mut add = |pair, counts: [u64; 2]| {
        if counts != [0, 0] {
            let sum = pairs.entry(pair).or_default();
            *sum = [sum[0] + counts[0], sum[1] + counts[1]];
        }
    };
    for activity in activities(table) {
        let next = ThreadKey::from_bits(activity.pair_next.load(Relaxed));
        let counts = [&activity.pair_voluntary, &activity.pair_involuntary];
        add((name_of(&activity.record), next), counts.map(|n| n.load(Relaxed).into()));
    }
    let mut at: Option<[u8; 16]> = None;
    while let Some(key) = sys::next_key(map, at.as_ref()) {
        if let Some(value) = sys::look_up::<16, 16>(map, &key) {
            let [prev, next] = halves(key).map(ThreadKey::from_bits);
            add((prev, next), halves(value));
        }
        at = Some(key);
    }
    let all = pairs.into_iter();
    all.map(|((prev, next), [voluntary, involuntary])| SwitchPair {
        prev,
        next,
        voluntary,
        involuntary,
    })
    .collect()
}

/// Takes these out of the map.
pub(crate) fn forget(map: &OwnedFd, pairs: impl Iterator<Item = (ThreadKey, ThreadKey)>) {
    for (prev, next) in pairs {
        let [prev, next] = [prev, next].map(|name| name.bits().to_le_bytes());
        let mut key = [0; 16];
        key[..8].copy_from_slice(&prev);
        key[8..].copy_from_slice(&next);
        sys::delete(map, &key);
    }
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}
