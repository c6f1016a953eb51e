//! What a run of trials says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{Case, Trial};
use super::figures::ByCase;
use super::sample::Sample;
use super::tally::Tally;
use super::{Trials, headline, interference, malloc, overhead, primes, sampling};
use crate::company::Company;
use crate::instrument::Instrument;
use crate::interference::Environment;
use crate::noise::{self, NoiseVerdict};
use crate::run::{End, Header, Run};
use crate::speed::CleanCounts;
use stats::{mad_sigma, median};

/// A tally in figures. The unit is in the name that it stands under.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of all values; absent below two.
    pub sd: Option<f64>,
    /// Least value.
    pub min: i64,
    /// Median: a value that was seen.
    pub p50: i64,
    /// The value that 99 % do not exceed.
    pub p99: i64,
    /// Greatest value.
    pub max: i64,
}

impl Quantity {
    /// The figures of a tally; absent without values.
    pub fn of(tally: &Tally) -> Option<Self> {
        Some(Self {
            count: tally.count(),
            mean: tally.mean()?,
            sd: tally.sd(),
            min: tally.min()?,
            p50: tally.quantile(0.5)?,
            p99: tally.quantile(0.99)?,
            max: tally.max()?,
        })
    }
}

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

/// All that a run says. Computed on reading, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The first line of the run file.
    pub header: Header<Trials>,
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
    pub fn of(run: &Run<Trials>) -> Self {
        let plan = &run.header.plan;
        let by_case = ByCase::new(plan, &run.samples);
        let cases = plan.cases.len();
        let findings = match plan.experiment.as_str() {
            primes::NAME => Findings::Primes(primes::find(&by_case, cases)),
            malloc::NAME => Findings::Malloc(malloc::find(&by_case, cases)),
            sampling::NAME => Findings::Sampling(sampling::find(&by_case, cases)),
            interference::NAME => {
                Findings::Interference(Box::new(interference::find(&by_case, cases)))
            }
            _ => Findings::Overhead(overhead::find(&by_case, cases)),
        };
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases: summaries(run),
            findings,
            ns_per_tick: ns_per_tick(&run.samples),
            worst_precision: Trials::worst_precision(plan, &run.samples, &run.failures),
            noise: judge(run),
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }
}

/// Summaries of all cases of a run, in the order of its plan.
pub(crate) fn summaries(run: &Run<Trials>) -> Vec<Summary> {
    let by_case = ByCase::new(&run.header.plan, &run.samples);
    (0..run.header.plan.cases.len()).map(|case| summary(run, &by_case, case)).collect()
}

fn summary(run: &Run<Trials>, by_case: &ByCase, case: usize) -> Summary {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for sample in by_case.of(case) {
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
        case: run.header.plan.cases[case].clone(),
        rounds: by_case.of(case).len() as u32,
        quantities: tallies.into_iter().filter_map(figures).collect(),
        counts,
        failure: run.failures.iter().rev().find(|f| f.case == case).map(|f| f.message.clone()),
    }
}

pub(crate) fn ns_per_tick(samples: &[Sample]) -> Option<f64> {
    median(&samples.iter().filter_map(Sample::ns_per_tick).collect::<Vec<f64>>())
}

/// The verdict on the noise: by the share of clean slices where there are slices, else by the scatter of the
/// cases' medians from round to round and by the samples that lost time to the hypervisor. Cases that are disturbed on purpose say nothing of the
/// machine.
pub(crate) fn judge(run: &Run<Trials>) -> NoiseVerdict {
    let by_case = &ByCase::new(&run.header.plan, &run.samples);
    let spread = |case: usize| {
        let medians: Vec<f64> =
            by_case.of(case).iter().filter_map(|s| headline::figure(by_case, case, s)).collect();
        Some(mad_sigma(&medians)? / median(&medians).filter(|middle| *middle != 0.0)?)
    };
    let is_left_alone = |case: &usize| match by_case.trial(*case) {
        Some(Trial::Execution(execution)) => execution.environment == Environment::Quiet,
        _ => true,
    };
    let left_alone: Vec<usize> = (0..run.header.plan.cases.len()).filter(is_left_alone).collect();
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
