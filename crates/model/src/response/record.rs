//! What a run says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::{self, Budget};
use super::links::{self, LinkCost};
use super::loops::{Figures, LoopCost};
use super::signals::{self, Signals};
use crate::case::Case;
use crate::company::Company;
use crate::experiment::Takes;
use crate::levels::with_shared_level;
use crate::looks::worst_precision;
use crate::noise::{self, NoiseVerdict};
use crate::pairing::Grouped;
use crate::run::{End, Header, Run};
use crate::sample::{rings, trials};
use crate::summary::{CaseSummary, summaries};
use crate::trial::{self, ByCase, ByRound, gaps, wakeup};

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
    pub company: Option<Company>,
    /// What could not be measured or read.
    pub warnings: Vec<String>,
}

/// What gaps say; and the tick by round, of the first case in which it was found.
fn gaps_of(by_case: &ByCase) -> (Vec<gaps::Found>, ByRound) {
    let (found, ticks): (Vec<_>, Vec<_>) = gaps::find(by_case).into_iter().unzip();
    let tick = ticks.into_iter().find(|ticks| !ticks.is_empty()).unwrap_or_default();
    (found, tick.into_iter().collect())
}

/// The verdict on the noise of a run, by its rings and its trials as far as it has them.
pub(crate) fn noise_of(run: &Run, grouped: &Grouped) -> NoiseVerdict {
    let plan = &run.header.plan;
    let of_rings = || noise::judge(plan, rings(&run.samples), grouped);
    match plan.experiment.takes() {
        Takes::Rings => of_rings(),
        Takes::Trials => trial::judge(run),
        Takes::Both => {
            let of_rings = plan.rings().next().map(|_| ("rings", of_rings()));
            let of_trials = plan.trials().next().map(|_| ("trials", trial::judge(run)));
            NoiseVerdict::together(of_rings.into_iter().chain(of_trials))
        }
    }
}

impl Record {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let plan = &*with_shared_level(&run.header.plan, &run.samples);
        let grouped = Grouped::new(plan, rings(&run.samples));
        let by_case = ByCase::new(plan, trials(&run.samples));
        let figures = Figures { plan, by_case: &by_case };
        let mut rings = summaries(plan, &grouped, &run.failures).into_iter();
        let mut trials = trial::summaries(run).into_iter();
        let next = |case: &Case| match case {
            Case::Ring(_) => rings.next().map(|summary| Summary::Ring(Box::new(summary))),
            Case::Trial(_) => trials.next().map(|summary| Summary::Trial(Box::new(summary))),
        };
        let (gaps, tick_ns) = gaps_of(&by_case);
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases: plan.cases.iter().filter_map(next).collect(),
            loops: figures.costs(),
            signals: signals::find(figures, &grouped),
            links: links::find(plan, &grouped),
            gaps,
            wakeups: wakeup::find(&by_case),
            budget: budget::find(figures, &grouped, tick_ns),
            ns_per_tick: trial::ns_per_tick(&run.samples),
            worst_precision: worst_precision(&run.header.plan, &run.samples, &run.failures),
            noise: noise_of(run, &grouped),
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }

    /// The summary of a ring by its number in the plan.
    pub fn ring(&self, case: usize) -> Option<&CaseSummary> {
        self.cases.get(case)?.ring()
    }
}
