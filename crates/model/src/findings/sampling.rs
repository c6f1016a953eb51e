//! `clock sampling`: what accounting by the timer tick makes of a process that sleeps whenever the
//! tick comes (Hines, Wyatt and Chang 2000, their figure 1).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ByCase;
use crate::estimate::Estimate;
use crate::trial::{Phase, Sample, Trial};

pub use crate::trial::sampling::*;

/// What one account said of one process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// Milliseconds of CPU time per second watched, over rounds.
    pub ms_per_s: Estimate,
    /// By how much that differs from the truth, in percent of the truth, over rounds.
    pub error_percent: Option<Estimate>,
}

/// One process in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// `sleeper` or `burner`.
    pub process: String,
    /// By account; those that this machine does not have are absent.
    pub accounts: BTreeMap<String, Told>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Number of the case in the plan.
    pub case: usize,
    /// When the sleeper slept.
    pub phase: Phase,
    /// Nanoseconds from tick to tick, over rounds.
    pub tick_ns: Option<Estimate>,
    /// Both processes.
    pub processes: Vec<Process>,
}

/// Share of the time that the sleeper truly ran.
pub(super) fn sleepers_share(sample: &Sample) -> Option<f64> {
    let ran = sample.count(&count(PROCESSES[0], "precise"))?;
    (sample.elapsed_ns > 0).then(|| ran as f64 / sample.elapsed_ns as f64)
}

fn told(by_case: &ByCase, case: usize, process: &str, account: &Account) -> Option<Told> {
    let own = count(process, account.name);
    let truth = count(process, account.truth);
    let per_second =
        |sample: &Sample| Some(1e3 * sample.count(&own)? as f64 / sample.elapsed_ns as f64);
    let error = |sample: &Sample| {
        let truth = sample.count(&truth)? as f64;
        Some(100.0 * (sample.count(&own)? as f64 - truth) / truth)
    };
    Some(Told {
        ms_per_s: by_case.estimate(case, per_second)?,
        error_percent: by_case.estimate(case, error).filter(|_| own != truth),
    })
}

pub(super) fn find(by_case: &ByCase) -> Vec<Point> {
    let point = |(case, trial): (usize, &Trial)| {
        let Trial::Sampling { phase, .. } = trial else { return None };
        let process = |process: &str| {
            let account = |account: &Account| {
                Some((account.name.to_string(), told(by_case, case, process, account)?))
            };
            let accounts = ACCOUNTS.iter().filter_map(account).collect();
            Process { process: process.to_string(), accounts }
        };
        Some(Point {
            case,
            phase: *phase,
            tick_ns: by_case.estimate(case, |sample| sample.count(TICK_NS).map(|ns| ns as f64)),
            processes: PROCESSES.into_iter().map(process).collect(),
        })
    };
    by_case.trials().filter_map(point).collect()
}
