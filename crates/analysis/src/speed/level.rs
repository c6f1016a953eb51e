//! The level of a CPU that nobody shares, the clock that most of a run had, and which ratio
//! unshared cores have by CPU model: the program's table, and what earlier launches saw.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use rundata::case::Sample;
use rundata::machine::Machine;
use rundata::plan::{LATENCY_QUANTUM_NS, Plan, Reference};
use rundata::reading::Reading;
use rundata::reference::{TOLERANCE, is_near};
use rundata::ring::{
    ADD_TURNS, ADDS_PER_TURN, MULTIPLIES_PER_TURN, MULTIPLY_TURNS, QUANTA_AROUND, Slices,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::levels;

/// Smallest number of quanta that must agree on a level.
const FEWEST_QUANTA: usize = 30;
/// Smallest share of all quanta that must agree on a level.
const LEAST_SHARE: f64 = 0.01;

/// Fewest and most cycles of a multiplication on any core: with [`ADDS_PER_CYCLE`] the limits of a
/// ratio.
const MULTIPLY_CYCLES: (f64, f64) = (2.0, 6.0);
/// Fewest and most additions in a cycle on any core.
const ADDS_PER_CYCLE: (f64, f64) = (1.0, 12.0);

/// Cycles of a 64-bit multiplication on x86-64 (Agner Fog, instruction tables: 3 on Intel since
/// Nehalem and on AMD since Zen).
const X86_MULTIPLY_CYCLES: f64 = 3.0;

/// Returns the reference that a run leaves to later ones: that of its plan, and the level of its
/// first CPU if enough of its quanta were at it.
pub fn reference_after(plan: &Plan, samples: &[Sample]) -> Reference {
    let mut known = plan.reference.clone();
    if let Some(level) = levels(plan, samples).values().next().filter(|level| level.is_reliable()) {
        let SpeedLevel { unshared_ratio, established, .. } = *level;
        known.learn(&Reference {
            unshared_ratio: Some(unshared_ratio),
            established,
            ..Reference::default()
        });
    }
    known
}

/// Returns the reference by which the parts of a run of several experiments are judged: the level of
/// all samples, whether or not it is good enough for later runs.
pub(crate) fn reference_of_whole(plan: &Plan, samples: &[Sample]) -> Reference {
    let mut known = plan.reference.clone();
    if let Some(level) = levels(plan, samples).values().next() {
        let SpeedLevel { unshared_ratio, established, .. } = *level;
        let unshared_ratio = Some(unshared_ratio);
        known.learn(&Reference { unshared_ratio, established, ..Reference::default() });
    }
    known
}

/// Quanta of a run on one CPU, counted by the times of the latency-bound and the
/// throughput-bound loop in nanoseconds. A run has millions of quanta and thousands of different
/// ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuantaCounts {
    /// Quanta of batches that were timed at once: their shares describe the machine.
    as_found: HashMap<(u32, u32), usize>,
    /// Quanta of batches that waited for an unshared core: their shares describe the waiting.
    waited: HashMap<(u32, u32), usize>,
    /// The second shortest latency-bound loop of each four in a row, where the clock did not
    /// change.
    steady: HashMap<u32, usize>,
}

/// Returns the second shortest of these latency-bound loops if all are within 2 %. It tells the
/// clock best, as a disturbance lengthens a quantum.
fn steady_ns(latencies: impl Iterator<Item = u32>) -> Option<u32> {
    let mut sorted: Vec<u32> = latencies.collect();
    sorted.sort_unstable();
    let (least, most) = (f64::from(*sorted.first()?), f64::from(*sorted.last()?));
    if most - least <= TOLERANCE * least { sorted.get(1).copied() } else { None }
}

impl QuantaCounts {
    /// Adds the quanta around the slices of one batch.
    pub(super) fn add(&mut self, are_as_found: bool, quanta: impl Iterator<Item = (u32, u32)>) {
        let counts = if are_as_found { &mut self.as_found } else { &mut self.waited };
        let quanta: Vec<(u32, u32)> = quanta.collect();
        for quantum in &quanta {
            *counts.entry(*quantum).or_default() += 1;
        }
        for four in quanta.windows(QUANTA_AROUND) {
            if let Some(latency) = steady_ns(four.iter().map(|(latency, _)| *latency)) {
                *self.steady.entry(latency).or_default() += 1;
            }
        }
    }
}

/// A value and its count.
type CountedValue = (f64, usize);

/// Times of the latency-bound and the throughput-bound loop in nanoseconds, and the count of quanta
/// with both.
type CountedQuantum = ((f64, f64), usize);

fn sorted(values: impl Iterator<Item = CountedValue>) -> Vec<CountedValue> {
    let mut sorted: Vec<CountedValue> = values.collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    sorted
}

fn count<'a>(values: impl IntoIterator<Item = &'a CountedValue>) -> usize {
    let mut count = 0;
    for (_, times) in values {
        count += times;
    }
    count
}

/// Returns the times of the latency-bound loop.
fn latencies(quanta: &[CountedQuantum]) -> Vec<CountedValue> {
    sorted(quanta.iter().map(|((latency, _), times)| (*latency, *times)))
}

/// Returns the quanta that ran on an unshared core, at whatever clock.
fn unshared_quanta(quanta: &[CountedQuantum], unshared_ratio: f64) -> Vec<CountedQuantum> {
    let mut unshared = Vec::new();
    for quantum in quanta {
        let (latency, throughput) = quantum.0;
        if is_near(throughput / latency, unshared_ratio) {
            unshared.push(*quantum);
        }
    }
    unshared
}

/// Returns the median of sorted values by their counts.
fn median(sorted: &[CountedValue]) -> Option<f64> {
    let last = count(sorted).checked_sub(1)?;
    let (low, high) = (value_at(sorted, last / 2)?, value_at(sorted, last.div_ceil(2))?);
    Some(low + (high - low) / 2.0)
}

/// Returns the value of a rank, from 0, among sorted values by their counts.
fn value_at(sorted: &[CountedValue], rank: usize) -> Option<f64> {
    let mut counted = 0;
    for (value, times) in sorted {
        counted += times;
        if counted > rank {
            return Some(*value);
        }
    }
    None
}

/// The clocks of the core at which a slice may be clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockFilter {
    /// The one that most of the run had: the elasticity is not known.
    TheRuns,
    /// Any that did not change during the slice.
    Any,
}

/// The times of the reference loops on an unshared core in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Level")]
pub struct SpeedLevel {
    /// Time of the latency-bound loop that most quanta have, in nanoseconds: the clock's mode.
    pub latency_ns: f64,
    /// Time of that loop without disturbances, which lengthen it: the median of the second shortest of
    /// each four in a row. Times are converted to this clock. Where all elasticities are known it
    /// is the clock that earlier launches mostly had.
    pub clock_ns: f64,
    /// k0, the unshared core's ratio of throughput-bound to latency-bound loop.
    pub unshared_ratio: f64,
    /// Whether the ratio was known before the run, from the program's table or from several
    /// launches. Else it is the lowest one that enough quanta of this run agree on, which may be
    /// that of a shared core.
    pub established: bool,
    /// Share of the quanta at another clock: both loops were slower or faster by one factor.
    pub other_clock_share: f64,
    /// The clocks that were seen: the latency-bound loop on an unshared core, from the 5th to the
    /// 95th percentile, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_range_ns: Option<(f64, f64)>,
    /// Share of the quanta at the run's clock whose ratio is within 2 % of k0.
    pub unshared_share: f64,
    /// Median ratio of the quanta above that, over k0: 1.4 is 40 % more time. Absent without such
    /// quanta.
    pub shared_slowdown: Option<f64>,
}

impl SpeedLevel {
    /// Returns the level of these quanta; absent where too few agree on any.
    pub fn from_quanta(counts: &QuantaCounts, reference: &Reference) -> Option<Self> {
        let as_found = complete_quanta(&counts.as_found);
        let all = [&as_found[..], &complete_quanta(&counts.waited)].concat();
        let latency_ns = densest(&latencies(&all))?;
        let all_ratios = ratios_at_clock(&all, latency_ns);
        let (unshared_ratio, established) = unshared_ratio(&all_ratios, reference)?;
        // Shares are those of the machine as it was found: batches that waited for an unshared core
        // saw it more often than it was there.
        let quanta = if as_found.is_empty() { all } else { as_found };
        let ratios = ratios_at_clock(&quanta, latency_ns);
        let first_shared =
            ratios.partition_point(|(ratio, _)| *ratio <= unshared_ratio * (1.0 + TOLERANCE));
        let unshared = count(ratios.iter().filter(|(ratio, _)| is_near(*ratio, unshared_ratio)));
        // At another clock both loops change by one factor; a disturbance changes one of them.
        let total: usize = quanta.iter().map(|(_, times)| times).sum();
        let unshared_latencies = latencies(&unshared_quanta(&quanta, unshared_ratio));
        let mut other_clock = 0;
        for (latency, times) in &unshared_latencies {
            if !is_near(*latency, latency_ns) {
                other_clock += times;
            }
        }
        let mut steady = Vec::new();
        for (latency, times) in &counts.steady {
            if is_near(f64::from(*latency), latency_ns) {
                steady.push((f64::from(*latency), *times));
            }
        }
        let clock_ns = median(&sorted(steady.into_iter()));
        Some(Self {
            latency_ns,
            clock_ns: clock_ns.unwrap_or(latency_ns),
            unshared_ratio,
            established,
            other_clock_share: other_clock as f64 / total as f64,
            latency_range_ns: latency_range(&unshared_latencies),
            unshared_share: unshared as f64 / count(&ratios).max(1) as f64,
            shared_slowdown: median(&ratios[first_shared..]).map(|ratio| ratio / unshared_ratio),
        })
    }

    /// Returns whether enough quanta were at the level for it to count as this launch's.
    fn is_reliable(&self) -> bool {
        self.unshared_share >= LEAST_LAUNCH_SHARE
    }

    /// Returns whether a quantum ran at the run's clock on an unshared core. Each loop is compared
    /// with its own level: an interrupt in the latency-bound loop makes the ratio too small.
    pub fn is_clean(&self, latency_ns: u32, throughput_ns: u32) -> bool {
        is_near(f64::from(latency_ns), self.latency_ns)
            && is_near(f64::from(throughput_ns), self.unshared_ratio * self.latency_ns)
    }

    /// Returns whether a latency quantum is that of the run's clock.
    pub(crate) fn is_its_clock(&self, latency_ns: f64) -> bool {
        is_near(latency_ns, self.latency_ns)
    }

    /// Returns the latency quantum of a slice in nanoseconds, by the quanta `around` it: the second
    /// shortest, as a disturbance lengthens a quantum. Absent unless all of them ran on an unshared
    /// core and at one of these clocks.
    pub(super) fn quantum_ns(&self, clocks: ClockFilter, around: &[(u32, u32)]) -> Option<f64> {
        if clocks == ClockFilter::TheRuns {
            let are_clean =
                around.iter().all(|(latency, throughput)| self.is_clean(*latency, *throughput));
            return if are_clean { Some(self.clock_ns) } else { None };
        }
        let quantum_ns = steady_ns(around.iter().map(|(latency, _)| *latency))?;
        for (latency_ns, throughput_ns) in around {
            let unshared_ns = self.unshared_ratio * f64::from(*latency_ns);
            if *latency_ns == 0 || !is_near(f64::from(*throughput_ns), unshared_ns) {
                return None;
            }
        }
        Some(f64::from(quantum_ns))
    }

    /// Returns the latency quantum of slice `index`; absent also where competing tasks are known to
    /// have run in it.
    pub(crate) fn quantum_of_slice(
        &self,
        clocks: ClockFilter,
        slices: &Slices,
        index: usize,
    ) -> Option<f64> {
        if slices.was_alone(index) == Some(false) {
            return None;
        }
        self.quantum_ns(clocks, &slices.around(index)?)
    }

    /// Returns the core's clock in GHz, where the cycles of a multiplication are known: on x86-64.
    pub fn clock_ghz(&self, target: &str) -> Option<f64> {
        clock_ghz(self.clock_ns, target)
    }

    /// Returns whether the clock of a latency quantum was among those that were seen.
    pub(crate) fn has_seen(&self, quantum_ns: f64) -> bool {
        self.latency_range_ns.is_some_and(|(shortest_ns, longest_ns)| {
            let around = 1.0 + TOLERANCE;
            (shortest_ns / around..=longest_ns * around).contains(&quantum_ns)
        })
    }

    /// Returns the slowest and the fastest clock that were seen, as differences from the clock of
    /// the estimates relative to it. Absent within 2 %: single quanta are disturbed by as much.
    pub fn clock_range(&self) -> Option<(f64, f64)> {
        let (shortest_ns, longest_ns) = self.latency_range_ns?;
        if longest_ns > shortest_ns * (1.0 + TOLERANCE) {
            Some((self.clock_ns / longest_ns - 1.0, self.clock_ns / shortest_ns - 1.0))
        } else {
            None
        }
    }
}

/// Returns the clock of a latency quantum in GHz, where the cycles of a multiplication are known: on
/// x86-64.
pub fn clock_ghz(latency_ns: f64, target: &str) -> Option<f64> {
    let multiplies = f64::from(MULTIPLIES_PER_TURN * MULTIPLY_TURNS);
    if target.starts_with("x86_64") && latency_ns > 0.0 {
        Some(multiplies * X86_MULTIPLY_CYCLES / latency_ns)
    } else {
        None
    }
}

/// Returns the 5th and the 95th percentile of sorted times.
fn latency_range(sorted: &[CountedValue]) -> Option<(f64, f64)> {
    let last = count(sorted).checked_sub(1)?;
    Some((value_at(sorted, last / 20)?, value_at(sorted, last - last / 20)?))
}

/// Returns the quanta that have both times.
fn complete_quanta(counts: &HashMap<(u32, u32), usize>) -> Vec<CountedQuantum> {
    let mut complete = Vec::new();
    for ((latency, throughput), times) in counts {
        if *latency > 0 && *throughput > 0 {
            complete.push(((f64::from(*latency), f64::from(*throughput)), *times));
        }
    }
    complete
}

/// Returns the ratios of the quanta at a clock, ascending.
fn ratios_at_clock(quanta: &[CountedQuantum], latency_ns: f64) -> Vec<CountedValue> {
    let mut ratios = Vec::new();
    for ((latency, throughput), times) in quanta {
        if is_near(*latency, latency_ns) {
            ratios.push((throughput / latency_ns, *times));
        }
    }
    sorted(ratios.into_iter())
}

/// Returns k0 and whether it is established. A known k0 stands unless enough quanta of this run
/// agree on a lower level: then the known one was that of a shared core.
fn unshared_ratio(ratios: &[CountedValue], reference: &Reference) -> Option<(f64, bool)> {
    let lowest = lowest_level(ratios);
    let known = match reference.unshared_ratio {
        Some(ratio) if ratio > 0.0 && ratio.is_finite() => ratio,
        _ => return Some((lowest?, false)),
    };
    match lowest {
        Some(lowest) if lowest < known * (1.0 - TOLERANCE) => Some((lowest, false)),
        _ => Some((known, reference.established)),
    }
}

/// Returns the ratios that the loops' instructions allow on any core.
fn possible_ratios() -> RangeInclusive<f64> {
    let per_turn =
        f64::from(ADDS_PER_TURN * ADD_TURNS) / f64::from(MULTIPLIES_PER_TURN * MULTIPLY_TURNS);
    per_turn / (ADDS_PER_CYCLE.1 * MULTIPLY_CYCLES.1)
        ..=per_turn / (ADDS_PER_CYCLE.0 * MULTIPLY_CYCLES.0)
}

/// Returns the lowest level that enough sorted ratios agree on, among the possible ones: the first
/// peak of the density from below. The smallest ratio itself would be an interruption.
pub(super) fn lowest_level(ratios: &[CountedValue]) -> Option<f64> {
    let possible = possible_ratios();
    let from = ratios.partition_point(|(ratio, _)| ratio < possible.start());
    let to = ratios.partition_point(|(ratio, _)| ratio <= possible.end());
    let sorted = &ratios[from..to.max(from)];
    let fewest = ((count(sorted) as f64 * LEAST_SHARE).ceil() as usize).max(FEWEST_QUANTA);
    let windows = windows(sorted);
    let reach = 1.0 + 2.0 * TOLERANCE;
    for (start, (end, count)) in windows.iter().enumerate() {
        let lowest = sorted[start].0;
        let first_rival = sorted.partition_point(|(ratio, _)| *ratio < lowest / reach);
        let end_of_rivals = sorted.partition_point(|(ratio, _)| *ratio <= lowest * reach);
        let rivals = &windows[first_rival..end_of_rivals];
        if *count >= fewest && rivals.iter().all(|(_, rival)| rival <= count) {
            return median(&sorted[start..*end]);
        }
    }
    None
}

/// Returns the median of the window of 2 % that holds most of the sorted values.
fn densest(sorted: &[CountedValue]) -> Option<f64> {
    let windows = windows(sorted);
    let start = (0..sorted.len()).rev().max_by_key(|start| windows[*start].1)?;
    let (end, count) = windows[start];
    if count >= FEWEST_QUANTA { median(&sorted[start..end]) } else { None }
}

/// Returns the end of the window of 2 % above each sorted value, and the count of values in it.
fn windows(sorted: &[CountedValue]) -> Vec<(usize, usize)> {
    let (mut end, mut count) = (0, 0);
    let mut windows = Vec::new();
    for (value, times) in sorted {
        while end < sorted.len() && sorted[end].0 <= value * (1.0 + TOLERANCE) {
            count += sorted[end].1;
            end += 1;
        }
        windows.push((end, count));
        count -= times;
    }
    windows
}

/// Smallest number of launches that must agree on a level before it is established.
const FEWEST_LAUNCHES: u32 = 3;
/// Largest number of levels that are stored of a CPU.
const MAX_LEVELS: usize = 8;
/// Smallest share of a launch's quanta that must be at a level for it to be stored.
const LEAST_LAUNCH_SHARE: f64 = 0.05;

/// k0 by [`cpu_key`], of CPU models whose cores were measured both shared and unshared
/// (docs/validation.md).
pub(super) const KNOWN_RATIOS: &[(&str, f64)] = &[
    // Zen 4 (EPYC 9004): four additions a cycle and three cycles a multiplication would be 1.
    ("AuthenticAMD family 25 model 17 stepping 1 microcode 0x1000065 capacity 1024", 1.010),
];

fn known_ratio(cpu: &str) -> Option<f64> {
    KNOWN_RATIOS.iter().find(|(known, _)| *known == cpu).map(|(_, ratio)| *ratio)
}

/// A clock that launches mostly had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenClock {
    /// The latency quantum in nanoseconds.
    pub clock_ns: f64,
    /// Launches that had it.
    pub launches: u32,
}

/// Largest relative difference of clocks that are stored as one.
const SAME_CLOCK: f64 = 0.005;
/// Largest number of clocks that are stored of a CPU.
const MAX_CLOCKS: usize = 16;

/// A ratio of an unshared core that launches have seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenRatio {
    /// Ratio of throughput-bound to latency-bound loop.
    pub ratio: f64,
    /// Launches that saw it.
    pub launches: u32,
}

/// Levels and clocks that launches have seen, by CPU: the file in the user's state directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeedFile {
    /// Ratios by [`cpu_key`].
    pub cpus: BTreeMap<String, Vec<SeenRatio>>,
    /// The clocks that launches mostly had, by [`cpu_key`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<String, Vec<SeenClock>>,
    /// k0 by [`cpu_key`], in place of the program's table. Only tests write it, as they must not
    /// depend on the CPU that they run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<BTreeMap<String, f64>>,
}

impl SpeedFile {
    /// Returns the reference of a CPU by the table and by launches: the lower of both. Ratios that
    /// no CPU can have are ignored.
    pub fn reference(&self, cpu: &str) -> Reference {
        let possible = possible_ratios();
        let in_table = match &self.table {
            Some(given) => given.get(cpu).copied(),
            None => known_ratio(cpu),
        };
        let mut established = self.lowest_ratio(cpu, FEWEST_LAUNCHES);
        if let Some(ratio) = in_table.filter(|ratio| possible.contains(ratio)) {
            established = Some(established.map_or(ratio, |seen| ratio.min(seen)));
        }
        Reference {
            unshared_ratio: established.or_else(|| self.lowest_ratio(cpu, 1)),
            established: established.is_some(),
            clock_ns: self.usual_clock_ns(cpu),
            ..Reference::default()
        }
    }

    /// Returns the lowest possible ratio that so many launches have seen.
    fn lowest_ratio(&self, cpu: &str, fewest_launches: u32) -> Option<f64> {
        let possible = possible_ratios();
        let mut lowest: Option<f64> = None;
        for seen in self.cpus.get(cpu)? {
            if seen.launches >= fewest_launches && possible.contains(&seen.ratio) {
                lowest = Some(lowest.map_or(seen.ratio, |lowest| lowest.min(seen.ratio)));
            }
        }
        lowest
    }

    /// Returns the clock that most launches had; of several the one that is stored first.
    fn usual_clock_ns(&self, cpu: &str) -> Option<f64> {
        let clocks = self.clocks.get(cpu)?.iter();
        let possible = clocks.filter(|seen| LATENCY_QUANTUM_NS.contains(&seen.clock_ns));
        let usual = possible.min_by_key(|seen| Reverse(seen.launches))?;
        Some(usual.clock_ns)
    }

    fn learn_clock(&mut self, cpu: &str, clock_ns: f64) {
        let clocks = self.clocks.entry(cpu.to_string()).or_default();
        let same =
            clocks.iter_mut().find(|seen| (seen.clock_ns / clock_ns - 1.0).abs() <= SAME_CLOCK);
        match same {
            Some(seen) => seen.launches = seen.launches.saturating_add(1),
            // Before those that as few launches have seen: these are older.
            None => clocks.insert(0, SeenClock { clock_ns, launches: 1 }),
        }
        clocks.sort_by_key(|seen| Reverse(seen.launches));
        clocks.truncate(MAX_CLOCKS);
    }

    /// Adds the level of a launch, and returns whether anything changed. Stored levels only become
    /// lower: that of a shared core is dropped when enough launches agree on a lower one.
    pub fn learn(&mut self, cpu: &str, level: &SpeedLevel) -> bool {
        if !level.is_reliable() || !level.unshared_ratio.is_finite() {
            return false;
        }
        self.learn_clock(cpu, level.clock_ns);
        let levels = self.cpus.entry(cpu.to_string()).or_default();
        let same = levels
            .iter_mut()
            .find(|seen| (seen.ratio / level.unshared_ratio - 1.0).abs() <= TOLERANCE / 2.0);
        match same {
            Some(seen) => {
                // The mean of the launches, so that no single one decides.
                let launches = f64::from(seen.launches.min(20));
                seen.ratio = (seen.ratio * launches + level.unshared_ratio) / (launches + 1.0);
                seen.launches = seen.launches.saturating_add(1);
            }
            None => levels.push(SeenRatio { ratio: level.unshared_ratio, launches: 1 }),
        }
        levels.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        match levels.iter().position(|seen| seen.launches >= FEWEST_LAUNCHES) {
            Some(established) => levels.truncate(established + 1),
            None => levels.truncate(MAX_LEVELS),
        }
        true
    }
}

/// Returns the name of a CPU's model in the table and the file: vendor, family, model, stepping and
/// microcode, and on machines with several kinds of cores the kind's relative capacity. Absent where
/// the vendor is not known.
pub fn cpu_key(machine: &Machine, cpu: u32) -> Option<String> {
    let models = machine.cpu.models.known()?;
    let model = models.iter().find(|model| model.cpus.contains(cpu)).or_else(|| models.first())?;
    let mut capacity = String::new();
    if let Some(topology) = machine.cpu.topology.known() {
        if let Some(found) = topology.iter().find(|place| place.cpu == cpu) {
            if let Some(known) = found.capacity.known() {
                capacity = format!(" capacity {known}");
            }
        }
    }
    Some(format!(
        "{} family {} model {} stepping {} microcode {}{capacity}",
        model.vendor.known()?,
        text_or_unknown(&model.family),
        text_or_unknown(&model.model),
        text_or_unknown(&model.stepping),
        text_or_unknown(&model.microcode),
    ))
}

fn text_or_unknown(reading: &Reading<String>) -> &str {
    match reading.known() {
        Some(text) => text.trim(),
        None => "?",
    }
}

/// A level and its quanta, for tests.
#[cfg(test)]
pub(super) mod made_up {
    use super::SpeedLevel;

    pub(crate) const ALONE: (u32, u32) = (6000, 6060);
    pub(crate) const SHARED: (u32, u32) = (6000, 8400);

    pub(crate) fn level() -> SpeedLevel {
        SpeedLevel {
            latency_ns: 6000.0,
            clock_ns: 6000.0,
            unshared_ratio: 1.01,
            established: true,
            other_clock_share: 0.0,
            latency_range_ns: None,
            unshared_share: 1.0,
            shared_slowdown: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What came often is counted as often: as if each stood in the list by itself.
        #[test]
        fn counts_say_what_single_values_do(values in prop::collection::vec(5800_u32..6200, 1..300)) {
            let single = sorted(values.iter().map(|value| (f64::from(*value), 1)));
            let mut counts = HashMap::new();
            values.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
            let counted = sorted(counts.into_iter().map(|(value, times)| (f64::from(value), times)));
            let plain: Vec<f64> = single.iter().map(|(value, _)| *value).collect();
            prop_assert_eq!(median(&counted), stats::median(&plain));
            prop_assert_eq!(densest(&counted), densest(&single));
            let ratios = |all: &[CountedValue]| -> Vec<CountedValue> {
                all.iter().map(|(value, times)| (value / 5900.0, *times)).collect()
            };
            prop_assert_eq!(lowest_level(&ratios(&counted)), lowest_level(&ratios(&single)));
        }
    }
}
