//! The level of a CPU that nobody shares, the clock that most of a run had, and which ratio
//! unshared cores have by CPU model: the program's table, and what earlier launches saw.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::levels;
use rundata::case::Sample;
use rundata::machine::Machine;
use rundata::plan::{CLOCK_NS, Plan, Reference};
use rundata::reading::Reading;
use rundata::reference::{TOLERANCE, near};
use rundata::ring::{
    ADD_TURNS, ADDS_PER_TURN, MULTIPLIES_PER_TURN, MULTIPLY_TURNS, QUANTA_AROUND, Slices,
};

/// Quanta that must agree on a level before it is one.
const FEWEST_QUANTA: usize = 30;
/// The same as a share of all quanta.
const LEAST_SHARE: f64 = 0.01;

/// Cycles that a multiplication may take, and additions that may be made in a cycle, on any core:
/// what a ratio must lie between.
const MULTIPLY_CYCLES: (f64, f64) = (2.0, 6.0);
const ADDS_PER_CYCLE: (f64, f64) = (1.0, 12.0);

/// Cycles of a 64-bit multiplication on x86-64 (Agner Fog, instruction tables: 3 on Intel since
/// Nehalem and on AMD since Zen).
const X86_MULTIPLY_CYCLES: f64 = 3.0;

/// What a run leaves to later ones: what its plan had, and the level of its first CPU if enough
/// of its quanta were at it.
pub fn reference_after(plan: &Plan, samples: &[Sample]) -> Reference {
    let mut known = plan.reference.clone();
    if let Some(level) = levels(plan, samples).values().next().filter(|of| of.is_a_finding()) {
        let SpeedLevel { unshared_ratio, established, .. } = *level;
        known.learn(&Reference {
            unshared_ratio: Some(unshared_ratio),
            established,
            ..Reference::default()
        });
    }
    known
}

/// Returns by which level the parts of a run of several experiments are judged: that of all
/// samples, whether or not it would be told to later runs.
pub(crate) fn reference_of_whole(plan: &Plan, samples: &[Sample]) -> Reference {
    let mut known = plan.reference.clone();
    if let Some(level) = levels(plan, samples).values().next() {
        let SpeedLevel { unshared_ratio, established, .. } = *level;
        let unshared_ratio = Some(unshared_ratio);
        known.learn(&Reference { unshared_ratio, established, ..Reference::default() });
    }
    known
}

/// All quanta of a run on one CPU: latency-bound and throughput-bound loop in nanoseconds, and how
/// often both took so long. A run has millions of quanta and thousands of different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuantaCounts {
    /// Those around what was timed as the machine was found: they tell how it was.
    as_found: HashMap<(u32, u32), usize>,
    /// Those around what waited for a core that nobody shares: they tell no shares.
    waited: HashMap<(u32, u32), usize>,
    /// The second shortest latency-bound loop of each four in a row, where the clock stayed what it
    /// was.
    steady: HashMap<u32, usize>,
}

/// The second shortest of these latency-bound loops, where all are alike: the clock then is that of
/// this one, as what disturbs a quantum lengthens it.
fn steady_ns(latencies: impl Iterator<Item = u32>) -> Option<u32> {
    let mut sorted: Vec<u32> = latencies.collect();
    sorted.sort_unstable();
    let (least, most) = (f64::from(*sorted.first()?), f64::from(*sorted.last()?));
    sorted.get(1).copied().filter(|_| most - least <= TOLERANCE * least)
}

impl QuantaCounts {
    pub(super) fn add(&mut self, are_as_found: bool, quanta: impl Iterator<Item = (u32, u32)>) {
        let of = if are_as_found { &mut self.as_found } else { &mut self.waited };
        let all: Vec<(u32, u32)> = quanta.collect();
        all.iter().for_each(|quantum| *of.entry(*quantum).or_default() += 1);
        let latencies = |four: &[(u32, u32)]| steady_ns(four.iter().map(|(latency, _)| *latency));
        for latency in all.windows(QUANTA_AROUND).filter_map(latencies) {
            *self.steady.entry(latency).or_default() += 1;
        }
    }
}

/// A value and how often it came.
type Counted = (f64, usize);

fn sorted(values: impl Iterator<Item = Counted>) -> Vec<Counted> {
    let mut sorted: Vec<Counted> = values.collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    sorted
}

fn count<'a>(values: impl IntoIterator<Item = &'a Counted>) -> usize {
    values.into_iter().map(|(_, times)| times).sum()
}

/// The median of sorted values, each as often as it came.
fn median(sorted: &[Counted]) -> Option<f64> {
    let last = count(sorted).checked_sub(1)?;
    let (low, high) = (of_rank(sorted, last / 2)?, of_rank(sorted, last.div_ceil(2))?);
    Some(low + (high - low) / 2.0)
}

/// The value of that rank, from 0, among sorted values, each as often as it came.
fn of_rank(sorted: &[Counted], rank: usize) -> Option<f64> {
    let mut seen = 0;
    let reaches = |(_, times): &&Counted| {
        seen += times;
        seen > rank
    };
    sorted.iter().find(reaches).map(|(value, _)| *value)
}

/// Which clocks of the core count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockFilter {
    /// That which most of the run had: nothing says how times go with the clock.
    TheRuns,
    /// Any that stayed what it was.
    Any,
}

/// The level of an unshared core in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Level")]
pub struct SpeedLevel {
    /// Time of the latency-bound loop that most quanta have, in nanoseconds: the clock's mode.
    pub latency_ns: f64,
    /// The same without what disturbed single ones, which lengthens them: the middle of the second
    /// shortest of each four in a row. Times are told at this clock; where all of them tell how
    /// they go with it, that is the one that earlier launches mostly had.
    pub clock_ns: f64,
    /// k0, the unshared core's ratio of throughput-bound to latency-bound loop.
    pub unshared_ratio: f64,
    /// The ratio was known before the run from the program's table or from several launches; else
    /// it is the best level that enough quanta of this run agree on, which may be that of a shared
    /// core.
    pub established: bool,
    /// Share of the quanta in which both loops were slower or faster than that by one factor: the
    /// clock was another.
    pub other_clock_share: f64,
    /// Which clocks were seen: the latency-bound loop on an unshared core, from the 5th to the 95th
    /// percentile, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_range_ns: Option<(f64, f64)>,
    /// Share of those that took as long as an unshared core does, within 2 %.
    pub unshared_share: f64,
    /// Median ratio of the quanta that did not, over k0: 1.4 is 40 % more time. Absent without
    /// such.
    pub shared_slowdown: Option<f64>,
}

impl SpeedLevel {
    /// The level that these quanta speak of. Absent where too few agree on anything.
    pub fn from_quanta(quanta: &QuantaCounts, reference: &Reference) -> Option<Self> {
        let (as_found, steady) = (sound(&quanta.as_found), &quanta.steady);
        let all = [&as_found[..], &sound(&quanta.waited)].concat();
        let latency_ns =
            densest(&sorted(all.iter().map(|((latency, _), times)| (*latency, *times))))?;
        let (unshared_ratio, established) = level(&steady_ratios(&all, latency_ns), reference)?;
        // Of the machine as it was found: what waited saw more of the unshared core than there was.
        let quanta = if as_found.is_empty() { all } else { as_found };
        let ratios = steady_ratios(&quanta, latency_ns);
        let shared =
            ratios.partition_point(|(ratio, _)| *ratio <= unshared_ratio * (1.0 + TOLERANCE));
        let unshared = count(ratios.iter().filter(|(ratio, _)| near(*ratio, unshared_ratio)));
        // Both loops slower or faster by one factor: that is the clock. What slows one of them is
        // not.
        let is_other_clock = |(latency, throughput): (f64, f64)| {
            !near(latency, latency_ns) && near(throughput / latency, unshared_ratio)
        };
        let other_clock = quanta.iter().filter(|(quantum, _)| is_other_clock(*quantum));
        let times = |(_, times): &(_, usize)| *times;
        let (other_clock, all): (usize, usize) =
            (other_clock.map(times).sum(), quanta.iter().map(times).sum());
        let steady = steady.iter().map(|(latency, times)| (f64::from(*latency), *times));
        let clock_ns = median(&sorted(steady.filter(|(latency, _)| near(*latency, latency_ns))));
        Some(Self {
            latency_ns,
            clock_ns: clock_ns.unwrap_or(latency_ns),
            unshared_ratio,
            established,
            other_clock_share: other_clock as f64 / all as f64,
            latency_range_ns: latency_range(&quanta, unshared_ratio),
            unshared_share: unshared as f64 / count(&ratios).max(1) as f64,
            shared_slowdown: median(&ratios[shared..]).map(|ratio| ratio / unshared_ratio),
        })
    }

    /// Whether so many quanta were at it that it is one launch's finding.
    fn is_a_finding(&self) -> bool {
        self.unshared_share >= LEAST_LAUNCH_SHARE
    }

    /// Whether a quantum ran at the run's clock on a core that nobody shared. Each loop is held
    /// against its own level: an interrupt in the latency-bound loop makes the ratio too small.
    pub fn is_clean(&self, latency_ns: u32, throughput_ns: u32) -> bool {
        near(f64::from(latency_ns), self.latency_ns)
            && near(f64::from(throughput_ns), self.unshared_ratio * self.latency_ns)
    }

    /// Whether a latency quantum is that of the run's clock.
    pub(crate) fn is_its_clock(&self, latency_ns: f64) -> bool {
        near(latency_ns, self.latency_ns)
    }

    /// The latency quantum of what lies between two quanta, in nanoseconds, where the core was
    /// unshared in all of those `around` it, and at one of these clocks. It is the second shortest
    /// of them: what disturbs a quantum lengthens it.
    pub(super) fn quantum_ns(&self, clocks: ClockFilter, around: &[(u32, u32)]) -> Option<f64> {
        if clocks == ClockFilter::TheRuns {
            let is_clean = |quantum: &(u32, u32)| self.is_clean(quantum.0, quantum.1);
            return around.iter().all(is_clean).then_some(self.clock_ns);
        }
        let unshared = |(latency, throughput): &(u32, u32)| {
            *latency > 0 && near(f64::from(*throughput), self.unshared_ratio * f64::from(*latency))
        };
        let quantum_ns = steady_ns(around.iter().map(|(latency, _)| *latency));
        quantum_ns.filter(|_| around.iter().all(unshared)).map(f64::from)
    }

    /// The same of slice `index`; none where others ran on the CPU in it, as far as that was looked
    /// at.
    pub(crate) fn quantum_of_slice(
        &self,
        clocks: ClockFilter,
        slices: &Slices,
        index: usize,
    ) -> Option<f64> {
        let around = slices.around(index).filter(|_| slices.was_alone(index) != Some(false))?;
        self.quantum_ns(clocks, &around)
    }

    /// The core's clock in GHz, where the cycles of a multiplication are known: on x86-64.
    pub fn clock_ghz(&self, target: &str) -> Option<f64> {
        clock_ghz(self.clock_ns, target)
    }

    /// Whether the clock of a latency quantum was among those that were seen.
    pub(crate) fn has_seen(&self, quantum_ns: f64) -> bool {
        self.latency_range_ns.is_some_and(|(shortest_ns, longest_ns)| {
            let around = 1.0 + TOLERANCE;
            (shortest_ns / around..=longest_ns * around).contains(&quantum_ns)
        })
    }

    /// How the clocks that were seen differ from the one that figures are at, as shares of it: the
    /// slowest and the fastest. Absent where it stayed what it was, within 2 %: single quanta are
    /// disturbed by as much.
    pub fn clock_range(&self) -> Option<(f64, f64)> {
        let (shortest_ns, longest_ns) = self.latency_range_ns?;
        let moved = longest_ns > shortest_ns * (1.0 + TOLERANCE);
        moved.then(|| (self.clock_ns / longest_ns - 1.0, self.clock_ns / shortest_ns - 1.0))
    }
}

/// The clock of a latency quantum in GHz, where the cycles of a multiplication are known: on
/// x86-64.
pub fn clock_ghz(latency_ns: f64, target: &str) -> Option<f64> {
    let multiplies = f64::from(MULTIPLIES_PER_TURN * MULTIPLY_TURNS);
    let is_x86 = target.starts_with("x86_64");
    (is_x86 && latency_ns > 0.0).then(|| multiplies * X86_MULTIPLY_CYCLES / latency_ns)
}

/// From the 5th to the 95th percentile of the latency-bound loops on an unshared core.
fn latency_range(quanta: &[((f64, f64), usize)], unshared_ratio: f64) -> Option<(f64, f64)> {
    let is_unshared = |((latency, throughput), _): &&((f64, f64), usize)| {
        near(throughput / latency, unshared_ratio)
    };
    let unshared =
        quanta.iter().filter(is_unshared).map(|((latency, _), times)| (*latency, *times));
    let sorted = sorted(unshared);
    let last = count(&sorted).checked_sub(1)?;
    Some((of_rank(&sorted, last / 20)?, of_rank(&sorted, last - last / 20)?))
}

/// The quanta that have both times.
fn sound(quanta: &HashMap<(u32, u32), usize>) -> Vec<((f64, f64), usize)> {
    let times = quanta.iter().map(|((l, t), times)| ((f64::from(*l), f64::from(*t)), *times));
    times.filter(|((latency, throughput), _)| *latency > 0.0 && *throughput > 0.0).collect()
}

/// Of the quanta that had the run's clock, ascending.
fn steady_ratios(quanta: &[((f64, f64), usize)], latency_ns: f64) -> Vec<Counted> {
    let steady = quanta.iter().filter(|((latency, _), _)| near(*latency, latency_ns));
    sorted(steady.map(|((_, throughput), times)| (throughput / latency_ns, *times)))
}

/// k0 and whether it is established. What was known stands, unless enough quanta of this run agree
/// on a lower level: then what was known was a shared core's.
fn level(ratios: &[Counted], reference: &Reference) -> Option<(f64, bool)> {
    let own = lowest_level(ratios);
    match reference.unshared_ratio.filter(|ratio| *ratio > 0.0 && ratio.is_finite()) {
        None => own.map(|own| (own, false)),
        Some(known) => match own.filter(|own| *own < known * (1.0 - TOLERANCE)) {
            Some(lower) => Some((lower, false)),
            None => Some((known, reference.established)),
        },
    }
}

/// What the loops' instructions allow on any core.
fn possible_ratios() -> RangeInclusive<f64> {
    let per_turn =
        f64::from(ADDS_PER_TURN * ADD_TURNS) / f64::from(MULTIPLIES_PER_TURN * MULTIPLY_TURNS);
    per_turn / (ADDS_PER_CYCLE.1 * MULTIPLY_CYCLES.1)
        ..=per_turn / (ADDS_PER_CYCLE.0 * MULTIPLY_CYCLES.0)
}

/// The lowest level that enough ratios, sorted, agree on, within what the loops' instructions
/// allow: the first peak of the density from below. Never the smallest ratio: that is an
/// interruption.
pub(super) fn lowest_level(ratios: &[Counted]) -> Option<f64> {
    let possible = possible_ratios();
    let from = ratios.partition_point(|(ratio, _)| ratio < possible.start());
    let to = ratios.partition_point(|(ratio, _)| ratio <= possible.end());
    let sorted = &ratios[from..to.max(from)];
    let fewest = ((count(sorted) as f64 * LEAST_SHARE).ceil() as usize).max(FEWEST_QUANTA);
    let windows = windows(sorted);
    let is_peak = |start: &usize| {
        let (from, (_, count)) = (sorted[*start].0, windows[*start]);
        let rivals = sorted.partition_point(|(r, _)| *r < from / (1.0 + 2.0 * TOLERANCE))
            ..sorted.partition_point(|(r, _)| *r <= from * (1.0 + 2.0 * TOLERANCE));
        count >= fewest && windows[rivals].iter().all(|(_, rival)| *rival <= count)
    };
    let start = (0..sorted.len()).find(is_peak)?;
    median(&sorted[start..windows[start].0])
}

/// The middle of the window of 2 % that holds most values; they are sorted.
fn densest(sorted: &[Counted]) -> Option<f64> {
    let windows = windows(sorted);
    let start = (0..sorted.len()).rev().max_by_key(|start| windows[*start].1)?;
    let (end, count) = windows[start];
    (count >= FEWEST_QUANTA).then(|| median(&sorted[start..end]))?
}

/// Where the window of 2 % above each value ends, and how many values lie in it.
fn windows(sorted: &[Counted]) -> Vec<(usize, usize)> {
    let (mut end, mut count) = (0, 0);
    let window = |(value, times): &Counted| {
        while end < sorted.len() && sorted[end].0 <= value * (1.0 + TOLERANCE) {
            count += sorted[end].1;
            end += 1;
        }
        let window = (end, count);
        count -= times;
        window
    };
    sorted.iter().map(window).collect()
}

/// Launches that must agree on a level before it is established.
const FEWEST_LAUNCHES: u32 = 3;
/// Levels that are remembered of a CPU.
const MOST_LEVELS: usize = 8;
/// A level is one launch's finding only if so large a share of its quanta were at it.
const LEAST_LAUNCH_SHARE: f64 = 0.05;

/// k0 of CPU models, as [`cpu_key`] says them, that were measured while their cores were seen both
/// shared and not (docs/validation.md).
pub(super) const KNOWN: &[(&str, f64)] = &[
    // Zen 4 (EPYC 9004): four additions a cycle and three cycles a multiplication would be 1.
    ("AuthenticAMD family 25 model 17 stepping 1 microcode 0x1000065 capacity 1024", 1.010),
];

/// A clock that launches mostly had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenClock {
    /// Its latency quantum in nanoseconds.
    pub clock_ns: f64,
    /// Launches that had it.
    pub launches: u32,
}

/// Clocks within this share of each other are one.
const SAME_CLOCK: f64 = 0.005;
/// Clocks that are remembered of a CPU.
const MOST_CLOCKS: usize = 16;

/// A level that launches have seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenRatio {
    /// Ratio of throughput-bound to latency-bound loop.
    pub ratio: f64,
    /// Launches that saw it.
    pub launches: u32,
}

/// What launches have seen of CPUs: the file in the user's state directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeedFile {
    /// By [`cpu_key`].
    pub cpus: BTreeMap<String, Vec<SeenRatio>>,
    /// The clocks that launches mostly had, by [`cpu_key`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<String, Vec<SeenClock>>,
    /// k0 by [`cpu_key`], in the place of the program's table. No program writes it: it is for
    /// tests, which must not depend on the CPU that they run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<BTreeMap<String, f64>>,
}

impl SpeedFile {
    /// What is known of a CPU from the table and from launches: the lower of both. What no CPU can
    /// have is passed over.
    pub fn reference(&self, cpu: &str) -> Reference {
        let possible = possible_ratios();
        let table = match &self.table {
            Some(given) => given.get(cpu).copied(),
            None => KNOWN.iter().find(|(known, _)| *known == cpu).map(|(_, ratio)| *ratio),
        };
        let table = table.filter(|ratio| possible.contains(ratio));
        let seen = self.cpus.get(cpu).map_or(&[][..], Vec::as_slice);
        let is_sound = |level: &&SeenRatio| possible.contains(&level.ratio);
        let lowest = |fewest: u32| {
            let enough = seen.iter().filter(|level| level.launches >= fewest).filter(is_sound);
            enough.map(|level| level.ratio).reduce(f64::min)
        };
        let established = [table, lowest(FEWEST_LAUNCHES)].into_iter().flatten().reduce(f64::min);
        Reference {
            unshared_ratio: established.or_else(|| lowest(1)),
            established: established.is_some(),
            clock_ns: self.usual_clock_ns(cpu),
            ..Reference::default()
        }
    }

    /// The clock that most launches had.
    fn usual_clock_ns(&self, cpu: &str) -> Option<f64> {
        let is_sound = |of: &&SeenClock| CLOCK_NS.contains(&of.clock_ns);
        let seen = self.clocks.get(cpu)?.iter().filter(is_sound);
        seen.rev().max_by_key(|of| of.launches).map(|of| of.clock_ns)
    }

    fn learn_clock(&mut self, cpu: &str, clock_ns: f64) {
        let clocks = self.clocks.entry(cpu.to_string()).or_default();
        let is_same = |of: &&mut SeenClock| (of.clock_ns / clock_ns - 1.0).abs() <= SAME_CLOCK;
        match clocks.iter_mut().find(is_same) {
            Some(of) => of.launches = of.launches.saturating_add(1),
            // Before those that as few have seen: these are older.
            None => clocks.insert(0, SeenClock { clock_ns, launches: 1 }),
        }
        clocks.sort_by_key(|of| std::cmp::Reverse(of.launches));
        clocks.truncate(MOST_CLOCKS);
    }

    /// Takes up the level of a launch. Levels only come to be known lower: one that a shared core
    /// may have had is forgotten when enough launches agree on a lower one. Says whether anything
    /// is new.
    pub fn learn(&mut self, cpu: &str, level: &SpeedLevel) -> bool {
        if !level.is_a_finding() || !level.unshared_ratio.is_finite() {
            return false;
        }
        self.learn_clock(cpu, level.clock_ns);
        let levels = self.cpus.entry(cpu.to_string()).or_default();
        let is_same = |seen: &&mut SeenRatio| {
            (seen.ratio / level.unshared_ratio - 1.0).abs() <= TOLERANCE / 2.0
        };
        match levels.iter_mut().find(is_same) {
            Some(seen) => {
                // The mean of the launches, so that no single one decides.
                let launches = f64::from(seen.launches.min(20));
                seen.ratio = (seen.ratio * launches + level.unshared_ratio) / (launches + 1.0);
                seen.launches = seen.launches.saturating_add(1);
            }
            None => levels.push(SeenRatio { ratio: level.unshared_ratio, launches: 1 }),
        }
        levels.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let established = levels.iter().position(|seen| seen.launches >= FEWEST_LAUNCHES);
        levels.truncate(established.map_or(MOST_LEVELS, |first| first + 1));
        true
    }
}

/// A CPU's model as the table and the file name it: vendor, family, model, stepping and microcode,
/// and of machines with several kinds of cores the kind's relative capacity. Absent where the
/// vendor is not known.
pub fn cpu_key(machine: &Machine, cpu: u32) -> Option<String> {
    let models = machine.cpu.models.known()?;
    let model = models.iter().find(|model| model.cpus.contains(cpu)).or_else(|| models.first())?;
    let part = |reading: &Reading<String>| {
        reading.known().map_or_else(|| "?".to_string(), |text| text.trim().to_string())
    };
    let topology = machine.cpu.topology.known().into_iter().flatten().find(|one| one.cpu == cpu);
    let capacity = topology.and_then(|one| one.capacity.known());
    Some(format!(
        "{} family {} model {} stepping {} microcode {}{}",
        model.vendor.known()?,
        part(&model.family),
        part(&model.model),
        part(&model.stepping),
        part(&model.microcode),
        capacity.map(|capacity| format!(" capacity {capacity}")).unwrap_or_default()
    ))
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
            let ratios = |all: &[Counted]| -> Vec<Counted> {
                all.iter().map(|(value, times)| (value / 5900.0, *times)).collect()
            };
            prop_assert_eq!(lowest_level(&ratios(&counted)), lowest_level(&ratios(&single)));
        }
    }
}
