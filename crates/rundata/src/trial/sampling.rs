//! `classic experiment sampling`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Measure, TrialSample, Unit};
use crate::experiment::named;

/// When a process that sleeps and wakes does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It sleeps whenever the timer tick comes: the worst case of sampled accounting.
    AcrossTicks,
    /// It sleeps as long, but moves over all phases of the tick: the sampling error averages out.
    Anywhere,
}

named!(Phase, "phase", AcrossTicks => "across ticks", Anywhere => "anywhere");

/// Count: nanoseconds from one tick to the next, by the kernel's word.
pub const TICK_NS: &str = "tick_ns";

/// The two processes. Their counts are `PROCESS_ACCOUNT_ns`.
pub const PROCESSES: [&str; 2] = ["sleeper", "burner"];

/// The accounts of a process's CPU time that are compared, best understood first.
pub const ACCOUNTS: [Account; 6] = [
    Account { name: "precise", in_words: "scheduler's sum", truth: "precise" },
    Account { name: "threadclock", in_words: "threadclock", truth: "precise" },
    Account { name: "ticks", in_words: "ticks that found it running", truth: "precise" },
    Account { name: "getrusage", in_words: "getrusage user + system", truth: "precise" },
    Account { name: "user", in_words: "getrusage user", truth: "true_user" },
    Account { name: "true_user", in_words: "outside of its system calls", truth: "true_user" },
];

/// A way to account for CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Its part of the count's name.
    pub name: &'static str,
    /// What it is.
    pub in_words: &'static str,
    /// What it is compared with: the scheduler's sum, or the user part as it truly was.
    pub truth: &'static str,
}

/// The count of a process by an account.
pub fn count(process: &str, account: &str) -> String {
    format!("{process}_{account}_ns")
}

/// Share of the time that the sleeper truly ran.
pub fn sleepers_share(sample: &TrialSample) -> Option<f64> {
    let ran = sample.count(&count(PROCESSES[0], "precise"))?;
    (sample.elapsed_ns > 0).then(|| ran as f64 / sample.elapsed_ns as f64)
}

/// A count: of no tally.
pub(super) const MEASURES: [Measure; 1] =
    [Measure::new("sleepers_share", "share", "", Unit::Share, sleepers_share).that_waits()];
