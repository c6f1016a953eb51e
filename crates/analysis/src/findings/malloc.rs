//! `classic experiment malloc`: what allocating and freeing a block costs (Hines,
//! Wyatt and Chang 2000, section 4, their `malloc_stats`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;
use rundata::trial::malloc::*;
use rundata::trial::{Quantity, Sample, Tally, Trial};

/// The calls that took far longer than the others, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Slow")]
pub struct SlowCalls {
    /// How many.
    pub calls: i64,
    /// The share of all ticks that they took, 0 to 1; absent without ticks.
    pub share: Option<f64>,
    /// How many of each cause.
    pub causes: BTreeMap<String, i64>,
}

/// One of the two calls at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CallCost")]
pub struct AllocationCost {
    /// Ticks, each sample's less the median of its empty ones. Signed.
    pub net_ticks: Quantity,
    /// Median of `net_ticks` in a round, over rounds.
    pub median_ticks: Option<Estimate>,
    /// Mean of the calls that were not slow, in ticks, over rounds.
    pub fast_ticks: Option<Estimate>,
    /// Its outliers.
    pub slow: SlowCalls,
}

/// One size by one allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct MallocPoint {
    /// Number of the case in the plan.
    pub case: usize,
    /// Size of a block in bytes.
    pub bytes: u64,
    /// The allocator, as LD_PRELOAD has it; the C library's when absent.
    pub preload: Option<String>,
    /// malloc; absent when it was not measured.
    pub malloc: Option<AllocationCost>,
    /// free; absent when it was not measured.
    pub free: Option<AllocationCost>,
    /// brk, mmap and fault counts, mean of the samples that have them; absent where none has.
    pub per_sample: BTreeMap<String, f64>,
}

/// One allocator over all sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Overall")]
pub struct AllocatorTotals {
    /// The allocator, as LD_PRELOAD has it; the C library's when absent.
    pub preload: Option<String>,
    /// Mean over sizes of a round's median malloc, in ticks, over rounds.
    pub malloc_median_ticks: Option<Estimate>,
    /// Mean over sizes of a round's mean malloc, in ticks, over rounds: the paper's figure.
    pub malloc_mean_ticks: Option<Estimate>,
    /// Mean over those sizes that had them of a round's calls of malloc that were not slow, in
    /// ticks, over rounds.
    pub malloc_fast_ticks: Option<Estimate>,
    /// Mean over sizes of a round's median free, in ticks, over rounds.
    pub free_median_ticks: Option<Estimate>,
    /// Mean over sizes of a round's mean free, in ticks, over rounds.
    pub free_mean_ticks: Option<Estimate>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct MallocFindings {
    /// By allocator and size, in the order of the plan.
    pub points: Vec<MallocPoint>,
    /// By allocator.
    pub overall: Vec<AllocatorTotals>,
}

/// Mean of the calls of a sample that were not slow.
fn fast(sample: &Sample, call: Call) -> Option<f64> {
    let all = net(sample, call)?;
    let count = |name: &str| sample.count(name).unwrap_or(0) as f64;
    let slow = count(call.slow);
    let slow_ticks = count(&call.slow_by("ticks")) - slow * sample.median(EMPTY_TICKS)?;
    let calls = all.count() as f64 - slow;
    (calls > 0.0).then(|| (all.total() - slow_ticks) / calls)
}

fn slow(table: &Table, case: usize, call: Call) -> SlowCalls {
    let tallies = table.of_trial(case).iter().filter_map(|sample| sample.tally(call.tally));
    let all: f64 = tallies.map(|tally| tally.total()).sum();
    let ticks = table.sum(case, &call.slow_by("ticks"));
    let by_cause = |cause: &Cause| {
        let calls = table.sum(case, &call.slow_by(cause.name)).filter(|calls| *calls > 0)?;
        Some((cause.name.to_string(), calls))
    };
    SlowCalls {
        calls: table.sum(case, call.slow).unwrap_or(0),
        share: ticks.filter(|_| all > 0.0).map(|ticks| ticks as f64 / all),
        causes: CAUSES.iter().filter_map(by_cause).collect(),
    }
}

fn cost(table: &Table, case: usize, call: Call) -> Option<AllocationCost> {
    Some(AllocationCost {
        net_ticks: Quantity::of(&table.merged(case, |sample| net(sample, call)))?,
        median_ticks: table.estimate(case, |sample| net(sample, call)?.median()),
        fast_ticks: table.estimate(case, |sample| fast(sample, call)),
        slow: slow(table, case, call),
    })
}

pub(super) fn find(table: &Table) -> MallocFindings {
    let point = |(case, trial): (usize, &Trial)| {
        let Trial::Malloc { bytes, preload } = trial else { return None };
        let per_sample = |name: &str| {
            let counted = table.of_trial(case).iter().filter(|sample| sample.count(name).is_some());
            Some((name.to_string(), table.sum(case, name)? as f64 / counted.count() as f64))
        };
        let counts = [BRK_CALLS, MMAP_CALLS, MINOR_FAULTS];
        Some(MallocPoint {
            case,
            bytes: *bytes,
            preload: preload.clone(),
            malloc: cost(table, case, Call::MALLOC),
            free: cost(table, case, Call::FREE),
            per_sample: counts.into_iter().filter_map(per_sample).collect(),
        })
    };
    let points: Vec<MallocPoint> = table.trials().filter_map(point).collect();
    // Each allocator once, in the order of the plan.
    let is_first = |(at, point): &(usize, &MallocPoint)| {
        points[..*at].iter().all(|earlier| earlier.preload != point.preload)
    };
    let overall = points.iter().enumerate().filter(is_first);
    let overall = overall.map(|(_, point)| overall_of(table, &points, &point.preload)).collect();
    MallocFindings { overall, points }
}

fn overall_of(table: &Table, points: &[MallocPoint], preload: &Option<String>) -> AllocatorTotals {
    let own = points.iter().filter(|point| point.preload == *preload);
    let cases: Vec<usize> = own.map(|point| point.case).collect();
    let over_sizes = |call: Call, of: fn(&Tally) -> Option<f64>| {
        table.estimate_together(&cases, |samples| {
            let figures = samples.iter().map(|sample| of(&net(sample, call)?));
            stats::mean(&figures.collect::<Option<Vec<f64>>>()?)
        })
    };
    AllocatorTotals {
        malloc_median_ticks: over_sizes(Call::MALLOC, Tally::median),
        malloc_mean_ticks: over_sizes(Call::MALLOC, Tally::mean),
        malloc_fast_ticks: table.estimate_together(&cases, |samples| {
            // Sizes of which every call is slow have none.
            let fast = samples.iter().filter_map(|sample| fast(sample, Call::MALLOC));
            stats::mean(&fast.collect::<Vec<f64>>())
        }),
        free_median_ticks: over_sizes(Call::FREE, Tally::median),
        free_mean_ticks: over_sizes(Call::FREE, Tally::mean),
        preload: preload.clone(),
    }
}
