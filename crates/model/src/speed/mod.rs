//! The CPU's own speed: reference quanta around slices of what is timed, the level of an unshared core,
//! and the figures of the slices that ran at it.
//!
//! Data flows `Slices` (raw, in a sample) -> `Level` (of a run) -> clean slices -> [`stats::Pooled`] (of a case).
//! `docs/method.md`, "The CPU's own speed", has the rules and the figures that they were chosen by.

mod level;
#[cfg(test)]
pub(crate) mod tests;
mod triples;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::empty;

use crate::case::{Sample, rings, trials};
use crate::experiment::Takes;
use crate::plan::Plan;
use crate::ring::{self, Placement};
use crate::trial;
use stats::median;

pub use crate::estimate::Speed;
pub use crate::plan::{FEWEST_ROUNDS, LAUNCH_SCATTER, Reference};
pub use crate::ring::{
    ADD_TURNS, ADDS_PER_TURN, LONGEST_SLICE_NS, MULTIPLIES_PER_TURN, MULTIPLY_TURNS, Places,
    Slices, Triple, Triples, Wait,
};
pub use level::{Level, Quanta, SpeedFile, TOLERANCE, cpu_key};
#[cfg(test)]
pub(crate) use tests::{around, cut};

/// Clean slices behind a figure at full speed.
pub const FEWEST_CLEAN: u32 = 30;
/// Share of the slices that must be clean: below it, those that seem clean are the luck of the sampling.
pub const LEAST_SHARE: f64 = 0.05;

/// A slice that took this many times as long as the median of its worker's had something else in it: another
/// task's turn is longer than that, and no state of the core makes so much of a difference.
const INTERRUPTED: f64 = 2.0;

/// Where more of a case's samples cannot be judged, what is left would be a choice of the short ones.
const MOST_NOT_JUDGED: f64 = 0.1;

/// Figures of slices, by round.
pub type ByRound = BTreeMap<u32, Vec<f64>>;
/// Levels of an unshared core, by the CPUs that quanta ran on.
pub type Levels = BTreeMap<Vec<u32>, Level>;

/// The slices of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseSlices {
    /// Time of a hop in nanoseconds in each clean slice, by round.
    pub clean: ByRound,
    /// Slices that were judged.
    pub judged: u32,
    /// Those of batches that waited for nothing.
    pub as_found: u32,
    /// Time of a hop in each clean one of these, by round.
    pub clean_as_found: ByRound,
    /// Samples of a ring whose slices were judged; not counted of trials, where one that was not is one too many.
    pub judged_samples: u32,
    /// Samples that have no slices, or too long ones.
    pub not_judged: u32,
    /// What a hop takes above the members' own solos, in nanoseconds, in each clean slice of the rings of triples, by round.
    pub clean_above: ByRound,
    /// Slices of the rings of triples that were judged; 0 where solos are rings of their own.
    pub ring_slices: u32,
    /// Switches and hops of samples with clean slices, by round.
    pub switches: BTreeMap<u32, (u64, u64)>,
}

/// Slices that were judged, and those of batches that waited for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanCounts {
    /// Slices that were judged.
    pub judged: u32,
    /// The clean ones.
    pub clean: u32,
    /// Slices of batches that were timed as the machine was found.
    pub as_found: u32,
    /// The clean ones of these.
    pub clean_as_found: u32,
}

impl CleanCounts {
    /// The counts of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            judged: self.judged + other.judged,
            clean: self.clean + other.clean,
            as_found: self.as_found + other.as_found,
            clean_as_found: self.clean_as_found + other.clean_as_found,
        }
    }

    /// Share of all slices that are clean, those that were waited for included; absent where none was judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| f64::from(self.clean) / f64::from(self.judged))
    }

    /// Share of the slices that were clean as the machine was found: of all where none was timed so.
    pub fn share_as_found(&self) -> Option<f64> {
        match self.as_found {
            0 => self.share(),
            judged => Some(f64::from(self.clean_as_found) / f64::from(judged)),
        }
    }
}

impl CaseSlices {
    /// How many slices there are, and of which kinds.
    pub fn clean_counts(&self) -> CleanCounts {
        let Self { judged, as_found, .. } = *self;
        let (clean, clean_as_found) = (count(&self.clean), count(&self.clean_as_found));
        CleanCounts { judged, clean, as_found, clean_as_found }
    }

    /// Whether the quanta tell anything of this case: of nearly all of it. A few samples whose slices were all too
    /// long are left out, as any slice is that something else was in.
    pub fn is_judged(&self) -> bool {
        let samples = self.judged_samples.saturating_add(self.not_judged);
        self.judged > 0 && f64::from(self.not_judged) <= MOST_NOT_JUDGED * f64::from(samples)
    }

    /// Whether they tell of half of its samples or more.
    pub fn is_mostly_judged(&self) -> bool {
        self.judged_samples > 0 && self.not_judged <= self.judged_samples
    }

    /// Whether there are clean slices enough for a figure at full speed.
    pub fn has_full_speed(&self) -> bool {
        self.is_judged() && are_enough(&self.clean, self.judged)
    }

    /// The same of triples.
    pub fn has_full_speed_above(&self) -> bool {
        self.is_judged() && are_enough(&self.clean_above, self.ring_slices)
    }

    fn add(&mut self, case: &ring::Case, sample: &ring::Sample, level: Option<&Level>) {
        let Some(slices) = sample.judged_slices() else {
            self.not_judged += 1;
            return;
        };
        let (count, as_found) = (slices.elapsed_ns.len(), slices.are_as_found());
        self.judged += count as u32;
        self.judged_samples += 1;
        self.as_found += if as_found { count as u32 } else { 0 };
        self.ring_slices += sample.triples.as_ref().map_or(0, Triples::ring_slices);
        let disturbed = sample.steal_ns.is_some_and(|ns| ns > 0) || sample.has_moved(case);
        let Some(level) = level.filter(|_| !disturbed) else { return };
        let above = sample.triples.as_ref().map(|triples| triples.clean_above_solos_ns(level));
        if let Some(above) = above.filter(|above| !above.is_empty()) {
            self.clean_above.entry(sample.round).or_default().extend(above);
        }
        let hop = |index: usize| {
            let hops = slices.laps_of(index, sample.laps).saturating_mul(case.members.into());
            (hops > 0).then(|| slices.elapsed_ns[index] as f64 / hops as f64)
        };
        let clean = (0..count).filter(|index| level.is_clean_slice(slices, *index));
        let clean: Vec<f64> = clean.filter_map(hop).collect();
        if as_found {
            self.clean_as_found.entry(sample.round).or_default().extend(&clean);
        }
        if !clean.is_empty() {
            let (switches, hops) = self.switches.entry(sample.round).or_default();
            *switches = switches.saturating_add(sample.switches());
            *hops = hops.saturating_add(sample.hops);
            self.clean.entry(sample.round).or_default().extend(clean);
        }
    }

    fn leave_out_interrupted(&mut self) {
        for (round, clean) in &mut self.clean {
            let Some(longest) = longest_uninterrupted(clean) else { continue };
            let as_found = self.clean_as_found.get_mut(round);
            for hops in [Some(clean), as_found].into_iter().flatten() {
                hops.retain(|hop| *hop <= longest);
            }
        }
        self.clean.retain(|_, round| !round.is_empty());
    }
}

fn count(by_round: &ByRound) -> u32 {
    by_round.values().map(|round| round.len() as u32).sum()
}

fn are_enough(clean: &ByRound, judged: u32) -> bool {
    let enough = count(clean) >= FEWEST_CLEAN && clean.len() >= FEWEST_ROUNDS as usize;
    enough && f64::from(count(clean)) >= LEAST_SHARE * f64::from(judged)
}

/// What lasts longer had something else in it, by the clean slices of one worker.
pub(crate) fn longest_uninterrupted(slices: &[f64]) -> Option<f64> {
    median(slices).map(|middle| INTERRUPTED * middle)
}

/// The CPUs that the quanta of a case run on: the leader's.
fn leader_cpus(case: &ring::Case) -> Vec<u32> {
    match &case.placement {
        Placement::Free { .. } => case.placement.cpus(),
        _ => case.placement.cpus_of(0),
    }
}

/// The levels of a run's rings by the CPUs that they are of, and the slices of each of its cases.
pub(crate) fn slices_by_case<'a>(
    plan: &Plan,
    samples: impl Iterator<Item = &'a ring::Sample> + Clone,
) -> (Levels, Vec<CaseSlices>) {
    let levels = levels_of(plan, samples.clone(), empty());
    let mut all = vec![CaseSlices::default(); plan.cases.len()];
    for sample in samples {
        let Some(case) = plan.ring(sample.case) else { continue };
        all[sample.case].add(case, sample, levels.get(&leader_cpus(case)));
    }
    all.iter_mut().for_each(CaseSlices::leave_out_interrupted);
    (levels, all)
}

/// The level of each place whose quanta agree on one, by the slices that can be judged.
pub(crate) fn levels_of<'a>(
    plan: &Plan,
    rings: impl Iterator<Item = &'a ring::Sample>,
    trials: impl Iterator<Item = &'a trial::Sample>,
) -> Levels {
    let mut quanta: BTreeMap<Vec<u32>, Quanta> = BTreeMap::new();
    for sample in rings {
        let Some(case) = plan.ring(sample.case) else { continue };
        let Some(slices) = sample.judged_slices() else { continue };
        let of = quanta.entry(leader_cpus(case)).or_default();
        of.add(slices);
        if let Some(triples) = &sample.triples {
            let (as_found, waited) = triples.as_found_and_waited();
            of.as_found.extend(as_found.iter().flat_map(Triple::quanta));
            of.waited.extend(waited.iter().flat_map(Triple::quanta));
        }
    }
    for sample in trials {
        let Some(case) = plan.trial(sample.case) else { continue };
        for sliced in sample.sliced.iter().filter(|sliced| sliced.can_be_judged()) {
            quanta.entry(vec![case.cpu]).or_default().add(&sliced.slices);
        }
    }
    let level = |(place, quanta)| Some((place, Level::of(&quanta, &plan.reference)?));
    quanta.into_iter().filter_map(level).collect()
}

/// The level of an unshared core by the quanta of rings and trials together.
pub fn levels(plan: &Plan, samples: &[Sample]) -> Levels {
    levels_of(plan, rings(samples), trials(samples))
}

/// A plan of rings and trials, which ran on the same CPU, with what both together say of its level: so that each
/// is judged by it. Other plans as they are.
pub(crate) fn with_shared_level<'a>(plan: &'a Plan, samples: &[Sample]) -> Cow<'a, Plan> {
    if plan.experiment.takes() != Takes::Both {
        return Cow::Borrowed(plan);
    }
    let levels = levels(plan, samples);
    let [level] = levels.values().collect::<Vec<_>>()[..] else { return Cow::Borrowed(plan) };
    let Level { established, unshared_ratio, .. } = *level;
    let unshared_ratio = Some(unshared_ratio);
    let reference = Reference { unshared_ratio, established, ..plan.reference };
    Cow::Owned(Plan { reference, ..plan.clone() })
}
