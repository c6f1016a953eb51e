//! Which slices of a run's trials are clean, by the engine that judges those of rings.

use std::collections::BTreeMap;

use super::sample::Sample;
use super::sliced::Sliced;
use super::tally::Tally;
use crate::plan::Plan;
use crate::speed::{
    CaseSlices, CleanCounts, Level, QuantaByPlace, add_quanta, levels, longest_uninterrupted,
};

/// The clean slices of one case.
#[derive(Default)]
pub(super) struct OfCase {
    /// Its samples with the outcomes of clean slices only.
    samples: Vec<Sample>,
    /// The slices that have outcomes of a tally, by its name; of each clean one the time of a lap.
    slices: BTreeMap<String, CaseSlices>,
    /// How many of its slices are clean.
    shares: CleanCounts,
}

impl OfCase {
    /// The samples with the outcomes of clean slices only.
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The slices with outcomes of that tally. None where it was not taken in slices.
    pub(super) fn slices(&self, tally: &str) -> Option<&CaseSlices> {
        self.slices.get(tally)
    }

    /// How many of its slices are clean.
    pub(super) fn shares(&self) -> CleanCounts {
        self.shares
    }

    fn add(&mut self, sample: &Sample, level: Option<&Level>) {
        let mut clean = Sample { sliced: Vec::new(), ..sample.clone() };
        for sliced in &sample.sliced {
            let of_tallies = |of: &mut Self, act: &dyn Fn(&mut CaseSlices)| {
                sliced.tallies.keys().for_each(|name| {
                    act(of.slices.entry(name.clone()).or_default());
                });
            };
            if !sliced.can_be_judged() {
                of_tallies(self, &|slices| slices.not_judged += 1);
                continue;
            }
            let judged = sliced.slices.elapsed_ns.len() as u32;
            let laps = level.map(|level| clean_laps(sample, sliced, level)).unwrap_or_default();
            self.shares = self.shares.plus(CleanCounts::of_all_as_found(laps.len() as u32, judged));
            of_tallies(self, &|slices| {
                slices.judged += judged;
                if !laps.is_empty() {
                    slices.clean.entry(sample.round).or_default().extend(laps.values());
                }
            });
            for name in sliced.tallies.keys() {
                if let Some(tally) = sliced.tally_of(name, |index| laps.contains_key(&index)) {
                    clean.tallies.insert(name.clone(), tally);
                }
            }
        }
        self.samples.push(clean);
    }

    /// What was not taken in slices says nothing of the speed of a tally that was in other rounds.
    fn add_unsliced(&mut self, name: &str) {
        self.slices.entry(name.to_string()).or_default().not_judged += 1;
    }
}

/// Time of a lap in each clean slice, in nanoseconds, by its number.
fn clean_laps(sample: &Sample, sliced: &Sliced, level: &Level) -> BTreeMap<usize, f64> {
    if sample.steal_ns.is_some_and(|ns| ns > 0) {
        return BTreeMap::new();
    }
    let clean = (0..sliced.slices.elapsed_ns.len())
        .filter(|index| level.is_clean_slice(&sliced.slices, *index))
        .filter_map(|index| Some((index, sliced.ns_per_lap(index)?)));
    let mut laps: BTreeMap<usize, f64> = clean.collect();
    let times: Vec<f64> = laps.values().copied().collect();
    if let Some(longest) = longest_uninterrupted(&times) {
        laps.retain(|_, time| *time <= longest);
    }
    laps
}

/// All quanta of trials by the CPU that they ran on.
pub(crate) fn quanta_by_cpu<'a>(
    plan: &Plan,
    samples: impl IntoIterator<Item = &'a Sample>,
) -> QuantaByPlace {
    let mut quanta = QuantaByPlace::new();
    for sample in samples {
        let Some(case) = plan.trial(sample.case) else { continue };
        for sliced in sample.sliced.iter().filter(|sliced| sliced.can_be_judged()) {
            add_quanta(&mut quanta, vec![case.cpu], &sliced.slices);
        }
    }
    quanta
}

/// The levels of a run by the CPUs that they are of, and the clean slices of each of its cases.
pub(super) fn clean_by_case<'a>(
    plan: &Plan,
    samples: impl Iterator<Item = &'a Sample> + Clone,
) -> (BTreeMap<Vec<u32>, Level>, Vec<OfCase>) {
    let levels = levels(&quanta_by_cpu(plan, samples.clone()), &plan.reference);
    let mut all: Vec<OfCase> = plan.cases.iter().map(|_| OfCase::default()).collect();
    for sample in samples {
        let Some((case, of_case)) = plan.trial(sample.case).zip(all.get_mut(sample.case)) else {
            continue;
        };
        let has_outcomes = |tally: &Tally| tally.count() > 0;
        for (name, _) in sample.tallies.iter().filter(|(_, tally)| has_outcomes(tally)) {
            of_case.add_unsliced(name);
        }
        if !sample.sliced.is_empty() {
            of_case.add(sample, levels.get(&vec![case.cpu]));
        }
    }
    (levels, all)
}
