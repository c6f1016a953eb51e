//! Whether a scatter grew, without taking the times for normal: labels swapped within rounds.
//!
//! The F intervals do (Box 1953, Biometrika 40): with one outlier in twenty they call a growth that is
//! none in 20 % of trials a direction.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CONFIDENCE;
use crate::stats::median;

/// Ways to swap that are tried.
const WAYS: u32 = 2000;

/// Which ways: the answer must not change from reading to reading.
const SEED: u64 = 2007;

/// How often swapped labels give as much by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Permutation {
    /// Share of the ways that give as much growth or more.
    pub up: f64,
    /// Share of the ways that give as little or less.
    pub down: f64,
}

impl Permutation {
    /// Whether so much growth is more than chance, at the confidence of the intervals' upper end.
    #[must_use]
    pub fn grew(&self) -> bool {
        self.up <= (1.0 - CONFIDENCE) / 2.0
    }

    /// Whether so little is.
    #[must_use]
    pub fn shrank(&self) -> bool {
        self.down <= (1.0 - CONFIDENCE) / 2.0
    }
}

/// Of (quiet, disturbed) times by round, an array size each: both are set on their median, the statistic
/// is the sum over the sizes of ln(mean |disturbed| / mean |quiet|) (Brown and Forsythe 1974, J. Am. Stat.
/// Assoc. 69), and in each way of swapping each round of each size changes its labels or keeps them.
/// Absent without two rounds at each size, or if a scatter is zero.
pub(super) fn permutation(sizes: &[Vec<(f64, f64)>]) -> Option<Permutation> {
    let distances: Vec<Vec<(f64, f64)>> =
        sizes.iter().map(|size| around(size)).collect::<Option<_>>()?;
    let found = statistic(&distances, || false);
    if sizes.is_empty() || !found.is_finite() {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut up, mut down) = (1_u32, 1_u32);
    for _ in 0..WAYS {
        let by_chance = statistic(&distances, || random.random());
        // Rounded sums of the same distances are the same.
        up += u32::from(by_chance >= found - 1e-9);
        down += u32::from(by_chance <= found + 1e-9);
    }
    let share = |count: u32| f64::from(count) / f64::from(WAYS + 1);
    Some(Permutation { up: share(up), down: share(down) })
}

/// Distances from the medians.
fn around(rounds: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let of = |pick: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(pick).collect::<Vec<f64>>());
    let (quiet, disturbed) = (of(|pair| pair.0)?, of(|pair| pair.1)?);
    let distances = rounds.iter().map(|pair| ((pair.0 - quiet).abs(), (pair.1 - disturbed).abs()));
    (rounds.len() >= 2).then(|| distances.collect())
}

fn statistic(sizes: &[Vec<(f64, f64)>], mut swapped: impl FnMut() -> bool) -> f64 {
    let of_size = |size: &Vec<(f64, f64)>| {
        let (mut quiet, mut disturbed) = (0.0, 0.0);
        for (a, b) in size {
            let (a, b) = if swapped() { (b, a) } else { (a, b) };
            quiet += a;
            disturbed += b;
        }
        (disturbed / quiet).ln()
    };
    sizes.iter().map(of_size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One size, three rounds: the medians are 10 and 20, the distances 0, 1, 2 and 0, 10, 20.
    /// Of the 8 ways those that move more than the round of zeros give less growth: 2 of 8 as much.
    #[test]
    fn known_answer_of_all_ways() {
        let times = vec![(10.0, 20.0), (11.0, 30.0), (8.0, 0.0)];
        let found = permutation(&[times]).unwrap();
        assert!((found.up - 0.25).abs() < 0.03, "{found:?}");
        assert!((found.down - 1.0).abs() < 1e-12, "{found:?}");
        assert!(!found.grew() && !found.shrank());
    }

    #[test]
    fn nothing_is_told_without_rounds_or_scatter() {
        assert_eq!(permutation(&[]), None);
        assert_eq!(permutation(&[vec![(1.0, 2.0)]]), None);
        assert_eq!(permutation(&[vec![(1.0, 2.0), (1.0, 2.0)]]), None);
        assert_eq!(permutation(&[vec![(1.0, 2.0), (f64::NAN, 2.0), (3.0, 3.0)]]), None);
    }
}
