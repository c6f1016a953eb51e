//! `classic experiment primes`: precision and accuracy of two ways of timing the same work
//! (Hines, Wyatt and Chang 2000, section 4, their `primes`).

use std::collections::BTreeMap;

use rundata::trial::primes::*;
use rundata::trial::{Trial, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;

/// Mean and spread of a way of timing at a number of primes, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Timed")]
pub struct TimingSpread {
    /// Mean of a round's trials, less the mean of its empty ones, over rounds.
    pub mean_ns: Estimate,
    /// Standard deviation of a round's trials, over rounds.
    pub sd_ns: Estimate,
}

/// A way of timing compared with threadclock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Against")]
pub struct PrecisionComparison {
    /// Standard deviation above threadclock's, in percent of it, over rounds: 0 is as precise, 100
    /// is half as precise. Absent where one of them was 0 in every round.
    pub gain_percent: Option<Estimate>,
    /// Mean above threadclock's, in percent of it, paired within rounds.
    pub mean_difference_percent: Option<Estimate>,
}

/// The ways of timing at a number of primes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct PrimesPoint {
    /// Number of the case in the plan.
    pub case: usize,
    /// The number of primes.
    pub primes: u32,
    /// Ways of timing by the name of their tally.
    pub timed: BTreeMap<String, TimingSpread>,
    /// Comparison of the other ways with threadclock.
    pub against: BTreeMap<String, PrecisionComparison>,
}

/// Findings of `classic experiment primes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct PrimesFindings {
    /// Points by number of primes.
    pub points: Vec<PrimesPoint>,
    /// Comparison over all numbers of primes: the gain from the geometric mean of the ratios of
    /// standard deviations, the difference between the sums of the means.
    pub overall: BTreeMap<String, PrecisionComparison>,
}

fn sd(sample: &TrialSample, name: &str) -> Option<f64> {
    sample.tally(name)?.sd()
}

/// Returns the logarithm of the ratio of standard deviations; absent where one of them is 0: a way
/// of timing that always gives one value is not precise but blind.
fn log_ratio(sample: &TrialSample, name: &str) -> Option<f64> {
    let ratio = sd(sample, name)? / sd(sample, THREADCLOCK_NS)?;
    if ratio.is_finite() && ratio > 0.0 { Some(ratio.ln()) } else { None }
}

fn percent(log_ratio: f64) -> f64 {
    100.0 * (log_ratio.exp() - 1.0)
}

/// Returns the difference between the sums of the samples' means, in percent of threadclock's.
fn difference_percent(samples: &[&TrialSample], name: &str) -> Option<f64> {
    let threadclock = sum_of_means(samples, THREADCLOCK_NS)?;
    Some(100.0 * (sum_of_means(samples, name)? - threadclock) / threadclock)
}

fn sum_of_means(samples: &[&TrialSample], name: &str) -> Option<f64> {
    samples.iter().map(|sample| net_mean_ns(sample, name)).sum()
}

/// Returns the mean gain of the samples, in percent.
fn mean_gain_percent(samples: &[&TrialSample], name: &str) -> Option<f64> {
    let mut ratios = Vec::new();
    for sample in samples {
        ratios.extend(log_ratio(sample, name));
    }
    Some(percent(stats::mean(&ratios)?))
}

fn timing_spread(table: &Table, case: usize, name: &str) -> Option<TimingSpread> {
    let mean_ns = table.estimate(case, |sample| net_mean_ns(sample, name))?;
    let sd_ns = table.estimate(case, |sample| sd(sample, name))?;
    Some(TimingSpread { mean_ns, sd_ns })
}

pub(super) fn find(table: &Table) -> PrimesFindings {
    let mut points = Vec::new();
    for (case, trial) in table.trials() {
        let Trial::Primes { primes } = trial else { continue };
        let (mut timed, mut against) = (BTreeMap::new(), BTreeMap::new());
        for name in COMPARED_CLOCKS.into_iter().chain([THREADCLOCK_NS]) {
            if let Some(spread) = timing_spread(table, case, name) {
                timed.insert(name.to_string(), spread);
            }
        }
        for name in COMPARED_CLOCKS {
            let gain_percent = table.estimate(case, |sample| log_ratio(sample, name).map(percent));
            let mean_difference_percent =
                table.estimate(case, |sample| difference_percent(&[sample], name));
            let comparison = PrecisionComparison { gain_percent, mean_difference_percent };
            against.insert(name.to_string(), comparison);
        }
        points.push(PrimesPoint { case, primes: *primes, timed, against });
    }
    let cases: Vec<usize> = points.iter().map(|point| point.case).collect();
    let mut overall = BTreeMap::new();
    for name in COMPARED_CLOCKS {
        let gain_percent =
            table.estimate_together(&cases, |samples| mean_gain_percent(samples, name));
        let mean_difference_percent =
            table.estimate_together(&cases, |samples| difference_percent(samples, name));
        let comparison = PrecisionComparison { gain_percent, mean_difference_percent };
        overall.insert(name.to_string(), comparison);
    }
    PrimesFindings { points, overall }
}
