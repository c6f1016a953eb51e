//! A logarithmic scale of times: each octave, from one power of two to the next, in equal parts.
//!
//! With eight parts, 1,000 ns lies between 512 and 1,024 ns, in the last part: 960 to 1,023 ns. A
//! part is at most an eighth of its times wide, so that a quantile is known to 6 % from its middle.
//! A histogram by octaves alone knows it to a factor of two.

/// A scale of times in parts of octaves. Times below the number of parts have a part each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OctaveScale {
    /// Logarithm of the number of parts an octave, to base two.
    part_bits: u32,
}

impl OctaveScale {
    /// Eight parts an octave: for pictures, and for histograms of which there are many.
    pub const EIGHT_PARTS: Self = Self { part_bits: 3 };
    /// 64 parts an octave: the middle of a part is at most 0.8 % from each of its times. For
    /// figures that are compared.
    pub const SIXTY_FOUR_PARTS: Self = Self { part_bits: 6 };

    /// Returns the number of the part that a time in nanoseconds lies in, from 0.
    #[inline(always)]
    pub const fn part_index(self, ns: u64) -> usize {
        let exponent = 63 - (ns | 1).leading_zeros();
        if exponent < self.part_bits {
            return ns as usize;
        }
        let shift = exponent - self.part_bits;
        let step = (ns >> shift) as usize & ((1 << self.part_bits) - 1);
        (((shift + 1) as usize) << self.part_bits) + step
    }

    /// Returns the bounds of a part in nanoseconds: from the first to below the second. The second
    /// of the last part is `u64::MAX`.
    pub const fn part_bounds(self, index: usize) -> [u64; 2] {
        [self.lower_bound(index), self.lower_bound(index + 1)]
    }

    /// Returns the middle of a part in nanoseconds: for a part of one time that time.
    pub const fn part_middle(self, index: usize) -> u64 {
        let [from, below] = self.part_bounds(index);
        from + (below - from - 1) / 2
    }

    const fn lower_bound(self, index: usize) -> u64 {
        let step = (index & ((1 << self.part_bits) - 1)) as u64;
        match index >> self.part_bits {
            0 => index as u64,
            power if power + self.part_bits as usize > 64 => u64::MAX,
            power => ((1 << self.part_bits) + step) << (power - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCALES: [OctaveScale; 2] = [OctaveScale::EIGHT_PARTS, OctaveScale::SIXTY_FOUR_PARTS];

    #[test]
    fn known_answers() {
        let [eight, fine] = SCALES;
        assert_eq!(eight.part_bounds(eight.part_index(1000)), [960, 1024]);
        assert_eq!(eight.part_bounds(eight.part_index(7)), [7, 8]);
        assert_eq!(fine.part_bounds(fine.part_index(12_345)), [12_288, 12_416]);
        assert_eq!((fine.part_middle(63), fine.part_middle(fine.part_index(1001))), (63, 1003));
    }

    #[test]
    fn parts_join_and_are_narrow() {
        for scale in SCALES {
            let last = scale.part_index(u64::MAX);
            for index in 0..last {
                let [from, below] = scale.part_bounds(index);
                let parts = [from, below - 1, below].map(|ns| scale.part_index(ns));
                assert_eq!(parts, [index, index, index + 1], "{from} to {below}");
                assert!(below - from == 1 || (below - from) << scale.part_bits <= from);
            }
            assert_eq!(scale.part_bounds(last)[1], u64::MAX);
        }
    }

    proptest! {
        #[test]
        fn a_time_lies_within_its_part(ns: u64, shift in 0_u32..64) {
            for scale in SCALES {
                let ns = ns >> shift;
                let index = scale.part_index(ns);
                let [from, below] = scale.part_bounds(index);
                prop_assert!(from <= ns && (ns < below || below == u64::MAX));
                let middle = scale.part_middle(index);
                prop_assert!(middle.abs_diff(ns) <= (ns >> scale.part_bits) / 2 + 1);
            }
        }
    }
}
