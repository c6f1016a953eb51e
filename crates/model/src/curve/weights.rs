//! How much each point counts.

use crate::stats::median;

/// Nothing costs more in any unit; beyond it the curves would overflow.
pub(crate) const LARGEST_COST: f64 = 1e100;

/// A standard error that a fit can use: finite and not below zero.
pub(crate) fn sound_error(error: Option<f64>) -> Option<f64> {
    error.filter(|error| error.is_finite() && *error >= 0.0)
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
