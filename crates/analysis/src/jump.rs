//! The largest jump of a cost between two neighbouring sizes of a sweep, and its highest peak.
//! Neither needs a fit: three sizes are enough, where [`crate::regions`] needs five.

use rundata::words::{time, times};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::normal_quantile;

use crate::quote::QuotedFigure;
use crate::regions::{EQUIVALENCE, SizeAxis};

/// A size and its quotable cost. The size 0 is none of what is swept, such as no working set.
pub type SizedCost = (u64, QuotedFigure);

/// Rate of false jumps of costs that do not depend on the size, over all pairs of neighbours.
const FALSE_RATE: f64 = 0.01;

/// Factor of the logarithm of a step over that of any other step in its direction, above which it
/// stands out.
const OUTSTANDING_FACTOR: f64 = 2.0;

/// Largest power of the size by which a smooth curve rises.
const STEEPEST_POWER: f64 = 2.5;

/// Factor between neighbours that always stands out, if it is more than the growth of the size.
const LARGE_FACTOR: f64 = 5.0;

/// Fewest sizes for a jump: with two of them the costs say as much.
const FEWEST_SIZES: usize = 3;

/// The ratio of two costs with its interval, by the distances of the ends of theirs in the logarithm (Zou and Donner 2008, Statistics in Medicine 27: the
/// method of variance estimates recovery).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Factor")]
pub struct CostRatio {
    /// The ratio.
    pub value: f64,
    /// Lower end of its interval, at the confidence of both costs.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl CostRatio {
    /// Returns `to` over `from`. The variation between launches is in both intervals, though the two
    /// may share a part of it.
    pub fn between(from: &QuotedFigure, to: &QuotedFigure) -> Self {
        let (value, low, high) = Self::logarithms(from, to, 1.0);
        Self { value: value.exp(), low: low.exp(), high: high.exp() }
    }

    /// Returns the logarithms of the ratio and of the ends of its interval, widened by a factor.
    fn logarithms(from: &QuotedFigure, to: &QuotedFigure, wider: f64) -> (f64, f64, f64) {
        let value = (to.value() / from.value()).ln();
        let below = log_above_low(to).hypot(log_below_high(from));
        let above = log_below_high(to).hypot(log_above_low(from));
        (value, value - wider * below, value + wider * above)
    }

    /// Returns the ratio in words: `11.3x (9.8x to 13.1x)`.
    pub fn in_words(&self) -> String {
        format!("{} ({} to {})", times(self.value), times(self.low), times(self.high))
    }
}

/// A change of the cost between two neighbouring sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Jump")]
pub struct CostJump {
    /// The last size before it, in the unit of the axis; 0 is none of what is swept.
    pub from: u64,
    /// The first size after it.
    pub to: u64,
    /// The cost at `from`, in ns.
    pub from_ns: f64,
    /// The cost at `to`, in ns.
    pub to_ns: f64,
    /// `to_ns` / `from_ns`; below 1 where the cost falls.
    pub factor: CostRatio,
}

/// A cost above others on both sides of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Peak")]
pub struct CostPeak {
    /// The size, in the unit of the axis.
    pub at: u64,
    /// The cost in ns.
    pub ns: f64,
    /// The size of the least cost beyond it.
    pub down_at: u64,
    /// The cost at `down_at`, in ns.
    pub down_ns: f64,
}

impl CostJump {
    /// Returns the jump between two sizes.
    pub fn between(before: &SizedCost, after: &SizedCost) -> Self {
        let (from, cost_before) = before;
        let (to, cost_after) = after;
        Self {
            from: *from,
            to: *to,
            from_ns: cost_before.value(),
            to_ns: cost_after.value(),
            factor: CostRatio::between(cost_before, cost_after),
        }
    }

    /// Returns the size of its logarithm.
    fn extent(&self) -> f64 {
        self.factor.value.ln().abs()
    }

    /// Returns the least size of its logarithm within the interval.
    fn least_extent(&self) -> f64 {
        let CostRatio { low, high, .. } = self.factor;
        if self.falls() { -high.ln() } else { low.ln() }
    }

    /// Returns whether the cost falls.
    pub fn falls(&self) -> bool {
        self.factor.value < 1.0
    }

    /// Returns the larger of two jumps in either direction.
    pub fn larger(self, other: Self) -> Self {
        if other.extent() > self.extent() { other } else { self }
    }

    /// Returns its place in words: `at 5 members`, `between 256 KiB and 1 MiB`.
    pub fn place(&self, axis: &SizeAxis) -> String {
        let to = axis.size(self.to);
        match (self.from, axis.is_count()) {
            // Only arrays and pages have the size 0.
            (0, _) => format!("between no working set and {to}"),
            (from, true) if self.to - from == 1 => format!("at {to}"),
            (from, true) => format!("between {from} and {to}"),
            (from, false) => format!("between {} and {to}", axis.size(from)),
        }
    }

    /// Returns the jump in words: `jumps from 98.0 ns to 1.11 us at 5 members, 11.3x (9.8x to 13.1x)`.
    pub fn in_words(&self, axis: &SizeAxis) -> String {
        let (from, to) = (time(self.from_ns), time(self.to_ns));
        let how = if self.falls() { "falls" } else { "jumps" };
        format!("{how} from {from} to {to} {}, {}", self.place(axis), self.factor.in_words())
    }
}

impl CostPeak {
    /// Returns the peak in words: `peaks at 2.43 us with 32 KiB and falls to 1.05 us with 256 KiB`.
    pub fn in_words(&self, axis: &SizeAxis) -> String {
        let (top, down) = (time(self.ns), time(self.down_ns));
        let (at, down_at) = (axis.size(self.at), axis.size(self.down_at));
        format!("peaks at {top} with {at} and falls to {down} with {down_at}")
    }
}

/// Returns the distance of the logarithms of a value and its lower end.
fn log_above_low(cost: &QuotedFigure) -> f64 {
    (cost.value() / cost.low()).ln()
}

/// Returns the distance of the logarithms of a value and its upper end.
fn log_below_high(cost: &QuotedFigure) -> f64 {
    (cost.high() / cost.value()).ln()
}

/// Returns the factor by which intervals are widened for so many comparisons, so that all together
/// are wrong at [`FALSE_RATE`] (Bonferroni).
fn widening(comparisons: usize) -> Option<f64> {
    let quantile = normal_quantile(1.0 - FALSE_RATE / comparisons.max(1) as f64)?;
    Some(quantile / normal_quantile(crate::regions::CONFIDENCE)?)
}

/// Returns whether two costs differ by more than the widened interval and the equivalence allow.
fn differ(from: &QuotedFigure, to: &QuotedFigure, wider: f64) -> bool {
    let (_, low, high) = CostRatio::logarithms(from, to, wider);
    let same = (1.0 + EQUIVALENCE).ln();
    low > same || high < -same
}

/// Returns the largest jump between neighbours of these costs, which ascend in size: upwards if
/// there is one. Absent where no step is resolved, or where the steps are those of a smooth curve:
/// below fivefold, no steeper than the size to the power of 2.5, and none that stands out.
pub fn largest_jump(costs: &[SizedCost]) -> Option<CostJump> {
    if costs.len() < FEWEST_SIZES {
        return None;
    }
    let wider = widening(costs.len() - 1)?;
    let steps: Vec<CostJump> =
        costs.windows(2).map(|pair| CostJump::between(&pair[0], &pair[1])).collect();
    let (mut rise, mut fall): (Option<CostJump>, Option<CostJump>) = (None, None);
    for (number, pair) in costs.windows(2).enumerate() {
        if !stands_out(&steps, number) || !differ(&pair[0].1, &pair[1].1, wider) {
            continue;
        }
        let step = steps[number];
        let largest = if step.falls() { &mut fall } else { &mut rise };
        *largest = Some(largest.map_or(step, |largest| largest.larger(step)));
    }
    // A fall after a rise is the other side of a peak.
    rise.or(fall)
}

/// Returns whether a step is more than a part of a smooth curve.
fn stands_out(steps: &[CostJump], number: usize) -> bool {
    let step = &steps[number];
    let growth_of_size = (step.to as f64 / step.from as f64).ln();
    let mut largest_other: f64 = 0.0;
    for (other_number, other) in steps.iter().enumerate() {
        if other_number != number && other.falls() == step.falls() {
            largest_other = largest_other.max(other.extent());
        }
    }
    let least = step.least_extent();
    let is_large = least > LARGE_FACTOR.ln() && least > growth_of_size;
    let is_steep = least > STEEPEST_POWER * growth_of_size;
    is_large || is_steep || least > OUTSTANDING_FACTOR * largest_other
}

/// Returns the highest peak: a cost that is resolved to be above some cost before it and some after
/// it, with the least of those after it.
pub fn highest_peak(costs: &[SizedCost]) -> Option<CostPeak> {
    let wider = widening(costs.len() * costs.len())?;
    let mut highest: Option<(f64, CostPeak)> = None;
    for (number, (at, cost)) in costs.iter().enumerate() {
        let before = least_cost(&costs[..number]);
        let after = least_cost(&costs[number + 1..]);
        let Some(((_, before), (down_at, after))) = before.zip(after) else { continue };
        let height = cost.value() / before.value().max(after.value());
        let is_resolved = differ(before, cost, wider) && differ(after, cost, wider);
        let is_highest = highest.is_none_or(|(highest, _)| height >= highest);
        if is_resolved && is_highest && cost.value() > before.value().max(after.value()) {
            let (ns, down_ns) = (cost.value(), after.value());
            highest = Some((height, CostPeak { at: *at, ns, down_at: *down_at, down_ns }));
        }
    }
    highest.map(|(_, peak)| peak)
}

fn least_cost(costs: &[SizedCost]) -> Option<&SizedCost> {
    costs.iter().min_by(|(_, a), (_, b)| a.value().total_cmp(&b.value()))
}

#[cfg(test)]
mod tests;
