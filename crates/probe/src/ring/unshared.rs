//! How laps are cut into slices, and what a worker does about a core that others share: it waits, within a budget,
//! until nobody does, and it chooses at which of its places the members' memory is measured.

use model::speed::{Places, Slices};

use crate::sys::{all_unshared, is_unshared, monotonic_raw_ns, reference_quantum, wait_unshared};

/// Makes so many laps in slices, from `now` on, with a quantum behind each; `pause` comes between two and gives the
/// time after it. Gives the time of the laps alone, and the time at the end.
pub fn in_slices<E>(
    laps: u64,
    mut now: u64,
    slices: &mut Slices,
    mut run: impl FnMut(u64) -> Result<(), E>,
    mut pause: impl FnMut(u64, &mut Slices) -> u64,
) -> Result<(u64, u64), E> {
    let (mut left, mut elapsed_ns) = (laps, 0);
    while left > 0 {
        let now_laps = left.min(slices.laps.max(1));
        run(now_laps)?;
        let end = monotonic_raw_ns();
        elapsed_ns += end.wrapping_sub(now);
        slices.elapsed_ns.push(end.wrapping_sub(now));
        now = reference_quantum(end, slices);
        left -= now_laps;
        if left > 0 {
            now = pause(now, slices);
        }
    }
    Ok((elapsed_ns, now))
}

/// How long a batch may wait for a core that nobody shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitBudget {
    /// k0 of the CPU; of a CPU that nobody knows there is nothing to wait for.
    pub unshared_ratio: Option<f64>,
    /// What is left of the time.
    pub left_ns: u64,
}

impl WaitBudget {
    /// Waits before the next of these slices, if they are to wait, unless the last quantum was that of a core
    /// that nobody shares. Gives the time after it.
    pub fn wait(&mut self, now: u64, slices: &mut Slices) -> u64 {
        let (Some(ratio), Some(waits)) = (self.unshared_ratio, &mut slices.waits) else {
            return now;
        };
        let last = slices.latency_ns.last().zip(slices.throughput_ns.last());
        let times = last.map(|(latency, throughput)| (u64::from(*latency), u64::from(*throughput)));
        if self.left_ns == 0 || times.is_some_and(|times| is_unshared(times, ratio)) {
            return now;
        }
        let wait = wait_unshared(ratio, self.left_ns, slices.elapsed_ns.len() as u32);
        self.left_ns = self.left_ns.saturating_sub(wait.elapsed_ns);
        waits.push(wait);
        monotonic_raw_ns()
    }

    /// The same without slices: before what is timed next.
    pub fn wait_once(&mut self) {
        if let Some(ratio) = self.unshared_ratio.filter(|_| self.left_ns > 0) {
            let wait = wait_unshared(ratio, self.left_ns, 0);
            self.left_ns = self.left_ns.saturating_sub(wait.elapsed_ns);
        }
    }
}

/// Timed laps of the ring at each place that is tried.
pub const PLACE_LAPS: u64 = 3;
/// So many places are tried however long they take: with fewer there may be no good one among them.
pub const FEWEST_PLACES: u32 = 8;
/// Beyond them no further place is tried after this time.
pub const ENOUGH_PLACES_NS: u64 = 16_000_000;

/// The places that were tried. Which pages of the members meet in a cache is chance: at one place many do, at another
/// none. What was tried on a shared core is taken only if nothing else was.
pub struct Tried {
    unshared_ratio: Option<f64>,
    counts: Places,
    /// Whether the core was shared, the time of a lap in nanoseconds, the place.
    best: Option<(bool, u64, u32)>,
}

impl Tried {
    /// None yet, on a CPU of this k0: where nobody knows it, no core is taken for shared.
    pub fn none(unshared_ratio: Option<f64>) -> Self {
        let unshared = unshared_ratio.map(|_| 0);
        Self { unshared_ratio, counts: Places { tried: 0, unshared }, best: None }
    }

    /// Adds one, at which a lap took so long between these quanta.
    pub fn add(&mut self, place: u32, lap_ns: u64, quanta: &Slices) {
        let is_shared = self.unshared_ratio.is_some_and(|ratio| !all_unshared(quanta, ratio));
        self.counts.tried += 1;
        if let Some(unshared) = &mut self.counts.unshared {
            *unshared += u32::from(!is_shared);
        }
        let this = (is_shared, lap_ns, place);
        self.best = Some(self.best.map_or(this, |best| best.min(this)));
    }

    /// The one at which a lap took least, and how many there were.
    pub fn best(&self) -> Option<(u32, Places)> {
        self.best.map(|(_, _, place)| (place, self.counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(
        unshared_ratio: Option<f64>,
        tried: &[(u64, [(u64, u64); 2])],
    ) -> Option<(u32, Places)> {
        let mut places = Tried::none(unshared_ratio);
        for (place, (lap_ns, quanta)) in tried.iter().enumerate() {
            let mut slices = Slices::with_room_for(1, 1);
            quanta
                .iter()
                .for_each(|(latency, throughput)| slices.push_quantum(*latency, *throughput));
            places.add(place as u32, *lap_ns, &slices);
        }
        places.best()
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
        // Where nobody knows the CPU, and where the core was shared each time, the laps decide.
        assert_eq!(best(None, &tried), found(3, None));
        assert_eq!(best(Some(0.5), &tried), found(3, Some(0)));
        assert_eq!(best(Some(1.01), &[]), None);
    }
}
