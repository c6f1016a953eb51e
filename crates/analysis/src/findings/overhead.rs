//! `clock overhead`: what it costs to ask for the time (Hines, Wyatt and Chang 2000, section 4,
//! their `test_cycles`). And what calls in loops cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;
use rundata::trial::overhead::*;
use rundata::trial::{Quantity, Sample, Tally, Trial};

/// What one call costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// Name of the call.
    pub call: String,
    /// Ticks of single calls of all slices, each sample's less the median of its empty intervals.
    /// Signed.
    pub net_ticks: Quantity,
    /// Median of `net_ticks` in a round, over rounds: of clean slices where there are enough.
    pub median_ticks: Option<Estimate>,
    /// Ticks per call of calls made one after the other: the median batch of a round, over rounds,
    /// of clean slices where there are enough. By its interval a case is called precise.
    pub back_to_back_ticks: Option<Estimate>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct OverheadFindings {
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
    let common = empties.values().filter(|(_, times)| f64::from(*times) >= rare);
    let common: Vec<i64> = common.map(|(value, _)| value).collect();
    let groups = common.chunk_by(|one, next| next.saturating_sub(*one) <= SAME_VALUE_TICKS);
    let middle = |group: &[i64]| stats::mean(&group.iter().map(|v| *v as f64).collect::<Vec<_>>());
    let middles: Vec<f64> = groups.filter_map(middle).collect();
    middles.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)
}

pub(super) fn find(table: &Table) -> OverheadFindings {
    let cost = |(case, trial): (usize, &Trial)| {
        let Trial::Call { call } = trial else { return None };
        Some(CallCost {
            case,
            call: call.clone(),
            net_ticks: Quantity::of(&table.merged(case, net))?,
            median_ticks: table.estimate_of_slices(case, CALL_TICKS, |s| net(s)?.median()),
            back_to_back_ticks: table.estimate_of_slices(case, BATCH_TICKS, in_a_row),
        })
    };
    let mut empties = Tally::default();
    let empty = |sample: &Sample| sample.tally(EMPTY_TICKS).map(|tally| tally.into_owned());
    table.trials().for_each(|(case, _)| empties.merge(&table.merged(case, empty)));
    OverheadFindings {
        calls: table.trials().filter_map(cost).collect(),
        step_ticks: step(&empties),
    }
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
