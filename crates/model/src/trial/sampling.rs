//! `clock sampling`: what accounting by the timer tick makes of a process that sleeps whenever the
//! tick comes (Hines, Wyatt and Chang 2000, their figure 1).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{Phase, Trial};
use super::figures::ByCase;
use super::sample::Sample;
use crate::estimate::Estimate;

/// Count: nanoseconds from one tick to the next, by the kernel's word.
pub const TICK_NS: &str = "tick_ns";

/// The two processes. Their counts are `PROCESS_ACCOUNT_ns`.
pub const PROCESSES: [&str; 2] = ["sleeper", "burner"];

/// The accounts of a process's CPU time that are compared, best understood first.
pub const ACCOUNTS: [Account; 6] = [
    Account { name: "precise", in_words: "scheduler's sum", part: Part::Whole },
    Account { name: "threadclock", in_words: "threadclock", part: Part::Whole },
    Account { name: "ticks", in_words: "ticks that found it running", part: Part::Whole },
    Account { name: "getrusage", in_words: "getrusage user + system", part: Part::Whole },
    Account { name: "user", in_words: "getrusage user", part: Part::User },
    Account { name: "true_user", in_words: "outside of its system calls", part: Part::User },
];

/// What an account is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// All CPU time of the process.
    Whole,
    /// Its time in user mode.
    User,
}

/// A way to account for CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Its part of the count's name.
    pub name: &'static str,
    /// What it is.
    pub in_words: &'static str,
    /// What it is about.
    pub part: Part,
}

impl Account {
    /// What it is compared with: the scheduler's sum, or the user part as it truly was.
    pub fn truth(&self) -> &'static str {
        match self.part {
            Part::Whole => "precise",
            Part::User => "true_user",
        }
    }
}

/// The count of a process by an account.
pub fn count(process: &str, account: &str) -> String {
    format!("{process}_{account}_ns")
}

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
    let truth = count(process, account.truth());
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

pub(super) fn find(by_case: &ByCase, cases: usize) -> Vec<Point> {
    let point = |case: usize| {
        let Some(Trial::Sampling { phase, .. }) = by_case.trial(case) else { return None };
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
    (0..cases).filter_map(point).collect()
}
