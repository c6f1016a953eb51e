//! The speed of the CPU while a program ran, and its effect on the program's CPU time.
//!
//! Reference quanta of the neighbour that preempts it see two causes: the width of the core that it
//! had, and the period of the core's clock. A third one, the memory that all guests of a machine
//! share, is not seen; but it changes slowly, so that samples next to each other have it in common.
//! Within each case the logarithm of the CPU time is fitted by all three: by the powers of the first
//! two, and by the mean residual of the samples before and after (Papadakis 1937; Bartlett 1978,
//! Nearest neighbour models in the analysis of field experiments). So each sample is converted to an
//! unshared core, to the median clock of the run, and to the mean conditions around it.

use std::array;
use std::collections::{BTreeMap, BTreeSet};

use rundata::trial::{Tally, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::{CPU_NS, DONE, LATENCY_QUANTUM_NS, QUANTUM_RATIO};
use crate::table::Table;

/// Fewest looks at the core's speed in a sample.
const FEWEST_LOOKS: u64 = 10;
/// Fewest samples of a fit beyond one a case.
const FEWEST_FREE: usize = 20;
/// Share of the fastest looks, whose median stands for an unshared core.
const FASTEST_SHARE: f64 = 0.1;
/// Largest ratio of quanta over the best; larger ones count as this.
const MAX_OVER_BEST: f64 = 4.0;
/// Smallest ratio over the best of a shared core.
const SHARED_OVER_BEST: f64 = 1.1;
/// Largest residual, in standard deviations of a normal distribution with the same quartiles.
const MAX_DEVIATIONS: f64 = 3.0;
/// Upper bounds of the powers: a program can lose more than the quantum on a shared core, but not
/// more than the clock's whole period, nor have more than all in common with the samples around it.
const MAX_POWERS: [f64; 3] = [3.0, 1.0, 1.0];

/// The causes of changes in the program's CPU time, over all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CoreSpeedFound")]
pub struct CoreSpeedFindings {
    /// Whether there were enough samples for a fit.
    pub fitted: bool,
    /// The share of looks at which the core was shared with another hardware thread's work.
    pub shared: f64,
    /// Power by which the CPU time follows the quantum's time by the core's width; 0 without a fit.
    pub power_of_width: f64,
    /// Power by which the CPU time follows the period of the clock; 0 without a fit.
    pub power_of_period: f64,
    /// Part of the deviation of the samples before and after that a sample shares; 0 without a fit.
    pub part_of_time: f64,
    /// Relative scatter of the CPU time within cases: as measured, and after the fit.
    pub scatter: [f64; 2],
}

/// The factors that convert the CPU time of each sample to full speed.
pub(super) struct CoreSpeed {
    /// Factors by case and round.
    factors: BTreeMap<(usize, u32), f64>,
    findings: Option<CoreSpeedFindings>,
}

/// Logarithms of one sample.
struct SpeedSample {
    case: usize,
    round: u32,
    /// CPU time for one unit of progress.
    time: f64,
    /// Time that the core's width costs the quantum, 0 at its best.
    width: f64,
    /// The clock's period.
    period: f64,
}

impl CoreSpeed {
    /// Fits the samples of these cases.
    pub(super) fn fit(table: &Table, cases: impl IntoIterator<Item = usize>) -> Self {
        let mut samples: Vec<&TrialSample> = Vec::new();
        for case in cases {
            samples.extend(table.trial_samples(case));
        }
        sort_by_time(table, &mut samples);
        let not_checked = Self { factors: BTreeMap::new(), findings: None };
        let Some(best) = best_ratio(&samples) else { return not_checked };
        let mut speeds = Vec::new();
        for sample in &samples {
            speeds.extend(speed_sample(sample, best));
        }
        let Some(median_period) = median(&column(&speeds, |sample| sample.period)) else {
            return not_checked;
        };
        let fit = SpeedFit::fit(&speeds);
        let [width_power, period_power, time_power] = fit.powers;
        let mut factors = BTreeMap::new();
        for (sample, around) in speeds.iter().zip(&fit.around) {
            let by_width = -width_power * sample.width;
            let by_period = period_power * (sample.period - median_period);
            let factor = (by_width - by_period - time_power * around).exp();
            factors.insert((sample.case, sample.round), factor);
        }
        let findings = CoreSpeedFindings {
            fitted: fit.is_known,
            shared: shared_share(&samples, best),
            power_of_width: width_power,
            power_of_period: period_power,
            part_of_time: time_power,
            scatter: fit.scatter,
        };
        Self { factors, findings: Some(findings) }
    }

    /// Returns the factor of a sample's CPU time; absent for a sample without one where others were
    /// fitted.
    pub(super) fn factor(&self, sample: &TrialSample) -> Option<f64> {
        match (self.factors.get(&(sample.case, sample.round)), self.findings) {
            (Some(factor), _) => Some(*factor),
            (None, Some(CoreSpeedFindings { fitted: true, .. })) => None,
            (None, _) => Some(1.0),
        }
    }

    pub(super) fn findings(&self) -> Option<CoreSpeedFindings> {
        self.findings
    }
}

/// Sorts samples by the time at which they were taken.
fn sort_by_time(table: &Table, samples: &mut [&TrialSample]) {
    let rounds: BTreeSet<u32> = samples.iter().map(|sample| sample.round).collect();
    let mut places: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    for round in rounds {
        for (place, case) in table.plan.order(round).into_iter().enumerate() {
            places.insert((round, case), place);
        }
    }
    samples.sort_by_key(|sample| (sample.round, places.get(&(sample.round, sample.case))));
}

fn ratios<'a>(samples: &'a [&TrialSample]) -> impl Iterator<Item = &'a Tally> {
    samples.iter().filter_map(|sample| sample.tallies.get(QUANTUM_RATIO))
}

/// Returns the quanta's ratio on an unshared core, by the fastest looks.
fn best_ratio(samples: &[&TrialSample]) -> Option<f64> {
    let mut merged = Tally::default();
    for tally in ratios(samples) {
        merged.merge(tally);
    }
    let ratio = merged.quantile(FASTEST_SHARE / 2.0)? as f64;
    if ratio > 0.0 { Some(ratio) } else { None }
}

/// Returns the share of looks on a shared core.
fn shared_share(samples: &[&TrialSample], best: f64) -> f64 {
    let (mut looks, mut shared) = (0.0, 0.0);
    for tally in ratios(samples) {
        for (ratio, times) in tally.values() {
            looks += f64::from(times);
            if ratio as f64 > SHARED_OVER_BEST * best {
                shared += f64::from(times);
            }
        }
    }
    shared / f64::max(looks, 1.0)
}

fn speed_sample(sample: &TrialSample, best: f64) -> Option<SpeedSample> {
    let cpu_ns = sample.tallies.get(CPU_NS)?.total();
    let done = sample.count(DONE)? as f64;
    let ratios = sample.tallies.get(QUANTUM_RATIO)?;
    let latency = sample.tallies.get(LATENCY_QUANTUM_NS)?;
    if latency.count() < FEWEST_LOOKS {
        return None;
    }
    let (mut looks, mut widths) = (0.0, 0.0);
    for (ratio, times) in ratios.values() {
        let ratio = (ratio as f64).clamp(best, MAX_OVER_BEST * best);
        looks += f64::from(times);
        widths += f64::from(times) * best / ratio;
    }
    let period_ns = latency.quantile(0.5)? as f64;
    let width = -(widths / looks).ln();
    let period = period_ns.ln();
    let time = (cpu_ns / done).ln();
    if width.is_finite() && period.is_finite() && time.is_finite() {
        Some(SpeedSample { case: sample.case, round: sample.round, time, width, period })
    } else {
        None
    }
}

/// The fit of the CPU time.
struct SpeedFit {
    is_known: bool,
    /// Powers of the width, the period, and the samples around.
    powers: [f64; 3],
    /// Mean residual of the samples before and after each.
    around: Vec<f64>,
    /// Scatter of the residuals, as measured and fitted.
    scatter: [f64; 2],
}

/// A value of each sample.
type Column = Vec<f64>;

fn column(samples: &[SpeedSample], read: fn(&SpeedSample) -> f64) -> Column {
    samples.iter().map(read).collect()
}

impl SpeedFit {
    /// Fits the samples; with too few all powers are 0.
    fn fit(samples: &[SpeedSample]) -> Self {
        let cases: BTreeSet<usize> = samples.iter().map(|sample| sample.case).collect();
        let time = centred(samples, column(samples, |sample| sample.time));
        let width = centred(samples, column(samples, |sample| sample.width));
        let period = centred(samples, column(samples, |sample| sample.period));
        let mut around = vec![0.0; samples.len()];
        let mut columns = [width, period, around.clone()];
        let measured = scatter(&time);
        if samples.len() < cases.len() + FEWEST_FREE {
            let scatter = [measured, measured];
            return Self { is_known: false, powers: [0.0; 3], around, scatter };
        }
        let mut powers = solve(&time, &columns);
        // The samples around are known once the first two powers are, and change these a little.
        for _ in 0..2 {
            let own = residuals(&time, &columns, [powers[0], powers[1], 0.0]);
            around = around_each(&own);
            columns[2] = centred(samples, around.clone());
            powers = solve(&time, &columns);
        }
        let fitted = scatter(&residuals(&time, &columns, powers));
        Self { is_known: true, powers, around, scatter: [measured, fitted] }
    }
}

/// Returns a column less the mean of each case.
fn centred(samples: &[SpeedSample], mut column: Column) -> Column {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for (sample, value) in samples.iter().zip(&column) {
        let (count, sum) = sums.entry(sample.case).or_default();
        *count += 1.0;
        *sum += value;
    }
    for (sample, value) in samples.iter().zip(&mut column) {
        let (count, sum) = sums[&sample.case];
        *value -= sum / count;
    }
    column
}

fn residuals(time: &Column, columns: &[Column; 3], powers: [f64; 3]) -> Column {
    let mut residuals = Vec::new();
    for (number, time) in time.iter().enumerate() {
        let explained: f64 = (0..3).map(|which| powers[which] * columns[which][number]).sum();
        residuals.push(time - explained);
    }
    residuals
}

/// Returns the standard deviation of a normal distribution with the same quartiles.
fn scatter(residuals: &[f64]) -> f64 {
    let sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
    1.4826 * median(&sizes).unwrap_or_default()
}

/// Returns the mean of the residuals before and after each, with outliers limited.
fn around_each(residuals: &[f64]) -> Column {
    let limit = MAX_DEVIATIONS * scatter(residuals);
    let limited: Vec<f64> =
        residuals.iter().map(|residual| residual.clamp(-limit, limit)).collect();
    let mut around = Vec::new();
    for number in 0..limited.len() {
        let before = if number > 0 { Some(limited[number - 1]) } else { None };
        let after = limited.get(number + 1).copied();
        around.push(match (before, after) {
            (Some(before), Some(after)) => (before + after) / 2.0,
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => 0.0,
        });
    }
    around
}

/// Returns the powers within their bounds with which the columns explain the time best, by least
/// squares; fitted again without outliers.
fn solve(time: &Column, columns: &[Column; 3]) -> [f64; 3] {
    let first = solve_rows(time, columns, &vec![true; time.len()]);
    let residuals = residuals(time, columns, first);
    let limit = MAX_DEVIATIONS * scatter(&residuals);
    let are_used: Vec<bool> = residuals.iter().map(|residual| residual.abs() <= limit).collect();
    solve_rows(time, columns, &are_used)
}

fn solve_rows(time: &Column, columns: &[Column; 3], are_used: &[bool]) -> [f64; 3] {
    let squares: [[f64; 3]; 3] = array::from_fn(|row| {
        array::from_fn(|column| product(&columns[row], &columns[column], are_used))
    });
    let with_time: [f64; 3] = array::from_fn(|row| product(&columns[row], time, are_used));
    // One power after the other: the sum of squares falls each time, and has a single minimum.
    const SWEEPS: usize = 200;
    let mut powers = [0.0; 3];
    for row in (0..3).cycle().take(3 * SWEEPS) {
        let others = (0..3).filter(|other| *other != row);
        let explained: f64 = others.map(|other| squares[row][other] * powers[other]).sum();
        if squares[row][row] > 0.0 {
            let best = (with_time[row] - explained) / squares[row][row];
            powers[row] = best.clamp(0.0, MAX_POWERS[row]);
        }
    }
    powers
}

/// Returns the sum of the products of two columns over the rows that are used.
fn product(a: &Column, b: &Column, are_used: &[bool]) -> f64 {
    let mut sum = 0.0;
    for ((a, b), is_used) in a.iter().zip(b).zip(are_used) {
        if *is_used {
            sum += a * b;
        }
    }
    sum
}
