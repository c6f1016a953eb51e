//! A process that sleeps until a moment and reads the clock when it is awake.

use std::num::NonZeroU64;

use rundata::ring::Policy;
use rundata::trial::wakeup::{
    COMPANION_NS, CPU_LATENCY_US, LATE_NS, SLACK_NS, SWITCHES, Wakeup, WakeupLoad,
};
use rustix::thread::{current_timer_slack, set_current_timer_slack};

use super::harness::{TrialError, TrialOutcome, check_alive, start_beside};
use crate::idle::{LATENCY_DEVICE, LatencyBound};
use crate::random::RandomSource;
use crate::sys::{
    ChildProcess, CpuClock, UsageScope, cpu_clock_ns, limit_real_time, monotonic_ns, sleep_until,
    usage,
};

/// Number of first wakes that are not kept, as their code is not in the caches.
const WARM_UP_WAKES: u32 = 8;
/// Longest time that a real-time sleeper may run without sleeping.
const RT_SPIN_LIMIT_US: u64 = 1_000_000;

/// Sleeps and wakes as `wakeup` says; returns how late each wake was.
pub(super) fn run(wakeup: &Wakeup, policy: Policy, round: u32) -> Result<TrialOutcome, TrialError> {
    if policy.is_realtime() {
        limit_real_time(RT_SPIN_LIMIT_US, RT_SPIN_LIMIT_US);
    }
    let mut companion = match wakeup.load {
        WakeupLoad::Idle => None,
        WakeupLoad::Busy => Some(start_beside(|| {
            loop {
                std::hint::spin_loop();
            }
        })?),
    };
    let bound = wakeup.cpu_latency_us.map(LatencyBound::hold).transpose();
    let bound = bound.map_err(|error| TrialError(format!("{LATENCY_DEVICE}: {error}")))?;
    // If the slack is not granted, the count below shows it.
    let _ = set_current_timer_slack(NonZeroU64::new(wakeup.timer_slack_ns));
    let mut random = RandomSource::new(wakeup.seed ^ u64::from(round));
    let mut late = vec![1; wakeup.wakes as usize];
    sleep_and_look(wakeup, &mut random, &mut vec![1; WARM_UP_WAKES as usize]);
    let companion_before = companion.as_ref().and_then(cpu_ns);
    let switches_before = usage(UsageScope::Thread).switches();
    let start_ns = monotonic_ns();
    sleep_and_look(wakeup, &mut random, &mut late);
    let elapsed_ns = monotonic_ns() - start_ns;
    let switches = usage(UsageScope::Thread).switches() - switches_before;
    let companion_after = companion.as_ref().and_then(cpu_ns);
    check_alive("busy companion", companion.as_mut_slice())?;
    let mut outcome = TrialOutcome { elapsed_ns: Some(elapsed_ns), ..TrialOutcome::default() };
    outcome.tally(LATE_NS, late);
    outcome.count(SWITCHES, switches as i64);
    if let Ok(slack) = current_timer_slack() {
        outcome.count(SLACK_NS, i64::try_from(slack).unwrap_or(i64::MAX));
    }
    if let Some(us) = bound.as_ref().and_then(LatencyBound::in_force_us) {
        outcome.count(CPU_LATENCY_US, us.into());
    }
    if let (Some(before), Some(after)) = (companion_before, companion_after) {
        outcome.count(COMPANION_NS, after.saturating_sub(before) as i64);
    }
    Ok(outcome)
}

/// Reads the CPU time of a process in nanoseconds, if it can be read.
fn cpu_ns(process: &ChildProcess) -> Option<u64> {
    cpu_clock_ns(process.pid(), false, CpuClock::Precise).ok()
}

/// Sleeps once for each element of `late_ns`, and stores how late the wake was.
fn sleep_and_look(wakeup: &Wakeup, random: &mut RandomSource, late_ns: &mut [i64]) {
    for late in late_ns {
        // Counted from now, not from the last wake: after one that was late by more than a period
        // the next moment would already have passed.
        let wait_ns = wakeup.period_ns / 2 + random.below(wakeup.period_ns + 1);
        let asked_ns = monotonic_ns() + wait_ns;
        sleep_until(asked_ns);
        *late = monotonic_ns() as i64 - asked_ns as i64;
    }
}
