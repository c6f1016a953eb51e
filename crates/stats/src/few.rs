//! The median of few figures, whose own scatter says little: it is pooled with what is known
//! beforehand of how such figures scatter.
//!
//! Two figures, 980 and 1020 ns, deviate by 28.3 ns (1 degree of freedom). Two others may lie 1 ns
//! apart by luck: then their own scatter would promise an error of 0.5 ns. So it is pooled with a
//! prior, say 10 ns known from many such cases with 4 degrees of freedom, as two samples of one
//! variance are:
//!
//! ```text
//! variance = (4 x 10^2 + 1 x 28.3^2) / (4 + 1) = 240 ns^2
//! ```
//!
//! The median of two has half the variance of one figure, so its standard error is sqrt(120) = 11 ns
//! with 5 degrees of freedom, and its 95 % interval is 1000 +- 2.57 x 11 ns. With 30 figures of
//! their own the prior hardly counts.

use crate::location::{SampleSummary, mad_sigma, median};

/// Scatter of figures of one kind, as known before any of them was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriorScatter {
    /// Standard deviation, in the unit of the figures.
    pub deviation: f64,
    /// Degrees of freedom: one less than the number of figures that would know it as well.
    pub freedom: f64,
}

/// The median of figures, one a round, and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FewFigures {
    /// The median.
    pub value: f64,
    /// Standard error of the median.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error, for Student's quantile.
    pub freedom: f64,
    /// Number of figures.
    pub rounds: u32,
}

/// Variance of the median of 1 to 7 independent normal figures, as a share of their own variance
/// (David and Nagaraja 2003, Order Statistics).
const MEDIAN_VARIANCES: [f64; 7] = [1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104];

/// Fewest figures of a robust deviation: that of fewer is too often near zero.
const MIN_ROBUST_FIGURES: usize = 5;

impl FewFigures {
    /// Returns the median of all figures. Their own deviation and the prior one are pooled by their
    /// degrees of freedom. Absent without figures.
    pub fn from_rounds(figures: &[f64], prior: PriorScatter) -> Option<Self> {
        let deviation = match SampleSummary::from_values(figures) {
            Some(summary) => summary.deviation,
            None => 0.0,
        };
        Self::with_deviation(figures, deviation, prior)
    }

    /// Like [`Self::from_rounds`] for figures in the order of time that may depend on their
    /// neighbours, with the robust deviation (1.4826 times the median absolute one): a few figures
    /// that are far off do not widen it.
    pub fn robust(figures: &[f64], prior: PriorScatter) -> Option<Self> {
        if figures.len() < MIN_ROBUST_FIGURES {
            return Self::from_rounds(figures, prior);
        }
        let Some(deviation) = mad_sigma(figures) else { return Self::from_rounds(figures, prior) };
        let correlation = neighbour_correlation(figures, deviation);
        let factor = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
        Self::with_deviation(figures, factor * deviation, prior)
    }

    fn with_deviation(figures: &[f64], deviation: f64, prior: PriorScatter) -> Option<Self> {
        let value = median(figures)?;
        let own_freedom = figures.len() as f64 - 1.0;
        let freedom = prior.freedom + own_freedom;
        let squares = prior.freedom * prior.deviation.powi(2) + own_freedom * deviation.powi(2);
        let variance = squares / freedom;
        let standard_error = (variance * median_variance(figures.len())).sqrt();
        let rounds = u32::try_from(figures.len()).ok()?;
        if !(value.is_finite() && standard_error.is_finite()) {
            return None;
        }
        Some(Self { value, standard_error, freedom, rounds })
    }
}

/// Upper bound of the correlation of neighbours.
const MAX_CORRELATION: f64 = 0.8;

/// Deviations from the median beyond which a figure counts as being that far off.
const MAX_DEVIATIONS: f64 = 3.0;

/// Returns the correlation of neighbours about the median, from 0 to 0.8. About their own middle a
/// few seem to depend on each other less than they do (Kendall 1954): that is added.
fn neighbour_correlation(figures: &[f64], deviation: f64) -> f64 {
    let Some(middle) = median(figures) else { return 0.0 };
    let has_scatter = deviation > 0.0;
    if !has_scatter {
        return 0.0;
    }
    let limit = MAX_DEVIATIONS * deviation;
    let mut offsets = Vec::with_capacity(figures.len());
    for figure in figures {
        offsets.push((figure - middle).clamp(-limit, limit));
    }
    let squares: f64 = offsets.iter().map(|offset| offset * offset).sum();
    let products: f64 = offsets.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = products / squares;
    let hidden = (1.0 + 3.0 * correlation) / offsets.len() as f64;
    (correlation + hidden).clamp(0.0, MAX_CORRELATION)
}

/// Returns the variance of the median of that many figures over the variance of one.
fn median_variance(count: usize) -> f64 {
    match MEDIAN_VARIANCES.get(count.wrapping_sub(1)) {
        Some(variance) => *variance,
        None => std::f64::consts::FRAC_PI_2 / count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal_quantile, student_quantile};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const PRIOR: PriorScatter = PriorScatter { deviation: 10.0, freedom: 4.0 };

    #[test]
    fn one_figure_scatters_as_it_was_known_to() {
        let one = FewFigures::from_rounds(&[1000.0], PRIOR).unwrap();
        assert_eq!((one.value, one.standard_error, one.freedom), (1000.0, 10.0, 4.0));
        assert_eq!(FewFigures::from_rounds(&[], PRIOR), None);
        assert_eq!(FewFigures::from_rounds(&[f64::NAN], PRIOR), None);
    }

    /// Two figures 40 apart deviate by 28.3: (4 x 10^2 + 1 x 28.3^2) / 5 = 240, half of it for the
    /// middle of two.
    #[test]
    fn own_and_prior_deviation_are_pooled() {
        let two = FewFigures::from_rounds(&[980.0, 1020.0], PRIOR).unwrap();
        assert!((two.standard_error - 120.0_f64.sqrt()).abs() < 1e-9, "{two:?}");
        assert_eq!((two.freedom, two.rounds), (5.0, 2));
        // One that is far off does not widen the robust one by much.
        let wild = [990.0, 1000.0, 1010.0, 995.0, 1005.0, 9000.0];
        let robust = FewFigures::robust(&wild, PRIOR).unwrap();
        let plain = FewFigures::from_rounds(&wild, PRIOR).unwrap();
        assert!(robust.standard_error < 20.0 && plain.standard_error > 100.0);
    }

    /// Figures that drift together say less than as many that do not.
    #[test]
    fn figures_that_follow_their_neighbours_are_known_worse() {
        let apart = [990.0, 1010.0, 991.0, 1009.0, 992.0, 1008.0, 993.0, 1007.0];
        let mut drifting = apart;
        drifting.sort_by(f64::total_cmp);
        let error = |figures: &[f64]| FewFigures::robust(figures, PRIOR).unwrap().standard_error;
        assert!(error(&drifting) > 1.8 * error(&apart));
    }

    /// Shares of 95 % intervals that cover the truth, where figures of each kind scatter by an amount
    /// of their own, known beforehand to the prior's degrees of freedom: 2,000 seeded trials each.
    #[test]
    fn intervals_cover_the_truth_from_one_figure_on() {
        for count in 1..=5 {
            let share = coverage(count);
            assert!((0.93..=0.97).contains(&share), "{count} figures: {share}");
        }
    }

    fn coverage(count: usize) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(49 + count as u64);
        let mut normal = || {
            let z = normal_quantile(rng.random_range(0.0..1.0)).unwrap_or(0.0);
            if rng.random_range(0.0..1.0) < 0.5 { -z } else { z }
        };
        let mut covered = 0;
        for _ in 0..2000 {
            let squares: f64 = (0..4).map(|_| normal().powi(2)).sum();
            let scatter = PRIOR.deviation * (PRIOR.freedom / squares).sqrt();
            let figures: Vec<f64> = (0..count).map(|_| 1000.0 + scatter * normal()).collect();
            let found = FewFigures::from_rounds(&figures, PRIOR).unwrap();
            let half = student_quantile(0.95, found.freedom).unwrap() * found.standard_error;
            covered += usize::from((found.value - 1000.0).abs() <= half);
        }
        covered as f64 / 2000.0
    }
}
