//! Figures that are taken within a round, each from one sample, and what they come to.

use std::collections::BTreeSet;

use super::Trials;
use super::case::Trial;
use super::sample::Sample;
use crate::estimate::Estimate;
use crate::plan::{MINIMUM_ROUNDS, Plan};
use crate::stats::OnePerRound;

/// All samples of a run by case, in the order of arrival.
pub(super) struct ByCase<'a> {
    plan: &'a Plan<Trials>,
    cases: Vec<Vec<&'a Sample>>,
}

impl<'a> ByCase<'a> {
    pub(super) fn new(plan: &'a Plan<Trials>, samples: &'a [Sample]) -> Self {
        let mut cases = vec![Vec::new(); plan.cases.len()];
        for sample in samples {
            if let Some(case) = cases.get_mut(sample.case) {
                case.push(sample);
            }
        }
        Self { plan, cases }
    }

    /// What is tried in a case.
    pub(super) fn trial(&self, case: usize) -> Option<&'a Trial> {
        self.plan.cases.get(case).map(|case| &case.trial)
    }

    /// Whether a case runs under a real-time policy.
    pub(super) fn is_realtime(&self, case: usize) -> bool {
        self.plan.cases.get(case).is_some_and(|case| case.policy.is_realtime())
    }

    /// The samples of a case.
    pub(super) fn of(&self, case: usize) -> &[&'a Sample] {
        self.cases.get(case).map_or(&[], Vec::as_slice)
    }

    /// The estimate over rounds of a figure of one case; rounds without it are passed over.
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

fn estimate(plan: &Plan<Trials>, figures: Vec<f64>) -> Option<Estimate> {
    let finite: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
    let confidence = plan.stopping.confidence;
    Estimate::over(&OnePerRound(finite), MINIMUM_ROUNDS, confidence, plan.seed)
}
