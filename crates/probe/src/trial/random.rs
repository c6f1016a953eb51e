//! Random waits and gaps, fixed by a seed.

use std::time::Duration;

/// SplitMix64 (Steele, Lea and Flood 2014): gaps need no better, and the probes no library for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly from 0 to `most`.
    pub(super) fn below(&mut self, most: u64) -> u64 {
        let part = u128::from(self.next()) * (u128::from(most) + 1);
        (part >> 64) as u64
    }

    /// A time, evenly from 0 to `longest_ns`.
    pub(super) fn pause(&mut self, longest_ns: u64) -> Duration {
        Duration::from_nanos(self.below(longest_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST_NS: u64 = 200_000_000;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs for the seed 1234567, as in the reference implementation's tests.
        let mut random = Random(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn gaps_are_even_over_their_range_and_fixed_by_the_seed() {
        let gaps = |seed| {
            let mut random = Random(seed);
            (0..10_000).map(|_| random.pause(LONGEST_NS)).collect::<Vec<_>>()
        };
        assert_eq!(gaps(7), gaps(7));
        assert_ne!(gaps(7), gaps(8));
        let all = gaps(7);
        let longest = Duration::from_nanos(LONGEST_NS);
        assert!(all.iter().all(|gap| *gap <= longest));
        for quarter in 0..4 {
            let from = longest / 4 * quarter;
            let inside = all.iter().filter(|gap| (from..from + longest / 4).contains(gap)).count();
            assert!((2200..2800).contains(&inside), "{inside} of 10000 in quarter {quarter}");
        }
    }
}
