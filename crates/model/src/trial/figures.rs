//! Figures that are taken within a round, each from one sample, and what they come to.

use std::collections::{BTreeMap, BTreeSet};

use super::by_round::ByRound;
use super::case::Trial;
use super::clean::{OfCase, clean_by_case};
use super::sample::Sample;
use crate::estimate::Estimate;
use crate::plan::{MINIMUM_ROUNDS, Plan};
use crate::speed::{CaseSlices, CleanCounts, Level};

/// All samples of a run's trials by case, in the order of arrival, with their clean slices.
pub(crate) struct ByCase<'a> {
    plan: &'a Plan,
    cases: Vec<Vec<&'a Sample>>,
    levels: BTreeMap<Vec<u32>, Level>,
    clean: Vec<OfCase>,
}

impl<'a> ByCase<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        samples: impl IntoIterator<Item = &'a Sample, IntoIter: Clone>,
    ) -> Self {
        let samples = samples.into_iter();
        let mut cases = vec![Vec::new(); plan.cases.len()];
        for sample in samples.clone() {
            if let Some(case) = cases.get_mut(sample.case) {
                case.push(sample);
            }
        }
        let (levels, clean) = clean_by_case(plan, samples);
        Self { plan, cases, levels, clean }
    }

    /// The numbers of all trials.
    pub(super) fn cases(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.plan.trials().map(|(case, _)| case)
    }

    /// What is tried in a case.
    pub(super) fn trial(&self, case: usize) -> Option<&'a Trial> {
        self.plan.trial(case).map(|case| &case.trial)
    }

    /// Whether a case runs under a real-time policy.
    pub(super) fn is_realtime(&self, case: usize) -> bool {
        self.plan.trial(case).is_some_and(|case| case.policy.is_realtime())
    }

    /// The samples of a case.
    pub(crate) fn of(&self, case: usize) -> &[&'a Sample] {
        self.cases.get(case).map_or(&[], Vec::as_slice)
    }

    /// The level of an unshared core, by the CPU that quanta ran on.
    pub(super) fn levels(&self) -> &BTreeMap<Vec<u32>, Level> {
        &self.levels
    }

    /// Clean slices of a case, and those that were judged.
    pub(super) fn shares(&self, case: usize) -> CleanCounts {
        self.clean.get(case).map_or_else(CleanCounts::default, OfCase::shares)
    }

    /// Whether a case was judged by the slices of that tally and has too few clean ones.
    pub(super) fn lacks_clean(&self, case: usize, tally: &str) -> bool {
        self.judged(case, tally).is_some_and(|slices| !slices.has_full_speed())
    }

    /// The slices of a tally, where the quanta tell which are clean.
    fn judged(&self, case: usize, tally: &str) -> Option<&CaseSlices> {
        self.clean.get(case)?.slices(tally).filter(|slices| slices.is_judged())
    }

    /// A figure of one case that is of the outcomes of `tally`, by round: of clean slices where there are
    /// enough. Rounds without it are passed over.
    pub(crate) fn by_round(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> ByRound {
        let figure = |sample: &Sample| Some((sample.round, of(sample)?));
        let all = self.of(case).iter().filter_map(|sample| figure(sample));
        let Some(slices) = self.judged(case, tally) else { return all.collect() };
        let clean = self.clean.get(case).filter(|_| slices.has_full_speed());
        ByRound::judged(all, clean.map(|of| of.samples().iter().filter_map(figure)))
    }

    /// The estimate over rounds of such a figure.
    pub(super) fn estimate_of_slices(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Estimate> {
        self.by_round(case, tally, of).estimate(self.plan)
    }

    /// The estimate over rounds of a figure of one case, of all slices; rounds without it are passed over.
    pub(super) fn estimate(
        &self,
        case: usize,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Estimate> {
        estimate(self.plan, self.of(case).iter().filter_map(|sample| of(sample)).collect())
    }

    /// The estimate over rounds of a figure of several cases together; `of` is given their samples
    /// of one round. Only rounds count in which each of them was measured.
    pub(super) fn estimate_together(
        &self,
        cases: &[usize],
        of: impl Fn(&[&Sample]) -> Option<f64>,
    ) -> Option<Estimate> {
        let rounds: BTreeSet<u32> =
            cases.iter().flat_map(|case| self.of(*case)).map(|sample| sample.round).collect();
        let together = |round: u32| -> Option<Vec<&Sample>> {
            let in_round = |case: &usize| self.of(*case).iter().copied().find(|s| s.round == round);
            cases.iter().map(in_round).collect()
        };
        let all = rounds.into_iter().filter_map(together);
        estimate(self.plan, all.filter_map(|all| of(&all)).collect())
    }
}

fn estimate(plan: &Plan, figures: Vec<f64>) -> Option<Estimate> {
    let finite: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
    let confidence = plan.stopping.confidence;
    Estimate::over(&finite, MINIMUM_ROUNDS, confidence, plan.seed)
}
