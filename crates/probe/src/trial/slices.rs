//! Timed loops in slices of about a quarter of a millisecond, with reference quanta around each. A lap is what the loop
//! does once: a batch, or a single call. Nothing stands within one.

use model::ring::SLICE_NS;
use model::speed::Slices;

use crate::sys::{HAS_QUANTA, monotonic_raw_ns, reference_quantum};

/// Slices of a loop at least, where it has as many laps: a loop of a few microseconds is one slice a round
/// otherwise, and a figure at full speed needs 30 clean ones.
const FEWEST_SLICES: u64 = 8;
/// Slices of a loop at most.
const MOST_SLICES: u64 = 10_000;

/// Parts of a warm-up, each timed. The first ones find caches cold.
const WARM_UPS: u32 = 10;

/// How a loop is cut into slices, and then the slices.
pub(super) struct Cut {
    laps: u64,
    /// None on architectures without quanta.
    pub(super) slices: Option<Slices>,
}

impl Cut {
    /// So many laps, each of which lasts about `ns_per_lap`. Room for all slices has been touched.
    pub(super) fn new(laps: u32, ns_per_lap: f64) -> Self {
        let laps = u64::from(laps);
        let fit = (SLICE_NS as f64 / ns_per_lap.max(1.0)) as u64;
        let slice = fit.min(laps / FEWEST_SLICES).max(laps.div_ceil(MOST_SLICES)).max(1);
        let room = || Slices::with_room_for(laps.div_ceil(slice) as usize, slice);
        Self { laps, slices: HAS_QUANTA.then(room) }
    }

    /// Runs all laps: `run` makes as many as it is told.
    pub(super) fn run<E>(&mut self, mut run: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        let Some(slices) = &mut self.slices else { return run(self.laps) };
        let mut now = reference_quantum(monotonic_raw_ns(), slices);
        now = reference_quantum(now, slices);
        let mut left = self.laps;
        while left > 0 {
            let laps = left.min(slices.laps);
            run(laps)?;
            let end = monotonic_raw_ns();
            slices.elapsed_ns.push(end.wrapping_sub(now));
            now = reference_quantum(end, slices);
            left -= laps;
        }
        reference_quantum(now, slices);
        Ok(())
    }
}

/// Makes `calls` calls that are not kept, in parts; nanoseconds of a call by the fastest part.
pub(super) fn warm_up<E>(calls: u32, mut make: impl FnMut(u32) -> Result<(), E>) -> Result<f64, E> {
    let part = (calls / WARM_UPS).max(1);
    let (mut left, mut fastest) = (calls, f64::INFINITY);
    while left > 0 {
        let now = left.min(part);
        let start = monotonic_raw_ns();
        make(now)?;
        let elapsed_ns = monotonic_raw_ns().wrapping_sub(start);
        fastest = fastest.min(elapsed_ns as f64 / f64::from(now));
        left -= now;
    }
    Ok(fastest)
}

/// Room for so many values, all of it touched: filling it faults no page.
pub(super) fn room(values: u32) -> Vec<i64> {
    let mut room = vec![i64::MAX; values as usize];
    room.clear();
    room
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn run(laps: u32, ns_per_lap: f64) -> (Vec<u64>, Option<Slices>) {
        let (mut cut, mut made) = (Cut::new(laps, ns_per_lap), Vec::new());
        let ran = cut.run(|laps| {
            made.push(laps);
            Ok::<(), Infallible>(())
        });
        assert_eq!(ran, Ok(()));
        (made, cut.slices)
    }

    #[test]
    fn every_lap_is_made_once_and_lies_between_quanta() {
        for (laps, ns_per_lap, slices) in [
            // A slice holds 25 of 10 us; 1000 are more than eight such.
            (1000, 10_000.0, 40),
            // Short ones are cut into eight all the same.
            (1000, 10.0, 8),
            (10, 1000.0, 10),
            (3, 1000.0, 3),
            (1, 1e9, 1),
            // What lasts longer than a slice is one.
            (5, 2e6, 5),
            // Nothing is known of its length.
            (100, f64::INFINITY, 100),
            (100, 0.0, 9),
            (1_000_000, 1e6, 10_000),
        ] {
            let (made, cut) = run(laps, ns_per_lap);
            assert_eq!(made.iter().sum::<u64>(), u64::from(laps));
            let Some(cut) = cut else { continue };
            assert_eq!((made.len(), cut.elapsed_ns.len()), (slices, slices), "{laps} {ns_per_lap}");
            assert!(cut.are_whole(), "{cut:?}");
            assert!(made[..slices - 1].iter().all(|laps| *laps == cut.laps));
        }
    }

    #[test]
    fn a_warm_up_makes_its_calls_and_no_other() {
        for calls in [1, 7, 10, 100, 105] {
            let mut made = 0;
            let each = warm_up(calls, |now| {
                made += now;
                Ok::<(), Infallible>(())
            });
            assert_eq!(made, calls);
            assert!(each.is_ok_and(f64::is_finite));
        }
    }

    #[test]
    fn a_loop_that_breaks_off_says_why() {
        let mut cut = Cut::new(100, 1e6);
        let mut left = 5;
        let ran = cut.run(|_| {
            left -= 1;
            if left == 0 { Err("broken") } else { Ok(()) }
        });
        assert_eq!(ran, Err("broken"));
    }

    #[test]
    fn room_is_empty_and_large_enough() {
        assert!(room(100).is_empty() && room(100).capacity() >= 100);
    }
}
