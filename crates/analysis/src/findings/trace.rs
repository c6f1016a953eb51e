//! `trace`: how long tasks waited for a CPU, how often they were switched and why, and how busy the
//! busiest CPU was.
//!
//! Each figure is computed from a sum over parts, so that traces add up: the waits of two traces are
//! one histogram, and the p99 is that of all waits. Its error is that of a delete-one jackknife
//! over blocks of parts (Efron 1982): of parts with 100, 120 and 110 switches in a second each, the
//! rates without one of them are 115, 105 and 110 a second, and the error of 110 is
//! sqrt(2/3 x (5^2 + 5^2)) = 5.8 a second. That of a figure above zero is taken of its logarithm, so
//! that no interval reaches below zero. Blocks are of several parts where there are many, as
//! neighbouring seconds are alike, and of about the same time, as later parts are longer. Of five
//! traces or more on one side each is a block: the error then has the scatter between traces in it.

use std::collections::BTreeMap;

use rundata::plan::MIN_ROUNDS;
use rundata::trial::switches::{
    MIGRATIONS, PREEMPTED, PREEMPTED_BY_OTHERS, PREEMPTED_BY_OWN, PREEMPTED_BY_TRACER, SwitchTrace,
    TracedTasks, VOLUNTARY, WAIT_NS, YIELDED, is_busy_ns, preempted_by, preempter_of,
};
use rundata::trial::{Trial, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{FewFigures, mean};

use crate::estimate::Estimate;
use crate::measures::{Quantity, QuantityUnit};
use crate::table::Table;

/// Most blocks of parts that the error of a figure is taken from.
const MAX_BLOCKS: usize = 20;

/// Fewest traces on one side of a comparison that show how traces scatter.
const MIN_TRACES: u32 = 5;

/// Tasks that have a figure of their own where names are stored: those that preempted most often.
const MAX_PREEMPTERS: usize = 8;

/// A figure of a trace.
struct TraceMeasure {
    id: &'static str,
    title: &'static str,
    quantity: Quantity,
    /// Computes it from a sum over parts; `None` where these do not have it.
    compute: fn(&TraceSum) -> Option<f64>,
}

/// The figures of a trace in the order in which they are told.
const MEASURES: [TraceMeasure; 9] = [
    TraceMeasure {
        id: "wait-p50",
        title: "queue wait p50",
        quantity: Quantity::QueueWaitNs,
        compute: |sum| sum.waits.quantile_ns(0.5),
    },
    TraceMeasure {
        id: "wait-p99",
        title: "queue wait p99",
        quantity: Quantity::QueueWaitNs,
        compute: |sum| sum.waits.quantile_ns(0.99),
    },
    TraceMeasure {
        id: "voluntary",
        title: "voluntary",
        quantity: Quantity::PerSecond,
        compute: |sum| sum.per_second(VOLUNTARY),
    },
    TraceMeasure {
        id: "preempted",
        title: "preemptions",
        quantity: Quantity::PerSecond,
        compute: |sum| sum.per_second(PREEMPTED),
    },
    TraceMeasure {
        id: "yielded",
        title: "yields",
        quantity: Quantity::PerSecond,
        compute: |sum| sum.per_second(YIELDED),
    },
    TraceMeasure {
        id: "preempted-by-own",
        title: "preempted by own",
        quantity: Quantity::PerSecond,
        compute: |sum| sum.per_second(PREEMPTED_BY_OWN),
    },
    TraceMeasure {
        id: "preempted-by-others",
        title: "preempted by others",
        quantity: Quantity::PerSecond,
        compute: |sum| sum.per_second(PREEMPTED_BY_OTHERS),
    },
    TraceMeasure {
        id: "migrations",
        title: "migrations",
        quantity: Quantity::PerSecond,
        compute: |sum| sum.per_second(MIGRATIONS),
    },
    TraceMeasure {
        id: "busiest-cpu",
        title: "busiest CPU",
        quantity: Quantity::CpuShare,
        compute: TraceSum::busiest_cpu_share,
    },
];

/// A figure of a trace, with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFigure {
    /// Name of the figure, the same in every trace.
    pub id: String,
    /// The figure in words.
    pub title: String,
    /// The quantity, and so its unit.
    #[serde(rename = "of")]
    pub quantity: Quantity,
    /// The figure of all parts together. Its interval is by the scatter between parts, and absent
    /// with fewer than five.
    pub estimate: Estimate,
    /// The figure of each part that has it, by the number of the part.
    pub by_part: BTreeMap<u32, f64>,
}

/// Findings of `trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFindings {
    /// The tasks whose switches were counted.
    pub tasks: TracedTasks,
    /// For how long, in seconds.
    pub seconds: f64,
    /// Number of parts.
    pub parts: u32,
    /// The figures.
    pub figures: Vec<TraceFigure>,
}

impl TraceFindings {
    /// Returns the figure of this id.
    pub fn figure(&self, id: &str) -> Option<&TraceFigure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// Returns the switches a second of all kinds.
    pub fn switches_per_s(&self) -> f64 {
        let mut per_s = 0.0;
        for id in ["voluntary", "preempted", "yielded"] {
            per_s += self.figure(id).map_or(0.0, |figure| figure.estimate.value);
        }
        per_s
    }
}

/// Lengths of time by bins.
#[derive(Clone, Debug, Default, PartialEq)]
struct BinnedTimes(BTreeMap<TimeBin, u64>);

/// A bin of lengths of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TimeBin {
    /// Least time, in nanoseconds.
    from_ns: u64,
    /// First time above the bin, in nanoseconds; above `from_ns`.
    below_ns: u64,
}

impl TimeBin {
    /// Returns the bin that begins at `from_ns`. The last of all is taken to end at twice that.
    fn starting_at(from_ns: u64, bins_ns: &[u64]) -> Self {
        let next = bins_ns.partition_point(|begin_ns| *begin_ns <= from_ns);
        let below_ns = match bins_ns.get(next) {
            Some(below_ns) => *below_ns,
            None => from_ns.saturating_mul(2),
        };
        Self { from_ns, below_ns: below_ns.max(from_ns.saturating_add(1)) }
    }
}

impl BinnedTimes {
    /// Returns the time that a share of all does not exceed. Within a bin they are taken to be spread
    /// evenly, so that it is right to within the bin. `None` without times.
    fn quantile_ns(&self, share: f64) -> Option<f64> {
        let mut total = 0.0;
        // Times per nanosecond change where a bin begins and where it ends.
        let mut changes: BTreeMap<u64, f64> = BTreeMap::new();
        for (bin, count) in &self.0 {
            let density = *count as f64 / (bin.below_ns - bin.from_ns) as f64;
            *changes.entry(bin.from_ns).or_default() += density;
            *changes.entry(bin.below_ns).or_default() -= density;
            total += *count as f64;
        }
        let wanted = share * total;
        let (mut below, mut density, mut from_ns) = (0.0, 0.0, 0);
        for (to_ns, change) in changes {
            let within = density * (to_ns - from_ns) as f64;
            if density > 0.0 && below + within >= wanted {
                return Some(from_ns as f64 + (wanted - below) / density);
            }
            below += within;
            density += change;
            from_ns = to_ns;
        }
        // The last bin, short of it by a rounding error.
        if total > 0.0 { Some(from_ns as f64) } else { None }
    }

    fn add(&mut self, more: &Self) {
        for (bin, count) in &more.0 {
            let sum = self.0.entry(*bin).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

/// Counts and waits of one part of a trace, or of several.
#[derive(Clone, Debug, Default, PartialEq)]
struct TraceSum {
    elapsed_ns: u64,
    counts: BTreeMap<String, i64>,
    waits: BinnedTimes,
}

impl TraceSum {
    fn from_sample(sample: &TrialSample, trace: &SwitchTrace) -> Self {
        let mut waits = BTreeMap::new();
        if let Some(tally) = sample.tally(WAIT_NS) {
            for (from_ns, count) in tally.values() {
                // Only a damaged file has times below zero.
                let Ok(from_ns) = u64::try_from(from_ns) else { continue };
                waits.insert(TimeBin::starting_at(from_ns, &trace.bins_ns), count.into());
            }
        }
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for (name, count) in &sample.counts {
            // A file may have any name; of a task it is what a task may be called.
            let name = preempter_of(name).map_or(name.clone(), preempted_by);
            let sum = counts.entry(name).or_default();
            *sum = sum.saturating_add(*count);
        }
        Self { elapsed_ns: sample.elapsed_ns, counts, waits: BinnedTimes(waits) }
    }

    fn of_parts(parts: &[TracePart]) -> Self {
        let mut whole = Self::default();
        for part in parts {
            whole.add(&part.sum);
        }
        whole
    }

    fn add(&mut self, more: &Self) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(more.elapsed_ns);
        for (name, count) in &more.counts {
            let sum = self.counts.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.waits.add(&more.waits);
    }

    fn per_elapsed(&self, count: i64) -> Option<f64> {
        if self.elapsed_ns > 0 { Some(count as f64 / self.elapsed_ns as f64) } else { None }
    }

    fn per_second(&self, count: &str) -> Option<f64> {
        Some(1e9 * self.per_elapsed(*self.counts.get(count)?)?)
    }

    /// Returns the share of the time, from 0 to 1, that the busiest CPU was not idle.
    fn busiest_cpu_share(&self) -> Option<f64> {
        let mut most = None;
        for (name, busy_ns) in &self.counts {
            if is_busy_ns(name) {
                most = most.max(Some(*busy_ns));
            }
        }
        self.per_elapsed(most?)
    }
}

/// A part of a trace.
#[derive(Clone, Debug, PartialEq)]
struct TracePart {
    /// Number of its trace, from 0.
    trace: u32,
    number: u32,
    sum: TraceSum,
}

/// The parts of a trace, or of several that count as one.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParts {
    /// The tasks whose switches were counted.
    pub tasks: TracedTasks,
    confidence: f64,
    parts: Vec<TracePart>,
}

impl TraceParts {
    /// Takes the parts of a trace; `None` for another experiment.
    pub fn from_table(table: &Table) -> Option<Self> {
        let (number, case) = table.plan.trials().next()?;
        let Trial::Switches(trace) = &case.trial else { return None };
        let mut parts = Vec::new();
        for sample in table.trial_samples(number) {
            let sum = TraceSum::from_sample(sample, trace);
            parts.push(TracePart { trace: 0, number: sample.round, sum });
        }
        let confidence = table.plan.stopping.confidence;
        Some(Self { tasks: trace.tasks, confidence, parts })
    }

    /// Adds the parts of other traces, numbered behind those that are there.
    pub fn append(&mut self, more: &Self) {
        let (mut first, first_trace) = (0, self.traces());
        for part in &self.parts {
            first = first.max(part.number.saturating_add(1));
        }
        for part in &more.parts {
            let number = first.saturating_add(part.number);
            let trace = first_trace.saturating_add(part.trace);
            self.parts.push(TracePart { trace, number, sum: part.sum.clone() });
        }
    }

    /// Returns the number of traces that have a part.
    fn traces(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.trace.saturating_add(1))
    }

    /// Returns whether there are enough traces for intervals by the scatter between these.
    pub(crate) fn show_scatter_of_traces(&self) -> bool {
        self.traces() >= MIN_TRACES
    }

    /// Returns how often tasks of each name preempted, by the names of these counts. Absent where names
    /// are not stored: where none is, although traced tasks were preempted.
    pub(crate) fn preempter_counts(&self) -> Option<BTreeMap<String, i64>> {
        let whole = TraceSum::of_parts(&self.parts);
        let mut counts = BTreeMap::new();
        for (name, count) in &whole.counts {
            if preempter_of(name).is_some() {
                counts.insert(name.clone(), *count);
            }
        }
        let count = |name: &str| whole.counts.get(name).copied().unwrap_or(0);
        let preempted = count(PREEMPTED).saturating_sub(count(PREEMPTED_BY_TRACER));
        if counts.is_empty() && preempted > 0 { None } else { Some(counts) }
    }

    /// Computes the findings, with a figure for each of the tasks that preempted most often.
    pub fn findings(&self) -> TraceFindings {
        let counts = self.preempter_counts().unwrap_or_default();
        self.findings_with(&most_frequent_preempters(&counts))
    }

    /// Computes the findings, with a figure for each of these counts of preemptions by tasks of a name.
    /// One that no part has is zero.
    pub(crate) fn findings_with(&self, preempters: &[String]) -> TraceFindings {
        let whole = TraceSum::of_parts(&self.parts);
        let mut figures = Vec::new();
        for TraceMeasure { id, title, quantity, compute } in MEASURES {
            figures.extend(self.figure(id, title, quantity, compute));
        }
        for count in preempters {
            let Some(name) = preempter_of(count) else { continue };
            let (id, title) = (format!("preempted-by:{name}"), format!("preempted by {name}"));
            figures.extend(self.figure(&id, &title, Quantity::PerSecond, |sum| {
                // A part in which it did not preempt does not name it.
                let count = sum.counts.get(count).copied().unwrap_or(0);
                Some(1e9 * sum.per_elapsed(count)?)
            }));
        }
        TraceFindings {
            tasks: self.tasks,
            seconds: whole.elapsed_ns as f64 / 1e9,
            parts: self.parts.len() as u32,
            figures,
        }
    }

    /// Returns a figure; `None` where no part has it.
    fn figure(
        &self,
        id: &str,
        title: &str,
        quantity: Quantity,
        compute: impl Fn(&TraceSum) -> Option<f64>,
    ) -> Option<TraceFigure> {
        let value = compute(&TraceSum::of_parts(&self.parts)).filter(|value| value.is_finite())?;
        let mut by_part = BTreeMap::new();
        for part in &self.parts {
            if let Some(value) = compute(&part.sum).filter(|value| value.is_finite()) {
                by_part.insert(part.number, value);
            }
        }
        let rounds = by_part.len() as u32;
        let mut estimate = if value > 0.0 {
            self.estimate_above_zero(value, rounds, compute)?
        } else {
            self.estimate(value, rounds, compute)?
        };
        if quantity.unit() == QuantityUnit::Share {
            // No share is above 1, but in a damaged file.
            estimate.high = estimate.high.map(|high| high.min(1.0).max(value));
        }
        let (id, title) = (id.to_string(), title.to_string());
        Some(TraceFigure { id, title, quantity, estimate, by_part })
    }

    /// Estimates a figure above zero by its logarithm. Where the figure is zero without one of the
    /// blocks, that has none: the interval then begins at zero.
    fn estimate_above_zero(
        &self,
        value: f64,
        rounds: u32,
        compute: impl Fn(&TraceSum) -> Option<f64>,
    ) -> Option<Estimate> {
        let of_logarithm = self.estimate(value.ln(), rounds, |sum| Some(compute(sum)?.ln()))?;
        if rounds < MIN_ROUNDS || of_logarithm.interval().is_some() {
            let found = of_logarithm.exp();
            // The exponential of a logarithm is not to the last digit what it was.
            let (low, high) = (found.low.map(|low| low.min(value)), found.high);
            let high = high.map(|high| high.max(value));
            return Some(Estimate { value, low, high, ..found });
        }
        let plain = self.estimate(value, rounds, |sum| compute(sum).or(Some(0.0)))?;
        Some(Estimate { low: plain.low.map(|_| 0.0), resolved: false, ..plain })
    }

    /// Estimates a figure of so many parts by a jackknife over blocks of them. There is no interval
    /// where the figure is not known without one of the blocks.
    fn estimate(
        &self,
        value: f64,
        rounds: u32,
        compute: impl Fn(&TraceSum) -> Option<f64>,
    ) -> Option<Estimate> {
        let bare = Estimate::over(&[value], MIN_ROUNDS, self.confidence, 0)?;
        let bare = Estimate { rounds, ..bare };
        if rounds < MIN_ROUNDS {
            return Some(bare);
        }
        let blocks = self.blocks();
        let mut without_one = Vec::new();
        for left_out in 0..blocks.len() {
            let mut others = TraceSum::default();
            for (number, block) in blocks.iter().enumerate() {
                if number != left_out {
                    others.add(block);
                }
            }
            without_one.extend(compute(&others).filter(|value| value.is_finite()));
        }
        if without_one.len() < blocks.len() {
            return Some(bare);
        }
        let Some(middle) = mean(&without_one) else { return Some(bare) };
        let (mut squares, count) = (0.0, without_one.len() as f64);
        for value in &without_one {
            squares += (value - middle).powi(2);
        }
        let standard_error = ((count - 1.0) / count * squares).sqrt();
        let freedom = count - 1.0;
        let figures = FewFigures { value, standard_error, freedom, rounds };
        Some(Estimate::of_parts(figures, self.confidence).unwrap_or(bare))
    }

    /// Returns the blocks of which one at a time is left out: the traces, where there are enough.
    fn blocks(&self) -> Vec<TraceSum> {
        if !self.show_scatter_of_traces() {
            return self.blocks_of_parts();
        }
        let mut traces = BTreeMap::<u32, TraceSum>::new();
        for part in &self.parts {
            traces.entry(part.trace).or_default().add(&part.sum);
        }
        traces.into_values().collect()
    }

    /// Adds neighbouring parts up to blocks of about the same time: a part belongs to the block in
    /// which its middle lies.
    fn blocks_of_parts(&self) -> Vec<TraceSum> {
        let count = self.parts.len();
        let most = count.div_ceil(count.div_ceil(MAX_BLOCKS).max(1)) as u128;
        let mut whole_ns = 0;
        for part in &self.parts {
            whole_ns += u128::from(part.sum.elapsed_ns);
        }
        let (mut blocks, mut begun_ns) = (BTreeMap::<u128, TraceSum>::new(), 0);
        for part in &self.parts {
            let elapsed_ns = u128::from(part.sum.elapsed_ns);
            let number = most * (2 * begun_ns + elapsed_ns) / (2 * whole_ns).max(1);
            blocks.entry(number).or_default().add(&part.sum);
            begun_ns += elapsed_ns;
        }
        blocks.into_values().collect()
    }
}

/// Returns the names of the counts of those tasks that preempted most often.
pub(crate) fn most_frequent_preempters(counts: &BTreeMap<String, i64>) -> Vec<String> {
    let mut preempters = Vec::new();
    for (name, count) in counts {
        if *count > 0 {
            preempters.push((*count, name.clone()));
        }
    }
    // A stable sort: those with as many stay in the order of their names.
    preempters.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    preempters.truncate(MAX_PREEMPTERS);
    preempters.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
pub(crate) mod tests;
