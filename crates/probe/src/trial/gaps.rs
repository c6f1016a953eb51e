//! A loop that looks at the time stamp and at nothing else: whatever else runs on the CPU, an
//! interrupt or another task, leaves a gap in it.

use std::path::Path;

use model::trial::gaps::{
    ALL_INTERRUPTS, CUT_SHORT, INTERRUPTS, LOOK_TICKS, LOOP_TICKS, SWITCHES, THRESHOLD_FACTOR,
    THRESHOLD_TICKS, TICK_NS, WINDOW_TICKS,
};
use model::trial::{Case, Gap};

use super::harness::{TrialError, TrialOutcome, room};
use crate::machine::{InterruptCounts, interrupt_counts, interrupts_since};
use crate::sys::{
    UsageScope, limit_real_time, monotonic_ns, own_thread_cpu_ns, tick_period_ns, usage,
};

/// Beyond its window a real-time loop may run this long: it is broken then.
const RT_GRACE_US: u64 = 1_000_000;
/// Most gaps of one window.
const MOST_GAPS: usize = 16_384;
/// Steps of the loop from which its threshold is learned: some milliseconds.
const STEPS_LEARNED_FROM: usize = 200_000;

pub(super) fn run(case: &Case, duration_ns: u64) -> Result<TrialOutcome, TrialError> {
    threadclock::time_stamp().ok_or_else(TrialError::no_counter)?;
    if case.policy.is_realtime() {
        limit_real_time(duration_ns / 1000 + RT_GRACE_US, RT_GRACE_US);
    }
    let rate = ticks_per_ns();
    let (median, threshold) = median_and_threshold(steps());
    let mut log = GapLog::new();
    let interrupts = || interrupt_counts(Path::new("/"), &[case.cpu]);
    let interrupts_before = interrupts();
    let switches_before = usage(UsageScope::Thread).switches();
    let window_ticks = log.watch((duration_ns as f64 * rate) as u64, threshold);
    let switches = usage(UsageScope::Thread).switches() - switches_before;
    let interrupts = interrupts_before.zip(interrupts());
    let mut outcome = TrialOutcome { gaps: log.gaps, ..TrialOutcome::default() };
    for (name, count) in [
        (WINDOW_TICKS, window_ticks),
        (LOOK_TICKS, log.look_ticks),
        (THRESHOLD_TICKS, threshold),
        (LOOP_TICKS, median),
        (CUT_SHORT, u64::from(outcome.gaps.len() == MOST_GAPS)),
        (SWITCHES, switches),
        (TICK_NS, tick_period_ns()),
    ] {
        outcome.count(name, i64::try_from(count).unwrap_or(i64::MAX));
    }
    if let Some((before, after)) = interrupts {
        count_interrupts(&mut outcome, &before, after);
    }
    Ok(outcome)
}

fn count_interrupts(outcome: &mut TrialOutcome, before: &InterruptCounts, after: InterruptCounts) {
    outcome.count(ALL_INTERRUPTS, 0);
    for of in interrupts_since(after, before) {
        let more = i64::try_from(of.count).unwrap_or(i64::MAX);
        outcome.count(&format!("{INTERRUPTS}{}", of.source), more);
        outcome.count(ALL_INTERRUPTS, more);
    }
}

#[inline(always)]
fn stamp() -> u64 {
    threadclock::time_stamp().unwrap_or(0)
}

/// About how many ticks the counter makes in a nanosecond, from a few milliseconds: only the length
/// of the window rests on it.
fn ticks_per_ns() -> f64 {
    let (start_ns, start) = (monotonic_ns(), stamp());
    let mut now_ns = start_ns;
    while now_ns.saturating_sub(start_ns) < 3_000_000 {
        now_ns = monotonic_ns();
    }
    stamp().wrapping_sub(start) as f64 / (now_ns - start_ns) as f64
}

/// Steps of the loop.
fn steps() -> Vec<u64> {
    let mut steps = vec![1; STEPS_LEARNED_FROM];
    let mut last = stamp();
    for step in &mut steps {
        let now = stamp();
        *step = now.wrapping_sub(last);
        last = now;
    }
    steps
}

/// The median step when nothing comes between, and what a gap must exceed.
fn median_and_threshold(mut steps: Vec<u64>) -> (u64, u64) {
    steps.sort_unstable();
    let at = |share: f64| steps.get((steps.len() as f64 * share) as usize).copied().unwrap_or(1);
    (at(0.5), at(0.99).max(1).saturating_mul(THRESHOLD_FACTOR))
}

/// What the kernel says of the thread, looked at after each gap.
#[derive(Clone, Copy)]
struct GapReading {
    switches: u64,
    cpu_ns: u64,
    /// Time stamp of that CPU time, half way between one before it and one after it.
    clocked: u64,
    /// From the one to the other.
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

    /// Looks again where something came between the clock and its stamps: the time that it took
    /// would be missing here and be too much at the next look.
    fn undisturbed(quickest: &mut u64) -> Self {
        let mut best = Self::now();
        for _ in 0..LOOKS {
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

/// Times that a disturbed look is repeated at most.
const LOOKS: u32 = 3;

/// The gaps of a window.
struct GapLog {
    gaps: Vec<Gap>,
    start: u64,
    last_look: GapReading,
    /// Ticks of the quickest look.
    quickest: u64,
    look_ticks: u64,
}

impl GapLog {
    fn new() -> Self {
        // A page fault would be a gap.
        let any = Gap { at_ticks: 0, ticks: 0, switches: 0, cpu_ns: 0, clocked_ticks: 0 };
        let gaps = room(MOST_GAPS as u32, any);
        // Some for nothing: the first ones are slow.
        let looks = (0..8).map(|_| GapReading::now().took);
        let quickest = looks.min().unwrap_or(u64::MAX);
        Self { gaps, start: 0, last_look: GapReading::now(), quickest, look_ticks: 0 }
    }

    /// Watches for so many ticks. Gives how many it were. Measured code: one time stamp, two
    /// comparisons a step, nothing in memory.
    #[inline(never)]
    fn watch(&mut self, window_ticks: u64, threshold: u64) -> u64 {
        self.last_look = GapReading::undisturbed(&mut self.quickest);
        self.start = stamp();
        let end = self.start.wrapping_add(window_ticks);
        let mut last = self.start;
        loop {
            let now = stamp();
            if now.wrapping_sub(last) > threshold {
                last = self.keep(last, now);
                if self.gaps.len() == MOST_GAPS || last >= end {
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

    /// Keeps the gap between two stamps, and gives the time when that is done.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, last: u64, now: u64) -> u64 {
        let look = GapReading::undisturbed(&mut self.quickest);
        self.gaps.push(Gap {
            at_ticks: last.wrapping_sub(self.start),
            ticks: now.wrapping_sub(last),
            switches: u32::try_from(look.switches - self.last_look.switches).unwrap_or(u32::MAX),
            cpu_ns: look.cpu_ns.saturating_sub(self.last_look.cpu_ns),
            clocked_ticks: look.clocked.wrapping_sub(self.last_look.clocked),
        });
        self.last_look = look;
        let after = stamp();
        self.look_ticks += after.wrapping_sub(now);
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
        // Any threshold that a step can exceed: gaps for certain.
        let window = log.watch(3_000_000, 1);
        assert!(!log.gaps.is_empty());
        let mut end = 0;
        for gap in &log.gaps {
            assert!(gap.at_ticks >= end && gap.ticks > 1, "{gap:?} after {end}");
            end = gap.at_ticks + gap.ticks;
        }
        assert!(end <= window && log.look_ticks <= window);
        assert!(window >= 3_000_000 || log.gaps.len() == MOST_GAPS);
    }
}
