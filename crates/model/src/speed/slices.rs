//! The slices of a timed batch and the reference quanta between them. Raw figures only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A longer slice is not judged: the quanta around it are too far apart to say what was between them.
pub const LONGEST_SLICE_NS: u64 = 3_000_000;

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
    /// The waits for a core that nobody shares, in the order of time. Absent of a batch that was timed as the
    /// machine was found: it waited for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Vec<Wait>>,
}

/// A wait for a core that nobody shares: quanta without anything between them, until two in a row were those of
/// such a core, or the time for waiting was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The slice that it came before.
    pub slice: u32,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of it, in nanoseconds: less where something else ran meanwhile.
    pub cpu_ns: u64,
    /// Switches of the leader during it: something else ran.
    pub switches: u64,
    /// Time of the latency-bound loop of its last quantum, in nanoseconds.
    pub latency_ns: u32,
    /// Time of the throughput-bound loop of its last quantum, in nanoseconds.
    pub throughput_ns: u32,
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
            waits: None,
        }
    }

    /// The same of a batch that waits for a core that nobody shares, with room for a wait before each slice.
    pub fn that_wait(slices: usize, laps: u64) -> Self {
        let mut waits = vec![Wait { slice: u32::MAX, ..Wait::default() }; slices];
        waits.clear();
        Self { waits: Some(waits), ..Self::with_room_for(slices, laps) }
    }

    /// The two quanta before slice `index` and the two behind it, in the order of time. Before the slice after
    /// one that was waited for, the first of them is the last of the wait. None of a slice that was waited for:
    /// it warms up what has lain still, or was left by a neighbour, and never counts.
    pub fn around(&self, index: usize) -> Option<[(u32, u32); QUANTA_AROUND]> {
        let quantum = |at: usize| Some((*self.latency_ns.get(at)?, *self.throughput_ns.get(at)?));
        let before = match index.checked_sub(1).and_then(|before| self.wait_for(before)) {
            Some(wait) => (wait.latency_ns, wait.throughput_ns),
            None => quantum(index)?,
        };
        let behind = [quantum(index + 2)?, quantum(index + 3)?];
        let around = [before, quantum(index + 1)?, behind[0], behind[1]];
        self.wait_for(index).is_none().then_some(around)
    }

    fn wait_for(&self, slice: usize) -> Option<&Wait> {
        let waits = self.waits.as_deref()?;
        let at = waits.binary_search_by_key(&slice, |wait| wait.slice as usize).ok()?;
        waits.get(at)
    }

    /// All quanta whose times are known: latency-bound and throughput-bound loop.
    pub fn quanta(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let between = self.latency_ns.iter().copied().zip(self.throughput_ns.iter().copied());
        let last = self.waits.iter().flatten().map(|wait| (wait.latency_ns, wait.throughput_ns));
        between.chain(last)
    }

    /// Whether the batch was timed as the machine was found, waiting for nothing.
    pub fn are_as_found(&self) -> bool {
        self.waits.is_none()
    }

    /// Keeps a quantum's two times.
    #[inline]
    pub fn push_quantum(&mut self, latency_ns: u64, throughput_ns: u64) {
        self.latency_ns.push(u32::try_from(latency_ns).unwrap_or(u32::MAX));
        self.throughput_ns.push(u32::try_from(throughput_ns).unwrap_or(u32::MAX));
    }

    /// Time of all quanta and CPU time of all waits, in nanoseconds: it is in the counters' CPU time and in no
    /// slice.
    pub fn reference_ns(&self) -> u64 {
        let quanta = self.latency_ns.iter().chain(&self.throughput_ns).map(|ns| u64::from(*ns));
        let waits = self.waits.iter().flatten().map(|wait| wait.cpu_ns);
        quanta.chain(waits).fold(0, u64::saturating_add)
    }

    /// Switches of the leader during all waits: they are in the counters, and no part of the ring.
    pub fn switches_in_waits(&self) -> u64 {
        let waits = self.waits.iter().flatten();
        waits.map(|wait| wait.switches).fold(0, u64::saturating_add)
    }

    /// Time of all waits, in nanoseconds; absent of a batch that was timed as the machine was found.
    pub fn waited_ns(&self) -> Option<u64> {
        let waits = self.waits.as_ref()?.iter();
        Some(waits.map(|wait| wait.elapsed_ns).fold(0, u64::saturating_add))
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
