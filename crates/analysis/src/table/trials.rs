//! Figures of trials: each is computed within a round from one sample, of all its slices and of the
//! clean ones.

use std::collections::BTreeMap;

use rundata::plan::{CaseHistory, MIN_ROUNDS};
use rundata::trial::{SlicedTallies, Tally, Trial, TrialSample};
use stats::{Center, Elasticity, FigureAtLevel, group_by_level, has_level_span, median};

use super::by_round::{at_quantum, finite};
use super::{ByRound, Figures, Table};
use crate::estimate::Estimate;
use crate::speed::{
    CaseSlices, CleanCounts, ClockFilter, SpeedLevel, TimedAtClock, in_rows, known_power,
    longest_uninterrupted,
};

/// Samples of one trial case; empty for a ring.
#[derive(Debug, Default)]
pub(super) struct TrialSamples<'a> {
    samples: Vec<&'a TrialSample>,
    /// The samples that have slices, with the outcomes of clean ones only.
    clean: Vec<TrialSample>,
    /// Counts of the slices that have outcomes of a tally, by its name.
    slices: BTreeMap<String, CaseSlices>,
    /// Counts of the slices of all tallies.
    counts: CleanCounts,
    /// Samples with the outcomes of clean slices at one clock each, if the clock changed.
    at_clocks: Vec<SampleAtClock>,
}

/// The outcomes of a sample's clean slices at one clock.
#[derive(Debug)]
struct SampleAtClock {
    /// Median latency quantum of the slices.
    quantum_ns: f64,
    sample: TrialSample,
}

/// Returns the slices of a sample that can be judged.
fn judged_tallies(sample: &TrialSample) -> impl Iterator<Item = &SlicedTallies> {
    sample.sliced.iter().filter(|sliced| sliced.can_be_judged())
}

/// Returns the latency quanta of all clean slices of a case, at any clock.
fn quanta_ns(samples: &[&TrialSample], level: &SpeedLevel) -> Vec<f64> {
    let mut quanta = Vec::new();
    for sample in samples {
        for sliced in judged_tallies(sample) {
            for (quantum_ns, _) in clean_laps(sample, sliced, level, ClockFilter::Any).values() {
                quanta.push(*quantum_ns);
            }
        }
    }
    quanta
}

impl<'a> TrialSamples<'a> {
    /// Reads the samples of a case. Slices at all clocks count if the clock changed so much that
    /// they show the elasticity of figures.
    pub(super) fn from_samples(samples: &[&'a TrialSample], level: Option<&SpeedLevel>) -> Self {
        let clocks = match level {
            Some(level) if has_level_span(&quanta_ns(samples, level)) => ClockFilter::Any,
            _ => ClockFilter::TheRuns,
        };
        let mut trial = Self::default();
        for sample in samples {
            trial.add(sample, level, clocks);
        }
        trial
    }

    fn add(&mut self, sample: &'a TrialSample, level: Option<&SpeedLevel>, clocks: ClockFilter) {
        self.samples.push(sample);
        // A tally that was not taken in slices cannot be judged, even if other rounds took it so.
        for (name, tally) in &sample.tallies {
            if tally.count() > 0 {
                self.slices.entry(name.clone()).or_default().not_judged += 1;
            }
        }
        if sample.sliced.is_empty() {
            return;
        }
        let mut clean = TrialSample { sliced: Vec::new(), ..sample.clone() };
        for sliced in &sample.sliced {
            let laps = match level {
                Some(level) if sliced.can_be_judged() => clean_laps(sample, sliced, level, clocks),
                _ => BTreeMap::new(),
            };
            self.add_counts(sample.round, sliced, &laps, &mut clean);
        }
        self.clean.push(clean);
        if let (Some(level), ClockFilter::Any) = (level, clocks) {
            self.at_clocks.extend(at_clocks(sample, level));
        }
    }

    /// Counts slices of which `laps` are the clean ones, and adds the outcomes of these to `clean`.
    fn add_counts(
        &mut self,
        round: u32,
        sliced: &SlicedTallies,
        laps: &BTreeMap<usize, TimedAtClock>,
        clean: &mut TrialSample,
    ) {
        let can_be_judged = sliced.can_be_judged();
        let judged = if can_be_judged { sliced.slices.elapsed_ns.len() as u32 } else { 0 };
        let clean_count = laps.len() as u32;
        let numbers: Vec<usize> = laps.keys().copied().collect();
        let rows = in_rows(&numbers).len() as u32;
        let mut not_alone = 0;
        for number in 0..judged as usize {
            not_alone += u32::from(sliced.slices.was_alone(number) == Some(false));
        }
        self.counts = self.counts.plus(CleanCounts {
            judged,
            clean: clean_count,
            not_alone,
            as_found: judged,
            clean_as_found: clean_count,
            other_clock_as_found: 0,
        });
        for name in sliced.tallies.keys() {
            let slices = self.slices.entry(name.clone()).or_default();
            slices.judged += judged;
            slices.not_judged += u32::from(!can_be_judged);
            let Some(tally) = sliced.tally_of(name, |number| laps.contains_key(&number)) else {
                continue;
            };
            *slices.clean.entry(round).or_default() += clean_count;
            if rows > 0 {
                *slices.clean_rows.entry(round).or_default() += rows;
            }
            clean.tallies.insert(name.clone(), tally);
        }
    }
}

/// Returns the outcomes of the clean slices of a sample by their clock.
fn at_clocks(sample: &TrialSample, level: &SpeedLevel) -> Vec<SampleAtClock> {
    let without_outcomes =
        TrialSample { sliced: Vec::new(), tallies: BTreeMap::new(), ..sample.clone() };
    let mut found = Vec::new();
    for sliced in judged_tallies(sample) {
        let (mut numbers, mut quanta) = (Vec::new(), Vec::new());
        for (number, (quantum_ns, _)) in clean_laps(sample, sliced, level, ClockFilter::Any) {
            numbers.push(number);
            quanta.push(quantum_ns);
        }
        for group in group_by_level(quanta.iter().copied()) {
            // Groups list their members in ascending order.
            let (mut slices, mut group_quanta) = (Vec::new(), Vec::new());
            for place in group {
                slices.push(numbers[place]);
                group_quanta.push(quanta[place]);
            }
            let Some(quantum_ns) = median(&group_quanta) else { continue };
            let mut sample = without_outcomes.clone();
            for name in sliced.tallies.keys() {
                let tally = sliced.tally_of(name, |number| slices.binary_search(&number).is_ok());
                if let Some(tally) = tally {
                    sample.tallies.insert(name.clone(), tally);
                }
            }
            found.push(SampleAtClock { quantum_ns, sample });
        }
    }
    found
}

/// Returns the latency quantum and the time of a lap, in nanoseconds, in each clean slice at these
/// clocks, by the slice's number.
fn clean_laps(
    sample: &TrialSample,
    sliced: &SlicedTallies,
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> BTreeMap<usize, TimedAtClock> {
    let mut laps: BTreeMap<usize, TimedAtClock> = BTreeMap::new();
    if sample.steal_ns.is_some_and(|ns| ns > 0) {
        return laps;
    }
    let slices = &sliced.slices;
    for number in 0..slices.elapsed_ns.len() {
        let quantum_ns = level.quantum_of_slice(clocks, slices, number);
        if let (Some(quantum_ns), Some(lap_ns)) = (quantum_ns, sliced.ns_per_lap(number)) {
            laps.insert(number, (quantum_ns, lap_ns));
        }
    }
    let times: Vec<f64> = laps.values().map(|(_, time)| *time).collect();
    match longest_uninterrupted(&times) {
        Some(longest) => laps.retain(|_, (_, time)| *time <= longest),
        None => laps.clear(),
    }
    laps
}

impl<'a> Table<'a> {
    /// Returns all trials with their numbers.
    pub(crate) fn trials(&self) -> impl Iterator<Item = (usize, &'a Trial)> + use<'a> {
        self.plan.trials().map(|(number, case)| (number, &case.trial))
    }

    /// Returns the number of the first trial for which `matches` holds.
    pub(crate) fn find(&self, matches: impl Fn(&Trial) -> bool) -> Option<usize> {
        self.trials().find(|(_, trial)| matches(trial)).map(|(number, _)| number)
    }

    /// Returns the samples of a trial case.
    pub(crate) fn trial_samples(&self, case: usize) -> &[&'a TrialSample] {
        self.trials.get(case).map_or(&[], |trial| &trial.samples)
    }

    /// Returns the counts of a case's slices.
    pub(crate) fn counts(&self, case: usize) -> CleanCounts {
        match self.trials.get(case) {
            Some(trial) => trial.counts,
            None => CleanCounts::default(),
        }
    }

    /// Returns the counts of a tally's slices; absent where they were not judged.
    pub(crate) fn judged(&self, case: usize, tally: &str) -> Option<&CaseSlices> {
        self.trials.get(case)?.slices.get(tally).filter(|slices| slices.is_judged())
    }

    /// Returns the sum of the tallies that `read` returns for the samples of a case.
    pub(crate) fn merged(
        &self,
        case: usize,
        read: impl Fn(&TrialSample) -> Option<Tally>,
    ) -> Tally {
        let mut merged = Tally::default();
        for sample in self.trial_samples(case) {
            if let Some(tally) = read(sample) {
                merged.merge(&tally);
            }
        }
        merged
    }

    /// Returns a count of a case, summed over all its samples that have it; absent where none has.
    pub(crate) fn sum(&self, case: usize, name: &str) -> Option<i64> {
        let samples = self.trial_samples(case).iter();
        samples.filter_map(|sample| sample.count(name)).reduce(i64::saturating_add)
    }

    /// Returns a figure that `read` computes from the outcomes of `tally`, by round: of clean slices
    /// where there are enough. Rounds without it are left out.
    pub(crate) fn by_round(
        &self,
        case: usize,
        tally: &str,
        read: impl Fn(&TrialSample) -> Option<f64>,
    ) -> ByRound {
        let CaseHistory { launch_scatter, round_scatter, .. } = self.plan.reference.known_of(case);
        let figures = self.figures_by_round(case, tally, read);
        let clock_ns = self.trial_level(case).map(|level| level.clock_ns);
        ByRound { launch_scatter, round_scatter, clock_ns, ..figures }
    }

    /// Returns the level of the CPU that a trial runs on.
    fn trial_level(&self, case: usize) -> Option<&SpeedLevel> {
        self.levels.get([self.plan.trial(case)?.cpu].as_slice())
    }

    fn figures_by_round(
        &self,
        case: usize,
        tally: &str,
        read: impl Fn(&TrialSample) -> Option<f64>,
    ) -> ByRound {
        let all = figures_of_samples(self.trial_samples(case).iter().copied(), &read);
        let Some(slices) = self.judged(case, tally) else { return all.into_iter().collect() };
        let is_full = slices.has_full_speed();
        if !is_full && !slices.has_few_rounds() {
            return ByRound::judged(all, None::<Figures>);
        }
        let mut figures = match (self.at_one_clock(case, tally, &read), self.trials.get(case)) {
            (Some(clean), _) => ByRound { all: finite(all), judged: true, ..clean },
            (None, Some(trial)) => {
                ByRound::judged(all, Some(figures_of_samples(&trial.clean, &read)))
            }
            (None, None) => ByRound::judged(all, None::<Figures>),
        };
        // Where full speed was seen in few rounds, only those count that saw it for a while.
        if !is_full {
            for clean in [&mut figures.clean, &mut figures.by_error].into_iter().flatten() {
                clean.retain(|round, _| slices.clean_rows.contains_key(round));
            }
        }
        ByRound { is_scarce: !is_full, ..figures }
    }

    /// Returns the figure of clean slices at several clocks, converted to the run's; of those at the
    /// run's, where they do not show the elasticity. Absent where the clock did not change.
    fn at_one_clock(
        &self,
        case: usize,
        tally: &str,
        read: impl Fn(&TrialSample) -> Option<f64>,
    ) -> Option<ByRound> {
        let level = self.trial_level(case)?;
        let mut rounds: BTreeMap<u32, Vec<FigureAtLevel>> = BTreeMap::new();
        for SampleAtClock { quantum_ns, sample } in &self.trials.get(case)?.at_clocks {
            let count = sample.tallies.get(tally).map_or(0, Tally::count);
            if count == 0 {
                continue;
            }
            if let Some(figure) = read(sample) {
                let weight = count as f64;
                let figure = FigureAtLevel { level: *quantum_ns, figure, weight };
                rounds.entry(sample.round).or_default().push(figure);
            }
        }
        if rounds.is_empty() {
            return None;
        }
        let Some(elasticity) = known_power(&rounds) else {
            for figures in rounds.values_mut() {
                figures.retain(|figure| level.is_its_clock(figure.level));
            }
            let clean = at_quantum(&rounds, 0.0, level.clock_ns);
            return Some(ByRound::judged([], Some(clean)));
        };
        let Elasticity { value, standard_error } = elasticity;
        let clean = at_quantum(&rounds, value, level.clock_ns);
        let by_error = Some(at_quantum(&rounds, value + standard_error, level.clock_ns));
        let judged = ByRound::judged([], Some(clean));
        Some(ByRound { by_error, elasticity: Some(elasticity), ..judged })
    }

    /// Returns the estimate over rounds of such a figure.
    pub(crate) fn estimate_of_slices(
        &self,
        case: usize,
        tally: &str,
        read: impl Fn(&TrialSample) -> Option<f64>,
    ) -> Option<Estimate> {
        self.by_round(case, tally, read).estimate(self.plan)
    }

    /// Returns the estimate over rounds of a figure of one case, of all slices. Rounds without it
    /// are left out.
    pub(crate) fn estimate(
        &self,
        case: usize,
        read: impl Fn(&TrialSample) -> Option<f64>,
    ) -> Option<Estimate> {
        let figures = figures_of_samples(self.trial_samples(case).iter().copied(), read);
        figures.into_iter().collect::<ByRound>().estimate(self.plan)
    }

    /// Returns the estimate over rounds of a figure of several cases, which `read` computes from
    /// their samples of one round. Only rounds count in which each case was measured.
    pub(crate) fn estimate_together(
        &self,
        cases: &[usize],
        read: impl Fn(&[&TrialSample]) -> Option<f64>,
    ) -> Option<Estimate> {
        self.figures_together(cases, read).estimate(self.plan)
    }

    /// Like [`Self::estimate_together`], but by the midmean over rounds: with few rounds it scatters
    /// less than the median, and also ignores those far off.
    pub(crate) fn midmean_together(
        &self,
        cases: &[usize],
        read: impl Fn(&[&TrialSample]) -> Option<f64>,
    ) -> Option<Estimate> {
        let figures = self.figures_together(cases, read).values();
        let (confidence, seed) = (self.plan.stopping.confidence, self.plan.seed);
        Estimate::middle(&figures, Center::Midmean, MIN_ROUNDS, confidence, seed)
    }

    fn figures_together(
        &self,
        cases: &[usize],
        read: impl Fn(&[&TrialSample]) -> Option<f64>,
    ) -> ByRound {
        let mut figures = Vec::new();
        let Some(first) = cases.first() else { return ByRound::default() };
        for TrialSample { round, .. } in self.trial_samples(*first) {
            let Some(samples) = self.samples_in_round(cases, *round) else { continue };
            if let Some(figure) = read(&samples) {
                figures.push((*round, figure));
            }
        }
        figures.into_iter().collect()
    }

    /// Returns the first sample of each case in a round; absent where a case has none.
    fn samples_in_round(&self, cases: &[usize], round: u32) -> Option<Vec<&'a TrialSample>> {
        let mut samples = Vec::new();
        for case in cases {
            let mut all_rounds = self.trial_samples(*case).iter();
            samples.push(*all_rounds.find(|sample| sample.round == round)?);
        }
        Some(samples)
    }
}

/// Returns the figures that `read` returns for samples, with their rounds.
fn figures_of_samples<'b>(
    samples: impl IntoIterator<Item = &'b TrialSample>,
    read: impl Fn(&TrialSample) -> Option<f64>,
) -> Vec<(u32, f64)> {
    let mut figures = Vec::new();
    for sample in samples {
        if let Some(figure) = read(sample) {
            figures.push((sample.round, figure));
        }
    }
    figures
}
