//! Times for which a ring was kept from running, as far as the kernel counts them: throttled,
//! frozen, suspended or stopped. Read around samples only.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rundata::ring::HaltTimes;
use rustix::time::{ClockId, clock_gettime};

use crate::machine::{self, HaltCounter, HaltCounters};
use crate::sys;

/// Smallest time taken for a suspension: the two clocks are read one after the other.
const MIN_SUSPENDED: Duration = Duration::from_millis(1);

/// Reads what the kernel counts for this process.
pub struct HaltWatch {
    counters: HaltCounters,
}

/// Times counted up to a moment.
pub struct HaltReading {
    throttled_ns: u64,
    frozen_ns: u64,
    suspended: Duration,
}

impl HaltWatch {
    /// Finds the counters. From here on, this thread and all that it forks or starts note the
    /// signal that ends a stop.
    pub fn start() -> Self {
        sys::note_continue();
        Self { counters: machine::halt_counters(Path::new("/")) }
    }

    /// Reads the counters. Signals that were noted before are forgotten.
    pub fn before(&self) -> HaltReading {
        sys::was_continued();
        self.read()
    }

    /// Returns what kept members from running since `before`, if anything did.
    pub fn since(&self, before: &HaltReading) -> Option<HaltTimes> {
        let now = self.read();
        let mut suspended = now.suspended.saturating_sub(before.suspended);
        if suspended < MIN_SUSPENDED {
            suspended = Duration::ZERO;
        }
        let halts = HaltTimes {
            throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
            frozen_ns: now.frozen_ns.saturating_sub(before.frozen_ns),
            suspended_ns: u64::try_from(suspended.as_nanos()).unwrap_or(u64::MAX),
            continued: sys::was_continued(),
        };
        if halts == HaltTimes::default() { None } else { Some(halts) }
    }

    fn read(&self) -> HaltReading {
        let HaltCounters { throttled, frozen } = &self.counters;
        HaltReading {
            throttled_ns: throttled.iter().filter_map(read_counter_ns).sum(),
            frozen_ns: frozen.as_ref().and_then(read_counter_ns).unwrap_or(0),
            // The boot-time clock runs while the machine is suspended, the monotonic one does not.
            suspended: now_by(ClockId::Boottime).saturating_sub(now_by(ClockId::Monotonic)),
        }
    }
}

/// Reads a counter in nanoseconds, if its file still has it.
fn read_counter_ns(counter: &HaltCounter) -> Option<u64> {
    let text = fs::read_to_string(&counter.path).ok()?;
    for line in text.lines() {
        match line.split_once(' ') {
            Some((item, value)) if item == counter.item => {
                return value.trim().parse::<u64>().ok()?.checked_mul(counter.unit_ns);
            }
            _ => {}
        }
    }
    None
}

fn now_by(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_differences_and_nothing_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let (first, second, frozen) = (path("a"), path("b"), path("c"));
        let put = |one: u64, two: u64, three: u64| {
            fs::write(&first, format!("nr_throttled 9\nthrottled_usec {one}\n")).unwrap();
            fs::write(&second, format!("nr_throttled 9\nthrottled_time {two}\n")).unwrap();
            fs::write(&frozen, format!("frozen_usec {three}\n")).unwrap();
        };
        let count =
            |path: &str, item, unit_ns| HaltCounter { path: path.to_string(), item, unit_ns };
        let throttled =
            vec![count(&first, "throttled_usec", 1000), count(&second, "throttled_time", 1)];
        let frozen_counter = Some(count(&frozen, "frozen_usec", 1000));
        let watch = HaltWatch { counters: HaltCounters { throttled, frozen: frozen_counter } };
        put(5, 7, 1);
        let before = watch.read();
        assert_eq!(watch.since(&before), None);
        put(8, 107, 3);
        let halts = HaltTimes { throttled_ns: 3_100, frozen_ns: 2_000, ..HaltTimes::default() };
        assert_eq!(watch.since(&before), Some(halts));
        fs::remove_file(&first).unwrap();
        assert_eq!(watch.since(&before).map(|halts| halts.frozen_ns), Some(2_000));
    }
}
