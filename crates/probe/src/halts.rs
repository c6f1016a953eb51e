//! Whether a ring was kept from running, and by what, as far as the kernel tells: read around
//! samples only.

use std::fs;
use std::path::Path;
use std::time::Duration;

use model::ring::Halts;
use rustix::time::{ClockId, clock_gettime};

use crate::machine::{self, HaltCounter};
use crate::sys;

/// Shorter differences of the two clocks are those of two readings.
const LEAST_SUSPENDED: Duration = Duration::from_millis(1);

/// Where the kernel counts it for this process.
pub struct HaltWatch {
    quotas: Vec<HaltCounter>,
    frozen: Option<HaltCounter>,
}

/// What was counted up to a moment.
pub struct HaltReading {
    throttled_ns: u64,
    frozen_ns: u64,
    suspended: Duration,
}

impl HaltWatch {
    /// Looks where; from here on the signal that ends a stop is noted in this thread and all that
    /// it forks or starts.
    pub fn start() -> Self {
        sys::note_continue();
        let (quotas, frozen) = machine::halts(Path::new("/"));
        Self { quotas, frozen }
    }

    /// What was counted so far. Signals up to here are forgotten.
    pub fn before(&self) -> HaltReading {
        sys::was_continued();
        self.now()
    }

    /// What kept members from running since; none where nothing did.
    pub fn since(&self, before: &HaltReading) -> Option<Halts> {
        let now = self.now();
        let suspended = now.suspended.saturating_sub(before.suspended);
        let suspended =
            suspended.checked_sub(LEAST_SUSPENDED).map_or(Duration::ZERO, |_| suspended);
        let halts = Halts {
            throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
            frozen_ns: now.frozen_ns.saturating_sub(before.frozen_ns),
            suspended_ns: u64::try_from(suspended.as_nanos()).unwrap_or(u64::MAX),
            continued: sys::was_continued(),
        };
        (halts != Halts::default()).then_some(halts)
    }

    fn now(&self) -> HaltReading {
        let ns = |of: &HaltCounter| {
            let text = fs::read_to_string(&of.path).ok()?;
            let line =
                text.lines().find_map(|line| line.strip_prefix(of.item)?.strip_prefix(' '))?;
            line.trim().parse::<u64>().ok()?.checked_mul(of.unit_ns)
        };
        let clock = |id| Duration::try_from(clock_gettime(id)).unwrap_or_default();
        HaltReading {
            throttled_ns: self.quotas.iter().filter_map(ns).sum(),
            frozen_ns: self.frozen.iter().filter_map(ns).sum(),
            suspended: clock(ClockId::Boottime).saturating_sub(clock(ClockId::Monotonic)),
        }
    }
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
        let quotas =
            vec![count(&first, "throttled_usec", 1000), count(&second, "throttled_time", 1)];
        let watch = HaltWatch { quotas, frozen: Some(count(&frozen, "frozen_usec", 1000)) };
        put(5, 7, 1);
        let before = watch.now();
        assert_eq!(watch.since(&before), None);
        put(8, 107, 3);
        let halts = Halts { throttled_ns: 3_100, frozen_ns: 2_000, ..Halts::default() };
        assert_eq!(watch.since(&before), Some(halts));
        fs::remove_file(&first).unwrap();
        assert_eq!(watch.since(&before).map(|halts| halts.frozen_ns), Some(2_000));
    }
}
