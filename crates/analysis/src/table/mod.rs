//! The samples of a run by case and round, with their clean slices: every figure is computed from
//! these.
//!
//! Example of a hop: a case was measured in 12 rounds of 20 slices, and in 10 rounds 8 slices are
//! clean, as [`crate::speed`] tells.
//!
//! - *Hop*: the median of all 80 clean slices, 4,010 ns. Slices of a round are not independent, so
//!   the error is the scatter of this median over resamples of whole rounds.
//! - *Switch*: 4,010 ns less the hop of the solo ring, 1,005 ns, over 1.0 switches a hop: 3,005 ns.
//! - *Triples* (`cost`): a worker times its members' solos, the ring and the solos again on the same
//!   memory. The solos are subtracted within the worker, and each worker counts once.
//! - *Pieces*: where a hop is longer than a slice, the clean parts of the walk are compared with
//!   those of the solos, and the differences are added up.
//! - With 1 to 7 such rounds the scatter between rounds is not shown by the run: one of 1 % (2 % for
//!   triples) is assumed beside. With fewer than 30 clean slices the figure is of all slices, as the
//!   core was.
//!
//! Rings and trials of one CPU share its level of an unshared core, which is that of all samples.

mod by_round;
mod hops;
mod rings;
mod trials;

use std::collections::BTreeMap;

use crate::speed::{SpeedLevels, case_clocks, leader_cpus, levels_of};
use rundata::case::{self, Sample};
use rundata::plan::Plan;
use rundata::{ring, trial};

use rings::{RingSamples, SoloReference};
use trials::TrialSamples;

pub use by_round::ByRound;
pub(crate) use hops::{HopSum, LaunchScatter};

/// A figure by the number of its round.
pub type Figures = BTreeMap<u32, f64>;

/// The samples of a run by case.
#[derive(Debug)]
pub struct Table<'a> {
    pub(crate) plan: &'a Plan,
    /// Levels by the CPUs that quanta ran on.
    levels: SpeedLevels,
    /// Rings by the number of the case; empty ones for trials.
    rings: Vec<RingSamples<'a>>,
    /// Trials by the number of the case; empty ones for rings.
    trials: Vec<TrialSamples<'a>>,
}

impl<'a> Table<'a> {
    /// Builds the table from samples of rings and trials in any order.
    pub fn new(plan: &'a Plan, samples: &'a [Sample]) -> Self {
        Self::from_samples(plan, case::rings(samples), case::trials(samples))
    }

    /// Builds the table from samples of rings and samples of trials. Samples of a ring without a hop
    /// or without time are ignored.
    pub fn from_samples(
        plan: &'a Plan,
        rings: impl IntoIterator<Item = &'a ring::RingSample>,
        trials: impl IntoIterator<Item = &'a trial::TrialSample>,
    ) -> Self {
        let mut rings: Vec<_> = rings.into_iter().collect();
        rings.retain(|sample| sample.hops > 0 && sample.elapsed_ns > 0);
        let trials: Vec<_> = trials.into_iter().collect();
        let mut levels = levels_of(plan, rings.iter().copied(), trials.iter().copied());
        let rings = ring_samples(plan, &rings, &mut levels);
        let trials = trial_samples(plan, &trials, &levels);
        Self { plan, levels, rings, trials }
    }

    /// Returns the level of an unshared core, by the CPUs that quanta ran on.
    pub fn levels(&self) -> &SpeedLevels {
        &self.levels
    }
}

fn ring_samples<'a>(
    plan: &Plan,
    samples: &[&'a ring::RingSample],
    levels: &mut SpeedLevels,
) -> Vec<RingSamples<'a>> {
    let mut cases = vec![BTreeMap::<u32, rings::Batch>::new(); plan.cases.len()];
    for sample in samples {
        let Some(rounds) = cases.get_mut(sample.case) else { continue };
        rounds.entry(sample.round).or_default().push(sample);
    }
    let clocks = case_clocks(plan, &cases, levels);
    let solos = plan.solos();
    let mut rings = Vec::new();
    for (number, (rounds, clocks)) in std::iter::zip(cases, clocks).enumerate() {
        let solo = SoloReference::of_case(plan, &solos, number);
        let mut ring = RingSamples { rounds, clocks, solo, ..RingSamples::default() };
        if let Some(case) = plan.ring(number) {
            let level = levels.get(&leader_cpus(case));
            for batch in ring.rounds.values() {
                ring.slices.add(case, batch, level, &ring.clocks);
            }
        }
        rings.push(ring);
    }
    rings
}

fn trial_samples<'a>(
    plan: &Plan,
    samples: &[&'a trial::TrialSample],
    levels: &SpeedLevels,
) -> Vec<TrialSamples<'a>> {
    let mut cases = vec![Vec::new(); plan.cases.len()];
    for sample in samples {
        if plan.trial(sample.case).is_some() {
            cases[sample.case].push(*sample);
        }
    }
    let mut trials = Vec::new();
    for (number, samples) in cases.iter().enumerate() {
        let cpu = plan.trial(number).map(|case| case.cpu);
        let level = cpu.and_then(|cpu| levels.get([cpu].as_slice()));
        trials.push(TrialSamples::from_samples(samples, level));
    }
    trials
}
