//! Figures of trials: each is taken within a round from one sample, of all that was measured and of
//! what is clean of it.

use std::collections::BTreeMap;

use rundata::plan::{CaseHistory, MIN_ROUNDS};
use rundata::trial::{SlicedTallies, Tally, Trial, TrialSample};
use stats::{Center, FigureAtLevel, group_by_level, has_level_span, median};

use super::by_round::{brought, finite};
use super::{ByRound, Figures, Table};
use crate::estimate::Estimate;
use crate::speed::{
    CaseSlices, CleanCounts, ClockFilter, SpeedLevel, TimedAtClock, in_rows, known_power,
    longest_uninterrupted,
};

/// What is known of one case.
#[derive(Debug, Default)]
pub(super) struct OfTrial<'a> {
    samples: Vec<&'a TrialSample>,
    /// The samples that have slices with the outcomes of clean ones only.
    clean: Vec<TrialSample>,
    /// The slices that have outcomes of a tally, by its name; of each clean one the time of a lap.
    slices: BTreeMap<String, CaseSlices>,
    /// How many of its slices are clean.
    counts: CleanCounts,
    /// Where the clock moved: the samples with the outcomes of clean slices at one clock each.
    at_clocks: Vec<(f64, TrialSample)>,
}

/// The latency quanta of all clean slices of a case, whatever the clock.
fn quanta_ns(samples: &[&TrialSample], level: &SpeedLevel) -> Vec<f64> {
    let of_sample = |sample: &&TrialSample| {
        let judged = sample.sliced.iter().filter(|sliced| sliced.can_be_judged());
        let laps = judged.map(|sliced| clean_laps(sample, sliced, level, ClockFilter::Any));
        laps.flat_map(BTreeMap::into_values).map(|(quantum_ns, _)| quantum_ns).collect::<Vec<_>>()
    };
    samples.iter().flat_map(of_sample).collect()
}

impl<'a> OfTrial<'a> {
    /// Of all its samples. Slices at all clocks count where the clock moved so far that they tell
    /// how figures go with it.
    pub(super) fn of(samples: &[&'a TrialSample], level: Option<&SpeedLevel>) -> Self {
        let moved = level.is_some_and(|level| has_level_span(&quanta_ns(samples, level)));
        let clocks = if moved { ClockFilter::Any } else { ClockFilter::TheRuns };
        let mut all = Self::default();
        samples.iter().for_each(|sample| all.add(sample, level, clocks));
        all
    }

    fn add(&mut self, sample: &'a TrialSample, level: Option<&SpeedLevel>, clocks: ClockFilter) {
        self.samples.push(sample);
        // What was not taken in slices says nothing of the speed of a tally that was in other
        // rounds.
        for (name, _) in sample.tallies.iter().filter(|(_, tally)| tally.count() > 0) {
            self.slices.entry(name.clone()).or_default().not_judged += 1;
        }
        if sample.sliced.is_empty() {
            return;
        }
        let mut of_clean = TrialSample { sliced: Vec::new(), ..sample.clone() };
        for sliced in &sample.sliced {
            let can_be_judged = sliced.can_be_judged();
            let judged = if can_be_judged { sliced.slices.elapsed_ns.len() as u32 } else { 0 };
            let laps = level
                .filter(|_| can_be_judged)
                .map(|level| clean_laps(sample, sliced, level, clocks));
            let laps = laps.unwrap_or_default();
            let (clean, as_found) = (laps.len() as u32, judged);
            let rows = in_rows(&laps.keys().copied().collect::<Vec<usize>>()).len() as u32;
            let was_shared = |at: &usize| sliced.slices.was_alone(*at) == Some(false);
            let not_alone = (0..judged as usize).filter(was_shared).count() as u32;
            let counts = CleanCounts {
                judged,
                clean,
                not_alone,
                as_found,
                clean_as_found: clean,
                other_clock_as_found: 0,
            };
            self.counts = self.counts.plus(counts);
            for name in sliced.tallies.keys() {
                let slices = self.slices.entry(name.clone()).or_default();
                slices.judged += judged;
                slices.not_judged += u32::from(!can_be_judged);
                if let Some(tally) = sliced.tally_of(name, |index| laps.contains_key(&index)) {
                    *slices.clean.entry(sample.round).or_default() += clean;
                    if rows > 0 {
                        *slices.clean_rows.entry(sample.round).or_default() += rows;
                    }
                    of_clean.tallies.insert(name.clone(), tally);
                }
            }
        }
        self.clean.push(of_clean);
        if let Some(level) = level.filter(|_| clocks == ClockFilter::Any) {
            self.at_clocks.extend(at_clocks(sample, level));
        }
    }
}

/// The clean slices of a sample by their clock: the middle quantum, and a sample that has their
/// outcomes only.
fn at_clocks(sample: &TrialSample, level: &SpeedLevel) -> Vec<(f64, TrialSample)> {
    let bare = TrialSample { sliced: Vec::new(), tallies: BTreeMap::new(), ..sample.clone() };
    let mut all = Vec::new();
    for sliced in sample.sliced.iter().filter(|sliced| sliced.can_be_judged()) {
        let laps: Vec<(usize, f64)> = clean_laps(sample, sliced, level, ClockFilter::Any)
            .into_iter()
            .map(|(at, (quantum_ns, _))| (at, quantum_ns))
            .collect();
        for group in group_by_level(laps.iter().map(|(_, quantum_ns)| *quantum_ns)) {
            // Ascending, as they were made.
            let slices: Vec<usize> = group.iter().map(|at| laps[*at].0).collect();
            let quanta: Vec<f64> = group.iter().map(|at| laps[*at].1).collect();
            let tally =
                |name: &String| sliced.tally_of(name, |index| slices.binary_search(&index).is_ok());
            let names = sliced.tallies.keys();
            let tallies = names.filter_map(|name| Some((name.clone(), tally(name)?))).collect();
            all.extend(median(&quanta).map(|of| (of, TrialSample { tallies, ..bare.clone() })));
        }
    }
    all
}

/// The latency quantum and the time of a lap in each clean slice at these clocks, in nanoseconds,
/// by its number.
fn clean_laps(
    sample: &TrialSample,
    sliced: &SlicedTallies,
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> BTreeMap<usize, TimedAtClock> {
    if sample.steal_ns.is_some_and(|ns| ns > 0) {
        return BTreeMap::new();
    }
    let slices = &sliced.slices;
    let timed =
        |index| Some((level.quantum_of_slice(clocks, slices, index)?, sliced.ns_per_lap(index)?));
    let all = 0..slices.elapsed_ns.len();
    let mut laps: BTreeMap<usize, TimedAtClock> =
        all.filter_map(|index| Some((index, timed(index)?))).collect();
    let times: Vec<f64> = laps.values().map(|(_, time)| *time).collect();
    let longest = longest_uninterrupted(&times);
    laps.retain(|_, (_, time)| longest.is_some_and(|longest| *time <= longest));
    laps
}

impl<'a> Table<'a> {
    /// All trials with their numbers.
    pub(crate) fn trials(&self) -> impl Iterator<Item = (usize, &'a Trial)> + use<'a> {
        self.plan.trials().map(|(number, case)| (number, &case.trial))
    }

    /// The number of the first case that is this trial.
    pub(crate) fn find(&self, is_it: impl Fn(&Trial) -> bool) -> Option<usize> {
        self.trials().find(|(_, trial)| is_it(trial)).map(|(number, _)| number)
    }

    /// The samples of a case.
    pub(crate) fn of_trial(&self, case: usize) -> &[&'a TrialSample] {
        self.trials.get(case).map_or(&[], |of| &of.samples)
    }

    /// Clean slices of a case, and those that were judged.
    pub(crate) fn counts(&self, case: usize) -> CleanCounts {
        self.trials.get(case).map_or(CleanCounts::default(), |of| of.counts)
    }

    /// The slices of a tally, where the quanta tell which are clean.
    pub(crate) fn judged(&self, case: usize, tally: &str) -> Option<&CaseSlices> {
        self.trials.get(case)?.slices.get(tally).filter(|slices| slices.is_judged())
    }

    /// What all samples of a case have of a tally, together.
    pub(crate) fn merged(&self, case: usize, of: impl Fn(&TrialSample) -> Option<Tally>) -> Tally {
        let mut all = Tally::default();
        self.of_trial(case)
            .iter()
            .filter_map(|sample| of(sample))
            .for_each(|tally| all.merge(&tally));
        all
    }

    /// A count of a case, summed over all its samples that have it; absent where none has.
    pub(crate) fn sum(&self, case: usize, name: &str) -> Option<i64> {
        self.of_trial(case).iter().filter_map(|s| s.count(name)).reduce(i64::saturating_add)
    }

    /// A figure of one case that is of the outcomes of `tally`, by round: of clean slices where
    /// there are enough. Rounds without it are passed over.
    pub(crate) fn by_round(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&TrialSample) -> Option<f64>,
    ) -> ByRound {
        let CaseHistory { launch_scatter, round_scatter, .. } = self.plan.reference.known_of(case);
        let cpu = self.plan.trial(case).map(|case| case.cpu);
        let level = cpu.and_then(|cpu| self.levels.get([cpu].as_slice()));
        let clock_ns = level.map(|level| level.clock_ns);
        ByRound {
            launch_scatter,
            round_scatter,
            clock_ns,
            ..self.figures_by_round(case, tally, of)
        }
    }

    fn figures_by_round(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&TrialSample) -> Option<f64>,
    ) -> ByRound {
        let figure = |sample: &TrialSample| Some((sample.round, of(sample)?));
        let all = self.of_trial(case).iter().filter_map(|sample| figure(sample));
        let Some(slices) = self.judged(case, tally) else { return all.collect() };
        let is_full = slices.has_full_speed();
        if !is_full && !slices.has_few_rounds() {
            return ByRound::judged(all, None::<Figures>);
        }
        // Where full speed was seen in few rounds, those count that saw it for a while.
        let counts = |round: &u32| is_full || slices.clean_rows.contains_key(round);
        let mut found = match self.at_one_clock(case, tally, &of) {
            Some(of_clean) => ByRound { all: finite(all), judged: true, ..of_clean },
            None => {
                let clean = self.trials.get(case).map(|of| of.clean.iter());
                ByRound::judged(all, clean.map(|clean| clean.filter_map(figure)))
            }
        };
        for figures in [&mut found.clean, &mut found.by_error].into_iter().flatten() {
            figures.retain(|round, _| counts(round));
        }
        ByRound { is_scarce: !is_full, ..found }
    }

    /// The figure of clean slices at several clocks, brought to the run's; where they do not tell
    /// how it goes with the clock, of those at the run's. Absent where the clock did not move.
    fn at_one_clock(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&TrialSample) -> Option<f64>,
    ) -> Option<ByRound> {
        let level = self.levels.get([self.plan.trial(case)?.cpu].as_slice())?;
        let mut rounds: BTreeMap<u32, Vec<FigureAtLevel>> = BTreeMap::new();
        for (quantum_ns, sample) in &self.trials.get(case)?.at_clocks {
            let weight = sample.tallies.get(tally).map_or(0.0, |tally| tally.count() as f64);
            let Some(figure) = of(sample).filter(|_| weight > 0.0) else { continue };
            let at = FigureAtLevel { level: *quantum_ns, figure, weight };
            rounds.entry(sample.round).or_default().push(at);
        }
        if rounds.is_empty() {
            return None;
        }
        let Some(power) = known_power(&rounds) else {
            rounds.values_mut().for_each(|all| all.retain(|of| level.is_its_clock(of.level)));
            return Some(ByRound::judged([], Some(brought(&rounds, 0.0, level.clock_ns))));
        };
        let to = |power| brought(&rounds, power, level.clock_ns);
        Some(ByRound {
            by_error: Some(to(power.value + power.standard_error)),
            elasticity: Some(power),
            ..ByRound::judged([], Some(to(power.value)))
        })
    }

    /// The estimate over rounds of such a figure.
    pub(crate) fn estimate_of_slices(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&TrialSample) -> Option<f64>,
    ) -> Option<Estimate> {
        self.by_round(case, tally, of).estimate(self.plan)
    }

    /// The estimate over rounds of a figure of one case, of all slices; rounds without it are
    /// passed over.
    pub(crate) fn estimate(
        &self,
        case: usize,
        of: impl Fn(&TrialSample) -> Option<f64>,
    ) -> Option<Estimate> {
        let figures =
            self.of_trial(case).iter().filter_map(|sample| Some((sample.round, of(sample)?)));
        figures.collect::<ByRound>().estimate(self.plan)
    }

    /// The estimate over rounds of a figure of several cases together; `of` is given their samples
    /// of one round. Only rounds count in which each of them was measured.
    pub(crate) fn estimate_together(
        &self,
        cases: &[usize],
        of: impl Fn(&[&TrialSample]) -> Option<f64>,
    ) -> Option<Estimate> {
        self.figures_together(cases, of).estimate(self.plan)
    }

    /// The same as the midmean over rounds: it is nearer than the median where there are few, and
    /// passes over those far off as well.
    pub(crate) fn midmean_together(
        &self,
        cases: &[usize],
        of: impl Fn(&[&TrialSample]) -> Option<f64>,
    ) -> Option<Estimate> {
        let figures: Vec<f64> =
            self.figures_together(cases, of).figures().map(|(_, f)| f).collect();
        let (confidence, seed) = (self.plan.stopping.confidence, self.plan.seed);
        Estimate::middle(&figures, Center::Midmean, MIN_ROUNDS, confidence, seed)
    }

    fn figures_together(
        &self,
        cases: &[usize],
        of: impl Fn(&[&TrialSample]) -> Option<f64>,
    ) -> ByRound {
        let together = |first: &&TrialSample| {
            let in_round =
                |case: &usize| self.of_trial(*case).iter().find(|s| s.round == first.round);
            let samples: Option<Vec<_>> =
                cases.iter().map(|case| in_round(case).copied()).collect();
            Some((first.round, of(&samples?)?))
        };
        let first = cases.first().map_or(&[][..], |case| self.of_trial(*case));
        first.iter().filter_map(together).collect()
    }
}
