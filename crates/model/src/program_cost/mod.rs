//! What does switching cost one program? Its own switch rate and working set, looked up on the
//! machine's measured surface of costs.
//!
//! Share of CPU time = switches per second x cost of a switch / CPU seconds per second. The formula
//! and its assumptions are in `docs/method.md`.

mod surface;
mod watched;
mod words;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::Reading;
pub use surface::{Cost, SurfacePoint, points_of};
use surface::{NO_SURFACE, cheapest_and_dearest, direct};
pub use watched::{PageSizes, Report, SCHEMA, Surface, Window};

/// A range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Bytes that a program touches between two of its switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingSet {
    /// At least so many.
    pub low_bytes: u64,
    /// At most so many.
    pub high_bytes: u64,
}

/// What was seen of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Voluntary switches per second.
    pub voluntary_per_s: Reading<f64>,
    /// Involuntary switches per second.
    pub involuntary_per_s: Reading<f64>,
    /// CPU seconds per second over all its threads: 1 is one CPU kept busy.
    pub cpu_share: Reading<f64>,
    /// What it touches between switches.
    pub working_set: Reading<WorkingSet>,
}

/// The answer of [`program_cost`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ProgramCost {
    /// An estimate.
    Estimated {
        /// Share of the program's CPU time that goes to switching: 0.01 is 1 %. Signed at its lower
        /// end, where the measured costs are not resolved from zero; above 1 where the assumptions
        /// cannot hold.
        share: Range,
        /// The same for the direct cost alone. `None` where it was not measured.
        direct_share: Option<Range>,
        /// Cost of one switch in ns that the share rests on.
        cost_ns: Range,
        /// Switches per second, voluntary and not.
        switches_per_s: f64,
        /// What was taken for granted, a clause each.
        assumptions: Vec<String>,
    },
    /// Inputs are missing or do not fit.
    CannotTell {
        /// Which, and why.
        missing: Vec<String>,
        /// Share of CPU time for the direct cost alone, which no working set goes into. `None` where it was
        /// not measured, or the rates are missing.
        #[serde(default)]
        direct_share: Option<Range>,
    },
}

/// Estimates the share of a program's CPU time that goes to switching, from the costs of a switch on
/// this machine at several array sizes. Between two sizes the cost is taken to lie between the lowest
/// lower end and the highest upper end of the two; outside the measured sizes there is no answer. A
/// working set below the smallest array is no extrapolation if c1, the cost without any, was measured.
#[must_use]
pub fn program_cost(program: &Program, surface: &[SurfacePoint]) -> ProgramCost {
    let mut missing = Vec::new();
    let voluntary = rate("voluntary switches", &program.voluntary_per_s, &mut missing);
    let involuntary = rate("involuntary switches", &program.involuntary_per_s, &mut missing);
    let cpu_share = rate("CPU time", &program.cpu_share, &mut missing);
    if cpu_share == Some(0.0) {
        missing.push("CPU time: the program used none while it was watched".into());
    }
    let rates = match (voluntary, involuntary, cpu_share, &missing[..]) {
        (Some(voluntary), Some(involuntary), Some(cpu), []) => Some((voluntary, involuntary, cpu)),
        _ => None,
    };
    let share = |cost: Cost, (voluntary, involuntary, cpu_share): (f64, f64, f64)| {
        let part = |ns: f64| (voluntary + involuntary) * ns * 1e-9 / cpu_share;
        let share = Range { low: part(cost.low_ns), high: part(cost.high_ns) };
        (share.low.is_finite() && share.high.is_finite()).then_some(share)
    };
    let direct_share = rates.and_then(|rates| share(direct(surface)?, rates));
    let cost = cost_of(&program.working_set, surface);
    if let Err(why) = &cost {
        missing.push(why.clone());
    }
    let (Some(rates), Ok(cost)) = (rates, cost) else {
        return ProgramCost::CannotTell { missing, direct_share };
    };
    let Some(whole) = share(cost, rates) else {
        let missing = vec!["the figures are too large".into()];
        return ProgramCost::CannotTell { missing, direct_share };
    };
    let (voluntary, involuntary, _) = rates;
    ProgramCost::Estimated {
        share: whole,
        direct_share,
        cost_ns: Range { low: cost.low_ns, high: cost.high_ns },
        switches_per_s: voluntary + involuntary,
        assumptions: words::assumptions(whole, voluntary, involuntary),
    }
}

/// A rate that was read and is one, or a word on why not.
fn rate(what: &str, reading: &Reading<f64>, missing: &mut Vec<String>) -> Option<f64> {
    match reading {
        Reading::Unknown { why } => missing.push(format!("{what}: {why}")),
        Reading::Known(rate) if !(rate.is_finite() && *rate >= 0.0) => {
            missing.push(format!("{what}: {rate} is no rate"));
        }
        Reading::Known(rate) => return Some(*rate),
    }
    None
}

fn cost_of(working_set: &Reading<WorkingSet>, surface: &[SurfacePoint]) -> Result<Cost, String> {
    match working_set {
        // Both have to be had: whoever fills in the one should not learn of the other afterwards.
        Reading::Unknown { why } if surface.is_empty() => {
            Err(format!("working set: {why}; {NO_SURFACE}"))
        }
        Reading::Unknown { why } => Err(format!("working set: {why}")),
        Reading::Known(set) => cheapest_and_dearest(*set, surface),
    }
}
