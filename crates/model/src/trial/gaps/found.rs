//! What the gaps of a case come to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::class::{Class, Told, classified};
use super::comb::{self, Comb, Watched};
use super::*;
use crate::estimate::Estimate;
use crate::trial::case::Trial;
use crate::trial::figures::ByCase;
use crate::trial::tally::{Quantity, Tally};
use stats::Histogram;
use stats::{mean, median};

/// The gaps of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassFound {
    /// Which.
    pub class: Class,
    /// Gaps per second watched, over rounds.
    pub per_second: Option<Estimate>,
    /// Share of the watched time that they took, in percent, over rounds.
    pub lost_percent: Option<Estimate>,
    /// Their length in nanoseconds, all rounds together; absent without gaps.
    pub length_ns: Option<Quantity>,
    /// How often gaps of which length came.
    pub histogram: Histogram,
    /// Those that come at a period, the clearest first.
    pub combs: Vec<Comb>,
}

/// What one case says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Number of the case in the plan.
    pub case: usize,
    /// Time watched in nanoseconds, all rounds together.
    pub watched_ns: f64,
    /// Gaps above this many nanoseconds were kept; the median over rounds.
    pub threshold_ns: f64,
    /// Nanoseconds of a step of the loop, the median over rounds.
    pub loop_ns: f64,
    /// Share of the watched time that all gaps took, in percent, over rounds.
    pub lost_percent: Option<Estimate>,
    /// By class, in a fixed order.
    pub classes: Vec<ClassFound>,
    /// Median length of the timer tick's gaps in a round, in nanoseconds, over rounds; absent where
    /// no comb was found to be the tick.
    pub tick_ns: Option<Estimate>,
    /// From tick to tick in nanoseconds, by the kernel's word.
    pub told_tick_period_ns: Option<f64>,
    /// Time that the kernel reports as stolen from the CPU around the window, in percent of it, mean
    /// over rounds (steps of 10 ms). Absent where it reports none.
    pub steal_percent: Option<f64>,
    /// Interrupts per second that the kernel counted on the CPU around the window, by name in
    /// /proc/interrupts; absent where it could not be read.
    pub interrupts_per_second: Option<BTreeMap<String, f64>>,
    /// Rounds whose window was ended early, as there was no room for more gaps.
    pub cut_short: u32,
}

/// A case whose gaps were told apart.
struct Analysis<'a> {
    samples: Vec<&'a Sample>,
    gaps: Vec<Vec<Told>>,
    watched_ns: f64,
    tick_period_ns: Option<f64>,
    /// Those of gaps without a switch first, the clearest first.
    combs: Vec<comb::Found>,
}

impl<'a> Analysis<'a> {
    fn of(by_case: &ByCase<'a>, case: usize) -> Option<Self> {
        if !matches!(by_case.trial(case), Some(Trial::Gaps { .. })) {
            return None;
        }
        let samples: Vec<&Sample> =
            by_case.of(case).iter().copied().filter(|s| watched_ns(s).is_some()).collect();
        let windows: Vec<f64> = samples
            .iter()
            .filter_map(|s| Some(s.count(WINDOW_TICKS)? as f64 * s.ns_per_tick()?))
            .collect();
        let ticks: Vec<f64> =
            samples.iter().filter_map(|s| s.count(TICK_NS)).map(|ns| ns as f64).collect();
        let gaps: Vec<Vec<Told>> = samples.iter().map(|sample| classified(sample)).collect();
        let watched = Watched {
            gaps: &gaps,
            window_ns: median(&windows)?,
            watched_ns: samples.iter().filter_map(|s| watched_ns(s)).sum(),
            tick_ns: median(&ticks).filter(|ns| *ns > 0.0),
        };
        let mut combs = comb::of_classes(&watched, &[Class::Interrupt, Class::Uncharged]);
        combs.extend(comb::of_classes(&watched, &[Class::SwitchedOut]));
        // Another comb of the tick's period is the host's, or another timer's.
        let is_tick = |found: &&mut comb::Found| found.comb.is_tick;
        combs.iter_mut().filter(is_tick).skip(1).for_each(|found| found.comb.is_tick = false);
        let Watched { watched_ns, tick_ns: tick_period_ns, .. } = watched;
        Some(Self { gaps, watched_ns, tick_period_ns, combs, samples })
    }

    fn combs(&self, class: Class) -> impl Iterator<Item = &comb::Found> {
        self.combs.iter().filter(move |found| found.class == class)
    }

    /// Median length of the tick's gaps by round. Where two combs have its period, of the clearer.
    fn tick_by_round(&self) -> TickByRound {
        let tick = self.combs.iter().find(|found| found.comb.is_tick);
        let Some(tick) = tick else { return Vec::new() };
        let rounds = self.samples.iter().zip(&self.gaps).zip(&tick.members);
        let middle = |((sample, gaps), members): ((&&Sample, &Vec<Told>), &Vec<usize>)| {
            let lengths: Vec<f64> = members.iter().map(|number| gaps[*number].length_ns).collect();
            Some((sample.round, median(&lengths)?))
        };
        rounds.filter_map(middle).collect()
    }

    /// Mean over the samples that have it.
    fn mean(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        mean(&self.samples.iter().filter_map(|sample| of(sample)).collect::<Vec<f64>>())
    }

    fn interrupts_per_second(&self) -> Option<BTreeMap<String, f64>> {
        let read = self.samples.iter().filter(|sample| sample.count(ALL_INTERRUPTS).is_some());
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        let mut watched_s = 0.0;
        for sample in read {
            watched_s += sample.count(WINDOW_TICKS)? as f64 * sample.ns_per_tick()? / 1e9;
            for (name, count) in &sample.counts {
                if let Some(name) = name.strip_prefix(INTERRUPTS) {
                    *sums.entry(name.to_string()).or_default() += *count as f64;
                }
            }
        }
        sums.values_mut().for_each(|sum| *sum /= watched_s);
        (watched_s > 0.0).then_some(sums)
    }
}

fn of_class(by_case: &ByCase, case: usize, of: &Analysis, class: Class) -> ClassFound {
    let figure = |sample: &Sample, figure: fn(&Told) -> f64| {
        let gaps = classified(sample);
        // The empty sum of floats is -0.
        let own = gaps.iter().filter(|gap| gap.class == class).map(figure);
        let sum: f64 = own.fold(0.0, |sum, figure| sum + figure);
        Some(sum / watched_ns(sample)?)
    };
    let lengths: Tally = of
        .gaps
        .iter()
        .flatten()
        .filter(|gap| gap.class == class)
        .map(|gap| gap.length_ns.round() as i64)
        .collect();
    ClassFound {
        class,
        per_second: by_case.estimate(case, |s| Some(1e9 * figure(s, |_| 1.0)?)),
        lost_percent: by_case.estimate(case, |s| Some(100.0 * figure(s, |gap| gap.length_ns)?)),
        length_ns: Quantity::of(&lengths),
        histogram: Histogram::of(lengths.values().map(|(length, times)| (length as f64, times))),
        combs: of.combs(class).map(|found| found.comb.clone()).collect(),
    }
}

fn found(by_case: &ByCase, case: usize) -> Option<(Found, TickByRound)> {
    let of = Analysis::of(by_case, case)?;
    let in_ns = |name: &'static str| {
        let ns = |s: &&Sample| Some(s.count(name)? as f64 * s.ns_per_tick()?);
        median(&of.samples.iter().filter_map(ns).collect::<Vec<f64>>())
    };
    let lost = |sample: &Sample| {
        let sum = classified(sample).iter().fold(0.0, |sum, gap| sum + gap.length_ns);
        Some(100.0 * sum / watched_ns(sample)?)
    };
    let stolen = |sample: &Sample| {
        Some(100.0 * sample.steal_ns? as f64 / sample.elapsed_ns as f64).filter(|s| s.is_finite())
    };
    let ticks = of.tick_by_round();
    let tick = |sample: &Sample| {
        ticks.iter().find(|(round, _)| *round == sample.round).map(|(_, length)| *length)
    };
    let found = Found {
        case,
        watched_ns: of.watched_ns,
        threshold_ns: in_ns(THRESHOLD_TICKS)?,
        loop_ns: in_ns(LOOP_TICKS)?,
        lost_percent: by_case.estimate(case, lost),
        classes: Class::ALL.map(|class| of_class(by_case, case, &of, class)).to_vec(),
        tick_ns: by_case.estimate(case, tick),
        told_tick_period_ns: of.tick_period_ns,
        steal_percent: of.mean(stolen),
        interrupts_per_second: of.interrupts_per_second(),
        cut_short: of.samples.iter().filter(|s| s.count(CUT_SHORT) == Some(1)).count() as u32,
    };
    Some((found, ticks))
}

/// What each case of gaps says, with the tick by round: see [`TickByRound`].
pub(crate) fn find(by_case: &ByCase) -> Vec<(Found, TickByRound)> {
    by_case.cases().filter_map(|case| found(by_case, case)).collect()
}

/// Rounds, each with the median length of the timer tick's gaps in nanoseconds; empty where no comb is
/// the tick.
pub(crate) type TickByRound = Vec<(u32, f64)>;
