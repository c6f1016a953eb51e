//! Intervals and errors by resampling rounds: of one figure each, or of many.
//!
//! Five rounds gave 10, 11, 12, 13 and 30 ns. How well is their median, 12, known? Draw five of them
//! with replacement, say 11, 11, 12, 30 and 13, and take the median, 12; do so 2,000 times. The
//! middle 95 % of these medians, here about 10 to 30, are the interval: nothing is assumed of how
//! figures scatter. Few rounds resample too close to each other, so the ends are taken a little
//! further out, as far as makes the interval of a mean as wide as Student's.
//!
//! Figures of one round depend on each other (the same process, the same memory), so that rounds
//! with many figures are drawn whole ([`PooledMedian`]): 30 equal figures in each of two rounds are
//! two observations, not 60.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::distributions::{normal_share_below, student_quantile};
use crate::location::{Center, Interval, SampleSummary, quantile};

/// Resamples behind every interval: the quantiles in use are then stable to about a tenth of the
/// interval's half-width.
const RESAMPLES: usize = 2000;

/// Interval and error of the middle of resampled rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapEstimate {
    /// Interval of the middle.
    pub interval: Interval,
    /// Standard deviation of the middle.
    pub standard_error: f64,
}

/// Returns the interval and standard error of the middle of the figures of independent rounds, drawn
/// with replacement. Absent below two. The percentiles are widened for few rounds so that a mean's
/// interval has Student's width (Hesterberg 2015, "expanded percentile").
pub fn bootstrap(
    figures: &[f64],
    center: Center,
    confidence: f64,
    seed: u64,
) -> Option<BootstrapEstimate> {
    let mut middles = resampled_middles(figures, center, seed)?;
    // In this order sums round the same, however they were drawn.
    middles.sort_by(f64::total_cmp);
    let tail = expanded_tail(figures.len(), center, confidence)?;
    let (low, high) = (quantile(&middles, tail)?, quantile(&middles, 1.0 - tail)?);
    let standard_error = SampleSummary::from_values(&middles)?.deviation;
    Some(BootstrapEstimate { interval: Interval { low, high, confidence }, standard_error })
}

/// Returns the middles of all resamples, in the order in which they were drawn. Absent below two
/// figures.
pub(crate) fn resampled_middles(figures: &[f64], center: Center, seed: u64) -> Option<Vec<f64>> {
    let count = figures.len();
    if count < 2 {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut middles = Vec::with_capacity(RESAMPLES);
    if center == Center::Median {
        let ranked = RankedFigures::new(figures);
        let mut times = vec![0; count];
        for _ in 0..RESAMPLES {
            middles.push(ranked.resampled_median(&mut times, &mut rng));
        }
    } else {
        let mut drawn = vec![0.0; count];
        for _ in 0..RESAMPLES {
            drawn.fill_with(|| figures[rng.random_range(0..count)]);
            middles.push(center.compute(&drawn)?);
        }
    }
    Some(middles)
}

/// Figures whose resampled medians are found by counting, without sorting again.
struct RankedFigures {
    sorted: Vec<f64>,
    /// Rank of each figure, by its index in the list.
    ranks: Vec<usize>,
}

impl RankedFigures {
    fn new(figures: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..figures.len()).collect();
        order.sort_by(|a, b| figures[*a].total_cmp(&figures[*b]));
        let mut sorted = Vec::with_capacity(figures.len());
        let mut ranks = vec![0; figures.len()];
        for (rank, index) in order.into_iter().enumerate() {
            sorted.push(figures[index]);
            ranks[index] = rank;
        }
        Self { sorted, ranks }
    }

    /// Draws as many figures as there are with replacement; returns their median. `times` is room
    /// for the number of times that each was drawn.
    fn resampled_median(&self, times: &mut [u32], rng: &mut ChaCha8Rng) -> f64 {
        let count = self.sorted.len();
        times.fill(0);
        for _ in 0..count {
            times[self.ranks[rng.random_range(0..count)]] += 1;
        }
        let (mut rank, mut up_to) = (0, times[0] as usize);
        while up_to <= (count - 1) / 2 {
            rank += 1;
            up_to += times[rank] as usize;
        }
        let low = self.sorted[rank];
        if count % 2 == 1 {
            return low;
        }
        while up_to <= count / 2 {
            rank += 1;
            up_to += times[rank] as usize;
        }
        // As `quantile` has it, which interpolates.
        low + 0.5 * (self.sorted[rank] - low)
    }
}

/// Returns the percentile at which a bootstrap of `count` units must be cut so that a mean's
/// interval is as wide as Student's: Phi(-sqrt(n / (n - 1)) * t). The root corrects that a resampled
/// mean scatters by the variance with denominator n; a resampled median does not, so it goes without.
fn expanded_tail(count: usize, center: Center, confidence: f64) -> Option<f64> {
    let n = count as f64;
    let t = student_quantile(confidence, n - 1.0)?;
    let deflated = match center {
        Center::Mean | Center::Midmean => (n / (n - 1.0)).sqrt(),
        Center::Median => 1.0,
    };
    Some(normal_share_below(-deflated * t))
}

/// Resamples of the rounds: the standard error is then known to 1 / sqrt(2 x 400) = 3.5 %.
const CLUSTER_RESAMPLES: usize = 400;

/// The median of figures that come in rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PooledMedian {
    /// Median of all figures.
    pub value: f64,
    /// Standard deviation of the median over resampled rounds.
    pub standard_error: f64,
    /// Rounds with a figure.
    pub rounds: u32,
}

impl PooledMedian {
    /// Returns the median of figures that come in rounds. Rounds are resampled whole: figures of one
    /// round are not independent. Absent below two rounds.
    pub fn from_rounds(by_round: &BTreeMap<u32, Vec<f64>>, seed: u64) -> Option<Self> {
        let rounds = by_round.len();
        let sorted = SortedRounds::new(by_round.values());
        let value = sorted.median(&vec![1; rounds])?;
        if rounds < 2 {
            return None;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut weights = vec![0; rounds];
        let mut medians = Vec::with_capacity(CLUSTER_RESAMPLES);
        for _ in 0..CLUSTER_RESAMPLES {
            weights.fill(0);
            for _ in 0..rounds {
                weights[rng.random_range(0..rounds)] += 1;
            }
            medians.extend(sorted.median(&weights));
        }
        let standard_error = SampleSummary::from_values(&medians)?.deviation;
        Some(Self { value, standard_error, rounds: u32::try_from(rounds).ok()? })
    }
}

/// The figures of all rounds, sorted, each with the number of its round.
struct SortedRounds {
    figures: Vec<(f64, usize)>,
    /// Number of figures of each round.
    counts: Vec<usize>,
    /// Number of figures of each round in the lower half of all figures: the median of a resample is
    /// not far from the middle, and is looked for from there on.
    lower: Vec<usize>,
}

/// Place in the sorted figures, and the weight below it.
struct MedianSearch {
    place: usize,
    below: usize,
}

impl SortedRounds {
    fn new<'a>(rounds: impl Iterator<Item = &'a Vec<f64>>) -> Self {
        let (mut figures, mut counts) = (Vec::new(), Vec::new());
        for (round, of_round) in rounds.enumerate() {
            counts.push(of_round.len());
            figures.extend(of_round.iter().map(|figure| (*figure, round)));
        }
        figures.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut lower = vec![0; counts.len()];
        for (_, round) in &figures[..figures.len() / 2] {
            lower[*round] += 1;
        }
        Self { figures, counts, lower }
    }

    /// Returns the median of the figures, each as often as its round was drawn: the mean of the two
    /// in the middle where their number is even.
    fn median(&self, weights: &[usize]) -> Option<f64> {
        let count = dot(&self.counts, weights);
        let below = dot(&self.lower, weights);
        let mut search = MedianSearch { place: self.figures.len() / 2, below };
        let low = self.figure_at(count.checked_sub(1)? / 2, weights, &mut search)?;
        let high = self.figure_at(count / 2, weights, &mut search)?;
        Some((low + high) / 2.0)
    }

    /// Moves the search to a rank, from 0; returns the figure there.
    fn figure_at(&self, rank: usize, weights: &[usize], search: &mut MedianSearch) -> Option<f64> {
        while search.below > rank {
            search.place -= 1;
            search.below -= weights[self.figures[search.place].1];
        }
        loop {
            let (figure, round) = self.figures.get(search.place)?;
            if search.below + weights[*round] > rank {
                return Some(*figure);
            }
            search.below += weights[*round];
            search.place += 1;
        }
    }
}

fn dot(counts: &[usize], weights: &[usize]) -> usize {
    counts.iter().zip(weights).map(|(count, weight)| count * weight).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use cdflib::{ContinuousCdf, Normal};
    use testing::repeats;

    use super::*;

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        let u: f64 = rng.random_range(1e-12..1.0);
        Normal::standard().inverse_cdf(u).unwrap()
    }

    fn simulated(rng: &mut ChaCha8Rng, rounds: usize, scatter: f64) -> Vec<f64> {
        (0..rounds).map(|_| scatter * normal(rng)).collect()
    }

    proptest! {
        /// Whatever rounds were drawn, also ones whose figures lie far from the middle of all.
        #[test]
        fn the_median_of_drawn_rounds_is_that_of_their_figures(
            rounds in prop::collection::vec(prop::collection::vec(-50_i32..50, 0..6), 1..8),
            weights in prop::collection::vec(0_usize..4, 8),
        ) {
            let rounds: Vec<Vec<f64>> =
                rounds.iter().map(|of| of.iter().map(|figure| f64::from(*figure)).collect()).collect();
            let mut drawn: Vec<f64> = Vec::new();
            for (figures, weight) in rounds.iter().zip(&weights) {
                (0..*weight).for_each(|_| drawn.extend(figures));
            }
            let found = SortedRounds::new(rounds.iter()).median(&weights[..rounds.len()]);
            prop_assert_eq!(found, Center::Median.compute(&drawn));
        }
    }

    proptest! {
        #[test]
        fn medians_by_counting_are_those_of_the_drawn_figures(
            figures in prop::collection::vec(-9_i32..9, 2..40),
            seed in any::<u64>(),
        ) {
            let figures: Vec<f64> = figures.iter().map(|figure| f64::from(*figure)).collect();
            let found = resampled_middles(&figures, Center::Median, seed).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            for median in &found[..20] {
                let drawn: Vec<f64> =
                    figures.iter().map(|_| figures[rng.random_range(0..figures.len())]).collect();
                prop_assert_eq!(Center::Median.compute(&drawn), Some(*median));
            }
        }
    }

    fn coverage_percent(trials: u64, center: Center, rounds: usize) -> f64 {
        let covered = (0..trials).filter(|trial| {
            let mut rng = ChaCha8Rng::seed_from_u64(1992 + trial);
            let figures = simulated(&mut rng, rounds, 1.0);
            let found = bootstrap(&figures, center, 0.95, *trial).unwrap();
            found.interval.includes_zero()
        });
        100.0 * covered.count() as f64 / trials as f64
    }

    /// Of rounds that are independent and normal.
    #[test]
    fn nominal_95_percent_covers_93_to_97_of_independent_rounds() {
        // Of 300 trials three standard errors of a share of 95 % on either side.
        let (trials, off) = repeats((300, 3.8), (2000, 2.0));
        for (center, rounds) in
            [(Center::Median, 8), (Center::Median, 12), (Center::Median, 20), (Center::Mean, 12)]
        {
            let covered = coverage_percent(trials, center, rounds);
            println!("{center:?} {rounds} rounds: {covered:.1} %");
            assert!((covered - 95.0).abs() <= off, "{center:?}, {rounds} rounds: {covered:.1} %");
        }
    }

    /// What looking costs: a run that stops at the first look at which its interval is narrow
    /// enough stops a little too readily. The loss is bounded here and told in
    /// docs/validation.md.
    #[test]
    fn looking_costs_few_points_of_coverage() {
        // Of 200 trials 1.5 points are a standard error of a share of 95 %.
        let (trials, more) = repeats((200, 1.5), (1000, 0.0));
        const LOOKS: [usize; 4] = [8, 12, 18, 27];
        for scatter in [0.007, 0.01, 0.02] {
            let covered = (0..trials).filter(|trial| {
                let mut rng = ChaCha8Rng::seed_from_u64(2007 + trial);
                let figures = simulated(&mut rng, 27, scatter);
                let at = |look: usize| {
                    bootstrap(&figures[..look], Center::Median, 0.95, *trial).unwrap().interval
                };
                // Figures around zero stand for figures around one: 1 % is 0.01.
                let narrow = LOOKS.into_iter().map(at).find(|i| i.half_width() <= 0.01);
                narrow.unwrap_or_else(|| at(27)).includes_zero()
            });
            let covered = 100.0 * covered.count() as f64 / trials as f64;
            println!("scatter {scatter}: {covered:.1} %");
            assert!(
                (90.0 - more..=98.0 + more).contains(&covered),
                "scatter {scatter}: {covered:.1} %"
            );
        }
    }

    #[test]
    fn known_answer_of_the_expanded_tail() {
        // t(0.975; 4) = 2.776 (any table of Student's t): Phi(-sqrt(5/4) * 2.776) = 0.000955.
        let tail = expanded_tail(5, Center::Mean, 0.95).unwrap();
        assert!((tail - 0.000955).abs() < 5e-6, "{tail}");
        // With many rounds nothing is left of the correction.
        assert!((expanded_tail(100_000, Center::Median, 0.95).unwrap() - 0.025).abs() < 1e-4);
    }

    #[test]
    fn a_mean_has_students_interval() {
        // Student's own sleep data (1908), drug 2 minus drug 1: mean 1.58, t interval 0.70 to 2.46,
        // standard error 0.389.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let found = bootstrap(&differences, Center::Mean, 0.95, 1).unwrap();
        let interval = found.interval;
        // Skewed data: the bootstrap follows the skew, so the ends lie near Student's, not on them.
        assert!((interval.low - 0.70).abs() < 0.25, "{interval:?}");
        assert!((interval.high - 2.46).abs() < 0.35, "{interval:?}");
        assert!((found.standard_error - 0.389).abs() < 0.04, "{found:?}");
    }

    #[test]
    fn the_seed_fixes_the_interval_and_one_round_has_none() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let figures = simulated(&mut rng, 8, 1.0);
        let again = |seed| bootstrap(&figures, Center::Median, 0.95, seed);
        assert_eq!(again(3), again(3));
        assert_ne!(again(3), again(4));
        assert_eq!(bootstrap(&[1.0], Center::Mean, 0.95, 1), None);
    }

    #[test]
    fn the_pooled_median_and_its_error_by_rounds() {
        // Rounds at 100 and 102 by turns, without scatter within: the error is that of the rounds.
        let rounds: BTreeMap<u32, Vec<f64>> =
            (0..20).map(|round| (round, vec![100.0 + 2.0 * f64::from(round % 2); 30])).collect();
        let found = PooledMedian::from_rounds(&rounds, 1).unwrap();
        assert_eq!((found.value, found.rounds), (101.0, 20));
        assert!((0.8..1.05).contains(&found.standard_error), "{found:?}");
        assert_eq!(PooledMedian::from_rounds(&rounds, 1), Some(found), "the seed fixes it");
        let alike: BTreeMap<u32, Vec<f64>> = (0..20).map(|round| (round, vec![7.0; 3])).collect();
        assert_eq!(PooledMedian::from_rounds(&alike, 1).unwrap().standard_error, 0.0);
        assert_eq!(PooledMedian::from_rounds(&rounds.into_iter().take(1).collect(), 1), None);
    }
}
