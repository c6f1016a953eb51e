//! Random numbers for measurements: SplitMix64 (Steele, Lea and Flood 2014), which is good enough
//! for the gaps of a noise and the order of a walk.

use std::time::Duration;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Returns a random number of the kernel (getrandom(2)), for names in folders where others may
/// write.
pub fn random_number() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    // The kernel returns so few bytes at once or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A seeded source of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomSource(u64);

impl RandomSource {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to below `end`, evenly distributed (Lemire 2019, without the
    /// rejection: the bias is below `end` / 2^64).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let part = u128::from(self.next()) * u128::from(end);
        (part >> 64) as u64
    }

    /// Returns a time from 0 to `longest_ns`, evenly distributed.
    pub(crate) fn pause(&mut self, longest_ns: u64) -> Duration {
        Duration::from_nanos(self.below(longest_ns + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs for the seed 1234567, as in the reference implementation's tests.
        let mut random = RandomSource::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert_eq!(random.next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn numbers_stay_below_their_end() {
        let mut random = RandomSource::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7) && random.below(1) == 0);
    }

    #[test]
    fn pauses_are_even_over_their_range_and_fixed_by_the_seed() {
        let longest = Duration::from_millis(200);
        let pauses = |seed| {
            let mut random = RandomSource::new(seed);
            (0..10_000).map(|_| random.pause(200_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(pauses(7), pauses(7));
        assert_ne!(pauses(7), pauses(8));
        let all = pauses(7);
        assert!(all.iter().all(|pause| *pause <= longest));
        for quarter in 0..4 {
            let from = longest / 4 * quarter;
            let inside =
                all.iter().filter(|time| (from..from + longest / 4).contains(time)).count();
            assert!((2200..2800).contains(&inside), "{inside} of 10000 in quarter {quarter}");
        }
    }
}
