//! How much each point counts.

use crate::stats::median;

/// Half-width of a 95 % interval in standard errors.
const Z: f64 = 1.959_963_985;

/// Nothing costs more in any unit; beyond it the curves would overflow.
pub(crate) const LARGEST_COST: f64 = 1e100;

/// Standard error from the ends of a 95 % interval; `None` without a sound one.
pub(crate) fn standard_error(low: Option<f64>, high: Option<f64>) -> Option<f64> {
    let half = (high? / 2.0 - low? / 2.0) / Z;
    (half.is_finite() && half >= 0.0).then_some(half)
}

/// The level that each cost's relative error refers to, in the order of the costs: a running median
/// of three, which keeps steps but does not let one low point give itself a high weight (Tukey 1977,
/// chapter 7).
pub(crate) fn levels(costs: &[f64]) -> Vec<f64> {
    let last = costs.len().saturating_sub(1);
    let sizes: Vec<f64> = costs.iter().map(|cost| cost.abs()).collect();
    let middle = median(&sizes).unwrap_or(0.0);
    (0..costs.len())
        .map(|i| {
            let mut near =
                [costs[i.saturating_sub(1)].abs(), costs[i].abs(), costs[(i + 1).min(last)].abs()];
            near.sort_by(f64::total_cmp);
            // Costs that pass through zero would otherwise claim to be exact there.
            near[1].max(0.1 * middle)
        })
        .collect()
}
