//! Durations, counted by octaves or by parts of octaves. Octave 0 has those below 128 ns, octave 1
//! those from 128 to 255 ns, octave 2 those from 256 to 511 ns, and so on: 3,000 ns is in octave 5
//! (2,048 to 4,095). With eight parts an octave it is in the part from 2,816 to 3,071 ns.

use crate::layout::{BUCKETS, FIRST_END_NS, WAIT_BUCKETS};
use std::ops::Sub;

/// Counts of durations by length, in `N` buckets: with 32 one for each octave, with 256 one for each
/// eighth of an octave. They wrap at 2^32: at a million a second, two snapshots less than an hour
/// apart have a right difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationHistogram<const N: usize = BUCKETS> {
    counts: [u32; N],
}

/// Counts of waits, in eight parts an octave: a quantile of them is known to an eighth, where
/// octaves alone leave a factor of two.
pub type WaitHistogram = DurationHistogram<WAIT_BUCKETS>;

impl<const N: usize> Default for DurationHistogram<N> {
    fn default() -> Self {
        Self { counts: [0; N] }
    }
}

impl<const N: usize> From<[u32; N]> for DurationHistogram<N> {
    fn from(counts: [u32; N]) -> Self {
        Self { counts }
    }
}

impl<const N: usize> DurationHistogram<N> {
    /// Buckets of an octave.
    const PARTS: usize = N / BUCKETS;

    /// Returns the counts; bucket `b` has durations from [`lower_ns`](Self::lower_ns)`(b)` to below
    /// the lower end of the next.
    pub fn counts(&self) -> &[u32; N] {
        &self.counts
    }

    /// Returns the lower end of a bucket in nanoseconds: of octaves 0, 128, 256, ... The last
    /// octave, from 2^37 ns (137 s), has no upper end: its last bucket has all longer durations.
    pub fn lower_ns(bucket: usize) -> u64 {
        let bucket = bucket.min(N - 1);
        let (octave, part) = (bucket / Self::PARTS, (bucket % Self::PARTS) as u64);
        let parts = Self::PARTS as u64;
        match octave {
            0 => FIRST_END_NS * part / parts,
            _ => (FIRST_END_NS << (octave - 1)) / parts * (parts + part),
        }
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
        let upper = if bucket + 1 < N { Self::lower_ns(bucket + 1) } else { u64::MAX };
        Some((Self::lower_ns(bucket), upper))
    }

    /// Returns the counts by octaves.
    pub fn by_octaves(&self) -> DurationHistogram {
        let mut counts = [0_u32; BUCKETS];
        for (octave, parts) in self.counts.chunks_exact(Self::PARTS).enumerate() {
            // Counts that have wrapped have a sum that has wrapped.
            counts[octave] = parts.iter().fold(0, |sum, count| sum.wrapping_add(*count));
        }
        DurationHistogram { counts }
    }

    /// Adds the counts of another histogram. A sum wraps at 2^32 as counts do, so that sums of two
    /// looks have a right difference.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum = sum.wrapping_add(count);
        }
    }
}

impl<const N: usize> Sub for DurationHistogram<N> {
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
    fn a_part_is_an_eighth_of_an_octave_and_eight_of_them_are_one() {
        let ends = [0, 1, 7, 8, 9, 15, 16, 43].map(WaitHistogram::lower_ns);
        assert_eq!(ends, [0, 16, 112, 128, 144, 240, 256, 2816]);
        for octave in 0..BUCKETS {
            let first_part = WaitHistogram::lower_ns(8 * octave);
            assert_eq!(first_part, <DurationHistogram>::lower_ns(octave));
        }
        let mut counts = [0; WAIT_BUCKETS];
        (counts[0], counts[7], counts[43], counts[255]) = (1, 2, 5, 1);
        let waits = WaitHistogram::from(counts);
        assert_eq!(waits.quantile_ns(0.5), Some((2816, 3072)));
        assert_eq!(waits.quantile_ns(1.0), Some(((1 << 37) / 8 * 15, u64::MAX)));
        let octaves = waits.by_octaves();
        assert_eq!([0, 5, 31].map(|octave| octaves.counts()[octave]), [3, 5, 1]);
        assert_eq!((octaves.total(), octaves.by_octaves()), (9, octaves));
    }

    #[test]
    fn differences_survive_a_wrap() {
        let mut counts = [0; BUCKETS];
        counts[4] = u32::MAX;
        let before = DurationHistogram::from(counts);
        counts[4] = 4;
        assert_eq!((DurationHistogram::from(counts) - before).total(), 5);
    }

    #[test]
    fn differences_of_sums_survive_a_wrap() {
        let mut counts = [0; BUCKETS];
        counts[4] = u32::MAX - 1;
        let mut sum = DurationHistogram::from(counts);
        let before = sum;
        counts[4] = 7;
        sum.add(&DurationHistogram::from(counts));
        assert_eq!((sum - before).total(), 7);
    }
}
