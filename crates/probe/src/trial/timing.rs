//! What timed loops share: slices of about a quarter of a millisecond with reference quanta around
//! each, and what the kernel says that a loop used. A lap is what the loop does once: a batch, or a
//! single call. Nothing stands within one.

use model::ring::{SLICE_NS, Slices};
use model::trial::Sliced;
use model::trial::loops::{
    CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS, CPU_NS, SAMPLED_NS, SAMPLED_USER_NS,
};

use super::harness::{TrialError, TrialOutcome};
use crate::ring::{SliceMeters, in_slices};
use crate::sys::{
    HAS_QUANTA, UsageScope, cpu_clocks_ns, monotonic_raw_ns, reference_quantum, usage,
};

/// Calls that are made before any is timed.
pub(super) const WARM_UP: u32 = 100;

/// Slices of a loop at least, where it has as many laps: a loop of a few microseconds is one slice
/// a round otherwise, and a figure at full speed needs 30 clean ones.
const FEWEST_SLICES: u64 = 8;
/// Slices of a loop at most.
const MOST_SLICES: u64 = 10_000;

/// Parts of a warm-up, each timed. The first ones find caches cold.
const WARM_UPS: u32 = 10;

/// How a loop is cut into slices, and then the slices.
pub(super) struct SlicedLoop {
    laps: u64,
    /// None on architectures without quanta.
    pub(super) slices: Option<Slices>,
}

impl SlicedLoop {
    /// So many laps, each of which lasts about `ns_per_lap`. Room for all slices has been touched.
    pub(super) fn new(laps: u32, ns_per_lap: f64) -> Self {
        let laps = u64::from(laps);
        let fit = (SLICE_NS as f64 / ns_per_lap.max(1.0)) as u64;
        let slice = fit.min(laps / FEWEST_SLICES).max(laps.div_ceil(MOST_SLICES)).max(1);
        let room = || Slices::with_room_for(laps.div_ceil(slice) as usize, slice);
        Self { laps, slices: HAS_QUANTA.then(room) }
    }

    /// Runs all laps, which take the time of `clocks` only: `run` makes as many as its argument
    /// says.
    pub(super) fn run(
        &mut self,
        meters: &SliceMeters,
        mut run: impl FnMut(u64) -> Result<(), TrialError>,
    ) -> Result<(), TrialError> {
        let Some(slices) = &mut self.slices else { return run(self.laps) };
        let first = reference_quantum(monotonic_raw_ns(), slices);
        reference_quantum(first, slices);
        let (_, end) = in_slices(self.laps, slices, meters, run, |_| ())?;
        reference_quantum(end, slices);
        Ok(())
    }

    /// Adds what the laps gave, each of `outcomes` under its name.
    pub(super) fn add_to(self, outcome: &mut TrialOutcome, outcomes: &[(&str, &[i64])]) {
        let Some(slices) = self.slices else {
            return outcomes
                .iter()
                .for_each(|(name, all)| outcome.tally(name, all.iter().copied()));
        };
        let laps = usize::try_from(slices.laps).unwrap_or(usize::MAX).max(1);
        let by_slice = |(name, all): &(&str, &[i64])| {
            let tally = |slice: &[i64]| slice.iter().copied().collect();
            (name.to_string(), all.chunks(laps).map(tally).collect())
        };
        let tallies = outcomes.iter().map(by_slice).collect();
        outcome.sliced.push(Sliced { slices, tallies });
    }
}

/// Makes `calls` calls that are not kept, in parts; nanoseconds of a call by the fastest part.
pub(super) fn warm_up(
    calls: u32,
    mut make: impl FnMut(u32) -> Result<(), TrialError>,
) -> Result<f64, TrialError> {
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

/// CPU time of a process in nanoseconds, of one that has ended until it is reaped: precisely, as
/// ticks sampled it in user mode, and as ticks sampled it. Not getrusage(2)'s own split: a process
/// that saw one kind of tick only is all of that kind to it, and a loop of a round sees one tick or
/// none. Ticks can be added up over rounds.
pub(super) type Clocks = [i64; 3];

/// The clocks of a process; absent where one cannot be read.
pub(super) fn clocks_of(pid: i32) -> Option<Clocks> {
    Some(cpu_clocks_ns(pid, false).ok()?.map(|ns| ns as i64))
}

/// What loops used, without what lies between them; and all switches from the first to the last.
pub(super) struct LoopAccounts {
    pid: i32,
    /// None once a clock could not be read.
    own: Option<Clocks>,
    switches: u64,
}

impl LoopAccounts {
    /// Switches from here on.
    pub(super) fn open() -> Self {
        Self { pid: std::process::id() as i32, own: Some([0; 3]), switches: switches() }
    }

    /// CPU time of this, by a reading of the clocks before and one after.
    pub(super) fn around<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let before = clocks_of(self.pid);
        let done = act();
        let after = clocks_of(self.pid);
        let sum = self.own.zip(before.zip(after));
        self.own = sum
            .map(|(own, (before, after))| std::array::from_fn(|i| own[i] + after[i] - before[i]));
        done
    }

    /// Gives the switches up to here; `child` is all that the second process used. A clock that
    /// cannot be read counts nothing.
    pub(super) fn close(&self, child: Option<Clocks>, outcome: &mut TrialOutcome) -> u64 {
        let own = [CPU_NS, SAMPLED_USER_NS, SAMPLED_NS];
        let of_child = [CHILD_CPU_NS, CHILD_SAMPLED_USER_NS, CHILD_SAMPLED_NS];
        for (names, clocks) in [(own, self.own), (of_child, child)] {
            for (name, ns) in names.into_iter().zip(clocks.into_iter().flatten()) {
                outcome.count(name, ns);
            }
        }
        switches().saturating_sub(self.switches)
    }
}

/// Switches of this process and of its children, voluntary and involuntary. Children's count once
/// they have been waited for.
fn switches() -> u64 {
    let of = |whose| usage(whose).switches();
    of(UsageScope::Own) + of(UsageScope::Children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::MemberClocks;
    use crate::trial::harness::room;

    fn run(laps: u32, ns_per_lap: f64) -> (Vec<u64>, Option<Slices>) {
        let (mut cut, mut made) = (SlicedLoop::new(laps, ns_per_lap), Vec::new());
        let ran = cut.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |laps| {
            made.push(laps);
            Ok(())
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
                Ok(())
            });
            assert_eq!(made, calls);
            assert!(each.is_ok_and(f64::is_finite));
        }
    }

    #[test]
    fn a_loop_that_breaks_off_says_why() {
        let mut cut = SlicedLoop::new(100, 1e6);
        let mut left = 5;
        let ran = cut.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |_| {
            left -= 1;
            if left == 0 { Err(TrialError::no_counter()) } else { Ok(()) }
        });
        assert_eq!(ran, Err(TrialError::no_counter()));
    }

    #[test]
    fn room_is_empty_and_large_enough() {
        assert!(room(100, 1).is_empty() && room(100, 1).capacity() >= 100);
    }

    #[test]
    fn what_lies_between_the_loops_is_not_counted() {
        let burn = || {
            let mut slices = Slices::with_room_for(100, 1);
            (0..100).for_each(|_| {
                reference_quantum(0, &mut slices);
            });
        };
        let cpu_ns = |with_loop: bool| {
            let mut accounts = LoopAccounts::open();
            burn();
            if with_loop {
                accounts.around(burn);
            }
            burn();
            let mut outcome = TrialOutcome::default();
            accounts.close(None, &mut outcome);
            outcome.counts[CPU_NS]
        };
        assert_eq!(cpu_ns(false), 0);
        assert!(cpu_ns(true) > 0);
    }
}
