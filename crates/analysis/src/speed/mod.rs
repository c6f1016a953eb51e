//! Full speed: which slices of a run were timed on an unshared core, and what a hop took in them.
//!
//! Two reference loops run before and after each slice of 0.25 ms. The latency-bound one follows the
//! core's clock, the throughput-bound one also who shares the core, so that their ratio tells the
//! two apart. Example with k0 = 1.01, the ratio of an unshared core, and a clock of 6,000 ns:
//!
//! - 6,000 and 6,060 ns: ratio 1.01, within 2 % of k0. The core is unshared, the slice clean.
//! - 6,000 and 8,400 ns: ratio 1.40. Another hardware thread shares the core; the slice is left out.
//! - 6,600 and 6,666 ns: ratio 1.01, but another clock. The slice counts if the elasticity of the
//!   case is known ([`crate::at_clock`]): its time is converted to the clock of 6,000 ns.
//!
//! In a case with 400 slices 30 must be clean, in 8 rounds, and at least 5 % (20). Otherwise the
//! estimate is of few rounds, or of the core as it was. Samples hold raw slices; [`SpeedLevel`] is
//! taken from the quanta of the run, and [`stats::PooledMedian`] from the clean slices of a case.
//! The rules are in `docs/method.md`, "Full speed".
//!
//! - `level`: k0 and the clock of a CPU, from all quanta of a run and from earlier launches.
//! - `clock`: the elasticity of a case, and times at several clocks converted to one.
//! - `triples`: working sets, whose solos walk the same memory; hops longer than a slice, in pieces.
//! - `rows`: clean slices that stand in rows, which tell few rounds at full speed from luck.

mod clock;
mod level;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod triples;

use std::collections::BTreeMap;

use rundata::case::{Sample, rings, trials};
use rundata::placement::Placement;
use rundata::plan::Plan;
use rundata::{ring, trial};
use stats::median;

pub(crate) use clock::{
    CaseClocks, ClockModel, TimedAtClock, case_clocks, elasticity_of_sum, is_known, known_power,
};
pub(crate) use level::ClockFilter;
pub(crate) use level::reference_of_whole;
pub use level::{QuantaCounts, SpeedFile, SpeedLevel, clock_ghz, cpu_key, reference_after};
pub(crate) use rows::in_rows;
use rundata::plan::MIN_CLEAN_ROUNDS;
pub use rundata::reference::TOLERANCE;
use rundata::ring::{PieceFigures, Slices, Triple, Triples};
#[cfg(test)]
pub(crate) use tests::{around, cut};
use triples::{clean_above_solos_ns, clean_parts};

/// Returns what the clean pieces of long hops give at `level`.
fn clean_in_pieces(triples: &Triples, level: &SpeedLevel) -> PieceFigures {
    triples.clean_in_pieces(|(latency, throughput)| level.is_clean(latency, throughput))
}

/// Clean slices behind a figure at full speed.
pub const FEWEST_CLEAN: u32 = 30;
/// Smallest share of the slices that must be clean: below it slices may pass by chance.
pub const LEAST_SHARE: f64 = 0.05;

/// Longest uninterrupted slice over the median of its round: another task's turn is longer than
/// that, and no state of the core makes such a difference.
const MAX_OVER_MEDIAN: f64 = 2.0;

/// Largest share of a case's samples that may not be judged: beyond it the rest would be a selection
/// of short ones.
const MAX_NOT_JUDGED: f64 = 0.1;

/// Share of the slices with competing tasks in or near them beyond which these were there all the
/// time: the slices between do not count as undisturbed.
const MAX_WITH_COMPETITORS: f64 = 0.5;

/// Counts by round.
type CountsByRound = BTreeMap<u32, u32>;
/// Levels of an unshared core, by the CPUs that quanta ran on.
pub type SpeedLevels = BTreeMap<Vec<u32>, SpeedLevel>;

/// Counts of the slices of one case. Their times are read from the samples when they are needed, as
/// a copy would be as large as the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseSlices {
    /// Clean slices.
    pub clean: CountsByRound,
    /// Slices that were judged.
    pub judged: u32,
    /// Slices with competing tasks in or near them.
    pub not_alone: u32,
    /// Slices of batches that were timed at once, without waiting for an unshared core.
    pub as_found: u32,
    /// Clean slices of these batches.
    pub clean_as_found: u32,
    /// Slices of these batches that only another clock keeps from being clean, where the elasticity
    /// is not known.
    pub other_clock_as_found: u32,
    /// Samples of a ring whose slices were judged; 0 for trials, which may have none that was not.
    pub judged_samples: u32,
    /// Samples without slices, or with too long ones.
    pub not_judged: u32,
    /// Clean slices in rows, of rounds that have a row.
    pub clean_rows: CountsByRound,
    /// Clean slices of the rings of triples.
    pub clean_above: CountsByRound,
    /// Clean slices of the rings of triples, of workers most of whose slices were clean.
    pub clean_above_rows: CountsByRound,
    /// Slices of the rings of triples that were judged; 0 where solos are rings of their own.
    pub ring_slices: u32,
    /// Slices of the rings of triples with competing tasks in or near them.
    pub ring_not_alone: u32,
    /// Switches and hops of samples with clean slices, by round.
    pub switches: BTreeMap<u32, (u64, u64)>,
}

/// Counts of slices of one or several cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanCounts {
    /// Slices that were judged.
    pub judged: u32,
    /// Clean slices.
    pub clean: u32,
    /// Slices with competing tasks in or near them.
    pub not_alone: u32,
    /// Slices of batches that were timed at once, without waiting for an unshared core.
    pub as_found: u32,
    /// Clean slices of these batches.
    pub clean_as_found: u32,
    /// Slices of these batches that only another clock keeps from being clean.
    pub other_clock_as_found: u32,
}

impl CleanCounts {
    /// Returns the sum of two counts.
    pub fn plus(self, other: Self) -> Self {
        Self {
            judged: self.judged + other.judged,
            clean: self.clean + other.clean,
            not_alone: self.not_alone + other.not_alone,
            as_found: self.as_found + other.as_found,
            clean_as_found: self.clean_as_found + other.clean_as_found,
            other_clock_as_found: self.other_clock_as_found + other.other_clock_as_found,
        }
    }

    /// Returns the share of clean slices, those that were waited for included; absent where no slice
    /// was judged.
    pub fn share(&self) -> Option<f64> {
        share_of_slices(self.clean, self.judged)
    }

    /// Returns the share of slices with competing tasks in or near them; absent where no slice was
    /// judged.
    pub fn not_alone_share(&self) -> Option<f64> {
        share_of_slices(self.not_alone, self.judged)
    }

    /// Returns whether competing tasks were there all the time: in most slices.
    pub fn are_not_alone(&self) -> bool {
        self.not_alone_share().is_some_and(|share| share > MAX_WITH_COMPETITORS)
    }

    /// Returns the share of clean slices among those timed without waiting; among all slices where
    /// every batch waited.
    pub fn share_as_found(&self) -> Option<f64> {
        share_of_slices(self.clean_as_found, self.as_found).or(self.share())
    }

    /// Like [`Self::share_as_found`], with the slices that only another clock keeps from being
    /// clean: a changed clock is no disturbance.
    pub fn undisturbed_share(&self) -> Option<f64> {
        let other_clock = f64::from(self.other_clock_as_found) / f64::from(self.as_found.max(1));
        Some(self.share_as_found()? + other_clock)
    }
}

fn share_of_slices(part: u32, slices: u32) -> Option<f64> {
    if slices > 0 { Some(f64::from(part) / f64::from(slices)) } else { None }
}

impl CaseSlices {
    /// Returns the counts of all rounds together.
    pub fn clean_counts(&self) -> CleanCounts {
        let Self { judged, not_alone, as_found, clean_as_found, other_clock_as_found, .. } = *self;
        let clean = self.clean.values().sum();
        CleanCounts { judged, clean, not_alone, as_found, clean_as_found, other_clock_as_found }
    }

    /// Returns whether the quanta judge nearly all samples of the case. A few samples whose slices
    /// were all too long are left out, like any interrupted slice.
    pub fn is_judged(&self) -> bool {
        let samples = self.judged_samples.saturating_add(self.not_judged);
        self.judged > 0 && f64::from(self.not_judged) <= MAX_NOT_JUDGED * f64::from(samples)
    }

    /// Returns whether half of the samples or more could be judged.
    pub fn is_mostly_judged(&self) -> bool {
        self.judged_samples > 0 && self.not_judged <= self.judged_samples
    }

    /// Returns whether competing tasks were there all the time: in or near most slices.
    pub fn is_not_alone(&self) -> bool {
        self.clean_counts().are_not_alone()
    }

    /// Like [`Self::is_not_alone`], for the rings of triples.
    pub fn is_not_alone_above(&self) -> bool {
        f64::from(self.ring_not_alone) > MAX_WITH_COMPETITORS * f64::from(self.ring_slices)
    }

    /// Returns whether there are enough clean slices for an estimate at full speed.
    pub fn has_full_speed(&self) -> bool {
        self.is_judged() && !self.is_not_alone() && are_enough(&self.clean, self.judged)
    }

    /// Returns whether full speed was seen in a few rounds: enough clean slices, in rows.
    pub fn has_few_rounds(&self) -> bool {
        let count: u32 = self.clean_rows.values().sum();
        self.is_judged() && count >= FEWEST_CLEAN
    }

    /// Like [`Self::has_few_rounds`], for triples: a worker has few slices, which count together.
    pub fn has_few_rounds_above(&self) -> bool {
        self.is_judged() && !self.clean_above_rows.is_empty()
    }

    /// Like [`Self::has_full_speed`], for triples.
    pub fn has_full_speed_above(&self) -> bool {
        let alone = self.is_judged() && !self.is_not_alone_above();
        alone && are_enough(&self.clean_above, self.ring_slices)
    }

    /// Adds all samples of a round.
    pub(crate) fn add(
        &mut self,
        case: &ring::RingCase,
        samples: &[&ring::RingSample],
        level: Option<&SpeedLevel>,
        clocks: &CaseClocks,
    ) {
        for sample in samples {
            self.add_judged(case, sample);
        }
        if let (Some(level), Some(first)) = (level, samples.first()) {
            self.add_clean_triples(case, samples, first.round, level, clocks);
            self.add_clean_slices(case, samples, level, clocks);
        }
    }

    /// Counts the slices of a sample that can be judged, whatever they show.
    fn add_judged(&mut self, case: &ring::RingCase, sample: &ring::RingSample) {
        if let Some(triples) = sample.in_pieces() {
            let (parts, as_found) = triples.ring_parts();
            let not_alone = triples.ring_slices_beside_others();
            self.judged += parts;
            self.judged_samples += 1;
            self.as_found += as_found;
            self.not_alone += not_alone;
            self.ring_slices += parts;
            self.ring_not_alone += not_alone;
            return;
        }
        let Some(slices) = sample.judged_slices() else {
            self.not_judged += 1;
            return;
        };
        let count = slices.elapsed_ns.len() as u32;
        self.judged += count;
        self.judged_samples += 1;
        self.not_alone += count_with_competitors(case, sample, slices);
        if slices.are_as_found() {
            self.as_found += count;
        }
        if let Some(triples) = &sample.triples {
            self.ring_slices += triples.ring_slices();
            self.ring_not_alone += triples.ring_slices_beside_others();
        }
    }

    /// Counts the clean slices of the rings of triples.
    fn add_clean_triples(
        &mut self,
        case: &ring::RingCase,
        samples: &[&ring::RingSample],
        round: u32,
        level: &SpeedLevel,
        clocks: &CaseClocks,
    ) {
        let (mut clean, mut clean_in_rows) = (0, 0);
        for worker in clean_workers(case, samples, level, clocks.above()) {
            clean += worker.clean;
            if worker.is_mostly_clean() {
                clean_in_rows += worker.clean;
            }
        }
        if clean > 0 {
            self.clean_above.insert(round, clean);
        }
        if clean_in_rows > 0 {
            self.clean_above_rows.insert(round, clean_in_rows);
        }
    }

    /// Counts the clean slices of the ring, in rows, by how they were timed and by what they switched.
    fn add_clean_slices(
        &mut self,
        case: &ring::RingCase,
        samples: &[&ring::RingSample],
        level: &SpeedLevel,
        clocks: &CaseClocks,
    ) {
        for (sample, hops) in clean_slices(case, samples, level, used_clocks(clocks.hop.as_ref())) {
            let mut clean = hops.len() as u32;
            let mut clean_as_found = if sample.is_as_found() { clean } else { 0 };
            if let Some(triples) = sample.in_pieces() {
                let pieces = clean_in_pieces(triples, level);
                clean = pieces.clean;
                clean_as_found = pieces.clean_as_found;
            } else {
                let in_rows = in_rows(&slice_numbers(&hops)).len() as u32;
                if in_rows > 0 {
                    *self.clean_rows.entry(sample.round).or_default() += in_rows;
                }
            }
            let (switches, hops) = self.switches.entry(sample.round).or_default();
            *switches = switches.saturating_add(sample.switches());
            *hops = hops.saturating_add(sample.hops);
            *self.clean.entry(sample.round).or_default() += clean;
            self.clean_as_found += clean_as_found;
        }
        if clocks.hop.is_none() && level.clock_range().is_some() {
            let mut as_found = samples.to_vec();
            as_found.retain(|sample| sample.is_as_found());
            let at_any = count_clean_slices(case, &as_found, level, ClockFilter::Any);
            let at_the_runs = count_clean_slices(case, &as_found, level, ClockFilter::TheRuns);
            self.other_clock_as_found += at_any.saturating_sub(at_the_runs);
        }
    }
}

fn count_clean_slices(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> u32 {
    let mut count = 0;
    for (_, hops) in clean_slices(case, samples, level, clocks) {
        count += hops.len() as u32;
    }
    count
}

/// Counts the slices of a sample with competing tasks in or near them.
fn count_with_competitors(
    case: &ring::RingCase,
    sample: &ring::RingSample,
    slices: &Slices,
) -> u32 {
    if sample.is_shared_throughout(case) {
        return slices.elapsed_ns.len() as u32;
    }
    slices.beside_others().into_iter().filter(|has_competitors| *has_competitors).count() as u32
}

/// A sample with the time of a hop in its clean slices, by the number of the slice.
type NumberedHops<'a> = (&'a ring::RingSample, Vec<(usize, TimedAtClock)>);

fn slice_numbers(hops: &[(usize, TimedAtClock)]) -> Vec<usize> {
    hops.iter().map(|(number, _)| *number).collect()
}

/// Returns the samples of a round that have clean slices, with the time of a hop in each of these,
/// in nanoseconds, at the run's clock. With `clock`, slices at other clocks count too, converted.
pub(crate) fn clean_hops<'a>(
    case: &ring::RingCase,
    samples: &[&'a ring::RingSample],
    level: &SpeedLevel,
    clock: Option<&ClockModel>,
) -> Vec<(&'a ring::RingSample, Vec<f64>)> {
    let mut clean = Vec::new();
    for (sample, hops) in clean_slices(case, samples, level, used_clocks(clock)) {
        let hops_ns = hops.into_iter().map(|(_, timed)| at_the_runs_clock(timed, clock)).collect();
        clean.push((sample, hops_ns));
    }
    clean
}

/// Returns the time of a hop in the clean slices of a round that stand in rows, in nanoseconds, at
/// the run's clock.
pub(crate) fn clean_hops_in_rows(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
    level: &SpeedLevel,
    clock: Option<&ClockModel>,
) -> Vec<f64> {
    let mut hops_ns = Vec::new();
    for (sample, hops) in clean_slices(case, samples, level, used_clocks(clock)) {
        if sample.in_pieces().is_some() {
            continue;
        }
        let rows = in_rows(&slice_numbers(&hops));
        for (number, timed) in hops {
            if rows.binary_search(&number).is_ok() {
                hops_ns.push(at_the_runs_clock(timed, clock));
            }
        }
    }
    hops_ns
}

/// Returns a time in nanoseconds at the run's clock; without a model it is at that clock already.
fn at_the_runs_clock(timed: TimedAtClock, clock: Option<&ClockModel>) -> f64 {
    match clock {
        Some(clock) => clock.convert(timed),
        None => timed.1,
    }
}

/// Slices at any clock count where the elasticity of their times is known.
fn used_clocks(clock: Option<&ClockModel>) -> ClockFilter {
    if clock.is_some() { ClockFilter::Any } else { ClockFilter::TheRuns }
}

/// Returns the clean slices of a round at these clocks, as they were timed, without interrupted
/// ones. Hops in pieces give one time a sample.
fn clean_slices<'a>(
    case: &ring::RingCase,
    samples: &[&'a ring::RingSample],
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> Vec<NumberedHops<'a>> {
    let mut clean: Vec<NumberedHops> = Vec::new();
    for sample in samples {
        let hops = clean_slices_of_sample(case, sample, level, clocks);
        if !hops.is_empty() {
            clean.push((sample, hops));
        }
    }
    let mut hops_ns = Vec::new();
    for (_, hops) in &clean {
        hops_ns.extend(hops.iter().map(|(_, (_, hop_ns))| *hop_ns));
    }
    if let Some(longest) = longest_uninterrupted(&hops_ns) {
        for (_, hops) in &mut clean {
            hops.retain(|(_, (_, hop_ns))| *hop_ns <= longest);
        }
    }
    clean
}

/// Returns the time of a hop in each clean slice of a sample, by the number of the slice, ascending.
fn clean_slices_of_sample(
    case: &ring::RingCase,
    sample: &ring::RingSample,
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> Vec<(usize, TimedAtClock)> {
    let mut clean = Vec::new();
    if is_disturbed(case, sample) {
        return clean;
    }
    if let Some(triples) = sample.in_pieces() {
        if let Some(hop_ns) = clean_in_pieces(triples, level).hop_ns {
            clean.push((0, (level.clock_ns, hop_ns)));
        }
        return clean;
    }
    let Some(slices) = sample.judged_slices() else { return clean };
    let has_competitors = slices.beside_others();
    for (number, elapsed_ns) in slices.elapsed_ns.iter().enumerate() {
        let laps = slices.laps_of(number, sample.laps);
        let hops = laps.saturating_mul(case.hops_per_lap());
        if hops == 0 || has_competitors.get(number) == Some(&true) {
            continue;
        }
        if let Some(quantum_ns) = level.quantum_of_slice(clocks, slices, number) {
            clean.push((number, (quantum_ns, *elapsed_ns as f64 / hops as f64)));
        }
    }
    clean
}

/// A slice of a ring as it was, whoever shared the core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HopAsItWas {
    /// Time of a hop, in nanoseconds.
    pub(crate) ns: f64,
    /// CPU time of all members for a hop, in nanoseconds; absent where it was not read.
    pub(crate) cpu_ns: Option<f64>,
    /// Largest ratio of throughput-bound to latency-bound loop among the quanta around it: it grows
    /// with what shares the core.
    pub(crate) sharing: f64,
    /// Whether its batch was timed at once, without waiting for an unshared core.
    pub(crate) is_as_found: bool,
}

/// Returns the slices of a round as they were, without the last of each batch, which is shorter.
pub(crate) fn hops_as_they_were(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
) -> Vec<HopAsItWas> {
    let mut as_they_were = Vec::new();
    for sample in samples {
        let Some(slices) = sample.judged_slices() else { continue };
        let hops = slices.laps.saturating_mul(case.hops_per_lap()) as f64;
        if hops == 0.0 {
            continue;
        }
        let whole = slices.elapsed_ns.len().saturating_sub(1);
        for (number, elapsed_ns) in slices.elapsed_ns[..whole].iter().enumerate() {
            let Some(quanta) = slices.around(number) else { continue };
            let mut sharing: f64 = 0.0;
            for (latency_ns, throughput_ns) in quanta {
                sharing = sharing.max(f64::from(throughput_ns) / f64::from(latency_ns.max(1)));
            }
            as_they_were.push(HopAsItWas {
                ns: *elapsed_ns as f64 / hops,
                cpu_ns: slices.cpu_ns.get(number).map(|ns| *ns as f64 / hops),
                sharing,
                is_as_found: slices.are_as_found(),
            });
        }
    }
    as_they_were
}

/// Returns how often the plan's event of this number was counted for a hop in clean slices, at
/// whatever clock; absent where no slice is clean, and where nothing was counted.
pub(crate) fn clean_events(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
    level: &SpeedLevel,
    event: usize,
) -> Option<f64> {
    let (mut counted, mut hops) = (0.0, 0.0);
    for sample in samples {
        let Some(slices) = judged_slices(case, sample) else { continue };
        let Some(counts) = slices.counts_of(event) else { continue };
        let has_competitors = slices.beside_others();
        for (number, count) in counts.iter().enumerate() {
            let quantum = level.quantum_of_slice(ClockFilter::Any, slices, number);
            if quantum.is_some() && has_competitors.get(number) != Some(&true) {
                counted += *count as f64;
                hops += slices.laps_of(number, sample.laps) as f64 * case.hops_per_lap() as f64;
            }
        }
    }
    if hops > 0.0 { Some(counted / hops) } else { None }
}

/// Returns what a hop takes above the members' own solos, in nanoseconds, in each clean slice of
/// the rings of triples; hops in pieces give one figure a worker.
pub(crate) fn clean_above(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
    level: &SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> Vec<f64> {
    let mut above_ns = Vec::new();
    for worker in clean_workers(case, samples, level, clocks) {
        above_ns.extend(worker.above_ns);
    }
    above_ns
}

/// Like [`clean_above`], of workers most of whose slices were clean.
pub(crate) fn mostly_clean_above(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
    level: &SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> Vec<f64> {
    let mut above_ns = Vec::new();
    for worker in clean_workers(case, samples, level, clocks) {
        if worker.is_mostly_clean() {
            above_ns.extend(worker.above_ns);
        }
    }
    above_ns
}

/// The clean rings of a worker's triples.
struct CleanWorker {
    /// Time of a hop above the members' solos, in nanoseconds.
    above_ns: Vec<f64>,
    /// Clean slices or pieces behind these times.
    clean: u32,
    /// Slices or pieces of all its rings.
    judged: u32,
}

impl CleanWorker {
    /// Returns whether half of the slices or more were clean: fewer may pass by chance.
    fn is_mostly_clean(&self) -> bool {
        self.clean > 0 && 2 * u64::from(self.clean) >= u64::from(self.judged)
    }
}

/// Returns the clean rings of each worker of a round whose samples have triples.
fn clean_workers(
    case: &ring::RingCase,
    samples: &[&ring::RingSample],
    level: &SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> Vec<CleanWorker> {
    let mut workers = Vec::new();
    for (sample, triples) in sound_triples(case, samples) {
        if triples.pieces.is_some() {
            let pieces = clean_in_pieces(triples, level);
            if let Some(above_ns) = pieces.above_ns {
                let (judged, _) = triples.ring_parts();
                let above_ns = vec![above_ns];
                workers.push(CleanWorker { above_ns, clean: pieces.clean, judged });
            }
        } else if sample.judged_slices().is_some() {
            let above_ns = clean_above_solos_ns(triples, level, clocks);
            let clean = above_ns.len() as u32;
            workers.push(CleanWorker { above_ns, clean, judged: triples.ring_slices() });
        }
    }
    workers
}

/// Returns the samples that have triples and were not disturbed.
fn sound_triples<'a>(
    case: &ring::RingCase,
    samples: &[&'a ring::RingSample],
) -> Vec<(&'a ring::RingSample, &'a Triples)> {
    let mut sound = Vec::new();
    for sample in samples {
        if let Some(triples) = sample.triples.as_deref() {
            if !is_disturbed(case, sample) {
                sound.push((*sample, triples));
            }
        }
    }
    sound
}

/// Returns the slices of a sample if they can be judged and were not disturbed. Those of a sample
/// whose triples are in pieces are too long to be judged.
fn judged_slices<'a>(case: &ring::RingCase, sample: &'a ring::RingSample) -> Option<&'a Slices> {
    let slices = sample.judged_slices()?;
    let is_short = sample.in_pieces().is_none();
    if is_short && !is_disturbed(case, sample) { Some(slices) } else { None }
}

/// Returns whether the hypervisor stole time from a sample, a member left its CPU, or competing
/// tasks had the CPU throughout.
fn is_disturbed(case: &ring::RingCase, sample: &ring::RingSample) -> bool {
    let was_stolen_from = sample.steal_ns.is_some_and(|ns| ns > 0);
    was_stolen_from || sample.has_moved(case) || sample.is_shared_throughout(case)
}

fn are_enough(clean: &CountsByRound, judged: u32) -> bool {
    let count: u32 = clean.values().sum();
    let are_many = count >= FEWEST_CLEAN && clean.len() >= MIN_CLEAN_ROUNDS as usize;
    are_many && f64::from(count) >= LEAST_SHARE * f64::from(judged)
}

/// Returns the longest time that counts as uninterrupted among the clean slices of a round.
pub(crate) fn longest_uninterrupted(slices: &[f64]) -> Option<f64> {
    Some(MAX_OVER_MEDIAN * median(slices)?)
}

/// Returns the CPUs that the quanta of a case run on: the leader's.
pub(crate) fn leader_cpus(case: &ring::RingCase) -> Vec<u32> {
    match &case.placement {
        Placement::Free { .. } => case.placement.cpus(),
        _ => case.placement.cpus_of(0),
    }
}

/// Returns the level of each set of CPUs whose quanta agree on one, by the slices that can be
/// judged.
pub(crate) fn levels_of<'a>(
    plan: &Plan,
    rings: impl Iterator<Item = &'a ring::RingSample>,
    trials: impl Iterator<Item = &'a trial::TrialSample>,
) -> SpeedLevels {
    let mut counts_by_cpus: BTreeMap<Vec<u32>, QuantaCounts> = BTreeMap::new();
    for sample in rings {
        let Some(case) = plan.ring(sample.case) else { continue };
        let slices = sample.judged_slices();
        if slices.is_none() && sample.in_pieces().is_none() {
            continue;
        }
        let counts = counts_by_cpus.entry(leader_cpus(case)).or_default();
        if let Some(slices) = slices {
            counts.add(slices.are_as_found(), slices.quanta());
        }
        if let Some(triples) = &sample.triples {
            let (as_found, waited) = triples.as_found_and_waited();
            counts.add(true, as_found.iter().flat_map(Triple::quanta));
            counts.add(false, waited.iter().flat_map(Triple::quanta));
        }
    }
    for sample in trials {
        let Some(case) = plan.trial(sample.case) else { continue };
        for sliced in &sample.sliced {
            if sliced.can_be_judged() {
                let counts = counts_by_cpus.entry(vec![case.cpu]).or_default();
                counts.add(sliced.slices.are_as_found(), sliced.slices.quanta());
            }
        }
    }
    let mut levels = SpeedLevels::new();
    for (cpus, counts) in counts_by_cpus {
        if let Some(level) = SpeedLevel::from_quanta(&counts, &plan.reference) {
            levels.insert(cpus, level);
        }
    }
    levels
}

/// Returns the level of an unshared core, by the quanta of rings and trials together.
pub fn levels(plan: &Plan, samples: &[Sample]) -> SpeedLevels {
    levels_of(plan, rings(samples), trials(samples))
}
