//! What `switchcost response` says: what a kernel's response time is made of. Its cases are rings
//! and trials, interleaved by one schedule, so that every figure that needs several is paired
//! within rounds.

mod budget;
mod signals;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Either, rings, trials};
use crate::competing::CompetingTasks;
use crate::estimate::{Estimate, widest};
use crate::experiment::Takes;
use crate::findings::overhead::{empty_ticks, net_of_loop};
use crate::findings::{self, ByCase, ByRound, gaps, wakeup};
use crate::noise::{self, NoiseVerdict};
use crate::pairing::Grouped;
use crate::ring::Case as Ring;
use crate::run::{End, Header, Run};
use crate::speed::with_shared_level;
use crate::summary::{CaseSummary, summaries_at_clocks, widths};
use crate::trial::loops::{ENTERED_CALLS, KERNEL_ENTRIES};
use crate::trial::overhead::BATCH_TICKS;
use crate::trial::{Sample, Trial};

pub use budget::{Against, Budget};
pub use signals::{Account, Signals};

/// The link that the others are set beside, and whose switch stands in the budget.
const REFERENCE: &str = "pipe";

/// One case and what came of it.
pub type Summary = Either<CaseSummary, findings::Summary>;

/// What one call, or one loop of a short sequence, costs above the empty loop. Signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// Name of the call or sequence.
    pub call: String,
    /// In nanoseconds: the median batch of a round less the median empty one, over rounds; of clean
    /// slices where there are enough.
    pub ns: Option<Estimate>,
    /// In ticks of the time-stamp counter.
    pub ticks: Option<Estimate>,
    /// A turn of the empty loop, which was taken off, in nanoseconds.
    pub empty_loop_ns: Option<Estimate>,
    /// Entries into the kernel per call, as counted by tracing; absent where nothing can be traced.
    pub kernel_entries: Option<f64>,
}

/// A ring of two by one link. What it costs stands in the summary of its case.
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

/// All that a run of `response` says. Computed on reading, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseRecord")]
pub struct Record {
    /// The first line of the run file.
    pub header: Header,
    /// The last line; absent for a run that was killed.
    pub end: Option<End>,
    /// Cases in the order of the plan.
    pub cases: Vec<Summary>,
    /// What calls in loops cost: system calls, installing a handler, a signal to oneself.
    pub loops: Vec<LoopCost>,
    /// The memorandum's readings; absent where no signal was measured.
    pub signals: Option<Signals>,
    /// Rings of two by every link.
    pub links: Vec<LinkCost>,
    /// What interrupts a busy loop.
    pub gaps: Vec<gaps::Found>,
    /// How late a sleeper is woken.
    pub wakeups: Vec<wakeup::Found>,
    /// What a response should take by its parts, and what it took; absent without wake-ups.
    pub budget: Option<Budget>,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter, and without a trial.
    pub ns_per_tick: Option<f64>,
    /// Widest relative half-width of the intervals; absent as long as a case has none.
    pub worst_precision: Option<f64>,
    /// The verdict on the machine's noise.
    pub noise: NoiseVerdict,
    /// Who else ran on the measured CPUs; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company: Option<CompetingTasks>,
    /// What could not be measured or read.
    pub warnings: Vec<String>,
}

/// The verdict on the noise of a run, by its rings and its trials as far as it has them.
pub(crate) fn noise_of(grouped: &Grouped, by_case: &ByCase) -> NoiseVerdict {
    let plan = grouped.plan;
    match plan.experiment.takes() {
        Takes::Rings => noise::judge(grouped),
        Takes::Trials => findings::judge(by_case),
        Takes::Both => {
            let of_rings = plan.rings().next().map(|_| ("rings", noise::judge(grouped)));
            let of_trials = plan.trials().next().map(|_| ("trials", findings::judge(by_case)));
            NoiseVerdict::together(of_rings.into_iter().chain(of_trials))
        }
    }
}

impl Record {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let plan = &*with_shared_level(&run.header.plan, &run.samples);
        let grouped = &Grouped::new(plan, rings(&run.samples));
        let by_case = &ByCase::new(plan, trials(&run.samples));
        let target = &run.header.build.target;
        let of_rings = summaries_at_clocks(plan, grouped, &run.failures, target);
        let widths = widths(&of_rings).chain(findings::widths(by_case, &run.failures));
        let worst_precision = widest(widths);
        let links = links(grouped, &of_rings);
        let mut of_rings = of_rings.into_iter();
        let mut of_trials = findings::summaries(run, by_case).into_iter();
        let cases = plan.cases.iter().filter_map(|case| match case {
            Either::Ring(_) => of_rings.next().map(Summary::Ring),
            Either::Trial(_) => of_trials.next().map(Summary::Trial),
        });
        let (gaps, ticks): (Vec<_>, Vec<ByRound>) = gaps::find(by_case).into_iter().unzip();
        // Of the first case in which the tick was found.
        let tick_ns = ticks.into_iter().find(|ticks| ticks.of_all().next().is_some());
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases: cases.collect(),
            loops: loops(by_case),
            signals: signals::find(by_case, grouped, run.unfinished().is_none()),
            links,
            gaps,
            wakeups: wakeup::find(by_case),
            budget: budget::find(by_case, grouped, tick_ns.unwrap_or_default()),
            ns_per_tick: findings::ns_per_tick(&run.samples),
            worst_precision,
            noise: noise_of(grouped, by_case),
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }

    /// The summary of a ring by its number in the plan.
    pub fn ring(&self, case: usize) -> Option<&CaseSummary> {
        self.cases.get(case)?.ring()
    }

    /// The summary of a trial by its number in the plan.
    pub fn trial(&self, case: usize) -> Option<&findings::Summary> {
        self.cases.get(case)?.trial()
    }
}

/// What every loop costs. Full and empty batches are of the same slices.
fn loops(by_case: &ByCase) -> Vec<LoopCost> {
    let cost = |(case, trial): (usize, &Trial)| {
        let Trial::Loop { call } = trial else { return None };
        let estimate =
            |of: fn(&Sample) -> Option<f64>| by_case.estimate_of_slices(case, BATCH_TICKS, of);
        let calls = by_case.sum(case, ENTERED_CALLS).filter(|calls| *calls > 0);
        let entries = calls.zip(by_case.sum(case, KERNEL_ENTRIES));
        Some(LoopCost {
            case,
            call: call.clone(),
            ns: estimate(|sample| Some(net_of_loop(sample)? * sample.ns_per_tick()?)),
            ticks: estimate(net_of_loop),
            empty_loop_ns: estimate(|sample| Some(empty_ticks(sample)? * sample.ns_per_tick()?)),
            kernel_entries: entries.map(|(calls, entries)| entries as f64 / calls as f64),
        })
    };
    by_case.trials().filter_map(cost).collect()
}

/// The case of the calls of that name in a loop.
fn loop_of(by_case: &ByCase, name: &str) -> Option<usize> {
    by_case.find(|trial| matches!(trial, Trial::Loop { call } if call == name))
}

/// Nanoseconds per call or loop of a case, by round; empty without one.
fn loop_ns(by_case: &ByCase, case: Option<usize>, ticks: fn(&Sample) -> Option<f64>) -> ByRound {
    let ns = |sample: &Sample| Some(ticks(sample)? * sample.ns_per_tick()?);
    case.map(|case| by_case.by_round(case, BATCH_TICKS, ns)).unwrap_or_default()
}

/// What a switch costs by each link, beside the pipe's.
fn links(grouped: &Grouped, cases: &[CaseSummary]) -> Vec<LinkCost> {
    let cost = |((index, case), of): ((usize, &Ring), &CaseSummary)| {
        let by_pipe = Ring { link: REFERENCE.to_string(), ..case.clone() };
        let pipe = grouped.plan.find_ring(|other| *other == by_pipe);
        let pipe = pipe.filter(|pipe| *pipe != index && !of.does_not_switch);
        let above_pipe_ns =
            pipe.and_then(|pipe| grouped.difference(index, pipe, grouped.rank(index)));
        let is_compared = case.members == 2 && case.work.is_none();
        is_compared.then(|| LinkCost { case: index, link: case.link.clone(), above_pipe_ns })
    };
    grouped.plan.rings().zip(cases).filter_map(cost).collect()
}
