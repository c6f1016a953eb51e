//! Durations, counted by powers of two. Bucket 0 has those below 128 ns, bucket 1 those from 128 to
//! 255 ns, bucket 2 those from 256 to 511 ns, and so on: 3,000 ns is in bucket 5 (2,048 to 4,095).

use crate::layout::{BUCKETS, FIRST_SHIFT};
use std::ops::Sub;

/// Counts of durations by length. They wrap at 2^32: at a million a second, two snapshots less than
/// an hour apart have a right difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    counts: [u32; BUCKETS],
}

impl From<[u32; BUCKETS]> for DurationHistogram {
    fn from(counts: [u32; BUCKETS]) -> Self {
        Self { counts }
    }
}

impl DurationHistogram {
    /// Returns the counts; bucket `b` has durations from [`lower_ns`](Self::lower_ns)`(b)` to below
    /// the lower end of the next.
    pub fn counts(&self) -> &[u32; BUCKETS] {
        &self.counts
    }

    /// Returns the lower end of a bucket in nanoseconds: 0, 128, 256, ... The last bucket, from
    /// 2^37 ns (137 s), has no upper end.
    pub fn lower_ns(bucket: usize) -> u64 {
        if bucket == 0 { 0 } else { 1 << (bucket.min(BUCKETS - 1) as u32 + FIRST_SHIFT) }
    }

    /// Returns the number of durations.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Returns the ends, in nanoseconds, of the bucket in which the quantile `q` (0 to 1) lies.
    /// `None` if the histogram is empty.
    pub fn quantile_ns(&self, q: f64) -> Option<(u64, u64)> {
        let total = self.total();
        let rank = ((total as f64 * q.clamp(0.0, 1.0)).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        let upper = if bucket + 1 < BUCKETS { Self::lower_ns(bucket + 1) } else { u64::MAX };
        Some((Self::lower_ns(bucket), upper))
    }

    /// Adds the counts of another histogram, each up to 2^32 - 1.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum = sum.saturating_add(count);
        }
    }
}

impl Sub for DurationHistogram {
    type Output = Self;
    /// Returns the durations that came after the snapshot `earlier`.
    fn sub(mut self, earlier: Self) -> Self {
        for (count, earlier_count) in self.counts.iter_mut().zip(earlier.counts) {
            *count = count.wrapping_sub(earlier_count);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_counts() {
        let mut counts = [0; BUCKETS];
        assert_eq!(DurationHistogram::from(counts).quantile_ns(0.5), None);
        (counts[0], counts[3], counts[31]) = (50, 49, 1);
        let histogram = DurationHistogram::from(counts);
        assert_eq!(histogram.total(), 100);
        assert_eq!(histogram.quantile_ns(0.5), Some((0, 128)));
        assert_eq!(histogram.quantile_ns(0.51), Some((512, 1024)));
        assert_eq!(histogram.quantile_ns(0.99), Some((512, 1024)));
        assert_eq!(histogram.quantile_ns(1.0), Some((1 << 37, u64::MAX)));
        // Of three the middle one is the second, and 99 % of them are all three.
        (counts[0], counts[3], counts[31]) = (1, 1, 1);
        let histogram = DurationHistogram::from(counts);
        assert_eq!(histogram.quantile_ns(0.5), Some((512, 1024)));
        assert_eq!(histogram.quantile_ns(0.99), Some((1 << 37, u64::MAX)));
    }

    #[test]
    fn differences_survive_a_wrap() {
        let mut counts = [0; BUCKETS];
        counts[4] = u32::MAX;
        let before = DurationHistogram::from(counts);
        counts[4] = 4;
        assert_eq!((DurationHistogram::from(counts) - before).total(), 5);
    }
}
