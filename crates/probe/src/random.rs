//! Chance, where a measurement needs some: SplitMix64 (Steele, Lea and Flood 2014). Neither the gaps of a noise
//! nor the order of a walk need better, and the probes no library for it.

/// A seeded source of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
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

    /// Evenly from 0 on, below `end` (Lemire 2019, without the rejection: its bias is below `end` / 2^64).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let part = u128::from(self.next()) * u128::from(end);
        (part >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs for the seed 1234567, as in the reference implementation's tests.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_below_their_end() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7) && random.below(1) == 0);
    }
}
