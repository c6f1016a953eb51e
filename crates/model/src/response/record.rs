//! What a run says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::{self, Budget};
use super::links::{self, LinkCost};
use super::loops::{Figures, LoopCost};
use super::signals::{self, Signals};
use super::split::{Half, Split};
use super::{Case, Response};
use crate::company::Company;
use crate::noise::{self, NoiseVerdict};
use crate::pairing::Grouped;
use crate::record::{CaseSummary, summaries};
use crate::run::{End, Header, Run};
use crate::trial::{self, ByRound, Trials, gaps, wakeup};

/// One case and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ResponseSummary")]
pub enum Summary {
    /// A ring.
    Ring(Box<CaseSummary>),
    /// Something that was tried.
    Trial(Box<trial::Summary>),
}

impl Summary {
    /// Rounds in which it was measured.
    pub fn rounds(&self) -> u32 {
        match self {
            Self::Ring(summary) => summary.rounds,
            Self::Trial(summary) => summary.rounds,
        }
    }

    /// Why the case was not measured (any further).
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Ring(summary) => summary.failure.as_deref(),
            Self::Trial(summary) => summary.failure.as_deref(),
        }
    }

    /// The ring, if it is one.
    pub fn ring(&self) -> Option<&CaseSummary> {
        match self {
            Self::Ring(summary) => Some(summary),
            Self::Trial(_) => None,
        }
    }

    /// The trial, if it is one.
    pub fn trial(&self) -> Option<&trial::Summary> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(summary) => Some(summary),
        }
    }
}

/// All that a run says. Computed on reading, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseRecord")]
pub struct Record {
    /// The first line of the run file.
    pub header: Header<Response>,
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
    pub company: Option<Company>,
    /// What could not be measured or read.
    pub warnings: Vec<String>,
}

/// What gaps say, by their numbers in the whole plan; and the tick by round, of the first case in which
/// it was found.
fn gaps_of(trials: &Half<Trials>) -> (Vec<gaps::Found>, ByRound) {
    let (mut found, ticks): (Vec<_>, Vec<_>) =
        gaps::find(&trials.plan, &trials.samples).into_iter().unzip();
    found.iter_mut().for_each(|found| found.case = trials.numbers[found.case]);
    let tick = ticks.into_iter().find(|ticks| !ticks.is_empty()).unwrap_or_default();
    (found, tick.into_iter().collect())
}

/// What wake-ups say, by their numbers in the whole plan.
fn wakeups_of(trials: &Half<Trials>) -> Vec<wakeup::Found> {
    let mut found = wakeup::find(&trials.plan, &trials.samples);
    found.iter_mut().for_each(|found| found.case = trials.numbers[found.case]);
    found
}

/// The verdict on the noise, by both halves as far as they are there.
pub(crate) fn noise_of(split: &Split, trials: &Run<Trials>) -> NoiseVerdict {
    let rings = &split.rings;
    let grouped = Grouped::new(&rings.plan, &rings.samples);
    let judged = [
        ("rings", noise::judge(&rings.plan.cases, &rings.samples, &grouped)),
        ("trials", trial::judge(trials)),
    ];
    let has_any = [!rings.numbers.is_empty(), !split.trials.numbers.is_empty()];
    let judged = judged.into_iter().zip(has_any).filter(|(_, any)| *any).map(|(of, _)| of);
    NoiseVerdict::together(judged)
}

impl Record {
    /// The record of a run.
    pub fn of(run: &Run<Response>) -> Self {
        let plan = &run.header.plan;
        let split = Split::of(plan, &run.samples, &run.failures);
        let grouped = Grouped::new(&split.rings.plan, &split.rings.samples);
        let mut rings = summaries(&split.rings.plan, &grouped, &split.rings.failures).into_iter();
        let trials_run = split.trials.clone().into_run(&run.header);
        let mut trials = trial::summaries(&trials_run).into_iter();
        let next = |case: &Case| match case {
            Case::Ring(_) => rings.next().map(|summary| Summary::Ring(Box::new(summary))),
            Case::Trial(_) => trials.next().map(|summary| Summary::Trial(Box::new(summary))),
        };
        let (gaps, tick_ns) = gaps_of(&split.trials);
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases: plan.cases.iter().filter_map(next).collect(),
            loops: Figures::new(&split.trials).costs(),
            signals: signals::find(&split),
            links: links::find(&split.rings),
            gaps,
            wakeups: wakeups_of(&split.trials),
            budget: budget::find(&split, tick_ns),
            ns_per_tick: trial::ns_per_tick(&split.trials.samples),
            worst_precision: split.worst_precision(),
            noise: noise_of(&split, &trials_run),
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }

    /// The summary of a ring by its number in the plan.
    pub fn ring(&self, case: usize) -> Option<&CaseSummary> {
        self.cases.get(case)?.ring()
    }
}
