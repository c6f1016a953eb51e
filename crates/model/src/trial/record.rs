//! What a run of trials says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{Case, Trial};
use super::figures::ByCase;
use super::tally::{Quantity, Tally};
use super::{headline, interference, malloc, overhead, primes, sampling};
use crate::company::Company;
use crate::experiment::Experiment;
use crate::interference::Environment;
use crate::levels::with_shared_level;
use crate::looks::worst_precision;
use crate::noise::{self, NoiseVerdict};
use crate::run::{End, Header, Run};
use crate::sample::{Sample, trials};
use crate::speed::CleanCounts;
use stats::{mad_sigma, median};

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
    pub company: Option<Company>,
    /// What could not be measured or read.
    pub warnings: Vec<String>,
}

impl Record {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let plan = &run.header.plan;
        let by_case = ByCase::new(plan, trials(&run.samples));
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases: summaries(run),
            findings: findings(&by_case, plan.experiment, plan.cases.len()),
            ns_per_tick: ns_per_tick(&run.samples),
            worst_precision: worst_precision(plan, &run.samples, &run.failures),
            noise: judge(run),
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }
}

fn findings(by_case: &ByCase, experiment: Experiment, cases: usize) -> Findings {
    match experiment {
        Experiment::ClockPrimes => Findings::Primes(primes::find(by_case, cases)),
        Experiment::ClockMalloc => Findings::Malloc(malloc::find(by_case, cases)),
        Experiment::ClockSampling => Findings::Sampling(sampling::find(by_case, cases)),
        Experiment::Interference => {
            Findings::Interference(Box::new(interference::find(by_case, cases)))
        }
        // No trials are in the plans of the last three.
        Experiment::ClockOverhead | Experiment::Ring | Experiment::Cost | Experiment::Response => {
            Findings::Overhead(overhead::find(by_case, cases))
        }
    }
}

/// Summaries of all trials of a run, in the order of its plan.
pub(crate) fn summaries(run: &Run) -> Vec<Summary> {
    let plan = &run.header.plan;
    let by_case = ByCase::new(plan, trials(&run.samples));
    plan.trials().map(|(number, case)| summary(run, &by_case, number, case)).collect()
}

fn summary(run: &Run, by_case: &ByCase, number: usize, case: &Case) -> Summary {
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
    let figures = |(name, tally): (String, Tally)| Some((name, Quantity::of(&tally)?));
    Summary {
        case: case.clone(),
        rounds: by_case.of(number).len() as u32,
        quantities: tallies.into_iter().filter_map(figures).collect(),
        counts,
        failure: run.failures.iter().rev().find(|f| f.case == number).map(|f| f.message.clone()),
    }
}

pub(crate) fn ns_per_tick(samples: &[Sample]) -> Option<f64> {
    median(&trials(samples).filter_map(|sample| sample.ns_per_tick()).collect::<Vec<f64>>())
}

/// The verdict on the noise: by the share of clean slices where there are slices, else by the scatter of the
/// cases' medians from round to round and by the samples that lost time to the hypervisor. Cases that are disturbed on purpose say nothing of the
/// machine.
pub(crate) fn judge(run: &Run) -> NoiseVerdict {
    let plan = with_shared_level(&run.header.plan, &run.samples);
    let by_case = &ByCase::new(&plan, trials(&run.samples));
    let spread = |case: usize| {
        let medians: Vec<f64> =
            by_case.of(case).iter().filter_map(|s| headline::figure(by_case, case, s)).collect();
        Some(mad_sigma(&medians)? / median(&medians).filter(|middle| *middle != 0.0)?)
    };
    let is_left_alone = |case: &usize| match by_case.trial(*case) {
        Some(Trial::Execution(execution)) => execution.environment == Environment::Quiet,
        _ => true,
    };
    let left_alone: Vec<usize> = by_case.cases().filter(is_left_alone).collect();
    let spreads: Vec<f64> = left_alone.iter().filter_map(|case| spread(*case)).collect();
    let samples = || left_alone.iter().flat_map(|case| by_case.of(*case));
    let stolen = samples().filter(|sample| sample.steal_ns.is_some_and(|ns| ns > 0));
    let (stolen, all) = (stolen.count(), samples().count());
    let share = stolen as f64 / (all as f64).max(1.0);
    let words = format!("{stolen} of {all} samples lost time to the hypervisor (steal)");
    let words: Vec<String> = (stolen > 0).then_some(words).into_iter().collect();
    let slices = left_alone.iter().map(|case| by_case.shares(*case));
    let shares = slices.fold(CleanCounts::default(), CleanCounts::plus);
    noise::verdict(median(&spreads), share, words.clone()).by_clean_slices(
        shares,
        by_case.levels(),
        words,
    )
}
