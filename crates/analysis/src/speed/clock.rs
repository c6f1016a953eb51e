//! Elasticity: conversion of times that were measured at several clocks of the core to one of them.
//!
//! The clock of a core changes during a run, by turbo and heat. A slice at another clock is no less
//! clean, but its time is another. How much is shown by the slices themselves: the elasticity e is
//! the slope of ln(time) on ln(quantum), where the latency quantum beside a slice takes as many
//! cycles at each clock. A run converts to the clock of a quantum of 6,000 ns, and half of its clean
//! slices are at 6,600 ns:
//!
//! ```text
//! quantum   hop
//! 6,000 ns  1,000 ns
//! 6,600 ns  1,080 ns   e = ln(1080 / 1000) / ln(6600 / 6000) = 0.81
//! ```
//!
//! - With e = 1 the core bounds the hop, with e = 0 memory or a device does. Here 1,080 ns become
//!   1,080 * (6000 / 6600)^0.81 = 1,000 ns, and all slices count.
//! - If e has a standard error of 0.05, it adds one of 0.048 * 0.05 * 1,000 = 2.4 ns to the median,
//!   where 0.048 is the size of the mean of ln(6000 / quantum) over the slices
//!   ([`ClockModel::error_ns`]).
//! - e is used if its error is at most 0.1 and its size at most 5 ([`is_known`]). It is absent where
//!   the quanta span less than 1 %, or in fewer than five rounds; slices at other clocks are then
//!   left out.
//!
//! Estimates of different runs are converted by [`crate::at_clock`].

use std::collections::BTreeMap;

use rundata::experiment::CaseKinds;
use rundata::plan::Plan;
use rundata::ring;
use stats::{
    Elasticity, FigureAtLevel, estimate_elasticity, fit_elasticity, has_level_span, median,
};

use super::level::{ClockFilter, SpeedLevel};
use super::{SpeedLevels, clean_parts, clean_slices, leader_cpus, sound_triples};

/// Largest standard error of an elasticity that is used: with a larger one it may be that of a
/// program that the core bounds as well as that of one that memory bounds.
const MAX_ERROR: f64 = 0.1;

/// Smallest standard error of a measured elasticity: a smaller one is rounding, of a figure that was
/// the same at all clocks.
const MIN_ERROR: f64 = 1e-9;

/// Largest elasticity that is used: a difference of two costs that are nearly the same may seem to
/// have a larger one.
const MAX_ELASTICITY: f64 = 5.0;

/// A time and the latency quantum of its clock, in nanoseconds: `(quantum, time)`.
pub(crate) type TimedAtClock = (f64, f64);

/// Times of a hop in the clean parts of a worker's triples.
#[derive(Clone, Debug, Default)]
pub(super) struct CleanParts {
    /// Times of the rings.
    pub(super) rings: Vec<TimedAtClock>,
    /// Times of the solos, by member.
    pub(super) solos: Vec<Vec<TimedAtClock>>,
}

/// The elasticity of times of one kind, by their own slices, and their conversion to one clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockModel {
    /// Elasticity by the latency quantum: 1 where the core bounds the times, 0 where memory does.
    pub(crate) elasticity: Elasticity,
    /// The quantum of the clock that times are converted to, in nanoseconds.
    to_ns: f64,
    /// Mean logarithm of that quantum over the quanta of the times.
    mean_log_ratio: f64,
    /// Median of the converted times, in nanoseconds.
    pub(crate) median_ns: f64,
}

impl ClockModel {
    /// Fits times by round, to be converted to the clock of a quantum of `to_ns`; absent where the
    /// clock hardly changed, or too little to tell the elasticity.
    pub(crate) fn fit(by_round: &BTreeMap<u32, Vec<TimedAtClock>>, to_ns: f64) -> Option<Self> {
        let elasticity = estimate_elasticity(by_round).filter(is_known)?;
        let mut model = Self { elasticity, to_ns, mean_log_ratio: 0.0, median_ns: 0.0 };
        let (mut log_ratios, mut converted) = (0.0, Vec::new());
        for times in by_round.values() {
            for (quantum_ns, time_ns) in times {
                log_ratios += (to_ns / quantum_ns).ln();
                converted.push(model.convert((*quantum_ns, *time_ns)));
            }
        }
        model.mean_log_ratio = log_ratios / converted.len() as f64;
        model.median_ns = median(&converted)?;
        Some(model)
    }

    /// Returns a time at the model's clock, in nanoseconds.
    pub(crate) fn convert(&self, (quantum_ns, time_ns): TimedAtClock) -> f64 {
        time_ns * (self.to_ns / quantum_ns).powf(self.elasticity.value)
    }

    /// Returns the error of the median that the error of the elasticity makes, in nanoseconds.
    pub(crate) fn error_ns(&self) -> f64 {
        (self.mean_log_ratio * self.elasticity.standard_error * self.median_ns).abs()
    }
}

/// The clock models of a case; each absent where its slices do not tell the elasticity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CaseClocks {
    /// Times of a hop.
    pub(crate) hop: Option<ClockModel>,
    /// Times of a hop of the rings of triples.
    pub(crate) ring: Option<ClockModel>,
    /// Times of a hop of the solos of triples.
    pub(crate) solo: Option<ClockModel>,
}

impl CaseClocks {
    /// Fits all samples of a case by round, to be converted to `level.clock_ns`.
    pub(crate) fn from_rounds(
        case: &ring::RingCase,
        rounds: &BTreeMap<u32, Vec<&ring::RingSample>>,
        level: &SpeedLevel,
    ) -> Self {
        let mut hops: BTreeMap<u32, Vec<TimedAtClock>> = BTreeMap::new();
        let (mut rings, mut solos) = (hops.clone(), hops.clone());
        for (round, samples) in rounds {
            for (_, slices) in clean_slices(case, samples, level, ClockFilter::Any) {
                hops.entry(*round).or_default().extend(slices.into_iter().map(|(_, hop)| hop));
            }
            for (_, triples) in sound_triples(case, samples) {
                if triples.pieces.is_none() {
                    let parts = clean_parts(triples, level, ClockFilter::Any);
                    rings.entry(*round).or_default().extend(parts.rings);
                    solos.entry(*round).or_default().extend(parts.solos.concat());
                }
            }
        }
        for by_round in [&mut hops, &mut rings, &mut solos] {
            by_round.retain(|_, times| !times.is_empty());
        }
        Self {
            hop: ClockModel::fit(&hops, level.clock_ns),
            ring: ClockModel::fit(&rings, level.clock_ns),
            solo: ClockModel::fit(&solos, level.clock_ns),
        }
    }

    /// Returns the models of the rings of triples and of their solos, if there are both.
    pub(crate) fn above(&self) -> Option<(ClockModel, ClockModel)> {
        Some((self.ring?, self.solo?))
    }
}

/// Returns the clock models of each ring of a plan, from its samples by case and round. Where all
/// elasticities are known, the clock that the levels convert to becomes the one that the CPU mostly
/// had in earlier launches, if it was seen in this one.
pub(crate) fn case_clocks(
    plan: &Plan,
    cases: &[BTreeMap<u32, Vec<&ring::RingSample>>],
    levels: &mut SpeedLevels,
) -> Vec<CaseClocks> {
    let clocks = fit_cases(plan, cases, levels);
    let Some(usual_ns) = plan.reference.clock_ns else { return clocks };
    // Trials beside the rings share the level, and need no elasticity.
    let only_rings = plan.experiment.case_kinds() == CaseKinds::Rings;
    let are_complete = plan
        .rings()
        .all(|(number, case)| cases[number].is_empty() || is_complete(plan, case, &clocks[number]));
    // A clock that was not seen is not converted to: the elasticity is that of the clocks that were.
    let was_seen = levels.values().all(|level| level.has_seen(usual_ns));
    if !only_rings || !are_complete || !was_seen {
        return clocks;
    }
    for level in levels.values_mut() {
        level.clock_ns = usual_ns;
    }
    fit_cases(plan, cases, levels)
}

/// Returns whether all elasticities that a case needs are known.
fn is_complete(plan: &Plan, case: &ring::RingCase, clocks: &CaseClocks) -> bool {
    let has_triples = plan.batching.ring.triples.is_some() && case.members > 1;
    clocks.hop.is_some() && (!has_triples || clocks.above().is_some())
}

fn fit_cases(
    plan: &Plan,
    cases: &[BTreeMap<u32, Vec<&ring::RingSample>>],
    levels: &SpeedLevels,
) -> Vec<CaseClocks> {
    let mut clocks = vec![CaseClocks::default(); cases.len()];
    for (number, case) in plan.rings() {
        if let Some(level) = levels.get(&leader_cpus(case)) {
            clocks[number] = CaseClocks::from_rounds(case, &cases[number], level);
        }
    }
    clocks
}

/// Returns whether an elasticity is known well enough to convert estimates by it.
pub(crate) fn is_known(elasticity: &Elasticity) -> bool {
    elasticity.standard_error <= MAX_ERROR && elasticity.value.abs() <= MAX_ELASTICITY
}

/// Returns the elasticity of figures by round, each at a latency quantum, if it is known well enough
/// to convert by it.
pub(crate) fn known_power(rounds: &BTreeMap<u32, Vec<FigureAtLevel>>) -> Option<Elasticity> {
    let rounds: Vec<Vec<FigureAtLevel>> = rounds.values().cloned().collect();
    let mut levels = Vec::new();
    for figures in &rounds {
        levels.extend(figures.iter().map(|figure| figure.level));
    }
    if !has_level_span(&levels) {
        return None;
    }
    let elasticity = fit_elasticity(&rounds)?;
    // A figure in steps larger than its change seems to be known exactly.
    let is_measured = elasticity.standard_error > MIN_ERROR;
    if is_measured && is_known(&elasticity) { Some(elasticity) } else { None }
}

/// Returns the elasticity of a sum of times, each with its factor; absent without times, and of a
/// sum of zero.
pub(crate) fn elasticity_of_sum(parts: &[(ClockModel, f64)]) -> Option<Elasticity> {
    let (mut sum, mut weighted) = (0.0, 0.0);
    for (clock, factor) in parts {
        sum += factor * clock.median_ns;
        weighted += factor * (clock.median_ns * clock.elasticity.value);
    }
    let mut variance = 0.0;
    for (clock, factor) in parts {
        variance += (factor * clock.median_ns * clock.elasticity.standard_error / sum).powi(2);
    }
    let elasticity = Elasticity { value: weighted / sum, standard_error: f64::sqrt(variance) };
    if is_known(&elasticity) { Some(elasticity) } else { None }
}
