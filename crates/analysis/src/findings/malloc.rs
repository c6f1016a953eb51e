//! `classic experiment malloc`: what allocating and freeing a block costs (Hines,
//! Wyatt and Chang 2000, section 4, their `malloc_stats`).

use std::collections::BTreeMap;

use rundata::trial::malloc::*;
use rundata::trial::{Tally, TallySummary, Trial, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;

/// The calls that took far longer than the others, and their causes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Slow")]
pub struct SlowCalls {
    /// Their count.
    pub calls: i64,
    /// Their share of all ticks, 0 to 1; absent without ticks.
    pub share: Option<f64>,
    /// Their count by cause.
    pub causes: BTreeMap<String, i64>,
}

/// The cost of malloc or free at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CallCost")]
pub struct AllocationCost {
    /// Ticks, each sample's less the median of its empty ones. Signed.
    pub net_ticks: TallySummary,
    /// Median of `net_ticks` in a round, over rounds.
    pub median_ticks: Option<Estimate>,
    /// Mean of the calls that were not slow, in ticks, over rounds.
    pub fast_ticks: Option<Estimate>,
    /// The slow calls.
    pub slow: SlowCalls,
}

/// Costs at one size with one allocator.
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

/// Costs with one allocator over all sizes.
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

/// Findings of `classic experiment malloc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct MallocFindings {
    /// Points by allocator and size, in the order of the plan.
    pub points: Vec<MallocPoint>,
    /// Totals by allocator.
    pub overall: Vec<AllocatorTotals>,
}

/// Returns the mean ticks of the calls of a sample that were not slow.
fn fast_mean(sample: &TrialSample, call: AllocatorCall) -> Option<f64> {
    let net_ticks = net_tally(sample, call)?;
    let slow = sample.count(call.slow).unwrap_or(0) as f64;
    let slow_ticks = sample.count(&call.slow_by("ticks")).unwrap_or(0) as f64;
    let slow_net_ticks = slow_ticks - slow * sample.median(EMPTY_TICKS)?;
    let calls = net_ticks.count() as f64 - slow;
    if calls > 0.0 { Some((net_ticks.total() - slow_net_ticks) / calls) } else { None }
}

fn slow_calls(table: &Table, case: usize, call: AllocatorCall) -> SlowCalls {
    let mut all_ticks = 0.0;
    for sample in table.trial_samples(case) {
        if let Some(tally) = sample.tally(call.tally) {
            all_ticks += tally.total();
        }
    }
    let share = match table.sum(case, &call.slow_by("ticks")) {
        Some(slow_ticks) if all_ticks > 0.0 => Some(slow_ticks as f64 / all_ticks),
        _ => None,
    };
    let mut causes = BTreeMap::new();
    for cause in CAUSES {
        let calls = table.sum(case, &call.slow_by(cause.name)).unwrap_or(0);
        if calls > 0 {
            causes.insert(cause.name.to_string(), calls);
        }
    }
    SlowCalls { calls: table.sum(case, call.slow).unwrap_or(0), share, causes }
}

fn allocation_cost(table: &Table, case: usize, call: AllocatorCall) -> Option<AllocationCost> {
    Some(AllocationCost {
        net_ticks: TallySummary::from_tally(&table.merged(case, |sample| net_tally(sample, call)))?,
        median_ticks: table.estimate(case, |sample| net_tally(sample, call)?.median()),
        fast_ticks: table.estimate(case, |sample| fast_mean(sample, call)),
        slow: slow_calls(table, case, call),
    })
}

/// Returns the mean of a count over the samples that have it.
fn mean_count(table: &Table, case: usize, name: &str) -> Option<f64> {
    let samples = table.trial_samples(case).iter().filter(|sample| sample.count(name).is_some());
    Some(table.sum(case, name)? as f64 / samples.count() as f64)
}

pub(super) fn find(table: &Table) -> MallocFindings {
    let mut points: Vec<MallocPoint> = Vec::new();
    for (case, trial) in table.trials() {
        let Trial::Malloc { bytes, preload } = trial else { continue };
        let mut per_sample = BTreeMap::new();
        for name in [BRK_CALLS, MMAP_CALLS, MINOR_FAULTS] {
            if let Some(mean) = mean_count(table, case, name) {
                per_sample.insert(name.to_string(), mean);
            }
        }
        points.push(MallocPoint {
            case,
            bytes: *bytes,
            preload: preload.clone(),
            malloc: allocation_cost(table, case, AllocatorCall::MALLOC),
            free: allocation_cost(table, case, AllocatorCall::FREE),
            per_sample,
        });
    }
    // Each allocator once, in the order of the plan.
    let mut overall: Vec<AllocatorTotals> = Vec::new();
    for point in &points {
        if overall.iter().all(|totals| totals.preload != point.preload) {
            overall.push(allocator_totals(table, &points, &point.preload));
        }
    }
    MallocFindings { overall, points }
}

fn allocator_totals(
    table: &Table,
    points: &[MallocPoint],
    preload: &Option<String>,
) -> AllocatorTotals {
    let mut cases = Vec::new();
    for point in points {
        if point.preload == *preload {
            cases.push(point.case);
        }
    }
    AllocatorTotals {
        malloc_median_ticks: mean_over_sizes(table, &cases, AllocatorCall::MALLOC, Tally::median),
        malloc_mean_ticks: mean_over_sizes(table, &cases, AllocatorCall::MALLOC, Tally::mean),
        malloc_fast_ticks: table.estimate_together(&cases, |samples| {
            // Sizes at which every call is slow are left out.
            let mut means = Vec::new();
            for sample in samples {
                means.extend(fast_mean(sample, AllocatorCall::MALLOC));
            }
            stats::mean(&means)
        }),
        free_median_ticks: mean_over_sizes(table, &cases, AllocatorCall::FREE, Tally::median),
        free_mean_ticks: mean_over_sizes(table, &cases, AllocatorCall::FREE, Tally::mean),
        preload: preload.clone(),
    }
}

/// Estimates the mean over sizes of a figure of each round.
fn mean_over_sizes(
    table: &Table,
    cases: &[usize],
    call: AllocatorCall,
    figure: fn(&Tally) -> Option<f64>,
) -> Option<Estimate> {
    table.estimate_together(cases, |samples| {
        let mut figures = Vec::new();
        for sample in samples {
            figures.push(figure(&net_tally(sample, call)?)?);
        }
        stats::mean(&figures)
    })
}
