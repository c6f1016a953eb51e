//! The parts of a kernel's response time (`switchcost response`). Its cases are rings
//! and trials, interleaved by one schedule, so that every figure that needs several is paired
//! within rounds.

mod budget;
mod signals;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::findings::{self, gaps, load, wakeup};
use crate::summary::CaseSummary;
use crate::table::{ByRound, Table};
use rundata::ring::RingCase;
use rundata::run::Run;
use rundata::trial::loops::{ENTERED_CALLS, KERNEL_ENTRIES, empty_loop_ticks, net_call_ticks};
use rundata::trial::overhead::BATCH_TICKS;
use rundata::trial::{Trial, TrialSample};

pub use budget::{BudgetComparison, ResponseBudget};
pub use signals::{SignalAccount, SignalCosts};

/// The link that the others are compared with, and whose switch is in the budget.
const REFERENCE: &str = "pipe";

/// The summary of a ring or of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CaseSummary_or_TrialSummary")]
pub enum ResponseSummary {
    /// Summary of a ring.
    Ring(Box<CaseSummary>),
    /// Summary of a trial.
    Trial(Box<findings::TrialSummary>),
}

impl ResponseSummary {
    /// Returns the summary of a ring; `None` for a trial.
    pub fn ring(&self) -> Option<&CaseSummary> {
        match self {
            Self::Ring(summary) => Some(summary),
            Self::Trial(_) => None,
        }
    }

    /// Returns the summary of a trial; `None` for a ring.
    pub fn trial(&self) -> Option<&findings::TrialSummary> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(summary) => Some(summary),
        }
    }
}

/// Cost of one call, or of one loop of a short sequence, above the empty loop. Signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// Name of the call or sequence.
    pub call: String,
    /// Cost in nanoseconds: the median batch of a round less the median empty one, over rounds; of
    /// clean slices where there are enough.
    pub ns: Option<Estimate>,
    /// Cost in ticks of the time-stamp counter.
    pub ticks: Option<Estimate>,
    /// A turn of the empty loop, which was subtracted, in nanoseconds.
    pub empty_loop_ns: Option<Estimate>,
    /// Entries into the kernel per call, as counted by tracing; absent where nothing can be traced.
    pub kernel_entries: Option<f64>,
}

/// A ring of two by one link. Its cost is in the summary of its case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// The link.
    pub link: String,
    /// Cost of a counted switch above solo by this link less that by pipe, in nanoseconds, paired
    /// within rounds. Absent for the pipe itself, for a link that does not switch, and without a
    /// ring by pipe.
    pub above_pipe_ns: Option<Estimate>,
}

/// Findings of `response`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ResponseFindings")]
pub struct ResponseFindings {
    /// Costs of calls in loops: system calls, installing a handler, a signal to oneself.
    pub loops: Vec<LoopCost>,
    /// The memorandum's figures; absent where no signal was measured.
    pub signals: Option<SignalCosts>,
    /// Rings of two by every link.
    pub links: Vec<LinkCost>,
    /// Interruptions of a busy loop.
    pub gaps: Vec<gaps::GapFindings>,
    /// Lateness of wake-ups.
    pub wakeups: Vec<wakeup::WakeupFindings>,
    /// Wake-ups under load; absent where none were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<load::LoadFindings>,
    /// The response by its parts and as measured; absent without wake-ups.
    pub budget: Option<ResponseBudget>,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter, and without a trial.
    pub ns_per_tick: Option<f64>,
}

impl ResponseFindings {
    /// Builds the findings of a run; `rings` are the summaries of its rings.
    pub(crate) fn from_run(run: &Run, table: &Table, rings: &[CaseSummary]) -> Self {
        let (mut gaps, mut tick_ns) = (Vec::new(), ByRound::default());
        for (findings, ticks) in gaps::find(table) {
            gaps.push(findings);
            // The first case in which the tick was found counts.
            if tick_ns.of_all().next().is_none() {
                tick_ns = ticks;
            }
        }
        Self {
            loops: loops(table),
            signals: signals::find(table, run.unfinished().is_none()),
            links: links(table, rings),
            gaps,
            wakeups: wakeup::find(table),
            loads: load::find(table),
            budget: budget::find(table, tick_ns),
            ns_per_tick: findings::ns_per_tick(&run.samples),
        }
    }
}

/// Returns the cost of each loop. Full and empty batches are of the same slices.
fn loops(table: &Table) -> Vec<LoopCost> {
    let mut costs = Vec::new();
    for (case, trial) in table.trials() {
        let Trial::Loop { call } = trial else { continue };
        let kernel_entries = match (table.sum(case, KERNEL_ENTRIES), table.sum(case, ENTERED_CALLS))
        {
            (Some(entries), Some(calls)) if calls > 0 => Some(entries as f64 / calls as f64),
            _ => None,
        };
        costs.push(LoopCost {
            case,
            call: call.clone(),
            ns: table.estimate_of_slices(case, BATCH_TICKS, |sample| {
                Some(net_call_ticks(sample)? * sample.ns_per_tick()?)
            }),
            ticks: table.estimate_of_slices(case, BATCH_TICKS, net_call_ticks),
            empty_loop_ns: table.estimate_of_slices(case, BATCH_TICKS, |sample| {
                Some(empty_loop_ticks(sample)? * sample.ns_per_tick()?)
            }),
            kernel_entries,
        });
    }
    costs
}

/// Returns the case of a call of this name in a loop.
fn loop_of(table: &Table, name: &str) -> Option<usize> {
    table.find(|trial| matches!(trial, Trial::Loop { call } if call == name))
}

/// Returns the nanoseconds per call or loop of a case, by round; empty without a case.
fn loop_ns(table: &Table, case: Option<usize>, ticks: fn(&TrialSample) -> Option<f64>) -> ByRound {
    let Some(case) = case else { return ByRound::default() };
    table.by_round(case, BATCH_TICKS, |sample| Some(ticks(sample)? * sample.ns_per_tick()?))
}

/// Returns the cost of a switch by each link above that by pipe.
fn links(table: &Table, cases: &[CaseSummary]) -> Vec<LinkCost> {
    let mut costs = Vec::new();
    for ((number, case), summary) in table.plan.rings().zip(cases) {
        if case.members != 2 || case.work.is_some() {
            continue;
        }
        let by_pipe = RingCase { link: REFERENCE.to_string(), ..case.clone() };
        let above_pipe_ns = match table.plan.find_ring(|other| *other == by_pipe) {
            Some(pipe) if pipe != number && !summary.does_not_switch => {
                table.difference(number, pipe, table.rank(number))
            }
            _ => None,
        };
        costs.push(LinkCost { case: number, link: case.link.clone(), above_pipe_ns });
    }
    costs
}
