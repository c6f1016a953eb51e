//! The middle of few figures, whose own scatter says little: it is taken together with what is
//! known beforehand of how such figures scatter.

use crate::location::{SampleSummary, mad_sigma, median};

/// How figures of one kind scatter, as known before any of them was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriorScatter {
    /// Standard deviation, in the unit of the figures.
    pub deviation: f64,
    /// Degrees of freedom: as many figures less one would know it as well.
    pub freedom: f64,
}

/// The median of figures, one a round, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FewFigures {
    /// The median.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error, for Student's quantile.
    pub freedom: f64,
    /// How many figures there are.
    pub rounds: u32,
}

/// Variance of the median of 1 to 7 independent normal figures, as a share of their own variance
/// (David and Nagaraja 2003, Order Statistics).
const MEDIAN_VARIANCES: [f64; 7] = [1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104];

/// Figures from which on a robust deviation is one: that of fewer is too often near zero.
const FEWEST_ROBUST: usize = 5;

impl FewFigures {
    /// Takes the median of all figures. Their own deviation and the prior one are pooled by their
    /// degrees of freedom, as of two samples of one variance. Absent without figures.
    pub fn from_rounds(figures: &[f64], prior: PriorScatter) -> Option<Self> {
        let deviation =
            SampleSummary::from_values(figures).map_or(0.0, |summary| summary.deviation);
        Self::with_deviation(figures, deviation, prior)
    }

    /// Like [`Self::from_rounds`] of figures in the order of time that may depend on their
    /// neighbours, with the robust deviation (1.4826 times the median absolute one): a few figures
    /// that are far off do not widen it.
    pub fn robust(figures: &[f64], prior: PriorScatter) -> Option<Self> {
        match mad_sigma(figures).filter(|_| figures.len() >= FEWEST_ROBUST) {
            Some(deviation) => {
                let correlation = neighbour_correlation(figures, deviation);
                let factor = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
                Self::with_deviation(figures, factor * deviation, prior)
            }
            None => Self::from_rounds(figures, prior),
        }
    }

    fn with_deviation(figures: &[f64], deviation: f64, prior: PriorScatter) -> Option<Self> {
        let value = median(figures)?;
        let own_freedom = figures.len() as f64 - 1.0;
        let freedom = prior.freedom + own_freedom;
        let squares = prior.freedom * prior.deviation.powi(2) + own_freedom * deviation.powi(2);
        let variance = squares / freedom;
        let error = (variance * median_variance(figures.len())).sqrt();
        let rounds = u32::try_from(figures.len()).ok()?;
        let is_sound = value.is_finite() && error.is_finite();
        is_sound.then_some(Self { value, standard_error: error, freedom, rounds })
    }
}

/// No neighbours are taken to depend on each other more than this.
const MOST_CORRELATION: f64 = 0.8;
/// Figures further from the median than so many deviations count as being there.
const FAR: f64 = 3.0;

/// Correlation of neighbours about the median, from 0 to 0.8. About their own middle a few seem to
/// depend on each other less than they do (Kendall 1954): that is added.
fn neighbour_correlation(figures: &[f64], deviation: f64) -> f64 {
    let Some(middle) = median(figures).filter(|_| deviation > 0.0) else { return 0.0 };
    let most = FAR * deviation;
    let off: Vec<f64> = figures.iter().map(|of| (of - middle).clamp(-most, most)).collect();
    let squares: f64 = off.iter().map(|of| of * of).sum();
    let products: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let found = products / squares;
    let hidden = (1.0 + 3.0 * found) / off.len() as f64;
    (found + hidden).clamp(0.0, MOST_CORRELATION)
}

/// Variance of the median of so many figures over the variance of one.
fn median_variance(count: usize) -> f64 {
    let known = count.checked_sub(1).and_then(|place| MEDIAN_VARIANCES.get(place));
    known.copied().unwrap_or(std::f64::consts::FRAC_PI_2 / count as f64)
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
