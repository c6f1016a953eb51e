//! Location and spread of a list of figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which middle is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Center {
    /// Half of the figures lie on each side.
    Median,
    /// The arithmetic mean.
    Mean,
    /// The mean of the middle half: of what is left when a quarter is cut off at each end.
    Midmean,
}

impl Center {
    /// The middle of `values`; absent for an empty list.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Median => median(values),
            Self::Mean => mean(values),
            Self::Midmean => midmean(values),
        }
    }
}

/// Arithmetic mean; absent for an empty list.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Figures that are cut off at each end of so many for a [`midmean`].
pub(crate) fn cut(count: usize) -> usize {
    count / 4
}

/// Mean of the middle half (interquartile mean): nearly as indifferent to a few far off as the median,
/// and of normal figures known a fifth better. Absent for an empty list.
pub fn midmean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = cut(sorted.len());
    mean(&sorted[cut..sorted.len() - cut])
}

/// Median, the mean of the two middle figures for an even count; absent for an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile `p` (0 to 1) by linear interpolation between order statistics: type 7 of Hyndman and
/// Fan (1996), the default of R and NumPy. Absent for an empty list.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted_quantile(&sorted, p)
}

pub(super) fn sorted_quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (place - below as f64) * (sorted[above] - sorted[below]))
}

/// Spread as the median absolute deviation times 1.4826, which estimates the standard deviation of
/// normal figures and ignores outliers (Rousseeuw and Croux 1993). Absent below two figures: one
/// figure has no spread, not a spread of zero.
pub fn mad_sigma(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(1.4826 * median(&deviations)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // Hyndman and Fan's type 7 on 1..=10, as R's quantile() prints it.
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(quantile(&ten, 0.25), Some(3.25));
        assert_eq!(quantile(&ten, 0.5), Some(5.5));
        assert_eq!(quantile(&ten, 0.9), Some(9.1));
        assert_eq!(quantile(&ten, 1.0), Some(10.0));
        assert_eq!(mean(&ten), Some(5.5));
        // Two of ten are cut off at each end: 3 to 8.
        assert_eq!(midmean(&[9.0, 1.0, 3.0, 5.0, 6.0, 7.0, 8.0, 4.0, 2.0, 1e9]), Some(5.5));
        assert_eq!(midmean(&[]), None);
        // The textbook example of the MAD: 1, 1, 2, 2, 4, 6, 9 has median 2 and MAD 1.
        let example = [1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0];
        assert_eq!(mad_sigma(&example), Some(1.4826));
    }

    #[test]
    fn too_few_figures_have_no_answer() {
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(mad_sigma(&[3.0]), None);
    }
}
