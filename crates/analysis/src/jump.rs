//! The largest jump of a cost between two sizes that were measured next to each other, along
//! whatever was swept, and a peak on the way. Neither fits a course: three sizes are enough, where
//! [`crate::regions`] needs five.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::normal_quantile;

use crate::quote::QuotedFigure;
use crate::regions::{EQUIVALENCE, SizeAxis};
use rundata::words::{time, times};

/// A cost that may be quoted, at one size. 0: nothing of what was swept, such as no working set.
pub type SizedCost = (u64, QuotedFigure);

/// How seldom costs that do not depend on the size may be told to jump, all pairs of neighbours
/// together.
const FALSE_RATE: f64 = 0.01;

/// A step stands out of a course if its logarithm is so many times that of any other step in its
/// direction.
const STANDS_OUT: f64 = 2.0;

/// Steps that rise with a higher power of the size than this are no smooth course.
const STEEPEST_POWER: f64 = 2.5;

/// A factor between neighbours that is told whatever the course, if it is more than the size has
/// grown by.
const TOLD_FACTOR: f64 = 5.0;

/// From two sizes alone nobody can say that a cost jumps: their costs say it all.
const FEWEST_SIZES: usize = 3;

/// One cost over another, with its interval: of costs whose intervals lie above zero, by the
/// distances of their ends in the logarithm (Zou and Donner 2008, Statistics in Medicine 27: the
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
    /// Of `to` over `from`. Intervals have the scatter between launches in them, which both share
    /// at best in part.
    pub fn between(from: &QuotedFigure, to: &QuotedFigure) -> Self {
        let (value, low, high) = Self::logs(from, to, 1.0);
        Self { value: value.exp(), low: low.exp(), high: high.exp() }
    }

    /// The logarithms of the ratio and of its ends, which lie so many times further out.
    fn logs(from: &QuotedFigure, to: &QuotedFigure, wider: f64) -> (f64, f64, f64) {
        let down = |of: &QuotedFigure| (of.value() / of.low()).ln();
        let up = |of: &QuotedFigure| (of.high() / of.value()).ln();
        let value = (to.value() / from.value()).ln();
        let low = value - wider * down(to).hypot(up(from));
        (value, low, value + wider * up(to).hypot(down(from)))
    }

    /// `11.3x (9.8x to 13.1x)`.
    pub fn in_words(&self) -> String {
        format!("{} ({} to {})", times(self.value), times(self.low), times(self.high))
    }
}

/// The largest jump.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Jump")]
pub struct CostJump {
    /// The last size before it, in the unit of the axis; 0 is nothing of what was swept.
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

/// A cost above all that lies on one side of it and on the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Peak")]
pub struct CostPeak {
    /// Its size, in the unit of the axis.
    pub at: u64,
    /// Its cost in ns.
    pub ns: f64,
    /// The size of the least cost beyond it.
    pub down_at: u64,
    /// That cost in ns.
    pub down_ns: f64,
}

impl CostJump {
    /// Of two places.
    pub fn between((from, before): &SizedCost, (to, after): &SizedCost) -> Self {
        Self {
            from: *from,
            to: *to,
            from_ns: before.value(),
            to_ns: after.value(),
            factor: CostRatio::between(before, after),
        }
    }

    /// Its logarithm, whichever way.
    fn extent(&self) -> f64 {
        self.factor.value.ln().abs()
    }

    /// The least of it that its interval allows.
    fn least_extent(&self) -> f64 {
        let CostRatio { low, high, .. } = self.factor;
        if self.falls() { -high.ln() } else { low.ln() }
    }

    /// Whether the cost falls.
    pub fn falls(&self) -> bool {
        self.factor.value < 1.0
    }

    /// The larger of two, whichever way they go.
    pub fn larger(self, other: Self) -> Self {
        if other.extent() > self.extent() { other } else { self }
    }

    /// `at 5 members`, `between 256 KiB and 1 MiB`.
    pub fn place(&self, axis: &SizeAxis) -> String {
        let to = axis.size(self.to);
        match (self.from, axis.is_count()) {
            // Only of arrays and pages is there none.
            (0, _) => format!("between no working set and {to}"),
            (from, true) if self.to - from == 1 => format!("at {to}"),
            (from, true) => format!("between {from} and {to}"),
            (from, false) => format!("between {} and {to}", axis.size(from)),
        }
    }

    /// `jumps from 98.0 ns to 1.11 us at 5 members, 11.3x (9.8x to 13.1x)`.
    pub fn in_words(&self, axis: &SizeAxis) -> String {
        let (from, to) = (time(self.from_ns), time(self.to_ns));
        let how = if self.falls() { "falls" } else { "jumps" };
        format!("{how} from {from} to {to} {}, {}", self.place(axis), self.factor.in_words())
    }
}

impl CostPeak {
    /// `peaks at 2.43 us with 32 KiB, from where it falls to 1.05 us with 256 KiB`.
    pub fn in_words(&self, axis: &SizeAxis) -> String {
        let (top, down) = (time(self.ns), time(self.down_ns));
        let (at, down_at) = (axis.size(self.at), axis.size(self.down_at));
        format!("peaks at {top} with {at} and falls to {down} with {down_at}")
    }
}

/// How much wider than its own an interval must be, so that so many comparisons together are as
/// seldom wrong as [`FALSE_RATE`] says (Bonferroni).
fn wider(comparisons: usize) -> Option<f64> {
    let all = normal_quantile(1.0 - FALSE_RATE / comparisons.max(1) as f64)?;
    Some(all / normal_quantile(crate::regions::CONFIDENCE)?)
}

/// Whether two costs differ by more than the noise allows, among so many comparisons, and by more
/// than is ever called the same.
fn differ(from: &QuotedFigure, to: &QuotedFigure, wider: f64) -> bool {
    let (_, low, high) = CostRatio::logs(from, to, wider);
    let same = (1.0 + EQUIVALENCE).ln();
    low > same || high < -same
}

/// The largest jump between neighbours of these, rising in size, upwards if there is one; none
/// where no step is resolved, or where the steps are those of one smooth course: below fivefold, no
/// steeper than the size to the power of 2.5, and none out of the ordinary.
pub fn largest_jump(places: &[SizedCost]) -> Option<CostJump> {
    if places.len() < FEWEST_SIZES {
        return None;
    }
    let wider = wider(places.len() - 1)?;
    let steps: Vec<CostJump> =
        places.windows(2).map(|pair| CostJump::between(&pair[0], &pair[1])).collect();
    let resolved = |which: &usize| differ(&places[*which].1, &places[which + 1].1, wider);
    let told = (0..steps.len()).filter(|which| stands_out(&steps, *which)).filter(resolved);
    let told: Vec<CostJump> = told.map(|which| steps[which]).collect();
    // A fall behind a rise is the other side of a peak.
    let rises = told.iter().copied().filter(|step| !step.falls()).reduce(CostJump::larger);
    rises.or(told.into_iter().reduce(CostJump::larger))
}

/// Whether a step is more than a piece of one smooth course.
fn stands_out(steps: &[CostJump], which: usize) -> bool {
    let step = &steps[which];
    let sizes = (step.to as f64 / step.from as f64).ln();
    let others = steps.iter().enumerate().filter(|(number, _)| *number != which);
    let alike = others.map(|(_, of)| of).filter(|of| of.falls() == step.falls());
    let steepest = alike.map(CostJump::extent).fold(0.0, f64::max);
    let least = step.least_extent();
    let is_large = least > TOLD_FACTOR.ln() && least > sizes;
    is_large || least > STEEPEST_POWER * sizes || least > STANDS_OUT * steepest
}

/// The highest peak: a cost that is resolved to be above some before it and some after it, and the
/// least of those after it.
pub fn highest_peak(places: &[SizedCost]) -> Option<CostPeak> {
    let wider = wider(places.len() * places.len())?;
    let least = |of: &[SizedCost]| {
        of.iter().copied().min_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()))
    };
    let found = (0..places.len()).filter_map(|which| {
        let (at, cost) = places[which];
        let (_, before) = least(&places[..which])?;
        let (down_at, down) = least(&places[which + 1..])?;
        let is_above = differ(&before, &cost, wider) && differ(&down, &cost, wider);
        let is_peak = is_above && cost.value() > before.value().max(down.value());
        let height = cost.value() / before.value().max(down.value());
        let peak = CostPeak { at, ns: cost.value(), down_at, down_ns: down.value() };
        is_peak.then_some((height, peak))
    });
    found.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, peak)| peak)
}

#[cfg(test)]
mod tests;
