//! Findings of a run of trials beyond its measures: a file for each experiment.

pub mod gaps;
mod headline;
pub mod interference;
pub mod load;
pub mod malloc;
pub mod overhead;
pub mod primes;
pub mod sampling;
pub mod sensitivity;
pub mod trace;
pub mod wakeup;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::summary::failure_of;
use crate::table::Table;
use rundata::case::{self, trials};
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::run::Run;
use rundata::trial::{Tally, TallySummary, TrialCase};
use stats::{Elasticity, median};

pub(crate) use headline::{clock_of, figure_ns, headline_ns, lacks_clean, widths};

/// The summary of one trial case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Summary")]
pub struct TrialSummary {
    /// The case.
    pub case: TrialCase,
    /// Rounds in which it was measured.
    pub rounds: u32,
    /// Each tally over all rounds and slices.
    pub quantities: BTreeMap<String, TallySummary>,
    /// Estimates of its measures, over rounds; each name ends in its unit (docs/record-format.md).
    #[serde(default)]
    pub measures: BTreeMap<String, Estimate>,
    /// Every count, summed over all rounds.
    pub counts: BTreeMap<String, i64>,
    /// The core's clock of the headline, in GHz: of a call in a row, of a loop, of primes by
    /// threadclock. Absent where that was not seen at full speed, for a trial that waits, and where a
    /// multiplication's cycles are not known (on x86-64 they are).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// The headline in cycles of that clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Estimate>,
    /// The elasticity of the headline: 1 where the core bounds it, 0 where memory or a device does.
    /// Absent where the run did not see several clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// The reason why the case was not measured, or not any further.
    pub failure: Option<String>,
}

/// Findings of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Findings")]
pub enum ExperimentFindings {
    /// `clock overhead`.
    Overhead(overhead::OverheadFindings),
    /// `classic experiment primes`.
    Primes(primes::PrimesFindings),
    /// `classic experiment malloc`.
    Malloc(malloc::MallocFindings),
    /// `classic experiment sampling`.
    Sampling(Vec<sampling::SamplingPoint>),
    /// `classic experiment interference`.
    Interference(Box<interference::InterferenceFindings>),
    /// `sensitivity`.
    Sensitivity(Box<sensitivity::SensitivityFindings>),
    /// `trace`.
    Trace(Box<trace::TraceFindings>),
}

impl ExperimentFindings {
    /// Returns the findings; absent for an experiment that has no more than its measures.
    pub(crate) fn from_table(table: &Table, competing: Option<&CompetingTasks>) -> Option<Self> {
        Some(match table.plan.experiment {
            Experiment::ClockPrimes => Self::Primes(primes::find(table)),
            Experiment::ClockMalloc => Self::Malloc(malloc::find(table)),
            Experiment::ClockSampling => Self::Sampling(sampling::find(table)),
            Experiment::Interference => Self::Interference(Box::new(interference::find(table))),
            Experiment::Sensitivity => {
                Self::Sensitivity(Box::new(sensitivity::find(table, competing)?))
            }
            Experiment::Trace => {
                Self::Trace(Box::new(trace::TraceParts::from_table(table)?.findings()))
            }
            Experiment::ClockOverhead => Self::Overhead(overhead::find(table)),
            _ => return None,
        })
    }
}

/// Returns the summaries of all trials of a run, in the order of its plan.
pub(crate) fn summaries(run: &Run, table: &Table) -> Vec<TrialSummary> {
    table.plan.trials().map(|(number, case)| summary(run, table, number, case)).collect()
}

fn summary(run: &Run, table: &Table, number: usize, case: &TrialCase) -> TrialSummary {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for sample in table.trial_samples(number) {
        for (name, tally) in sample.all_tallies() {
            tallies.entry(name).or_default().merge(&tally);
        }
        for (name, count) in &sample.counts {
            let sum = counts.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let mut quantities = BTreeMap::new();
    for (name, tally) in tallies {
        if let Some(quantity) = TallySummary::from_tally(&tally) {
            quantities.insert(name, quantity);
        }
    }
    let figures = headline_ns(table, number);
    let clock = clock_of(table.plan, number, &figures);
    let clock_ghz = clock.and_then(|clock| clock.ghz(&run.header.build.target));
    TrialSummary {
        case: case.clone(),
        rounds: table.trial_samples(number).len() as u32,
        quantities,
        measures: headline::measures(table, number),
        counts,
        clock_ghz,
        cycles: clock_ghz.and_then(|ghz| figures.estimate(table.plan)?.cycles(ghz)),
        elasticity: clock.and_then(|clock| clock.elasticity),
        failure: failure_of(&run.failures, number),
    }
}

/// Returns the median nanoseconds of a tick over the trials that know it.
pub(crate) fn ns_per_tick(samples: &[case::Sample]) -> Option<f64> {
    median(&trials(samples).filter_map(|sample| sample.ns_per_tick()).collect::<Vec<f64>>())
}
