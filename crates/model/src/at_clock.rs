//! At which clock of the core a figure is, and what it is at another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Elasticity;

/// The clock of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtClock {
    /// The latency quantum at that clock, in nanoseconds.
    pub quantum_ns: f64,
    /// By which power of the period of the core's clock the figure goes: 1 where the core bounds it, 0 where memory or a device
    /// does. Absent where no run has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
}

/// What brings a figure to another clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Brought {
    /// Times this.
    pub factor: f64,
    /// How far that is uncertain by chance, as a standard error relative to the figure.
    pub error: f64,
    /// How far it is uncertain beyond that, as a share of the figure: the power may be any from 0 to 1.
    pub slack: f64,
}

impl AtClock {
    /// What brings the figure to the clock of a quantum of `to_ns`: by `power` where that is known.
    pub fn to(&self, to_ns: f64, power: Option<Elasticity>) -> Brought {
        let apart = (to_ns / self.quantum_ns).ln();
        match power {
            Some(Elasticity { value, standard_error }) => Brought {
                factor: (apart * value).exp(),
                error: (apart * standard_error).abs(),
                slack: 0.0,
            },
            None => Brought { factor: (apart / 2.0).exp(), error: 0.0, slack: (apart / 2.0).abs() },
        }
    }
}

/// No power is known better than this, however many runs say it: cases that are alike are not the same.
const LEAST_ERROR: f64 = 0.01;

/// What several runs say of one power: the mean, each by its error. Absent without any.
pub fn pooled(all: impl IntoIterator<Item = Elasticity>) -> Option<Elasticity> {
    let (mut weights, mut sum) = (0.0, 0.0);
    for of in all {
        let weight = of.standard_error.max(LEAST_ERROR).powi(-2);
        (weights, sum) = (weights + weight, sum + weight * of.value);
    }
    let standard_error = f64::max((1.0_f64 / weights).sqrt(), LEAST_ERROR);
    (weights > 0.0 && weights.is_finite())
        .then(|| Elasticity { value: sum / weights, standard_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: AtClock = AtClock { quantum_ns: 5000.0, elasticity: None };

    fn power(value: f64, standard_error: f64) -> Elasticity {
        Elasticity { value, standard_error }
    }

    #[test]
    fn a_figure_goes_with_the_period_by_its_power() {
        let to = |value| AT.to(5500.0, Some(power(value, 0.1)));
        assert_eq!(to(0.0).factor, 1.0);
        assert!(
            (to(1.0).factor - 1.1).abs() < 1e-12 && (to(0.5).factor - 1.1_f64.sqrt()).abs() < 1e-12
        );
        assert!((to(1.0).error - 0.1 * 1.1_f64.ln()).abs() < 1e-12 && to(1.0).slack == 0.0);
    }

    /// Both ends of what it may be lie within the slack.
    #[test]
    fn where_nothing_is_known_it_may_be_any_from_0_to_1() {
        let of = AT.to(5500.0, None);
        assert!(
            of.factor * (1.0 - of.slack) < 1.0 + 2e-3 && of.factor * (1.0 + of.slack) > 1.1 - 2e-3
        );
        assert_eq!(AT.to(5000.0, None), Brought { factor: 1.0, error: 0.0, slack: 0.0 });
    }

    #[test]
    fn runs_say_a_power_together() {
        assert_eq!(pooled([]), None);
        let both = pooled([power(0.9, 0.02), power(1.0, 0.02)]).unwrap();
        assert!(
            (both.value - 0.95).abs() < 1e-12
                && (both.standard_error - 0.02 / 2_f64.sqrt()).abs() < 1e-12
        );
        // By their errors, and no better than so.
        assert!(pooled([power(0.9, 0.01), power(1.0, 0.1)]).unwrap().value < 0.91);
        assert_eq!(pooled([power(1.0, 0.0); 50]).unwrap().standard_error, LEAST_ERROR);
    }
}
