//! `classic experiment malloc`.

use super::{MeasureUnit, Tally, TrialMeasure, TrialSample};

/// Tally: ticks of the thread's CPU time for one malloc, by threadclock.
pub const MALLOC_TICKS: &str = "malloc_ticks";
/// Tally: ticks of the thread's CPU time for one free, by threadclock.
pub const FREE_TICKS: &str = "free_ticks";
/// Tally: ticks of the thread's CPU time for nothing at all, by threadclock.
pub const EMPTY_TICKS: &str = "empty_ticks";

/// Causes that a slow call was seen to have. Counts are `slow_malloc_CAUSE` and `slow_free_CAUSE`;
/// one call may have several causes.
pub const CAUSES: [SlowCause; 5] = [
    SlowCause { name: "fault", in_words: "first touch of a page" },
    SlowCause { name: "brk", in_words: "heap grown or shrunk (brk)" },
    SlowCause { name: "mmap", in_words: "memory mapped or unmapped" },
    SlowCause { name: "switched", in_words: "switched out" },
    SlowCause {
        name: "unexplained",
        in_words: "unexplained (interrupts, steal, cold caches, a re-sync of threadclock, \
             the allocator's housekeeping)",
    },
];

/// Cause of a slow call.
#[derive(Clone, Copy, Debug)]
pub struct SlowCause {
    /// The end of its count's name.
    pub name: &'static str,
    /// Description.
    pub in_words: &'static str,
}

/// Count: brk calls of the whole sample.
pub const BRK_CALLS: &str = "brk_calls";
/// Count: mmap, munmap and madvise calls of the whole sample.
pub const MMAP_CALLS: &str = "mmap_calls";
/// Count: minor faults of the whole sample.
pub const MINOR_FAULTS: &str = "minor_faults";

/// A call of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorCall {
    /// Name of its tally.
    pub tally: &'static str,
    /// Name of the count of its slow calls; the counts by cause have the cause behind it.
    pub slow: &'static str,
}

impl AllocatorCall {
    /// malloc(3)
    pub const MALLOC: Self = Self { tally: MALLOC_TICKS, slow: "slow_malloc" };
    /// free(3)
    pub const FREE: Self = Self { tally: FREE_TICKS, slow: "slow_free" };

    /// Returns the name of the count of its slow calls of one cause; `ticks` names the ticks that
    /// all of them took.
    pub fn slow_by(self, cause: &str) -> String {
        format!("{}_{cause}", self.slow)
    }
}

/// Returns the times of `call` less those of reading the clock twice with nothing between; absent
/// where one of them was not taken.
pub fn net_tally(sample: &TrialSample, call: AllocatorCall) -> Option<Tally> {
    sample.tally(call.tally)?.less(&*sample.tally(EMPTY_TICKS)?)
}

/// Returns the median malloc of a sample, in ticks.
pub fn net_median(sample: &TrialSample) -> Option<f64> {
    net_tally(sample, AllocatorCall::MALLOC)?.median()
}

/// Costs of the two calls.
pub(super) const MEASURES: [TrialMeasure; 2] = [
    TrialMeasure::new("malloc_ns", "ns of malloc", MALLOC_TICKS, MeasureUnit::Ticks, net_median),
    TrialMeasure::new("free_ns", "ns of free", FREE_TICKS, MeasureUnit::Ticks, |sample| {
        net_tally(sample, AllocatorCall::FREE)?.median()
    }),
];
