//! `classic experiment sampling`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MeasureUnit, TrialMeasure, TrialSample};
use crate::experiment::named;

/// Phase of a sleeper's sleeps against the timer tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SleepPhase {
    /// It sleeps whenever the timer tick comes: the worst case of sampled accounting.
    AcrossTicks,
    /// It sleeps as long, but moves over all phases of the tick: the sampling error averages out.
    Anywhere,
}

named!(SleepPhase, "phase", AcrossTicks => "across ticks", Anywhere => "anywhere");

/// Count: nanoseconds from one tick to the next, by the kernel's word.
pub const TICK_NS: &str = "tick_ns";

/// The two processes. Their counts are `PROCESS_ACCOUNT_ns`.
pub const PROCESSES: [&str; 2] = ["sleeper", "burner"];

/// The accounts of a process's CPU time that are compared, best understood first.
pub const ACCOUNTS: [TimeAccount; 6] = [
    TimeAccount { name: "precise", in_words: "scheduler's sum", truth: "precise" },
    TimeAccount { name: "threadclock", in_words: "threadclock", truth: "precise" },
    TimeAccount { name: "ticks", in_words: "ticks that found it running", truth: "precise" },
    TimeAccount { name: "getrusage", in_words: "getrusage user + system", truth: "precise" },
    TimeAccount { name: "user", in_words: "getrusage user", truth: "true_user" },
    TimeAccount { name: "true_user", in_words: "outside of its system calls", truth: "true_user" },
];

/// A way to account for CPU time.
#[derive(Clone, Copy, Debug)]
pub struct TimeAccount {
    /// Part of the count's name.
    pub name: &'static str,
    /// Description.
    pub in_words: &'static str,
    /// Account with which it is compared: the scheduler's sum, or the user part as it truly was.
    pub truth: &'static str,
}

/// Returns the name of the count of a process by an account.
pub fn count_name(process: &str, account: &str) -> String {
    format!("{process}_{account}_ns")
}

/// Returns the share of the time that the sleeper truly ran, 0 to 1.
pub fn sleeper_share(sample: &TrialSample) -> Option<f64> {
    let ran = sample.count(&count_name(PROCESSES[0], "precise"))?;
    if sample.elapsed_ns > 0 { Some(ran as f64 / sample.elapsed_ns as f64) } else { None }
}

/// Share of the time that the sleeper ran. It is a count, so it names no tally.
pub(super) const MEASURES: [TrialMeasure; 1] =
    [TrialMeasure::new("sleepers_share", "share", "", MeasureUnit::Share, sleeper_share)
        .that_waits()];
