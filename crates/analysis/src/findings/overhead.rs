//! `clock overhead`: the cost of reading the time (Hines, Wyatt and Chang 2000, section 4, their
//! `test_cycles`).

use rundata::trial::overhead::*;
use rundata::trial::{Tally, TallySummary, Trial, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;

/// The cost of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// Name of the call.
    pub call: String,
    /// Ticks of single calls of all slices, each sample's less the median of its empty intervals.
    /// Signed.
    pub net_ticks: TallySummary,
    /// Median of `net_ticks` in a round, over rounds: of clean slices where there are enough.
    pub median_ticks: Option<Estimate>,
    /// Ticks per call of calls made one after the other: the median batch of a round, over rounds,
    /// of clean slices where there are enough. By its interval a case is called precise.
    pub back_to_back_ticks: Option<Estimate>,
}

/// Findings of `clock overhead`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct OverheadFindings {
    /// Calls in the order of the plan.
    pub calls: Vec<CallCost>,
    /// Ticks by which the counter advances at once, where these are more than a few: a single short
    /// call is not known better than that.
    pub step_ticks: Option<f64>,
}

/// Largest distance of values of the empty interval that are one value of the counter: its scaling
/// may move them.
const SAME_VALUE_TICKS: i64 = 3;
/// Smallest share of a value that is no interruption.
const MIN_SHARE: f64 = 0.005;

/// Returns the least distance between common values of empty intervals, where neighbouring values
/// count as one; absent below two of these.
fn counter_step(empties: &Tally) -> Option<f64> {
    let fewest = MIN_SHARE * empties.count() as f64;
    let mut common = Vec::new();
    for (value, times) in empties.values() {
        if f64::from(times) >= fewest {
            common.push(value);
        }
    }
    let mut means = Vec::new();
    for group in common.chunk_by(|value, next| next.saturating_sub(*value) <= SAME_VALUE_TICKS) {
        let values: Vec<f64> = group.iter().map(|value| *value as f64).collect();
        means.extend(stats::mean(&values));
    }
    means.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)
}

fn call_cost(table: &Table, case: usize, call: &str) -> Option<CallCost> {
    Some(CallCost {
        case,
        call: call.to_string(),
        net_ticks: TallySummary::from_tally(&table.merged(case, net_tally))?,
        median_ticks: table
            .estimate_of_slices(case, CALL_TICKS, |sample| net_tally(sample)?.median()),
        back_to_back_ticks: table.estimate_of_slices(case, BATCH_TICKS, call_ticks_in_a_row),
    })
}

fn empty_intervals(sample: &TrialSample) -> Option<Tally> {
    sample.tally(EMPTY_TICKS).map(|tally| tally.into_owned())
}

pub(super) fn find(table: &Table) -> OverheadFindings {
    let (mut calls, mut empties) = (Vec::new(), Tally::default());
    for (case, trial) in table.trials() {
        empties.merge(&table.merged(case, empty_intervals));
        if let Trial::Call { call } = trial {
            calls.extend(call_cost(table, case, call));
        }
    }
    OverheadFindings { calls, step_ticks: counter_step(&empties) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_jumps_is_found_out() {
        let values = |values: &[(i64, u32)]| counter_step(&Tally::from(values.to_vec()));
        // Jumps of 24.5 ticks, scaled to whole numbers; 5000 is an interruption.
        assert_eq!(values(&[(49, 300), (50, 280), (73, 200), (74, 210), (5000, 1)]), Some(24.0));
        // Every tick counts, or all intervals are alike.
        assert_eq!(values(&[(20, 10), (21, 30), (22, 50), (23, 20), (24, 5)]), None);
        assert_eq!(values(&[(20, 1000), (900, 1)]), None);
        assert_eq!(values(&[]), None);
    }
}
