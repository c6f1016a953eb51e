//! A loop that only reads the time stamp: an interrupt or another task on the CPU leaves a gap
//! between two of its steps.

use std::path::Path;

use rundata::trial::gaps::{
    ALL_INTERRUPTS, CUT_SHORT, INTERRUPTS, LOOK_TICKS, LOOP_TICKS, SWITCHES, THRESHOLD_FACTOR,
    THRESHOLD_TICKS, TICK_NS, WINDOW_TICKS,
};
use rundata::trial::{Gap, TrialCase};

use super::harness::{TrialError, TrialOutcome, touched_room};
use crate::machine::{InterruptCounts, interrupt_counts, interrupts_since};
use crate::sys::{
    UsageScope, limit_real_time, monotonic_ns, own_thread_cpu_ns, tick_period_ns, usage,
};

/// Time for which a real-time loop may run beyond its window; then it is taken to be broken.
const RT_GRACE_US: u64 = 1_000_000;
/// Largest number of gaps of one window.
const MAX_GAPS: usize = 16_384;
/// Number of steps from which the threshold of a gap is learned: some milliseconds.
const STEPS_LEARNED_FROM: usize = 200_000;

/// Watches for a window of `duration_ns`; returns its gaps and counts.
pub(super) fn run(case: &TrialCase, duration_ns: u64) -> Result<TrialOutcome, TrialError> {
    threadclock::time_stamp().ok_or_else(TrialError::no_counter)?;
    if case.policy.is_realtime() {
        limit_real_time(duration_ns / 1000 + RT_GRACE_US, RT_GRACE_US);
    }
    let rate = ticks_per_ns();
    let (median, threshold) = median_and_threshold(time_steps());
    let mut log = GapLog::new();
    let interrupts_before = interrupt_counts(Path::new("/"), &[case.cpu]);
    let switches_before = usage(UsageScope::Thread).switches();
    let window_ticks = log.watch((duration_ns as f64 * rate) as u64, threshold);
    let switches = usage(UsageScope::Thread).switches() - switches_before;
    let interrupts_after = interrupt_counts(Path::new("/"), &[case.cpu]);
    let mut outcome = TrialOutcome { gaps: log.gaps, ..TrialOutcome::default() };
    for (name, count) in [
        (WINDOW_TICKS, window_ticks),
        (LOOK_TICKS, log.reading_ticks),
        (THRESHOLD_TICKS, threshold),
        (LOOP_TICKS, median),
        (CUT_SHORT, u64::from(outcome.gaps.len() == MAX_GAPS)),
        (SWITCHES, switches),
        (TICK_NS, tick_period_ns()),
    ] {
        outcome.count(name, i64::try_from(count).unwrap_or(i64::MAX));
    }
    if let (Some(before), Some(after)) = (interrupts_before, interrupts_after) {
        count_interrupts(&mut outcome, &before, after);
    }
    Ok(outcome)
}

/// Counts the interrupts between two readings, by source and all together.
fn count_interrupts(outcome: &mut TrialOutcome, before: &InterruptCounts, after: InterruptCounts) {
    outcome.count(ALL_INTERRUPTS, 0);
    for interrupts in interrupts_since(after, before) {
        let count = i64::try_from(interrupts.count).unwrap_or(i64::MAX);
        outcome.count(&format!("{INTERRUPTS}{}", interrupts.source), count);
        outcome.count(ALL_INTERRUPTS, count);
    }
}

#[inline(always)]
fn stamp() -> u64 {
    threadclock::time_stamp().unwrap_or(0)
}

/// Estimates the counter's ticks per nanosecond from a few milliseconds. Only the length of the
/// window depends on it.
fn ticks_per_ns() -> f64 {
    let (start_ns, start) = (monotonic_ns(), stamp());
    let mut now_ns = start_ns;
    while now_ns.saturating_sub(start_ns) < 3_000_000 {
        now_ns = monotonic_ns();
    }
    stamp().wrapping_sub(start) as f64 / (now_ns - start_ns) as f64
}

/// Times steps of the loop, in ticks.
fn time_steps() -> Vec<u64> {
    let mut steps = vec![1; STEPS_LEARNED_FROM];
    let mut last = stamp();
    for step in &mut steps {
        let now = stamp();
        *step = now.wrapping_sub(last);
        last = now;
    }
    steps
}

/// Returns the median step, and the threshold that a gap exceeds.
fn median_and_threshold(mut steps: Vec<u64>) -> (u64, u64) {
    steps.sort_unstable();
    let threshold = quantile(&steps, 0.99).max(1).saturating_mul(THRESHOLD_FACTOR);
    (quantile(&steps, 0.5), threshold)
}

/// Returns a quantile of sorted steps, or 1 if there is none.
fn quantile(sorted_steps: &[u64], share: f64) -> u64 {
    let index = (sorted_steps.len() as f64 * share) as usize;
    sorted_steps.get(index).copied().unwrap_or(1)
}

/// Counts that the kernel keeps of the thread, read after each gap.
#[derive(Clone, Copy, Debug)]
struct GapReading {
    switches: u64,
    cpu_ns: u64,
    /// Time stamp of the CPU time: the middle between one before and one after its reading.
    clocked: u64,
    /// Ticks between these two.
    took: u64,
}

impl GapReading {
    fn now() -> Self {
        let switches = usage(UsageScope::Thread).switches();
        let before = stamp();
        let cpu_ns = own_thread_cpu_ns();
        let took = stamp().wrapping_sub(before);
        Self { switches, cpu_ns, clocked: before.wrapping_add(took / 2), took }
    }

    /// Reads again if something came between the clock and its stamps: its time would be missing
    /// here and be too much in the next reading.
    fn undisturbed(quickest: &mut u64) -> Self {
        let mut best = Self::now();
        for _ in 0..MAX_REPEATS {
            if best.took <= quickest.saturating_mul(2) {
                break;
            }
            let again = Self::now();
            let switches = again.switches;
            best = if again.took < best.took { again } else { best };
            best.switches = switches;
        }
        *quickest = best.took.min(*quickest);
        best
    }
}

/// Largest number of times that a disturbed reading is repeated.
const MAX_REPEATS: u32 = 3;

/// The gaps of a window.
struct GapLog {
    gaps: Vec<Gap>,
    start: u64,
    last_reading: GapReading,
    /// Ticks of the quickest reading.
    quickest: u64,
    /// Ticks spent on readings.
    reading_ticks: u64,
}

impl GapLog {
    fn new() -> Self {
        // A page fault would be a gap.
        let any = Gap { at_ticks: 0, ticks: 0, switches: 0, cpu_ns: 0, clocked_ticks: 0 };
        let gaps = touched_room(MAX_GAPS as u32, any);
        // The first readings are slow.
        let readings = (0..8).map(|_| GapReading::now().took);
        let quickest = readings.min().unwrap_or(u64::MAX);
        Self { gaps, start: 0, last_reading: GapReading::now(), quickest, reading_ticks: 0 }
    }

    /// Watches for `window_ticks` ticks; returns how many passed. Measured code: one time stamp and
    /// two comparisons per step, nothing in memory.
    #[inline(never)]
    fn watch(&mut self, window_ticks: u64, threshold: u64) -> u64 {
        self.last_reading = GapReading::undisturbed(&mut self.quickest);
        self.start = stamp();
        let end = self.start.wrapping_add(window_ticks);
        let mut last = self.start;
        loop {
            let now = stamp();
            if now.wrapping_sub(last) > threshold {
                last = self.keep(last, now);
                if self.gaps.len() == MAX_GAPS || last >= end {
                    break;
                }
                continue;
            }
            last = now;
            if now >= end {
                break;
            }
        }
        last.wrapping_sub(self.start)
    }

    /// Stores the gap between two stamps; returns the time stamp when that is done.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, last: u64, now: u64) -> u64 {
        let reading = GapReading::undisturbed(&mut self.quickest);
        self.gaps.push(Gap {
            at_ticks: last.wrapping_sub(self.start),
            ticks: now.wrapping_sub(last),
            switches: u32::try_from(reading.switches - self.last_reading.switches)
                .unwrap_or(u32::MAX),
            cpu_ns: reading.cpu_ns.saturating_sub(self.last_reading.cpu_ns),
            clocked_ticks: reading.clocked.wrapping_sub(self.last_reading.clocked),
        });
        self.last_reading = reading;
        let after = stamp();
        self.reading_ticks += after.wrapping_sub(now);
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_interruptions_do_not_raise_the_threshold() {
        let mut steps = vec![24; 9_500];
        steps.extend(vec![49; 450]);
        steps.extend(vec![1_000_000; 50]);
        assert_eq!(median_and_threshold(steps), (24, 49 * 8));
        assert_eq!(median_and_threshold(Vec::new()), (1, THRESHOLD_FACTOR));
    }

    #[test]
    fn interrupts_that_came_are_counted_by_name_and_all_together() {
        let of = |counts: &[(&str, u64)]| -> InterruptCounts {
            let named = |name: &str| (name.to_string(), "its name".to_string());
            counts.iter().map(|(name, count)| (named(name), *count)).collect()
        };
        let mut outcome = TrialOutcome::default();
        count_interrupts(
            &mut outcome,
            &of(&[("LOC", 5), ("RES", 7)]),
            of(&[("LOC", 9), ("RES", 7), ("36", 2)]),
        );
        let wanted = [("interrupts_36", 2), ("interrupts_LOC", 4), ("interrupts_all", 6)];
        let counted: Vec<(&str, i64)> =
            outcome.counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counted, wanted);
        let mut outcome = TrialOutcome::default();
        count_interrupts(&mut outcome, &of(&[]), of(&[]));
        assert_eq!(outcome.counts.get(ALL_INTERRUPTS), Some(&0), "none is not unknown");
    }

    #[test]
    fn gaps_follow_one_another_within_the_window() {
        if threadclock::time_stamp().is_none() {
            return testing::skip(testing::Need::TimeStamp, "no time stamp");
        }
        let mut log = GapLog::new();
        let before = GapReading::now();
        // Any threshold that a step can exceed: gaps for certain.
        let window = log.watch(3_000_000, 1);
        let after = GapReading::now();
        assert!(!log.gaps.is_empty());
        // Each gap has what was counted since the one before: together no more than all.
        let (mut switches, mut cpu_ns, mut clocked_ticks) = (0, 0, 0);
        for gap in &log.gaps {
            switches += u64::from(gap.switches);
            cpu_ns += gap.cpu_ns;
            clocked_ticks += gap.clocked_ticks;
        }
        assert!(switches <= after.switches - before.switches, "{switches} {before:?} {after:?}");
        assert!(cpu_ns <= after.cpu_ns - before.cpu_ns, "{cpu_ns} ns {before:?} {after:?}");
        assert!(clocked_ticks <= after.clocked - before.clocked, "{clocked_ticks}");
        let mut end = 0;
        for gap in &log.gaps {
            assert!(gap.at_ticks >= end && gap.ticks > 1, "{gap:?} after {end}");
            end = gap.at_ticks + gap.ticks;
        }
        assert!(end <= window && log.reading_ticks <= window);
        assert!(window >= 3_000_000 || log.gaps.len() == MAX_GAPS);
    }
}
