//! Buckets of times and classes of sizes.
//!
//! Times below 16 ns have a bucket each; above, each power of two has 16 buckets, so that a bucket is
//! at most a sixteenth of its times wide: 1,000 ns lies between 2^9 and 2^10, in the bucket from 992 to
//! 1,023 ns.

/// Number of buckets of times.
pub const BUCKETS: usize = 496;
/// Number of buckets from one power of two to the next.
const STEPS: usize = 16;

/// Number of classes of sizes: class 0 is 0 bytes, class k is 2^(k-1) to 2^k - 1 bytes.
pub const SIZE_CLASSES: usize = 49;

/// Returns the bucket of a time in nanoseconds. The last one has all times from 17 s on.
#[inline(always)]
pub fn bucket_index(ns: u64) -> usize {
    let exponent = 63 - (ns | 1).leading_zeros() as usize;
    if exponent < 4 {
        return ns as usize;
    }
    let step = (ns >> (exponent - 4)) as usize % STEPS;
    ((exponent - 3) * STEPS + step).min(BUCKETS - 1)
}

/// Returns the bounds of a bucket in nanoseconds: from the first to below the second.
pub fn bucket_bounds(bucket: usize) -> (u64, u64) {
    (lower_bound(bucket), lower_bound(bucket + 1))
}

fn lower_bound(bucket: usize) -> u64 {
    match bucket / STEPS {
        0 => bucket as u64,
        power => ((STEPS + bucket % STEPS) as u64) << (power - 1),
    }
}

/// Returns the class of a size in bytes.
#[inline(always)]
pub fn size_class(bytes: usize) -> usize {
    ((usize::BITS - bytes.leading_zeros()) as usize).min(SIZE_CLASSES - 1)
}

/// Returns the smallest and the greatest size of a class in bytes.
pub fn class_bounds(class: usize) -> (u64, u64) {
    match class {
        0 => (0, 0),
        _ => (1 << (class - 1), (1 << class) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_join_and_are_narrow() {
        for number in 0..BUCKETS - 1 {
            let (low, high) = bucket_bounds(number);
            assert_eq!(
                (bucket_index(low), bucket_index(high - 1), bucket_index(high)),
                (number, number, number + 1)
            );
            assert!(high - low <= 1 || (high - low) * 16 <= low, "{low} to {high}");
        }
        assert_eq!(bucket_index(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_bounds(BUCKETS - 1).1, 1 << 34);
    }

    proptest! {
        #[test]
        fn a_size_lies_in_its_class(bytes in 0_usize..1 << 47) {
            let (least, most) = class_bounds(size_class(bytes));
            prop_assert!((least..=most).contains(&(bytes as u64)));
        }
    }
}
