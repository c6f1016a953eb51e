//! `classic experiment malloc`.

use super::{MeasureUnit, Tally, TrialMeasure, TrialSample};

/// Tally: ticks of the thread's CPU time for one malloc, by threadclock.
pub const MALLOC_TICKS: &str = "malloc_ticks";
/// Tally: the same for one free.
pub const FREE_TICKS: &str = "free_ticks";
/// Tally: the same for nothing at all.
pub const EMPTY_TICKS: &str = "empty_ticks";

/// What a slow call was seen to do. Counts are `slow_malloc_CAUSE` and `slow_free_CAUSE`; one
/// call may have several causes.
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

/// Why a call was slow.
#[derive(Clone, Copy, Debug)]
pub struct SlowCause {
    /// The end of its count's name.
    pub name: &'static str,
    /// What happened.
    pub in_words: &'static str,
}

/// Count: brk calls of the whole sample.
pub const BRK_CALLS: &str = "brk_calls";
/// Count: mmap, munmap and madvise calls of the whole sample.
pub const MMAP_CALLS: &str = "mmap_calls";
/// Count: minor faults of the whole sample.
pub const MINOR_FAULTS: &str = "minor_faults";

/// One of the two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorCall {
    /// Its tally.
    pub tally: &'static str,
    /// The count of its slow calls; those by cause have the cause behind it.
    pub slow: &'static str,
}

impl AllocatorCall {
    /// malloc(3)
    pub const MALLOC: Self = Self { tally: MALLOC_TICKS, slow: "slow_malloc" };
    /// free(3)
    pub const FREE: Self = Self { tally: FREE_TICKS, slow: "slow_free" };

    /// The count of its slow calls of one cause; by `ticks` the count of ticks that all of them
    /// took.
    pub fn slow_by(self, cause: &str) -> String {
        format!("{}_{cause}", self.slow)
    }
}

/// Returns the times of `call` less those of reading the clock twice with nothing between; absent
/// where one of them was not taken.
pub fn net_tally(sample: &TrialSample, call: AllocatorCall) -> Option<Tally> {
    sample.tally(call.tally)?.less(&*sample.tally(EMPTY_TICKS)?)
}

/// The median malloc of a sample, in ticks.
pub fn net_median(sample: &TrialSample) -> Option<f64> {
    net_tally(sample, AllocatorCall::MALLOC)?.median()
}

/// What the two calls cost.
pub(super) const MEASURES: [TrialMeasure; 2] = [
    TrialMeasure::new("malloc_ns", "ns of malloc", MALLOC_TICKS, MeasureUnit::Ticks, net_median),
    TrialMeasure::new("free_ns", "ns of free", FREE_TICKS, MeasureUnit::Ticks, |sample| {
        net_tally(sample, AllocatorCall::FREE)?.median()
    }),
];
