//! Samples of a run's trials by case, with their clean slices; figures that are taken within a
//! round, each from one sample, of all that was measured and of what is clean of it; and the one
//! figure that stands for a case, by which its precision and its scatter are told.

use std::collections::BTreeMap;
use std::iter::empty;

use super::{gaps, malloc, overhead, primes, sampling};
use crate::at_clock::AtClock;
use crate::case::trials;
use crate::estimate::{Estimate, Speed};
use crate::plan::{FEWEST_ROUNDS, MINIMUM_ROUNDS, Plan};
use crate::run::{Failure, Run};
use crate::speed::{
    CaseSlices, CleanCounts, Clocks, Level, Levels, Timed, known_power, levels_of,
    longest_uninterrupted, with_shared_level,
};
use crate::trial::gaps::GAP_TICKS;
use crate::trial::interference::EXECUTION_NS;
use crate::trial::malloc::MALLOC_TICKS;
use crate::trial::overhead::BATCH_TICKS;
use crate::trial::primes::THREADCLOCK_NS;
use crate::trial::wakeup::LATE_NS;
use crate::trial::{Case, Sample, Sliced, Tally, Trial};
use stats::{
    AtLevel, Center, Elasticity, bootstrap, median, same_level, tells_power, weighted_median,
};

type Rounds = BTreeMap<u32, f64>;

/// A figure by round. Rounds that lack it, or in which it is not finite, are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound {
    all: Rounds,
    /// Whether the CPU's speed was looked at.
    judged: bool,
    /// Of clean slices only. None where something that it is made of has too few of them.
    clean: Option<Rounds>,
    /// Where these were brought to one clock: what they were, were the power of each part greater
    /// by its standard error.
    by_error: Option<Rounds>,
    /// By which power it goes with the period of the core's clock; absent where the run does not
    /// tell, and of what is made of several.
    elasticity: Option<Elasticity>,
    /// tau of the case that it is of, of several the largest; absent where no launches say it.
    launch_scatter: Option<f64>,
    /// The latency quantum, in nanoseconds, of the clock that the clean figures are at; absent
    /// where nobody looked.
    clock_ns: Option<f64>,
}

/// Of whatever speed: nobody looked.
impl FromIterator<(u32, f64)> for ByRound {
    fn from_iter<T: IntoIterator<Item = (u32, f64)>>(figures: T) -> Self {
        Self { all: finite(figures), ..Self::default() }
    }
}

fn finite(figures: impl IntoIterator<Item = (u32, f64)>) -> Rounds {
    figures.into_iter().filter(|(_, figure)| figure.is_finite()).collect()
}

impl ByRound {
    /// A figure whose slices were judged: of all of them, and of the clean ones where there are
    /// enough.
    pub fn judged(
        all: impl IntoIterator<Item = (u32, f64)>,
        clean: Option<impl IntoIterator<Item = (u32, f64)>>,
    ) -> Self {
        Self { all: finite(all), judged: true, clean: clean.map(finite), ..Self::default() }
    }

    /// A figure made of several, for the rounds that have all of them. Clean where each part is;
    /// where one was not judged, neither is what is made of it.
    pub fn together<const N: usize>(parts: [&Self; N], of: impl Fn([f64; N]) -> f64) -> Self {
        let clean = parts.map(|part| part.clean.as_ref());
        Self {
            all: within_rounds(parts.map(|part| Some(&part.all)), &of).unwrap_or_default(),
            judged: parts.iter().all(|part| part.judged),
            clean: within_rounds(clean, &of),
            by_error: Self::by_error_together(parts, &of),
            elasticity: None,
            // Of one sample's CPU, all have the same.
            clock_ns: parts.first().and_then(|part| part.clock_ns),
            launch_scatter: parts
                .into_iter()
                .filter_map(|part| part.launch_scatter)
                .reduce(f64::max),
        }
    }

    /// The middle of these, of the rounds that the figure has.
    fn middle(&self, of: &Rounds) -> Option<f64> {
        let clean = self.clean.as_ref()?;
        let same = of.iter().filter(|(round, _)| clean.contains_key(round));
        median(&same.map(|(_, figure)| *figure).collect::<Vec<f64>>())
    }

    /// What is made of several, were the powers of all that were brought greater by their errors.
    fn by_error_together<const N: usize>(
        parts: [&Self; N],
        of: impl Fn([f64; N]) -> f64,
    ) -> Option<Rounds> {
        parts.iter().any(|part| part.by_error.is_some()).then_some(())?;
        within_rounds(parts.map(|part| part.by_error.as_ref().or(part.clean.as_ref())), &of)
    }

    /// How far the middle is uncertain as the power is by which its parts were brought to one
    /// clock.
    fn error_of_clock(&self) -> f64 {
        let error = || {
            let clean = self.middle(self.clean.as_ref()?)?;
            Some((self.middle(self.by_error.as_ref()?)? - clean).abs())
        };
        error().unwrap_or(0.0)
    }

    /// At which speed its figures were measured.
    pub fn speed(&self) -> Speed {
        let rounds = self.clean.as_ref().map_or(0, BTreeMap::len);
        match self.judged {
            false => Speed::NotJudged,
            true if rounds >= FEWEST_ROUNDS as usize => Speed::Full,
            true => Speed::Contended,
        }
    }

    /// The median over rounds: at full speed with the term for launches, contended without an
    /// interval, else with the interval of the rounds. Absent without rounds.
    pub fn estimate(&self, plan: &Plan) -> Option<Estimate> {
        let (confidence, seed) = (plan.stopping.confidence, plan.seed);
        let figures: Vec<f64> = self.figures().map(|(_, figure)| figure).collect();
        match self.speed() {
            Speed::NotJudged => Estimate::over(&figures, MINIMUM_ROUNDS, confidence, seed),
            Speed::Contended | Speed::NotAlone => Estimate::contended(&figures, confidence),
            Speed::Full => Estimate::at_full_speed(
                median(&figures)?,
                bootstrap(&figures, Center::Median, confidence, seed)?
                    .standard_error
                    .hypot(self.error_of_clock()),
                figures.len() as u32,
                self.launch_scatter.unwrap_or_else(|| plan.reference.scatter()),
                confidence,
            ),
        }
    }

    /// The figures behind the estimate, in the order of rounds.
    pub fn figures(&self) -> impl Iterator<Item = (u32, f64)> {
        let clean = self.clean.as_ref().filter(|_| self.speed() == Speed::Full);
        clean.unwrap_or(&self.all).iter().map(|(round, figure)| (*round, *figure))
    }

    /// The figures of all slices, in the order of rounds.
    pub fn of_all(&self) -> impl Iterator<Item = (u32, f64)> {
        self.all.iter().map(|(round, figure)| (*round, *figure))
    }
}

/// Each round's figures at the clock of a quantum of `to_ns`: the middle by their weights.
fn brought(rounds: &BTreeMap<u32, Vec<AtLevel>>, power: f64, to_ns: f64) -> Rounds {
    let figure = |all: &Vec<AtLevel>| {
        let there = |of: &AtLevel| (of.figure * (to_ns / of.level).powf(power), of.weight);
        weighted_median(&all.iter().map(there).collect::<Vec<_>>())
    };
    finite(rounds.iter().filter_map(|(round, all)| Some((*round, figure(all)?))))
}

/// None where a part is not there at all.
fn within_rounds<const N: usize>(
    parts: [Option<&Rounds>; N],
    of: impl Fn([f64; N]) -> f64,
) -> Option<Rounds> {
    let parts: Vec<&Rounds> = parts.into_iter().collect::<Option<_>>()?;
    let in_round = |round: &u32| {
        let figures: Option<Vec<f64>> = parts.iter().map(|part| part.get(round).copied()).collect();
        Some((*round, of(figures?.try_into().ok()?)))
    };
    Some(finite(parts.first()?.keys().filter_map(in_round)))
}

/// All samples of a run's trials by case, in the order of arrival, with their clean slices.
pub(crate) struct ByCase<'a> {
    pub(crate) plan: &'a Plan,
    /// The level of an unshared core, by the CPU that quanta ran on.
    pub(super) levels: Levels,
    cases: Vec<OfCase<'a>>,
}

/// What is known of one case.
#[derive(Default)]
struct OfCase<'a> {
    samples: Vec<&'a Sample>,
    /// The samples that have slices with the outcomes of clean ones only.
    clean: Vec<Sample>,
    /// The slices that have outcomes of a tally, by its name; of each clean one the time of a lap.
    slices: BTreeMap<String, CaseSlices>,
    /// How many of its slices are clean.
    counts: CleanCounts,
    /// Where the clock moved: the samples with the outcomes of clean slices at one clock each.
    at_clocks: Vec<(f64, Sample)>,
}

/// The latency quanta of all clean slices of a case, whatever the clock.
fn quanta_ns(samples: &[&Sample], level: &Level) -> Vec<f64> {
    let of_sample = |sample: &&Sample| {
        let judged = sample.sliced.iter().filter(|sliced| sliced.can_be_judged());
        let laps = judged.map(|sliced| clean_laps(sample, sliced, level, Clocks::Any));
        laps.flat_map(BTreeMap::into_values).map(|(quantum_ns, _)| quantum_ns).collect::<Vec<_>>()
    };
    samples.iter().flat_map(of_sample).collect()
}

impl<'a> OfCase<'a> {
    /// Of all its samples. Slices at all clocks count where the clock moved so far that they tell
    /// how figures go with it.
    fn of(samples: &[&'a Sample], level: Option<&Level>) -> Self {
        let moved = level.is_some_and(|level| tells_power(&quanta_ns(samples, level)));
        let clocks = if moved { Clocks::Any } else { Clocks::TheRuns };
        let mut all = Self::default();
        samples.iter().for_each(|sample| all.add(sample, level, clocks));
        all
    }

    fn add(&mut self, sample: &'a Sample, level: Option<&Level>, clocks: Clocks) {
        self.samples.push(sample);
        // What was not taken in slices says nothing of the speed of a tally that was in other
        // rounds.
        for (name, _) in sample.tallies.iter().filter(|(_, tally)| tally.count() > 0) {
            self.slices.entry(name.clone()).or_default().not_judged += 1;
        }
        if sample.sliced.is_empty() {
            return;
        }
        let mut of_clean = Sample { sliced: Vec::new(), ..sample.clone() };
        for sliced in &sample.sliced {
            let can_be_judged = sliced.can_be_judged();
            let judged = if can_be_judged { sliced.slices.elapsed_ns.len() as u32 } else { 0 };
            let laps = level
                .filter(|_| can_be_judged)
                .map(|level| clean_laps(sample, sliced, level, clocks));
            let laps = laps.unwrap_or_default();
            let (clean, as_found) = (laps.len() as u32, judged);
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
                    of_clean.tallies.insert(name.clone(), tally);
                }
            }
        }
        self.clean.push(of_clean);
        if let Some(level) = level.filter(|_| clocks == Clocks::Any) {
            self.at_clocks.extend(at_clocks(sample, level));
        }
    }
}

/// The clean slices of a sample by their clock: the middle quantum, and a sample that has their
/// outcomes only.
fn at_clocks(sample: &Sample, level: &Level) -> Vec<(f64, Sample)> {
    let bare = Sample { sliced: Vec::new(), tallies: BTreeMap::new(), ..sample.clone() };
    let mut all = Vec::new();
    for sliced in sample.sliced.iter().filter(|sliced| sliced.can_be_judged()) {
        let laps: Vec<(usize, f64)> = clean_laps(sample, sliced, level, Clocks::Any)
            .into_iter()
            .map(|(at, (quantum_ns, _))| (at, quantum_ns))
            .collect();
        for group in same_level(laps.iter().map(|(_, quantum_ns)| *quantum_ns)) {
            // Ascending, as they were made.
            let slices: Vec<usize> = group.iter().map(|at| laps[*at].0).collect();
            let quanta: Vec<f64> = group.iter().map(|at| laps[*at].1).collect();
            let tally =
                |name: &String| sliced.tally_of(name, |index| slices.binary_search(&index).is_ok());
            let names = sliced.tallies.keys();
            let tallies = names.filter_map(|name| Some((name.clone(), tally(name)?))).collect();
            all.extend(median(&quanta).map(|of| (of, Sample { tallies, ..bare.clone() })));
        }
    }
    all
}

/// The latency quantum and the time of a lap in each clean slice at these clocks, in nanoseconds,
/// by its number.
fn clean_laps(
    sample: &Sample,
    sliced: &Sliced,
    level: &Level,
    clocks: Clocks,
) -> BTreeMap<usize, Timed> {
    if sample.steal_ns.is_some_and(|ns| ns > 0) {
        return BTreeMap::new();
    }
    let slices = &sliced.slices;
    let timed =
        |index| Some((level.quantum_of_slice(clocks, slices, index)?, sliced.ns_per_lap(index)?));
    let all = 0..slices.elapsed_ns.len();
    let mut laps: BTreeMap<usize, Timed> =
        all.filter_map(|index| Some((index, timed(index)?))).collect();
    let times: Vec<f64> = laps.values().map(|(_, time)| *time).collect();
    let longest = longest_uninterrupted(&times);
    laps.retain(|_, (_, time)| longest.is_some_and(|longest| *time <= longest));
    laps
}

impl<'a> ByCase<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        samples: impl IntoIterator<Item = &'a Sample, IntoIter: Clone>,
    ) -> Self {
        let samples = samples.into_iter();
        let levels = levels_of(plan, empty(), samples.clone());
        let mut by_case = vec![Vec::new(); plan.cases.len()];
        for sample in samples.filter(|sample| plan.trial(sample.case).is_some()) {
            by_case[sample.case].push(sample);
        }
        let of = |(number, samples): (usize, Vec<&'a Sample>)| {
            let level = plan.trial(number).and_then(|case| levels.get([case.cpu].as_slice()));
            OfCase::of(&samples, level)
        };
        let cases = by_case.into_iter().enumerate().map(of).collect();
        Self { plan, levels, cases }
    }

    /// All trials with their numbers.
    pub(crate) fn trials(&self) -> impl Iterator<Item = (usize, &'a Trial)> + use<'a> {
        self.plan.trials().map(|(number, case)| (number, &case.trial))
    }

    /// The number of the first case that is this trial.
    pub(crate) fn find(&self, is_it: impl Fn(&Trial) -> bool) -> Option<usize> {
        self.trials().find(|(_, trial)| is_it(trial)).map(|(number, _)| number)
    }

    /// The samples of a case.
    pub(crate) fn of(&self, case: usize) -> &[&'a Sample] {
        &self.cases[case].samples
    }

    /// Clean slices of a case, and those that were judged.
    pub(super) fn counts(&self, case: usize) -> CleanCounts {
        self.cases[case].counts
    }

    /// The slices of a tally, where the quanta tell which are clean.
    fn judged(&self, case: usize, tally: &str) -> Option<&CaseSlices> {
        self.cases[case].slices.get(tally).filter(|slices| slices.is_judged())
    }

    /// What all samples of a case have of a tally, together.
    pub(super) fn merged(&self, case: usize, of: impl Fn(&Sample) -> Option<Tally>) -> Tally {
        let mut all = Tally::default();
        self.of(case).iter().filter_map(|sample| of(sample)).for_each(|tally| all.merge(&tally));
        all
    }

    /// A count of a case, summed over all its samples that have it; absent where none has.
    pub(crate) fn sum(&self, case: usize, name: &str) -> Option<i64> {
        self.of(case).iter().filter_map(|s| s.count(name)).reduce(i64::saturating_add)
    }

    /// A figure of one case that is of the outcomes of `tally`, by round: of clean slices where
    /// there are enough. Rounds without it are passed over.
    pub(crate) fn by_round(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> ByRound {
        let launch_scatter = self.plan.reference.known_of(case).launch_scatter;
        let cpu = self.plan.trial(case).map(|case| case.cpu);
        let level = cpu.and_then(|cpu| self.levels.get([cpu].as_slice()));
        let clock_ns = level.map(|level| level.clock_ns);
        ByRound { launch_scatter, clock_ns, ..self.figures_by_round(case, tally, of) }
    }

    fn figures_by_round(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> ByRound {
        let figure = |sample: &Sample| Some((sample.round, of(sample)?));
        let all = self.of(case).iter().filter_map(|sample| figure(sample));
        let Some(slices) = self.judged(case, tally) else { return all.collect() };
        let full = slices.has_full_speed();
        if let Some(of_clean) = full.then(|| self.at_one_clock(case, tally, &of)).flatten() {
            return ByRound { all: finite(all), judged: true, ..of_clean };
        }
        let clean = full.then(|| self.cases[case].clean.iter());
        ByRound::judged(all, clean.map(|clean| clean.filter_map(figure)))
    }

    /// The figure of clean slices at several clocks, brought to the run's; where they do not tell
    /// how it goes with the clock, of those at the run's. Absent where the clock did not move.
    fn at_one_clock(
        &self,
        case: usize,
        tally: &str,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<ByRound> {
        let level = self.levels.get([self.plan.trial(case)?.cpu].as_slice())?;
        let mut rounds: BTreeMap<u32, Vec<AtLevel>> = BTreeMap::new();
        for (quantum_ns, sample) in &self.cases[case].at_clocks {
            let weight = sample.tallies.get(tally).map_or(0.0, |tally| tally.count() as f64);
            let Some(figure) = of(sample).filter(|_| weight > 0.0) else { continue };
            let at = AtLevel { level: *quantum_ns, figure, weight };
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
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Estimate> {
        self.by_round(case, tally, of).estimate(self.plan)
    }

    /// The estimate over rounds of a figure of one case, of all slices; rounds without it are
    /// passed over.
    pub(super) fn estimate(
        &self,
        case: usize,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Estimate> {
        let figures = self.of(case).iter().filter_map(|sample| Some((sample.round, of(sample)?)));
        figures.collect::<ByRound>().estimate(self.plan)
    }

    /// The estimate over rounds of a figure of several cases together; `of` is given their samples
    /// of one round. Only rounds count in which each of them was measured.
    pub(super) fn estimate_together(
        &self,
        cases: &[usize],
        of: impl Fn(&[&Sample]) -> Option<f64>,
    ) -> Option<Estimate> {
        let together = |first: &&Sample| {
            let in_round = |case: &usize| self.of(*case).iter().find(|s| s.round == first.round);
            let samples: Option<Vec<_>> =
                cases.iter().map(|case| in_round(case).copied()).collect();
            Some((first.round, of(&samples?)?))
        };
        let figures = self.of(*cases.first()?).iter().filter_map(together);
        figures.collect::<ByRound>().estimate(self.plan)
    }
}

/// The figure that stands for a case: the tally that it is of, and how it is taken of a sample.
pub(super) struct Headline {
    tally: &'static str,
    pub(super) figure: fn(&Sample) -> Option<f64>,
    in_ticks: bool,
}

pub(super) fn headline(trial: &Trial) -> Headline {
    let of = |tally, figure, in_ticks| Headline { tally, figure, in_ticks };
    match trial {
        // Not the single call: less the empty interval, a short one is nothing, give or take a step
        // of the counter, and no number of rounds narrows that to a share of itself.
        Trial::Call { .. } | Trial::TwoProcesses => of(BATCH_TICKS, overhead::in_a_row, true),
        Trial::Loop { .. } => of(BATCH_TICKS, overhead::net_of_loop, true),
        Trial::Primes { .. } => {
            of(THREADCLOCK_NS, |sample| primes::mean(sample, THREADCLOCK_NS), false)
        }
        Trial::Malloc { .. } => of(MALLOC_TICKS, malloc::net_median, true),
        // A count: of no tally.
        Trial::Sampling { .. } => of("", sampling::sleepers_share, false),
        Trial::Execution(_) => of(EXECUTION_NS, |sample| sample.median(EXECUTION_NS), false),
        // Not the share lost: it goes from nothing to much by what else the machine does.
        Trial::Gaps { .. } => of(GAP_TICKS, gaps::median_interrupt_ns, false),
        Trial::Wakeup(_) => of(LATE_NS, |sample| sample.median(LATE_NS), false),
    }
}

/// That figure in nanoseconds by the number of its round, of every case of a run; empty of a ring.
/// Of an execution it is the time of a lap, as the laps differ from run to run.
pub fn headlines_ns(run: &Run) -> Vec<ByRound> {
    let plan = with_shared_level(&run.header.plan, &run.samples);
    let by_case = ByCase::new(&plan, trials(&run.samples));
    (0..plan.cases.len()).map(|case| headline_ns(&by_case, case)).collect()
}

pub(super) fn headline_ns(by_case: &ByCase, case: usize) -> ByRound {
    let Some(Case { trial, .. }) = by_case.plan.trial(case) else { return ByRound::default() };
    let Headline { tally, figure, in_ticks } = headline(trial);
    let unit = |sample: &Sample| match trial {
        Trial::Execution(execution) => Some(1.0 / execution.laps as f64),
        _ if in_ticks => sample.ns_per_tick(),
        _ => Some(1.0),
    };
    by_case.by_round(case, tally, |sample| Some(figure(sample)? * unit(sample)?))
}

/// At which clock the figure of a trial is; none at no full speed, and of what waits for others or
/// for devices, which no clock of the core bounds.
pub(crate) fn clock_of(plan: &Plan, case: usize, figures: &ByRound) -> Option<AtClock> {
    let waits = matches!(
        plan.trial(case)?.trial,
        Trial::Wakeup(_) | Trial::Gaps { .. } | Trial::Sampling { .. } | Trial::Execution(_)
    );
    let is_told = !waits && figures.speed() == Speed::Full;
    let quantum_ns = figures.clock_ns.filter(|_| is_told)?;
    let known = plan.reference.known_of(case).elasticity;
    Some(AtClock { quantum_ns, elasticity: figures.elasticity, known })
}

/// What a trial is about, in nanoseconds; absent as long as it was not measured, and of one that is
/// about a share.
pub(crate) fn figure_ns(by_case: &ByCase, case: usize) -> Option<Estimate> {
    let is_share = matches!(by_case.plan.trial(case)?.trial, Trial::Sampling { .. });
    (!is_share).then(|| headline_ns(by_case, case).estimate(by_case.plan)).flatten()
}

/// The relative half-width of each trial that is still measured; none of one without an interval.
pub(crate) fn widths(by_case: &ByCase, failures: &[Failure]) -> impl Iterator<Item = Option<f64>> {
    let failed = move |case: usize| failures.iter().any(|failure| failure.case == case);
    by_case.trials().filter(move |(case, _)| !failed(*case)).map(move |(case, trial)| {
        let Headline { tally, figure, .. } = headline(trial);
        by_case.estimate_of_slices(case, tally, figure)?.relative_half_width()
    })
}

/// Whether the case lacks clean slices for that figure, though they were looked for.
pub(crate) fn lacks_clean(by_case: &ByCase, case: usize) -> bool {
    let tally = by_case.plan.trial(case).map_or("", |case| headline(&case.trial).tally);
    by_case.judged(case, tally).is_some_and(|slices| !slices.has_full_speed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_put_together_within_rounds_only() {
        let loops = ByRound::from_iter([(0, 54.0), (1, 64.0), (2, 74.0), (4, f64::NAN)]);
        let signals = ByRound::from_iter([(0, 12.0), (2, 22.0), (3, 1.0), (4, 1.0)]);
        let switch = ByRound::together([&loops, &signals], |[l, s]| (l - 2.0 * s) / 2.0);
        assert_eq!(switch.figures().collect::<Vec<_>>(), [(0, 15.0), (2, 15.0)]);
        let none = ByRound::together([&loops, &ByRound::default()], |[l, _]| l);
        assert_eq!(none, ByRound::default());
    }

    fn at_speed(rounds: u32, value: f64, clean_rounds: Option<u32>) -> ByRound {
        let clean = clean_rounds.map(|rounds| (0..rounds).map(move |round| (round, value)));
        ByRound::judged((0..rounds).map(|round| (round, 2.0 * value)), clean)
    }

    /// What is made of several is clean only where all are, and then of the clean figures only.
    #[test]
    fn the_worst_part_decides_the_speed() {
        let less = |one: &ByRound, other: &ByRound| ByRound::together([one, other], |[a, b]| a - b);
        let full = at_speed(10, 30.0, Some(9));
        let cases = [
            (at_speed(10, 10.0, Some(10)), Speed::Full, 9, 20.0),
            (at_speed(10, 10.0, None), Speed::Contended, 10, 40.0),
            // Too few rounds in which both are clean.
            (at_speed(10, 10.0, Some(7)), Speed::Contended, 10, 40.0),
            (ByRound::from_iter((0..10).map(|r| (r, 20.0))), Speed::NotJudged, 10, 40.0),
        ];
        for (other, speed, rounds, value) in cases {
            let both = less(&full, &other);
            let figures: Vec<(u32, f64)> = both.figures().collect();
            assert_eq!((both.speed(), figures.len()), (speed, rounds), "{other:?}");
            assert!(figures.iter().all(|(_, figure)| *figure == value), "{figures:?}");
            assert_eq!(both.of_all().count(), 10);
        }
    }
}
