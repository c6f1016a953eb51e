//! Figures from the triples of one sample, whatever the speed of the core was.

use stats::median;

use super::{Triple, Triples, is_alone};

impl Triples {
    /// Returns the time of a hop of the ring above the mean of its members' solos, in nanoseconds;
    /// signed.
    fn above_solos_ns(&self, triple: &Triple) -> Option<f64> {
        let ring = mean_ns_per_lap(&triple.ring_ns, self.ring_laps) / f64::from(self.members);
        let above = ring - mean_ns_per_lap(&triple.solos_ns, self.solo_laps);
        if self.is_whole(triple) && above.is_finite() { Some(above) } else { None }
    }

    /// Splits the triples into those that were timed as the machine was found and those that
    /// waited.
    pub fn as_found_and_waited(&self) -> (&[Triple], &[Triple]) {
        let as_found = self.as_found.map_or(self.all.len(), |count| count as usize);
        self.all.split_at(as_found.min(self.all.len()))
    }

    /// Counts the slices of all rings.
    pub fn ring_slices(&self) -> u32 {
        count_ring_times(&self.all)
    }

    /// Counts the slices of rings with competing tasks in them, and all slices of triples in or
    /// near which other tasks had a turn.
    pub fn ring_slices_beside_others(&self) -> u32 {
        let mut alone = 0_u32;
        let [as_found, waited] = self.alone();
        for triple in [as_found, waited].concat() {
            for (at, ns) in triple.ring_ns.iter().enumerate() {
                alone += u32::from(was_alone_in_slice(&triple.ring_cpu_ns, at, *ns));
            }
        }
        self.ring_slices().saturating_sub(alone)
    }

    /// Returns the median cost in the triples that were timed as the machine was found, at whatever
    /// speed, in nanoseconds; `None` without such a triple.
    pub fn above_solos_as_found_ns(&self) -> Option<f64> {
        if self.pieces.is_some() {
            return self.above_in_pieces_as_found_ns();
        }
        let (as_found, _) = self.as_found_and_waited();
        let mut costs = Vec::new();
        for triple in as_found {
            costs.extend(self.above_solos_ns(triple));
        }
        median(&costs)
    }

    /// Returns whether a triple has all the times that its numbers promise.
    pub fn is_whole(&self, triple: &Triple) -> bool {
        let solos = (self.members as usize).saturating_mul(2);
        let quanta = (2 * triple.solos_ns.len()).saturating_add(triple.ring_ns.len() + 1);
        self.members > 0
            && self.pieces.is_none()
            && !triple.ring_ns.is_empty()
            && triple.solos_ns.len() == solos
            && triple.latency_ns.len() == quanta
            && triple.throughput_ns.len() == quanta
    }
}

/// Counts the slices, or the parts, of the rings in these triples.
pub(super) fn count_ring_times(triples: &[Triple]) -> u32 {
    let mut count = 0_u32;
    for triple in triples {
        count = count.saturating_add(triple.ring_ns.len() as u32);
    }
    count
}

/// Returns the mean time of a lap, in nanoseconds, where each time is that of `laps` laps.
fn mean_ns_per_lap(times: &[u64], laps: u64) -> f64 {
    let mut sum_ns = 0.0;
    for ns in times {
        sum_ns += *ns as f64;
    }
    sum_ns / (laps as f64 * times.len() as f64)
}

/// Returns whether slice `at` had the CPU alone; `true` where CPU times were not taken.
pub fn was_alone_in_slice(cpu_ns: &[u64], at: usize, elapsed_ns: u64) -> bool {
    cpu_ns.get(at).is_none_or(|cpu_ns| is_alone(elapsed_ns, *cpu_ns))
}

impl Triple {
    /// Iterates over the quanta: times of the latency-bound and of the throughput-bound loop.
    pub fn quanta(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.latency_ns.iter().copied().zip(self.throughput_ns.iter().copied())
    }
}
