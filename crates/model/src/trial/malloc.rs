//! `clock malloc`: what allocating and freeing a block costs (Hines, Wyatt and Chang 2000, section
//! 4, their `malloc_stats`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Trial;
use super::figures::ByCase;
use super::sample::Sample;
use super::tally::{Quantity, Tally};
use crate::estimate::Estimate;

/// Tally: ticks of the thread's CPU time for one malloc, by threadclock.
pub const MALLOC_TICKS: &str = "malloc_ticks";
/// Tally: the same for one free.
pub const FREE_TICKS: &str = "free_ticks";
/// Tally: the same for nothing at all.
pub const EMPTY_TICKS: &str = "empty_ticks";

/// What a slow call was seen to do. Counts are `slow_malloc_CAUSE` and `slow_free_CAUSE`; one call
/// may have several causes.
pub const CAUSES: [Cause; 5] = [
    Cause { name: "fault", in_words: "first touch of a page" },
    Cause { name: "brk", in_words: "heap grown or shrunk (brk)" },
    Cause { name: "mmap", in_words: "memory mapped or unmapped" },
    Cause { name: "switched", in_words: "switched out" },
    Cause {
        name: "unexplained",
        in_words: "unexplained (interrupts, steal, cold caches, a re-sync of threadclock, the allocator's housekeeping)",
    },
];

/// Why a call was slow.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// The end of its count's name.
    pub name: &'static str,
    /// What happened.
    pub in_words: &'static str,
}

/// Count: brk calls of the whole sample.
pub const BRK_CALLS: &str = "brk_calls";
/// Count: mmap, munmap and madvise calls of the whole sample.
pub const MMAP_CALLS: &str = "mmap_calls";
/// Count: minor faults of the whole sample.
pub const MINOR_FAULTS: &str = "minor_faults";

/// Which of the two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// malloc(3)
    Malloc,
    /// free(3)
    Free,
}

impl Call {
    /// Its tally.
    pub fn tally(self) -> &'static str {
        match self {
            Self::Malloc => MALLOC_TICKS,
            Self::Free => FREE_TICKS,
        }
    }

    /// The count of its slow calls; those by cause have the cause behind it.
    pub fn slow(self) -> &'static str {
        match self {
            Self::Malloc => "slow_malloc",
            Self::Free => "slow_free",
        }
    }

    /// The count of ticks that its slow calls took.
    pub fn slow_ticks(self) -> String {
        format!("{}_ticks", self.slow())
    }

    /// The count of its slow calls of one cause.
    pub fn slow_by(self, cause: &str) -> String {
        format!("{}_{cause}", self.slow())
    }
}

/// The calls that took far longer than the others, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slow {
    /// How many.
    pub calls: i64,
    /// The share of all ticks that they took, 0 to 1; absent without ticks.
    pub share: Option<f64>,
    /// How many of each cause.
    pub causes: BTreeMap<String, i64>,
}

/// One of the two calls at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCost {
    /// Ticks, each sample's less the median of its empty ones. Signed.
    pub net_ticks: Quantity,
    /// Median of `net_ticks` in a round, over rounds.
    pub median_ticks: Option<Estimate>,
    /// Mean of the calls that were not slow, in ticks, over rounds.
    pub fast_ticks: Option<Estimate>,
    /// Its outliers.
    pub slow: Slow,
}

/// One size by one allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Number of the case in the plan.
    pub case: usize,
    /// Size of a block in bytes.
    pub bytes: u64,
    /// The allocator, as LD_PRELOAD has it; the C library's when absent.
    pub preload: Option<String>,
    /// malloc; absent when it was not measured.
    pub malloc: Option<CallCost>,
    /// free; absent when it was not measured.
    pub free: Option<CallCost>,
    /// brk, mmap and fault counts, mean of the samples that have them; absent where none has.
    pub per_sample: BTreeMap<String, f64>,
}

/// One allocator over all sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// The allocator, as LD_PRELOAD has it; the C library's when absent.
    pub preload: Option<String>,
    /// Mean over sizes of a round's median malloc, in ticks, over rounds.
    pub malloc_median_ticks: Option<Estimate>,
    /// Mean over sizes of a round's mean malloc, in ticks, over rounds: the paper's figure.
    pub malloc_mean_ticks: Option<Estimate>,
    /// Mean over those sizes that had them of a round's calls of malloc that were not slow, in ticks,
    /// over rounds.
    pub malloc_fast_ticks: Option<Estimate>,
    /// Mean over sizes of a round's median free, in ticks, over rounds.
    pub free_median_ticks: Option<Estimate>,
    /// Mean over sizes of a round's mean free, in ticks, over rounds.
    pub free_mean_ticks: Option<Estimate>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// By allocator and size, in the order of the plan.
    pub points: Vec<Point>,
    /// By allocator.
    pub overall: Vec<Overall>,
}

fn net(sample: &Sample, call: Call) -> Option<Tally> {
    let empty = sample.tally(EMPTY_TICKS)?.quantile(0.5)?;
    Some(sample.tally(call.tally())?.shifted(empty.saturating_neg()))
}

/// The median malloc of a sample, in ticks.
pub(super) fn net_median(sample: &Sample) -> Option<f64> {
    median(&net(sample, Call::Malloc)?)
}

fn median(tally: &Tally) -> Option<f64> {
    tally.quantile(0.5).map(|ticks| ticks as f64)
}

/// Mean of the calls of a sample that were not slow.
fn fast(sample: &Sample, call: Call) -> Option<f64> {
    let all = net(sample, call)?;
    let empty = sample.tally(EMPTY_TICKS)?.quantile(0.5)? as f64;
    let slow = sample.count(call.slow()).unwrap_or(0) as f64;
    let slow_ticks = sample.count(&call.slow_ticks()).unwrap_or(0) as f64 - slow * empty;
    let calls = all.count() as f64 - slow;
    (calls > 0.0).then(|| (all.total() - slow_ticks) / calls)
}

/// Sum of a count over samples; absent where no sample has it.
fn total(samples: &[&Sample], name: &str) -> Option<i64> {
    samples.iter().filter_map(|sample| sample.count(name)).reduce(i64::saturating_add)
}

fn slow(samples: &[&Sample], call: Call) -> Slow {
    let all: f64 = samples.iter().filter_map(|s| s.tally(call.tally())).map(|of| of.total()).sum();
    let ticks = total(samples, &call.slow_ticks());
    let by_cause = |cause: &Cause| {
        let calls = total(samples, &call.slow_by(cause.name)).filter(|calls| *calls > 0)?;
        Some((cause.name.to_string(), calls))
    };
    Slow {
        calls: total(samples, call.slow()).unwrap_or(0),
        share: ticks.filter(|_| all > 0.0).map(|ticks| ticks as f64 / all),
        causes: CAUSES.iter().filter_map(by_cause).collect(),
    }
}

fn cost(by_case: &ByCase, case: usize, call: Call) -> Option<CallCost> {
    let samples = by_case.of(case);
    let mut all = Tally::default();
    samples.iter().filter_map(|sample| net(sample, call)).for_each(|tally| all.merge(&tally));
    Some(CallCost {
        net_ticks: Quantity::of(&all)?,
        median_ticks: by_case.estimate(case, |sample| median(&net(sample, call)?)),
        fast_ticks: by_case.estimate(case, |sample| fast(sample, call)),
        slow: slow(samples, call),
    })
}

pub(super) fn find(by_case: &ByCase, cases: usize) -> Found {
    let point = |case: usize| {
        let Some(Trial::Malloc { bytes, preload }) = by_case.trial(case) else { return None };
        let samples = by_case.of(case);
        let per_sample = |name: &str| {
            let counted = samples.iter().filter(|sample| sample.count(name).is_some()).count();
            Some((name.to_string(), total(samples, name)? as f64 / counted as f64))
        };
        let counts = [BRK_CALLS, MMAP_CALLS, MINOR_FAULTS];
        Some(Point {
            case,
            bytes: *bytes,
            preload: preload.clone(),
            malloc: cost(by_case, case, Call::Malloc),
            free: cost(by_case, case, Call::Free),
            per_sample: counts.into_iter().filter_map(per_sample).collect(),
        })
    };
    let points: Vec<Point> = (0..cases).filter_map(point).collect();
    let mut preloads: Vec<Option<String>> = Vec::new();
    for point in &points {
        if !preloads.contains(&point.preload) {
            preloads.push(point.preload.clone());
        }
    }
    let overall = preloads.into_iter().map(|preload| overall(by_case, &points, preload)).collect();
    Found { points, overall }
}

fn overall(by_case: &ByCase, points: &[Point], preload: Option<String>) -> Overall {
    let own = points.iter().filter(|point| point.preload == preload);
    let cases: Vec<usize> = own.map(|point| point.case).collect();
    let mean_over = |of: &dyn Fn(&Sample) -> Option<f64>| {
        by_case.estimate_together(&cases, |samples| {
            let figures: Option<Vec<f64>> = samples.iter().map(|sample| of(sample)).collect();
            stats::mean(&figures?)
        })
    };
    let over_sizes =
        |call: Call, of: fn(&Tally) -> Option<f64>| mean_over(&|sample| of(&net(sample, call)?));
    Overall {
        malloc_median_ticks: over_sizes(Call::Malloc, median),
        malloc_mean_ticks: over_sizes(Call::Malloc, Tally::mean),
        malloc_fast_ticks: by_case.estimate_together(&cases, |samples| {
            // Sizes of which every call is slow have none.
            let fast = samples.iter().filter_map(|sample| fast(sample, Call::Malloc));
            stats::mean(&fast.collect::<Vec<f64>>())
        }),
        free_median_ticks: over_sizes(Call::Free, median),
        free_mean_ticks: over_sizes(Call::Free, Tally::mean),
        preload,
    }
}
