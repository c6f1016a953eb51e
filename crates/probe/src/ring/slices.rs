//! How laps are cut into slices, and what a worker does about a core that others share: it waits,
//! within a budget, until it is unshared, and it chooses at which of its places the members' memory
//! is measured.

use model::ring::{Places, Slices, Wait};

use super::meters::SliceMeters;
use crate::sys::{
    CpuEvents, all_unshared, is_unshared, monotonic_raw_ns, reference_quantum, wait_unshared,
};

/// Makes so many laps in slices, with a quantum behind each; `pause` comes between two. The meters
/// are read around each slice, outside of its time. Gives the time of the laps alone, and the time
/// at the end.
pub fn in_slices<E>(
    laps: u64,
    slices: &mut Slices,
    meters: &SliceMeters,
    mut run: impl FnMut(u64) -> Result<(), E>,
    mut pause: impl FnMut(&mut Slices),
) -> Result<(u64, u64), E> {
    let (mut left, mut elapsed_ns, mut now) = (laps, 0, 0);
    while left > 0 {
        let now_laps = left.min(slices.laps.max(1));
        let counts_before = meters.events.as_ref().and_then(CpuEvents::read);
        let used_before_ns = meters.clocks.total_ns();
        let start = monotonic_raw_ns();
        run(now_laps)?;
        let slice_ns = monotonic_raw_ns().wrapping_sub(start);
        let used_ns = meters.clocks.total_ns().zip(used_before_ns);
        let counts = counts_before.zip(meters.events.as_ref().and_then(CpuEvents::read));
        let counted = meters
            .events
            .as_ref()
            .zip(counts)
            .and_then(|(events, (before, after))| events.between(&before, &after));
        if let Some(counts) = counted {
            slices.events.iter_mut().zip(counts).for_each(|(of, count)| of.push(count));
        }
        elapsed_ns += slice_ns;
        slices.elapsed_ns.push(slice_ns);
        slices.cpu_ns.extend(used_ns.map(|(after, before)| after.wrapping_sub(before)));
        now = reference_quantum(monotonic_raw_ns(), slices);
        left -= now_laps;
        if left > 0 {
            pause(slices);
        }
    }
    Ok((elapsed_ns, now))
}

/// How long a batch may wait for an unshared core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitBudget {
    /// k0 of the CPU; without it there is no wait.
    pub unshared_ratio: Option<f64>,
    /// What is left of the time.
    pub left_ns: u64,
}

impl WaitBudget {
    /// Waits before the next of these slices, if they are to wait, unless the last quantum was that
    /// of a core that was not shared.
    pub fn wait(&mut self, slices: &mut Slices) {
        let last = slices.latency_ns.last().zip(slices.throughput_ns.last());
        let last = last.map(|(latency, throughput)| (u64::from(*latency), u64::from(*throughput)));
        let is_shared = |ratio| last.is_none_or(|times| !is_unshared(times, ratio));
        if slices.waits.is_none() || !self.unshared_ratio.is_some_and(is_shared) {
            return;
        }
        let wait = self.spend(slices.elapsed_ns.len() as u32);
        slices.waits.get_or_insert_default().extend(wait);
    }

    /// Waits before what is timed next, slice or not; absent where there is nothing to wait for or
    /// no time left.
    pub fn spend(&mut self, slice: u32) -> Option<Wait> {
        let ratio = self.unshared_ratio.filter(|_| self.left_ns > 0)?;
        let wait = wait_unshared(ratio, self.left_ns, slice);
        self.left_ns = self.left_ns.saturating_sub(wait.elapsed_ns);
        Some(wait)
    }
}

/// Timed laps of the ring at each place that is tried.
pub const PLACE_LAPS: u64 = 3;
/// So many places are tried however long they take: with fewer there may be no good one among them.
pub const FEWEST_PLACES: u32 = 8;
/// Beyond them no further place is tried after this time.
pub const ENOUGH_PLACES_NS: u64 = 16_000_000;

/// Of the places that were tried in turn, each with the time of a lap and the quanta around it, the
/// one at which a lap took least, and how many there were. Which pages of the members meet in a
/// cache is chance: at one place many do, at another none. What was tried on a shared core is taken
/// only if nothing else was; of a CPU of unknown k0 no core is taken for shared.
pub fn best_place(unshared_ratio: Option<f64>, tried: &[(u64, Slices)]) -> Option<(u32, Places)> {
    let is_shared = |quanta| unshared_ratio.is_some_and(|ratio| !all_unshared(quanta, ratio));
    let unshared = tried.iter().filter(|(_, quanta)| !is_shared(quanta)).count() as u32;
    let ranked =
        (0..).zip(tried).map(|(place, (lap_ns, quanta))| (is_shared(quanta), lap_ns, place));
    let (.., best) = ranked.min()?;
    Some((best, Places { tried: tried.len() as u32, unshared: unshared_ratio.map(|_| unshared) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(
        unshared_ratio: Option<f64>,
        tried: &[(u64, [(u64, u64); 2])],
    ) -> Option<(u32, Places)> {
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
        let found = |place, unshared| Some((place, Places { tried: 4, unshared }));
        assert_eq!(best(Some(1.01), &tried), found(2, Some(2)));
        // Where k0 is unknown, and where the core was shared each time, the laps decide.
        assert_eq!(best(None, &tried), found(3, None));
        assert_eq!(best(Some(0.5), &tried), found(3, Some(0)));
        assert_eq!(best(Some(1.01), &[]), None);
    }
}
