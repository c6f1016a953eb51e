//! What a program would save if its threads did not share CPUs.

use std::collections::{HashMap, HashSet};

use analysis::program::{Price, Range, percents};
use schemars::JsonSchema;
use serde::Serialize;

use crate::observe::live::account::{SwitchAccount, TracedTask};
use crate::programs::watch::Apart;

/// Threads that use a smaller share of the program's CPU time are no workers.
const WORKERS_SHARE: f64 = 0.01;

/// A smaller saving is not worth a sentence.
const WORTH_IT: f64 = 0.01;

/// What pinning each worker to a CPU of its own would save.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Pinning")]
pub(crate) struct PinningSaving {
    /// Threads that were switched to each other.
    pub(crate) workers: usize,
    /// Share of the program's CPU time that it would save at most.
    pub(crate) share: Range,
    /// What handing over to another CPU costs, in ns.
    pub(crate) hand_over_ns: Range,
    /// The stored sweep of placements that this is from.
    pub(crate) sweep: String,
}

impl PinningSaving {
    /// Apart, workers do not preempt each other, and one that waits for another hands over to
    /// another CPU at the sweep's cost instead of being switched on its own. Nothing where that may
    /// save nothing, or there are not enough CPUs.
    pub(super) fn of(
        account: &SwitchAccount,
        price: Price,
        apart: &Apart,
        cpus: usize,
    ) -> Option<Self> {
        let cpu_ns = account.total().cpu_ns as f64;
        let is_worker = |who: &TracedTask| {
            let life = account.life(who).filter(|life| life.inside);
            let used = life.map_or(0.0, |life| life.used.cpu_ns as f64);
            matches!(who, TracedTask::Thread(_)) && used >= WORKERS_SHARE * cpu_ns && used > 0.0
        };
        let of_workers: HashMap<_, _> = (account.pairs.iter())
            .filter(|((prev, next), _)| prev != next && is_worker(prev) && is_worker(next))
            .collect();
        let workers: HashSet<&TracedTask> =
            of_workers.keys().flat_map(|(prev, next)| [prev, next]).collect();
        let sum = |kind: usize| of_workers.values().map(|counts| counts[kind]).sum::<u64>() as f64;
        let (voluntary, all) = (sum(0), sum(0) + sum(1));
        if all == 0.0 || workers.len() > cpus {
            return None;
        }
        let direct = price.direct.map(|of| of.at(1.0 - voluntary / all));
        let each = price.total.or(direct)?;
        let part = |each: f64, apart: f64| (all * each - voluntary * apart) / cpu_ns;
        let Apart { hand_over_ns, run } = apart;
        let share = Range {
            low: part(each.low, hand_over_ns.high),
            high: part(each.high, hand_over_ns.low).min(1.0),
        };
        if share.low <= 0.0 || share.high < WORTH_IT {
            return None;
        }
        let (workers, hand_over_ns, sweep) = (workers.len(), *hand_over_ns, run.clone());
        Some(Self { workers, share, hand_over_ns, sweep })
    }

    /// ` Pinning its 8 workers apart would save up to 4 %.`
    pub(super) fn in_words(&self) -> String {
        let most = Range { low: self.share.high, ..self.share };
        format!(" Pinning its {} workers apart would save up to {}.", self.workers, percents(most))
    }
}
