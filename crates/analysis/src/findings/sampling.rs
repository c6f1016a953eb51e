//! `classic experiment sampling`: what accounting by the timer tick makes of a process that sleeps
//! whenever the tick comes (Hines, Wyatt and Chang 2000, their figure 1).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;
use rundata::trial::sampling::*;
use rundata::trial::{Sample, Trial};

/// What one account said of one process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct AccountedTime {
    /// Milliseconds of CPU time per second watched, over rounds.
    pub ms_per_s: Estimate,
    /// By how much that differs from the truth, in percent of the truth, over rounds.
    pub error_percent: Option<Estimate>,
}

/// One process in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Process")]
pub struct ProcessAccounts {
    /// `sleeper` or `burner`.
    pub process: String,
    /// By account; those that this machine does not have are absent.
    pub accounts: BTreeMap<String, AccountedTime>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct SamplingPoint {
    /// Number of the case in the plan.
    pub case: usize,
    /// When the sleeper slept.
    pub phase: Phase,
    /// Nanoseconds from tick to tick, over rounds.
    pub tick_ns: Option<Estimate>,
    /// Both processes.
    pub processes: Vec<ProcessAccounts>,
}

fn told(table: &Table, case: usize, process: &str, account: &Account) -> Option<AccountedTime> {
    let own = count(process, account.name);
    let truth = count(process, account.truth);
    let per_second =
        |sample: &Sample| Some(1e3 * sample.count(&own)? as f64 / sample.elapsed_ns as f64);
    let error = |sample: &Sample| {
        let truth = sample.count(&truth)? as f64;
        Some(100.0 * (sample.count(&own)? as f64 - truth) / truth)
    };
    Some(AccountedTime {
        ms_per_s: table.estimate(case, per_second)?,
        error_percent: table.estimate(case, error).filter(|_| own != truth),
    })
}

pub(super) fn find(table: &Table) -> Vec<SamplingPoint> {
    let point = |(case, trial): (usize, &Trial)| {
        let Trial::Sampling { phase, .. } = trial else { return None };
        let process = |process: &str| {
            let account = |account: &Account| {
                Some((account.name.to_string(), told(table, case, process, account)?))
            };
            let accounts = ACCOUNTS.iter().filter_map(account).collect();
            ProcessAccounts { process: process.to_string(), accounts }
        };
        Some(SamplingPoint {
            case,
            phase: *phase,
            tick_ns: table.estimate(case, |sample| sample.count(TICK_NS).map(|ns| ns as f64)),
            processes: PROCESSES.into_iter().map(process).collect(),
        })
    };
    table.trials().filter_map(point).collect()
}
