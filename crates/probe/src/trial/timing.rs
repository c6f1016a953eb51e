//! Timing of loops: slices of about a quarter of a millisecond with reference quanta around each,
//! and the CPU time that a loop used by the kernel's clocks. A lap is what the loop does once: a
//! batch of calls or a single call. Quanta and clocks are read between laps only.

use std::collections::BTreeMap;

use rundata::ring::{SLICE_NS, Slices};
use rundata::trial::SlicedTallies;
use rundata::trial::loops::{
    CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS, CPU_NS, SAMPLED_NS, SAMPLED_USER_NS,
};

use super::harness::{TrialError, TrialOutcome};
use crate::ring::{SliceMeters, in_slices};
use crate::sys::{
    HAS_QUANTA, UsageScope, cpu_clocks_ns, monotonic_raw_ns, reference_quantum, usage,
};

/// Calls that are made before any is timed.
pub(super) const WARM_UP_CALLS: u32 = 100;

/// Smallest number of slices of a loop that has as many laps. Without it a loop of a few
/// microseconds would be one slice a round, and a figure at full speed needs 30 clean slices.
const MIN_SLICES: u64 = 8;
/// Largest number of slices of a loop.
const MAX_SLICES: u64 = 10_000;

/// Number of timed parts of a warm-up. The first ones find caches cold.
const WARM_UP_PARTS: u32 = 10;

/// A loop that is cut into slices, and the slices that were timed.
pub(super) struct SlicedLoop {
    laps: u64,
    /// `None` on architectures without quanta.
    pub(super) slices: Option<Slices>,
}

impl SlicedLoop {
    /// Builds a loop of `laps` laps, each of which lasts about `ns_per_lap`. Touches the room for
    /// all slices.
    pub(super) fn new(laps: u32, ns_per_lap: f64) -> Self {
        let laps = u64::from(laps);
        let fitting_laps = (SLICE_NS as f64 / ns_per_lap.max(1.0)) as u64;
        let max_laps = fitting_laps.min(laps / MIN_SLICES);
        let slice_laps = max_laps.max(laps.div_ceil(MAX_SLICES)).max(1);
        let mut slices = None;
        if HAS_QUANTA {
            let count = laps.div_ceil(slice_laps) as usize;
            slices = Some(Slices::with_room_for(count, slice_laps));
        }
        Self { laps, slices }
    }

    /// Runs all laps; `run` makes as many laps as its argument says. `meters` reads the clocks of
    /// the processes that make them.
    pub(super) fn run(
        &mut self,
        meters: &SliceMeters,
        mut run: impl FnMut(u64) -> Result<(), TrialError>,
    ) -> Result<(), TrialError> {
        let Some(slices) = &mut self.slices else { return run(self.laps) };
        let now_ns = reference_quantum(monotonic_raw_ns(), slices);
        reference_quantum(now_ns, slices);
        let (_, now_ns) = in_slices(self.laps, slices, meters, run, |_| ())?;
        reference_quantum(now_ns, slices);
        Ok(())
    }

    /// Adds the values that the laps gave to `outcome`, each list under its name, slice by slice.
    pub(super) fn add_to(self, outcome: &mut TrialOutcome, named_values: &[(&str, &[i64])]) {
        let Some(slices) = self.slices else {
            for (name, values) in named_values {
                outcome.tally(name, values.iter().copied());
            }
            return;
        };
        let slice_laps = usize::try_from(slices.laps).unwrap_or(usize::MAX).max(1);
        let mut tallies = BTreeMap::new();
        for (name, values) in named_values {
            let mut tallies_by_slice = Vec::new();
            for slice_values in values.chunks(slice_laps) {
                tallies_by_slice.push(slice_values.iter().copied().collect());
            }
            tallies.insert(name.to_string(), tallies_by_slice);
        }
        outcome.sliced.push(SlicedTallies { slices, tallies });
    }
}

/// Makes `calls` calls in parts, whose times are not kept. Returns the nanoseconds of a call in the
/// fastest part.
pub(super) fn warm_up(
    calls: u32,
    mut make: impl FnMut(u32) -> Result<(), TrialError>,
) -> Result<f64, TrialError> {
    let part = (calls / WARM_UP_PARTS).max(1);
    let (mut left, mut fastest) = (calls, f64::INFINITY);
    while left > 0 {
        let part_calls = left.min(part);
        let start_ns = monotonic_raw_ns();
        make(part_calls)?;
        let elapsed_ns = monotonic_raw_ns().wrapping_sub(start_ns);
        fastest = fastest.min(elapsed_ns as f64 / f64::from(part_calls));
        left -= part_calls;
    }
    Ok(fastest)
}

/// CPU time of a process in nanoseconds: precise, user mode as ticks sampled it, and all as ticks
/// sampled it. Readable until the process is reaped.
///
/// The split of getrusage(2) is of no use: to it a process that saw ticks of one kind only is all
/// of that kind, and a loop of one round sees one tick or none. Ticks can be added up over rounds.
pub(super) type CpuTimes = [i64; 3];

/// Reads the CPU times of a process, if all of them can be read.
pub(super) fn read_cpu_times(pid: i32) -> Option<CpuTimes> {
    Some(cpu_clocks_ns(pid, false).ok()?.map(|ns| ns as i64))
}

/// CPU time that loops used, without what lies between them, and all switches from the first loop
/// to the last.
pub(super) struct LoopAccounts {
    pid: i32,
    /// `None` once a clock could not be read.
    used_ns: Option<CpuTimes>,
    switches_before: u64,
}

impl LoopAccounts {
    /// Opens the accounts: switches count from here on.
    pub(super) fn open() -> Self {
        Self {
            pid: std::process::id() as i32,
            used_ns: Some([0; 3]),
            switches_before: count_switches(),
        }
    }

    /// Runs `act` and adds the CPU time that it used, by reading the clocks before and after it.
    pub(super) fn around<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let before = read_cpu_times(self.pid);
        let result = act();
        let after = read_cpu_times(self.pid);
        self.used_ns = match (self.used_ns, before, after) {
            (Some(used), Some(before), Some(after)) => {
                Some(std::array::from_fn(|clock| used[clock] + after[clock] - before[clock]))
            }
            _ => None,
        };
        result
    }

    /// Adds the CPU times to `outcome` and returns the switches up to here. `child` is all CPU time
    /// of the second process. A clock that could not be read is left out.
    pub(super) fn close(&self, child: Option<CpuTimes>, outcome: &mut TrialOutcome) -> u64 {
        let own_names = [CPU_NS, SAMPLED_USER_NS, SAMPLED_NS];
        let child_names = [CHILD_CPU_NS, CHILD_SAMPLED_USER_NS, CHILD_SAMPLED_NS];
        for (names, times) in [(own_names, self.used_ns), (child_names, child)] {
            let Some(times) = times else { continue };
            for (name, ns) in names.into_iter().zip(times) {
                outcome.count(name, ns);
            }
        }
        count_switches().saturating_sub(self.switches_before)
    }
}

/// Counts the switches of this process and of its children, voluntary and involuntary. Children
/// count once they have been waited for.
fn count_switches() -> u64 {
    usage(UsageScope::Own).switches() + usage(UsageScope::Children).switches()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::MemberClocks;
    use crate::trial::harness::touched_room;

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
        assert!(touched_room(100, 1).is_empty() && touched_room(100, 1).capacity() >= 100);
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
