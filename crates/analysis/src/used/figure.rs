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

/// Runs above which a median's interval is taken from the order of the figures alone.
const MOST_TO_RESAMPLE: usize = 100;

impl Figure {
    /// Of one value a run; absent without any.
    pub fn of(name: &str, values: &[f64], confidence: f64, seed: u64) -> Option<Self> {
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        let (spread, estimate) = (mad_sigma(values), estimate(values, confidence, seed)?);
        Some(Self { name: name.to_owned(), estimate, spread, min, max })
    }
}

/// The median of one value a run; absent without any.
pub(crate) fn estimate(values: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
    if values.len() <= MOST_TO_RESAMPLE {
        return Estimate::over(values, MIN_ROUNDS, confidence, seed);
    }
    // What is known exactly need not be resampled, which for thousands of runs takes seconds.
    let estimate = Estimate::over(values, u32::MAX, confidence, seed)?;
    let interval = median_interval(values, confidence);
    Some(Estimate {
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        resolved: interval.is_some_and(|interval| !interval.includes_zero()),
        ..estimate
    })
}

/// Spreads from the median beyond which a value is an outlier (Iglewicz and Hoaglin 1993).
const OUTLYING: f64 = 3.5;

/// The values that are unlike the others: which, and over the median.
pub fn outliers(values: &[f64]) -> Vec<(usize, f64)> {
    let Some((middle, spread)) = median(values).zip(mad_sigma(values)) else { return Vec::new() };
    // Of fewer, half of them decide what is usual; without scatter anything would be far.
    if values.len() < MIN_ROUNDS as usize || spread <= 0.0 {
        return Vec::new();
    }
    let far = values.iter().enumerate().filter(|(_, of)| (*of - middle).abs() > OUTLYING * spread);
    far.map(|(at, of)| (at, of / middle)).collect()
}
