//! The ring between two solos of each of its members, all on the same memory. Raw figures, and what one says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::level::Level;
use crate::stats::median;

/// Two solos of a member that differ by more are not of one state of its memory, or of the machine.
const AGREEMENT: f64 = 0.05;

/// What one worker measured on the same memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Triples {
    /// Members of the ring.
    pub members: u32,
    /// Timed laps of each ring.
    pub ring_laps: u64,
    /// Timed laps of each solo.
    pub solo_laps: u64,
    /// In the order of time.
    pub all: Vec<Triple>,
}

/// Each member's solo, the ring, each member's solo again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Triple {
    /// Time of the ring's laps, in nanoseconds.
    pub ring_ns: u64,
    /// Time of each member's solo laps in nanoseconds, those before the ring first.
    pub solos_ns: Vec<u64>,
    /// Time of the latency-bound loop before and behind each of these, in nanoseconds, in the order of time.
    pub latency_ns: Vec<u32>,
    /// Time of the throughput-bound loop there, in nanoseconds.
    pub throughput_ns: Vec<u32>,
}

impl Triples {
    /// What a hop of the ring takes above the mean of its members' solos, in nanoseconds; signed.
    pub fn above_solos_ns(&self, triple: &Triple) -> Option<f64> {
        let ring_hops = self.ring_laps as f64 * f64::from(self.members);
        let solo_hops = self.solo_laps as f64 * triple.solos_ns.len() as f64;
        let solos_ns: f64 = triple.solos_ns.iter().map(|ns| *ns as f64).sum();
        let above = triple.ring_ns as f64 / ring_hops - solos_ns / solo_hops;
        (self.is_whole(triple) && above.is_finite()).then_some(above)
    }

    /// The median of all triples, at whatever speed; absent without one.
    pub fn above_solos_of_all_ns(&self) -> Option<f64> {
        let all: Vec<f64> = self.all.iter().filter_map(|one| self.above_solos_ns(one)).collect();
        median(&all)
    }

    /// Those that count: all quanta clean, and the two solos of each member within 5 % of each other.
    pub fn clean_above_solos_ns(&self, level: &Level) -> Vec<f64> {
        let clean = self.all.iter().filter(|one| one.is_clean(level) && self.agrees(one));
        clean.filter_map(|one| self.above_solos_ns(one)).collect()
    }

    fn agrees(&self, triple: &Triple) -> bool {
        let (before, after) = triple.solos_ns.split_at(triple.solos_ns.len() / 2);
        before.iter().zip(after).all(|(before, after)| {
            let (before, after) = (*before as f64, *after as f64);
            (before - after).abs() <= AGREEMENT * before.min(after)
        })
    }

    fn is_whole(&self, triple: &Triple) -> bool {
        let solos = 2 * self.members as usize;
        let quanta = 2 * (solos + 1);
        triple.solos_ns.len() == solos
            && triple.latency_ns.len() == quanta
            && triple.throughput_ns.len() == quanta
    }
}

impl Triple {
    /// Its quanta: latency-bound and throughput-bound loop.
    pub fn quanta(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.latency_ns.iter().copied().zip(self.throughput_ns.iter().copied())
    }

    fn is_clean(&self, level: &Level) -> bool {
        self.quanta().all(|(latency, throughput)| level.is_clean(latency, throughput))
    }
}
