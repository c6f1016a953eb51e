//! Intervals of quantiles of values that come in clusters, such as the wake-ups of a round.
//!
//! Values of a cluster may depend on each other: a burst of 50 late wake-ups is one event, not 50.
//! Ranks of independent values are then too close. Clusters are independent of each other, so that
//! the scatter of their shares below the quantile shows how well the share is known (Woodruff 1952;
//! the ratio estimator of Cochran 1977, section 6.3).
//!
//! Of 20 clusters of 500 values, 1 % lie above the 99th percentile. Independent, the share has a
//! standard error of sqrt(0.99 x 0.01 / 10,000) = 0.1 %. With bursts of 50 late ones in every fifth
//! cluster it is that of four events in 20 clusters, some seven times as large.

use crate::{quantile_ranks, student_quantile};

/// The values of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterCounts {
    /// Number of values that do not exceed the quantile of all clusters together.
    pub up_to_quantile: u64,
    /// Number of all values.
    pub total: u64,
}

/// Returns the ranks, from 1, of the lower end of the interval of the quantile `p` of the values of
/// all clusters, of the quantile itself, and of the upper end. The interval is at least that of
/// independent values ([`quantile_ranks`]). `None` below two clusters, and where an end would lie
/// beyond the values.
pub fn clustered_quantile_ranks(
    clusters: &[ClusterCounts],
    p: f64,
    confidence: f64,
) -> Option<[u64; 3]> {
    let total: u64 = clusters.iter().map(|cluster| cluster.total).sum();
    let [low, middle, high] = quantile_ranks(total, p, confidence)?;
    let error = share_error(clusters, total as f64)?;
    let t = student_quantile(confidence, clusters.len() as f64 - 1.0)?;
    // On the scale of the odds' logarithm a share stays below 1.
    let half_width = t * error / (p * (1.0 - p));
    let odds = p / (1.0 - p);
    let [low_share, high_share] =
        [-half_width, half_width].map(|shift| 1.0 / (1.0 + (-shift).exp() / odds));
    let clustered_low = (low_share * total as f64).floor() as u64;
    let clustered_high = (high_share * total as f64).floor() as u64 + 1;
    let (low, high) = (low.min(clustered_low), high.max(clustered_high));
    if low >= 1 && high <= total { Some([low, middle, high]) } else { None }
}

/// Returns the standard error of the share of values up to the quantile, by its scatter between
/// clusters.
fn share_error(clusters: &[ClusterCounts], total: f64) -> Option<f64> {
    if clusters.len() < 2 || total <= 0.0 {
        return None;
    }
    let up_to: u64 = clusters.iter().map(|cluster| cluster.up_to_quantile).sum();
    let share = up_to as f64 / total;
    let mut squares = 0.0;
    for cluster in clusters {
        let residual = cluster.up_to_quantile as f64 - share * cluster.total as f64;
        squares += residual * residual;
    }
    let count = clusters.len() as f64;
    Some((count / (count - 1.0) * squares).sqrt() / total)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn counts(clusters: &[(u64, u64)]) -> Vec<ClusterCounts> {
        let mut counts = Vec::new();
        for (up_to_quantile, total) in clusters {
            counts.push(ClusterCounts { up_to_quantile: *up_to_quantile, total: *total });
        }
        counts
    }

    #[test]
    fn equal_clusters_have_the_ranks_of_independent_values() {
        let even = counts(&[(990, 1000); 10]);
        assert_eq!(clustered_quantile_ranks(&even, 0.99, 0.95), quantile_ranks(10_000, 0.99, 0.95));
    }

    /// Two of ten clusters have all 100 late values.
    #[test]
    fn a_burst_widens_the_interval() {
        let mut clusters = [(1000, 1000); 10];
        (clusters[3], clusters[7]) = ((950, 1000), (950, 1000));
        // Residuals: eight of 10 and two of -40, 4,000 in squares; 10 / 9 of that is 4,444, its root
        // 66.7, over 10,000 values 0.67 %; t(9) = 2.262: odds of 99 times or over 4.59, so 95.6 to 99.8 %.
        let [low, middle, high] =
            clustered_quantile_ranks(&counts(&clusters), 0.99, 0.95).expect("values");
        assert_eq!(middle, 9900);
        assert!((9550..9560).contains(&low), "{low}");
        assert!((9975..9980).contains(&high), "{high}");
    }

    #[test]
    fn too_few_values_or_clusters_have_no_interval() {
        assert_eq!(clustered_quantile_ranks(&[], 0.5, 0.95), None);
        assert_eq!(clustered_quantile_ranks(&counts(&[(990, 1000)]), 0.99, 0.95), None);
        assert_eq!(clustered_quantile_ranks(&counts(&[(99, 100); 3]), 0.99, 0.95), None);
        assert_eq!(clustered_quantile_ranks(&counts(&[(0, 0); 3]), 0.99, 0.95), None);
    }

    /// Values of a cluster: uniform, or in a burst, which begins with a probability and ends with
    /// one, uniform above 0.9.
    fn cluster(random: &mut ChaCha8Rng, count: u32, begins: f64, ends: f64) -> Vec<f64> {
        let mut values = Vec::new();
        let mut is_burst = false;
        for _ in 0..count {
            let turns: f64 = random.random();
            is_burst = if is_burst { turns >= ends } else { turns < begins };
            let value: f64 = random.random();
            values.push(if is_burst { 0.9 + value / 10.0 } else { value });
        }
        values
    }

    /// Share of the intervals of the 99th percentile that hold the true one, `truth`. Bursts begin
    /// with one of these probabilities in each cluster, by chance.
    fn coverage(begins: [f64; 2], ends: f64, truth: f64) -> f64 {
        const CLUSTERS: usize = 30;
        const VALUES: u32 = 500;
        let trials = testing::repeats(60, 2000);
        let mut held = 0;
        for trial in 0..trials {
            let mut random = ChaCha8Rng::seed_from_u64(1000 + trial as u64);
            let (mut clusters, mut all) = (Vec::new(), Vec::new());
            for _ in 0..CLUSTERS {
                let begins = begins[usize::from(random.random::<f64>() < 0.5)];
                let values = cluster(&mut random, VALUES, begins, ends);
                all.extend(values.iter().copied());
                clusters.push(values);
            }
            all.sort_by(f64::total_cmp);
            let quantile = all[(0.99 * all.len() as f64).ceil() as usize - 1];
            let mut counts = Vec::new();
            for values in &clusters {
                let up_to = values.iter().filter(|value| **value <= quantile).count();
                counts.push(ClusterCounts { up_to_quantile: up_to as u64, total: VALUES.into() });
            }
            let ranks = clustered_quantile_ranks(&counts, 0.99, 0.95).expect("enough values");
            let [low, _, high] = ranks.map(|rank| all[rank as usize - 1]);
            held += u32::from(low <= truth && truth <= high);
        }
        f64::from(held) / trials as f64
    }

    /// Accepted: 93 to 97 % of 2,000; of fewer what these give by chance.
    fn assert_covers(coverage: f64) {
        let slack = testing::repeats(0.05, 0.0);
        assert!((0.93 - slack..=0.97 + slack).contains(&coverage), "{coverage}");
    }

    #[test]
    fn independent_values_are_covered() {
        assert_covers(coverage([0.0; 2], 1.0, 0.99));
    }

    /// A burst begins after 200 values on average and lasts 20; values in it are uniform above 0.9,
    /// so that 1 % of all lie above x with (1 - s) (1 - x) + 10 s (1 - x) = 0.01, s the share of
    /// values in bursts.
    #[test]
    fn values_in_bursts_are_covered() {
        assert_covers(coverage([BEGINS; 2], ENDS, truth([BEGINS; 2])));
    }

    /// In half of the clusters nothing disturbs, in the others twice as much.
    #[test]
    fn clusters_that_differ_are_covered() {
        let begins = [0.0, 2.0 * BEGINS];
        assert_covers(coverage(begins, ENDS, truth(begins)));
    }

    const BEGINS: f64 = 1.0 / 200.0;
    const ENDS: f64 = 1.0 / 20.0;

    fn truth(begins: [f64; 2]) -> f64 {
        let [one, other] = begins.map(|begins| burst_share(begins, ENDS, 500));
        let share = (one + other) / 2.0;
        1.0 - 0.01 / (1.0 + 9.0 * share)
    }

    /// Share of values in bursts, of a cluster that begins without one.
    fn burst_share(begins: f64, ends: f64, count: u32) -> f64 {
        let (mut now, mut sum) = (0.0, 0.0);
        for _ in 0..count {
            now = now * (1.0 - ends) + (1.0 - now) * begins;
            sum += now;
        }
        sum / f64::from(count)
    }
}
