//! Slices: a batch of laps is cut into parts of about 0.25 ms with reference quanta around each.
//!
//! ```text
//! quantum quantum  slice 0  quantum  slice 1  quantum  slice 2  quantum quantum
//!   q0      q1     60 laps    q2     60 laps    q3     60 laps    q4      q5
//! ```
//!
//! Why: another guest may share the core for some milliseconds, and the core's clock may change.
//! Within a batch of many milliseconds nobody could tell when. A quantum, two fixed loops of about
//! 6 us, (`sys/quanta.rs`) shows both at its moment. Two quanta on each side vouch for a slice:
//! slice 1 counts as clean if q1 to q4 all ran at one clock on an unshared core. A batch of n
//! slices thus has n + 3 quanta. While quanta run, the leader holds the token and the other members
//! sleep.
//!
//! A worker need not take a shared core as it is: it waits, within a budget, until the core is
//! unshared ([`WaitBudget`]), and it tries several places for the members' memory ([`best_place`]).

use rundata::ring::{CoreWait, MemoryPlaces, Slices};

use super::meters::SliceMeters;
use crate::sys::{
    CpuEvents, QuantumTimes, all_unshared, monotonic_raw_ns, reference_quantum, wait_unshared,
};

/// Runs `laps` laps in slices and a quantum after each; calls `pause` between two slices. The
/// meters are read around each slice, outside of its time. Returns the time of the laps alone, and
/// the time after the last quantum, in nanoseconds.
pub fn in_slices<E>(
    laps: u64,
    slices: &mut Slices,
    meters: &SliceMeters,
    mut run: impl FnMut(u64) -> Result<(), E>,
    mut pause: impl FnMut(&mut Slices),
) -> Result<(u64, u64), E> {
    let (mut left, mut elapsed_ns, mut now) = (laps, 0, 0);
    while left > 0 {
        let slice_laps = left.min(slices.laps.max(1));
        let counts_before = meters.events.as_ref().and_then(CpuEvents::read);
        let cpu_before_ns = meters.clocks.total_ns();
        let start_ns = monotonic_raw_ns();
        run(slice_laps)?;
        let slice_ns = monotonic_raw_ns().wrapping_sub(start_ns);
        let cpu_after_ns = meters.clocks.total_ns();
        let counts_after = meters.events.as_ref().and_then(CpuEvents::read);
        if let (Some(events), Some(before), Some(after)) =
            (&meters.events, &counts_before, &counts_after)
        {
            push_counts(slices, events.between(before, after));
        }
        elapsed_ns += slice_ns;
        slices.elapsed_ns.push(slice_ns);
        if let (Some(before_ns), Some(after_ns)) = (cpu_before_ns, cpu_after_ns) {
            slices.cpu_ns.push(after_ns.wrapping_sub(before_ns));
        }
        now = reference_quantum(monotonic_raw_ns(), slices);
        left -= slice_laps;
        if left > 0 {
            pause(slices);
        }
    }
    Ok((elapsed_ns, now))
}

/// Keeps the counts of a slice, one for each event; nothing if they are not known.
fn push_counts<const N: usize>(slices: &mut Slices, counts: Option<[u64; N]>) {
    if let Some(counts) = counts {
        for (event, count) in slices.events.iter_mut().zip(counts) {
            event.push(count);
        }
    }
}

/// Time that a batch may still wait for an unshared core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitBudget {
    /// k0 of the CPU; without it nothing waits.
    pub unshared_ratio: Option<f64>,
    /// Remaining time in nanoseconds.
    pub left_ns: u64,
}

impl WaitBudget {
    /// Waits before the next of these slices if they are to wait and the last quantum was that of a
    /// shared core.
    pub fn wait(&mut self, slices: &mut Slices) {
        let Some(ratio) = self.unshared_ratio else { return };
        if slices.waits.is_none() {
            return;
        }
        let last = (slices.latency_ns.last(), slices.throughput_ns.last());
        if let (Some(latency_ns), Some(throughput_ns)) = last {
            if QuantumTimes::from((*latency_ns, *throughput_ns)).is_unshared(ratio) {
                return;
            }
        }
        let wait = self.spend(slices.elapsed_ns.len() as u32);
        slices.waits.get_or_insert_default().extend(wait);
    }

    /// Waits before what is timed next, slice or not. Returns `None` without waiting if k0 is not
    /// known or no time is left.
    pub fn spend(&mut self, slice: u32) -> Option<CoreWait> {
        let ratio = self.unshared_ratio.filter(|_| self.left_ns > 0)?;
        let wait = wait_unshared(ratio, self.left_ns, slice);
        self.left_ns = self.left_ns.saturating_sub(wait.elapsed_ns);
        Some(wait)
    }
}

/// Timed laps of the ring at each place that is tried.
pub const PLACE_LAPS: u64 = 3;
/// Places that are tried however long they take: among fewer there may be no good one.
pub const MIN_PLACES: u32 = 8;
/// Time after which no place beyond [`MIN_PLACES`] is tried, in nanoseconds.
pub const PLACES_NS: u64 = 16_000_000;

/// Returns the place at which a lap took least time, and how many were tried. `tried` has the time
/// of a lap at each place and the quanta around it.
///
/// Which pages of the members meet in a cache is chance: at one place many do, at another none. A
/// place that was tried on a shared core is taken only if all were; if k0 is not known, no core is
/// taken for shared.
pub fn best_place(
    unshared_ratio: Option<f64>,
    tried: &[(u64, Slices)],
) -> Option<(u32, MemoryPlaces)> {
    let mut unshared = 0;
    let mut best = None;
    for (place, (lap_ns, quanta)) in (0..).zip(tried) {
        let is_shared = unshared_ratio.is_some_and(|ratio| !all_unshared(quanta, ratio));
        unshared += u32::from(!is_shared);
        let rank = (is_shared, lap_ns, place);
        if best.is_none_or(|best| rank < best) {
            best = Some(rank);
        }
    }
    let (_, _, best_place) = best?;
    let unshared = unshared_ratio.map(|_| unshared);
    Some((best_place, MemoryPlaces { tried: tried.len() as u32, unshared }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(
        unshared_ratio: Option<f64>,
        tried: &[(u64, [(u64, u64); 2])],
    ) -> Option<(u32, MemoryPlaces)> {
        let place = |(lap_ns, quanta): &(u64, [(u64, u64); 2])| {
            let mut slices = Slices::with_room_for(1, 1);
            for (latency, throughput) in quanta {
                slices.push_quantum(*latency, *throughput);
            }
            (*lap_ns, slices)
        };
        best_place(unshared_ratio, &tried.iter().map(place).collect::<Vec<_>>())
    }

    #[test]
    fn the_place_of_the_fastest_lap_on_an_unshared_core_is_taken() {
        let (alone, shared) = ((6000, 6060), (6000, 8400));
        let tried = [
            (900, [alone, alone]),
            (700, [alone, shared]),
            (800, [alone, alone]),
            (600, [shared, alone]),
        ];
        let found = |place, unshared| Some((place, MemoryPlaces { tried: 4, unshared }));
        assert_eq!(best(Some(1.01), &tried), found(2, Some(2)));
        // Where k0 is unknown, and where the core was shared each time, the laps decide.
        assert_eq!(best(None, &tried), found(3, None));
        assert_eq!(best(Some(0.5), &tried), found(3, Some(0)));
        assert_eq!(best(Some(1.01), &[]), None);
    }
}
