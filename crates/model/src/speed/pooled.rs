//! One figure of all clean slices of a case, and how far it is known within its run.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::stats::Summary;

/// Clean slices behind a figure at full speed.
pub const FEWEST_CLEAN: u32 = 30;
/// Rounds that they must come from.
pub const FEWEST_ROUNDS: u32 = 8;
/// Share of the slices that must be clean: below it, those that seem clean are the luck of the sampling.
pub const LEAST_SHARE: f64 = 0.05;

/// Resamples of the rounds: the standard error is then known to 1 / sqrt(2 x 400) = 3.5 %.
const RESAMPLES: usize = 400;

/// The median of a case's clean slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// Median of all clean slices.
    pub value: f64,
    /// Its standard deviation over resampled rounds.
    pub standard_error: f64,
    /// Rounds with a clean slice.
    pub rounds: u32,
}

impl Pooled {
    /// The median of figures that come in rounds. Rounds are resampled whole: what lies within a worker is
    /// not independent. Absent below two rounds.
    pub fn of(by_round: &BTreeMap<u32, Vec<f64>>, seed: u64) -> Option<Self> {
        let rounds = by_round.len();
        let mut sorted: Vec<(f64, usize)> = Vec::new();
        for (index, figures) in by_round.values().enumerate() {
            sorted.extend(figures.iter().map(|figure| (*figure, index)));
        }
        if rounds < 2 {
            return None;
        }
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let value = weighted_median(&sorted, &vec![1; rounds])?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut resampled = || {
            let mut weights = vec![0; rounds];
            (0..rounds).for_each(|_| weights[rng.random_range(0..rounds)] += 1);
            weighted_median(&sorted, &weights)
        };
        let medians: Vec<f64> = (0..RESAMPLES).filter_map(|_| resampled()).collect();
        let standard_error = Summary::of(&medians)?.deviation;
        Some(Self { value, standard_error, rounds: u32::try_from(rounds).ok()? })
    }
}

/// The median of sorted figures, each as often as its round was drawn: the mean of the two in the middle
/// where their number is even.
fn weighted_median(sorted: &[(f64, usize)], weights: &[usize]) -> Option<f64> {
    let count: usize = sorted.iter().map(|(_, round)| weights[*round]).sum();
    let (low, high) = (count.checked_sub(1)? / 2, count / 2);
    let (mut seen, mut below) = (0, None);
    for (figure, round) in sorted {
        seen += weights[*round];
        if below.is_none() && seen > low {
            below = Some(*figure);
        }
        if seen > high {
            return Some((below? + figure) / 2.0);
        }
    }
    None
}
