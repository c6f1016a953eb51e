//! The CPU time that a program would save if its threads did not share CPUs.
//!
//! Two workers on one CPU make 20,000 switches to each other a second, at 800 ns each: 16 ms of CPU
//! time. Of these 15,000 are voluntary: one waits for the other. Each on a CPU of its own, they no
//! longer preempt each other, and hand over 15,000 times at 500 ns: 7.5 ms. The rest, 8.5 ms a
//! second, is saved.

use std::collections::HashSet;

use analysis::program::{Price, Range, percents};
use schemars::JsonSchema;
use serde::Serialize;

use crate::observe::live::account::{PairCounts, SwitchAccount, TracedTask};
use crate::programs::watch::HandOverCost;

/// Share of the program's CPU time that a thread uses which is a worker.
const MIN_WORKER_SHARE: f64 = 0.01;

/// Share of the program's CPU time from which on a saving is worth a sentence.
const MIN_SAVING: f64 = 0.01;

/// The saving if each worker were pinned to a CPU of its own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Pinning")]
pub(crate) struct PinningSaving {
    /// Threads that were switched to each other.
    pub(crate) workers: usize,
    /// Share of the program's CPU time that it would save at most.
    pub(crate) share: Range,
    /// Cost of handing over to another CPU, in ns.
    pub(crate) hand_over_ns: Range,
    /// The stored sweep of placements that this is from.
    pub(crate) sweep: String,
}

/// Switches between workers.
#[derive(Default)]
struct WorkerSwitches<'a> {
    workers: HashSet<&'a TracedTask>,
    counts: PairCounts,
}

impl PinningSaving {
    /// Computes the saving: apart, workers do not preempt each other, and one that waits for
    /// another hands over to another CPU at the sweep's cost instead of being switched on its own.
    /// Nothing where that may save nothing, or there are not enough CPUs.
    pub(super) fn compute(
        account: &SwitchAccount,
        price: Price,
        apart: &HandOverCost,
        cpus: usize,
    ) -> Option<Self> {
        let cpu_ns = account.total().cpu_ns as f64;
        let WorkerSwitches { workers, counts } = worker_switches(account, cpu_ns);
        let (voluntary, switches) = (counts.voluntary as f64, counts.total() as f64);
        if switches == 0.0 || workers.len() > cpus {
            return None;
        }
        let direct = price.direct.map(|direct| direct.at(1.0 - voluntary / switches));
        let each = price.total.or(direct)?;
        let HandOverCost { hand_over_ns, run } = apart;
        let least = switches * each.low - voluntary * hand_over_ns.high;
        let most = switches * each.high - voluntary * hand_over_ns.low;
        let share = Range { low: least / cpu_ns, high: (most / cpu_ns).min(1.0) };
        if share.low <= 0.0 || share.high < MIN_SAVING {
            return None;
        }
        let (hand_over_ns, sweep) = (*hand_over_ns, run.clone());
        Some(Self { workers: workers.len(), share, hand_over_ns, sweep })
    }

    /// Returns ` Pinning its 8 workers apart would save up to 4 %.`
    pub(super) fn in_words(&self) -> String {
        let most = Range { low: self.share.high, ..self.share };
        format!(" Pinning its {} workers apart would save up to {}.", self.workers, percents(most))
    }
}

/// Adds up the switches from one worker to another.
fn worker_switches(account: &SwitchAccount, cpu_ns: f64) -> WorkerSwitches<'_> {
    let mut found = WorkerSwitches::default();
    for ((prev, next), counts) in &account.pairs {
        if prev != next && is_worker(account, prev, cpu_ns) && is_worker(account, next, cpu_ns) {
            found.workers.extend([prev, next]);
            found.counts.add(*counts);
        }
    }
    found
}

/// Returns whether a task is a thread of the program that uses a share of its CPU time.
fn is_worker(account: &SwitchAccount, task: &TracedTask, cpu_ns: f64) -> bool {
    let Some(record) = account.task(task) else { return false };
    let used_ns = record.used.cpu_ns as f64;
    matches!(task, TracedTask::Thread(_))
        && record.in_scope
        && used_ns >= MIN_WORKER_SHARE * cpu_ns
        && used_ns > 0.0
}
