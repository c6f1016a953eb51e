//! What brings times that were found at several clocks of the core to one of them.

use std::collections::BTreeMap;

use stats::{AtLevel, Elasticity, elasticity, elasticity_of as power_of, median, tells_power};

/// A power that is known worse than this brings nothing to another clock: it may be that of a program that the core bounds, and
/// that of one that memory bounds.
const WORST_ERROR: f64 = 0.1;

/// Nothing goes with the clock by a higher power: a difference of two costs that are nearly the same may seem to.
const MOST: f64 = 5.0;

/// A time and the latency quantum of its clock, in nanoseconds: `(quantum, time)`.
pub(crate) type Timed = (f64, f64);

/// How times of one kind go with the clock, by their own slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clock {
    /// By which power they go with the latency quantum: 1 where the core bounds them, 0 where memory does.
    pub(crate) elasticity: Elasticity,
    /// The quantum of the clock that they are brought to, in nanoseconds.
    to_ns: f64,
    /// How far they are brought on average, as a logarithm.
    shift: f64,
    /// The middle of them there, in nanoseconds.
    pub(crate) middle_ns: f64,
}

impl Clock {
    /// Of times by rounds, to be brought to the clock of a quantum of `to_ns`; absent where the clock hardly changed, or too
    /// little to say how they go with it.
    pub(crate) fn of(by_round: &BTreeMap<u32, Vec<Timed>>, to_ns: f64) -> Option<Self> {
        let elasticity = elasticity(by_round).filter(is_known)?;
        let all = || by_round.values().flatten();
        let shift = all().map(|(quantum_ns, _)| (to_ns / quantum_ns).ln()).sum::<f64>();
        let mut clock =
            Self { elasticity, to_ns, shift: shift / all().count() as f64, middle_ns: 0.0 };
        clock.middle_ns = median(&all().map(|timed| clock.bring(*timed)).collect::<Vec<f64>>())?;
        Some(clock)
    }

    /// A time at that clock.
    pub(crate) fn bring(&self, (quantum_ns, time_ns): Timed) -> f64 {
        time_ns * (self.to_ns / quantum_ns).powf(self.elasticity.value)
    }

    /// How far the middle of such times is uncertain as their power is, in nanoseconds.
    pub(crate) fn error_ns(&self) -> f64 {
        (self.shift * self.elasticity.standard_error * self.middle_ns).abs()
    }
}

/// Whether a power is known well enough to bring figures to another clock by it.
pub(crate) fn is_known(of: &Elasticity) -> bool {
    of.standard_error <= WORST_ERROR && of.value.abs() <= MOST
}

/// The power of figures at latency quanta by rounds, where it is known well enough to bring them to another clock.
pub(crate) fn known_power(rounds: &BTreeMap<u32, Vec<AtLevel>>) -> Option<Elasticity> {
    let levels: Vec<f64> = rounds.values().flatten().map(|of| of.level).collect();
    let rounds: Vec<Vec<AtLevel>> = rounds.values().cloned().collect();
    tells_power(&levels).then(|| power_of(&rounds)).flatten().filter(is_known)
}

/// The power of a sum of figures, each with its factor; absent without figures, and of a sum that is nothing.
pub(crate) fn elasticity_of(parts: &[(Clock, f64)]) -> Option<Elasticity> {
    let sum = |of: fn(&Clock) -> f64| parts.iter().map(|(clock, times)| times * of(clock)).sum();
    let all: f64 = sum(|clock| clock.middle_ns);
    let moving: f64 = sum(|clock| clock.middle_ns * clock.elasticity.value);
    let error = |(clock, times): &(Clock, f64)| {
        times * clock.middle_ns * clock.elasticity.standard_error / all
    };
    let variance: f64 = parts.iter().map(|part| error(part).powi(2)).sum();
    let found = Elasticity { value: moving / all, standard_error: variance.sqrt() };
    Some(found).filter(is_known)
}
