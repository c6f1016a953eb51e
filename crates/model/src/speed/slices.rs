//! The slices of a timed batch and the reference quanta between them. Raw figures only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clean::LONGEST_SLICE_NS;

/// Quanta before a slice and behind it that tell whether it is clean.
pub const QUANTA_AROUND: usize = 4;

/// Multiplications in one turn of the latency-bound loop, each waiting for the one before.
pub const MULTIPLIES_PER_TURN: u32 = 16;
/// Turns of the latency-bound loop: 7,200 multiplications, 6 us at 3 cycles each and 3.6 GHz.
pub const MULTIPLY_TURNS: u32 = 450;
/// Additions in one turn of the throughput-bound loop, in eight chains.
pub const ADDS_PER_TURN: u32 = 64;
/// Turns of the throughput-bound loop: 86,400 additions, as long as the other loop where four are made a
/// cycle.
pub const ADD_TURNS: u32 = 1350;

/// A timed batch in slices, with a reference quantum before the first, between all and behind the last:
/// two where a slice has no neighbour, so that slice i lies between quanta i, i + 1 and i + 2, i + 3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Laps of each slice; the last has what is left of the batch.
    pub laps: u64,
    /// Time of each slice's laps, in nanoseconds (CLOCK_MONOTONIC_RAW).
    pub elapsed_ns: Vec<u64>,
    /// Time of the latency-bound loop of each quantum, in nanoseconds: three more than slices.
    pub latency_ns: Vec<u32>,
    /// Time of the throughput-bound loop of each quantum, in nanoseconds: three more than slices.
    pub throughput_ns: Vec<u32>,
}

impl Slices {
    /// Room for a batch of so many slices. All of it has been touched: filling it faults no page.
    pub fn with_room_for(slices: usize, laps: u64) -> Self {
        fn touched<T: Clone>(value: T, count: usize) -> Vec<T> {
            let mut room = vec![value; count];
            room.clear();
            room
        }
        let quanta = slices + QUANTA_AROUND - 1;
        Self {
            laps,
            elapsed_ns: touched(u64::MAX, slices),
            latency_ns: touched(u32::MAX, quanta),
            throughput_ns: touched(u32::MAX, quanta),
        }
    }

    /// Keeps a quantum's two times.
    #[inline]
    pub fn push_quantum(&mut self, latency_ns: u64, throughput_ns: u64) {
        self.latency_ns.push(u32::try_from(latency_ns).unwrap_or(u32::MAX));
        self.throughput_ns.push(u32::try_from(throughput_ns).unwrap_or(u32::MAX));
    }

    /// Time of all quanta, in nanoseconds: it is in the counters' CPU time and in no slice.
    pub fn reference_ns(&self) -> u64 {
        self.latency_ns.iter().chain(&self.throughput_ns).map(|ns| u64::from(*ns)).sum()
    }

    /// Laps of slice `index` of a batch of `laps` laps.
    pub fn laps_of(&self, index: usize, laps: u64) -> u64 {
        let before = self.laps.saturating_mul(index as u64);
        match index + 1 == self.elapsed_ns.len() {
            true => laps.saturating_sub(before),
            false => self.laps,
        }
    }

    /// Whether the quanta around each slice say what was in it: they are all there, and what a slice holds takes
    /// no longer than [`LONGEST_SLICE_NS`]. The shortest tells: others may have waited for the CPU. The last has
    /// what is left of the batch.
    pub fn can_be_judged(&self) -> bool {
        let whole = &self.elapsed_ns
            [..self.elapsed_ns.len().saturating_sub(1).max(1).min(self.elapsed_ns.len())];
        self.are_whole() && whole.iter().min().is_some_and(|ns| *ns <= LONGEST_SLICE_NS)
    }

    /// Whether there are three more quanta than slices, and of each loop as many.
    pub fn are_whole(&self) -> bool {
        let quanta = self.elapsed_ns.len() + QUANTA_AROUND - 1;
        !self.elapsed_ns.is_empty()
            && self.latency_ns.len() == quanta
            && self.throughput_ns.len() == quanta
    }
}
