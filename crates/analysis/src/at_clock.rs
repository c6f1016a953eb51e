//! The core clock at which an estimate holds, and its conversion to another clock.
//!
//! A time follows the period of the core's clock by a power, its elasticity e:
//! t(new) = t(old) * (period(new) / period(old))^e. With e = 1 the core bounds the time, with e = 0
//! memory or a device does. Periods are read from the latency quantum, a loop of known length.
//!
//! Example: a switch takes 2,000 ns at a quantum of 5,000 ns; the other run has a quantum of
//! 5,500 ns, so that its clock is slower by ln(5500 / 5000) = 0.0953. With e = 0.80 +- 0.05 the
//! switch takes 2,000 * 1.1^0.80 = 2,158 ns there, and the elasticity adds a relative error of
//! 0.0953 * 0.05 = 0.5 %. Where e is unknown, e = 0.5 stands for it, 2,098 ns, and the interval is
//! widened by 0.0953 / 2 = 4.8 % on both sides, which covers any e from 0 to 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Elasticity;
use stats::ratio::ExtraUncertainty;

use crate::speed::clock_ghz;

/// Clocks whose ratio has a logarithm below this are one clock: a launch does not read its own any
/// better, as quanta come in steps of up to 10 ns.
pub const SAME_CLOCK: f64 = 0.002;

/// The elasticity that stands for an unknown one: the middle between 0 and 1.
const UNKNOWN_ELASTICITY: f64 = 0.5;

/// The clock of an estimate, and how the estimate follows it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtClock {
    /// The latency quantum at that clock, in nanoseconds.
    pub quantum_ns: f64,
    /// The elasticity by the run's own slices: 1 where the core bounds the time, 0 where memory or
    /// a device does. Absent where the run saw one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// The elasticity by earlier launches, as the plan has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Elasticity>,
}

/// The conversion of estimates from one clock to another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockConversion {
    /// Logarithm of the new quantum over the old one.
    pub log_ratio: f64,
    /// The elasticity that is used; absent where it is not known.
    pub elasticity: Option<Elasticity>,
}

impl ClockConversion {
    /// Returns the factor by which an estimate is multiplied.
    pub fn factor(&self) -> f64 {
        let power = match self.elasticity {
            Some(elasticity) => elasticity.value,
            None => UNKNOWN_ELASTICITY,
        };
        (self.log_ratio * power).exp()
    }

    /// Returns the relative uncertainty that the conversion adds: by the error of the elasticity,
    /// or where that is unknown, by any from 0 to 1.
    pub fn uncertainty(&self) -> ExtraUncertainty {
        match self.elasticity {
            Some(elasticity) => ExtraUncertainty {
                error: (self.log_ratio * elasticity.standard_error).abs(),
                slack: 0.0,
            },
            None => ExtraUncertainty { error: 0.0, slack: (self.log_ratio / 2.0).abs() },
        }
    }
}

impl AtClock {
    /// Returns the clock in GHz, of a program that was built for `target`; absent where the cycles
    /// of a multiplication are not known there.
    pub fn ghz(&self, target: &str) -> Option<f64> {
        clock_ghz(self.quantum_ns, target)
    }

    /// Returns the conversion to the clock of a quantum of `to_ns`; none is needed between clocks
    /// that are one within [`SAME_CLOCK`].
    pub fn conversion_to(&self, to_ns: f64, elasticity: Option<Elasticity>) -> ClockConversion {
        let log_ratio = (to_ns / self.quantum_ns).ln();
        let is_same = log_ratio.abs() < SAME_CLOCK;
        ClockConversion { log_ratio: if is_same { 0.0 } else { log_ratio }, elasticity }
    }
}

/// Returns the elasticity of similar estimates: the pooled one of those that measured it
/// themselves, else the most precise one that is known from earlier launches.
pub fn common_elasticity(clocks: &[AtClock]) -> Option<Elasticity> {
    let measured = clocks.iter().filter_map(|clock| clock.elasticity).filter(is_sound);
    let known = clocks.iter().filter_map(|clock| clock.known).filter(is_sound);
    let best = known.min_by(|a, b| a.standard_error.total_cmp(&b.standard_error));
    pool_elasticities(measured).or(best)
}

fn is_sound(elasticity: &Elasticity) -> bool {
    elasticity.value.is_finite() && elasticity.standard_error >= 0.0
}

/// Smallest standard error of an elasticity, however many runs measured it: similar cases are not
/// the same case.
const LEAST_ERROR: f64 = 0.01;

/// Returns the mean of the elasticities of several runs, weighted by their errors. Absent without
/// any.
pub fn pool_elasticities(runs: impl IntoIterator<Item = Elasticity>) -> Option<Elasticity> {
    let (mut weights, mut sum) = (0.0, 0.0);
    for elasticity in runs {
        let weight = elasticity.standard_error.max(LEAST_ERROR).powi(-2);
        weights += weight;
        sum += weight * elasticity.value;
    }
    let standard_error = f64::max((1.0_f64 / weights).sqrt(), LEAST_ERROR);
    if weights > 0.0 && weights.is_finite() {
        Some(Elasticity { value: sum / weights, standard_error })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: AtClock = AtClock { quantum_ns: 5000.0, elasticity: None, known: None };

    fn elasticity(value: f64, standard_error: f64) -> Elasticity {
        Elasticity { value, standard_error }
    }

    #[test]
    fn a_figure_goes_with_the_period_by_its_power() {
        let to = |value| AT.conversion_to(5500.0, Some(elasticity(value, 0.1)));
        assert_eq!(to(0.0).factor(), 1.0);
        assert!((to(1.0).factor() - 1.1).abs() < 1e-12);
        assert!((to(0.5).factor() - 1.1_f64.sqrt()).abs() < 1e-12);
        let open = to(1.0).uncertainty();
        assert!((open.error - 0.1 * 1.1_f64.ln()).abs() < 1e-12 && open.slack == 0.0);
    }

    /// Both ends of what it may be lie within the slack.
    #[test]
    fn where_nothing_is_known_it_may_be_any_from_0_to_1() {
        let by = AT.conversion_to(5500.0, None);
        let (factor, slack) = (by.factor(), by.uncertainty().slack);
        assert!(factor * (1.0 - slack) < 1.0 + 2e-3 && factor * (1.0 + slack) > 1.1 - 2e-3);
        for same in [5000.0, 5009.0] {
            let still = AT.conversion_to(same, None);
            assert_eq!((still.factor(), still.uncertainty()), (1.0, ExtraUncertainty::default()));
        }
    }

    /// What a run was told is no evidence beside what others saw themselves.
    #[test]
    fn what_is_borrowed_does_not_vote() {
        let own = AtClock { elasticity: Some(elasticity(1.0, 0.02)), ..AT };
        let told = AtClock { known: Some(elasticity(0.5, 0.1)), ..AT };
        assert_eq!(common_elasticity(&[told, own, told, told]), Some(elasticity(1.0, 0.02)));
        let better = AtClock { known: Some(elasticity(0.6, 0.05)), ..AT };
        assert_eq!(common_elasticity(&[told, better, told]), Some(elasticity(0.6, 0.05)));
        assert_eq!(common_elasticity(&[AT]), None);
    }

    #[test]
    fn runs_say_a_power_together() {
        assert_eq!(pool_elasticities([]), None);
        let both = pool_elasticities([elasticity(0.9, 0.02), elasticity(1.0, 0.02)]).unwrap();
        assert!(
            (both.value - 0.95).abs() < 1e-12
                && (both.standard_error - 0.02 / 2_f64.sqrt()).abs() < 1e-12
        );
        // By their errors, and no better than so.
        assert!(
            pool_elasticities([elasticity(0.9, 0.01), elasticity(1.0, 0.1)]).unwrap().value < 0.91
        );
        assert_eq!(
            pool_elasticities([elasticity(1.0, 0.0); 50]).unwrap().standard_error,
            LEAST_ERROR
        );
    }
}
