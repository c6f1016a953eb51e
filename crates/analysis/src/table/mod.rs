//! All samples of a run by case and round, with their clean slices: what every figure is taken from.
//!
//! The level of an unshared core is that of all of them together, so that rings and trials of one
//! CPU are judged by the same.

mod by_round;
mod hops;
mod rings;
mod trials;

use std::collections::BTreeMap;

use crate::speed::{SpeedLevels, case_clocks, leader_cpus, levels_of};
use rundata::case::{self, Sample};
use rundata::plan::Plan;
use rundata::{ring, trial};

use rings::{OfRing, Solo};
use trials::OfTrial;

pub use by_round::ByRound;
pub(crate) use hops::{Scatter, SumOfHops};

/// A figure by the number of its round.
pub type Figures = BTreeMap<u32, f64>;

/// The samples of a run, and what is known of each case.
#[derive(Debug)]
pub struct Table<'a> {
    pub(crate) plan: &'a Plan,
    /// By the CPUs that quanta ran on.
    levels: SpeedLevels,
    /// By the number of the case, as are trials.
    rings: Vec<OfRing<'a>>,
    trials: Vec<OfTrial<'a>>,
}

impl<'a> Table<'a> {
    /// That of samples of rings and trials, whatever their order.
    pub fn new(plan: &'a Plan, samples: &'a [Sample]) -> Self {
        Self::of(plan, case::rings(samples), case::trials(samples))
    }

    /// The same where they are apart. Samples of a ring without a hop or without time say nothing
    /// and are passed over.
    pub fn of(
        plan: &'a Plan,
        rings: impl IntoIterator<Item = &'a ring::RingSample>,
        trials: impl IntoIterator<Item = &'a trial::TrialSample>,
    ) -> Self {
        let is_sound = |of: &&ring::RingSample| of.hops > 0 && of.elapsed_ns > 0;
        let rings: Vec<_> = rings.into_iter().filter(is_sound).collect();
        let trials: Vec<_> = trials.into_iter().collect();
        let mut levels = levels_of(plan, rings.iter().copied(), trials.iter().copied());
        let rings = rings_of(plan, &rings, &mut levels);
        let trials = trials_of(plan, &trials, &levels);
        Self { plan, levels, rings, trials }
    }

    /// The level of an unshared core, by the CPUs that quanta ran on.
    pub fn levels(&self) -> &SpeedLevels {
        &self.levels
    }
}

fn rings_of<'a>(
    plan: &Plan,
    samples: &[&'a ring::RingSample],
    levels: &mut SpeedLevels,
) -> Vec<OfRing<'a>> {
    let mut cases = vec![BTreeMap::<u32, rings::Batch>::new(); plan.cases.len()];
    for sample in samples {
        let Some(rounds) = cases.get_mut(sample.case) else { continue };
        rounds.entry(sample.round).or_default().push(sample);
    }
    let clocks = case_clocks(plan, &cases, levels);
    let of = |(number, (rounds, clocks))| {
        let mut ring = OfRing { rounds, clocks, solo: Solo::of(plan, number), ..OfRing::default() };
        if let Some(case) = plan.ring(number) {
            let level = levels.get(&leader_cpus(case));
            let batches = ring.rounds.values();
            batches.for_each(|batch| ring.slices.add(case, batch, level, &ring.clocks));
        }
        ring
    };
    cases.into_iter().zip(clocks).enumerate().map(of).collect()
}

fn trials_of<'a>(
    plan: &Plan,
    samples: &[&'a trial::TrialSample],
    levels: &SpeedLevels,
) -> Vec<OfTrial<'a>> {
    let mut cases = vec![Vec::new(); plan.cases.len()];
    for sample in samples.iter().filter(|sample| plan.trial(sample.case).is_some()) {
        cases[sample.case].push(*sample);
    }
    let of = |(number, samples): (usize, Vec<&'a trial::TrialSample>)| {
        let level = plan.trial(number).and_then(|case| levels.get([case.cpu].as_slice()));
        OfTrial::of(&samples, level)
    };
    cases.into_iter().enumerate().map(of).collect()
}
