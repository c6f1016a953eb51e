//! What brings times that were found at several clocks of the core to one of them.

use std::collections::BTreeMap;

use super::level::{ClockFilter, SpeedLevel};
use super::{SpeedLevels, clean_parts, leader_cpus, sound_triples, timed_hops};
use rundata::experiment::Takes;
use rundata::plan::Plan;
use rundata::ring;
use stats::{
    Elasticity, FigureAtLevel, estimate_elasticity, fit_elasticity, has_level_span, median,
};

/// A power that is known worse than this brings nothing to another clock: it may be that of a
/// program that the core bounds, and that of one that memory bounds.
const WORST_ERROR: f64 = 0.1;

/// A power that is known better than this is that of the same figure at all clocks: rounding.
const EXACT: f64 = 1e-9;

/// Nothing goes with the clock by a higher power: a difference of two costs that are nearly the
/// same may seem to.
const MOST: f64 = 5.0;

/// A time and the latency quantum of its clock, in nanoseconds: `(quantum, time)`.
pub(crate) type TimedAtClock = (f64, f64);

/// Times of a hop in the clean parts of a worker's triples.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// Those of rings.
    pub(super) rings: Vec<TimedAtClock>,
    /// Those of solos, by member.
    pub(super) solos: Vec<Vec<TimedAtClock>>,
}

/// How times of one kind go with the clock, by their own slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockModel {
    /// By which power they go with the latency quantum: 1 where the core bounds them, 0 where
    /// memory does.
    pub(crate) elasticity: Elasticity,
    /// The quantum of the clock that they are brought to, in nanoseconds.
    to_ns: f64,
    /// How far they are brought on average, as a logarithm.
    shift: f64,
    /// The middle of them there, in nanoseconds.
    pub(crate) middle_ns: f64,
}

impl ClockModel {
    /// Of times by rounds, to be brought to the clock of a quantum of `to_ns`; absent where the
    /// clock hardly changed, or too little to say how they go with it.
    pub(crate) fn fit(by_round: &BTreeMap<u32, Vec<TimedAtClock>>, to_ns: f64) -> Option<Self> {
        let elasticity = estimate_elasticity(by_round).filter(is_known)?;
        let all = || by_round.values().flatten();
        let shift = all().map(|(quantum_ns, _)| (to_ns / quantum_ns).ln()).sum::<f64>();
        let mut clock =
            Self { elasticity, to_ns, shift: shift / all().count() as f64, middle_ns: 0.0 };
        clock.middle_ns = median(&all().map(|timed| clock.bring(*timed)).collect::<Vec<f64>>())?;
        Some(clock)
    }

    /// A time at that clock.
    pub(crate) fn bring(&self, (quantum_ns, time_ns): TimedAtClock) -> f64 {
        time_ns * (self.to_ns / quantum_ns).powf(self.elasticity.value)
    }

    /// How far the middle of such times is uncertain as their power is, in nanoseconds.
    pub(crate) fn error_ns(&self) -> f64 {
        (self.shift * self.elasticity.standard_error * self.middle_ns).abs()
    }
}

/// How the times of a case go with the clock; absent where its slices do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CaseClocks {
    /// Those of a hop.
    pub(crate) hop: Option<ClockModel>,
    /// Those of a hop of the rings of triples.
    pub(crate) ring: Option<ClockModel>,
    /// Those of a hop of their solos.
    pub(crate) solo: Option<ClockModel>,
}

impl CaseClocks {
    /// Of all samples of a case by rounds, brought to the clock that the level has times told at.
    pub(crate) fn from_rounds(
        case: &ring::Case,
        rounds: &BTreeMap<u32, Vec<&ring::Sample>>,
        level: &SpeedLevel,
    ) -> Self {
        let clock = |timed: &dyn Fn(&[&ring::Sample]) -> Vec<TimedAtClock>| {
            let by_round = rounds.iter().map(|(round, samples)| (*round, timed(samples)));
            ClockModel::fit(
                &by_round.filter(|(_, timed)| !timed.is_empty()).collect(),
                level.clock_ns,
            )
        };
        let of_triples = |of: fn(Parts) -> Vec<TimedAtClock>| {
            clock(&|samples: &[&ring::Sample]| {
                let whole = sound_triples(case, samples).filter(|(_, t)| t.pieces.is_none());
                whole.flat_map(|(_, t)| of(clean_parts(t, level, ClockFilter::Any))).collect()
            })
        };
        Self {
            hop: clock(&|samples| {
                let all = timed_hops(case, samples, level, ClockFilter::Any).into_iter();
                all.flat_map(|(_, hops)| hops).collect()
            }),
            ring: of_triples(|parts| parts.rings),
            solo: of_triples(|parts| parts.solos.concat()),
        }
    }

    /// What brings the rings of triples and their solos to one clock.
    pub(crate) fn above(&self) -> Option<(ClockModel, ClockModel)> {
        self.ring.zip(self.solo)
    }
}

/// How the hops of each ring of a plan go with the clock, from its samples by case and round. Where
/// all of them tell that, the clock that the levels have figures told at becomes the one that the
/// CPU mostly had in earlier launches, if it was seen in this one.
pub(crate) fn case_clocks(
    plan: &Plan,
    cases: &[BTreeMap<u32, Vec<&ring::Sample>>],
    levels: &mut SpeedLevels,
) -> Vec<CaseClocks> {
    let found = all_clocks(plan, cases, levels);
    let in_triples = |case: &ring::Case| plan.batching.ring.triples.is_some() && case.members > 1;
    let tells = |(number, case): (usize, &ring::Case)| {
        let of = &found[number];
        let all = of.hop.is_some() && (!in_triples(case) || of.above().is_some());
        all || cases[number].is_empty()
    };
    // Trials beside the rings share the level, and need not tell how they go with the clock. What
    // was not seen is not told: the power is that of the clocks that were.
    let usual_ns = plan.reference.clock_ns.filter(|usual_ns| {
        plan.experiment.takes() == Takes::Rings
            && plan.rings().all(tells)
            && levels.values().all(|level| level.has_seen(*usual_ns))
    });
    let Some(usual_ns) = usual_ns else { return found };
    levels.values_mut().for_each(|level| level.clock_ns = usual_ns);
    all_clocks(plan, cases, levels)
}

fn all_clocks(
    plan: &Plan,
    cases: &[BTreeMap<u32, Vec<&ring::Sample>>],
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

/// Whether a power is known well enough to bring figures to another clock by it.
pub(crate) fn is_known(of: &Elasticity) -> bool {
    of.standard_error <= WORST_ERROR && of.value.abs() <= MOST
}

/// The power of figures at latency quanta by rounds, where it is known well enough to bring them to
/// another clock.
pub(crate) fn known_power(rounds: &BTreeMap<u32, Vec<FigureAtLevel>>) -> Option<Elasticity> {
    let levels: Vec<f64> = rounds.values().flatten().map(|of| of.level).collect();
    let rounds: Vec<Vec<FigureAtLevel>> = rounds.values().cloned().collect();
    // What comes in steps larger than the change says nothing of it, and seems to be known exactly.
    let is_seen = |of: &Elasticity| is_known(of) && of.standard_error > EXACT;
    has_level_span(&levels).then(|| fit_elasticity(&rounds)).flatten().filter(is_seen)
}

/// The power of a sum of figures, each with its factor; absent without figures, and of a sum that
/// is nothing.
pub(crate) fn elasticity_of_sum(parts: &[(ClockModel, f64)]) -> Option<Elasticity> {
    let sum =
        |of: fn(&ClockModel) -> f64| parts.iter().map(|(clock, times)| times * of(clock)).sum();
    let all: f64 = sum(|clock| clock.middle_ns);
    let moving: f64 = sum(|clock| clock.middle_ns * clock.elasticity.value);
    let error = |(clock, times): &(ClockModel, f64)| {
        times * clock.middle_ns * clock.elasticity.standard_error / all
    };
    let variance: f64 = parts.iter().map(|part| error(part).powi(2)).sum();
    let found = Elasticity { value: moving / all, standard_error: variance.sqrt() };
    Some(found).filter(is_known)
}
