//! A figure over several runs.

use rundata::plan::MIN_ROUNDS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{mad_sigma, median, median_interval};

use crate::estimate::Estimate;

/// A figure over the runs of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Its name, with its unit: `real_ns`.
    pub name: String,
    /// Median and mean with the median's interval; of one run its value.
    pub estimate: Estimate,
    /// Scatter of the runs: 1.4826 x median absolute deviation. Absent below two runs.
    pub spread: Option<f64>,
    /// Least of all runs.
    pub min: f64,
    /// Greatest of all runs.
    pub max: f64,
}

/// Most runs whose median gets its interval by resampling; of more it is taken from their order.
const MAX_TO_RESAMPLE: usize = 100;

impl Figure {
    /// Returns the figure of one value a run; absent without any.
    pub fn from_values(name: &str, values: &[f64], confidence: f64, seed: u64) -> Option<Self> {
        let (mut min, mut max) = (*values.first()?, *values.first()?);
        for value in values {
            min = min.min(*value);
            max = max.max(*value);
        }
        let (spread, estimate) = (mad_sigma(values), estimate(values, confidence, seed)?);
        Some(Self { name: name.to_owned(), estimate, spread, min, max })
    }
}

/// Returns the median of one value a run; absent without any.
pub(crate) fn estimate(values: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
    if values.len() <= MAX_TO_RESAMPLE {
        return Estimate::over(values, MIN_ROUNDS, confidence, seed);
    }
    // The interval from the order is exact, and resampling thousands of runs takes seconds.
    let estimate = Estimate::over(values, u32::MAX, confidence, seed)?;
    let interval = median_interval(values, confidence);
    Some(Estimate {
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        resolved: interval.is_some_and(|interval| !interval.includes_zero()),
        ..estimate
    })
}

/// Largest distance from the median, in spreads, of a value that is no outlier (Iglewicz and Hoaglin
/// 1993).
const MAX_SPREADS: f64 = 3.5;

/// Returns the numbers of the outliers, each with its value over the median.
pub fn outliers(values: &[f64]) -> Vec<(usize, f64)> {
    let (Some(middle), Some(spread)) = (median(values), mad_sigma(values)) else {
        return Vec::new();
    };
    // Few values do not show what is usual, and without scatter any difference would be large.
    if values.len() < MIN_ROUNDS as usize || spread <= 0.0 {
        return Vec::new();
    }
    let mut outliers = Vec::new();
    for (number, value) in values.iter().enumerate() {
        if (value - middle).abs() > MAX_SPREADS * spread {
            outliers.push((number, value / middle));
        }
    }
    outliers
}
