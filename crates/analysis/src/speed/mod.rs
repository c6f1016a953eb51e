//! The CPU's own speed: reference quanta around slices of what is timed, the level of an unshared
//! core, and the figures of the slices that ran at it.
//!
//! Data flows `Slices` (raw, in a sample) -> `Level` (of a run) -> clean slices ->
//! [`stats::PooledMedian`] (of a case). `docs/method.md`, "Full speed", has the rules.

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
use rundata::plan::FEWEST_ROUNDS;
pub use rundata::reference::TOLERANCE;
use rundata::ring::{InPieces, Slices, Triple, Triples};
#[cfg(test)]
pub(crate) use tests::{around, cut};
use triples::{clean_above_solos_ns, clean_parts};

/// Returns what the pieces of hops say that are clean at `level`.
fn clean_in_pieces(triples: &Triples, level: &SpeedLevel) -> InPieces {
    triples.clean_in_pieces(|(latency, throughput)| level.is_clean(latency, throughput))
}

/// Clean slices behind a figure at full speed.
pub const FEWEST_CLEAN: u32 = 30;
/// Share of the slices that must be clean: below it, those that seem clean are the luck of the
/// sampling.
pub const LEAST_SHARE: f64 = 0.05;

/// A slice that took this many times as long as the median of its worker's had something else in
/// it: another task's turn is longer than that, and no state of the core makes so much of a
/// difference.
const INTERRUPTED: f64 = 2.0;

/// Where more of a case's samples cannot be judged, what is left would be a choice of the short
/// ones.
const MOST_NOT_JUDGED: f64 = 0.1;

/// Where others ran in more of the slices, or had a turn near, they were there all the time: the
/// slices between do not count as undisturbed.
const MOSTLY: f64 = 0.5;

/// How many there are, by round.
type CountsByRound = BTreeMap<u32, u32>;
/// Levels of an unshared core, by the CPUs that quanta ran on.
pub type SpeedLevels = BTreeMap<Vec<u32>, SpeedLevel>;

/// The slices of one case, counted. Their figures are taken from the samples whenever they are
/// needed: of a large run they would be as large as it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseSlices {
    /// Clean slices.
    pub clean: CountsByRound,
    /// Slices that were judged.
    pub judged: u32,
    /// Those in which others ran on the CPU, or had a turn near.
    pub not_alone: u32,
    /// Those of batches that waited for nothing.
    pub as_found: u32,
    /// The clean ones of these.
    pub clean_as_found: u32,
    /// Those that would be, were the clock the run's: nothing says how times go with it.
    pub other_clock_as_found: u32,
    /// Samples of a ring whose slices were judged; not counted of trials, where one that was not is
    /// one too many.
    pub judged_samples: u32,
    /// Samples that have no slices, or too long ones.
    pub not_judged: u32,
    /// Clean slices in rows, where the round has such a row.
    pub clean_rows: CountsByRound,
    /// Clean slices of the rings of triples.
    pub clean_above: CountsByRound,
    /// Those of workers of which most were clean.
    pub clean_above_rows: CountsByRound,
    /// Slices of the rings of triples that were judged; 0 where solos are rings of their own.
    pub ring_slices: u32,
    /// Those of triples beside which others ran.
    pub ring_not_alone: u32,
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
    /// Those in which others ran on the CPU, or had a turn near.
    pub not_alone: u32,
    /// Slices of batches that were timed as the machine was found.
    pub as_found: u32,
    /// The clean ones of these.
    pub clean_as_found: u32,
    /// Those of these that would be clean, were the clock the run's.
    pub other_clock_as_found: u32,
}

impl CleanCounts {
    /// The counts of both.
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

    /// Share of all slices that are clean, those that were waited for included; absent where none
    /// was judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| f64::from(self.clean) / f64::from(self.judged))
    }

    /// Share of the slices in which others ran on the CPU, or had a turn near; absent where none
    /// was judged.
    pub fn not_alone_share(&self) -> Option<f64> {
        (self.judged > 0).then(|| f64::from(self.not_alone) / f64::from(self.judged))
    }

    /// Whether others were there all the time: in most slices.
    pub fn are_not_alone(&self) -> bool {
        self.not_alone_share().is_some_and(|share| share > MOSTLY)
    }

    /// Share of the slices that were clean as the machine was found: of all where none was timed
    /// so.
    pub fn share_as_found(&self) -> Option<f64> {
        match self.as_found {
            0 => self.share(),
            judged => Some(f64::from(self.clean_as_found) / f64::from(judged)),
        }
    }

    /// The same with those that another clock alone keeps from being clean: it is no disturbance.
    pub fn undisturbed_share(&self) -> Option<f64> {
        let other_clock = f64::from(self.other_clock_as_found) / f64::from(self.as_found.max(1));
        self.share_as_found().map(|share| share + other_clock)
    }
}

impl CaseSlices {
    /// How many slices there are, and of which kinds.
    pub fn clean_counts(&self) -> CleanCounts {
        let Self { judged, not_alone, as_found, clean_as_found, other_clock_as_found, .. } = *self;
        let clean = self.clean.values().sum();
        CleanCounts { judged, clean, not_alone, as_found, clean_as_found, other_clock_as_found }
    }

    /// Whether the quanta tell anything of this case: of nearly all of it. A few samples whose
    /// slices were all too long are left out, as any slice is that something else was in.
    pub fn is_judged(&self) -> bool {
        let samples = self.judged_samples.saturating_add(self.not_judged);
        self.judged > 0 && f64::from(self.not_judged) <= MOST_NOT_JUDGED * f64::from(samples)
    }

    /// Whether they tell of half of its samples or more.
    pub fn is_mostly_judged(&self) -> bool {
        self.judged_samples > 0 && self.not_judged <= self.judged_samples
    }

    /// Whether others were there all the time: they ran in most of its slices, or had a turn near.
    pub fn is_not_alone(&self) -> bool {
        self.clean_counts().are_not_alone()
    }

    /// The same of triples.
    pub fn is_not_alone_above(&self) -> bool {
        f64::from(self.ring_not_alone) > MOSTLY * f64::from(self.ring_slices)
    }

    /// Whether there are clean slices enough for a figure at full speed.
    pub fn has_full_speed(&self) -> bool {
        self.is_judged() && !self.is_not_alone() && are_enough(&self.clean, self.judged)
    }

    /// Whether full speed was seen in a few rounds: enough clean slices, in rows.
    pub fn has_few_rounds(&self) -> bool {
        let count: u32 = self.clean_rows.values().sum();
        self.is_judged() && count >= FEWEST_CLEAN
    }

    /// Like [`Self::has_few_rounds`], of triples: a worker has few slices, which count together.
    pub fn has_few_rounds_above(&self) -> bool {
        self.is_judged() && !self.clean_above_rows.is_empty()
    }

    /// The same of triples.
    pub fn has_full_speed_above(&self) -> bool {
        let alone = self.is_judged() && !self.is_not_alone_above();
        alone && are_enough(&self.clean_above, self.ring_slices)
    }

    /// Takes up all samples of a round.
    pub(crate) fn add(
        &mut self,
        case: &ring::Case,
        samples: &[&ring::Sample],
        level: Option<&SpeedLevel>,
        clocks: &CaseClocks,
    ) {
        for sample in samples {
            if let Some(triples) = sample.in_pieces() {
                let (parts, as_found) = triples.ring_parts();
                self.judged += parts;
                self.judged_samples += 1;
                self.as_found += as_found;
                self.ring_slices += parts;
                let not_alone = triples.ring_slices_beside_others();
                (self.not_alone, self.ring_not_alone) =
                    (self.not_alone + not_alone, self.ring_not_alone + not_alone);
                continue;
            }
            let Some(slices) = sample.judged_slices() else {
                self.not_judged += 1;
                continue;
            };
            let count = slices.elapsed_ns.len() as u32;
            self.judged += count;
            self.judged_samples += 1;
            self.not_alone += not_alone(case, sample, slices);
            self.as_found += if slices.are_as_found() { count } else { 0 };
            if let Some(triples) = &sample.triples {
                self.ring_slices += triples.ring_slices();
                self.ring_not_alone += triples.ring_slices_beside_others();
            }
        }
        let (Some(level), Some(first)) = (level, samples.first()) else { return };
        let above: Vec<CleanAbove> = clean_above_of(case, samples, level, clocks.above()).collect();
        let clean: u32 = above.iter().map(|worker| worker.clean).sum();
        if clean > 0 {
            self.clean_above.insert(first.round, clean);
        }
        let mostly = above.iter().filter(|worker| worker.is_mostly_clean());
        let clean: u32 = mostly.map(|worker| worker.clean).sum();
        if clean > 0 {
            self.clean_above_rows.insert(first.round, clean);
        }
        let used = used_clocks(clocks.hop.as_ref());
        for (sample, hops) in timed_slices(case, samples, level, used) {
            if sample.in_pieces().is_none() {
                let numbers: Vec<usize> = hops.iter().map(|(number, _)| *number).collect();
                let in_rows = in_rows(&numbers).len() as u32;
                if in_rows > 0 {
                    *self.clean_rows.entry(sample.round).or_default() += in_rows;
                }
            }
            let (switches, of) = self.switches.entry(sample.round).or_default();
            *switches = switches.saturating_add(sample.switches());
            *of = of.saturating_add(sample.hops);
            let (count, as_found) = match sample.in_pieces().map(|t| clean_in_pieces(t, level)) {
                Some(pieces) => (pieces.clean, pieces.clean_as_found),
                None if sample.is_as_found() => (hops.len() as u32, hops.len() as u32),
                None => (hops.len() as u32, 0),
            };
            *self.clean.entry(sample.round).or_default() += count;
            self.clean_as_found += as_found;
        }
        if clocks.hop.is_none() && level.clock_range().is_some() {
            let count = |clocks| {
                let as_found = samples.iter().copied().filter(|sample| sample.is_as_found());
                let hops = timed_hops(case, &as_found.collect::<Vec<_>>(), level, clocks);
                hops.iter().map(|(_, hops)| hops.len() as u32).sum::<u32>()
            };
            self.other_clock_as_found +=
                count(ClockFilter::Any).saturating_sub(count(ClockFilter::TheRuns));
        }
    }
}

/// How many of these slices of a sample others ran in, or had a turn near.
fn not_alone(case: &ring::Case, sample: &ring::Sample, slices: &Slices) -> u32 {
    if sample.is_shared_throughout(case) {
        return slices.elapsed_ns.len() as u32;
    }
    slices.beside_others().into_iter().filter(|beside| *beside).count() as u32
}

/// Times of a hop in the slices of a sample.
type SampleHops<'a> = (&'a ring::Sample, Vec<TimedAtClock>);

/// Times of a hop in the slices of a sample, each with the number of its slice.
type NumberedHops<'a> = (&'a ring::Sample, Vec<(usize, TimedAtClock)>);

/// The samples of a round that have clean slices, with the time of a hop in each of these, in
/// nanoseconds, at the run's clock. Slices at other clocks are among them, and brought to it, where
/// `clock` knows how.
pub(crate) fn clean_hops<'a>(
    case: &ring::Case,
    samples: &[&'a ring::Sample],
    level: &SpeedLevel,
    clock: Option<&ClockModel>,
) -> Vec<(&'a ring::Sample, Vec<f64>)> {
    let brought = |timed: TimedAtClock| clock.map_or(timed.1, |clock| clock.bring(timed));
    let all = timed_hops(case, samples, level, used_clocks(clock)).into_iter();
    all.map(|(sample, hops)| (sample, hops.into_iter().map(brought).collect())).collect()
}

/// Returns the times of a hop in the clean slices of a round that stand in rows, in nanoseconds, at
/// the run's clock.
pub(crate) fn clean_hops_in_rows(
    case: &ring::Case,
    samples: &[&ring::Sample],
    level: &SpeedLevel,
    clock: Option<&ClockModel>,
) -> Vec<f64> {
    let mut all = Vec::new();
    for (sample, hops) in timed_slices(case, samples, level, used_clocks(clock)) {
        if sample.in_pieces().is_some() {
            continue;
        }
        let numbers: Vec<usize> = hops.iter().map(|(number, _)| *number).collect();
        let rows = in_rows(&numbers);
        for (number, timed) in hops {
            if rows.binary_search(&number).is_ok() {
                all.push(clock.map_or(timed.1, |clock| clock.bring(timed)));
            }
        }
    }
    all
}

/// Slices at any clock count where it is known how their times go with it.
fn used_clocks(clock: Option<&ClockModel>) -> ClockFilter {
    if clock.is_some() { ClockFilter::Any } else { ClockFilter::TheRuns }
}

/// The same as they were timed, of slices at these clocks. What was interrupted is left out. Of
/// hops in pieces each sample has one time.
fn timed_hops<'a>(
    case: &ring::Case,
    samples: &[&'a ring::Sample],
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> Vec<SampleHops<'a>> {
    let all = timed_slices(case, samples, level, clocks).into_iter();
    all.map(|(sample, hops)| (sample, hops.into_iter().map(|(_, hop)| hop).collect())).collect()
}

/// Like [`timed_hops`], each time with the number of its slice in the sample, ascending.
fn timed_slices<'a>(
    case: &ring::Case,
    samples: &[&'a ring::Sample],
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> Vec<NumberedHops<'a>> {
    let hops = |sample: &&'a ring::Sample| {
        if let Some(triples) = sample.in_pieces().filter(|_| !is_disturbed(case, sample)) {
            let hop_ns = clean_in_pieces(triples, level).hop_ns?;
            return Some((*sample, vec![(0, (level.clock_ns, hop_ns))]));
        }
        let slices = judged(case, sample)?;
        let hop = |index: usize| {
            let hops = slices.laps_of(index, sample.laps).saturating_mul(case.members.into());
            (hops > 0).then(|| slices.elapsed_ns[index] as f64 / hops as f64)
        };
        let beside_others = slices.beside_others();
        let alone = |at: &usize| beside_others.get(*at) != Some(&true);
        let all = (0..slices.elapsed_ns.len()).filter(alone);
        let quantum_ns = |at| level.quantum_of_slice(clocks, slices, at);
        let hops: Vec<(usize, TimedAtClock)> =
            all.filter_map(|at| Some((at, (quantum_ns(at)?, hop(at)?)))).collect();
        (!hops.is_empty()).then_some((*sample, hops))
    };
    let mut all: Vec<NumberedHops> = samples.iter().filter_map(hops).collect();
    let together: Vec<f64> =
        all.iter().flat_map(|(_, hops)| hops).map(|(_, (_, hop))| *hop).collect();
    if let Some(longest) = longest_uninterrupted(&together) {
        all.iter_mut().for_each(|(_, hops)| hops.retain(|(_, (_, hop))| *hop <= longest));
    }
    all
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
    /// Whether its batch waited for nothing.
    pub(crate) is_as_found: bool,
}

/// Returns the slices of a round as they were. The last of a batch, which has what is left of it,
/// is none of them.
pub(crate) fn hops_as_they_were(case: &ring::Case, samples: &[&ring::Sample]) -> Vec<HopAsItWas> {
    let mut all = Vec::new();
    for sample in samples {
        let Some(slices) = sample.judged_slices() else { continue };
        let hops = slices.laps.saturating_mul(case.members.into()) as f64;
        let whole = slices.elapsed_ns.len().saturating_sub(1);
        for (number, elapsed_ns) in slices.elapsed_ns.iter().enumerate().take(whole) {
            let Some(around) = slices.around(number).filter(|_| hops > 0.0) else { continue };
            let ratio = |(latency, throughput): (u32, u32)| {
                f64::from(throughput) / f64::from(latency.max(1))
            };
            all.push(HopAsItWas {
                ns: *elapsed_ns as f64 / hops,
                cpu_ns: slices.cpu_ns.get(number).map(|ns| *ns as f64 / hops),
                sharing: around.into_iter().map(ratio).fold(0.0, f64::max),
                is_as_found: slices.are_as_found(),
            });
        }
    }
    all
}

/// What was counted of the event at this place of the plan in clean slices, at whatever clock, for
/// a hop; absent where there are none, and where nothing was counted.
pub(crate) fn clean_events(
    case: &ring::Case,
    samples: &[&ring::Sample],
    level: &SpeedLevel,
    event: usize,
) -> Option<f64> {
    let (mut counted, mut hops) = (0.0, 0.0);
    for sample in samples {
        let Some(slices) = judged(case, sample) else { continue };
        let Some(counts) = slices.counts_of(event) else { continue };
        let beside_others = slices.beside_others();
        let alone = |at: &usize| beside_others.get(*at) != Some(&true);
        let clean = |at: &usize| level.quantum_of_slice(ClockFilter::Any, slices, *at).is_some();
        for at in (0..counts.len()).filter(alone).filter(clean) {
            counted += counts[at] as f64;
            hops += slices.laps_of(at, sample.laps) as f64 * f64::from(case.members);
        }
    }
    (hops > 0.0).then(|| counted / hops)
}

/// What a hop takes above the members' own solos, in nanoseconds, in each clean slice of the rings
/// of triples; of hops in pieces each worker has one figure.
pub(crate) fn clean_above(
    case: &ring::Case,
    samples: &[&ring::Sample],
    level: &SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> Vec<f64> {
    clean_above_of(case, samples, level, clocks).flat_map(|worker| worker.figures_ns).collect()
}

/// Like [`clean_above`], of workers most of whose slices were clean.
pub(crate) fn mostly_clean_above(
    case: &ring::Case,
    samples: &[&ring::Sample],
    level: &SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> Vec<f64> {
    let all = clean_above_of(case, samples, level, clocks);
    all.filter(CleanAbove::is_mostly_clean).flat_map(|worker| worker.figures_ns).collect()
}

/// What a worker's triples give.
struct CleanAbove {
    /// What a hop takes above the members' solos, in nanoseconds.
    figures_ns: Vec<f64>,
    /// Clean slices or pieces behind them.
    clean: u32,
    /// Slices or pieces of all its rings.
    judged: u32,
}

impl CleanAbove {
    /// Whether full speed was no luck: half of its slices or more were clean.
    fn is_mostly_clean(&self) -> bool {
        self.clean > 0 && 2 * u64::from(self.clean) >= u64::from(self.judged)
    }
}

/// The same of each sample, with the number of clean slices or pieces behind its figures.
fn clean_above_of<'a>(
    case: &'a ring::Case,
    samples: &'a [&ring::Sample],
    level: &'a SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> impl Iterator<Item = CleanAbove> + 'a {
    sound_triples(case, samples).filter_map(move |(sample, triples)| {
        if triples.pieces.is_some() {
            let pieces = clean_in_pieces(triples, level);
            return pieces.above_ns.map(|above| CleanAbove {
                figures_ns: vec![above],
                clean: pieces.clean,
                judged: triples.ring_parts().0,
            });
        }
        sample.judged_slices()?;
        let figures_ns = clean_above_solos_ns(triples, level, clocks);
        let clean = figures_ns.len() as u32;
        Some(CleanAbove { figures_ns, clean, judged: triples.ring_slices() })
    })
}

/// The samples that have triples, and that nothing disturbed.
fn sound_triples<'a>(
    case: &'a ring::Case,
    samples: &'a [&ring::Sample],
) -> impl Iterator<Item = (&'a ring::Sample, &'a Triples)> {
    let sound = samples.iter().filter(|sample| !is_disturbed(case, sample));
    sound.filter_map(|sample| Some((*sample, sample.triples.as_deref()?)))
}

/// The slices of a sample that can be judged, and that nothing disturbed. Those of a sample whose
/// triples are in pieces are too long to be.
fn judged<'a>(case: &ring::Case, sample: &'a ring::Sample) -> Option<&'a Slices> {
    let short = sample.judged_slices().filter(|_| sample.in_pieces().is_none());
    short.filter(|_| !is_disturbed(case, sample))
}

/// Whether time was stolen from a sample, a member moved that was to stay, or others had the CPU
/// throughout.
fn is_disturbed(case: &ring::Case, sample: &ring::Sample) -> bool {
    let stolen = sample.steal_ns.is_some_and(|ns| ns > 0);
    stolen || sample.has_moved(case) || sample.is_shared_throughout(case)
}

fn are_enough(clean: &CountsByRound, judged: u32) -> bool {
    let count: u32 = clean.values().sum();
    let enough = count >= FEWEST_CLEAN && clean.len() >= FEWEST_ROUNDS as usize;
    enough && f64::from(count) >= LEAST_SHARE * f64::from(judged)
}

/// What lasts longer had something else in it, by the clean slices of one worker.
pub(crate) fn longest_uninterrupted(slices: &[f64]) -> Option<f64> {
    median(slices).map(|middle| INTERRUPTED * middle)
}

/// The CPUs that the quanta of a case run on: the leader's.
pub(crate) fn leader_cpus(case: &ring::Case) -> Vec<u32> {
    match &case.placement {
        Placement::Free { .. } => case.placement.cpus(),
        _ => case.placement.cpus_of(0),
    }
}

/// The level of each place whose quanta agree on one, by the slices that can be judged.
pub(crate) fn levels_of<'a>(
    plan: &Plan,
    rings: impl Iterator<Item = &'a ring::Sample>,
    trials: impl Iterator<Item = &'a trial::Sample>,
) -> SpeedLevels {
    let mut quanta: BTreeMap<Vec<u32>, QuantaCounts> = BTreeMap::new();
    for sample in rings {
        let Some(case) = plan.ring(sample.case) else { continue };
        let slices = sample.judged_slices();
        if slices.is_none() && sample.in_pieces().is_none() {
            continue;
        }
        let of = quanta.entry(leader_cpus(case)).or_default();
        slices.into_iter().for_each(|slices| of.add(slices.are_as_found(), slices.quanta()));
        if let Some(triples) = &sample.triples {
            let (as_found, waited) = triples.as_found_and_waited();
            of.add(true, as_found.iter().flat_map(Triple::quanta));
            of.add(false, waited.iter().flat_map(Triple::quanta));
        }
    }
    for sample in trials {
        let Some(case) = plan.trial(sample.case) else { continue };
        for sliced in sample.sliced.iter().filter(|sliced| sliced.can_be_judged()) {
            let of = quanta.entry(vec![case.cpu]).or_default();
            of.add(sliced.slices.are_as_found(), sliced.slices.quanta());
        }
    }
    let level = |(place, quanta)| Some((place, SpeedLevel::from_quanta(&quanta, &plan.reference)?));
    quanta.into_iter().filter_map(level).collect()
}

/// The level of an unshared core by the quanta of rings and trials together.
pub fn levels(plan: &Plan, samples: &[Sample]) -> SpeedLevels {
    levels_of(plan, rings(samples), trials(samples))
}
