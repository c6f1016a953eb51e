//! Two processes on one CPU: one runs all the time, one sleeps and wakes, either across the
//! kernel's ticks or at any moment. Shows how far CPU time by ticks is off.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rundata::ring::Policy;
use rundata::trial::TrialCase;
use rundata::trial::sampling::{SleepPhase, TICK_NS, count_name};
use rustix::process::getppid;
use threadclock::ThreadClock;

use super::harness::{TrialError, TrialOutcome, take_policy};
use crate::policy;
use crate::sys::{
    self, ChildProcess, CpuClock, UsageScope, cpu_clock_ns, cpu_clocks_ns, monotonic_ns,
    sleep_until, tick_period_ns,
};

/// Number of ticks that are observed to learn their phase.
const OBSERVED_TICKS: usize = 24;
/// Longest time without a tick.
const TICK_TIMEOUT_NS: u64 = 500_000_000;
/// Time within which a prompt tick is observed: reading the clocks takes about a microsecond.
const PROMPT_NS: u64 = 60_000;
/// Number of prompt ticks that the phase must have to be believed.
const PROMPT_TICKS: usize = 6;
/// Share of each period for which the sleeper runs.
const RUN_SHARE: f64 = 0.5;
/// The sleeper's period in ticks if it is to move over all phases: not a simple ratio.
const ANYWHERE_PERIOD: f64 = 1.381_966;

/// Moments of the kernel's ticks by CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TickPhase {
    first_ns: u64,
    period_ns: u64,
}

impl TickPhase {
    /// Runs until enough ticks have shown as steps of this process's CPU time by ticks. The kernel
    /// reports their period as the resolution of its coarse clock.
    fn observe(cpu: u32) -> Result<Self, TrialError> {
        let period_ns = tick_period_ns();
        let pid = std::process::id() as i32;
        let mut moments_ns = Vec::with_capacity(OBSERVED_TICKS);
        let (mut last, mut last_ns) = (sampled_ns(pid), monotonic_ns());
        while moments_ns.len() < OBSERVED_TICKS {
            let (now, now_ns) = (sampled_ns(pid), monotonic_ns());
            if now != last {
                moments_ns.push(now_ns);
                (last, last_ns) = (now, now_ns);
            } else if now_ns - last_ns > TICK_TIMEOUT_NS {
                return Err(no_tick(cpu));
            }
        }
        Self::fit(&moments_ns, period_ns).ok_or_else(|| no_tick(cpu))
    }

    /// Fits the phase to the moments at which ticks were observed: none is observed early, many
    /// late, and those that came while another task ran much later. Returns `None` if they are not
    /// ticks of that period.
    fn fit(moments_ns: &[u64], period_ns: u64) -> Option<Self> {
        if period_ns == 0 {
            return None;
        }
        let gaps = moments_ns.windows(2).map(|pair| pair[1] - pair[0]);
        let short_gaps = gaps.filter(|gap| *gap < period_ns / 4).count();
        if short_gaps > moments_ns.len() / 2 {
            return None;
        }
        let first = *moments_ns.first()?;
        let best = moments_ns
            .iter()
            .copied()
            .max_by_key(|tick| count_prompt(moments_ns, *tick, period_ns))?;
        if count_prompt(moments_ns, best, period_ns) < PROMPT_TICKS {
            return None;
        }
        Some(Self { first_ns: first + time_since_tick(first, best, period_ns), period_ns })
    }

    /// Returns the first tick after a moment.
    fn after(&self, moment_ns: u64) -> u64 {
        let since = moment_ns.saturating_sub(self.first_ns);
        self.first_ns + (since / self.period_ns + 1) * self.period_ns
    }
}

/// Reads the CPU time of a process by ticks, in nanoseconds.
fn sampled_ns(pid: i32) -> u64 {
    cpu_clock_ns(pid, false, CpuClock::TicksUserSystem).unwrap_or(0)
}

/// Builds the error that there are no ticks to measure.
fn no_tick(cpu: u32) -> TrialError {
    let waited_ms = TICK_TIMEOUT_NS / 1_000_000;
    TrialError(format!(
        "no timer tick was seen on CPU {cpu} within {waited_ms} ms: the kernel does not \
            account by ticks there (nohz_full, or precise accounting), so there is \
            nothing to measure"
    ))
}

/// Returns the time from the last tick before `moment_ns` to it, if `tick_ns` was a tick.
fn time_since_tick(tick_ns: u64, moment_ns: u64, period_ns: u64) -> u64 {
    (moment_ns + period_ns - tick_ns % period_ns) % period_ns
}

/// Counts the moments that follow a tick promptly, if `tick_ns` was a tick.
fn count_prompt(moments_ns: &[u64], tick_ns: u64, period_ns: u64) -> usize {
    let since_tick = moments_ns.iter().map(|moment| time_since_tick(tick_ns, *moment, period_ns));
    since_tick.filter(|late_ns| *late_ns <= PROMPT_NS).count()
}

/// Report of a process that is done, in nanoseconds: its CPU time by threadclock, the part of it
/// outside of system calls, and its user and system time by getrusage.
type Report = [u64; 4];

/// A process whose clocks are read from outside. It waits for its start, runs until a moment,
/// reports, and waits again, so that it stands still when its clocks are read.
struct ClockedProcess {
    name: &'static str,
    process: ChildProcess,
    socket: UnixStream,
}

impl ClockedProcess {
    /// Starts a process that runs `run`, which returns the CPU time of its system calls in nanoseconds.
    fn start(
        name: &'static str,
        run: impl FnOnce(&ThreadClock) -> u64,
    ) -> Result<Self, TrialError> {
        let (socket, mut parent) =
            UnixStream::pair().map_err(|error| TrialError::lost(name, error))?;
        let process = ChildProcess::start(|| {
            let clock = ThreadClock::for_this_thread();
            let mut message = [0];
            if parent.read_exact(&mut message).is_err() {
                return;
            }
            let usage_before = sys::usage(UsageScope::Own);
            let before = clock.now_ordered();
            let system_ns = run(&clock);
            let own_ns = clock.now_ordered().ns - before.ns;
            let usage = sys::usage(UsageScope::Own);
            let user_ns = usage.user_ns() - usage_before.user_ns();
            let usage_system_ns = usage.system_ns() - usage_before.system_ns();
            let report: Report =
                [own_ns, own_ns.saturating_sub(system_ns), user_ns, usage_system_ns];
            // The parent may have ended: then the report is not needed.
            if parent.write_all(report.map(u64::to_ne_bytes).as_flattened()).is_ok() {
                let _ = parent.read_exact(&mut message);
            }
        })
        .map_err(TrialError::at("fork"))?;
        Ok(Self { name, process, socket })
    }

    /// Waits for the report of the process.
    fn report(&mut self) -> Result<Report, TrialError> {
        let mut words = [[0; 8]; 4];
        let received = self.socket.read_exact(words.as_flattened_mut());
        received.map_err(|error| TrialError::lost(self.name, error))?;
        Ok(words.map(u64::from_ne_bytes))
    }

    /// Reads the CPU time of the process from outside, in nanoseconds: precise, and by ticks.
    fn clocks(&self) -> Result<[u64; 2], TrialError> {
        let clocks = cpu_clocks_ns(self.process.pid(), false);
        let [precise, _, sampled] = clocks.map_err(|errno| TrialError::lost(self.name, errno))?;
        Ok([precise, sampled])
    }

    /// Lets the process run.
    fn go(&mut self) -> Result<(), TrialError> {
        self.socket.write_all(&[1]).map_err(|error| TrialError::lost(self.name, error))
    }
}

/// Runs in user mode until `end_ns`.
fn burn(end_ns: u64) {
    while monotonic_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// Makes system calls until `end_ns`; returns their CPU time in nanoseconds.
fn burn_in_kernel(end_ns: u64, clock: &ThreadClock) -> u64 {
    let before = clock.now_ordered();
    while monotonic_ns() < end_ns {
        // So many at a time that reading the clock hardly counts.
        for _ in 0..16 {
            std::hint::black_box(getppid());
        }
    }
    clock.now_ordered().ns - before.ns
}

/// Runs for a share of each period, first in user mode and then in system calls, and sleeps for the
/// rest. Returns the CPU time of the system calls in nanoseconds.
fn run_sleeper(phase: SleepPhase, ticks: TickPhase, end_ns: u64, clock: &ThreadClock) -> u64 {
    let run_ns = (RUN_SHARE * ticks.period_ns as f64) as u64;
    let rest_ns = ticks.period_ns - run_ns;
    let mut system_ns = 0;
    let mut period: u64 = 0;
    let origin_ns = ticks.after(monotonic_ns()) + rest_ns / 2;
    loop {
        let start_ns = match phase {
            // Half of the rest lies before the tick, half after it.
            SleepPhase::AcrossTicks => ticks.after(monotonic_ns()) + rest_ns / 2,
            SleepPhase::Anywhere => {
                period += 1;
                origin_ns + (period as f64 * ANYWHERE_PERIOD * ticks.period_ns as f64) as u64
            }
        };
        if start_ns + run_ns >= end_ns {
            return system_ns;
        }
        sleep_until(start_ns);
        // If it was woken too late it skips the period: it would run at the wrong phase.
        if monotonic_ns() < start_ns + run_ns {
            burn(start_ns + run_ns / 2);
            system_ns += burn_in_kernel(start_ns + run_ns, clock);
        }
    }
}

/// Runs sleeper and burner for `duration_ns`; returns their CPU times by all clocks.
pub(super) fn run(
    case: &TrialCase,
    phase: SleepPhase,
    duration_ns: u64,
) -> Result<TrialOutcome, TrialError> {
    // Before any fork: the burner would take the CPU from the process that observes the ticks.
    // Under the sleeper's policy, if that is granted, no other task does.
    take_policy(case.policy)?;
    let ticks = TickPhase::observe(case.cpu);
    take_policy(Policy::Other)?;
    let ticks = ticks?;
    let start_ns = monotonic_ns() + 5_000_000;
    let end_ns = start_ns + duration_ns;
    let policy = case.policy;
    let mut sleeper = ClockedProcess::start("sleeper", |clock| {
        // It was granted to the parent a moment ago.
        let _ = policy::take(policy);
        run_sleeper(phase, ticks, end_ns, clock)
    })?;
    let mut burner = ClockedProcess::start("burner", |_| {
        burn(end_ns);
        0
    })?;
    sleep_until(start_ns);
    let before = (sleeper.clocks()?, burner.clocks()?);
    let watched_ns = monotonic_ns();
    sleeper.go()?;
    burner.go()?;
    let mut outcome = TrialOutcome::default();
    for (watched, before) in [(&mut sleeper, before.0), (&mut burner, before.1)] {
        let [threadclock, true_user, user, system] = watched.report()?;
        let [precise, sampled] = watched.clocks()?;
        for (account, ns) in [
            ("precise", precise - before[0]),
            ("ticks", sampled - before[1]),
            ("threadclock", threadclock),
            ("getrusage", user + system),
            ("user", user),
            ("true_user", true_user),
        ] {
            outcome.count(&count_name(watched.name, account), ns as i64);
        }
    }
    outcome.count(TICK_NS, ticks.period_ns as i64);
    outcome.elapsed_ns = Some(monotonic_ns() - watched_ns);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 4_000_000;

    /// Ticks from 1,000,123, each seen up to 9 us late, some not at all, some only after something
    /// else has run for a while.
    fn sightings() -> Vec<u64> {
        let late = |tick: u64| match tick % 3 {
            0 => 1_300_000 + tick * 40_000,
            _ => (tick * 7 % 10) * 1000,
        };
        let seen = (0..40).filter(|tick| tick % 5 != 4);
        seen.map(|tick| 1_000_123 + tick * PERIOD_NS + late(tick)).collect()
    }

    #[test]
    fn ticks_are_found_through_late_and_missing_sightings() {
        let ticks = TickPhase::fit(&sightings(), PERIOD_NS).expect("there are ticks");
        let moment = 1_000_123 + 100 * PERIOD_NS + 2_000_000;
        let true_next = 1_000_123 + 101 * PERIOD_NS;
        let next = ticks.after(moment);
        assert!((true_next..true_next + 10_000).contains(&next), "{next} for {true_next}");
    }

    #[test]
    fn precise_accounting_has_no_ticks() {
        let steps: Vec<u64> = (0..24).map(|step| step * 700).collect();
        assert_eq!(TickPhase::fit(&steps, PERIOD_NS), None);
        assert_eq!(TickPhase::fit(&[], PERIOD_NS), None);
        assert_eq!(TickPhase::fit(&[5], PERIOD_NS), None);
        assert_eq!(TickPhase::fit(&sightings(), 0), None);
        // A period that is not theirs: no phase has enough of them.
        assert_eq!(TickPhase::fit(&sightings(), 3_777_777), None);
    }
}
