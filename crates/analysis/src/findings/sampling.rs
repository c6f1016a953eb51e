//! `classic experiment sampling`: the CPU time that accounting by the timer tick sees of a process
//! that sleeps whenever the tick comes (Hines, Wyatt and Chang 2000, their figure 1).

use std::collections::BTreeMap;

use rundata::trial::Trial;
use rundata::trial::sampling::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;

/// The CPU time of one process by one account.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct AccountedTime {
    /// Milliseconds of CPU time per second watched, over rounds.
    pub ms_per_s: Estimate,
    /// Error of that time, in percent of the true one, over rounds.
    pub error_percent: Option<Estimate>,
}

/// The accounts of a process in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Process")]
pub struct ProcessAccounts {
    /// `sleeper` or `burner`.
    pub process: String,
    /// Times by account, without those that this machine does not have.
    pub accounts: BTreeMap<String, AccountedTime>,
}

/// A phase of the sleeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct SamplingPoint {
    /// Number of the case in the plan.
    pub case: usize,
    /// When the sleeper slept.
    pub phase: SleepPhase,
    /// Nanoseconds from tick to tick, over rounds.
    pub tick_ns: Option<Estimate>,
    /// Both processes.
    pub processes: Vec<ProcessAccounts>,
}

fn accounted_time(
    table: &Table,
    case: usize,
    process: &str,
    account: &TimeAccount,
) -> Option<AccountedTime> {
    let accounted = count_name(process, account.name);
    let truth = count_name(process, account.truth);
    let mut error_percent = None;
    if accounted != truth {
        error_percent = table.estimate(case, |sample| {
            let true_ns = sample.count(&truth)? as f64;
            Some(100.0 * (sample.count(&accounted)? as f64 - true_ns) / true_ns)
        });
    }
    Some(AccountedTime {
        ms_per_s: table.estimate(case, |sample| {
            Some(1e3 * sample.count(&accounted)? as f64 / sample.elapsed_ns as f64)
        })?,
        error_percent,
    })
}

fn process_accounts(table: &Table, case: usize, process: &str) -> ProcessAccounts {
    let mut accounts = BTreeMap::new();
    for account in ACCOUNTS {
        if let Some(time) = accounted_time(table, case, process, &account) {
            accounts.insert(account.name.to_string(), time);
        }
    }
    ProcessAccounts { process: process.to_string(), accounts }
}

pub(super) fn find(table: &Table) -> Vec<SamplingPoint> {
    let mut points = Vec::new();
    for (case, trial) in table.trials() {
        let Trial::Sampling { phase, .. } = trial else { continue };
        points.push(SamplingPoint {
            case,
            phase: *phase,
            tick_ns: table.estimate(case, |sample| sample.count(TICK_NS).map(|ns| ns as f64)),
            processes: PROCESSES.map(|process| process_accounts(table, case, process)).to_vec(),
        });
    }
    points
}
