//! Which slices of a run are clean, by case and round.

use std::collections::BTreeMap;

use super::level::{Level, Quanta, Reference};
use super::slices::Slices;
use super::triples::{Triple, Triples};
use crate::case::Case;
use crate::placement::Placement;
use crate::ring::{self, Sample};
use stats::median;

/// Clean slices behind a figure at full speed.
pub const FEWEST_CLEAN: u32 = 30;
/// Rounds that they must come from.
pub const FEWEST_ROUNDS: u32 = 8;
/// Share of the slices that must be clean: below it, those that seem clean are the luck of the sampling.
pub const LEAST_SHARE: f64 = 0.05;

/// A slice that took this many times as long as the median of its worker's had something else in it: another
/// task's turn is longer than that, and no state of the core makes so much of a difference.
const INTERRUPTED: f64 = 2.0;

/// Where more of a case's samples cannot be judged, what is left would be a choice of the short ones.
const MOST_NOT_JUDGED: f64 = 0.1;

/// The slices of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseSlices {
    /// Time of a hop in nanoseconds in each clean slice, by round.
    pub clean: BTreeMap<u32, Vec<f64>>,
    /// Slices that were judged.
    pub judged: u32,
    /// Those of batches that waited for nothing.
    pub as_found: u32,
    /// Time of a hop in each clean one of these, by round.
    pub clean_as_found: BTreeMap<u32, Vec<f64>>,
    /// Samples of a ring whose slices were judged; not counted of trials, where one that was not is one too many.
    pub judged_samples: u32,
    /// Samples that have no slices, or too long ones.
    pub not_judged: u32,
    /// What a hop takes above the members' own solos, in nanoseconds, in each clean slice of the rings of triples, by round.
    pub clean_above: BTreeMap<u32, Vec<f64>>,
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
    /// Of slices none of which was waited for.
    pub fn of_all_as_found(clean: u32, judged: u32) -> Self {
        Self { judged, clean, as_found: judged, clean_as_found: clean }
    }

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
    /// Clean slices.
    pub fn clean_count(&self) -> u32 {
        self.clean.values().map(|round| round.len() as u32).sum()
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

    /// How many slices there are, and of which kinds.
    pub fn clean_counts(&self) -> CleanCounts {
        let Self { judged, as_found, .. } = *self;
        let clean_as_found = self.clean_as_found.values().map(|round| round.len() as u32).sum();
        CleanCounts { judged, clean: self.clean_count(), as_found, clean_as_found }
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
}

fn are_enough(clean: &BTreeMap<u32, Vec<f64>>, judged: u32) -> bool {
    let count: usize = clean.values().map(Vec::len).sum();
    count >= FEWEST_CLEAN as usize
        && clean.len() >= FEWEST_ROUNDS as usize
        && count as f64 >= LEAST_SHARE * f64::from(judged)
}

/// The CPUs that the quanta of a case run on: the leader's.
fn leader_cpus(case: &ring::Case) -> Vec<u32> {
    match &case.placement {
        Placement::Free { .. } => case.placement.cpus(),
        _ => case.placement.cpus_of(0),
    }
}

/// The levels of a run's rings by the CPUs that they are of, and the slices of each of its cases.
pub fn slices_by_case<'a>(
    cases: &[Case],
    samples: impl Iterator<Item = &'a Sample> + Clone,
    reference: &Reference,
) -> (BTreeMap<Vec<u32>, Level>, Vec<CaseSlices>) {
    let levels = levels(&quanta_by_place(cases, samples.clone()), reference);
    let mut all = vec![CaseSlices::default(); cases.len()];
    for sample in samples {
        let Some(case) = cases.get(sample.case).and_then(Case::ring) else { continue };
        add(&mut all[sample.case], case, sample, levels.get(&leader_cpus(case)));
    }
    for of_case in &mut all {
        of_case.leave_out_interrupted();
    }
    (levels, all)
}

/// Quanta of a run by the CPUs that they ran on.
pub(crate) type QuantaByPlace = BTreeMap<Vec<u32>, Quanta>;

/// Those of the samples of rings whose slices are judged.
pub(crate) fn quanta_by_place<'a>(
    cases: &[Case],
    samples: impl Iterator<Item = &'a Sample>,
) -> QuantaByPlace {
    let mut quanta = QuantaByPlace::new();
    for sample in samples {
        let case = cases.get(sample.case).and_then(Case::ring);
        if let Some((case, slices)) = case.zip(sample.judged_slices()) {
            add_quanta(&mut quanta, leader_cpus(case), slices);
            if let Some(triples) = &sample.triples {
                let of = quanta.entry(leader_cpus(case)).or_default();
                let (as_found, waited) = triples.as_found_and_waited();
                of.as_found.extend(as_found.iter().flat_map(Triple::quanta));
                of.waited.extend(waited.iter().flat_map(Triple::quanta));
            }
        }
    }
    quanta
}

pub(crate) fn add_quanta(to: &mut QuantaByPlace, place: Vec<u32>, slices: &Slices) {
    let of = to.entry(place).or_default();
    let of = if slices.are_as_found() { &mut of.as_found } else { &mut of.waited };
    of.extend(slices.quanta());
}

/// The level of each place whose quanta agree on one.
pub(crate) fn levels(quanta: &QuantaByPlace, reference: &Reference) -> BTreeMap<Vec<u32>, Level> {
    let level = |(place, quanta): (&Vec<u32>, &Quanta)| {
        Some((place.clone(), Level::of(quanta, reference)?))
    };
    quanta.iter().filter_map(level).collect()
}

fn add(to: &mut CaseSlices, case: &ring::Case, sample: &Sample, level: Option<&Level>) {
    let Some(slices) = sample.judged_slices() else {
        to.not_judged += 1;
        return;
    };
    let count = slices.elapsed_ns.len();
    to.judged += count as u32;
    to.judged_samples += 1;
    if slices.are_as_found() {
        to.as_found += count as u32;
    }
    let disturbed = sample.steal_ns.is_some_and(|ns| ns > 0) || sample.has_moved(case);
    to.ring_slices += sample.triples.as_ref().map_or(0, Triples::ring_slices);
    let Some(level) = level.filter(|_| !disturbed) else { return };
    if let Some(triples) = &sample.triples {
        let clean = triples.clean_above_solos_ns(level);
        if !clean.is_empty() {
            to.clean_above.entry(sample.round).or_default().extend(clean);
        }
    }
    let hop = |index: usize| {
        let hops = slices.laps_of(index, sample.laps) * u64::from(case.members);
        (hops > 0).then(|| slices.elapsed_ns[index] as f64 / hops as f64)
    };
    let clean = (0..count).filter(|index| level.is_clean_slice(slices, *index));
    let clean: Vec<f64> = clean.filter_map(hop).collect();
    if slices.are_as_found() {
        to.clean_as_found.entry(sample.round).or_default().extend(&clean);
    }
    if !clean.is_empty() {
        let (switches, hops) = to.switches.entry(sample.round).or_default();
        *switches += sample.switches();
        *hops += sample.hops;
        to.clean.entry(sample.round).or_default().extend(clean);
    }
}

/// What lasts longer had something else in it, by the clean slices of one worker.
pub(crate) fn longest_uninterrupted(slices: &[f64]) -> Option<f64> {
    median(slices).map(|middle| INTERRUPTED * middle)
}
