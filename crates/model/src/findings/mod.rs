//! What a run of trials says: samples by case, with their clean slices, and one file an experiment
//! that reads them.

mod by_case;
pub mod gaps;
pub mod interference;
pub mod malloc;
pub mod overhead;
pub mod primes;
pub mod sampling;
pub mod wakeup;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{self, trials};
use crate::competing::CompetingTasks;
use crate::estimate::{Estimate, widest};
use crate::experiment::Experiment;
use crate::noise::{self, NoiseVerdict};
use crate::run::{End, Header, Run};
use crate::speed::CleanCounts;
use crate::summary::failure_of;
use crate::trial::{Case, Environment, Quantity, Tally, Trial};
use stats::{Elasticity, median};

pub(crate) use by_case::{ByCase, clock_of, figure_ns, lacks_clean, widths};
pub use by_case::{ByRound, headlines_ns};

/// One case and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The case.
    pub case: Case,
    /// Rounds in which it was measured.
    pub rounds: u32,
    /// Every tally of all rounds together, of all slices.
    pub quantities: BTreeMap<String, Quantity>,
    /// Every count, summed over all rounds.
    pub counts: BTreeMap<String, i64>,
    /// The core's clock that the figure which stands for it is at, in GHz: of a call in a row, of a
    /// loop, of primes by threadclock. Absent where that was not seen at full speed, of what waits,
    /// and where a multiplication's cycles are not known (on x86-64 they are).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// That figure in cycles of that clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Estimate>,
    /// By which power it goes with the period of the core's clock: 1 where the core bounds it, 0
    /// where memory or a device does. Absent where the run did not see several clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// Why the case was not measured (any further).
    pub failure: Option<String>,
}

/// What the experiment is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Findings {
    /// `clock overhead`.
    Overhead(overhead::Found),
    /// `clock primes`.
    Primes(primes::Found),
    /// `clock malloc`.
    Malloc(malloc::Found),
    /// `clock sampling`.
    Sampling(Vec<sampling::Point>),
    /// `cost --interference`.
    Interference(Box<interference::Found>),
}

/// All that a run of trials says. Computed on reading, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialsRecord")]
pub struct Record {
    /// The first line of the run file.
    pub header: Header,
    /// The last line; absent for a run that was killed.
    pub end: Option<End>,
    /// Cases in the order of the plan.
    pub cases: Vec<Summary>,
    /// What the experiment is about.
    pub findings: Findings,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter.
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

impl Record {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let plan = &run.header.plan;
        let by_case = &ByCase::new(plan, trials(&run.samples));
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases: summaries(run, by_case),
            findings: match plan.experiment {
                Experiment::ClockPrimes => Findings::Primes(primes::find(by_case)),
                Experiment::ClockMalloc => Findings::Malloc(malloc::find(by_case)),
                Experiment::ClockSampling => Findings::Sampling(sampling::find(by_case)),
                Experiment::Interference => {
                    Findings::Interference(Box::new(interference::find(by_case)))
                }
                // The others have no findings of trials alone.
                _ => Findings::Overhead(overhead::find(by_case)),
            },
            ns_per_tick: ns_per_tick(&run.samples),
            worst_precision: widest(widths(by_case, &run.failures)),
            noise: judge(by_case),
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }
}

/// Summaries of all trials of a run, in the order of its plan.
pub(crate) fn summaries(run: &Run, by_case: &ByCase) -> Vec<Summary> {
    let summary = |(number, case): (usize, &Case)| {
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for sample in by_case.of(number) {
            for (name, tally) in sample.all_tallies() {
                tallies.entry(name).or_default().merge(&tally);
            }
            for (name, count) in &sample.counts {
                let sum = counts.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        let figures = by_case::headline_ns(by_case, number);
        let clock = clock_of(by_case.plan, number, &figures);
        let clock_ghz = clock.and_then(|of| of.ghz(&run.header.build.target));
        let quantity = |(name, tally): (String, Tally)| Some((name, Quantity::of(&tally)?));
        Summary {
            case: case.clone(),
            rounds: by_case.of(number).len() as u32,
            quantities: tallies.into_iter().filter_map(quantity).collect(),
            counts,
            clock_ghz,
            cycles: clock_ghz.and_then(|ghz| figures.estimate(by_case.plan)?.cycles(ghz)),
            elasticity: clock.and_then(|of| of.elasticity),
            failure: failure_of(&run.failures, number),
        }
    };
    by_case.plan.trials().map(summary).collect()
}

pub(crate) fn ns_per_tick(samples: &[case::Sample]) -> Option<f64> {
    median(&trials(samples).filter_map(|sample| sample.ns_per_tick()).collect::<Vec<f64>>())
}

/// The verdict on the noise: by the share of clean slices where there are slices, else by the
/// scatter of the cases' medians from round to round and by the samples that lost time to the
/// hypervisor. Cases that are disturbed on purpose say nothing of the machine.
pub(crate) fn judge(by_case: &ByCase) -> NoiseVerdict {
    let is_left_alone = |(_, trial): &(usize, &Trial)| !matches!(trial, Trial::Execution(of) if of.environment == Environment::Disturbed);
    let left_alone = || by_case.trials().filter(is_left_alone);
    let spread = |(case, trial): (usize, &Trial)| {
        let figure = by_case::headline(trial).figure;
        let figures = by_case.of(case).iter().filter_map(|sample| figure(sample));
        noise::spread(&figures.collect::<Vec<f64>>())
    };
    let spreads: Vec<f64> = left_alone().filter_map(spread).collect();
    let samples = || left_alone().flat_map(|(case, _)| by_case.of(case));
    let stolen = samples().filter(|sample| sample.steal_ns.is_some_and(|ns| ns > 0)).count();
    let all = samples().count();
    let share = stolen as f64 / (all as f64).max(1.0);
    let counts = left_alone().map(|(case, _)| by_case.counts(case));
    let counts = counts.fold(CleanCounts::default(), CleanCounts::plus);
    let reasons = noise::in_words(&[stolen], all);
    noise::verdict(median(&spreads), share, reasons, counts, &by_case.levels)
}
