//! What calls in loops cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::plan::Plan;
use crate::trial::loops::{ENTERED_CALLS, KERNEL_ENTRIES, empty_ticks, loop_ticks, net_ticks};
use crate::trial::overhead::BATCH_TICKS;
use crate::trial::{ByCase, ByRound, Case, Sample, Trial};

/// What one call, or one loop of a short sequence, costs above the empty loop. Signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// Name of the call or sequence.
    pub call: String,
    /// In nanoseconds: the median batch of a round less the median empty one, over rounds; of clean slices
    /// where there are enough.
    pub ns: Option<Estimate>,
    /// In ticks of the time-stamp counter.
    pub ticks: Option<Estimate>,
    /// A turn of the empty loop, which was taken off, in nanoseconds.
    pub empty_loop_ns: Option<Estimate>,
    /// Entries into the kernel per call, as counted by tracing; absent where nothing can be traced.
    pub kernel_entries: Option<f64>,
}

/// Figures by round of the trials of a run.
#[derive(Clone, Copy)]
pub(super) struct Figures<'a> {
    pub(super) plan: &'a Plan,
    pub(super) by_case: &'a ByCase<'a>,
}

impl Figures<'_> {
    /// Of clean slices where there are enough. Full and empty batches are of the same slices.
    fn by_round(&self, case: usize, of: impl Fn(&Sample) -> Option<f64>) -> ByRound {
        self.by_case.by_round(case, BATCH_TICKS, of)
    }

    /// The number of the first case that is this trial.
    pub(super) fn find(&self, is_it: impl Fn(&Trial) -> bool) -> Option<usize> {
        self.plan.trials().find(|(_, case)| is_it(&case.trial)).map(|(number, _)| number)
    }

    /// Nanoseconds per call above the empty loop, by round; empty without such a case.
    pub(super) fn call_ns(&self, name: &str) -> ByRound {
        let case = self.find(|trial| matches!(trial, Trial::Loop { call } if call == name));
        case.map(|case| self.by_round(case, net_ns)).unwrap_or_default()
    }

    /// Nanoseconds per loop of two processes, by round; empty without such a case.
    pub(super) fn two_process_loop_ns(&self) -> ByRound {
        let case = self.find(|trial| *trial == Trial::TwoProcesses);
        let ns = |sample: &Sample| Some(loop_ticks(sample)? * sample.ns_per_tick()?);
        case.map(|case| self.by_round(case, ns)).unwrap_or_default()
    }

    /// A count of a case, summed over all its samples that have it.
    pub(super) fn sum(&self, case: usize, name: &str) -> Option<i64> {
        self.by_case
            .of(case)
            .iter()
            .filter_map(|sample| sample.count(name))
            .reduce(i64::saturating_add)
    }

    /// The estimate over rounds.
    pub(super) fn estimate(&self, figures: &ByRound) -> Option<Estimate> {
        figures.estimate(self.plan)
    }

    /// What every loop costs.
    pub(super) fn costs(&self) -> Vec<LoopCost> {
        let cost = |(case, of): (usize, &Case)| {
            let Trial::Loop { call } = &of.trial else { return None };
            let estimate = |of: fn(&Sample) -> Option<f64>| self.estimate(&self.by_round(case, of));
            Some(LoopCost {
                case,
                call: call.clone(),
                ns: estimate(net_ns),
                ticks: estimate(net_ticks),
                empty_loop_ns: estimate(|s| Some(empty_ticks(s)? * s.ns_per_tick()?)),
                kernel_entries: self.kernel_entries(case),
            })
        };
        self.plan.trials().filter_map(cost).collect()
    }

    fn kernel_entries(&self, case: usize) -> Option<f64> {
        let calls = self.sum(case, ENTERED_CALLS).filter(|calls| *calls > 0)?;
        Some(self.sum(case, KERNEL_ENTRIES)? as f64 / calls as f64)
    }
}

fn net_ns(sample: &Sample) -> Option<f64> {
    Some(net_ticks(sample)? * sample.ns_per_tick()?)
}
