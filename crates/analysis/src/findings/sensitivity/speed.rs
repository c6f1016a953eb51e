//! How fast the CPU was while a program ran: what its CPU time goes with beside its neighbour.
//!
//! Two things are seen by reference quanta of whoever preempted it: how much of the core it had, and
//! the period of the core's clock. A third, the memory that all guests of a machine share, nobody
//! sees; but it changes slowly, so that samples taken next to each other have it in common. Within
//! each case the logarithm of the CPU time is fitted by all three: by the powers of the first two,
//! and by the mean residual of the samples before and behind (Papadakis 1937; Bartlett 1978, Nearest
//! neighbour models in the analysis of field experiments). So each sample is brought to an unshared
//! core, to the clock of the run's middle, and to what its time had in common with the times around
//! it.

use std::array;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::{CPU_NS, DONE, LATENCY_QUANTUM_NS, QUANTUM_RATIO};
use crate::table::Table;
use rundata::trial::{Sample, Tally};

/// Looks of a sample that tell how fast the core was.
const FEWEST_LOOKS: u64 = 10;
/// Samples beyond one a case that a fit needs.
const FEWEST_FREE: usize = 20;
/// The quickest share of looks, whose middle stands for an unshared core.
const BEST: f64 = 0.1;
/// A ratio of quanta counts as no more than this many times the best.
const LONGEST: f64 = 4.0;
/// A look with a ratio this much above the best is one of a shared core.
const SHARED: f64 = 1.1;
/// Residuals beyond so many standard deviations, of a normal distribution with the same middle half,
/// count as such.
const OUTLIER: f64 = 3.0;
/// How far each power may go: a program can lose more than the quantum by who shares the core; none
/// goes with more than the clock's whole period, and none has more than all in common with the
/// samples around it.
const BOUNDS: [f64; 3] = [3.0, 1.0, 1.0];

/// What the program's CPU time went with beside its neighbour, over all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreSpeedFound {
    /// Whether there were samples enough to say what the CPU time goes with.
    pub fitted: bool,
    /// The share of looks at which the core was shared with another hardware thread's work.
    pub shared: f64,
    /// By which power the CPU time goes with the time that the core's width costs the quantum; 0
    /// where that is not known.
    pub power_of_width: f64,
    /// By which power it goes with the period of the clock; 0 where that is not known.
    pub power_of_period: f64,
    /// Which part of what the samples before and behind had more or less is in a sample, too; 0
    /// where that is not known.
    pub part_of_time: f64,
    /// How far samples of a case scatter, as a share of the CPU time: as measured, and when all
    /// that is taken out.
    pub scatter: [f64; 2],
}

/// By what the CPU time of each sample is multiplied.
pub(super) struct CoreSpeed {
    by_sample: BTreeMap<(usize, u32), f64>,
    found: Option<CoreSpeedFound>,
}

/// One sample's logarithms.
struct Seen {
    case: usize,
    round: u32,
    /// CPU time for what is done once.
    time: f64,
    /// What the width costs the quantum, 0 at its best; the clock's period.
    levels: [f64; 2],
}

impl CoreSpeed {
    pub(super) fn of(table: &Table, cases: impl IntoIterator<Item = usize>) -> Self {
        let mut samples: Vec<&Sample> =
            cases.into_iter().flat_map(|case| table.of_trial(case).to_vec()).collect();
        in_order(table, &mut samples);
        let best = best_ratio(&samples);
        let seen: Vec<Seen> = samples.iter().filter_map(|of| seen(of, best?)).collect();
        let Some(best) = best.filter(|_| !seen.is_empty()) else {
            return Self { by_sample: BTreeMap::new(), found: None };
        };
        let periods: Vec<f64> = seen.iter().map(|of| of.levels[1]).collect();
        let middle = median(&periods).unwrap_or_default();
        let fit = Fit::of(&seen);
        let factor = |(of, around): (&Seen, &f64)| {
            let [width, period, time] = fit.powers;
            (-width * of.levels[0] - period * (of.levels[1] - middle) - time * around).exp()
        };
        let keys = seen.iter().map(|of| (of.case, of.round));
        let found = CoreSpeedFound {
            fitted: fit.is_known,
            shared: shared(&samples, best),
            power_of_width: fit.powers[0],
            power_of_period: fit.powers[1],
            part_of_time: fit.powers[2],
            scatter: fit.scatter,
        };
        Self {
            by_sample: keys.zip(seen.iter().zip(&fit.around).map(factor)).collect(),
            found: Some(found),
        }
    }

    /// What brings a sample's CPU time to the full speed; none of one of which nobody knows how,
    /// where the others are brought there.
    pub(super) fn full(&self, sample: &Sample) -> Option<f64> {
        let factor = self.by_sample.get(&(sample.case, sample.round)).copied();
        let others_stay = self.found.is_none_or(|found| !found.fitted);
        factor.or(others_stay.then_some(1.0))
    }

    pub(super) fn told(&self) -> Option<CoreSpeedFound> {
        self.found
    }
}

/// By the time at which they were taken.
fn in_order(table: &Table, samples: &mut [&Sample]) {
    let mut places: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    for round in samples.iter().map(|of| of.round).collect::<BTreeSet<u32>>() {
        let order = table.plan.order(round).into_iter().enumerate();
        places.extend(order.map(|(place, case)| ((round, case), place)));
    }
    samples.sort_by_key(|of| (of.round, places.get(&(of.round, of.case)).copied()));
}

fn ratios<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = &'a Tally> {
    samples.iter().filter_map(|sample| sample.tallies.get(QUANTUM_RATIO))
}

/// The quanta's ratio on an unshared core, as far as these looks tell.
fn best_ratio(samples: &[&Sample]) -> Option<f64> {
    let mut all = Tally::default();
    ratios(samples).for_each(|of| all.merge(of));
    all.quantile(BEST / 2.0).map(|ratio| ratio as f64).filter(|ratio| *ratio > 0.0)
}

fn shared(samples: &[&Sample], best: f64) -> f64 {
    let (mut all, mut shared) = (0.0, 0.0);
    for (ratio, times) in ratios(samples).flat_map(Tally::values) {
        all += f64::from(times);
        shared += if ratio as f64 > SHARED * best { f64::from(times) } else { 0.0 };
    }
    shared / f64::max(all, 1.0)
}

fn seen(sample: &Sample, best: f64) -> Option<Seen> {
    let cpu_ns = sample.tallies.get(CPU_NS)?.total();
    let done = sample.count(DONE)? as f64;
    let (ratios, latency) =
        (sample.tallies.get(QUANTUM_RATIO)?, sample.tallies.get(LATENCY_QUANTUM_NS)?);
    if latency.count() < FEWEST_LOOKS {
        return None;
    }
    let (mut all, mut widths) = (0.0, 0.0);
    for (ratio, times) in ratios.values() {
        let ratio = (ratio as f64).clamp(best, LONGEST * best);
        (all, widths) = (all + f64::from(times), widths + f64::from(times) * best / ratio);
    }
    let period_ns = latency.quantile(0.5)? as f64;
    let levels = [-(widths / all).ln(), period_ns.ln()];
    let time = (cpu_ns / done).ln();
    let (case, round) = (sample.case, sample.round);
    let all_known = levels.iter().chain([&time]).all(|of| of.is_finite());
    all_known.then_some(Seen { case, round, time, levels })
}

/// What the time goes with.
struct Fit {
    is_known: bool,
    powers: [f64; 3],
    /// Mean residual of the samples before and behind each.
    around: Vec<f64>,
    /// Of the residuals, as measured and fitted.
    scatter: [f64; 2],
}

/// A value of each sample.
type Column = Vec<f64>;

impl Fit {
    /// Nothing is known by too few samples.
    fn of(seen: &[Seen]) -> Self {
        let cases: BTreeSet<usize> = seen.iter().map(|of| of.case).collect();
        let centred = |of: &dyn Fn(&Seen) -> f64| centred(seen, seen.iter().map(of).collect());
        let time = centred(&|of| of.time);
        let [width, period] = array::from_fn(|which| centred(&|of| of.levels[which]));
        let mut columns = [width, period, vec![0.0; seen.len()]];
        let raw = scatter(&time);
        if seen.len() < cases.len() + FEWEST_FREE {
            return Self {
                is_known: false,
                powers: [0.0; 3],
                around: vec![0.0; seen.len()],
                scatter: [raw, raw],
            };
        }
        let mut around = vec![0.0; seen.len()];
        let mut powers = solve(&time, &columns);
        // What the samples around have in common is known once the first two powers are, and moves
        // these a little.
        for _ in 0..2 {
            let own = residuals(&time, &columns, [powers[0], powers[1], 0.0]);
            around = around_each(&own);
            columns[2] = self::centred(seen, around.clone());
            powers = solve(&time, &columns);
        }
        let left = scatter(&residuals(&time, &columns, powers));
        Self { is_known: true, powers, around, scatter: [raw, left] }
    }
}

/// Less the mean of each case.
fn centred(seen: &[Seen], mut column: Column) -> Column {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for (of, value) in seen.iter().zip(&column) {
        let (count, sum) = sums.entry(of.case).or_default();
        (*count, *sum) = (*count + 1.0, *sum + value);
    }
    for (of, value) in seen.iter().zip(&mut column) {
        *value -= sums.get(&of.case).map_or(0.0, |(count, sum)| sum / count);
    }
    column
}

fn residuals(time: &Column, columns: &[Column; 3], powers: [f64; 3]) -> Column {
    let explained = |at: usize| (0..3).map(|which| powers[which] * columns[which][at]).sum::<f64>();
    time.iter().enumerate().map(|(at, time)| time - explained(at)).collect()
}

/// Half the middle half's width as that of a normal distribution's standard deviation.
fn scatter(residuals: &[f64]) -> f64 {
    let sizes: Vec<f64> = residuals.iter().map(|of| of.abs()).collect();
    1.4826 * median(&sizes).unwrap_or_default()
}

/// The mean of the residuals before and behind each, of which none counts as more than an outlier.
fn around_each(residuals: &[f64]) -> Column {
    let most = OUTLIER * scatter(residuals);
    let kept: Vec<f64> = residuals.iter().map(|of| of.clamp(-most, most)).collect();
    let around = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| kept.get(at));
        let both = before.into_iter().chain(kept.get(at + 1));
        let (count, sum) = both.fold((0.0, 0.0), |(count, sum), of| (count + 1.0, sum + of));
        sum / f64::max(count, 1.0)
    };
    (0..kept.len()).map(around).collect()
}

/// The powers within their bounds with which the columns explain the time best, by least squares;
/// once more without outliers.
fn solve(time: &Column, columns: &[Column; 3]) -> [f64; 3] {
    let first = solve_for(time, columns, |_| true);
    let residuals = residuals(time, columns, first);
    let most = OUTLIER * scatter(&residuals);
    solve_for(time, columns, |at| residuals[at].abs() <= most)
}

fn solve_for(time: &Column, columns: &[Column; 3], counts: impl Fn(usize) -> bool) -> [f64; 3] {
    let product = |one: &Column, other: &Column| {
        let both = one.iter().zip(other).enumerate().filter(|(at, _)| counts(*at));
        both.map(|(_, (one, other))| one * other).sum::<f64>()
    };
    let squares: [[f64; 3]; 3] =
        array::from_fn(|one| array::from_fn(|other| product(&columns[one], &columns[other])));
    let with_time: [f64; 3] = array::from_fn(|which| product(&columns[which], time));
    // One power after the other: the sum of squares falls each time, and has one lowest place.
    const SWEEPS: usize = 200;
    let mut powers = [0.0; 3];
    for which in (0..3).cycle().take(3 * SWEEPS) {
        let others: f64 = (0..3)
            .filter(|other| *other != which)
            .map(|other| squares[which][other] * powers[other])
            .sum();
        if squares[which][which] > 0.0 {
            let best = (with_time[which] - others) / squares[which][which];
            powers[which] = best.clamp(0.0, BOUNDS[which]);
        }
    }
    powers
}
