//! `classic experiment primes`: how precise and how accurate two ways of timing the same work are
//! (Hines, Wyatt and Chang 2000, section 4, their `primes`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;
use rundata::trial::primes::*;
use rundata::trial::{Sample, Trial};

/// One way of timing at one number of primes. Time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Timed")]
pub struct TimingSpread {
    /// Mean of a round's trials, less the mean of its empty ones, over rounds.
    pub mean_ns: Estimate,
    /// Standard deviation of a round's trials, over rounds.
    pub sd_ns: Estimate,
}

/// A way of timing against threadclock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Against")]
pub struct PrecisionComparison {
    /// How much larger its standard deviation is, in percent of threadclock's, over rounds: 0 is as
    /// precise, 100 is half as precise. Absent where one of them was 0 in every round.
    pub gain_percent: Option<Estimate>,
    /// How much larger its mean is, in percent of threadclock's, paired within rounds.
    pub mean_difference_percent: Option<Estimate>,
}

/// All ways of timing at one number of primes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct PrimesPoint {
    /// Number of the case in the plan.
    pub case: usize,
    /// How many primes.
    pub primes: u32,
    /// Each way by the name of its tally.
    pub timed: BTreeMap<String, TimingSpread>,
    /// Each way but threadclock against it.
    pub against: BTreeMap<String, PrecisionComparison>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct PrimesFindings {
    /// By number of primes.
    pub points: Vec<PrimesPoint>,
    /// Over all numbers of primes together: the gain from the geometric mean of the ratios of
    /// standard deviations, the difference between the sums of the means.
    pub overall: BTreeMap<String, PrecisionComparison>,
}

fn sd(sample: &Sample, name: &str) -> Option<f64> {
    sample.tally(name)?.sd()
}

/// Logarithm of the ratio of standard deviations; none where one of them is 0: a way of timing that
/// never left one value has not been precise but blind.
fn log_ratio(sample: &Sample, name: &str) -> Option<f64> {
    let ratio = sd(sample, name)? / sd(sample, THREADCLOCK_NS)?;
    (ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
}

fn percent(log_ratio: f64) -> f64 {
    100.0 * (log_ratio.exp() - 1.0)
}

/// Between the sums of the samples' means.
fn difference_percent(samples: &[&Sample], name: &str) -> Option<f64> {
    let sum = |name| samples.iter().map(|sample| mean(sample, name)).sum::<Option<f64>>();
    let own = sum(THREADCLOCK_NS)?;
    Some(100.0 * (sum(name)? - own) / own)
}

pub(super) fn find(table: &Table) -> PrimesFindings {
    let against =
        |of: &dyn Fn(&str) -> PrecisionComparison| -> BTreeMap<String, PrecisionComparison> {
            OTHERS.into_iter().map(|name| (name.to_string(), of(name))).collect()
        };
    let point = |(case, trial): (usize, &Trial)| {
        let Trial::Primes { primes } = trial else { return None };
        let timed = |name: &str| {
            let mean_ns = table.estimate(case, |sample| mean(sample, name))?;
            let sd_ns = table.estimate(case, |sample| sd(sample, name))?;
            Some((name.to_string(), TimingSpread { mean_ns, sd_ns }))
        };
        Some(PrimesPoint {
            case,
            primes: *primes,
            timed: OTHERS.into_iter().chain([THREADCLOCK_NS]).filter_map(timed).collect(),
            against: against(&|name| PrecisionComparison {
                gain_percent: table.estimate(case, |s| log_ratio(s, name).map(percent)),
                mean_difference_percent: table.estimate(case, |s| difference_percent(&[s], name)),
            }),
        })
    };
    let points: Vec<PrimesPoint> = table.trials().filter_map(point).collect();
    let all: Vec<usize> = points.iter().map(|point| point.case).collect();
    let overall = against(&|name| PrecisionComparison {
        gain_percent: table.estimate_together(&all, |samples| {
            let ratios = samples.iter().filter_map(|sample| log_ratio(sample, name));
            stats::mean(&ratios.collect::<Vec<f64>>()).map(percent)
        }),
        mean_difference_percent: table.estimate_together(&all, |s| difference_percent(s, name)),
    });
    PrimesFindings { points, overall }
}
