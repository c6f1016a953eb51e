//! What the runs of one command come to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::Switching;
use super::run::{Ending, Run};
use super::split::{CpuAccounting, Split};
use crate::estimate::Estimate;
use crate::plan::MINIMUM_ROUNDS;
use crate::reading::Reading;
use stats::{mad_sigma, median, median_interval};

/// A figure over the runs of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Its name, with its unit: `real_ns`.
    pub name: String,
    /// Median and mean with the median's interval; of one run its value.
    pub estimate: Estimate,
    /// Scatter of the runs: 1.4826 x median absolute deviation. Absent below two runs.
    pub spread: Option<f64>,
    /// Least of all runs.
    pub min: f64,
    /// Greatest of all runs.
    pub max: f64,
}

/// A run whose real time is unlike the others'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Its round.
    pub round: u32,
    /// Its real time in nanoseconds.
    pub real_ns: u64,
    /// The same over the median.
    pub times_median: f64,
}

/// The runs of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Which command, from 0: one without runs has no summary.
    pub number: usize,
    /// The command.
    pub command: Vec<String>,
    /// Runs that went to their end.
    pub runs: u32,
    /// How they ended, and how many did so.
    pub endings: Vec<(Ending, u32)>,
    /// All figures that could be read.
    pub figures: Vec<Figure>,
    /// Those that could not, by name, and why.
    pub missing: BTreeMap<String, String>,
    /// User and system time.
    pub split: Split,
    /// Runs whose real time lies more than 3.5 spreads from the median (Iglewicz and Hoaglin 1993).
    pub outliers: Vec<Outlier>,
    /// What its switches cost it, if that was asked for.
    pub switching: Option<Switching>,
}

/// Spreads from the median beyond which a run is an outlier.
const OUTLYING: f64 = 3.5;

/// Runs above which a median's interval is taken from the order of the figures alone.
const MOST_TO_RESAMPLE: usize = 100;

/// Where a figure comes from.
type Source = (&'static str, fn(&Run) -> Reading<u64>);

/// All figures of a run, in the order in which they are shown.
pub(super) const SOURCES: [Source; 23] = [
    ("real_ns", |run| Reading::Known(run.used.real_ns)),
    ("cpu_ns", |run| Reading::Known(run.used.total().cpu_ns())),
    ("user_ns", |run| Reading::Known(run.used.total().user_ns)),
    ("system_ns", |run| Reading::Known(run.used.total().system_ns)),
    ("max_resident_bytes", |run| Reading::Known(run.used.total().max_resident_bytes)),
    ("minor_faults", |run| Reading::Known(run.used.total().minor_faults)),
    ("major_faults", |run| Reading::Known(run.used.total().major_faults)),
    ("input_blocks", |run| Reading::Known(run.used.total().input_blocks)),
    ("output_blocks", |run| Reading::Known(run.used.total().output_blocks)),
    ("voluntary", |run| Reading::Known(run.used.total().voluntary)),
    ("involuntary", |run| Reading::Known(run.used.total().involuntary)),
    ("run_delay_ns", |run| run.used.delay.as_ref().map(|delay| delay.run_delay_ns)),
    ("run_delay_covered_cpu_ns", |run| run.used.delay.as_ref().map(|d| d.covered_cpu_ns)),
    ("migrations", |run| run.used.migrations.clone()),
    ("read_call_bytes", |run| run.used.io.as_ref().map(|io| io.read_call_bytes)),
    ("write_call_bytes", |run| run.used.io.as_ref().map(|io| io.write_call_bytes)),
    ("storage_read_bytes", |run| run.used.io.as_ref().map(|io| io.storage_read_bytes)),
    ("storage_write_bytes", |run| run.used.io.as_ref().map(|io| io.storage_write_bytes)),
    ("cancelled_write_bytes", |run| run.used.io.as_ref().map(|io| io.cancelled_write_bytes)),
    ("peak_threads_seen", |run| run.used.threads.as_ref().map(|t| u64::from(t.peak_seen))),
    ("at_exec_resident_bytes", |run| Reading::Known(run.used.at_exec.resident_bytes)),
    ("at_exec_minor_faults", |run| Reading::Known(run.used.at_exec.minor_faults)),
    ("at_exec_cpu_ns", |run| Reading::Known(run.used.at_exec.cpu_ns)),
];

impl Summary {
    /// What `runs` of one command come to; absent without any.
    pub(super) fn of(
        (number, command): (usize, &[String]),
        runs: &[&Run],
        accounting: Reading<CpuAccounting>,
        tick_ns: Reading<u64>,
        confidence: f64,
        seed: u64,
    ) -> Option<Self> {
        runs.first()?;
        let mut figures = Vec::new();
        let mut missing = BTreeMap::new();
        for (name, of) in SOURCES {
            let readings: Vec<Reading<u64>> = runs.iter().map(|run| of(run)).collect();
            let known: Vec<f64> =
                readings.iter().filter_map(Reading::known).map(|value| *value as f64).collect();
            if let Some(why) = readings.iter().find_map(Reading::why) {
                let some = match known.len() {
                    0 => String::new(),
                    some => format!("in {} of {} runs: ", readings.len() - some, readings.len()),
                };
                missing.insert(name.to_owned(), format!("{some}{why}"));
            }
            figures.extend(figure(name, known, confidence, seed));
        }
        let mut endings: BTreeMap<Ending, u32> = BTreeMap::new();
        for run in runs {
            *endings.entry(run.used.ending).or_default() += 1;
        }
        Some(Self {
            number,
            command: command.to_vec(),
            runs: runs.len() as u32,
            endings: endings.into_iter().collect(),
            figures,
            missing,
            split: Split::of(runs, accounting, tick_ns),
            outliers: outliers(runs),
            switching: None,
        })
    }

    /// A figure by its name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// The median of a figure.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<f64> {
        self.figure(name).map(|figure| figure.estimate.value)
    }
}

fn figure(name: &str, values: Vec<f64>, confidence: f64, seed: u64) -> Option<Figure> {
    let (min, max) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
    let spread = mad_sigma(&values);
    let estimate = estimate(values, confidence, seed)?;
    Some(Figure { name: name.to_owned(), estimate, spread, min, max })
}

/// Of one value a run.
pub(super) fn estimate(values: Vec<f64>, confidence: f64, seed: u64) -> Option<Estimate> {
    let exact = (values.len() > MOST_TO_RESAMPLE).then(|| median_interval(&values, confidence));
    // What is known exactly need not be resampled, which for thousands of runs takes seconds.
    let minimum = if exact.is_some() { u32::MAX } else { MINIMUM_ROUNDS };
    let mut estimate = Estimate::over(&values, minimum, confidence, seed)?;
    if let Some(interval) = exact.flatten() {
        (estimate.low, estimate.high) = (Some(interval.low), Some(interval.high));
        estimate.resolved = !interval.includes_zero();
    }
    Some(estimate)
}

fn outliers(runs: &[&Run]) -> Vec<Outlier> {
    let real: Vec<f64> = runs.iter().map(|run| run.used.real_ns as f64).collect();
    let (Some(middle), Some(spread)) = (median(&real), mad_sigma(&real)) else {
        return Vec::new();
    };
    // Of fewer, half of them decide what is usual; without scatter anything would be far.
    if runs.len() < MINIMUM_ROUNDS as usize || spread <= 0.0 {
        return Vec::new();
    }
    let far = |run: &&&Run| (run.used.real_ns as f64 - middle).abs() > OUTLYING * spread;
    let outlier = |run: &&Run| Outlier {
        round: run.round,
        real_ns: run.used.real_ns,
        times_median: run.used.real_ns as f64 / middle,
    };
    runs.iter().filter(far).map(outlier).collect()
}
