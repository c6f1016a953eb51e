//! Which slices of a run are clean, by case and round.

use std::collections::BTreeMap;

use super::level::{Level, Quanta, Reference};
use super::pooled::{FEWEST_CLEAN, FEWEST_ROUNDS, LEAST_SHARE};
use super::slices::Slices;
use super::triples::Triple;
use crate::case::{Case, Placement};
use crate::sample::Sample;
use crate::stats::median;

/// A longer slice is not judged: the quanta around it are too far apart to say what was between them.
pub const LONGEST_SLICE_NS: u64 = 3_000_000;

/// A slice that took this many times as long as the median of its worker's had something else in it: another
/// task's turn is longer than that, and no state of the core makes so much of a difference.
const INTERRUPTED: f64 = 2.0;

/// The slices of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseSlices {
    /// Time of a hop in nanoseconds in each clean slice, by round.
    pub clean: BTreeMap<u32, Vec<f64>>,
    /// Slices that were judged.
    pub judged: u32,
    /// Samples that have no slices, or too long ones.
    pub not_judged: u32,
    /// What a hop takes above the members' own solos, in nanoseconds, in each triple that counts, by round.
    pub clean_above: BTreeMap<u32, Vec<f64>>,
    /// Triples that were judged; 0 where solos are rings of their own.
    pub triples: u32,
    /// Switches and hops of samples with clean slices, by round.
    pub switches: BTreeMap<u32, (u64, u64)>,
}

impl CaseSlices {
    /// Clean slices.
    pub fn clean_count(&self) -> u32 {
        self.clean.values().map(|round| round.len() as u32).sum()
    }

    /// Share of the judged slices that are clean; absent where none was judged.
    pub fn clean_share(&self) -> Option<f64> {
        (self.judged > 0).then(|| f64::from(self.clean_count()) / f64::from(self.judged))
    }

    /// Whether the quanta tell anything of this case.
    pub fn is_judged(&self) -> bool {
        self.judged > 0 && self.not_judged == 0
    }

    /// Whether there are clean slices enough for a figure at full speed.
    pub fn has_full_speed(&self) -> bool {
        self.is_judged() && are_enough(&self.clean, self.judged)
    }

    /// The same of triples.
    pub fn has_full_speed_above(&self) -> bool {
        self.is_judged() && are_enough(&self.clean_above, self.triples)
    }
}

fn are_enough(clean: &BTreeMap<u32, Vec<f64>>, judged: u32) -> bool {
    let count: usize = clean.values().map(Vec::len).sum();
    count >= FEWEST_CLEAN as usize
        && clean.len() >= FEWEST_ROUNDS as usize
        && count as f64 >= LEAST_SHARE * f64::from(judged)
}

/// The CPUs that the quanta of a case run on: the leader's.
fn leader_cpus(case: &Case) -> Vec<u32> {
    match &case.placement {
        Placement::Free { .. } => case.placement.cpus(),
        _ => case.placement.cpus_of(0),
    }
}

/// The levels of a run by the CPUs that they are of, and the slices of each of its cases.
pub fn slices_by_case<'a>(
    cases: &[Case],
    samples: impl Iterator<Item = &'a Sample> + Clone,
    reference: &Reference,
) -> (BTreeMap<Vec<u32>, Level>, Vec<CaseSlices>) {
    let places: Vec<Vec<u32>> = cases.iter().map(leader_cpus).collect();
    let levels = levels(&quanta_by_place(cases, samples.clone()), reference);
    let mut all = vec![CaseSlices::default(); cases.len()];
    for sample in samples {
        let Some(case) = cases.get(sample.case) else { continue };
        add(&mut all[sample.case], case, sample, levels.get(&places[sample.case]));
    }
    for of_case in &mut all {
        of_case.clean.values_mut().for_each(leave_out_interrupted);
        of_case.clean.retain(|_, round| !round.is_empty());
    }
    (levels, all)
}

/// All quanta of a run by the CPUs that they ran on.
pub(crate) type QuantaByPlace = BTreeMap<Vec<u32>, Quanta>;

/// Those of the samples whose slices are judged.
pub(crate) fn quanta_by_place<'a>(
    cases: &[Case],
    samples: impl Iterator<Item = &'a Sample>,
) -> QuantaByPlace {
    let mut quanta = QuantaByPlace::new();
    for sample in samples {
        if let Some((case, slices)) = cases.get(sample.case).zip(sample.judged_slices()) {
            add_quanta(&mut quanta, leader_cpus(case), slices);
            let triples = sample.triples.iter().flat_map(|triples| &triples.all);
            quanta.entry(leader_cpus(case)).or_default().extend(triples.flat_map(Triple::quanta));
        }
    }
    quanta
}

pub(crate) fn add_quanta(to: &mut QuantaByPlace, place: Vec<u32>, slices: &Slices) {
    let times = slices.latency_ns.iter().copied().zip(slices.throughput_ns.iter().copied());
    to.entry(place).or_default().extend(times);
}

/// The level of each place whose quanta agree on one.
pub(crate) fn levels(quanta: &QuantaByPlace, reference: &Reference) -> BTreeMap<Vec<u32>, Level> {
    let level = |(place, quanta): (&Vec<u32>, &Quanta)| {
        Some((place.clone(), Level::of(quanta, reference)?))
    };
    quanta.iter().filter_map(level).collect()
}

fn add(to: &mut CaseSlices, case: &Case, sample: &Sample, level: Option<&Level>) {
    let Some(slices) = sample.judged_slices() else {
        to.not_judged += 1;
        return;
    };
    let count = slices.elapsed_ns.len();
    to.judged += count as u32;
    let disturbed = sample.steal_ns.is_some_and(|ns| ns > 0) || sample.has_moved(case);
    to.triples += sample.triples.as_ref().map_or(0, |triples| triples.all.len() as u32);
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
    let before = to.clean_count();
    to.clean.entry(sample.round).or_default().extend(clean.filter_map(hop));
    if to.clean_count() > before {
        let (switches, hops) = to.switches.entry(sample.round).or_default();
        *switches += sample.counters.switches();
        *hops += sample.hops;
    }
}

fn leave_out_interrupted(round: &mut Vec<f64>) {
    if let Some(longest) = longest_uninterrupted(round) {
        round.retain(|hop| *hop <= longest);
    }
}

/// What lasts longer had something else in it, by the clean slices of one worker.
pub(crate) fn longest_uninterrupted(slices: &[f64]) -> Option<f64> {
    median(slices).map(|middle| INTERRUPTED * middle)
}
