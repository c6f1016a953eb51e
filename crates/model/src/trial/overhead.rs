//! `clock overhead`: what it costs to ask for the time (Hines, Wyatt and Chang 2000, section 4,
//! their `test_cycles`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Trial;
use super::figures::ByCase;
use super::sample::Sample;
use super::tally::{Quantity, Tally};
use crate::estimate::Estimate;

/// Tally: ticks between two ordered time stamps with one call between them.
pub const CALL_TICKS: &str = "call_ticks";
/// Tally: ticks between two ordered time stamps with nothing between them, taken in turn with
/// [`CALL_TICKS`].
pub const EMPTY_TICKS: &str = "empty_ticks";
/// Tally: ticks of [`BATCH_CALLS`] calls one after the other.
pub const BATCH_TICKS: &str = "batch_ticks";
/// Calls of a batch.
pub const BATCH_CALLS: u32 = 100;

/// What one call costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// Name of the call.
    pub call: String,
    /// Ticks of single calls of all slices, each sample's less the median of its empty intervals. Signed.
    pub net_ticks: Quantity,
    /// Median of `net_ticks` in a round, over rounds: of clean slices where there are enough.
    pub median_ticks: Option<Estimate>,
    /// Ticks per call of calls made one after the other: the median batch of a round, over rounds, of clean
    /// slices where there are enough.
    /// By its interval a case is called precise.
    pub back_to_back_ticks: Option<Estimate>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// In the order of the plan.
    pub calls: Vec<CallCost>,
    /// About how many ticks the counter goes on at once, where that is more than a few: a single
    /// short call is told no better than that.
    pub step_ticks: Option<f64>,
}

/// Values closer than this are one value of the counter, give or take its scaling.
const SAME_VALUE_TICKS: i64 = 3;
/// Values rarer than this share are interruptions.
const RARE: f64 = 0.005;

/// The least distance between values of empty intervals that are common, neighbours taken together.
fn step(empties: &Tally) -> Option<f64> {
    let rare = RARE * empties.count() as f64;
    let common: Vec<i64> =
        empties.values().filter(|(_, times)| f64::from(*times) >= rare).map(|(v, _)| v).collect();
    let mut groups: Vec<Vec<i64>> = Vec::new();
    for value in common {
        match groups.last_mut() {
            Some(group)
                if group
                    .last()
                    .is_some_and(|last| value.saturating_sub(*last) <= SAME_VALUE_TICKS) =>
            {
                group.push(value);
            }
            _ => groups.push(vec![value]),
        }
    }
    let sum = |group: &Vec<i64>| group.iter().map(|value| *value as f64).sum::<f64>();
    let middle = |group: &Vec<i64>| sum(group) / group.len() as f64;
    let middles: Vec<f64> = groups.iter().map(middle).collect();
    middles.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)
}

/// The single calls of a sample without what the two stamps cost.
fn net(sample: &Sample) -> Option<Tally> {
    let empty = sample.tally(EMPTY_TICKS)?.quantile(0.5)?;
    Some(sample.tally(CALL_TICKS)?.shifted(empty.saturating_neg()))
}

/// Ticks per call of calls made one after the other: the sample's median batch.
pub(super) fn in_a_row(sample: &Sample) -> Option<f64> {
    let batch = sample.tally(BATCH_TICKS)?.quantile(0.5)?;
    Some(batch as f64 / f64::from(BATCH_CALLS))
}

pub(super) fn find(by_case: &ByCase, cases: usize) -> Found {
    let cost = |case: usize| {
        let Some(Trial::Call { call }) = by_case.trial(case) else { return None };
        let mut all = Tally::default();
        by_case.of(case).iter().filter_map(|sample| net(sample)).for_each(|t| all.merge(&t));
        Some(CallCost {
            case,
            call: call.clone(),
            net_ticks: Quantity::of(&all)?,
            median_ticks: by_case
                .estimate_of_slices(case, CALL_TICKS, |s| Some(net(s)?.quantile(0.5)? as f64)),
            back_to_back_ticks: by_case.estimate_of_slices(case, BATCH_TICKS, in_a_row),
        })
    };
    let mut empties = Tally::default();
    (0..cases)
        .flat_map(|case| by_case.of(case))
        .filter_map(|sample| sample.tally(EMPTY_TICKS))
        .for_each(|tally| empties.merge(&tally));
    Found { calls: (0..cases).filter_map(cost).collect(), step_ticks: step(&empties) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_jumps_is_found_out() {
        let values = |of: &[(i64, u32)]| step(&Tally::from(of.to_vec()));
        // Jumps of 24.5 ticks, scaled to whole numbers; 5000 is an interruption.
        assert_eq!(values(&[(49, 300), (50, 280), (73, 200), (74, 210), (5000, 1)]), Some(24.0));
        // Every tick counts, or all intervals are alike.
        assert_eq!(values(&[(20, 10), (21, 30), (22, 50), (23, 20), (24, 5)]), None);
        assert_eq!(values(&[(20, 1000), (900, 1)]), None);
        assert_eq!(values(&[]), None);
    }
}
